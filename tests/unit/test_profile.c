/* Profiles: parts add up to the step, known programs have known costs, and the smallest programs work too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/profile.h"
#include "support/check.h"
#include "train/train.h"

static const struct peaks PEAKS = {.threads = 2, .gemm_gflops = 10, .copy_gb_per_s = {100, 50, 20, 10},
                                   .cache_bytes = {32e3, 1e6, 8e6, 1e9}, .machine = "a test"};

static void add(struct trace *t, enum event_kind kind, int track, const char *name, int op, int64_t start, int64_t end)
{
    trace_add(t, kind, track, trace_name(t, name), 0, op, t->origin_ns + start, t->origin_ns + end);
}

/* One op y = a b^T of (2, 3) and (4, 3): 48 FLOPs, 4 * (6 + 12 + 8) bytes. */
static struct program *one_op(void)
{
    struct program *p = program_new("one");
    const value_id a = program_add_parameter(p, "a", shape_of(2, (int64_t)2, (int64_t)3), ROLE_MATRIX, INIT_ONES, 0);
    const value_id b = program_add_parameter(p, "b", shape_of(2, (int64_t)4, (int64_t)3), ROLE_MATRIX, INIT_ONES, 0);
    program_emit(p, OP_MATMUL, (struct op_attrs){.trans_b = true}, "y", 2, a, b);
    return p;
}

static double part(const struct profile_part *parts, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(parts[i].name, name))
            return parts[i].us;
    fail_msg("there is no part '%s'", name);
    return 0;
}

/* Two threads work 600 and 800 ns in a step of 2000: 700 is work, the one that ends 160 earlier waits, and the rest has names. */
static void test_parts_by_hand(void **state)
{
    (void)state;
    struct program *p = one_op();
    struct trace *t = trace_new();
    add(t, EVENT_WAIT, TRACK_HOST, TRACE_LOADER_WAIT, -1, 0, 300);
    add(t, EVENT_PHASE, TRACK_HOST, TRACE_UPLOAD, -1, 300, 350);
    add(t, EVENT_OP, TRACK_THREADS, "matmul y", 0, 400, 1000);
    add(t, EVENT_OP, TRACK_THREADS + 1, "matmul y", 0, 360, 1160);
    trace_counter(t, trace_name(t, "bytes"), 0, t->origin_ns + 400, 5);
    add(t, EVENT_PHASE, TRACK_HOST, "forward", -1, 350, 1300);
    add(t, EVENT_WAIT, TRACK_HOST, TRACE_RECORDING, -1, 1300, 1400);
    add(t, EVENT_STEP, TRACK_HOST, TRACE_STEP, -1, 0, 2000);
    const double step_us[] = {1.8, 2.2, 2.0};
    const struct profile_input in = {.program = p, .trace = t, .peaks = PEAKS, .threads = 2, .step_us = step_us,
                                     .n_steps = 3, .batch = 4, .seq = 5, .accumulate = 1, .model_flops = 10,
                                     .evaluation_us = 0.5, .name = "one"};
    struct profile out;
    struct error err;
    assert_ok(profile_build(&out, &in, &err), err);
    assert_near(out.step_us, 2.0, 1e-12, "the median step");
    assert_near(out.samples_per_s, 2e6, 1e-3, "samples per second");
    assert_near(out.tokens_per_s, 1e7, 1e-3, "tokens per second");
    assert_near(out.mfu_percent, 10 / 2e-6 / 1e9 / 10 * 100, 1e-9, "MFU");
    assert_true(out.mfu_peak.gflops == 10 && !out.mfu_peak.bf16);
    assert_int_equal(out.n_ops, 1);
    assert_near(out.ops[0].self_us, 0.7, 1e-12, "self time");
    assert_near(out.ops[0].imbalance_us, 0.08, 1e-12, "imbalance: 160 on one of two threads");
    assert_near(out.ops[0].flops, 48, 0, "FLOPs");
    assert_near(out.ops[0].bytes, 104, 0, "bytes");
    assert_near(out.ops[0].floor_us, 48 / 10.0 / 1e3, 1e-12, "compute bound: 104 bytes from L1 take less");
    assert_false(out.ops[0].memory_bound);
    assert_near(part(out.gaps, out.n_gaps, "loader wait"), 0.3, 1e-12, "loader");
    assert_near(part(out.gaps, out.n_gaps, "upload"), 0.05, 1e-12, "upload");
    assert_near(part(out.gaps, out.n_gaps, "dispatch"), 0.95 - 0.78, 1e-12, "dispatch");
    assert_near(part(out.gaps, out.n_gaps, "recording"), 0.1, 1e-12, "recording");
    assert_near(part(out.gaps, out.n_gaps, "host"), 0.6, 1e-12, "host");
    assert_near(part(out.split, out.n_split, "data"), 0.35, 1e-12, "data");
    assert_near(part(out.split, out.n_split, "forward"), 0.95, 1e-12, "forward");
    assert_near(part(out.split, out.n_split, "evaluation"), 0.5, 1e-12, "evaluation");
    assert_near(part(out.split, out.n_split, "other"), 0.7, 1e-12, "other");
    profile_release(&out);

    /* the same step with operands in bf16, of which the machine multiplies four times as many */
    struct profile_input bf16 = in;
    bf16.peaks.bf16_gflops = 40;
    p->ops[0].attrs.bf16 = true;
    assert_ok(profile_build(&out, &bf16, &err), err);
    assert_true(out.mfu_peak.bf16 && out.mfu_peak.gflops == 40);
    assert_near(out.mfu_percent, 10 / 2e-6 / 1e9 / 40 * 100, 1e-9, "MFU in bf16");
    assert_near(out.ops[0].floor_us, 48 / 40.0 / 1e3, 1e-12, "the floor in bf16");
    profile_release(&out);
    trace_free(t);
    program_free(p);
}

