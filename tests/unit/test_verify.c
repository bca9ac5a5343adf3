/* Verdicts: equal configs pass, what was broken on purpose is caught by the right gate, what cannot be compared is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/json_memory.h"
#include "program/rewrite.h"
#include "prove/prove_int.h"
#include "support/check.h"

static const char TINY[] =
    "model: {arch: gpt, dim: 32, layers: 1, heads: 2, seq: 16}\n"
    "data: {chars: 20000, workers: 0}\n"
    "train: {batch_size: 4, steps: 50, lr: 1.0e-2, warmup: 0}\n"
    "eval: {every: 0, batches: 2}\n"
    "optimize: {passes: none}\n"
    "verify: {steps: 6, seconds: 0.02, min_gain: -1}\n"
    "threads: 2\n";

/* The tiny config with up to three overrides; NULL: fewer. */
static struct config tiny(const char *one, const char *two, const char *three)
{
    const char *sets[] = {one, two, three};
    const int n = !one ? 0 : !two ? 1 : !three ? 2 : 3;
    struct config c;
    struct error err;
    assert_ok(config_parse(&c, "tiny", TINY, sizeof TINY - 1, sets, n, &err), err);
    return c;
}

static struct verdict verdict_on(struct config a, struct config b, trial_change_fn *change, void *context)
{
    struct verdict v;
    struct error err;
    assert_ok(verify_configs(&v, &a, &b, &(struct verify_options){.change = change, .change_context = context}, &err), err);
    return v;
}

/* Exactly these gates fail; the list ends with NULL. */
static void assert_failed(const struct verdict *v, ...)
{
    const char *wanted[GATES_MAX];
    int n = 0, failed = 0;
    va_list args;
    va_start(args, v);
    while ((wanted[n] = va_arg(args, const char *)))
        n++;
    va_end(args);
    for (int i = 0; i < v->n; i++) {
        bool should = false;
        for (int k = 0; k < n; k++)
            should |= !strcmp(wanted[k], v->gates[i].name);
        if (v->gates[i].pass == should)
            fail_msg("gate %s should %s: %s", v->gates[i].name, should ? "fail" : "pass", v->gates[i].words);
        failed += !v->gates[i].pass;
    }
    assert_int_equal(failed, n);
    assert_int_equal(v->pass, n == 0);
}

/* --- configs that are equal, or compute the same ------------------------------------------------------------------- */

static void test_equal_configs(void **state)
{
    (void)state;
    /* One thread: two that share a core with other work take steps of a time slice, or of none. What the clock says is not asked. */
    const struct config c = tiny("verify.min_gain=-1", "verify.seconds=0.3", "threads=1");
    const struct verdict v = verdict_on(c, c, NULL, NULL);
    static const char *const order[] = {"gradients", "loss-curve", "validation", "determinism", "memory", "throughput"};
    assert_failed(&v, NULL);
    assert_int_equal(v.n, 6);
    for (int i = 0; i < 6; i++) {
        assert_string_equal(v.gates[i].name, order[i]);
        assert_true(v.gates[i].words[0] && v.gates[i].value_text[0] && v.gates[i].limit_text[0]);
        assert_true(v.gates[i].judged || (i == 5 && strstr(v.gates[i].words, "groups well apart")));
    }
    assert_near(verdict_gate(&v, "gradients")->value, 0, 0, "the error of equal gradients");
    assert_near(verdict_gate(&v, "loss-curve")->value, 0, 0, "the difference of equal curves");
    assert_near(verdict_gate(&v, "memory")->value, 1, 0, "memory");
    const struct gate *g = verdict_gate(&v, "throughput");
    assert_true(g->low <= g->value && g->value <= g->high && g->a > 0 && g->b > 0);
    assert_true(g->openings >= 3 && g->turns >= g->openings * TURNS_FEWEST && strstr(g->words, " openings"));
    assert_true(!verdict_gate(&v, "memory")->openings && !verdict_gate(&v, "memory")->turns);
    assert_null(verdict_gate(&v, "no such gate"));
}

/* No config is 1.3 times as fast as itself; and the limits are those of the first. */
static void test_gain_is_asked_for(void **state)
{
    (void)state;
    const struct verdict v = verdict_on(tiny("verify.min_gain=3", "threads=1", NULL), tiny("threads=1", NULL, NULL), NULL, NULL);
    assert_failed(&v, "throughput", NULL);
    assert_near(verdict_gate(&v, "throughput")->limit, 4, 1e-12, "the limit");
}

