/* Writes a configuration as YAML, and the schema as a reference in Markdown. */
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

static void print_choices(const struct config_key *k, FILE *to)
{
    for (const struct config_choice *p = k->choices; p->word; p++)
        fprintf(to, "%s`%s`", p == k->choices ? "" : ", ", p->word);
}

/* "1 to 4096", "0 to below 1", "`a`, `b`". */
static void print_allowed(const struct config_key *k, FILE *to)
{
    char low[40], high[40];
    switch (k->type) {
    case KEY_WORD: print_choices(k, to); return;
    case KEY_PATH: fputs("a path", to); return;
    case KEY_PASSES: fputs("`all`, `none`, a list of passes", to); return;
    case KEY_INTS: fprintf(to, "a list of numbers from %.0f to %.0f", k->min, k->max); return;
    case KEY_NAMES:
        fputs("a list of ", to);
        print_choices(k, to);
        fputs(", text files", to);
        return;
    case KEY_INTERVAL: fputs("steps, or `N epochs`", to); return;
    case KEY_INT: fprintf(to, "%.0f to %.0f", k->min, k->max); return;
    case KEY_REAL:
        config_real_format(k->min, low);
        config_real_format(k->max, high);
        fprintf(to, k->below_max ? "%s to below %s" : "%s to %s", low, high);
        return;
    }
}

static void print_section_reference(int section, FILE *to)
{
    const char *name = config_sections[section].name;
    fprintf(to, "\n## %s\n%s\n\n| key | default | allowed | what it is |\n|---|---|---|---|\n",
            *name ? name : "device and threads", config_sections[section].help);
    for (int i = 0; i < config_key_count(); i++) {
        const struct config_key row = config_key(i), *k = &row;
        if (config_key_section(i) != section)
            continue;
        fprintf(to, "| `%s` | ", k->name);
        fprintf(to, !k->initial ? "required" : *k->initial && k->type != KEY_NAMES ? "`%s`" : "empty", k->initial);
        fputs(" | ", to);
        print_allowed(k, to);
        fprintf(to, " | %s |\n", k->help);
    }
}

void config_print_reference(FILE *to)
{
    fputs("# Configuration\n\n"
          "A configuration is one YAML file. Every key below can also be set on the command line with\n"
          "`--set key=value`; a later `--set` wins over an earlier one and over the file. Unknown keys, wrong types\n"
          "and values that are out of range or contradict each other are refused with the line they stand in.\n"
          "`hone` writes this page from its schema.\n",
          to);
    for (int s = 0; s < config_section_count; s++)
        print_section_reference(s, to);
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