/* Behind the first op nobody waits, though one thread is done earlier: it goes on. Behind the second the same thread waits 90 ns, and
 * 10 more are the dispatch of both. */
static void test_threads_that_do_not_meet(void **state)
{
    (void)state;
    struct program *p = one_op();
    program_emit(p, OP_MATMUL, (struct op_attrs){.trans_b = true}, "z", 2, (value_id)0, (value_id)1);
    program_emit(p, OP_MATMUL, (struct op_attrs){.trans_b = true}, "u", 2, (value_id)0, (value_id)1);
    program_emit(p, OP_MATMUL, (struct op_attrs){.trans_b = true}, "v", 2, (value_id)0, (value_id)1);
    struct trace *t = trace_new();
    add(t, EVENT_OP, TRACK_THREADS, "y", 0, 0, 500);
    add(t, EVENT_OP, TRACK_THREADS + 1, "y", 0, 0, 600);
    trace_counter(t, trace_name(t, "bytes"), 0, t->origin_ns, 5);
    add(t, EVENT_OP, TRACK_THREADS, "z", 1, 500, 800);
    add(t, EVENT_OP, TRACK_THREADS + 1, "z", 1, 600, 890);
    add(t, EVENT_OP, TRACK_THREADS, "u", 2, 900, 1000);
    add(t, EVENT_OP, TRACK_THREADS + 1, "u", 2, 900, 1000);
    add(t, EVENT_PHASE, TRACK_HOST, "forward", -1, 0, 1000);
    add(t, EVENT_WAIT, TRACK_HOST, TRACE_RECORDING, -1, 1000, 1100);
    add(t, EVENT_OP, TRACK_THREADS, "v", 3, 1100, 1200);            /* another run: one thread wakes late, and none waits for that */
    add(t, EVENT_OP, TRACK_THREADS + 1, "v", 3, 1140, 1200);
    add(t, EVENT_PHASE, TRACK_HOST, "optimize", -1, 1100, 1200);
    add(t, EVENT_STEP, TRACK_HOST, TRACE_STEP, -1, 0, 1200);
    const double step_us[] = {1};
    const struct profile_input in = {.program = p, .trace = t, .peaks = PEAKS, .threads = 2, .step_us = step_us, .n_steps = 1,
                                     .batch = 1, .seq = 1, .accumulate = 1};
    struct profile out;
    struct error err;
    assert_ok(profile_build(&out, &in, &err), err);
    const double self[] = {0.55, 0.295, 0.1, 0.08}, imbalance[] = {0, 0.045, 0, 0};
    for (int i = 0; i < 4; i++) {
        assert_near(out.ops[i].self_us, self[i], 1e-12, "self time");
        assert_near(out.ops[i].imbalance_us, imbalance[i], 1e-12, "imbalance");
    }
    assert_near(part(out.gaps, out.n_gaps, "dispatch"), 0.01 + 0.02, 1e-12, "dispatch");
    profile_release(&out);
    trace_free(t);
    program_free(p);
}