static void test_other_kernels_and_threads(void **state)
{
    (void)state;
    const struct verdict v = verdict_on(tiny("verify.memory=10", NULL, NULL),
                                        tiny("backend.kernels=reference", "threads=1", "data.workers=1"), NULL, NULL);
    assert_failed(&v, NULL);
    assert_true(verdict_gate(&v, "gradients")->value < 1e-5 && verdict_gate(&v, "gradients")->value > 0);
}

/* Two batches of two are one of four. */
static void test_accumulated_batches(void **state)
{
    (void)state;
    const struct verdict v = verdict_on(tiny("verify.memory=10", NULL, NULL),
                                        tiny("train.batch_size=2", "train.accumulate=2", NULL), NULL, NULL);
    assert_failed(&v, NULL);
    assert_true(v.of_b.ops > v.of_a.ops);
}

static void test_no_validation_data(void **state)
{
    (void)state;
    const struct config c = tiny("data.val_fraction=0", NULL, NULL);
    const struct verdict v = verdict_on(c, c, NULL, NULL);
    assert_failed(&v, NULL);
    assert_false(verdict_gate(&v, "validation")->judged);
}

/* --- what is broken on purpose ------------------------------------------------------------------------------------- */

static int find_op(const struct program *p, enum op_kind kind, enum phase phase)
{
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == kind && p->ops[i].phase == phase)
            return i;
    fail_msg("there is no op %s in phase %s", op_info(kind)->name, phase_name(phase));
    return -1;
}

/* A factor that is wrong by 1 % in the gradient of the values of attention. */
static void scale_gradient(struct program *p, void *context)
{
    (void)context;
    p->ops[find_op(p, OP_ATTN_MIX_T, PHASE_BACKWARD)].attrs.scale *= 1.01f;
}

static void test_wrong_gradient(void **state)
{
    (void)state;
    const struct verdict v = verdict_on(tiny("verify.loss=1", NULL, NULL), tiny(NULL, NULL, NULL), scale_gradient, NULL);
    assert_failed(&v, "gradients", NULL);
    assert_near(verdict_gate(&v, "gradients")->value, 0.01, 1e-3, "the error");
    assert_non_null(strstr(verdict_gate(&v, "gradients")->words, "the first gradient of blocks.0."));
}

/* One of two paths of the residual stream is left out of the backward. */
static void drop_path(struct program *p, void *context)
{
    (void)context;
    const int at = find_op(p, OP_ADD, PHASE_BACKWARD);
    const value_id sum = p->ops[at].out[0], one = p->ops[at].in[0];
    program_remove_op(p, at);
    program_replace_value(p, sum, one);
}

static void test_dropped_backward(void **state)
{
    (void)state;
    struct config c = tiny("verify.validation=1", "verify.memory=10", NULL);
    struct verdict v = verdict_on(c, c, drop_path, NULL);
    assert_failed(&v, "gradients", "loss-curve", NULL);
    assert_true(verdict_gate(&v, "gradients")->value > 0.05);
}

/* Right gradients, and an optimizer that goes another way. */
static void raise_rate(struct program *p, void *context)
{
    struct op_attrs *attrs = &p->ops[find_op(p, OP_LR, PHASE_OPTIMIZE)].attrs;
    attrs->lr *= *(const float *)context;
}

static void test_wrong_update(void **state)
{
    (void)state;
    float factor = 1.3f;
    struct config c = tiny("verify.validation=1", NULL, NULL);
    struct verdict v = verdict_on(c, c, raise_rate, &factor);
    assert_failed(&v, "loss-curve", NULL);
    factor = -1;                            /* uphill */
    c = tiny("verify.loss=1", NULL, NULL);
    v = verdict_on(c, c, raise_rate, &factor);
    assert_failed(&v, "validation", NULL);
    assert_true(verdict_gate(&v, "validation")->b > verdict_gate(&v, "validation")->a);
}

/* Dropout whose seed comes from outside: in the first run it is the config's by luck, in the next it is another. */
static void seed_from_outside(struct program *p, void *context)
{
    const int run = (*(int *)context)++;
    find_op(p, OP_DROPOUT, PHASE_FORWARD);
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_DROPOUT)
            p->ops[i].attrs.seed += (uint64_t)run;
}

