/* Hand-made results of tune for the tests of its report: one with everything, one of nothing, and names that try to be markup. */
#ifndef HONE_TESTS_TUNE_RESULTS_H
#define HONE_TESTS_TUNE_RESULTS_H

#include <math.h>
#include <stdlib.h>

#include "prove/tune.h"
#include "support/check.h"

static const char TUNE_YAML[] =
    "model: {arch: gpt, dim: 32, layers: 1, heads: 2, seq: 256}\n"
    "data: {chars: 20000, workers: 0}\n"
    "train: {batch_size: 8, steps: 20, lr: 1.0e-3, warmup: 5}\n"
    "optimize: {passes: none}\n"
    "threads: 2\n";

static inline struct config tune_config(const char *name, const char *set, const char *more)
{
    const char *sets[] = {set, more};
    struct config c;
    struct error err;
    assert_ok(config_parse(&c, name, TUNE_YAML, sizeof TUNE_YAML - 1, sets, !set ? 0 : !more ? 1 : 2, &err), err);
    return c;
}

static inline void tune_add(struct tune_result *r, struct tune_stage s, const char *pass, const char *change, const char *why)
{
    snprintf(s.pass, sizeof s.pass, "%s", pass);
    snprintf(s.change, sizeof s.change, "%s", change);
    snprintf(s.why, sizeof s.why, "%s", why);
    r->stages[r->n_stages++] = s;
}

static inline void tune_imagine(struct tune_result *r, const char *name, const char *what, int phase, enum pass_effort effort,
                                double predicted)
{
    struct tune_idea *d = &r->roadmap[r->n_roadmap++];
    *d = (struct tune_idea){.what = what, .answers = "no-flash-attention", .effort = effort, .places = 4, .phase = phase,
                            .predicted = predicted};
    snprintf(d->name, sizeof d->name, "%s", name);
}

static inline struct tune_point tune_made_point(double step_us, double bytes, double ops)
{
    const bool timed = isfinite(step_us);
    return (struct tune_point){.step_us = step_us, .samples_per_s = timed ? 8e6 / step_us : NAN,
                               .tokens_per_s = timed ? 8 * 256e6 / step_us : NAN, .mfu_percent = timed ? 100 * 12e3 / step_us : NAN,
                               .mfu_peak = {.gflops = timed ? 80 : 0}, .planned_bytes = bytes, .ops = ops};
}

static inline void tune_add_size(struct tune_result *r, int64_t batch, int64_t seq, struct tune_point before, struct tune_point after)
{
    r->sizes[r->n_sizes++] = (struct tune_size){.batch = batch, .seq = seq, .before = before, .after = after};
}

/* All gates, of which throughput says what it is told. */
static inline struct verdict tune_verdict(double speedup, double low, double high, bool faster)
{
    static const char *const names[] = {"gradients", "loss-curve", "validation", "determinism", "memory", "throughput"};
    struct verdict v = {.pass = faster};
    for (; v.n < 6; v.n++) {
        struct gate *g = &v.gates[v.n];
        *g = (struct gate){.name = names[v.n], .pass = true, .judged = true, .a = 1, .b = 1, .value = 1, .limit = strcmp(names[v.n], "throughput") ? 1.0204 : 1, .low = NAN, .high = NAN};
        snprintf(g->words, sizeof g->words, "%s of a and of b agree", g->name);
    }
    struct gate *speed = &v.gates[5];
    speed->value = speedup;
    speed->low = low;
    speed->high = high;
    speed->pass = speed->judged = faster;
    snprintf(speed->words, sizeof speed->words, "a step takes 40 ms in a and 29.2 ms in b");
    return v;
}

/* Larger batches were asked for, and win too little. */
static inline void tune_enlarge_made(struct tune_result *r)
{
    struct tune_larger *l = &r->larger;
    *l = (struct tune_larger){.asked = true, .rule = LR_SQRT, .times = 1, .given = r->base,
                              .sweep = {.n = 3, .given = 8, .device = "cpu", .threads = 2, .free_bytes = 4e9, .end = BATCHES_NO_MEMORY}};
    for (int i = 0; i < l->sweep.n; i++) {
        const double batch = 8 << i, samples = 200 + 4 * i;
        l->sweep.points[i] = (struct batch_point){.batch = (int64_t)batch, .planned_bytes = 262e6 * batch / 8, .fits = i < 2, .ms_per_step = batch / samples * 1e3,
                                                  .ms_spread = 0.1, .samples_per_s = samples, .tokens_per_s = samples * 256};
    }
    batch_sweep_judge(&l->sweep);
    snprintf(l->words, sizeof l->words, "no: a larger one wins less than 5 %%; 16 fits, 32 does not");
}

