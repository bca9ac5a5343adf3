/* How long a run takes here, from a few of its own steps and batches of its evaluation; see train.h. */
#include <math.h>
#include <stdlib.h>

#include "core/arena.h"
#include "core/clock.h"
#include "core/delay.h"
#include "core/stats.h"
#include "train/train_int.h"

enum { EVAL_BATCHES = 8 };              /* of each domain: the whole evaluation may take longer than who asks can wait */

struct deadline {
    double seconds, end_s;              /* from the first turn on: what comes before is not slower for longer steps */
    volatile sig_atomic_t passed;
};

static void look_at(void *context, int done, int total)
{
    struct deadline *d = context;
    (void)done;
    (void)total;
    d->end_s = d->end_s > 0 ? d->end_s : clock_s() + d->seconds;
    d->passed = clock_s() > d->end_s;
}

/* Of all domains. */
static double batches_of(const struct dataset *d, const struct config *c, int64_t most)
{
    double n = 0;
    for (int i = 0; i < dataset_domains(d); i++)
        n += (double)evaluation_batches(dataset_domain(d, i), SPLIT_VAL, c->eval.batch_size, most);
    return n;
}

/* Steps that ended at the deadline leave it out. */
static enum status time_evaluation(struct measured *m, struct error *err)
{
    double losses[DOMAINS_MAX];
    const double start = clock_s();
    if (!m->run->eval || isfinite(m->evaluation_us))
        return OK;
    const enum status st = model_run_evaluate(m->run, NULL, losses, err);
    m->evaluation_us = (clock_s() - start) * 1e6;
    return st;
}

/* Of the tokens of a measured step, those that are left in the run where rows are as long as data.bucket makes them. */
static double tokens_left(const struct measured *m)
{
    const struct padding *p = &m->padding;
    return m->config.data.pack == PACK_ON || !(p->now < p->rows) ? 1 : (1 - p->rows) / (1 - p->now);
}

static struct train_estimate of_measured(const struct measured *m, int64_t eval_batches)
{
    const bool of_others = !m->device_name && delay_is_of_others(m->threads);
    struct train_estimate e = {.timed = m->n * m->turn, .steps = m->total_steps, .delayed_share = of_others ? m->delayed_share : -1};
    stats_sort(m->step_us, m->n);
    e.step_s = stats_percentile(m->step_us, m->n, 0.5) / 1e6 * tokens_left(m);
    if (m->evaluation_us > 0) {
        const double timed = batches_of(m->run->dataset, &m->config, m->config.eval.batches);
        e.evaluation_s = m->evaluation_us * m->evaluation_scale / 1e6 * batches_of(m->run->dataset, &m->config, eval_batches) / timed;
        e.evaluations = (int64_t)llround(evaluations_per_step(m->evaluations) * (double)m->total_steps);
    }
    e.run_s = e.step_s * (double)e.steps + e.evaluation_s * (double)e.evaluations;
    return e;
}

enum status train_estimate(struct train_estimate *out, const struct config *c, int steps, double seconds, struct error *err)
{
    struct config *less = xcalloc(1, sizeof *less);
    struct deadline d = {.seconds = seconds};
    struct measured m;
    char words[THREADS_WORDS];
    *less = *c;
    less->eval.batches = c->eval.batches < EVAL_BATCHES ? c->eval.batches : EVAL_BATCHES;
    train_settle_threads(less, words);
    enum status st = measure_steps(&m, less, steps, &d.passed, look_at, &d, err);
    free(less);
    if (st != OK)
        return st;
    st = time_evaluation(&m, err);
    if (st == OK)
        *out = of_measured(&m, c->eval.batches);
    measured_release(&m);
    return st;
}