static void test_nondeterminism(void **state)
{
    (void)state;
    int runs = 0;
    const struct config c = tiny("model.dropout=0.2", NULL, NULL);
    const struct verdict v = verdict_on(c, c, seed_from_outside, &runs);
    assert_true(runs >= 1 + OPENINGS_FEWEST);       /* one that is compared, the openings behind it, and once more */
    assert_failed(&v, "determinism", NULL);
    assert_non_null(strstr(verdict_gate(&v, "determinism")->words, "part at step 1"));
    const struct verdict same = verdict_on(c, c, NULL, NULL);
    assert_failed(&same, NULL);
}

/* A difference in the last update alone: no loss has seen it. */
static void nudge_last_update(struct program *p, void *context)
{
    struct op_attrs *attrs = &p->ops[find_op(p, OP_LR, PHASE_OPTIMIZE)].attrs;
    attrs->lr *= (*(int *)context)++ ? 1.5f : 1;
}

static void test_weights_are_compared_too(void **state)
{
    (void)state;
    int runs = 0;
    const struct config c = tiny("verify.steps=1", NULL, NULL);
    const struct verdict v = verdict_on(c, c, nudge_last_update, &runs);
    assert_failed(&v, "determinism", NULL);
    assert_non_null(strstr(verdict_gate(&v, "determinism")->words, "different weights"));
}

/* Values that nobody needs, and work on them. */
static void add_ballast(struct program *p, void *context)
{
    const int ops = *(const int *)context;
    const value_id v = program_add_value(p, "ballast", VALUE_STATE, F32, shape_of(1, (int64_t)1 << 20));
    p->phase = PHASE_OPTIMIZE;
    for (int i = 0; i < ops; i++)
        program_emit(p, OP_ZERO, (struct op_attrs){0}, "ballast", 1, v);
}

static void test_more_memory(void **state)
{
    (void)state;
    int ops = 1;
    const struct config c = tiny("verify.memory=1.5", NULL, NULL);
    const struct verdict v = verdict_on(c, c, add_ballast, &ops);
    assert_failed(&v, "memory", NULL);
    const struct gate *g = verdict_gate(&v, "memory");
    assert_near(g->b - g->a, 4 << 20, 0, "the bytes of the ballast");
}

static void test_slower(void **state)
{
    (void)state;
    int ops = 400;                          /* 1.6 GB are zeroed in every step, which takes a few milliseconds without */
    const struct config c = tiny("verify.memory=1000", "verify.min_gain=-0.5", "threads=1");
    const struct verdict v = verdict_on(c, c, add_ballast, &ops);
    assert_failed(&v, "throughput", NULL);
    assert_true(verdict_gate(&v, "throughput")->value < 0.5);
}

/* Not a number anywhere: nothing that depends on it passes. */
static void poison(struct program *p, void *context)
{
    (void)context;
    p->ops[find_op(p, OP_ATTN_MIX_T, PHASE_BACKWARD)].attrs.scale = NAN;
}

static void test_not_a_number(void **state)
{
    (void)state;
    const struct config c = tiny("verify.loss=1", "verify.validation=1", NULL);
    const struct verdict v = verdict_on(c, c, poison, NULL);
    assert_failed(&v, "gradients", NULL);               /* no update reaches the weights, so the losses stay finite */
    assert_true(isnan(verdict_gate(&v, "gradients")->value));
    json_t *j = verdict_json(&v);
    assert_true(json_is_null(json_object_get(json_array_get(json_object_get(j, "gates"), 0), "value")));
    assert_true(json_is_false(json_object_get(j, "pass")));
    json_decref(j);
}

static void poison_forward(struct program *p, void *context)
{
    (void)context;
    p->ops[find_op(p, OP_ATTN_SCORES, PHASE_FORWARD)].attrs.scale = NAN;
}

static void test_loss_that_is_no_number(void **state)
{
    (void)state;
    const struct config c = tiny("verify.loss=1", "verify.validation=1", NULL);
    const struct verdict v = verdict_on(c, c, poison_forward, NULL);
    assert_failed(&v, "gradients", "loss-curve", "determinism", NULL);
}

