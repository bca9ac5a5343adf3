/* Every pass has a finding in programs of our own: it fires where the pass is off and would win something, with the gain that tune
 * predicts for it, and is silent in a near miss. A new pass needs a line in the table below. */
#include <jansson.h>
#include <math.h>

#include "prove/moves.h"
#include "support/own_cache.h"

static const char GPT[] = "model: {arch: gpt, dim: 32, layers: 2, heads: 2, seq: 32}\n"
                          "data: {chars: 20000, workers: 0}\n"
                          "train: {batch_size: 4, steps: 50}\n"
                          "optimize: {passes: none}\nthreads: 2\n";
static const char LLAMA[] = "model: {arch: llama, dim: 32, layers: 2, heads: 4, kv_heads: 2, ffn: 48, seq: 32}\n"
                            "data: {chars: 20000, workers: 0}\n"
                            "train: {batch_size: 4, steps: 50}\n"
                            "optimize: {passes: none}\nthreads: 2\n";

static const char TREE[] = "model: {arch: k1, tree: [3], dim: 32, heads: 2, ffn: 48, seq: 32}\nk1: {k: 2}\n"
                           "data: {chars: 20000, workers: 0}\n"
                           "train: {batch_size: 4, steps: 50}\n"
                           "optimize: {passes: none}\nthreads: 2\n";

struct example {
    const char *pass;
    const char *fires, *fires_with;         /* a config, and what is set in it; NULL: nothing */
    const char *misses, *misses_with;       /* nearly the same, where the pass has nothing to win */
};

static const struct example examples[] = {
    {"flash-attention", GPT, NULL, GPT, "optimize.flash-attention=on"},
    {"fuse-qkv", GPT, NULL, GPT, "optimize.fuse-qkv=on"},
    {"fuse-gate-up", LLAMA, NULL, GPT, NULL},                                   /* no gate */
    {"fuse-residual-norm", GPT, "optimize.fuse-residual-norm=off", GPT, "optimize.fuse-residual-norm=on"},
    {"fuse-bias-gelu", GPT, NULL, LLAMA, NULL},                                 /* SiLU */
    {"fuse-loss", GPT, "optimize.fuse-loss=off", GPT, "optimize.fuse-loss=on"},
    {"hoist-constants", GPT, NULL, GPT, "optimize.flash-attention=on"},         /* which needs no mask */
    {"fused-optimizer", GPT, NULL, GPT, "optimize.fused-optimizer=on"},
    {"async-metrics", GPT, NULL, GPT, "optimize.async-metrics=on"},
    {"no-zero-fill", GPT, "train.accumulate=3", GPT, NULL},                     /* without accumulation nothing is filled */
    {"recompute", GPT, "optimize.memory=1", GPT, "optimize.memory=100"},
    {"capture", NULL, NULL, NULL, NULL},                                        /* of a GPU alone: test_moves.c, test_rules_gpu.c */
    {"autotune", NULL, NULL, NULL, NULL},                                       /* see below: by what the file of choices says */
    {"fewer-meetings", GPT, NULL, GPT, "threads=1"},                                   /* who would meet nobody */
    {"group-levels", TREE, NULL, GPT, NULL},                                    /* no two blocks of one level */
    {"mixed-precision", GPT, NULL, GPT, NULL},                                  /* see below: by what the machine has */
};

static struct peaks some_peaks(bool bf16)
{
    return (struct peaks){.threads = 2, .gflops[NUMBERS_F32] = 50, .gflops[NUMBERS_BF16] = bf16 ? 150 : 0, .copy_gb_per_s = {80, 60, 40, 10},
                          .cache_bytes = {65536, 1 << 20, 32 << 20, 8e9}};
}

/* What the clock said is replaced: every op takes three times its arithmetic and traffic, and what lies between ops a fifth of that. */
static void set_times(struct situation *s)
{
    struct profile *p = &s->p;
    double work_us = 0;
    for (int i = 0; i < p->n_ops; i++) {
        const struct op *op = &s->m.program->ops[i];
        const struct op_roof roof = op_roof(s->m.program, op, &p->peaks);
        p->ops[i].self_us = 3 * (roof.arithmetic_us + roof.traffic_us + 0.1) * op_runs_per_step(s->m.program, op);
        p->ops[i].imbalance_us = 0;
        work_us += p->ops[i].self_us;
    }
    p->step_us = 1.2 * work_us;
    p->n_gaps = 1;
    p->gaps[0] = (struct profile_part){"dispatch", 0.2 * work_us};
    s->m.data_wait_us = 0;
}

