/* Writes a configuration as YAML. */
#include <string.h>

#include "config/config_int.h"

/* Of data.domain and data.domains one is given, or none. */
static bool is_left_out(const struct config *c, int key)
{
    return key == config_key_find(c->data.domains.n ? "data.domain" : "data.domains");
}

static void print_keys(const struct config *c, int section, FILE *to)
{
    const char *indent = config_sections[section].name[0] ? "  " : "";
    for (int i = 0; i < config_key_count(); i++) {
        if (config_key_section(i) != section || is_left_out(c, i))
            continue;
        fprintf(to, "%s%s: ", indent, config_key_leaf(i));
        config_value_print(c, i, to);
        putc('\n', to);
    }
}

void config_print(const struct config *c, FILE *to)
{
    for (int s = 0; s < config_section_count; s++) {
        if (config_sections[s].name[0])
            fprintf(to, "%s:\n", config_sections[s].name);
        print_keys(c, s, to);
    }
}

char *config_text(const struct config *c)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    config_print(c, f);
    fclose(f);
    return text;
}
