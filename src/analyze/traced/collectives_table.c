/* The table of collectives. Those of one kind and size are a row. Ranks are matched by the order within a step; clocks of different
 * machines by the ends of collectives, which all ranks reach together. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/collectives.h"
#include "core/stats.h"

enum { MOST_ROWS = 200, MOST_RANKS = 4096, LEAST_MATCHED = 1 };

struct cursor {                             /* of a rank: where its collectives of a step begin */
    const struct rank_comm *c;
    int at;
    double clock_ns;                        /* that its clock is ahead of the first rank's */
};

/* The k-th collective of the step with this number; NULL: it has none, or another. */
static const struct collective *match(struct cursor *r, int64_t number, int k, const struct collective *like)
{
    const struct rank_comm *c = r->c;
    while (r->at < c->n && (c->at[r->at].step < 0 || c->steps[c->at[r->at].step].number < number))
        r->at++;
    if (r->at + k >= c->n || c->steps[c->at[r->at + k].step].number != number)
        return NULL;
    const struct collective *found = &c->at[r->at + k];
    return !strcmp(found->name, like->name) ? found : NULL;
}

/* Calls `each` for every collective of the first rank, with those of the others (NULL: not matched). */
typedef void each_fn(void *context, const struct collective **of, int n);

static void go_through(struct cursor *ranks, int n, each_fn *each, void *context)
{
    const struct rank_comm *first = ranks[0].c;
    const struct collective **of = xcalloc((size_t)n, sizeof *of);
    for (int i = 0; i < n; i++)
        ranks[i].at = 0;
    for (int i = 0, k = 0; i < first->n; i++) {
        if (first->at[i].step < 0)
            continue;
        k = i && first->at[i - 1].step == first->at[i].step ? k + 1 : 0;
        of[0] = &first->at[i];
        for (int r = 1; r < n; r++)
            of[r] = match(&ranks[r], first->steps[of[0]->step].number, k, of[0]);
        each(context, of, n);
    }
    free(of);
}

/* ---- clocks ---- */

struct ends {
    double *of;                             /* (n) differences of one rank's */
    int n, rank;
};

static void add_end(void *context, const struct collective **of, int n)
{
    struct ends *e = context;
    (void)n;
    if (of[e->rank])
        e->of[e->n++] = (double)(of[e->rank]->end_ns - of[0]->end_ns);
}

static void set_clocks(struct cursor *ranks, int n)
{
    for (int r = 1; r < n; r++) {
        struct ends e = {.of = xcalloc((size_t)ranks[0].c->n + 1, sizeof *e.of), .rank = r};
        go_through(ranks, n, add_end, &e);
        stats_sort(e.of, e.n);
        ranks[r].clock_ns = e.n >= LEAST_MATCHED ? stats_percentile(e.of, e.n, 0.5) : 0;
        free(e.of);
    }
}

/* ---- rows ---- */

struct sums {
    double calls, calls_of_all, ns, best_ns, shortest_ns, exposed_ns, spread_ns, spreads;
    int *last;                              /* (n ranks) how often each came last */
};

struct filling {
    struct diagnosis *d;
    struct cursor *ranks;
    struct trace_collective *rows;
    struct sums *sums;
    int n;
};

static int find_row(struct filling *f, const struct collective *c, int ranks)
{
    const bool full = f->n == MOST_ROWS;
    for (int i = 0; i < f->n; i++)
        if (!strcmp(f->rows[i].name, c->name) && (full ? i == f->n - 1 : f->rows[i].bytes == (double)c->bytes && f->rows[i].ranks == c->group))
            return i;
    if (full)
        return f->n - 1;
    f->rows[f->n] = (struct trace_collective){.name = c->name, .bytes = (double)c->bytes, .ranks = c->group, .last_rank = -1, .spread_us = -1};
    f->sums[f->n] = (struct sums){.shortest_ns = INFINITY, .last = xcalloc((size_t)ranks, sizeof(int))};
    return f->n++;
}

static void add_arrivals(struct filling *f, struct sums *s, const struct collective **of, int n)
{
    double first = INFINITY, last = -INFINITY;
    int late = -1;
    for (int r = 0; r < n; r++) {
        if (!of[r])
            return;
        const double at = (double)(of[r]->start_ns - of[0]->start_ns) - f->ranks[r].clock_ns;
        first = fmin(first, at);
        late = at > last ? r : late;
        last = fmax(last, at);
    }
    s->spread_ns += last - first;
    s->spreads++;
    s->last[late]++;
}

static void add_call(void *context, const struct collective **of, int n)
{
    struct filling *f = context;
    struct sums *s = &f->sums[find_row(f, of[0], n)];
    double best = INFINITY;
    s->calls++;
    for (int r = 0; r < n; r++) {
        if (!of[r])
            continue;
        const double ns = (double)(of[r]->end_ns - of[r]->start_ns);
        s->calls_of_all++;
        s->ns += ns;
        s->exposed_ns += (double)of[r]->exposed_ns;
        best = fmin(best, ns);
    }
    s->best_ns += best;
    s->shortest_ns = fmin(s->shortest_ns, best);
    if (n > 1)
        add_arrivals(f, s, of, n);
}

static void finish_row(struct filling *f, int i, int n)
{
    struct trace_collective *row = &f->rows[i];
    const struct sums *s = &f->sums[i];
    const double steps = f->ranks[0].c->n_steps > 0 ? f->ranks[0].c->n_steps : 1;
    row->per_step = s->calls / steps;
    row->mean_us = s->ns / s->calls_of_all / 1e3;
    row->best_us = (n > 1 ? s->best_ns / s->calls : s->shortest_ns) / 1e3;
    row->total_us = row->mean_us * row->per_step;
    row->exposed_us = s->exposed_ns / s->calls_of_all * row->per_step / 1e3;
    row->gb_per_s = row->bytes > 0 && row->best_us > 0 ? row->bytes / row->best_us / 1e3 : 0;
    row->spread_us = s->spreads > 0 ? s->spread_ns / s->spreads / 1e3 : -1;
    int last = 0;
    for (int r = 1; r < n; r++)
        last = s->last[r] > s->last[last] ? r : last;
    if (s->spreads > 0) {
        row->last_rank = f->ranks[last].c->rank;
        row->last_name = f->ranks[last].c->name;
        row->last_share = s->last[last] / s->spreads;
    }
    free(s->last);
}

static int by_time(const void *a, const void *b)
{
    const struct trace_collective *x = a, *y = b;
    return (x->total_us < y->total_us) - (x->total_us > y->total_us);
}

void collectives_table(struct diagnosis *d, const struct rank_comm *ranks, int n)
{
    if (n < 1 || !ranks[0].n)
        return;
    n = n < MOST_RANKS ? n : MOST_RANKS;
    struct filling f = {.d = d, .ranks = xcalloc((size_t)n, sizeof *f.ranks), .sums = xcalloc(MOST_ROWS, sizeof *f.sums)};
    f.rows = arena_alloc(&d->arena, MOST_ROWS * sizeof *f.rows);
    for (int r = 0; r < n; r++)
        f.ranks[r].c = &ranks[r];
    set_clocks(f.ranks, n);
    go_through(f.ranks, n, add_call, &f);
    for (int i = 0; i < f.n; i++)
        finish_row(&f, i, n);
    if (f.n)
        qsort(f.rows, (size_t)f.n, sizeof *f.rows, by_time);
    d->collectives = f.rows;
    d->n_collectives = f.n;
    free(f.ranks);
    free(f.sums);
}