/* The finding that names the pass, in a config with settings; NAN: there is none. Tune must predict the same, and say as much. */
static double expected_gain(const char *config, const char *set, const char *pass, bool bf16)
{
    struct config c;
    struct situation s;
    struct error err;
    struct proposal proposal;
    const struct peaks peaks = some_peaks(bf16);
    const struct situation_options options = {.steps = 1, .peaks = &peaks, .ask_passes = true, .usable_cores = 2};
    assert_ok(config_parse(&c, "tiny", config, strlen(config), &set, set ? 1 : 0, &err), err);
    assert_ok(situation_measure(&s, &c, &(struct situation_options){.steps = 1, .peaks = &peaks}, &err), err);
    s.p.peaks = peaks;
    set_times(&s);
    assert_ok(situation_judge(&s, &options, &err), err);
    assert_ok(propose_pass(&proposal, &s, pass_find(pass), &err), err);
    double gain = NAN;
    for (int i = 0; i < s.p.n_findings; i++) {
        const struct finding *f = &s.p.findings[i];
        if (!f->pass || strcmp(f->pass, pass))
            continue;
        assert_true(isnan(gain));                       /* one finding for each pass */
        gain = f->speedup;
        assert_string_equal(f->rule, pass_table[pass_find(pass)].answers);
        assert_int_equal(f->effort, pass_table[pass_find(pass)].effort);        /* which tune says */
        assert_true(f->speedup_low <= f->speedup && f->speedup <= f->speedup_high && f->share >= 0 && f->share <= 1);
        assert_true(*f->where && *f->cause && *f->evidence);
        assert_non_null(strstr(f->fix, !strcmp(pass, "mixed-precision") ? "optimize.precision=bf16" : pass));
        if (!set || !strstr(set, "=off"))               /* which tune leaves alone */
            assert_near(proposal.predicted, f->speedup, 0, "what tune predicts");
    }
    situation_release(&s);
    return gain;
}

static const struct example *example_of(const char *pass)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        if (!strcmp(examples[i].pass, pass))
            return &examples[i];
    fail_msg("pass %s has no example of its finding", pass);
    return NULL;
}

static void check_example(const struct example *e)
{
    const bool memory = !strcmp(e->pass, "recompute");          /* costs time, and is named for what it saves */
    const double gain = expected_gain(e->fires, e->fires_with, e->pass, true);
    if (!(memory ? gain > 0.5 && gain < 1 : gain > 1.0005))
        fail_msg("%s: expected gain %g", e->pass, gain);
    const double missed = expected_gain(e->misses, e->misses_with, e->pass, strcmp(e->pass, "mixed-precision"));
    if (!isnan(missed))
        fail_msg("%s: a finding with %g in a near miss", e->pass, missed);
}

static void test_every_pass_has_a_finding(void **state)
{
    (void)state;
    for (int i = 0; pass_table[i].name; i++) {
        const struct example *e = example_of(pass_table[i].name);
        assert_non_null(rule_text_find(pass_table[i].answers));
        if (e->fires)
            check_example(e);
    }
}

/* Every choice in the file becomes this variant, 15 µs against first_us. */
static void force(const char *variant, double first_us)
{
    json_t *file = json_load_file(choices_path(), 0, NULL), *all = json_object_get(file, "choices"), *entry;
    const char *key;
    assert_true(json_object_size(all) > 0);
    json_object_foreach(all, key, entry)
        json_object_set_new(all, key, json_pack("{s:s, s:f, s:f}", "variant", variant, "us", 15.0, "first_us", first_us));
    assert_int_equal(json_dump_file(file, choices_path(), 0), 0);
    json_decref(file);
    choices_forget();
}

static void test_autotune_has_a_finding(void **state)
{
    (void)state;
    expected_gain(GPT, NULL, "autotune", false);                /* times them once */
    force("blas", 25);
    assert_true(expected_gain(GPT, NULL, "autotune", false) > 1.0005);
    force("blas", 15);                                          /* no faster than what is done without a choice */
    assert_true(isnan(expected_gain(GPT, NULL, "autotune", false)));
}

/* Two passes answer unfused-projections: each has a finding of its own, about its own ops. */
static void test_one_finding_for_each_pass(void **state)
{
    (void)state;
    const double qkv = expected_gain(LLAMA, NULL, "fuse-qkv", false), gate = expected_gain(LLAMA, NULL, "fuse-gate-up", false);
    assert_true(qkv > 1.0005 && gate > 1.0005 && qkv != gate);
    assert_true(isnan(expected_gain(LLAMA, "optimize.fuse-qkv=on", "fuse-qkv", false)));
    assert_true(expected_gain(LLAMA, "optimize.fuse-qkv=on", "fuse-gate-up", false) > 1.0005);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pass_has_a_finding), TEST_WITH_CACHE(test_autotune_has_a_finding),
        cmocka_unit_test(test_one_finding_for_each_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