static void test_nothing_measured(void **state)
{
    (void)state;
    struct program *p = program_new("empty");
    struct trace *t = trace_new();
    const double step_us[] = {1};
    struct profile_input in = {.program = p, .trace = t, .peaks = PEAKS, .threads = 1, .step_us = step_us, .n_steps = 1,
                               .batch = 1, .seq = 1, .accumulate = 1};
    struct profile out;
    struct error err;
    assert_int_equal(profile_build(&out, &in, &err), BAD_INPUT);
    add(t, EVENT_STEP, TRACK_HOST, TRACE_STEP, -1, 0, 1000);        /* a step of a program without ops */
    assert_ok(profile_build(&out, &in, &err), err);
    assert_int_equal(out.n_ops, 0);
    assert_near(part(out.gaps, out.n_gaps, "host"), 1, 1e-12, "all of it");
    profile_release(&out);
    trace_free(t);
    program_free(p);
}

static const char CONFIG[] =
    "model: {arch: llama, dim: 32, layers: 2, heads: 4, kv_heads: 2, ffn: 48, seq: 16}\n"
    "data: {chars: 20000, workers: 1}\ntrain: {batch_size: 2, accumulate: 2}\neval: {every: 10, batches: 2}\nthreads: 2\n";

/* A real run: work of the ops and the named gaps are the recorded step, and the split is the step and its evaluation. */
static void test_sums_of_a_run(void **state)
{
    (void)state;
    struct config c;
    struct measured m;
    struct profile p;
    struct error err;
    assert_ok(config_parse(&c, "test", CONFIG, sizeof CONFIG - 1, NULL, 0, &err), err);
    assert_ok(measure_steps(&m, &c, 9, NULL, NULL, NULL, &err), err);
    assert_int_equal(m.n, 9);
    assert_true(m.evaluation_us > 0 && m.evaluation_every == 10 && m.model_flops > 0 && m.rss_peak_bytes > 1e6);
    const struct profile_input in = {
        .program = m.program, .trace = m.trace, .peaks = PEAKS, .threads = m.threads, .step_us = m.step_us, .n_steps = m.n,
        .batch = 2, .seq = 16, .accumulate = 2, .layers = 2, .model_flops = m.model_flops, .kernels = m.kernels,
        .evaluation_us = m.evaluation_us / 10, .name = "run"};
    assert_ok(profile_build(&p, &in, &err), err);
    double work = 0, gaps = 0, split = 0, kinds = 0;
    for (int i = 0; i < p.n_ops; i++) {
        assert_true((p.ops[i].self_us > 0) == (p.ops[i].phase != PHASE_SETUP));     /* the setup is no part of a step */
        assert_true(p.ops[i].imbalance_us >= 0 && p.ops[i].kernel[0]);
        work += p.ops[i].self_us;
    }
    for (int i = 0; i < p.n_gaps; i++) {
        assert_true(p.gaps[i].us >= 0);
        gaps += p.gaps[i].us;
    }
    for (int i = 0; i < p.n_split; i++)
        split += p.split[i].us;
    for (int i = 0; i < p.n_kinds; i++)
        kinds += p.kinds[i].self_us;
    assert_near(work + gaps, p.recorded_us, 1e-9 * p.recorded_us, "work and gaps");
    assert_near(split, p.recorded_us + m.evaluation_us / 10, 1e-9 * split, "the split");
    assert_near(kinds, work, 1e-9 * work, "kinds");
    for (int i = 0; i < p.n_ops; i++) {             /* memory: parameters stay, the peak is the largest point */
        const struct profile_memory_point *q = &p.memory[i];
        assert_near(q->parameters, p.memory[0].parameters, 0, "parameters");
        assert_true(q->parameters + q->state + q->gradients + q->activations + q->inputs <= p.peak_bytes);
    }
    profile_release(&p);
    measured_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts_by_hand), cmocka_unit_test(test_nothing_measured),
                                       cmocka_unit_test(test_threads_that_do_not_meet),
                                       cmocka_unit_test(test_sums_of_a_run)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
