/* The loop: predict, try the best, verify, keep or drop; then the whole gain in turns, and the same programs at other sizes. */
#include "prove/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/profile.h"
#include "core/clock.h"
#include "core/stats.h"
#include "prove/prove.h"
#include "train/train.h"
#include "train/trial.h"

static const double WORTH = 1.02;           /* predictions below are not tried */
static const double NOT_SLOWER = 0.995;     /* a pass that saves memory may cost so much */
static const double SAVES = 0.95;           /* of the memory, at most, to be kept for that */
enum { STEPS = 6, STAGE_STEPS = 5, TURNS = 5 };     /* profiled; of a stage's loss curve; of a point */

struct tuner {
    struct tune_result *r;
    const struct tune_options *o;
    struct config now;                      /* what has been kept */
    pass_set tried;
    double start_s;
};

static bool is_stopped(const struct tuner *t) { return t->o->stop && *t->o->stop; }
static double spent_s(const struct tuner *t) { return clock_s() - t->start_s; }

static void tell(const struct tuner *t, const char *what)
{
    if (t->o->progress)
        t->o->progress(t->o->context, what, t->o->budget_s > 0 ? fmin(spent_s(t) / t->o->budget_s, 1) : 1);
}

/* ---- configs ---- */

static struct config without_passes(const struct config *c)
{
    struct config base = *c;
    base.optimize.passes = (struct pass_list){.choice = PASSES_NONE};
    for (int i = 0; i < CONFIG_PASSES; i++)
        base.optimize.pass[i] = PASS_AUTO;
    return base;
}

static struct config with_passes(const struct config *c, pass_set set)
{
    struct config next = *c;
    next.optimize.passes.choice = PASSES_LISTED;
    next.optimize.passes.listed |= set;
    return next;
}

/* ---- predictions ---- */

static enum status profile_now(const struct tuner *t, struct measured *m, struct profile *p, struct error *err)
{
    enum status st = measure_steps(m, &t->now, STEPS, t->o->stop, NULL, NULL, err);
    if (st != OK)
        return st;
    const struct config *c = &m->config;
    const struct profile_input in = {
        .program = m->program, .trace = m->trace, .peaks = *t->o->peaks, .threads = m->threads, .step_us = m->step_us,
        .n_steps = m->n, .batch = c->train.batch_size, .seq = c->model.seq, .accumulate = c->train.accumulate,
        .layers = c->model.layers, .model_flops = m->model_flops, .kernels = m->kernels, .name = c->name};
    st = profile_build(p, &in, err);
    if (st != OK)
        measured_release(m);
    return st;
}

/* The expected speed-up of one more pass on what is kept, and in how many places it changes the program. */
static enum status predict_pass(const struct measured *m, const struct profile *p, int pass, struct tune_stage *s,
                                struct error *err)
{
    struct config next = with_passes(&m->config, (pass_set)1 << pass);
    struct program *then;
    int places[PASSES_MAX] = {0};
    const enum status st = train_step_program(&then, &next, next.train.steps, places, err);
    if (st != OK)
        return st;
    *s = (struct tune_stage){.answers = pass_table[pass].answers, .effort = pass_table[pass].effort, .places = places[pass],
                             .measured = NAN, .low = NAN, .high = NAN};
    snprintf(s->pass, sizeof s->pass, "%s", pass_table[pass].name);
    s->predicted = predict_step_us(p, m->program) / predict_step_us(p, then);
    program_free(then);
    return OK;
}

static void add_to(struct tune_stage *all, const struct tune_stage *s)
{
    const size_t n = strlen(all->pass);
    snprintf(all->pass + n, sizeof all->pass - n, "%s%s", n ? "+" : "", s->pass);
    all->answers = n ? "several" : s->answers;
    all->places += s->places;
    all->predicted *= s->predicted;
    all->effort = s->effort > all->effort ? s->effort : all->effort;
}

/* The untried pass that is expected to win most, as a set of one; when none is expected to be worth a try alone, all that are left
 * together, as small gains add up. Empty: none changes the program. */
