/* The loop of tune on a tiny model: what is given and what comes out, the check before it, the judgement after it. */
#include <math.h>
#include <string.h>

#include "prove/prove_int.h"
#include "prove/tune_int.h"
#include "support/check.h"
#include "tune_consistent.h"

static const char TINY[] =
    "model: {arch: gpt, dim: 32, layers: 1, heads: 2, seq: 16}\n"
    "data: {chars: 20000, workers: 0}\n"
    "train: {batch_size: 2, accumulate: 4, steps: 50, lr: 1.0e-2, warmup: 0}\n"
    "eval: {every: 1, batches: 8}\n"
    "optimize: {passes: none}\n"
    "verify: {steps: 4, seconds: 0.02}\n"
    "threads: 1\n";

static struct config tiny(const char *set)
{
    struct config c;
    struct error err;
    assert_ok(config_parse(&c, "tiny", TINY, sizeof TINY - 1, &set, set ? 1 : 0, &err), err);
    return c;
}

static struct peaks some_peaks(void)
{
    return (struct peaks){.threads = 1, .gflops[NUMBERS_F32] = 50, .copy_gb_per_s = {80, 60, 40, 10},
                          .cache_bytes = {65536, 1 << 20, 32 << 20, 8e9}};
}

static struct tune_result tuned(const struct config *c, double budget_s)
{
    static struct tune_result r;
    struct error err;
    const struct peaks peaks = some_peaks();
    assert_ok(tune_run(&r, c, &(struct tune_options){.budget_s = budget_s, .peaks = &peaks}, &err), err);
    return r;
}

static void test_loop(void **state)
{
    (void)state;
    struct config c = tiny(NULL);
    struct tune_result r = tuned(&c, 100);
    assert_true(r.n_stages >= 2 && r.n_roadmap >= r.n_stages && *r.bound && !r.out_of_time && !r.interrupted);
    assert_int_equal(r.base.optimize.passes.choice, PASSES_NONE);
    assert_int_equal(r.tuned.model.vocab, c.model.vocab);
    const struct tune_stage *evaluation = NULL;
    for (int i = 0; i < r.n_stages; i++) {
        const struct tune_stage *s = &r.stages[i];
        if (!strcmp(s->pass, "eval-schedule"))
            evaluation = s;
        if (!*s->change || !*s->why || !(s->low <= s->measured && s->measured <= s->high))
            fail_msg("%s: change '%s', why '%s', %g in %g to %g", s->pass, s->change, s->why, s->measured, s->low, s->high);
    }
    assert_consistent_result(&r);
    assert_true(r.check.done && r.check.low <= r.check.high && r.check.believed >= 1 && r.check.believed >= r.check.low && r.check.believed >= 1 / r.check.high);
    assert_true(r.check.openings >= 3 && r.check.turns >= 9 && (r.stages[0].around || (r.stages[0].openings >= 3 && r.stages[0].turns >= 9)));
    /* Which stages are kept is the clock's word; but after every step a validation of eight batches is too much on any machine. */
    assert_true(evaluation && evaluation->outcome == TUNE_KEPT && r.before.mfu_percent > 0 && r.after.mfu_percent > 0);
    assert_true(r.after.ops <= r.before.ops || r.tuned.train.batch_size < c.train.batch_size);
    for (int i = 1; i < r.n_roadmap; i++)
        assert_true(r.roadmap[i - 1].phase < r.roadmap[i].phase ||
                    (r.roadmap[i - 1].phase == r.roadmap[i].phase && r.roadmap[i - 1].predicted >= r.roadmap[i].predicted));

    r = tuned(&c, 0);                       /* predictions only */
    assert_true(!r.out_of_time && r.n_roadmap > 0 && r.n_stages > 0);
    assert_true(r.larger_expected == 0);    /* --larger-batch would not try anything either */
    for (int i = 0; i < r.n_stages; i++)
        assert_true(r.stages[i].outcome == TUNE_NOT_TRIED && isnan(r.stages[i].measured));
}

