/* Measurements around the stages of tune: before and after, other sizes, evaluation. */
#include <math.h>
#include <string.h>

#include "core/stats.h"
#include "prove/tune_int.h"
#include "train/train.h"
#include "train/trial.h"

enum { TURNS = 5 };

static double median(double *us, int n)
{
    stats_sort(us, n);
    return stats_percentile(us, n, 0.5);
}

static enum status median_step_us(struct trial *t, double *out, struct error *err)
{
    double us[TURNS];
    for (int i = 0; i < TURNS + 1; i++) {           /* the first warms up */
        struct trial_step step;
        const enum status st = trial_step(t, &step, err);
        if (st != OK)
            return st;
        if (i)
            us[i - 1] = step.us;
    }
    *out = median(us, TURNS);
    return OK;
}

static enum status measure_point(struct tune_point *out, const struct config *c, const struct peaks *peaks, struct error *err)
{
    struct trial *t;
    double us = NAN;
    enum status st = trial_open(&t, c, NULL, NULL, err);
    if (st != OK)
        return st;
    st = median_step_us(t, &us, err);
    const double tokens_per_s = (double)trial_tokens_per_step(t) / us * 1e6;
    const struct products_peak peak = program_peak(trial_program(t), peaks);
    *out = (struct tune_point){.step_us = us, .samples_per_s = tokens_per_s / (double)c->model.seq, .tokens_per_s = tokens_per_s,
                               .mfu_percent = products_peak_percent(peak, trial_model_flops(t), us), .mfu_peak = peak,
                               .planned_bytes = trial_planned_bytes(t), .ops = trial_ops_per_step(t)};
    trial_free(t);
    return st;
}

/* Also of a step that this machine cannot run. */
static enum status plan_point(struct tune_point *out, const struct config *c, struct error *err)
{
    struct step_plan plan;
    const enum status st = train_plan_step(&plan, c, err);
    if (st == OK)
        *out = (struct tune_point){.step_us = NAN, .samples_per_s = NAN, .tokens_per_s = NAN, .mfu_percent = NAN,
                                   .planned_bytes = plan.bytes, .ops = plan.ops, .too_large = !plan.fits};
    return st;
}

static enum status size_point(struct tune_point *out, const struct config *c, const struct peaks *peaks, bool timed,
                              struct error *err)
{
    if (timed && measure_point(out, c, peaks, err) == OK)
        return OK;
    return plan_point(out, c, err);
}

enum status tune_measure_ends(struct tuner *t, struct error *err)
{
    const enum status st = measure_point(&t->r->before, &t->r->base, t->o->peaks, err);
    return st == OK ? measure_point(&t->r->after, &t->now, t->o->peaks, err) : st;
}

/* The micro-batches of a tuned config may be smaller than its base's; here both get the same. Without its data, a config must say
 * how many tokens there are. */
static struct config at_size(struct config c, int64_t batch, int64_t seq, int64_t vocab)
{
    c.model.vocab = vocab;
    c.train.batch_size = batch;
    c.train.accumulate = 1;
    c.model.seq = seq;
    return c;
}

void tune_measure_sizes(struct tuner *t)
{
    const int64_t seq = t->r->base.model.seq, batch = t->r->base.train.batch_size;
    const struct { int64_t batch, seq; bool timed; } sizes[] = {
        {8, 128, true}, {16, 256, true}, {batch, seq, false}, {batch, 2 * seq, false}, {batch, 4 * seq, false}, {batch, 8 * seq, false}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && !tuner_stopped(t); i++) {
        struct tune_size *s = &t->r->sizes[t->r->n_sizes];
        struct error ignored;
        const bool timed = sizes[i].timed && tuner_spent_s(t) < t->o->budget_s;
        const int64_t vocab = t->now.model.vocab;
        const struct config a = at_size(t->r->base, sizes[i].batch, sizes[i].seq, vocab);
        const struct config b = at_size(t->now, sizes[i].batch, sizes[i].seq, vocab);
        tuner_tell(t, "other sizes");
        *s = (struct tune_size){.batch = sizes[i].batch, .seq = sizes[i].seq};
        if (size_point(&s->before, &a, t->o->peaks, timed, &ignored) == OK &&
            size_point(&s->after, &b, t->o->peaks, timed, &ignored) == OK)
            t->r->n_sizes++;
    }
}

/* ---- evaluation ---- */

/* Of one training step with its share of evaluation. */
static double run_us(double step_us, double evaluation_us, int64_t every)
{
    return step_us + (every > 0 ? evaluation_us / (double)every : 0);
}

enum status tune_measure_evaluation(struct tune_stage *s, const struct config *a, const struct config *b, struct error *err)
{
    struct trial *t;
    double gains[TURNS];
    enum status st = trial_open(&t, a, NULL, NULL, err);
    if (st != OK)
        return st;
    const int64_t every = trial_steps_between(t, a->eval.every);
    for (int i = 0; i < TURNS && st == OK; i++) {
        double step_us = 0, loss;
        bool has_data;
        st = median_step_us(t, &step_us, err);
        const int64_t start = clock_ns();
        if (st == OK)
            st = trial_validate(t, &has_data, &loss, err);
        const double evaluation_us = (double)(clock_ns() - start) / 1e3;
        gains[i] = run_us(step_us, evaluation_us, every) / run_us(step_us, evaluation_us, b->eval.every.n);
    }
    trial_free(t);
    if (st != OK)
        return st;
    s->measured = median(gains, TURNS);
    s->low = gains[0];                      /* they are sorted now */
    s->high = gains[TURNS - 1];
    s->kept = s->low > 1;
    snprintf(s->why, sizeof s->why, s->kept ? "less of the run is evaluation; the step is the same" : "evaluation takes little");
    return OK;
}
