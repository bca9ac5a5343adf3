/* Measurements around the stages of tune: points, other sizes, evaluation. */
#include <math.h>
#include <string.h>

#include "core/stats.h"
#include "prove/tune_int.h"
#include "train/train.h"
#include "train/trial.h"

enum { TURNS = 5, TURNS_LEAST = 2 };
static const double EVALUATION_GAIN = 1.01;     /* of the run: less is not worth fewer losses to look at, nor beyond doubt */

static double median(double *us, int n)
{
    stats_sort(us, n);
    return stats_percentile(us, n, 0.5);
}

/* Of whole cycles (trial_cycle), which are one step of most models. */
static enum status median_step_us(struct trial *t, const volatile sig_atomic_t *stop, double *out, struct error *err)
{
    const int64_t cycle = trial_cycle(t);
    double us[TURNS + 1] = {0};
    for (int64_t i = 0; i < (TURNS + 1) * cycle; i++) {
        struct trial_step step;
        if (stop && *stop)
            return error_stopped(err, "stopped before steps and evaluations were timed");
        const enum status st = trial_step(t, &step, err);
        if (st != OK)
            return st;
        us[i / cycle] += step.us / (double)cycle;
    }
    *out = median(us + 1, TURNS);                   /* the first warms up */
    return OK;
}

struct tune_point tune_point_of(const struct verdict_side *s, const struct config *c)
{
    const double steps_per_s = 1e6 / s->step_us, samples = (double)(c->train.batch_size * c->train.accumulate);
    return (struct tune_point){.step_us = s->step_us, .samples_per_s = samples * steps_per_s, .tokens_per_s = s->tokens_per_step * steps_per_s,
                               .mfu_percent = products_peak_percent(s->peak, s->model_flops, s->step_us), .mfu_peak = s->peak,
                               .planned_bytes = s->planned_bytes, .ops = s->ops, .kernels = s->kernels};
}

