/* The keys in which two configurations differ, value by value as they would stand in the file. */
#include <string.h>

#include "config/config_int.h"
#include "core/arena.h"

static void value_text(const struct config *c, int key, char out[CONFIG_VALUE_MAX])
{
    FILE *to = xneed(fmemopen(out, CONFIG_VALUE_MAX, "w"));         /* no text is not an empty one: that would differ */
    *out = '\0';
    config_value_print(c, key, to);
    fclose(to);
    out[CONFIG_VALUE_MAX - 1] = '\0';
}

bool config_differ(struct config_difference *out, const struct config *a, const struct config *b, int *at)
{
    for (; *at < config_key_count(); ++*at) {
        value_text(a, *at, out->a);
        value_text(b, *at, out->b);
        if (strcmp(out->a, out->b)) {
            out->key = config_key((*at)++).name;
            return true;
        }
    }
    return false;
}
