/* The loop: predict, try the best, verify, keep or drop; then the whole of it is judged. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "prove/tune_int.h"

static const double SCRATCH = 1.02, SCRATCH_BYTES = 4e6;    /* memory that kernels' scratch may add: the larger of the two */
static const double KEPT_OPEN = 1e9;        /* a larger run is closed while the two of a proof are open */
static const double STAGES_SHARE = 0.75;    /* of the budget: the rest is for judging the whole */
static const double PATIENCE = 4;           /* times as long, at most, where an interval is wide */
static const double TURNS_SHARE = 1.0 / 30; /* of the budget, at most, for the turns of each side of a proof */
static const double MOST_TOLD = 0.99;       /* of the whole, while there is work: a stage may end after the budget */
enum { STEPS = 6 };                         /* profiled */

bool tuner_stopped(const struct tuner *t) { return t->o->stop && *t->o->stop; }

void tuner_tell(const struct tuner *t, const char *what)
{
    if (t->o->progress)
        t->o->progress(t->o->context, what, t->o->budget_s > 0 ? fmin(tuner_spent_s(t) / t->o->budget_s, MOST_TOLD) : 0);
}

bool tuner_stages_have_s(const struct tuner *t, double seconds) { return tuner_spent_s(t) + seconds < STAGES_SHARE * t->o->budget_s; }

void tuner_know_base(struct tuner *t, double planned_bytes)
{
    if (t->base_bytes > 0)
        return;
    t->base_bytes = planned_bytes;
    t->allowed_bytes = fmax(fmax(t->r->base.verify.memory, SCRATCH) * planned_bytes, planned_bytes + SCRATCH_BYTES);
}

double tuner_turns_s(const struct tuner *t) { return fmin(t->r->base.verify.seconds, TURNS_SHARE * t->o->budget_s); }

double tuner_proof_s(const struct tuner *t, double share) { return t->around_s + 2 * share * tuner_turns_s(t); }

/* What happened on the way: how long it took, and the worst that was to be warned of. */
static void learn_from(struct tuner *t, const struct verdict *v, double took_s, double turns_s)
{
    if (!v->longer)
        t->around_s = fmax(t->around_s, took_s - 2 * turns_s);
    if (*v->warning && (!*t->r->warning || v->delayed_share > t->r->delayed_share))
        memcpy(t->r->warning, v->warning, sizeof t->r->warning);
    t->r->delayed_share = fmax(t->r->delayed_share, v->delayed_share);
}

enum status tuner_prove(struct tuner *t, struct verdict *v, const struct config *a, const struct config *b,
                        const struct proof *p, struct error *err)
{
    const double seconds = p->share * tuner_turns_s(t), start = clock_s(), left = t->o->budget_s - tuner_spent_s(t);
    const struct verify_options options = {.steps = p->steps, .seconds = seconds, .peaks = t->o->peaks, .stop = t->o->stop,
                                           .most_seconds = p->patient ? fmax(seconds, fmin(PATIENCE * seconds, left / 8)) : seconds,
                                           .change = p->change, .change_context = p->change_context};
    struct config judge = *a;
    judge.verify.memory = p->memory;
    judge.verify.min_gain = 0;
    const enum status st = verify_configs(v, &judge, b, &options, err);
    if (st == OK)
        learn_from(t, v, clock_s() - start, seconds);
    return st;
}

/* Measures what has been kept, once. */
static enum status look_around(struct tuner *t, struct error *err)
{
    if (t->situation)
        return OK;
    struct situation *s = xcalloc(1, sizeof *s);
    const struct situation_options options = {.steps = STEPS, .peaks = t->o->peaks, .stop = t->o->stop};
    const enum status st = situation_measure(s, &t->now, &options, err);
    if (st != OK) {
        free(s);
        return st;
    }
    t->situation = s;
    tune_know_run(t->r, &s->m, &s->p);
    s->sweep = t->r->larger.sweep.n ? &t->r->larger.sweep : NULL;
    t->planned_bytes = s->p.planned_bytes;
    tuner_know_base(t, t->planned_bytes);
    t->now.model = s->m.config.model;       /* the vocabulary is known now */
    config_give_positions(&t->now);
    const struct finding *small = situation_finding(s, "small-batch");
    if (!*t->r->bound)
        t->r->larger_expected = small && !tune_larger_refused(t) ? small->speedup : 0;
    if (!*t->r->bound)
        snprintf(t->r->bound, sizeof t->r->bound, "%s", s->p.headline);
    return OK;
}

static void forget_situation(struct tuner *t)
{
    if (t->situation)
        situation_release(t->situation);
    free(t->situation);
    t->situation = NULL;
}

/* ---- a stage ---- */

