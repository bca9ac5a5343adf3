/* Lists: of whole numbers, of names, of passes. In the file a list is one of YAML; on the command line it may stand in
 * brackets or not: "[a, b]", "a,b". Every item is read, and refused, as the scalar that it is. */
#include <string.h>

#include "config/config_int.h"

bool config_key_is_list(int key)
{
    const enum key_type type = config_key(key).type;
    return type == KEY_INTS || type == KEY_NAMES || type == KEY_PASSES;
}

const char *config_list_items(int key)
{
    switch (config_key(key).type) {
    case KEY_INTS: return "whole numbers";
    case KEY_PASSES: return "the names of passes";
    default: return "names";
    }
}

static struct config_list *field_of(struct config_reader *r, int key)
{
    return (struct config_list *)((char *)r->c + config_key(key).offset);
}

/* No name is what a key has that is not given: whoever gives it means one at least. */
enum status config_list_clear(struct config_reader *r, int key, struct config_place at)
{
    char wanted[256];
    config_value_wanted(key, wanted, sizeof wanted);
    if (config_key(key).type == KEY_PASSES)
        config_passes_read_word(r, key, "none");
    else if (config_key(key).type == KEY_INTS)
        *field_of(r, key) = (struct config_list){0};
    else if (at.line || at.set)
        return config_refuse(r, at, "%s is empty; %s is wanted, or no %s at all", config_key(key).name, wanted, config_key_leaf(key));
    return OK;
}

static enum status read_item(struct config_reader *r, int key, struct config_place at, const char *item, bool quoted, int64_t *out)
{
    char shown[CONFIG_SHOWN_MAX];
    if (quoted)
        return config_refuse(r, at, "%s holds the text \"%s\"; write a number, without quotes", config_key(key).name,
                             config_shown(shown, item));
    return config_int_read(r, key, at, item, out);
}

enum status config_list_add(struct config_reader *r, int key, struct config_place at, const char *item, bool quoted, bool first)
{
    if (config_key(key).type == KEY_PASSES)
        return config_passes_add(r, key, at, item, first);
    if (config_key(key).type == KEY_NAMES)
        return config_names_add(r, key, at, item, first);
    struct config_list *list = field_of(r, key);
    if (first)
        *list = (struct config_list){0};
    if (list->n == CONFIG_LIST_MAX)
        return config_refuse(r, at, "%s holds more than %d %s", config_key(key).name, CONFIG_LIST_MAX, config_list_items(key));
    const enum status st = read_item(r, key, at, item, quoted, &list->at[list->n]);
    list->n += st == OK;
    return st;
}

/* Cuts the next item off a list with commas; blanks around it do not count. */
static char *next_item(char **rest)
{
    char *item = strsep(rest, ",");
    item += strspn(item, " \t");
    for (char *end = item + strlen(item); end > item && (end[-1] == ' ' || end[-1] == '\t');)
        *--end = '\0';
    return item;
}

enum status config_list_read(struct config_reader *r, int key, struct config_place at, const char *text, bool quoted)
{
    char copy[CONFIG_PATH_MAX], *rest = copy;
    const size_t length = strlen(text);
    const bool brackets = !quoted && length >= 2 && text[0] == '[' && text[length - 1] == ']';
    if (brackets && strspn(text + 1, " \t") == length - 2)
        return config_list_clear(r, key, at);
    if (config_key(key).type == KEY_PASSES && config_passes_read_word(r, key, text))
        return OK;
    if (length >= sizeof copy)
        return config_refuse(r, at, "%s has %zu bytes; a list of %s has at most %zu", config_key(key).name, length,
                             config_key(key).type == KEY_PASSES ? "passes" : config_list_items(key), sizeof copy - 1);
    snprintf(copy, sizeof copy, "%.*s", (int)(length - 2 * brackets), text + brackets);
    enum status st = OK;
    for (bool first = true; rest && st == OK; first = false)
        st = config_list_add(r, key, at, next_item(&rest), false, first);
    return st;
}

void config_list_print(const struct config *c, int key, FILE *to)
{
    const struct config_key k = config_key(key);
    const struct config_list *list = (const struct config_list *)((const char *)c + k.offset);
    putc('[', to);
    for (int64_t i = 0; i < list->n; i++)
        fprintf(to, "%s%lld", i ? ", " : "", (long long)list->at[i]);
    putc(']', to);
}