/* A step of 40 ms that becomes 29.2 ms by three stages of five: 1.25 * 1.10 * 1.00 (smaller). Free it with free(). */
static inline struct tune_result *sample_result(void)
{
    struct tune_result *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->base = tune_config("sample", NULL, NULL);
    r->given = "the program without passes";
    r->tuned = tune_config("sample", "optimize.passes=[flash-attention, fuse-loss]", "train.batch_size=16");
    snprintf(r->bound, sizeof r->bound, "This step is bound by memory: attention takes 41 %% of its 40.0 ms");
    tune_add(r, (struct tune_stage){.answers = "no-flash-attention", .what = "attention in blocks", .effort = PASS_MEDIUM, .phase = 2,
             .places = 4, .predicted = 1.30, .measured = 1.25, .low = 1.22, .high = 1.29, .openings = 8, .turns = 96, .outcome = TUNE_KEPT},
             "flash-attention", "optimize.passes: + flash-attention", "faster");
    tune_add(r, (struct tune_stage){.answers = "small-batch", .what = "a larger batch, fewer micro-batches", .effort = PASS_LOW, .phase = 1,
             .places = 1, .predicted = 1.045, .measured = 1.10, .low = 1.07, .high = 1.12, .outcome = TUNE_KEPT},
             "batch-size", "train.batch_size: 16, train.accumulate: 1", "faster");
    tune_add(r, (struct tune_stage){.answers = "unfused-optimizer", .what = "AdamW in one sweep", .effort = PASS_LOW, .phase = 1,
             .places = 2, .predicted = 1.04, .measured = 0.96, .low = 0.93, .high = 0.99, .outcome = TUNE_DROPPED},
             "fused-optimizer", "optimize.passes: + fused-optimizer", "slower: × 0.960 (0.930 to 0.990)");
    tune_add(r, (struct tune_stage){.answers = "memory-limit", .what = "the logits are never whole in memory", .effort = PASS_MEDIUM,
             .phase = 2, .places = 1, .predicted = 0.99, .measured = 1.0, .low = 0.998, .high = 1.003, .outcome = TUNE_KEPT},
             "fuse-loss", "optimize.passes: + fuse-loss", "no slower, and memory falls from 190 MB to 124 MB");
    tune_add(r, (struct tune_stage){.answers = "several", .effort = PASS_LOW, .phase = 1, .places = 9, .predicted = 1.03, .measured = NAN,
             .low = NAN, .high = NAN}, "fuse-qkv+fuse-residual-norm+hoist-constants", "optimize.passes: + fuse-qkv",
             "no time was left to try it");
    r->before = tune_made_point(40000, 262e6, 197);
    r->after = tune_made_point(29200, 124e6, 141);
    r->speedup = 40000.0 / 29200;
    r->speedup_low = 1.33;
    r->speedup_high = 1.41;
    r->judged = true;
    r->verdict = tune_verdict(r->speedup, 1.33, 1.41, true);
    r->check.done = true;
    r->check.speedup = 1.002;
    r->check.low = 0.99;
    r->check.high = 1.01;
    r->check.believed = 1;
    r->check.openings = 8;
    r->check.turns = 48;
    r->delayed_share = 0.01;
    r->references[r->n_references++] = (struct tune_reference){.name = "the program with all passes", .step_us = 29300, .tuned_us = 29250,
                                                               .speedup = 29300.0 / 29250, .low = 0.98, .high = 1.02, .all = true, .judged = true};
    tune_add_size(r, 8, 128, tune_made_point(18000, 90e6, 197), tune_made_point(14400, 60e6, 141));
    r->sizes[0].judged = true;
    r->sizes[0].verdict = tune_verdict(1.25, 0.9, 1.6, false);
    tune_add_size(r, 16, 256, tune_made_point(NAN, 500e6, 197), tune_made_point(NAN, 240e6, 141));
    const int64_t seq[] = {256, 512, 1024, 2048};
    for (int i = 0; i < 4; i++)
        tune_add_size(r, 8, seq[i], tune_made_point(NAN, 262e6 * pow(2.9, i), 197), tune_made_point(NAN, 124e6 * pow(1.95, i), 141));
    r->sizes[r->n_sizes - 1].before.too_large = true;
    tune_imagine(r, "batch-size", "a larger batch, fewer micro-batches", 1, PASS_LOW, 1.06);
    tune_imagine(r, "fused-optimizer", "AdamW in one sweep", 1, PASS_LOW, 1.04);
    tune_imagine(r, "fuse-qkv", "query, key and value in one op", 1, PASS_LOW, 1.012);
    tune_imagine(r, "flash-attention", "attention in blocks", 2, PASS_MEDIUM, 1.30);
    tune_imagine(r, "fuse-loss", "the logits are never whole in memory", 2, PASS_MEDIUM, 0.99);
    tune_imagine(r, "mixed-precision", "operands of products in bf16", 3, PASS_HIGH, 1.21);
    r->out_of_time = true;
    r->seconds = 61.5;
    r->run.steps = 3000;
    r->run.evaluation_before_us = r->run.evaluation_after_us = 200;
    tune_enlarge_made(r);
    return r;
}

