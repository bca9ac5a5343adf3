/* Finding values by name: a hash table beside the values, made when it is first asked and brought up to date when it is asked
 * again. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "program/program.h"

static void forget(struct name_table *t)
{
    free(t->slots);
    *t = (struct name_table){0};
}

void program_release_names(struct program *p) { forget(&p->names); }

/* The slot of this name, or the free one where it would be. */
static value_id *slot_of(const struct name_table *t, const struct program *p, const char *name)
{
    size_t at = (size_t)XXH3_64bits(name, strlen(name)) & (size_t)(t->cap - 1);
    while (t->slots[at] != NO_VALUE && strcmp(p->values[t->slots[at]].name, name))
        at = (at + 1) & (size_t)(t->cap - 1);
    return &t->slots[at];
}

/* Of equal names the first value stays. */
static void bring_up_to_date(struct name_table *t, const struct program *p)
{
    if (2 * p->n_values > t->cap) {
        int cap = 64;
        while (cap < 4 * p->n_values)
            cap *= 2;
        forget(t);
        t->cap = cap;
        t->slots = xcalloc((size_t)cap, sizeof *t->slots);
        memset(t->slots, 0xff, (size_t)cap * sizeof *t->slots);         /* all NO_VALUE */
    }
    for (; t->known < p->n_values; t->known++) {
        value_id *slot = slot_of(t, p, p->values[t->known].name);
        if (*slot == NO_VALUE)
            *slot = t->known;
    }
}

value_id program_find(const struct program *p, const char *name)
{
    struct name_table *t = &((struct program *)p)->names;       /* what is known already, not a change of the program */
    bring_up_to_date(t, p);
    return p->n_values ? *slot_of(t, p, name) : NO_VALUE;
}

void program_rename(struct program *p, value_id v, const char *name)
{
    p->values[v].name = name;
    if (v < p->names.known)
        forget(&p->names);
}

void program_keep_values(struct program *p, int n)
{
    p->n_values = n;
    if (n < p->names.known)
        forget(&p->names);
}
