/* The schema for people: a reference in Markdown, keys on a terminal, and an example of a file. */
#include <string.h>

#include "config/config_int.h"

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
          "Relative paths start from the folder in which `hone` is started, wherever the file lies.\n"
          "`hone` writes this page from its schema.\n",
          to);
    for (int s = 0; s < config_section_count; s++)
        print_section_reference(s, to);
}

/* ---- a terminal ---- */

static void print_key(int i, FILE *to)
{
    const struct config_key k = config_key(i);
    fprintf(to, "  %-26s %s\n  %-26s default %s; ", k.name, k.help, "", !k.initial ? "none: it must be given" : *k.initial ? k.initial : "empty");
    print_allowed(&k, to);
    putc('\n', to);
}

static void print_section_keys(int section, FILE *to)
{
    const char *name = config_sections[section].name;
    fprintf(to, "%s: %s\n", *name ? name : "outside of sections", config_sections[section].help);
    for (int i = 0; i < config_key_count(); i++)
        if (config_key_section(i) == section)
            print_key(i, to);
}

bool config_is_key(const char *name) { return config_key_find(name) >= 0 || config_section_find(name, strlen(name)) >= 0; }

bool config_print_keys(const char *of, FILE *to)
{
    const int key = of ? config_key_find(of) : -1, section = of ? config_section_find(of, strlen(of)) : -1;
    if (key >= 0)
        print_key(key, to);
    else if (section >= 0)
        print_section_keys(section, to);
    for (int s = 0; s < config_section_count && !of; s++) {
        print_section_keys(s, to);
        putc('\n', to);
    }
    return !of || key >= 0 || section >= 0;
}

/* ---- an example ---- */

/* Keys that are empty unless they are given stand there as comments; so does one of two that exclude each other. */
static void print_example_key(int i, const char *indent, FILE *to)
{
    const struct config_key k = config_key(i);
    const char *value = k.initial ? k.initial : k.choices ? k.choices[0].word : "";
    char left[80];
    snprintf(left, sizeof left, "%s%s: %s", *value && k.type != KEY_NAMES ? "" : "# ", config_key_leaf(i), value);
    fprintf(to, "%s%-32s # %s\n", indent, left, k.help);
}

static void print_comment(const char *text, FILE *to)
{
    fputs("\n# ", to);
    for (; *text; text++)
        fputs(*text == '\n' ? "\n# " : (char[]){*text, '\0'}, to);
    putc('\n', to);
}

void config_print_example(FILE *to)
{
    fputs("# Every key of hone with its default. Only the model must be given; what is left out has these values.\n", to);
    for (int s = 0; s < config_section_count; s++) {
        const char *name = config_sections[s].name;
        print_comment(config_sections[s].help, to);
        if (*name)
            fprintf(to, "%s:\n", name);
        for (int i = 0; i < config_key_count(); i++)
            if (config_key_section(i) == s)
                print_example_key(i, *name ? "  " : "", to);
    }
}

void config_tell_keys(config_name_fn *tell, void *context)
{
    for (int i = 0; i < config_key_count(); i++)
        tell(config_key(i).name, context);
}
