/* Which traces are ranks of one job. Traces that say their ranks are believed, unless sizes of the job
 * differ, or devices with nothing exchanged between them. One that does not say it must have run on the same device and taken part in a
 * collective that others have, too. Those of one process are cycles of it. */
#include "analyze/traced/together.h"

#include <stdlib.h>
#include <string.h>

/* ---- what two have in common ---- */

enum { MOST_KINDS = 64 };

struct kinds {                              /* of the collectives of a trace, each once */
    const struct collective *at[MOST_KINDS];
    int n;
};

static bool same_kind(const struct collective *a, const struct collective *b) { return a->on_host == b->on_host && !strcmp(a->name, b->name); }

static bool has_kind(const struct kinds *k, const struct collective *c)
{
    for (int i = 0; i < k->n; i++)
        if (same_kind(k->at[i], c))
            return true;
    return false;
}

static struct kinds kinds_of(const struct rank_comm *c)
{
    struct kinds k = {.n = 0};
    for (int i = 0; i < c->n && k.n < MOST_KINDS; i++)
        if (!has_kind(&k, &c->at[i]))
            k.at[k.n++] = &c->at[i];
    return k;
}

static bool meet(const struct kinds *a, const struct kinds *b)
{
    for (int i = 0; i < a->n; i++)
        if (has_kind(b, a->at[i]))
            return true;
    return false;
}

static bool has_device(const struct diagnosis *d) { return d->device_lost || strcmp(d->device, "CPU") != 0; }

/* Of a device that was lost, or of a file that was cut off, the name may be missing. */
static bool names_device(const struct diagnosis *d) { return !d->device_lost && strcmp(d->device, "unknown device") != 0; }

static bool same_device(const struct diagnosis *a, const struct diagnosis *b)
{
    return has_device(a) == has_device(b) && (!names_device(a) || !names_device(b) || !strcmp(a->device, b->device));
}

/* ---- one job ---- */

struct traces {
    struct diagnosis **each;                /* (n) */
    struct kinds *kinds;                    /* (n) */
    int n;
};

static const struct trace_origin *origin(const struct traces *t, int i) { return &t->each[i]->trace->origin; }

static bool other_size(const struct trace_origin *a, const struct trace_origin *b)
{
    return a->world_size > 0 && b->world_size > 0 && a->world_size != b->world_size;
}

static bool says_rank(const struct trace_origin *o) { return o->rank >= 0 && !o->rank_by_names; }

static bool is_all(const struct trace_origin *o) { return o->world_size == 1; }

static bool fit(const struct traces *t, int a, int b)
{
    const bool known = says_rank(origin(t, a)) && says_rank(origin(t, b));
    if (is_one_process(origin(t, a), origin(t, b)))
        return true;
    if (other_size(origin(t, a), origin(t, b)) || is_all(origin(t, a)) || is_all(origin(t, b)))
        return false;
    const bool device = same_device(t->each[a], t->each[b]), met = meet(&t->kinds[a], &t->kinds[b]);
    return known ? device || met : device && met;
}

static int count_fitting(const struct traces *t, int with)
{
    int n = 0;
    for (int i = 0; i < t->n; i++)
        n += i != with && fit(t, with, i);
    return n;
}

/* The trace that most others fit, the first of several. */
static int pick_one(const struct traces *t)
{
    int best = 0, most = count_fitting(t, 0);
    for (int i = 1; i < t->n && most < t->n - 1; i++) {
        const int n = count_fitting(t, i);
        if (n > most)
            most = n, best = i;
    }
    return best;
}

static const char *why_not(const struct traces *t, struct arena *arena, int a, int b)
{
    const struct trace_origin *x = origin(t, a), *y = origin(t, b);
    if (other_size(x, y))
        return arena_printf(arena, "they are of jobs of %d and %d ranks", x->world_size, y->world_size);
    if (is_all(x) || is_all(y))
        return "one is the only rank of its job";
    if (!same_device(t->each[a], t->each[b]))
        return arena_printf(arena, "one ran on %.80s, the other on %.80s", t->each[a]->device, t->each[b]->device);
    return "they have no collectives in common, and do not say which ranks they are";
}

/* other: the first of n_others. */
static char *tell(const struct traces *t, struct arena *arena, int one, int other, int n_others, bool alone)
{
    const char *first = origin(t, one)->path, *second = origin(t, other)->path, *why = why_not(t, arena, one, other);
    const char *more = n_others > 1 ? arena_printf(arena, " and %d other%s", n_others - 1, n_others > 2 ? "s" : "") : "";
    if (alone)
        return arena_printf(arena, "'%s'%s '%s'%s are not ranks of one job: %s; '%s' alone is judged. Give one trace, the ranks of one job, "
                            "or compare two with --diff", first, n_others > 1 ? "," : " and", second, more, why, first);
    return arena_printf(arena, "'%s'%s %s left out: no rank%s of the job of '%s': %s", second, more, n_others > 1 ? "are" : "is", n_others > 1 ? "s" : "",
                        first, why);
}

char *job_members(struct diagnosis **each, const struct rank_comm *comm, int n, bool *in)
{
    struct traces t = {each, xcalloc((size_t)n, sizeof *t.kinds), n};
    int n_out = 0, out = -1;
    for (int i = 0; i < n; i++)
        t.kinds[i] = kinds_of(&comm[i]);
    const int one = pick_one(&t);
    for (int i = n - 1; i >= 0; i--) {
        in[i] = i == one || fit(&t, one, i);
        n_out += !in[i];
        out = in[i] ? out : i;
    }
    char *words = n_out ? tell(&t, &each[one]->arena, one, out, n_out, n_out == n - 1) : NULL;
    free(t.kinds);
    return words;
}
