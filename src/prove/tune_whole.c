/* The two ends of tune: the given config against itself before anything is tried, and against all that was kept after it. */
#include <math.h>

#include "prove/prove_int.h"
#include "prove/tune_int.h"
#include "train/ranks.h"

static const double NOT_SLOWER = 0.98;      /* a change that saves memory may seem to cost so much, where it is not proved to be slower */
static const double SAVES = 0.95;           /* of the memory, at most, to be kept for that */
static const double ITSELF = 1.03;          /* by how much a program may seem to be faster than itself: memory lies elsewhere */
enum { CHECKS = 3 };                        /* each twice as long as the one before */

/* ---- what to call it ---- */

/* Passes that work only where they must are in every program. */
static pass_set switchable(void)
{
    pass_set set = 0;
    for (int i = 0; pass_table[i].name; i++)
        if (!(pass_table[i].traits & (PASS_WHEN_NEEDED | PASS_IS_PRECISION)))
            set |= (pass_set)1 << i;
    return set;
}

static const char WITHOUT[] = "the program without passes", WITH_ALL[] = "the program with all passes";

const char *tune_given_name(const struct config *c)
{
    return config_pass_set(c) & switchable() ? "the given config" : WITHOUT;
}

/* ---- a verdict in one word ---- */

static const struct gate *broken_gate(const struct verdict *v)
{
    const struct gate *speed = verdict_gate(v, "throughput");
    for (int i = 0; i < v->n; i++)
        if (!v->gates[i].pass && &v->gates[i] != speed)
            return &v->gates[i];
    return NULL;
}

static enum tune_outcome too_noisy(const struct gate *speed, char why[TUNE_WHY])
{
    snprintf(why, TUNE_WHY, "too much noise to say; a: before, b: with it: %.330s", speed->words);
    return TUNE_NO_VERDICT;
}

double tune_gain(const struct gate *speed) { return speed->grouped ? speed->low : speed->value; }

enum tune_outcome tune_decide(const struct verdict *v, double believed, char why[TUNE_WHY])
{
    const struct gate *speed = verdict_gate(v, "throughput"), *memory = verdict_gate(v, "memory"), *broken = broken_gate(v);
    if (broken) {
        snprintf(why, TUNE_WHY, "gate %s: %.300s", broken->name, broken->words);
        return TUNE_DROPPED;
    }
    if (!speed->judged)
        return too_noisy(speed, why);
    if (speed->low > believed) {
        snprintf(why, TUNE_WHY, "faster");
        return TUNE_KEPT;
    }
    if (speed->high < 1) {
        snprintf(why, TUNE_WHY, "slower: %s", speed->value_text);
        return TUNE_DROPPED;
    }
    if (memory->b < SAVES * memory->a && speed->low > NOT_SLOWER) {
        snprintf(why, TUNE_WHY, "no slower, and memory falls from %s to %s", memory->a_text, memory->b_text);
        return TUNE_KEPT;
    }
    if (speed->low > 1) {
        snprintf(why, TUNE_WHY, "too much noise to say: the config seems to win %.3f times over itself, and this is no more: %s", believed, speed->value_text);
        return TUNE_NO_VERDICT;
    }
    snprintf(why, TUNE_WHY, "no difference: %s", speed->value_text);
    return TUNE_NO_GAIN;
}

/* ---- the base against itself ---- */

static enum status refuse_bits(const struct tuner *t, const struct verdict *v, struct error *err)
{
    const struct gate *g = verdict_gate(v, "determinism");
    if (isnan(verdict_gate(v, "loss-curve")->value))
        return error_set(err, ANSWER_NO, "'%.300s' cannot be tuned: its loss is not a number within %d steps; is train.lr too high?",
                         t->r->base.file, TUNE_STEPS);
    return error_set(err, ANSWER_NO, "'%.300s' cannot be tuned: runs of it, unchanged and from the same seed, do not give the same bits "
                     "(%s); no change could be proved%s", t->r->base.file, g->pass ? "the first run differs from the others" : g->words,
                     t->r->base.device == DEVICE_CUDA ? ". Try --set optimize.fewer-meetings=off, or --set device=cpu"
                     : division_threads(&t->r->base) == 1 ? ". Try --set backend.kernels=reference"
                                                          : ". Is the BLAS safe to call from several threads? Try --set threads=1, or "
                                                            "--set backend.kernels=reference");
}

static enum status refuse_speed(const struct tuner *t, const struct gate *speed, struct error *err)
{
    return error_set(err, ANSWER_NO, "'%.300s' cannot be tuned now: measured %d times against itself, it seems to be %.2f times as fast "
                     "(%.2f to %.2f); other work on this machine decides, and no gain could be believed. Try again when it is quiet%s",
                     t->r->base.file, CHECKS, speed->value, speed->low, speed->high,
                     t->r->base.device == DEVICE_CUDA || division_threads(&t->r->base) == 1 ? "" : ", or with --set threads=1");
}

/* What it seems to win, or to lose, at least: a gain that is no larger may be as little the doing of a move. 1: its interval holds 1. */
static double noise_of(const struct gate *speed) { return fmax(fmax(speed->low, 1 / speed->high), 1); }