/* --- what cannot be compared --------------------------------------------------------------------------------------- */

static void refuse(struct config a, struct config b, const char *one, const char *two)
{
    struct verdict v;
    struct error err;
    assert_int_equal(verify_configs(&v, &a, &b, &(struct verify_options){0}, &err), BAD_INPUT);
    assert_says(&err, one, two, NULL);
}

static void test_refusals(void **state)
{
    (void)state;
    const struct config c = tiny(NULL, NULL, NULL);
    refuse(c, tiny("model.dim=64", NULL, NULL), "different models", "model.dim is 32 and 64");
    refuse(c, tiny("model.arch=llama", NULL, NULL), "different models", "model.arch is gpt and llama");
    refuse(c, tiny("data.chars=30000", NULL, NULL), "different data", "data.chars is 20000 and 30000");
    refuse(c, tiny("data.source=text", "data.path=x y: z", NULL), "different data", "data.source is corpus and text");
    refuse(tiny("data.source=text", "data.path=a", NULL), tiny("data.source=text", "data.path=x y: z", NULL), "different data",
           "data.path is \"a\" and \"x y: z\"");
    refuse(c, tiny("train.seed=1", NULL, NULL), "different seeds", "train.seed is 42 and 1");
    refuse(c, tiny("train.lr=0.1", NULL, NULL), "different ways", "train.lr");
    refuse(c, tiny("train.batch_size=8", NULL, NULL), "4 × 1", "8 × 1");
    refuse(tiny("model.dropout=0.1", NULL, NULL), tiny("train.batch_size=2", "train.accumulate=2", "model.dropout=0.1"),
           "train.batch_size is 4 and 2", "model.dropout=0");
    refuse(c, tiny("model.vocab=200", NULL, NULL), "different models", "parameter");
}

static void test_stop(void **state)
{
    (void)state;
    static const volatile sig_atomic_t stop = 1;
    const struct config c = tiny(NULL, NULL, NULL);
    struct verdict v;
    struct error err;
    assert_int_equal(verify_configs(&v, &c, &c, &(struct verify_options){.stop = &stop}, &err), BAD_INPUT);
    assert_says(&err, "stopped", NULL);
}

/* --- trials -------------------------------------------------------------------------------------------------------- */

static void test_trial_restarts(void **state)
{
    (void)state;
    const struct config c = tiny("train.accumulate=2", "model.dropout=0.1", NULL);
    struct trial *t;
    struct trial_step first, second, again;
    struct error err;
    assert_ok(trial_open(&t, &c, NULL, NULL, &err), err);
    const uint64_t start = trial_fingerprint(t);
    assert_ok(trial_step(t, &first, &err), err);
    assert_ok(trial_step(t, &second, &err), err);
    assert_true(trial_fingerprint(t) != start && first.us > 0 && first.norm > 0 && first.loss != second.loss);
    assert_ok(trial_restart(t, &err), err);
    assert_true(trial_fingerprint(t) == start);
    assert_ok(trial_backward(t, &err), err);
    assert_true(trial_fingerprint(t) == start);             /* no update */
    assert_ok(trial_restart(t, &err), err);
    assert_ok(trial_step(t, &again, &err), err);
    assert_true(again.loss == first.loss && again.norm == first.norm);
    assert_int_equal(trial_tokens_per_step(t), 4 * 2 * 16);
    trial_free(t);
}

/* --- reports ------------------------------------------------------------------------------------------------------- */

static const char REPORT[] =
    "{\"schema\":\"hone-report\",\"kind\":\"profile\",\"model\":{\"arch\":\"%s\",\"parameters\":1000,\"layers\":2,\"seq\":16,"
    "\"batch\":%d,\"accumulate\":1},\"machine\":{\"fingerprint\":\"%s\"%s},\"step\":{\"times_us\":[%s],\"median_us\":%g,\"p10_us\":90,\"p90_us\":120,"
    "\"tokens_per_s\":1e5},\"efficiency\":{\"mfu_percent\":40},\"memory\":{\"planned_bytes\":%g,\"rss_peak_bytes\":2e6}}";

static char path_a[64], path_b[64];

static int make_paths(void **state)
{
    (void)state;
    snprintf(path_a, sizeof path_a, "/tmp/hone-verify-a-%d.json", (int)getpid());
    snprintf(path_b, sizeof path_b, "/tmp/hone-verify-b-%d.json", (int)getpid());
    return 0;
}

