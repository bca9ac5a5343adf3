/* What tune can do: predictions, proposals of settings, and the loop on a tiny model. */
#include <math.h>
#include <string.h>

#include "prove/moves.h"
#include "support/check.h"

static const char TINY[] =
    "model: {arch: gpt, dim: 32, layers: 1, heads: 2, seq: 16}\n"
    "data: {chars: 20000, workers: 0}\n"
    "train: {batch_size: 2, accumulate: 4, steps: 50, lr: 1.0e-2, warmup: 0}\n"
    "eval: {every: 1, batches: 8}\n"
    "optimize: {passes: none}\n"
    "verify: {steps: 4, seconds: 0.02}\n"
    "threads: 2\n";

static struct config tiny(const char *set)
{
    struct config c;
    struct error err;
    assert_ok(config_parse(&c, "tiny", TINY, sizeof TINY - 1, &set, set ? 1 : 0, &err), err);
    return c;
}

static struct peaks some_peaks(void)
{
    return (struct peaks){.threads = 2, .gemm_gflops = 50, .copy_gb_per_s = {80, 60, 40, 10},
                          .cache_bytes = {65536, 1 << 20, 32 << 20, 8e9}};
}

static struct situation measured(const struct config *c)
{
    struct situation s;
    struct error err;
    const struct peaks peaks = some_peaks();
    assert_ok(situation_measure(&s, c, &(struct situation_options){.steps = 4, .peaks = &peaks}, &err), err);
    return s;
}

static struct move move_named(const char *name)
{
    struct move m;
    for (int i = 0; move_get(i, &m); i++)
        if (!strcmp(m.name, name))
            return m;
    fail_msg("no move %s", name);
    return m;
}

static struct proposal proposed(const struct situation *s, const char *name)
{
    const struct move m = move_named(name);
    struct proposal p;
    struct error err;
    assert_ok(m.propose(&p, s, m.pass, &err), err);
    return p;
}

/* The same when these are all the findings. */
static struct proposal proposed_on(struct situation *s, struct finding *findings, int n, const char *name)
{
    struct finding *const found = s->p.findings;
    const int n_found = s->p.n_findings;
    s->p.findings = findings;
    s->p.n_findings = n;
    const struct proposal p = proposed(s, name);
    s->p.findings = found;
    s->p.n_findings = n_found;
    return p;
}

static void test_every_pass_is_a_move(void **state)
{
    (void)state;
    struct move m, other;
    int passes = 0, all = 0;
    for (; pass_table[passes].name; passes++) {
        assert_true(move_get(passes, &m));
        assert_string_equal(m.name, pass_table[passes].name);
        assert_int_equal(m.pass, passes);
    }
    for (; move_get(all, &m); all++) {
        assert_true(m.what && m.answers && m.propose && rule_text_find(m.answers));
        for (int i = 0; i < all && move_get(i, &other); i++)
            assert_string_not_equal(m.name, other.name);
    }
    assert_true(all > passes && all <= 64 && all <= TUNE_IDEAS);
    assert_int_equal(move_phase(&(struct move){.effort = PASS_LOW}), PHASE_QUICK);
    assert_int_equal(move_phase(&(struct move){.effort = PASS_MEDIUM}), PHASE_REWRITE);
    assert_int_equal(move_phase(&(struct move){.trade = true}), PHASE_TRADE);
}

/* A program is predicted to take what it took; without some of its ops, as much less as they took. */
static void test_prediction(void **state)
{
    (void)state;
    const struct config c = tiny(NULL);
    struct situation s = measured(&c);
    for (int i = 0; i < s.p.n_ops; i++) {   /* in place of what was measured, so that other work on the machine does not matter */
        s.p.ops[i].self_us = op_runs_per_step(s.m.program, &s.m.program->ops[i]);
        s.p.ops[i].imbalance_us = 0;
    }
    s.p.step_us = 1000;
    const double same = predict_step_us(&s.p, s.m.program, s.m.program);
    assert_near(same, 1000, 1e-6, "the program itself");

    struct config next = s.m.config;
    struct program *then;
    struct error err;
    next.train.accumulate = 2;              /* half of the micro-batches */
    assert_ok(train_step_program(&then, &next, 50, NULL, &err), err);
    const double half = predict_step_us(&s.p, s.m.program, then);
    assert_true(half < 0.75 * same && half > 0.4 * same);
    program_free(then);

    double work = 0;                        /* with fewer meetings it takes that and some of the rest: its threads meet less often */
    for (int i = 0; i < s.p.n_ops; i++)
        work += s.p.ops[i].self_us;
    next = config_with_passes(&s.m.config, (pass_set)1 << pass_find("fewer-meetings"));
    assert_ok(train_step_program(&then, &next, 50, NULL, &err), err);
    const double rest = predict_step_us(&s.p, s.m.program, then) - work;
    assert_true(work < same && rest < 0.8 * (same - work) && rest > 0.2 * (same - work));
    program_free(then);
    situation_release(&s);
}

static void test_batch_size(void **state)
{
    (void)state;
    const struct config c = tiny(NULL), dropping = tiny("model.dropout=0.1");
    struct situation s = measured(&c);
    const struct proposal p = proposed(&s, "batch-size");
    assert_int_equal(p.places, 1);          /* eight micro-batches of this size cost more dispatch than one */
    assert_true(p.predicted > 1 && p.next.train.batch_size > 2);
    assert_int_equal(p.next.train.batch_size * p.next.train.accumulate, 8);
    assert_int_equal(p.next.eval.batch_size, 2);
    assert_non_null(strstr(p.change, "train.batch_size: "));
    situation_release(&s);
    s = measured(&dropping);
    assert_int_equal(proposed(&s, "batch-size").places, 0);
    situation_release(&s);
}