/* Where the memory for two at once is not to be had, nothing is checked. */
enum status tune_check_base(struct tuner *t, struct error *err)
{
    struct tune_result *r = t->r;
    struct proof p = {.steps = TUNE_STEPS, .memory = INFINITY, .share = 0.5, .change = t->o->change,
                      .change_context = t->o->change_context};
    struct verdict v;
    const struct gate *speed = NULL;
    tuner_tell(t, "the config against itself");
    for (int i = 0; i < CHECKS && (!speed || noise_of(speed) > ITSELF); i++, p.share *= 2) {
        const enum status st = tuner_prove(t, &v, &r->base, &r->base, &p, err);
        if (st != OK)
            return (st == CANNOT || tuner_stopped(t)) ? OK : st;
        if (!v.same_bits || isnan(verdict_gate(&v, "loss-curve")->value))
            return refuse_bits(t, &v, err);
        speed = verdict_gate(&v, "throughput");
    }
    if (noise_of(speed) > ITSELF)
        return refuse_speed(t, speed, err);
    r->check.done = true;
    r->check.speedup = speed->value;
    r->check.low = speed->low;
    r->check.high = speed->high;
    r->check.openings = speed->openings;
    r->check.turns = speed->turns;
    t->believed = r->check.believed = noise_of(speed);
    tuner_know_base(t, v.of_a.planned_bytes);
    r->before = r->after = tune_point_of(&v.of_a, &r->base);
    return OK;
}

/* ---- the base against what was kept ---- */

/* Back to the base, but for what does not touch the step. */
static void take_back(struct tuner *t, enum tune_outcome outcome, const char *why)
{
    struct tune_result *r = t->r;
    const struct interval every = t->now.eval.every;
    t->now = r->base;
    t->now.eval.every = every;
    r->taken_back = true;
    r->after = r->before;
    r->speedup = r->speedup_low = r->speedup_high = 1;
    if (every.n == r->base.eval.every.n)
        r->run.evaluation_after_us = r->run.evaluation_before_us;
    snprintf(r->whole, sizeof r->whole, "%.390s", why);
    for (int i = 0; i < r->n_stages; i++)
        if (r->stages[i].outcome == TUNE_KEPT && !r->stages[i].around) {
            r->stages[i].outcome = outcome;
            snprintf(r->stages[i].why, sizeof r->stages[i].why, "it won alone; with all else that was kept: %.340s", why);
        }
}

enum status tune_judge_whole(struct tuner *t, struct error *err)
{
    struct tune_result *r = t->r;
    const struct proof p = {.steps = r->base.verify.steps, .memory = t->allowed_bytes / t->base_bytes, .share = 1, .patient = true};
    char why[TUNE_WHY];
    tuner_tell(t, "the given config against the tuned one");
    const enum status st = tuner_prove(t, &r->verdict, &r->base, &t->now, &p, err);
    if (st == CANNOT && !tuner_stopped(t)) {
        r->speedup = r->speedup_low = r->speedup_high = NAN;
        r->before = r->after = (struct tune_point){0};
        return OK;
    }
    if (st != OK)
        return st;
    const struct gate *speed = verdict_gate(&r->verdict, "throughput");
    r->judged = true;
    r->before = tune_point_of(&r->verdict.of_a, &r->base);
    r->after = tune_point_of(&r->verdict.of_b, &t->now);
    r->speedup = speed->value;
    r->speedup_low = speed->low;
    r->speedup_high = speed->high;
    const enum tune_outcome outcome = tune_decide(&r->verdict, t->believed, why);
    if (outcome != TUNE_KEPT)
        take_back(t, outcome, why);
    else if (!(speed->low > t->believed))
        verdict_limit_speed(&r->verdict, NOT_SLOWER);       /* it was kept for its memory */
    return OK;
}

/* ---- references ---- */

static struct config reference_of(const struct config *base, bool all)
{
    struct config other = *base;
    other.optimize.passes = (struct pass_list){.choice = all ? PASSES_ALL : PASSES_NONE};
    for (int i = 0; pass_table[i].name; i++)
        if (switchable() >> i & 1)
            other.optimize.pass[i] = PASS_AUTO;
        else if (config_pass_is_on(base, i) && (pass_table[i].traits & PASS_WHEN_NEEDED))
            other.optimize.pass[i] = PASS_ON;
    return other;
}

static void measure_reference(struct tuner *t, const char *name, bool all)
{
    struct tune_result *r = t->r;
    const struct proof p = {.steps = 1, .memory = INFINITY, .share = 0.5};
    const struct config other = reference_of(&r->base, all);
    struct verdict v;
    struct error ignored;
    if (!((config_pass_set(&other) ^ config_pass_set(&r->base)) & switchable()) || tuner_stopped(t) ||
        !tuner_has_s(t, tuner_proof_s(t, p.share)))
        return;
    tuner_tell(t, name);
    if (tuner_prove(t, &v, &other, &t->now, &p, &ignored) != OK)
        return;
    const struct gate *speed = verdict_gate(&v, "throughput");
    r->references[r->n_references++] = (struct tune_reference){.name = name, .all = all, .step_us = v.of_a.step_us, .tuned_us = v.of_b.step_us,
                                                               .speedup = speed->value, .low = speed->low, .high = speed->high,
                                                               .judged = speed->judged, .openings = speed->openings, .turns = speed->turns};
}

/* Nothing is run for it, so that it is known also where there was no time to measure that program. */
static void count_naive_kernels(struct tuner *t)
{
    struct tune_result *r = t->r;
    struct config naive = reference_of(&r->base, false);
    struct trial *trial = NULL;
    struct error ignored;
    naive.model.vocab = t->now.model.vocab;
    r->naive_kernels = NAN;
    if (!(r->before.kernels > 0))           /* there is no such thing here */
        return;
    if (trial_open(&trial, &naive, NULL, NULL, &ignored) == OK)
        r->naive_kernels = trial_kernels_per_step(trial);
    trial_free(trial);
}

void tune_measure_references(struct tuner *t)
{
    count_naive_kernels(t);
    measure_reference(t, WITHOUT, false);
    measure_reference(t, WITH_ALL, true);
}