static enum status best_passes(const struct tuner *t, pass_set *best, struct tune_stage *stage, struct error *err)
{
    struct measured m;
    struct profile p = {0};
    struct tune_stage all = {.predicted = 1, .measured = NAN, .low = NAN, .high = NAN};
    pass_set rest = 0;
    *best = 0;
    enum status st = profile_now(t, &m, &p, err);
    if (st != OK)
        return st;
    for (int i = 0; pass_table[i].name && st == OK; i++) {
        struct tune_stage s;
        if (t->tried >> i & 1)
            continue;
        st = predict_pass(&m, &p, i, &s, err);
        if (st != OK || !s.places)
            continue;
        add_to(&all, &s);
        rest |= (pass_set)1 << i;
        if (!*best || s.predicted > stage->predicted) {
            *best = (pass_set)1 << i;
            *stage = s;
        }
    }
    if (st == OK && *best && stage->predicted < WORTH) {
        *best = rest;
        *stage = all;
    }
    profile_release(&p);
    measured_release(&m);
    return st;
}

/* ---- a stage ---- */

/* Keeps what holds every gate and is faster, or smaller and no slower. */
static void decide(struct tune_stage *s, const struct verdict *v)
{
    const struct gate *speed = verdict_gate(v, "throughput"), *memory = verdict_gate(v, "memory");
    s->measured = speed->value;
    s->low = speed->low;
    s->high = speed->high;
    for (int i = 0; i < v->n; i++)
        if (!v->gates[i].pass && &v->gates[i] != speed) {
            snprintf(s->why, sizeof s->why, "gate %s: %.250s", v->gates[i].name, v->gates[i].words);
            return;
        }
    const bool smaller = memory->b < SAVES * memory->a;
    s->kept = s->low > 1 || (smaller && s->measured > NOT_SLOWER);
    if (s->kept)
        snprintf(s->why, sizeof s->why, s->low > 1 ? "faster" : "no slower, and memory falls from %s to %s", memory->a_text,
                 memory->b_text);
    else
        snprintf(s->why, sizeof s->why, "not faster beyond the noise of the measurement: %s", speed->value_text);
}

static enum status try_passes(struct tuner *t, pass_set set, struct tune_stage *s, struct error *err)
{
    struct config a = t->now, b = with_passes(&t->now, set);
    struct verdict v;
    const struct verify_options options = {.steps = STAGE_STEPS, .stop = t->o->stop};
    char what[TUNE_NAMES + 64];
    snprintf(what, sizeof what, "trying %s (expected %.2fx)", s->pass, s->predicted);
    tell(t, what);
    a.verify.memory = fmax(a.verify.memory, 1.02);          /* scratch of a kernel may come on top */
    const enum status st = verify_configs(&v, &a, &b, &options, err);
    if (st != OK)
        return st;
    decide(s, &v);
    if (s->kept)
        t->now = b;
    return OK;
}

static void record(struct tuner *t, const struct tune_stage *s)
{
    t->r->stages[t->r->n_stages++] = *s;
    if (t->o->on_stage)
        t->o->on_stage(t->o->context, s);
}

static enum status run_stages(struct tuner *t, struct error *err)
{
    for (;;) {
        struct tune_stage s;
        pass_set set;
        tell(t, "profiling");
        enum status st = best_passes(t, &set, &s, err);
        if (st != OK || !set)
            return st;
        t->tried |= set;
        if (spent_s(t) >= t->o->budget_s) {
            t->r->out_of_time = true;
            snprintf(s.why, sizeof s.why, "no time was left to try it");
        } else
            st = try_passes(t, set, &s, err);
        if (is_stopped(t)) {
            t->r->interrupted = true;
            return OK;
        }
        if (st != OK)
            return st;
        record(t, &s);
    }
}

/* ---- before and after ---- */

