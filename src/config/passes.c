/* Which passes run: `optimize.passes` as a word or a list of names, one switch per pass, and what both say together. */
#include <assert.h>
#include <string.h>

#include "config/config_int.h"

static_assert(CONFIG_PASSES <= 32, "struct pass_list has a bit for every pass");

/* The schema has one row per pass, in their order. */
static int first_row(void)
{
    const int key = config_key_find("optimize.passes") + 1;
    assert(config_keys[key].offset == offsetof(struct config, optimize.pass[0]));
    return key;
}

const char *config_pass_name(int pass)
{
    assert(pass >= 0 && pass < CONFIG_PASSES);
    return config_key_leaf(first_row() + pass);
}

int config_pass_find(const char *name)
{
    int i = 0;
    while (i < CONFIG_PASSES && strcmp(config_pass_name(i), name))
        i++;
    assert(i < CONFIG_PASSES);
    return i;
}

bool config_pass_is_on(const struct config *c, int pass)
{
    const struct pass_list *list = &c->optimize.passes;
    if (c->optimize.pass[pass] != PASS_AUTO)
        return c->optimize.pass[pass] == PASS_ON;
    return list->choice == PASSES_ALL || (list->choice == PASSES_LISTED && (list->listed >> pass & 1));
}

static struct pass_list *field_of(struct config_reader *r, int key)
{
    return (struct pass_list *)((char *)r->c + config_keys[key].offset);
}

enum status config_passes_add(struct config_reader *r, int key, struct config_place at, const char *name, bool first)
{
    const char *names[CONFIG_PASSES];
    char list[512], shown[CONFIG_SHOWN_MAX];
    struct pass_list *field = field_of(r, key);
    if (first)
        *field = (struct pass_list){.choice = PASSES_LISTED};
    for (int i = 0; i < CONFIG_PASSES; i++) {
        names[i] = config_pass_name(i);
        if (!strcmp(names[i], name)) {
            field->listed |= 1u << i;
            return OK;
        }
    }
    if (r->saved)
        return OK;
    const char *meant = suggest_nearest(name, names, CONFIG_PASSES);
    if (meant)
        return config_refuse(r, at, "%s: there is no pass '%s'; did you mean '%s'?", config_keys[key].name,
                             config_shown(shown, name), meant);
    config_join(list, sizeof list, names, CONFIG_PASSES, ", ", " and ");
    return config_refuse(r, at, "%s: there is no pass '%s'; choose all, none or from %s", config_keys[key].name,
                         config_shown(shown, name), list);
}

/* Cuts the next name off a list with commas; blanks around it do not count. */
static char *next_name(char **rest)
{
    char *name = strsep(rest, ",");
    name += strspn(name, " \t");
    for (char *end = name + strlen(name); end > name && (end[-1] == ' ' || end[-1] == '\t');)
        *--end = '\0';
    return name;
}

/* On the command line a list may stand in brackets or not: "[a, b]", "a,b". */
enum status config_passes_read(struct config_reader *r, int key, struct config_place at, const char *text, bool quoted)
{
    char copy[CONFIG_PATH_MAX], *rest = copy;
    const size_t length = strlen(text);
    const bool brackets = !quoted && length >= 2 && text[0] == '[' && text[length - 1] == ']';
    const bool empty = brackets && strspn(text + 1, " \t") == length - 2;
    if (!strcmp(text, "all") || !strcmp(text, "none") || empty) {
        *field_of(r, key) = (struct pass_list){.choice = strcmp(text, "all") ? PASSES_NONE : PASSES_ALL};
        return OK;
    }
    if (length >= sizeof copy)
        return config_refuse(r, at, "%s has %zu bytes; a list of passes has at most %zu", config_keys[key].name, length,
                             sizeof copy - 1);
    snprintf(copy, sizeof copy, "%.*s", (int)(length - 2 * brackets), text + brackets);
    enum status st = OK;
    for (bool first = true; rest && st == OK; first = false)
        st = config_passes_add(r, key, at, next_name(&rest), first);
    return st;
}

void config_passes_print(const struct pass_list *list, FILE *to)
{
    if (list->choice != PASSES_LISTED) {
        fputs(list->choice == PASSES_ALL ? "all" : "none", to);
        return;
    }
    const char *before = "[";
    for (int i = 0; i < CONFIG_PASSES; i++)
        if (list->listed >> i & 1) {
            fprintf(to, "%s%s", before, config_pass_name(i));
            before = ", ";
        }
    putc(']', to);
}