static int remove_paths(void **state)
{
    (void)state;
    unlink(path_a);
    unlink(path_b);
    return 0;
}

static void write_report(const char *path, const char *arch, int batch, const char *machine, double us, double bytes)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    char times[64];
    snprintf(times, sizeof times, "%g,%g,%g", us, us, us);
    fprintf(f, REPORT, arch, batch, machine, "", times, us, bytes);
    fclose(f);
}

/* Of a median of 100 us, with these steps, and more on the machine. */
static void write_steps(const char *path, const char *machine, const char *times, double us)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, REPORT, "gpt", 4, "m", machine, times, us, 1e6);
    fclose(f);
}

static struct verdict verdict_on_reports(double us, double bytes, double limit)
{
    struct verdict v;
    struct error err;
    write_report(path_a, "gpt", 4, "m", 100, 1e6);
    write_report(path_b, "gpt", 4, "m", us, bytes);
    assert_ok(verify_reports(&v, path_a, path_b, limit, &err), err);
    assert_int_equal(v.n, 2);
    return v;
}

static void test_reports(void **state)
{
    (void)state;
    struct verdict v = verdict_on_reports(104, 1.04e6, 0.05);
    assert_failed(&v, NULL);
    assert_near(verdict_gate(&v, "step-time")->value, 0.04, 1e-9, "the change");
    v = verdict_on_reports(106, 1e6, 0.05);
    assert_failed(&v, "step-time", NULL);
    v = verdict_on_reports(106, 1e6, 0.1);
    assert_failed(&v, NULL);
    v = verdict_on_reports(50, 1.2e6, 0.05);
    assert_failed(&v, "peak-memory", NULL);
}

static void refuse_reports(const char *one, const char *two)
{
    struct verdict v;
    struct error err;
    assert_int_equal(verify_reports(&v, path_a, path_b, 0.05, &err), BAD_INPUT);
    assert_says(&err, one, two, NULL);
}

/* Steps of both overlap: whether the median of the second is above the limit, nobody knows. */
static void test_reports_within_noise(void **state)
{
    static const char near[] = "99,99,99.5,99.5,100,100,100,101,101,130", far[] = "90,92,94,96,98,102,104,106,108,200", mixed[] = "95,99,100,103,105,107,108,110,112,300";
    struct verdict v;
    struct error err;
    (void)state;
    write_steps(path_a, "", far, 100);
    write_steps(path_b, "", mixed, 106);
    assert_ok(verify_reports(&v, path_a, path_b, 0.05, &err), err);
    const struct gate *g = verdict_gate(&v, "step-time");
    assert_true(!v.pass && !g->pass && !g->judged && g->low < 0.05 && g->high > 0.05 && g->low < g->value && g->value < g->high);
    assert_non_null(strstr(g->words, "too near to the limit"));
    assert_ok(verify_reports(&v, path_a, path_b, 0.5, &err), err);       /* far from it */
    assert_failed(&v, NULL);
    write_steps(path_a, "", near, 100);
    write_steps(path_b, "", "119,119,119.5,119.5,120,120,120,121,121,130", 120);
    assert_ok(verify_reports(&v, path_a, path_b, 0.05, &err), err);
    assert_failed(&v, "step-time", NULL);
    assert_true(verdict_gate(&v, "step-time")->judged);
    write_steps(path_b, ",\"threads\":2,\"usable_cores\":2,\"delayed_share\":0.27", near, 100);
    assert_ok(verify_reports(&v, path_a, path_b, 0.05, &err), err);
    assert_true(!v.pass && !verdict_gate(&v, "step-time")->judged);
    assert_non_null(strstr(verdict_gate(&v, "step-time")->words, "other work took the cores for 27 %"));
    write_steps(path_b, ",\"threads\":4,\"usable_cores\":2,\"delayed_share\":0.27", near, 100);       /* they are its own */
    assert_ok(verify_reports(&v, path_a, path_b, 0.05, &err), err);
    assert_failed(&v, NULL);
}