static bool is_in_roadmap(const struct tune_result *r, const char *name)
{
    for (int i = 0; i < r->n_roadmap; i++)
        if (!strcmp(r->roadmap[i].name, name))
            return true;
    return false;
}

static void assert_same_config(const struct config *a, const struct config *b)
{
    struct config_difference d;
    int at = 0;
    if (config_differ(&d, a, b, &at))
        fail_msg("%s is %s and %s", d.key, d.a, d.b);
}

/* The base is what was given, and so is what comes out where nothing was proved. */
static void test_what_is_given_stays(void **state)
{
    (void)state;
    static const char *const passes[] = {"optimize.passes=all", "optimize.passes=[fuse-loss, fewer-meetings]", "optimize.flash-attention=off"};
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        const struct config c = tiny(passes[i]);
        const struct tune_result r = tuned(&c, 0);
        assert_same_config(&r.base, &c);
        assert_same_config(&r.tuned, &c);
    }
    /* also where all was tried, and no gate can hold */
    struct config c = tiny("optimize.passes=[flash-attention, fewer-meetings]");
    c.verify.validation = -1;
    c.eval.every.n = 0;
    const struct tune_result r = tuned(&c, 100);
    assert_true(r.n_stages > 0);
    for (int i = 0; i < r.n_stages; i++) {
        const char *why = strstr(r.stages[i].pass, "mixed-precision") ? "gate " : "gate validation";    /* bf16 may fail an earlier one */
        assert_int_equal(r.stages[i].outcome, TUNE_DROPPED);
        assert_memory_equal(r.stages[i].why, why, strlen(why));
    }
    assert_same_config(&r.tuned, &c);
    assert_true(r.before.step_us > 0 && r.before.step_us == r.after.step_us && r.speedup == 1 && !r.judged);
}

/* What is switched off by its key is not proposed, nor what is on. */
static void test_switches(void **state)
{
    (void)state;
    struct config c = tiny(NULL);
    const int flash = pass_find("flash-attention"), recompute = pass_find("recompute");
    struct tune_result r = tuned(&c, 0);
    assert_true(is_in_roadmap(&r, "flash-attention") && is_in_roadmap(&r, "mixed-precision") && !is_in_roadmap(&r, "recompute"));
    assert_string_equal(r.given, "the program without passes");
    c.optimize.pass[flash] = c.optimize.pass[recompute] = PASS_OFF;
    c.optimize.precision = PRECISION_BF16;
    r = tuned(&c, 0);
    assert_true(!is_in_roadmap(&r, "flash-attention") && !is_in_roadmap(&r, "mixed-precision") && is_in_roadmap(&r, "fuse-qkv"));
    c = tiny("optimize.passes=all");
    r = tuned(&c, 0);
    assert_true(!is_in_roadmap(&r, "flash-attention") && is_in_roadmap(&r, "mixed-precision"));
    assert_string_equal(r.given, "the given config");
}

/* ---- the base against itself ---- */

/* Dropout whose seed comes from outside: other bits in every run, as with a library that is not safe. */
static void seed_from_outside(struct program *p, void *context)
{
    const int run = (*(int *)context)++;
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_DROPOUT)
            p->ops[i].attrs.seed += (uint64_t)run;
}

/* The first run of the second, too, differs from the first: no gate of b sees that. */
static void other_rate(struct program *p, void *context)
{
    (void)context;
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_LR)
            p->ops[i].attrs.lr *= 1.0001f;
}

static void poison(struct program *p, void *context)
{
    (void)context;
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_ATTN_SCORES)
            p->ops[i].attrs.scale = NAN;
}

static void slow_down(struct program *p, void *context)
{
    (void)context;
    const value_id v = program_add_value(p, "ballast", VALUE_STATE, F32, shape_of(1, (int64_t)1 << 20));
    p->phase = PHASE_OPTIMIZE;
    for (int i = 0; i < 500; i++)           /* two gigabytes are zeroed in every step, which takes a millisecond without (ten under a sanitizer) */
        program_emit(p, OP_ZERO, (struct op_attrs){0}, "ballast", 1, v);
}

