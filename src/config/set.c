/* One override from the command line: "train.lr=1e-3". Its value is read as the same scalar would be in the file. */
#include <string.h>

#include "config/config_int.h"

/* Cuts blanks, then a pair of quotes around all of it. */
static bool unquote(const char **value, size_t *length)
{
    const char *v = *value;
    size_t n = *length;
    while (n && (*v == ' ' || *v == '\t'))
        v++, n--;
    while (n && (v[n - 1] == ' ' || v[n - 1] == '\t'))
        n--;
    const bool quoted = n >= 2 && (*v == '"' || *v == '\'') && v[n - 1] == *v;
    *value = v + quoted;
    *length = n - 2 * (size_t)quoted;
    return quoted;
}

static enum status set_value(struct config_reader *r, int key, struct config_place at, const char *value)
{
    char text[CONFIG_PATH_MAX];
    size_t length = strlen(value);
    const bool quoted = unquote(&value, &length);
    if (length >= sizeof text)
        return config_refuse(r, at, "%s has %zu bytes; a value has at most %d", config_key(key).name, length,
                             CONFIG_PATH_MAX - 1);
    memcpy(text, value, length);
    text[length] = '\0';
    return config_value_read(r, key, at, text, quoted);
}

static const char *first_key_of(int section)
{
    int key = 0;
    while (config_key_section(key) != section)
        key++;
    return config_key(key).name;
}

enum status config_read_set(struct config_reader *r, const char *set, int rank)
{
    const struct config_place at = {.rank = rank, .set = set};
    const char *equals = strchr(set, '=');
    char name[256];
    if (!equals || equals == set)
        return config_refuse(r, at, "write it as key=value, like --set train.lr=1e-3");
    snprintf(name, sizeof name, "%.*s", (int)(equals - set < 256 ? equals - set : 256), set);
    const int key = config_key_find(name), section = config_section_find(name, strlen(name));
    if (key >= 0)
        return set_value(r, key, at, equals + 1);
    if (section < 0)
        return config_refuse_unknown(r, at, name);
    return config_refuse(r, at, "%s is a section; set one of its keys, like %s", name, first_key_of(section));
}
