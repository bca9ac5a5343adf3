/* What tuning wrote: the keys in which two configs differ. Both are printed from one schema, so that line i of one is the key of
 * line i of the other. */
#include "prove/tune_report_int.h"

#include <stdlib.h>
#include <string.h>

enum { KEY_BYTES = 96 };

/* A line of a config as printed: "section:", "  key: value" or "key: value". Returns the value, or NULL at a section. */
static char *split_line(char *line, char section[KEY_BYTES], char key[KEY_BYTES])
{
    char *colon = strchr(line, ':');
    if (!colon)
        return NULL;
    *colon = '\0';
    if (!colon[1]) {
        snprintf(section, KEY_BYTES, "%s.", line);
        return NULL;
    }
    const bool inside = *line == ' ';
    snprintf(key, KEY_BYTES, "%s%s", inside ? section : "", line + strspn(line, " "));
    return colon + 1 + strspn(colon + 1, " ");
}

static json_t *change(const char *key, const char *before, const char *after)
{
    return json_pack("{s:o,s:o,s:o}", "key", tune_text(key), "before", tune_text(before), "after", tune_text(after));
}

/* Takes the texts apart. */
static json_t *changes_of(char *a, char *b)
{
    json_t *list = json_array();
    char section[KEY_BYTES] = "", key_a[KEY_BYTES], key_b[KEY_BYTES];
    for (char *line_a, *line_b; (line_a = strsep(&a, "\n")) && (line_b = strsep(&b, "\n"));) {
        if (!strcmp(line_a, line_b) && *line_a == ' ')
            continue;
        const char *before = split_line(line_a, section, key_a), *after = split_line(line_b, section, key_b);
        if (before && after && strcmp(before, after))
            json_array_append_new(list, change(key_a, before, after));
    }
    return list;
}

json_t *tune_changes(const struct config *before, const struct config *after)
{
    char *a = config_text(before), *b = config_text(after);
    json_t *list = a && b ? changes_of(a, b) : NULL;
    free(a);
    free(b);
    return list;
}