static void refuse(const struct config *c, trial_change_fn *change, const char *one, const char *two)
{
    static struct tune_result r;
    struct error err;
    int runs = 0;
    const struct peaks peaks = some_peaks();
    assert_int_equal(tune_run(&r, c, &(struct tune_options){.budget_s = 100, .peaks = &peaks, .change = change, .change_context = &runs},
                              &err), ANSWER_NO);
    assert_says(&err, "'tiny' cannot be tuned", one, two, NULL);
    assert_int_equal(r.n_stages, 0);        /* and no pass is blamed */
}

static void test_what_is_not_itself_is_refused(void **state)
{
    (void)state;
    const struct config dropping = tiny("model.dropout=0.2"), c = tiny(NULL);
    refuse(&dropping, seed_from_outside, "do not give the same bits", "part at step 1");
    refuse(&c, other_rate, "do not give the same bits", "the first run differs");
    refuse(&c, poison, "its loss is not a number within 5 steps", "train.lr");
    refuse(&c, slow_down, "measured 3 times against itself", "0.");
}

/* ---- verdicts ---- */

static struct verdict verdict_of(double value, double low, double high, bool judged, double memory, bool loss)
{
    struct verdict v = {.n = 3, .gates = {{.name = "loss-curve", .pass = loss, .judged = true, .words = "losses differ"},
                                          {.name = "memory", .pass = true, .judged = true, .a = 100, .b = memory},
                                          {.name = "throughput", .pass = judged && low > 1, .judged = judged, .value = value, .low = low,
                                           .high = high, .words = "groups well apart"}}};
    return v;
}

/* What was kept for its memory is judged by what was asked of it. */
static void test_speed_of_what_saves_memory(void **state)
{
    (void)state;
    struct verdict v = verdict_of(1.00, 0.99, 1.01, true, 90, true);
    verdict_limit_speed(&v, 0.98);
    assert_true(verdict_gate(&v, "throughput")->pass && verdict_gate(&v, "throughput")->limit == 0.98 && v.pass);
    verdict_limit_speed(&v, 0.995);
    assert_true(!verdict_gate(&v, "throughput")->pass && !v.pass);
}

