/* The step on each number of ranks, and the bucket size that suits it; see simulate.h. */
#include "prove/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/stats.h"

static const int64_t sizes_mb[] = {1, 2, 5, 10, 25, 50, 100, 200, 400};
static const double SHORTER = 0.999;        /* than the config's own, to be called better */

/* Of n numbers in order, the i-th is the largest of W draws where all are among the first i and not all among the first i - 1. */
double sim_slowest_us(const double *steps_us, int n, int ranks)
{
    double *sorted = xcalloc((size_t)n, sizeof *sorted), mean = 0;
    memcpy(sorted, steps_us, (size_t)n * sizeof *sorted);
    stats_sort(sorted, n);
    for (int i = 0; i < n; i++)
        mean += sorted[i] * (pow((double)(i + 1) / n, ranks) - pow((double)i / n, ranks));
    free(sorted);
    return mean;
}

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
    p->slowest_us = sim_slowest_us(from->steps_us, from->n_steps, ranks) - s->mean_us;
    enum status st = sim_one_step(&p->at, from, &s->net, ranks, own, err);
    if (st != OK)
        return st;
    p->step_us = p->best_step_us = p->at.step_us + p->slowest_us;
    p->best_mb = own;
    p->efficiency = s->mean_us / p->step_us;
    for (size_t i = 0; i < sizeof sizes_mb / sizeof *sizes_mb && ranks > 1 && st == OK; i++)
        if (!i || sizes_mb[i - 1] * 1e6 < p->at.bytes)          /* beyond it there is one bucket whatever the size */
            st = try_bucket(p, s, sizes_mb[i], err);
    return st;
}

enum status simulate(struct simulation *out, const struct sim_source *s, const struct sim_net *net, const int *ranks, int n, struct error *err)
{
    const int here = net->per_machine;
    *out = (struct simulation){.source = s, .net = *net, .mean_us = sim_slowest_us(s->steps_us, s->n_steps, 1),
                               .shares_cores = !s->gpu && s->cores > 0 && s->cores < here * (s->threads + 1)};
    enum status st = fill_point(&out->points[out->n++], out, 1, err);
    for (int i = 0; i < n && st == OK && out->n < SIM_POINTS; i++)
        if (ranks[i] > 1)
            st = fill_point(&out->points[out->n++], out, ranks[i], err);
    return st;
}