static enum status prove_stage(struct tuner *t, struct choice *c, struct error *err)
{
    struct verdict v;
    struct tune_stage *s = &c->stage;
    const struct proof p = {.steps = TUNE_STEPS, .share = 1, .patient = true, .memory = c->grows ? INFINITY : t->allowed_bytes / t->planned_bytes};
    const enum status st = tuner_prove(t, &v, &t->now, &c->next, &p, err);
    if (st != OK)
        return st;
    const struct gate *speed = verdict_gate(&v, "throughput");
    s->measured = tune_gain(speed);
    s->low = speed->low;
    s->high = speed->high;
    s->openings = speed->openings;
    s->turns = speed->turns;
    s->longer = v.longer;
    s->outcome = tune_decide(&v, t->believed, s->why);
    if (s->outcome == TUNE_KEPT)
        t->allowed_bytes = fmax(t->allowed_bytes, v.of_b.planned_bytes);
    return OK;
}

static enum status try_choice(struct tuner *t, struct choice *c, struct error *err)
{
    char what[TUNE_NAMES + 64];
    if (t->planned_bytes > KEPT_OPEN)
        forget_situation(t);
    snprintf(what, sizeof what, "trying %s (expected %.2f×)", c->stage.pass, c->stage.predicted);
    tuner_tell(t, what);
    enum status st;
    if (c->gain == GAIN_AROUND_STEP)
        st = tune_measure_evaluation(t, c, err);
    else
        st = prove_stage(t, c, err);
    if (st == CANNOT && !tuner_stopped(t)) {        /* the machine has not the memory for it: that ends this stage alone */
        snprintf(c->stage.why, sizeof c->stage.why, "it could not be tried: %.290s", err->text);
        st = OK;
    }
    if (st == OK && c->stage.outcome == TUNE_KEPT) {
        t->now = c->next;
        forget_situation(t);
    }
    return st;
}

static void record(struct tuner *t, const struct tune_stage *s)
{
    t->r->stages[t->r->n_stages++] = *s;
    if (t->o->on_stage)
        t->o->on_stage(t->o->context, s);
}

static enum status run_stages(struct tuner *t, struct error *err)
{
    while (t->r->n_stages < TUNE_IDEAS) {
        struct choice next;
        tuner_tell(t, "profiling");
        enum status st = look_around(t, err);
        const bool proves = tuner_stages_have_s(t, tuner_proof_s(t, 1));
        if (st == OK)
            st = tune_choose(t, &next, proves, err);
        if (tuner_stopped(t)) {
            t->r->interrupted = true;
            return OK;
        }
        if (st != OK || !next.moves)
            return st;
        t->tried |= next.moves;
        if (next.gain == GAIN_AROUND_STEP ? !tuner_stages_have_s(t, tune_evaluation_s(t)) : !proves) {
            t->r->out_of_time = t->o->budget_s > 0;         /* of no budget nothing was spent */
            snprintf(next.stage.why, sizeof next.stage.why, t->o->budget_s > 0 ? "no time was left to try it" : "nothing is tried with a budget of 0");
        } else
            st = try_choice(t, &next, err);
        if (st == OK)
            record(t, &next.stage);         /* also where the stop came right after it: what is kept is in the config */
        if (tuner_stopped(t)) {
            t->r->interrupted = true;
            return OK;
        }
        if (st != OK)
            return st;
    }
    return OK;
}

static bool has_kept(const struct tune_result *r)
{
    for (int i = 0; i < r->n_stages; i++)
        if (r->stages[i].outcome == TUNE_KEPT && !r->stages[i].around)
            return true;
    return false;
}

bool tune_keeps(const struct tune_result *r)
{
    for (int i = 0; i < r->n_stages; i++)
        if (r->stages[i].outcome == TUNE_KEPT)
            return true;
    return false;
}

static enum status judge(struct tuner *t, struct error *err)
{
    const enum status st = has_kept(t->r) ? tune_judge_whole(t, err) : OK;
    if (st != OK || tuner_stopped(t))
        return st;
    tune_measure_references(t);
    tune_measure_sizes(t);
    return OK;
}

enum status tune_run(struct tune_result *out, const struct config *c, const struct tune_options *options, struct error *err)
{
    *out = (struct tune_result){.base = *c, .given = tune_given_name(c), .speedup = 1, .speedup_low = 1, .speedup_high = 1, .delayed_share = -1};
    struct tuner t = {.r = out, .o = options, .now = *c, .believed = 1, .start_s = clock_s()};
    enum status st = options->larger_batch ? tune_enlarge(&t, err) : OK;
    if (st == OK && options->budget_s > 0)
        st = tune_check_base(&t, err);
    if (st == OK)
        st = run_stages(&t, err);
    forget_situation(&t);
    if (st == OK && !out->interrupted && options->budget_s > 0)
        st = judge(&t, err);
    if (tuner_stopped(&t)) {
        out->interrupted = true;
        st = OK;
        if (has_kept(out) && !out->judged)  /* what was measured is of the base */
            out->after.step_us = out->after.samples_per_s = out->after.tokens_per_s = out->after.mfu_percent = out->speedup =
                out->speedup_low = out->speedup_high = NAN;
    }
    tune_settle_evaluation(out);
    t.now.model.vocab = c->model.vocab;     /* as it was written */
    tune_keep_or_shrink(&t);
    out->tuned = t.now;
    out->seconds = tuner_spent_s(&t);
    return st;
}