static double median_step_us(struct trial *t, struct error *err)
{
    double us[TURNS];
    for (int i = 0; i < TURNS + 1; i++) {           /* the first warms up */
        struct trial_step step;
        if (trial_step(t, &step, err) != OK)
            return NAN;
        if (i)
            us[i - 1] = step.us;
    }
    stats_sort(us, TURNS);
    return stats_percentile(us, TURNS, 0.5);
}

/* Measures a config, or only plans its memory. */
static enum status measure_point(struct tune_point *out, const struct config *c, bool timed, struct error *err)
{
    struct trial *t;
    const enum status st = trial_open(&t, c, NULL, NULL, err);
    if (st != OK)
        return st;
    *out = (struct tune_point){.step_us = NAN, .samples_per_s = NAN, .tokens_per_s = NAN,
                               .planned_bytes = trial_planned_bytes(t), .ops = trial_ops_per_step(t)};
    if (timed) {
        out->step_us = median_step_us(t, err);
        out->tokens_per_s = (double)trial_tokens_per_step(t) / out->step_us * 1e6;
        out->samples_per_s = out->tokens_per_s / (double)c->model.seq;
    }
    trial_free(t);
    return OK;
}

static struct config at_size(struct config c, int64_t batch, int64_t seq)
{
    c.train.batch_size = batch;
    c.model.seq = seq;
    return c;
}

/* 8 x 128 and 16 x 256 are timed; memory is planned over lengths of the sequence. What does not fit the data is left out. */
static void measure_sizes(struct tuner *t)
{
    const int64_t seq = t->r->base.model.seq, batch = t->r->base.train.batch_size;
    const struct { int64_t batch, seq; bool timed; } sizes[] = {
        {8, 128, true}, {16, 256, true}, {batch, seq, false}, {batch, 2 * seq, false}, {batch, 4 * seq, false}, {batch, 8 * seq, false}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && !is_stopped(t); i++) {
        struct tune_size *s = &t->r->sizes[t->r->n_sizes];
        struct error ignored;
        const bool timed = sizes[i].timed && spent_s(t) < t->o->budget_s;
        const struct config a = at_size(t->r->base, sizes[i].batch, sizes[i].seq);
        const struct config b = at_size(t->now, sizes[i].batch, sizes[i].seq);
        tell(t, "other sizes");
        *s = (struct tune_size){.batch = sizes[i].batch, .seq = sizes[i].seq};
        if (measure_point(&s->before, &a, timed, &ignored) == OK && measure_point(&s->after, &b, timed, &ignored) == OK)
            t->r->n_sizes++;
    }
}

/* The whole gain: base and tuned in turns. */
static enum status measure_whole(struct tuner *t, struct error *err)
{
    struct tune_result *r = t->r;
    struct verdict v;
    const struct verify_options options = {.steps = STAGE_STEPS, .stop = t->o->stop};
    struct config a = r->base;
    a.verify.memory = fmax(a.verify.memory, 1.02);
    tell(t, "base against tuned");
    enum status st = verify_configs(&v, &a, &t->now, &options, err);
    if (st != OK)
        return st;
    const struct gate *speed = verdict_gate(&v, "throughput");
    r->speedup = speed->value;
    r->speedup_low = speed->low;
    r->speedup_high = speed->high;
    st = measure_point(&r->before, &r->base, true, err);
    if (st == OK)
        st = measure_point(&r->after, &t->now, true, err);
    return st;
}

enum status tune_run(struct tune_result *out, const struct config *c, const struct tune_options *options, struct error *err)
{
    *out = (struct tune_result){.base = without_passes(c), .speedup = 1, .speedup_low = 1, .speedup_high = 1};
    struct tuner t = {.r = out, .o = options, .now = out->base, .start_s = clock_s()};
    enum status st = run_stages(&t, err);
    if (st == OK && !out->interrupted && options->budget_s > 0) {
        st = measure_whole(&t, err);
        if (is_stopped(&t)) {
            out->interrupted = true;
            st = OK;
        }
        if (st == OK && !out->interrupted)
            measure_sizes(&t);
    }
    out->tuned = t.now;
    out->seconds = spent_s(&t);
    return st;
}
