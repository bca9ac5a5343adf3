/* The order of runs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/suggest.h"
#include "runs/runs.h"

enum { KEYS_MOST = 512 };

enum { BY_NAME, BY_STATE, BY_STEP, BY_LOSS, BY_VAL_LOSS, BY_SPEED, BY_MEMORY, BY_WHEN, COLUMNS };
const char *const runs_columns_to_sort[] = {[BY_NAME] = "name", [BY_STATE] = "state", [BY_STEP] = "step", [BY_LOSS] = "loss", [BY_VAL_LOSS] = "val_loss",
                                            [BY_SPEED] = "speed", [BY_MEMORY] = "memory", [BY_WHEN] = "when", [COLUMNS] = NULL};

/* What is smaller comes first. */
static double number_in(int column, const struct run *r)
{
    switch (column) {
    case BY_STATE: return (double)r->state;
    case BY_STEP: return (double)-r->step;
    case BY_LOSS: return r->loss;
    case BY_VAL_LOSS: return r->val_loss;
    case BY_SPEED: return -r->tokens_per_s;
    case BY_MEMORY: return r->planned_bytes;
    case BY_WHEN: return r->when ? -(double)r->when : NAN;
    default: return 0;                  /* by name, as where numbers are the same */
    }
}

/* COLUMNS: it is none. */
static int find_column(const char *name)
{
    int i = 0;
    while (i < COLUMNS && strcmp(runs_columns_to_sort[i], name))
        i++;
    return i;
}

/* ---- keys of the config ---- */

struct words { const char *word[KEYS_MOST]; int n; };

static void add_word(const char *name, void *context)
{
    struct words *w = context;
    if (w->n < KEYS_MOST)
        w->word[w->n++] = name;
}

enum status runs_check_sort(const char *by, struct error *err)
{
    struct words w = {.n = 0};
    for (int i = 0; i < COLUMNS; i++)
        add_word(runs_columns_to_sort[i], &w);
    config_tell_keys(add_word, &w);
    for (int i = 0; i < w.n; i++)
        if (!strcmp(w.word[i], by))
            return OK;
    const char *near = suggest_nearest(by, w.word, w.n);
    error_set(err, BAD_INPUT, "--sort is '%s'; choose a key of the config", by);
    for (int i = 0; i < COLUMNS; i++)
        error_add(err, "%s%s", i + 1 < COLUMNS ? ", " : " or ", runs_columns_to_sort[i]);
    return near ? error_add(err, "; did you mean '%s'?", near) : BAD_INPUT;
}

/* ---- sorting ---- */

struct placed {
    struct run run;
    double number;                      /* NAN: has none */
    const char *text;                   /* compared where numbers are the same; NULL: not known */
};

static int compare(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (isnan(x->number) != isnan(y->number))
        return isnan(x->number) ? 1 : -1;
    if (x->number != y->number && !isnan(x->number))
        return x->number < y->number ? -1 : 1;
    const int by_text = x->text && y->text ? strcmp(x->text, y->text) : !x->text - !y->text;
    return by_text ? by_text : strcmp(x->run.name, y->run.name);
}

/* Of a key that has the same value in all: none. */
static const struct run_key *find_key(const struct run_keys *k, const char *name)
{
    for (int i = 0; i < k->n; i++)
        if (!strcmp(k->key[i].key, name))
            return &k->key[i];
    return NULL;
}

static void place(struct placed *p, const struct run *r, int column, const struct run_key *key, int i)
{
    char *end;
    p->run = *r;
    p->text = key ? key->value[i] : "";
    p->number = column < COLUMNS ? number_in(column, r) : NAN;
    if (column == COLUMNS && p->text) {
        const double x = strtod(p->text, &end);
        p->number = *p->text && !*end ? x : NAN;
    }
}

enum status runs_sort(struct runs *r, const char *by, struct error *err)
{
    const enum status st = runs_check_sort(by, err);
    if (st != OK || !r->n)
        return st;
    struct run_keys k;
    run_keys_init(&k, r);
    struct placed *list = xcalloc((size_t)r->n, sizeof *list);
    for (int i = 0; i < r->n; i++)
        place(&list[i], &r->run[i], find_column(by), find_key(&k, by), i);
    qsort(list, (size_t)r->n, sizeof *list, compare);
    for (int i = 0; i < r->n; i++)
        r->run[i] = list[i].run;
    free(list);
    run_keys_release(&k);
    return OK;
}