/* That a report is of another number of threads, or of another device, is not what a change of the program did. */
static void test_reports_of_other_settings(void **state)
{
    struct verdict v;
    struct error err;
    (void)state;
    write_steps(path_a, ",\"threads\":1,\"device\":\"cpu\"", "100,100", 100);
    write_steps(path_b, ",\"threads\":2,\"device\":\"cuda\"", "50,50", 50);
    assert_ok(verify_reports(&v, path_a, path_b, 0.05, &err), err);
    assert_failed(&v, NULL);
    assert_non_null(strstr(verdict_gate(&v, "step-time")->words, "; 2 threads after 1; device cuda after cpu"));
    write_steps(path_b, "", "50", 50);                       /* one step may be anything */
    assert_ok(verify_reports(&v, path_a, path_b, 0.05, &err), err);
    assert_true(!v.pass && !verdict_gate(&v, "step-time")->judged);
    json_t *j = verdict_json(&v);
    assert_true(json_is_null(json_object_get(json_array_get(json_object_get(j, "gates"), 0), "high")));
    json_decref(j);
    write_steps(path_b, "", "", 50);
    refuse_reports(path_b, "has no step.times_us: an older hone wrote it; profile it again");
    write_steps(path_b, "", "50,-1", 50);
    refuse_reports(path_b, "step.times_us[1] is no time");
}

/* A report that was made while other work had the cores says so, and so does what is made of it. */
static void test_reports_of_a_busy_machine(void **state)
{
    static const char busy[] = "{\"schema\":\"hone-report\",\"kind\":\"profile\",\"model\":{\"arch\":\"gpt\",\"parameters\":1000,\"layers\":2,\"seq\":16,\"batch\":4,"
                               "\"accumulate\":1},\"machine\":{\"fingerprint\":\"m\",\"delayed_share\":0.25},\"step\":{\"times_us\":[200],\"median_us\":200,\"p10_us\":90,\"p90_us\":120,"
                               "\"tokens_per_s\":1e5},\"efficiency\":{\"mfu_percent\":40},\"memory\":{\"planned_bytes\":1e6,\"rss_peak_bytes\":2e6},"
                               "\"answers\":{\"warning\":\"Other work took the cores: times are too long\"}}";
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct verdict v;
        struct error err;
        write_report(path_a, "gpt", 4, "m", 100, 1e6);
        FILE *f = fopen(path_b, "w");
        assert_non_null(f);
        fputs(busy, f);
        fclose(f);
        assert_ok(verify_reports(&v, i ? path_b : path_a, i ? path_a : path_b, 0.05, &err), err);
        assert_near(v.delayed_share, 0.25, 1e-12, "delay");
        assert_non_null(strstr(v.warning, path_b));
        assert_non_null(strstr(v.warning, ": Other work took the cores"));
    }
    assert_true(verdict_on_reports(100, 1e6, 0.05).delayed_share < 0 && !*verdict_on_reports(100, 1e6, 0.05).warning);
}

static int calls, fail_at;          /* allocations of jansson, counted from 1; 0: none fails */

static void *allocate(size_t size) { return ++calls == fail_at ? NULL : malloc(size); }

/* Want of memory is not what is wrong with a report. */
static void test_reports_without_memory(void **state)
{
    (void)state;
    struct verdict v;
    struct error err;
    int most;
    write_report(path_a, "gpt", 4, "m", 100, 1e6);
    write_report(path_b, "gpt", 4, "m", 100, 1e6);
    json_memory_watch(allocate, NULL);
    calls = 0;
    assert_ok(verify_reports(&v, path_a, path_b, 0.05, &err), err);
    most = calls;
    assert_true(most > 20);
    for (int n = 1; n <= most; n++) {
        calls = 0;
        fail_at = n;
        assert_ok(verify_reports(&v, path_a, path_b, 0.05, &err), err);         /* there is a reserve */
        assert_failed(&v, NULL);
    }
    fail_at = 0;
}

