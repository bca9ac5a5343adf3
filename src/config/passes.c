/* Which passes run: `optimize.passes` as a word or a list of names, one switch per pass, and what both say together. */
#include <assert.h>
#include <string.h>

#include "config/config_int.h"

int config_pass_find(const char *name)
{
    const int pass = pass_find(name);
    assert(pass >= 0);
    return pass;
}

static bool is_listed(const struct config *c, int pass)
{
    const struct pass_list *list = &c->optimize.passes;
    return list->choice == PASSES_ALL || (list->choice == PASSES_LISTED && (list->listed >> pass & 1));
}

bool config_pass_is_on(const struct config *c, int pass)
{
    if (pass_table[pass].traits & PASS_IS_PRECISION)
        return c->optimize.precision != PRECISION_F32;
    return config_pass_is_named(c, pass) ? c->optimize.pass[pass] == PASS_ON : is_listed(c, pass);
}

pass_set config_pass_set(const struct config *c)
{
    pass_set set = 0;
    for (int i = 0; pass_table[i].name; i++)
        set |= (pass_set)config_pass_is_on(c, i) << i;
    return set;
}

bool config_pass_is_named(const struct config *c, int pass) { return c->optimize.pass[pass] != PASS_AUTO; }

void config_pass_switch(struct config *c, int pass, bool on)
{
    struct pass_list *list = &c->optimize.passes;
    const pass_set bit = (pass_set)1 << pass;
    if (pass_table[pass].traits & PASS_IS_PRECISION)
        c->optimize.precision = !on ? PRECISION_F32 : config_pass_is_on(c, pass) ? c->optimize.precision : PRECISION_BF16;
    else if (list->choice == PASSES_ALL)
        c->optimize.pass[pass] = on ? PASS_AUTO : PASS_OFF;
    else {
        list->listed = on ? list->listed | bit : list->listed & ~bit;
        list->choice = list->listed ? PASSES_LISTED : PASSES_NONE;
    }
}

/* The passes that have a switch, and may stand in a list. Fills names and indices; returns how many there are. */
static int listable(const char *names[PASSES_MAX], int passes[PASSES_MAX])
{
    int n = 0;
    for (int i = 0; pass_table[i].name; i++)
        if (!(pass_table[i].traits & PASS_IS_PRECISION)) {
            names[n] = pass_table[i].name;
            passes[n++] = i;
        }
    return n;
}

static struct pass_list *field_of(struct config_reader *r, int key)
{
    return (struct pass_list *)((char *)r->c + config_key(key).offset);
}

enum status config_passes_add(struct config_reader *r, int key, struct config_place at, const char *name, bool first)
{
    const char *names[PASSES_MAX];
    char list[512], shown[CONFIG_SHOWN_MAX];
    int passes[PASSES_MAX];
    const int n = listable(names, passes);
    struct pass_list *field = field_of(r, key);
    if (first)
        *field = (struct pass_list){.choice = PASSES_LISTED};
    for (int i = 0; i < n; i++)
        if (!strcmp(names[i], name)) {
            field->listed |= (pass_set)1 << passes[i];
            return OK;
        }
    if (r->saved)
        return OK;
    const char *meant = suggest_nearest(name, names, n);
    if (meant)
        return config_refuse(r, at, "%s: there is no pass '%s'; did you mean '%s'?", config_key(key).name,
                             config_shown(shown, name), meant);
    config_join(list, sizeof list, names, n, ", ", " and ");
    return config_refuse(r, at, "%s: there is no pass '%s'; choose all, none or from %s", config_key(key).name,
                         config_shown(shown, name), list);
}

bool config_passes_read_word(struct config_reader *r, int key, const char *text)
{
    const bool all = !strcmp(text, "all"), none = !strcmp(text, "none");
    if (all || none)
        *field_of(r, key) = (struct pass_list){.choice = all ? PASSES_ALL : PASSES_NONE};
    return all || none;
}

void config_passes_print(const struct pass_list *list, FILE *to)
{
    if (list->choice != PASSES_LISTED) {
        fputs(list->choice == PASSES_ALL ? "all" : "none", to);
        return;
    }
    const char *before = "[";
    for (int i = 0; pass_table[i].name; i++)
        if (list->listed >> i & 1) {
            fprintf(to, "%s%s", before, pass_table[i].name);
            before = ", ";
        }
    putc(']', to);
}