static void test_decisions(void **state)
{
    (void)state;
    const struct { double value, low, high; bool judged; double memory; bool loss; enum tune_outcome outcome; const char *why; } cases[] = {
        {1.20, 1.15, 1.25, true, 100, true, TUNE_KEPT, "faster"},
        {1.20, 1.15, 1.25, true, 100, false, TUNE_DROPPED, "gate loss-curve: losses differ"},
        {0.90, 0.85, 0.95, true, 100, true, TUNE_DROPPED, "slower"},
        {0.90, 0.85, 0.95, true, 50, true, TUNE_DROPPED, "slower"},
        {1.00, 0.99, 1.01, true, 100, true, TUNE_NO_GAIN, "no difference"},
        {1.00, 0.99, 1.01, true, 90, true, TUNE_KEPT, "no slower, and memory falls"},
        {0.996, 0.993, 0.999, true, 90, true, TUNE_DROPPED, "slower"},          /* proved to be, if only by a little */
        {0.996, 0.977, 1.015, true, 90, true, TUNE_NO_GAIN, "no difference"},   /* it may be slower by more than 2 % */
        {1.02, 1.01, 1.03, true, 90, true, TUNE_KEPT, "no slower, and memory falls"},
        {1.05, 0.90, 1.20, false, 100, true, TUNE_NO_VERDICT, "too much noise"},
        {1.50, 0.90, 2.10, false, 100, true, TUNE_NO_VERDICT, "groups well apart"},
        {1.50, 0.90, 2.10, false, 50, true, TUNE_NO_VERDICT, "groups well apart"},
        {1.50, 1.20, 2.10, false, 100, true, TUNE_NO_VERDICT, "groups well apart"},     /* faster in both groups, but by how much? */
        {0.60, 0.50, 0.90, false, 100, true, TUNE_NO_VERDICT, "groups well apart"},
        {1.50, 1.20, 2.10, false, 50, true, TUNE_NO_VERDICT, "groups well apart"},
        {1.50, 1.20, 2.10, false, 100, false, TUNE_DROPPED, "gate loss-curve: losses differ"},
        {1.02, 1.01, 1.03, true, 100, true, TUNE_NO_VERDICT, "the config seems to win 1.015 times over itself"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct verdict v = verdict_of(cases[i].value, cases[i].low, cases[i].high, cases[i].judged, cases[i].memory, cases[i].loss);
        char why[TUNE_WHY];
        const enum tune_outcome o = tune_decide(&v, 1.015, why);
        if (o != cases[i].outcome || !strstr(why, cases[i].why))
            fail_msg("case %zu: %s, '%s'", i, tune_outcome_word(o), why);
    }
}

/* Gains of stages are multiplied: one that was there in a part of the turns only would be there for good. */
static void test_a_gain_of_groups_is_the_smaller_one(void **state)
{
    (void)state;
    const struct gate even = {.value = 1.87, .low = 1.85, .high = 1.89}, grouped = {.value = 1.87, .low = 1.44, .high = 2.01, .grouped = true};
    assert_float_equal(tune_gain(&even), 1.87, 0);
    assert_float_equal(tune_gain(&grouped), 1.44, 0);
}

/* What was kept stage by stage, and breaks a gate all together, is not written. */
static void test_what_does_not_hold_is_taken_back(void **state)
{
    (void)state;
    static struct tune_result r;
    const struct peaks peaks = some_peaks();
    const struct tune_options o = {.budget_s = 100, .peaks = &peaks};
    struct config c = tiny(NULL);
    struct error err;
    for (int broken = 0; broken < 2; broken++) {
        c.verify.validation = broken ? -1 : 1;
        r = (struct tune_result){.base = c, .given = "the given config", .n_stages = 2,
                                 .stages = {{.pass = "flash-attention", .measured = 1.1, .outcome = TUNE_KEPT},
                                            {.pass = "eval-schedule", .measured = 1.1, .around = true, .outcome = TUNE_KEPT}}};
        struct tuner t = {.r = &r, .o = &o, .now = c, .believed = broken ? 1 : 0, .base_bytes = 1, .allowed_bytes = 2, .start_s = clock_s()};
        config_pass_switch(&t.now, pass_find("flash-attention"), true);
        t.now.eval.every.n = 7;
        assert_ok(tune_judge_whole(&t, &err), err);
        assert_true(r.judged && r.before.step_us > 0 && r.before.planned_bytes > 0 && r.before.mfu_percent > 0);
        const bool open = !verdict_gate(&r.verdict, "throughput")->judged;      /* other work made turns of two kinds */
        assert_int_equal(r.taken_back, broken || open);
        assert_int_equal(config_pass_is_on(&t.now, pass_find("flash-attention")), !broken && !open);
        assert_int_equal(t.now.eval.every.n, 7);        /* the step has nothing to do with it */
        assert_int_equal(r.stages[0].outcome, broken ? TUNE_DROPPED : open ? TUNE_NO_VERDICT : TUNE_KEPT);
        assert_int_equal(r.stages[1].outcome, TUNE_KEPT);
        assert_near(r.speedup, r.before.step_us / r.after.step_us, 1e-9, "the speed-up");
        if (broken)
            assert_true(r.speedup == 1 && strstr(r.stages[0].why, "it won alone; with all else that was kept: gate validation") && strstr(r.whole, "gate validation"));
    }
}

/* Stops at the so many-th word of progress. */
struct stopper {
    volatile sig_atomic_t stop;
    int after;
};

static void stop_after(void *context, const char *what, double part)
{
    struct stopper *s = context;
    (void)what;
    (void)part;
    s->stop = --s->after <= 0;
}

/* Wherever it is stopped there is a result, and its config has what the stages say was kept. */
static void test_stopped(void **state)
{
    (void)state;
    struct config c = tiny("verify.gradients=0.01");
    const struct peaks peaks = some_peaks();
    for (int after = 0; after <= 4; after++) {
        static struct tune_result r;
        struct error err;
        struct stopper s = {.stop = after == 0, .after = after};
        assert_ok(tune_run(&r, &c, &(struct tune_options){.budget_s = 100, .peaks = &peaks, .stop = &s.stop,
                                                          .progress = after ? stop_after : NULL, .context = &s}, &err), err);
        assert_true(r.interrupted && r.n_stages <= after / 2);
        bool kept = false;
        for (int i = 0; i < r.n_stages; i++)
            kept |= r.stages[i].outcome == TUNE_KEPT;
        const struct config base = r.base;
        assert_int_equal(kept, memcmp(&r.tuned.optimize, &base.optimize, sizeof base.optimize) || r.tuned.train.batch_size != 2 ||
                                   r.tuned.eval.every.n != 1);
    }
}

/* A profile has rows of one length; what is proposed by it has those of the config, whose programs are told positions. */
static void test_rows_of_several_lengths(void **state)
{
    (void)state;
    static const char text[] = "model: {arch: gpt, dim: 32, layers: 1, heads: 2, seq: 64}\n"
                               "data: {domain: code, samples: lines, chars: 20000, workers: 0, bucket: 16}\n"
                               "train: {batch_size: 2, steps: 50, lr: 1.0e-2, warmup: 0}\n"
                               "eval: {every: 10, batches: 2}\noptimize: {passes: none}\nverify: {steps: 2, seconds: 0.02}\nthreads: 1\n";
    static struct tune_result r;
    const struct peaks peaks = some_peaks();
    struct stopper s = {.after = 4};
    struct config c;
    struct error err = {.text = ""};
    assert_ok(config_parse(&c, "tiny", text, sizeof text - 1, NULL, 0, &err), err);
    const enum status st = tune_run(&r, &c, &(struct tune_options){.budget_s = 100, .peaks = &peaks, .stop = &s.stop, .progress = stop_after, .context = &s}, &err);
    if (st != OK && !(st == ANSWER_NO && strstr(err.text, "cannot be tuned now")))         /* the machine was not quiet */
        fail_msg("%s", err.text);
    assert_true(st != OK || r.run.steps == 50);
}

/* A larger update stays where larger batches were kept; else all that goes with it is as it was given, but for how often tune lets one look. */
static void test_larger_update_only_with_larger_batches(void **state)
{
    (void)state;
    struct tune_result *r = calloc(1, sizeof *r);
    assert_non_null(r);
    const struct config given = tiny(NULL);
    struct tuner t = {.r = r};
    r->larger = (struct tune_larger){.asked = true, .times = 4, .given = given, .sweep = {.n = 2, .spot = 1, .points = {{.batch = 2}, {.batch = 8}}}};
    r->base = t.now = config_with_update(&given, 4, LR_SQRT);
    t.now.train.batch_size *= 4;
    t.now.train.accumulate /= 4;
    tune_keep_or_shrink(&t);
    assert_int_equal(r->larger.times, 4);
    assert_int_equal(t.now.train.batch_size, 4 * given.train.batch_size);
    t.now = r->base;
    t.now.eval.every.n = 7;
    tune_keep_or_shrink(&t);
    assert_int_equal(r->larger.times, 1);
    assert_memory_equal(&t.now.train, &given.train, sizeof given.train);
    assert_memory_equal(&r->base.train, &given.train, sizeof given.train);
    assert_int_equal(t.now.log.every, given.log.every);
    assert_int_equal(t.now.checkpoint.every.n, given.checkpoint.every.n);
    assert_int_equal(t.now.eval.every.n, 28);
    free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_larger_update_only_with_larger_batches),
        cmocka_unit_test(test_loop),      cmocka_unit_test(test_what_is_given_stays), cmocka_unit_test(test_switches),
        cmocka_unit_test(test_decisions),
        cmocka_unit_test(test_speed_of_what_saves_memory),
        cmocka_unit_test(test_a_gain_of_groups_is_the_smaller_one), cmocka_unit_test(test_what_is_not_itself_is_refused),
        cmocka_unit_test(test_what_does_not_hold_is_taken_back), cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_rows_of_several_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