/* Nothing applies, nothing was measured: as with --budget 0 on a program that has no pattern of a pass. */
static inline struct tune_result *empty_result(void)
{
    struct tune_result *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->base = r->tuned = tune_config("empty", NULL, NULL);
    r->given = "the given config";
    r->speedup = r->speedup_low = r->speedup_high = 1;
    return r;
}

/* Everything was tried and nothing kept. */
static inline struct tune_result *vain_result(void)
{
    struct tune_result *r = sample_result();
    for (int i = 0; i < r->n_stages; i++) {
        r->stages[i].outcome = isfinite(r->stages[i].measured) ? TUNE_DROPPED : TUNE_NOT_TRIED;
        snprintf(r->stages[i].why, sizeof r->stages[i].why, "gate gradients: blocks.0.attn.q differs by 0.3");
    }
    r->tuned = r->base;
    r->after = r->before;
    r->speedup = r->speedup_low = r->speedup_high = 1;
    r->judged = r->sizes[0].judged = false;
    return r;
}

/* What won stage by stage did not all together. All that promised something was tried; no time was left for the rest. */
static inline struct tune_result *taken_back_result(void)
{
    struct tune_result *r = vain_result();
    while (r->stages[r->n_stages - 1].outcome == TUNE_NOT_TRIED)
        r->n_stages--;
    r->judged = r->taken_back = true;
    r->verdict = tune_verdict(1.01, 0.97, 1.05, false);
    snprintf(r->whole, sizeof r->whole, "too much noise to say: × 1.010 (0.970 to 1.050)");
    return r;
}

static inline struct tune_result *interrupted_result(void)
{
    struct tune_result *r = sample_result();
    r->n_stages = 2;
    r->n_sizes = 0;
    r->interrupted = true;
    r->out_of_time = false;
    r->before = r->after = (struct tune_point){0};
    r->speedup = r->speedup_low = r->speedup_high = NAN;
    r->judged = r->check.done = false;
    r->n_references = 0;
    return r;
}

/* NaN wherever a number can be one, and names that would be markup. */
static inline struct tune_result *hostile_result(void)
{
    static const char evil[] = "</script><img src=x onerror=alert(1)>|`*[a](javascript:1)\xff\"'&<!--";
    struct tune_result *r = sample_result();
    snprintf(r->base.name, sizeof r->base.name, "%s", evil);
    snprintf(r->bound, sizeof r->bound, "%s", evil);
    for (int i = 0; i < r->n_stages; i++) {
        struct tune_stage *s = &r->stages[i];
        s->answers = s->what = evil;
        snprintf(s->pass, sizeof s->pass, "%s+%s", evil, evil);
        snprintf(s->change, sizeof s->change, "%s", evil);
        snprintf(s->why, sizeof s->why, "%s", evil);
        s->predicted = s->measured = s->low = s->high = i % 2 ? NAN : INFINITY;
    }
    for (int i = 0; i < r->n_roadmap; i++)
        {
            r->roadmap[i] = (struct tune_idea){.what = i > 1 ? evil : NULL, .predicted = NAN, .phase = i};
            snprintf(r->roadmap[i].name, sizeof r->roadmap[i].name, "%.47s", i ? evil : "");
        }
    for (int i = 0; i < r->verdict.n; i++)
        snprintf(r->verdict.gates[i].words, sizeof r->verdict.gates[i].words, "%s", evil);
    r->references[0] = (struct tune_reference){.name = "the program with all passes", .speedup = NAN, .low = NAN, .high = NAN, .step_us = NAN};
    for (int i = 0; i < r->n_sizes; i++)
        r->sizes[i].before = r->sizes[i].after = tune_made_point(NAN, NAN, NAN);
    r->before = r->after = tune_made_point(NAN, NAN, NAN);
    r->speedup = r->speedup_low = r->speedup_high = r->seconds = NAN;
    return r;
}

#endif