static void test_evaluation(void **state)
{
    (void)state;
    const struct config c = tiny(NULL);
    struct situation s = measured(&c);
    struct finding share = {.rule = "eval-share", .speedup = 1.4};
    assert_true(s.m.evaluation_us > 0 && s.m.evaluation_every == 1);
    s.p.step_us = 1000;
    s.m.evaluation_us = 500;
    const struct proposal p = proposed_on(&s, &share, 1, "eval-schedule");
    assert_true(p.places == 1 && p.next.eval.every.n == 25 && !p.next.eval.every.epochs);       /* 500 / 25 is 2 % of 1020 */
    assert_near(p.predicted, 1.4, 0, "what the finding expects");
    assert_int_equal(proposed_on(&s, &share, 0, "eval-schedule").places, 0);
    situation_release(&s);
}

static void test_loader(void **state)
{
    (void)state;
    const struct config c = tiny("data.workers=1");
    struct situation s = measured(&c);
    struct finding stall = {.rule = "data-stall", .speedup = 1.25};
    const struct proposal p = proposed_on(&s, &stall, 1, "loader");
    assert_true(p.places == 1 && p.next.data.workers == 2 && p.next.data.prefetch > c.data.prefetch);
    assert_near(p.predicted, 1.25, 0, "what the finding expects");
    assert_int_equal(proposed_on(&s, &stall, 0, "loader").places, 0);
    situation_release(&s);
}

/* ---- the loop ---- */

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
    /* Which stages are kept is the clock's word; but after every step a validation of eight batches is too much on any machine. */
    assert_true(evaluation && evaluation->kept && r.before.mfu_percent > 0 && r.after.mfu_percent > 0);
    assert_true(r.after.ops <= r.before.ops || r.tuned.train.batch_size < c.train.batch_size);
    for (int i = 1; i < r.n_roadmap; i++)
        assert_true(r.roadmap[i - 1].phase < r.roadmap[i].phase ||
                    (r.roadmap[i - 1].phase == r.roadmap[i].phase && r.roadmap[i - 1].predicted >= r.roadmap[i].predicted));

    /* where no gate can hold, nothing that touches the step is kept, and the reason is said */
    c.verify.validation = -1;
    r = tuned(&c, 100);
    for (int i = 0; i < r.n_stages; i++) {
        if (!strcmp(r.stages[i].pass, "eval-schedule"))
            continue;
        assert_false(r.stages[i].kept);         /* bf16 may fail an earlier gate */
        const char *why = strcmp(r.stages[i].pass, "mixed-precision") ? "gate validation" : "gate ";
        assert_memory_equal(r.stages[i].why, why, strlen(why));
    }
    assert_int_equal(r.tuned.optimize.passes.choice, PASSES_NONE);

    r = tuned(&c, 0);                       /* predictions only */
    assert_true(r.out_of_time && r.n_roadmap > 0 && r.n_stages > 0);
    for (int i = 0; i < r.n_stages; i++)
        assert_true(!r.stages[i].kept && isnan(r.stages[i].measured));
}

static bool is_in_roadmap(const struct tune_result *r, const char *name)
{
    for (int i = 0; i < r->n_roadmap; i++)
        if (!strcmp(r->roadmap[i].name, name))
            return true;
    return false;
}

/* What is switched off is not proposed, nor what is on; recompute is kept, within the memory that the config gives. */
static void test_switches(void **state)
{
    (void)state;
    struct config c = tiny("optimize.passes=all");
    struct tune_result r = tuned(&c, 0);
    assert_true(is_in_roadmap(&r, "flash-attention") && is_in_roadmap(&r, "mixed-precision") && !is_in_roadmap(&r, "recompute"));
    const int flash = config_pass_find("flash-attention"), recompute = config_pass_find("recompute");
    assert_true(config_pass_is_on(&r.tuned, recompute) && !config_pass_is_on(&r.tuned, flash));
    c.optimize.pass[flash] = c.optimize.pass[recompute] = PASS_OFF;
    c.optimize.precision = PRECISION_BF16;
    r = tuned(&c, 0);
    assert_true(!is_in_roadmap(&r, "flash-attention") && !is_in_roadmap(&r, "mixed-precision") && is_in_roadmap(&r, "fuse-qkv"));
    assert_false(config_pass_is_on(&r.tuned, recompute));
    assert_int_equal(r.tuned.optimize.pass[flash], PASS_OFF);
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
            kept |= r.stages[i].kept;
        const struct config base = r.base;
        assert_int_equal(kept, memcmp(&r.tuned.optimize, &base.optimize, sizeof base.optimize) || r.tuned.train.batch_size != 2 ||
                                   r.tuned.eval.every.n != 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pass_is_a_move), cmocka_unit_test(test_prediction), cmocka_unit_test(test_batch_size),
        cmocka_unit_test(test_evaluation),           cmocka_unit_test(test_loader),     cmocka_unit_test(test_loop),
        cmocka_unit_test(test_switches),             cmocka_unit_test(test_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
