/* The step on each number of ranks, and the bucket size that suits it; see simulate.h. */
#include "prove/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/stats.h"

static const int64_t sizes_mb[] = {1, 2, 5, 10, 25, 50, 100, 200, 400};
static const double SHORTER = 0.999;        /* than the config's own, to be called better */

double sim_step_us(const double *steps_us, int n, double part)
{
    double *sorted = xcalloc((size_t)n, sizeof *sorted);
    memcpy(sorted, steps_us, (size_t)n * sizeof *sorted);
    stats_sort(sorted, n);
    const double us = stats_percentile(sorted, n, part);
    free(sorted);
    return us;
}

/* The largest of W draws is below what a part q of all steps is below where each of them is: with the probability q to the power of W. */
double sim_slowest_us(const double *steps_us, int n, int ranks) { return sim_step_us(steps_us, n, pow(0.5, 1.0 / ranks)); }

static enum status try_bucket(struct sim_point *p, const struct simulation *s, int64_t mb, struct error *err)
{
    struct sim_step step;
    const enum status st = sim_one_step(&step, s->source, &s->net, p->ranks, mb, err);
    if (st != OK)
        return st;
    const double us = step.step_us + p->slowest_us;
    p->buckets[p->n_buckets].mb = mb;
    p->buckets[p->n_buckets++].step_us = us;
    if (us < (p->best_mb == s->source->config.dist.bucket_mb ? SHORTER : 1) * p->best_step_us) {
        p->best_mb = mb;
        p->best_step_us = us;
    }
    return OK;
}

static enum status fill_point(struct sim_point *p, const struct simulation *s, int ranks, struct error *err)
{
    const struct sim_source *from = s->source;
    const int64_t own = from->config.dist.bucket_mb;
    const int here = ranks < s->net.per_machine ? ranks : s->net.per_machine;
    *p = (struct sim_point){.ranks = ranks, .machines = (ranks + here - 1) / here};
    p->slowest_us = sim_slowest_us(from->steps_us, from->n_steps, ranks) - s->alone_us;
    enum status st = sim_one_step(&p->at, from, &s->net, ranks, own, err);
    if (st != OK)
        return st;
    p->step_us = p->best_step_us = p->at.step_us + p->slowest_us;
    p->best_mb = own;
    p->efficiency = s->alone_us / p->step_us;
    for (size_t i = 0; i < sizeof sizes_mb / sizeof *sizes_mb && ranks > 1 && st == OK; i++)
        if (!i || sizes_mb[i - 1] * 1e6 < p->at.bytes)          /* beyond it there is one bucket whatever the size */
            st = try_bucket(p, s, sizes_mb[i], err);
    return st;
}

/* One rank alone has no sums. */
static bool all_share_cores(const struct sim_source *s, const struct sim_net *net, const int *ranks, int n)
{
    int several = 0, without = 0;
    for (int i = 0; i < n; i++) {
        several += ranks[i] > 1;
        without += ranks[i] > 1 && !sim_has_core(s, net, ranks[i]);
    }
    return several && without == several;
}

enum status simulate(struct simulation *out, const struct sim_source *s, const struct sim_net *net, const int *ranks, int n, struct error *err)
{
    *out = (struct simulation){.source = s, .net = *net, .alone_us = sim_step_us(s->steps_us, s->n_steps, 0.5),
                               .p10_us = sim_step_us(s->steps_us, s->n_steps, 0.1), .p90_us = sim_step_us(s->steps_us, s->n_steps, 0.9)};
    out->shares_cores = all_share_cores(s, net, ranks, n);
    enum status st = fill_point(&out->points[out->n++], out, 1, err);
    for (int i = 0; i < n && st == OK && out->n < SIM_POINTS; i++)
        if (ranks[i] > 1)
            st = fill_point(&out->points[out->n++], out, ranks[i], err);
    return st;
}