/* Also of a step that this machine cannot run. */
static enum status plan_point(struct tune_point *out, const struct config *c, struct error *err)
{
    struct step_plan plan;
    const enum status st = train_plan_step(&plan, c, err);
    if (st == OK)
        *out = (struct tune_point){.step_us = NAN, .samples_per_s = NAN, .tokens_per_s = NAN, .mfu_percent = NAN,
                                   .planned_bytes = plan.bytes, .ops = plan.ops, .kernels = NAN, .too_large = !plan.fits};
    return st;
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

bool tuner_has_s(const struct tuner *t, double seconds) { return tuner_spent_s(t) + seconds <= t->o->budget_s; }

/* About how long the judging of a size takes: all but the turns grows with its steps. */
static double judging_s(const struct tuner *t, int64_t batch, int64_t seq, double share)
{
    const struct config *c = &t->r->base;
    const double tokens = (double)(c->train.batch_size * c->train.accumulate * c->model.seq), times = (double)(batch * seq) / tokens;
    return tuner_proof_s(t, share) + fmax(times - 1, 0) * t->around_s;
}

static bool judge_size(struct tuner *t, struct tune_size *s, const struct config *a, const struct config *b)
{
    const struct proof p = {.steps = TUNE_STEPS, .share = 0.5,
                            .memory = t->base_bytes > 0 ? t->allowed_bytes / t->base_bytes : INFINITY};
    struct error ignored;
    if (!tuner_has_s(t, judging_s(t, s->batch, s->seq, p.share)) || tuner_prove(t, &s->verdict, a, b, &p, &ignored) != OK)
        return false;
    s->judged = true;
    s->before = tune_point_of(&s->verdict.of_a, a);
    s->after = tune_point_of(&s->verdict.of_b, b);
    return true;
}

/* Nothing that touches the step was kept: there is nothing to judge. */
static bool same_step(const struct tuner *t)
{
    struct config_difference d;
    for (int at = 0; config_differ(&d, &t->r->base, &t->now, &at);)
        if (strcmp(d.key, "eval.every") && strcmp(d.key, "model.vocab"))
            return false;
    return true;
}

static bool has_size(const struct tune_result *r, int64_t batch, int64_t seq)
{
    for (int i = 0; i < r->n_sizes; i++)
        if (r->sizes[i].batch == batch && r->sizes[i].seq == seq)
            return true;
    return false;
}

void tune_measure_sizes(struct tuner *t)
{
    const int64_t seq = t->r->base.model.seq, batch = t->r->base.train.batch_size;
    const struct { int64_t batch, seq; bool judged; } sizes[] = {
        {8, 128, true}, {16, 256, true}, {batch, seq, false}, {batch, 2 * seq, false}, {batch, 4 * seq, false}, {batch, 8 * seq, false}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && !tuner_stopped(t); i++) {
        if (has_size(t->r, sizes[i].batch, sizes[i].seq))       /* the config's own, judged already */
            continue;
        struct tune_size *s = &t->r->sizes[t->r->n_sizes];
        struct error ignored;
        const int64_t vocab = t->now.model.vocab;
        const struct config a = at_size(t->r->base, sizes[i].batch, sizes[i].seq, vocab);
        const struct config b = at_size(t->now, sizes[i].batch, sizes[i].seq, vocab);
        tuner_tell(t, "other sizes");
        *s = (struct tune_size){.batch = sizes[i].batch, .seq = sizes[i].seq};
        if ((sizes[i].judged && !same_step(t) && judge_size(t, s, &a, &b)) ||
            (plan_point(&s->before, &a, &ignored) == OK && plan_point(&s->after, &b, &ignored) == OK))
            t->r->n_sizes++;
    }
}

/* ---- evaluation, and the whole run ---- */

/* How much faster a run is around steps so long, with so much of evaluation for each of them, of which a part is left. */
static double around_gain(double step_us, double evaluation_us, double left)
{
    return (step_us + evaluation_us) / (step_us + left * evaluation_us);
}

static void give_gains(struct tune_stage *s, double step_us)
{
    const struct tune_evaluation *e = &s->evaluation;
    s->measured = around_gain(step_us, e->us, e->left);
    s->low = around_gain(step_us, e->low_us, e->left);
    s->high = around_gain(step_us, e->high_us, e->left);
}

double tune_evaluation_s(const struct tuner *t)
{
    if (!t->situation)
        return 0;
    const double us = t->situation->m.evaluation_us;
    return us > 0 ? TURNS_LEAST * (us + (TURNS + 1) * t->situation->p.step_us) / 1e6 : 0;
}

/* A step and an evaluation. */
static enum status take_turn(struct trial *t, const volatile sig_atomic_t *stop, double *step_us, double *evaluation_us, struct error *err)
{
    double loss;
    bool has_data;
    enum status st = median_step_us(t, stop, step_us, err);
    const int64_t start = clock_ns();
    if (st == OK)
        st = trial_validate(t, stop, &has_data, &loss, err);
    *evaluation_us = (double)(clock_ns() - start) / 1e3;
    return st;
}

enum status tune_measure_evaluation(struct tuner *t, struct choice *c, struct error *err)
{
    struct tune_stage *s = &c->stage;
    struct trial *open;
    double step_us[TURNS], evaluation_us[TURNS];
    int n = 0;
    enum status st = trial_open(&open, &t->now, NULL, NULL, err);
    if (st != OK)
        return st;
    const struct evaluations now = trial_evaluations(open, t->now.eval.every), then = trial_evaluations(open, c->next.eval.every);
    for (; n < TURNS && st == OK && (n < TURNS_LEAST || tuner_stages_have_s(t, tune_evaluation_s(t) / TURNS_LEAST)); n++)
        st = take_turn(open, t->o->stop, &step_us[n], &evaluation_us[n], err);
    trial_free(open);
    if (st != OK)
        return st;
    const double us = median(evaluation_us, n), each = evaluations_per_step(now);       /* they are sorted now */
    s->evaluation = (struct tune_evaluation){.us = us * each, .low_us = evaluation_us[0] * each, .high_us = evaluation_us[n - 1] * each,
                                             .left = evaluations_left(now, then.every)};
    give_gains(s, median(step_us, n));
    const bool wins = s->low > fmax(t->believed, EVALUATION_GAIN);
    s->outcome = wins ? TUNE_KEPT : TUNE_NO_GAIN;
    snprintf(s->why, sizeof s->why, wins ? "less of the run is evaluation; the step is the same" : "evaluation takes little");
    return OK;
}

void tune_know_run(struct tune_result *r, const struct measured *m, const struct profile *p)
{
    const double us = measured_evaluation_us(m);
    r->run.evaluation_after_us = us;
    if (!isfinite(us))
        return;                                             /* a run of which a part is not known is not known */
    if (!r->run.steps) {
        r->run.evaluation_before_us = us;
        r->run.step_us = p->run.steps && p->run.rows_scale < 1 ? (p->run.seconds - p->run.evaluation_s) * 1e6 / (double)p->run.steps : 0;
    }
    r->run.steps = m->total_steps;
}

double tune_run_step_us(const struct tune_result *r, double point_us)
{
    return r->run.step_us > 0 && r->before.step_us > 0 ? point_us * r->run.step_us / r->before.step_us : point_us;
}

/* Steps are those of the report in the end, which are measured in turns, and after the stage: so its gain is that of the runs beside it. Where the step
 * stayed what it was, so are the evaluations of these. */
void tune_settle_evaluation(struct tune_result *r)
{
    const struct tune_stage *kept = NULL;
    double step_us = tune_run_step_us(r, r->before.step_us);
    bool same_step = true;
    for (int i = 0; i < r->n_stages && step_us > 0; i++) {
        struct tune_stage *s = &r->stages[i];
        if (s->around && isfinite(s->measured))
            give_gains(s, step_us);
        if (s->outcome == TUNE_KEPT && s->around)
            kept = s;
        if (s->outcome == TUNE_KEPT && !s->around) {
            step_us /= s->measured;
            same_step = false;
        }
    }
    if (kept && same_step) {
        r->run.evaluation_before_us = kept->evaluation.us;
        r->run.evaluation_after_us = kept->evaluation.left * kept->evaluation.us;
    }
}
