/* Finds what threads can claim before an update, and hands it out line by line; see claims.h. */
#include "ops/cpu/claims.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "ops/cpu/cpu_int.h"

enum { LINE = 64, APART = 128 };        /* bytes: of a cache line; between what threads write often */

/* A thread's part of a value, which no call behind this one reads before it is updated. */
struct claim {
    const char *from, *end;
    int after;
};

struct claimer {
    _Alignas(APART) struct claim *list;         /* in the order in which they may be claimed */
    int n, at;                  /* claims; the one that it is at */
    const char *next;           /* line of that */
    int call, met;              /* that the thread is in; the first since all have met */
};

struct claims {
    int threads, until;
    claim_fn *take;
    struct claimer *each;       /* (threads) */
};

static bool updates(const struct kernel_call *c) { return c->kernel->updates && !c->op->attrs.masked; }

static int first_update(const struct kernel_call *calls, int n)
{
    int i = 0;
    while (i < n && !updates(&calls[i]))
        i++;
    return i;
}

/* The last of n calls of a step that reads a value; -1: none. */
static int last_reader(const struct kernel_call *calls, int n, const struct kernel_call *update, int i)
{
    const value_id v = update->op->in[i];
    for (int at = n - 1; at >= 0; at--)
        for (int k = 0; k < calls[at].op->n_in && calls[at].op->phase != PHASE_SETUP; k++)
            if (calls[at].program == update->program && calls[at].op->in[k] == v)
                return at;
    return -1;
}

static bool has_any(const struct claims *c)
{
    for (int t = 0; t < c->threads; t++)
        if (c->each[t].n)
            return true;
    return false;
}

static void add(struct claimer *c, struct claim claim)
{
    c->list = xrealloc(c->list, (size_t)(c->n + 1) * sizeof *c->list);
    c->list[c->n++] = claim;
}

/* Of value i of an update: every thread's part. */
static void add_all(struct claims *c, const struct kernel_call *update, int i, int after)
{
    const size_t bytes = dtype_size(call_in(update, i)->dtype);
    for (int t = 0; t < c->threads; t++) {
        const struct span s = update->kernel->updates(update, &(struct kernel_thread){t, c->threads, NULL}, i);
        const char *from = update->in[i];
        if (s.lo < s.hi)
            add(&c->each[t], (struct claim){from + (size_t)s.lo * bytes, from + (size_t)s.hi * bytes, after});
    }
}

static int earlier(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;
    return x->after != y->after ? (x->after < y->after ? -1 : 1) : x->from < y->from ? -1 : x->from > y->from;
}

struct claims *claims_find(const struct kernel_call *calls, int n, int threads)
{
    const int until = first_update(calls, n);
    if (until == n || threads < 2)
        return NULL;
    struct claims *c = xcalloc(1, sizeof *c);
    *c = (struct claims){threads, until, calls[until].kernel->claim, aligned_alloc(APART, (size_t)threads * sizeof *c->each)};
    if (!c->each) {
        free(c);
        return NULL;            /* they save time, no more */
    }
    memset(c->each, 0, (size_t)threads * sizeof *c->each);
    for (int at = until; at < n; at++)
        for (int i = 0; updates(&calls[at]) && i < op_updated(calls[at].op->kind, &calls[at].op->attrs); i++) {
            const int after = last_reader(calls, until, &calls[at], i);
            if (after >= 0)
                add_all(c, &calls[at], i, after);
        }
    for (int t = 0; t < threads; t++)
        if (c->each[t].n)
            qsort(c->each[t].list, (size_t)c->each[t].n, sizeof *c->each[t].list, earlier);
    if (has_any(c))
        return c;
    claims_free(c);
    return NULL;
}

void claims_free(struct claims *c)
{
    for (int t = 0; c && t < c->threads; t++)
        free(c->each[t].list);
    if (c)
        free(c->each);
    free(c);
}

int claims_until(const struct claims *c) { return c->until; }

void claims_begin(struct claims *c, int thread)
{
    struct claimer *t = &c->each[thread];
    t->at = 0;
    t->next = t->n ? t->list[0].from : NULL;
}

void claims_reach(struct claims *c, int thread, int call, int met)
{
    c->each[thread].call = call;
    c->each[thread].met = met;
}

const void *claims_next(struct claims *c, int thread)
{
    struct claimer *t = &c->each[thread];
    if (t->at == t->n || t->list[t->at].after >= t->met || t->call >= c->until)
        return NULL;
    const char *line = t->next;
    t->next += LINE;
    if (t->next >= t->list[t->at].end && ++t->at < t->n)
        t->next = t->list[t->at].from;
    return line;
}

void claims_take(struct claims *c, int thread)
{
    const void *line = claims_next(c, thread);
    if (line)
        c->take(line);
}
