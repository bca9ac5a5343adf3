/* Times steps at several batch sizes, one after the other. */
#include <math.h>
#include <sched.h>
#include <string.h>

#include "core/system.h"
#include "train/batch_sweep.h"
#include "train/train_int.h"

static const double WON = 1.02;             /* what a larger batch must win to count */
static const double TURNS_LEAST = 6;        /* that are timed at least: see bench.c */
enum { ROUNDS = 2, BATCH_MOST = 1 << 20, LEVEL_POINTS = 2 };       /* so many points in a row that win nothing end it */

/* Times it once more, or for the first time, and keeps the faster: other work on the machine only ever makes steps slower. */
static enum status time_point(struct batch_sweep *s, struct batch_point *p, const struct config *c, const struct batch_sweep_options *o,
                              struct error *err)
{
    struct config at = bench_config(c);
    struct bench_result r;
    at.train.batch_size = p->batch;
    const enum status st = bench_run(&at, o->seconds / ROUNDS, o->peaks, o->stop, &r, NULL, NULL, err);
    if (st == CANNOT && err->no_memory) {           /* it fits by the plan, and is not to be had */
        p->fits = false;
        return OK;
    }
    if (st != OK)
        return st;
    s->device = r.device;
    s->threads = r.threads;
    s->delayed_share = fmax(s->delayed_share, r.delayed_share);
    p->ms_slowest = fmax(p->ms_slowest, r.ms_per_step);
    if (!p->rounds++ || r.ms_per_step < p->ms_per_step) {
        p->recompute = r.places[config_pass_find("recompute")] > 0;
        p->ms_per_step = r.ms_per_step;
        p->ms_spread = r.ms_spread;
        p->samples_per_s = r.samples_per_s;
        p->tokens_per_s = r.tokens_per_s;
    }
    return OK;
}

static void tell(const struct batch_sweep *s, const struct batch_point *p, const struct batch_sweep_options *o)
{
    if (o->progress)
        o->progress(o->context, p->batch, s->n);
}

static enum status add_point(struct batch_sweep *s, int64_t batch, const struct config *c, const struct batch_sweep_options *o, struct error *err)
{
    struct batch_point *p = &s->points[s->n];
    struct config at = bench_config(c);
    struct step_plan plan;
    at.train.batch_size = batch;
    *p = (struct batch_point){.batch = batch};
    tell(s, p, o);
    enum status st = train_plan_step(&plan, &at, err);
    if (st != OK)
        return st;
    p->planned_bytes = plan.bytes;
    p->fits = plan.fits;
    if (p->fits)
        st = time_point(s, p, c, o, err);
    s->n += st == OK;
    return st;
}

/* All that were timed once, once more. */
static enum status time_again(struct batch_sweep *s, const struct config *c, const struct batch_sweep_options *o, struct error *err)
{
    enum status st = OK;
    for (int i = 0; i < s->n && st == OK; i++) {
        struct batch_point *p = &s->points[i];
        if (!p->fits || p->rounds >= ROUNDS)
            continue;
        tell(s, p, o);
        st = time_point(s, p, c, o, err);
    }
    return st;
}

static enum status run_given(struct batch_sweep *s, const struct config *c, const struct batch_sweep_options *o, struct error *err)
{
    enum status st = OK;
    for (int i = 0; i < o->n && i < BATCH_POINTS && st == OK; i++)
        st = add_point(s, o->batches[i], c, o, err);
    if (st == OK && s->n && !s->points[s->n - 1].fits)
        s->end = BATCHES_NO_MEMORY;
    return st == OK ? time_again(s, c, o, err) : st;
}

/* Did none of the last points win anything over those before? */
static bool is_level(const struct batch_sweep *s)
{
    double before = 0, after = 0;
    if (s->n <= LEVEL_POINTS)
        return false;
    for (int i = 0; i < s->n; i++) {
        double *best = i < s->n - LEVEL_POINTS ? &before : &after;
        *best = fmax(*best, s->points[i].samples_per_s);
    }
    return after < WON * before;
}

/* Whether to go on after the last point, by which the config's own batch was measured. */
static bool ends(struct batch_sweep *s, const struct batch_sweep_options *o)
{
    const struct batch_point *last = &s->points[s->n - 1];
    const double next_s = last->ms_per_step * 2e-3;
    const bool no_memory = !last->fits, has_given = last->batch >= s->given;
    if (no_memory)
        s->end = BATCHES_NO_MEMORY;
    else if (has_given && is_level(s))
        s->end = BATCHES_LEVEL;
    else if (has_given && TURNS_LEAST * (double)s->cycle * next_s > 4 * o->seconds)
        s->end = BATCHES_SLOW;
    else
        return s->n == BATCH_POINTS || last->batch >= BATCH_MOST;
    return true;
}

/* Powers of two times the first one, and the config's own. */
static int64_t next_batch(int64_t batch, int64_t given, int64_t *power)
{
    if (batch == *power)
        *power *= 2;
    return batch < given && given < *power ? given : *power;
}

static enum status run_doubling(struct batch_sweep *s, const struct config *c, const struct batch_sweep_options *o, struct error *err)
{
    int64_t power = o->from, batch = o->from;
    for (;; batch = next_batch(batch, s->given, &power)) {
        enum status st = add_point(s, batch, c, o, err);
        if (st != OK)
            return st;
        if (!ends(s, o))
            continue;
        st = time_again(s, c, o, err);
        if (st != OK || s->end != BATCHES_LEVEL || ends(s, o))
            return st;
        s->end = BATCHES_GIVEN;             /* it only seemed to be level */
    }
}

/* What was timed before somebody said stop is a result. */
static enum status keep_timed(struct batch_sweep *s, enum status st, const struct error *err)
{
    if (st == OK || !err->stopped || !s->n)
        return st;
    s->end = BATCHES_STOPPED;
    return OK;
}

/* Also where nothing fits, and so nothing runs that would tell. */
static int threads_of(const struct config *c)
{
    const int given = division_threads(c);
    return given ? given : system_cores(sched_getaffinity);
}

enum status batch_sweep_run(struct batch_sweep *out, const struct config *c, const struct batch_sweep_options *o, struct error *err)
{
    const size_t free_bytes = train_available_bytes(c);
    *out = (struct batch_sweep){.given = c->train.batch_size, .cycle = cycle_steps(c), .free_bytes = free_bytes == SIZE_MAX ? 0 : (double)free_bytes,
                                .device = c->device == DEVICE_CUDA ? "cuda" : "cpu", .threads = threads_of(c), .end = BATCHES_GIVEN, .vocab = bench_config(c).model.vocab,
                                .vocab_assumed = bench_config(c).model.vocab != c->model.vocab, .delayed_share = -1};
    const enum status st = keep_timed(out, o->n ? run_given(out, c, o, err) : run_doubling(out, c, o, err), err);
    if (st == OK)
        batch_sweep_judge(out);
    return st;
}
