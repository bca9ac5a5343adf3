/* What the user may have meant: the nearest known key, lists in words. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "config/config_int.h"

static int min_int(int a, int b) { return a < b ? a : b; }

void config_join(char *out, size_t size, const char *const *items, int n, const char *comma, const char *last)
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < n && used < size; i++) {
        const char *before = i == 0 ? "" : i < n - 1 ? comma : last;
        used += (size_t)snprintf(out + used, size - used, "%s%s", before, items[i]);
    }
}

static const char *leaf(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/* The right key in the wrong section, or without its section, is nearly as close as a misspelt key. */
static int key_distance(const char *asked, int key)
{
    const int whole = suggest_distance(asked, config_key(key).name);
    const int part = suggest_distance(leaf(asked), config_key_leaf(key));
    return part == 0 ? min_int(whole, 1) : whole;
}

/* In a known section only the key itself can be misspelt, so only its own length counts. */
static const char *misspelt_part(const char *asked)
{
    const char *dot = strchr(asked, '.');
    return dot && config_section_find(asked, (size_t)(dot - asked)) >= 0 ? dot + 1 : asked;
}

const char *config_nearest(const char *asked)
{
    const char *best = NULL, *misspelt = misspelt_part(asked);
    int least = INT_MAX;
    for (int i = 0; i < config_key_count(); i++) {
        const int d = key_distance(asked, i);
        if (d < least && suggest_is_near(misspelt, d))
            best = config_key(i).name, least = d;
    }
    for (int i = 0; i < config_section_count && !strchr(asked, '.'); i++) {
        const int d = suggest_distance(asked, config_sections[i].name);
        if (config_sections[i].name[0] && d < least && suggest_is_near(asked, d))
            best = config_sections[i].name, least = d;
    }
    return best;
}

/* All that may stand where `asked` stood: the keys of its section, or the sections and the keys beside them. */
static void list_around(const char *asked, char *out, size_t size)
{
    const char *items[CONFIG_KEYS_MAX + CONFIG_SECTIONS_MAX], *dot = strchr(asked, '.');
    int section = dot ? config_section_find(asked, (size_t)(dot - asked)) : -1, n = 0;
    if (section < 0)
        section = config_section_find("", 0);
    const bool top = !config_sections[section].name[0];
    for (int i = 0; top && i < config_section_count; i++)
        if (config_sections[i].name[0])
            items[n++] = config_sections[i].name;
    for (int i = 0; i < config_key_count(); i++)
        if (config_key_section(i) == section)
            items[n++] = config_key_leaf(i);
    const int used = top ? snprintf(out, size, "a file has ")
                         : snprintf(out, size, "section %s has ", config_sections[section].name);
    config_join(out + used, size - (size_t)used, items, n, ", ", " and ");
}

bool config_is_like_key(const char *name)
{
    const char *dot = strchr(name, '.'), *end = strrchr(name, '.');
    return dot && dot > name && strcmp(end, ".yaml") && strcmp(end, ".yml") && config_section_find(name, (size_t)(dot - name)) >= 0;
}

enum status config_unknown(const char *name, struct error *err)
{
    char shown[CONFIG_SHOWN_MAX], others[512];
    const char *meant = config_nearest(name);
    if (meant)
        return error_set(err, BAD_INPUT, "there is no key '%s'; did you mean '%s'?", config_shown(shown, name), meant);
    list_around(name, others, sizeof others);
    return error_set(err, BAD_INPUT, "there is no key '%s'; %s", config_shown(shown, name), others);
}

enum status config_refuse_unknown(struct config_reader *r, struct config_place at, const char *name)
{
    struct error why;
    config_unknown(name, &why);
    return config_refuse(r, at, "%s", why.text);
}