static void test_reports_that_cannot_be_compared(void **state)
{
    (void)state;
    static const char *const bad[] = {"{", "[]", "{\"schema\":\"hone-report\",\"kind\":\"trace\"}",
                                      "{\"schema\":\"hone-report\",\"kind\":\"profile\",\"model\":3}"};
    static const char *const says[] = {"not JSON", "is no report", "is no report", "has no text model.arch"};
    write_report(path_a, "gpt", 4, "m", 100, 1e6);
    write_report(path_b, "llama", 4, "m", 100, 1e6);
    refuse_reports("different models", "gpt and llama");
    write_report(path_b, "gpt", 8, "m", 100, 1e6);
    refuse_reports("4 samples per update", "8");
    write_report(path_b, "gpt", 4, "n", 100, 1e6);
    refuse_reports("different machines", "m and n");
    write_report(path_b, "gpt", 4, "m", -100, 1e6);
    refuse_reports(path_b, "step.median_us is -100; expected a number above 0");
    write_report(path_b, "gpt", 4, "m", 100, 0);
    refuse_reports(path_b, "memory.planned_bytes is 0; expected a number above 0");
    for (int i = 0; i < 4; i++) {
        FILE *f = fopen(path_b, "w");
        fputs(bad[i], f);
        fclose(f);
        refuse_reports(path_b, says[i]);
    }
    unlink(path_b);
    refuse_reports(path_b, "No such file");
}

static void test_texts(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size;
    struct verdict v = verdict_on_reports(106, 1e6, 0.05);
    snprintf(v.a, sizeof v.a, "a|b_*.json");
    FILE *f = open_memstream(&text, &size);
    verdict_markdown(&v, f);
    fclose(f);
    assert_non_null(strstr(text, "may not take the place of a\\|b\\_\\*.json"));
    assert_non_null(strstr(text, "| step-time | **FAIL** |"));
    assert_non_null(strstr(text, "| peak-memory | pass |"));
    free(text);
    json_t *j = verdict_json(&v), *gate = json_array_get(json_object_get(j, "gates"), 0);
    assert_string_equal(json_string_value(json_object_get(gate, "gate")), "step-time");
    assert_true(json_is_false(json_object_get(gate, "pass")) && json_is_false(json_object_get(j, "pass")));
    assert_near(json_number_value(json_object_get(gate, "a")), 100, 0, "a");
    assert_near(json_number_value(json_object_get(gate, "b")), 106, 0, "b");
    assert_near(json_number_value(json_object_get(gate, "limit")), 0.05, 0, "the limit");
    json_decref(j);
}

/* Any step beats such a peak: it is wrong, and no side is above 100 % of what it is raised to, which is the same for both. */
static void test_peaks_that_are_beaten(void **state)
{
    (void)state;
    const struct config c = tiny(NULL, NULL, NULL);
    const struct peaks peaks = {.threads = 1, .gflops[NUMBERS_F32] = 1e-6, .copy_gb_per_s = {[CACHE_LEVELS - 1] = 1}, .machine = "slow"};
    struct verdict v;
    struct error err;
    assert_ok(verify_configs(&v, &c, &c, &(struct verify_options){.peaks = &peaks}, &err), err);
    const double a = products_peak_percent(v.of_a.peak, v.of_a.model_flops, v.of_a.step_us);
    const double b = products_peak_percent(v.of_b.peak, v.of_b.model_flops, v.of_b.step_us);
    assert_true(a > 0 && b > 0 && v.of_a.peak.gflops == v.of_b.peak.gflops);
    assert_near(a > b ? a : b, 100, 1e-9, "the faster one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_configs),
        cmocka_unit_test(test_gain_is_asked_for),
        cmocka_unit_test(test_other_kernels_and_threads),
        cmocka_unit_test(test_accumulated_batches),
        cmocka_unit_test(test_no_validation_data),
        cmocka_unit_test(test_wrong_gradient),
        cmocka_unit_test(test_dropped_backward),
        cmocka_unit_test(test_wrong_update),
        cmocka_unit_test(test_nondeterminism),
        cmocka_unit_test(test_weights_are_compared_too),
        cmocka_unit_test(test_more_memory),
        cmocka_unit_test(test_slower),
        cmocka_unit_test(test_not_a_number),
        cmocka_unit_test(test_loss_that_is_no_number),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_peaks_that_are_beaten),
        cmocka_unit_test(test_trial_restarts),
        cmocka_unit_test(test_reports), cmocka_unit_test(test_reports_within_noise), cmocka_unit_test(test_reports_of_other_settings), cmocka_unit_test(test_reports_of_a_busy_machine),
        cmocka_unit_test(test_reports_without_memory),
        cmocka_unit_test(test_reports_that_cannot_be_compared),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, make_paths, remove_paths);
}
