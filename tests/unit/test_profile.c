/* Profiles: parts add up to the step, known programs have known costs, and the smallest programs work too. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/time.h>

#include <cmocka.h>

#include "analyze/profile.h"
#include "support/check.h"
#include "train/train_int.h"

static const struct peaks PEAKS = {.threads = 2, .gflops[NUMBERS_F32] = 10, .copy_gb_per_s = {100, 50, 20, 10},
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
    const double step_us[] = {1.7, 2.1, 1.9};       /* as long as the recorded one without the recording: nothing is scaled */
    static const char *const kernels[] = {"blocks 2×1"};
    const struct profile_input in = {.program = p, .trace = t, .peaks = PEAKS, .threads = 2, .step_us = step_us,
                                     .n_steps = 3, .batch = 4, .seq = 5, .accumulate = 1, .model_flops = 10,
                                     .evaluation_us = 0.5, .name = "one", .kernels = kernels};
    struct profile out;
    struct error err;
    assert_ok(profile_build(&out, &in, &err), err);
    assert_near(out.step_us, 1.9, 1e-12, "the median step");
    assert_near(out.recording_percent, 100 * (2 / 1.9 - 1), 1e-9, "what recording costs");
    assert_near(out.samples_per_s, 4 / 1.9e-6, 1e-3, "samples per second");
    assert_near(out.tokens_per_s, 20 / 1.9e-6, 1e-3, "tokens per second");
    assert_near(out.mfu_percent, 10 / 1.9e-6 / 1e9 / 10 * 100, 1e-9, "MFU");
    assert_true(out.mfu_peak.gflops == 10 && out.mfu_peak.numbers == NUMBERS_F32);
    assert_int_equal(out.n_ops, 1);
    assert_near(out.ops[0].self_us, 0.7, 1e-12, "self time");
    assert_near(out.ops[0].imbalance_us, 0.08, 1e-12, "imbalance: 160 on one of two threads");
    assert_non_null(out.waits_behind);
    assert_non_null(strstr(out.waits_behind, "matmul (blocks 2×1), 1 op: "));
    assert_near(out.ops[0].flops, 48, 0, "FLOPs");
    assert_near(out.ops[0].bytes, 104, 0, "bytes");
    assert_near(out.ops[0].floor_us, 48 / 10.0 / 1e3, 1e-12, "compute bound: 104 bytes from L1 take less");
    assert_false(out.ops[0].memory_bound);
    assert_near(part(out.gaps, out.n_gaps, "loader wait"), 0.3, 1e-12, "loader");
    assert_near(part(out.gaps, out.n_gaps, "upload"), 0.05, 1e-12, "upload");
    assert_near(part(out.gaps, out.n_gaps, "dispatch"), 0.95 - 0.78, 1e-12, "dispatch");
    assert_near(part(out.gaps, out.n_gaps, "host"), 0.6, 1e-12, "host");
    assert_near(part(out.split, out.n_split, "data"), 0.35, 1e-12, "data");
    assert_near(part(out.split, out.n_split, "forward"), 0.95, 1e-12, "forward");
    assert_near(part(out.split, out.n_split, "evaluation"), 0.5, 1e-12, "evaluation");
    assert_near(part(out.split, out.n_split, "other"), 0.6, 1e-12, "other");
    assert_near(part(out.parts, out.n_parts, "head and loss"), 0.7, 1e-12, "a product outside the blocks");
    profile_release(&out);

    /* steps without events that take twice as long: so does each part of them; what they waited for data is known */
    struct profile_input slower = in;
    const double slow_us[] = {3.8}, wait_us[] = {1.0};
    slower.step_us = slow_us;
    slower.n_steps = 1;
    assert_ok(profile_build(&out, &slower, &err), err);
    assert_near(out.scale, 2, 1e-12, "scale");
    assert_near(out.ops[0].self_us, 1.4, 1e-12, "self time, scaled");
    assert_near(part(out.gaps, out.n_gaps, "loader wait"), 0.6, 1e-12, "loader, scaled");
    profile_release(&out);
    slower.wait_us = wait_us;
    assert_ok(profile_build(&out, &slower, &err), err);
    assert_near(out.scale, 2.8 / 1.6, 1e-12, "the rest, scaled");
    assert_near(part(out.gaps, out.n_gaps, "loader wait"), 1.0, 1e-12, "loader, as measured");
    assert_near(part(out.gaps, out.n_gaps, "host"), 0.6 * 2.8 / 1.6, 1e-12, "host");
    profile_release(&out);

    /* the same step with operands in bf16, of which the machine multiplies four times as many */
    struct profile_input bf16 = in;
    bf16.peaks.gflops[NUMBERS_BF16] = 40;
    p->ops[0].attrs.round = ROUND_BF16;
    assert_ok(profile_build(&out, &bf16, &err), err);
    assert_true(out.mfu_peak.numbers == NUMBERS_BF16 && out.mfu_peak.gflops == 40);
    assert_near(out.mfu_percent, 10 / 1.9e-6 / 1e9 / 40 * 100, 1e-9, "MFU in bf16");
    assert_near(out.ops[0].floor_us, 48 / 40.0 / 1e3, 1e-12, "the floor in bf16");
    profile_release(&out);
    trace_free(t);
    program_free(p);
}

/* On a GPU whose kernels are recorded the step is longer than others only between them: 700 ns of kernels stay 700 in a step of 1900
 * that took 4900 when it was recorded, of which 300 were waiting for the batch, 50 the upload and 600 the host. */
static void test_times_of_kernels(void **state)
{
    (void)state;
    struct program *p = one_op();
    struct trace *t = trace_new();
    add(t, EVENT_WAIT, TRACK_HOST, TRACE_LOADER_WAIT, -1, 0, 300);
    add(t, EVENT_PHASE, TRACK_HOST, TRACE_UPLOAD, -1, 300, 350);
    add(t, EVENT_OP, TRACK_THREADS, "matmul y", 0, 1000, 1700);
    add(t, EVENT_PHASE, TRACK_HOST, "forward", -1, 350, 4300);
    add(t, EVENT_WAIT, TRACK_HOST, TRACE_RECORDING, -1, 4300, 4400);
    add(t, EVENT_STEP, TRACK_HOST, TRACE_STEP, -1, 0, 5000);
    double step_us[] = {1.9}, wait_us[] = {0.1};
    const double occupancy[] = {0.25};
    const struct profile_input in = {.program = p, .trace = t, .peaks = PEAKS, .threads = 1, .step_us = step_us, .wait_us = wait_us,
                                     .n_steps = 1, .batch = 4, .seq = 5, .accumulate = 1, .gpu = true, .device_name = "NVIDIA H200",
                                     .times_kernels = true, .kernels_per_step = 7, .occupancy = occupancy, .watch = {.address = "gone", .looks = 1}};
    struct profile out;
    struct error err;
    assert_ok(profile_build(&out, &in, &err), err);
    assert_int_equal(out.n_gaps, 4);
    assert_near(out.ops[0].self_us, 0.7, 1e-12, "kernels");
    assert_near(part(out.gaps, out.n_gaps, "loader wait"), 0.1, 1e-12, "loader, as in steps without events");
    assert_near(part(out.gaps, out.n_gaps, "upload"), 0.05, 1e-12, "upload");
    assert_near(part(out.gaps, out.n_gaps, "host"), 0.6, 1e-12, "host");
    assert_near(part(out.gaps, out.n_gaps, "idle between kernels"), 1.9 - 0.1 - 0.05 - 0.7 - 0.6, 1e-12, "the rest");
    assert_near(part(out.split, out.n_split, "forward"), 0.7 + 0.45, 1e-12, "idleness between its kernels is the forward's");
    assert_true(out.gpu && out.kernels_per_step == 7 && out.ops[0].occupancy == 0.25 && !out.watch.address);
    assert_string_equal(out.device_name, "NVIDIA H200");
    profile_release(&out);

    step_us[0] = 0.5;                               /* shorter than its kernels as they were recorded: all is scaled */
    assert_ok(profile_build(&out, &in, &err), err);
    double sum = out.ops[0].self_us;
    for (int i = 0; i < out.n_gaps; i++)
        sum += out.gaps[i].us;
    assert_near(sum, 0.5, 1e-12, "the parts add up");
    profile_release(&out);
    trace_free(t);
    program_free(p);
}

/* 104 bytes in 0.7 µs are faster than this memory, and slower than this cache. What a cache of 30 bytes had of them may have made the difference,
 * but not one of 10. */
static void test_far_more_than_a_cache(void **state)
{
    (void)state;
    struct program *p = one_op();
    struct trace *t = trace_new();
    add(t, EVENT_OP, TRACK_THREADS, "matmul y", 0, 0, 700);
    add(t, EVENT_PHASE, TRACK_HOST, "forward", -1, 0, 900);
    add(t, EVENT_STEP, TRACK_HOST, TRACE_STEP, -1, 0, 900);
    const double step_us[] = {0.9};
    struct profile_input in = {.program = p, .trace = t, .threads = 1, .step_us = step_us, .n_steps = 1, .batch = 4, .seq = 5, .accumulate = 1,
                               .gpu = true, .times_kernels = true,
                               .peaks = {.threads = 1, .gflops[NUMBERS_F32] = 10, .copy_gb_per_s = {[1] = 0.2, [3] = 0.1},
                                         .cache_bytes = {[1] = 30, [3] = 1e9}, .machine = "slow"}};
    struct profile out;
    struct error err;
    assert_ok(profile_build(&out, &in, &err), err);
    assert_int_equal(out.ops[0].level, 1);
    assert_near(out.ops[0].floor_us, 104 / 0.2e3, 1e-12, "against the cache");
    profile_release(&out);
    in.peaks.cache_bytes[1] = 10;
    assert_ok(profile_build(&out, &in, &err), err);
    assert_int_equal(out.ops[0].level, 3);
    assert_near(out.ops[0].floor_us, 0.7, 1e-12, "at the roofline, and not above it");
    profile_release(&out);
    trace_free(t);
    program_free(p);
}

/* The profile of two threads in a step of 1.1 µs, whose ops work and are waited behind for so long. */
static struct profile profile_of_threads(struct program *p, const struct trace *t, const double *self, const double *imbalance)
{
    const double step_us[] = {1.1};
    const struct profile_input in = {.program = p, .trace = t, .peaks = PEAKS, .threads = 2, .step_us = step_us, .n_steps = 1,
                                     .batch = 1, .seq = 1, .accumulate = 1};
    struct profile out;
    struct error err;
    assert_ok(profile_build(&out, &in, &err), err);
    for (int i = 0; i < p->n_ops; i++) {
        assert_near(out.ops[i].self_us, self[i], 1e-12, "self time");
        assert_near(out.ops[i].imbalance_us, imbalance[i], 1e-12, "imbalance");
    }
    return out;
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
    struct profile out = profile_of_threads(p, t, (double[]){0.55, 0.295, 0.1, 0.08}, (double[]){0, 0.045, 0, 0});
    assert_near(part(out.gaps, out.n_gaps, "dispatch"), 0.01 + 0.02, 1e-12, "dispatch");
    profile_release(&out);
    trace_free(t);
    program_free(p);
}

/* The second thread is done with two ops while the first is in one, and helps it for 300 ns of the 500 that it would wait: they are work of that op, and no waiting
 * behind the other. */
static void test_help_is_work(void **state)
{
    (void)state;
    struct program *p = one_op();
    program_emit(p, OP_MATMUL, (struct op_attrs){.trans_b = true}, "z", 2, (value_id)0, (value_id)1);
    program_emit(p, OP_MATMUL, (struct op_attrs){.trans_b = true}, "u", 2, (value_id)0, (value_id)1);
    struct trace *t = trace_new();
    add(t, EVENT_OP, TRACK_THREADS, "y", 0, 0, 900);
    add(t, EVENT_OP, TRACK_THREADS + 1, "y", 0, 0, 300);
    add(t, EVENT_HELP, TRACK_THREADS + 1, "y", 0, 520, 820);
    add(t, EVENT_OP, TRACK_THREADS, "z", 1, 900, 1000);
    add(t, EVENT_OP, TRACK_THREADS + 1, "z", 1, 300, 500);
    add(t, EVENT_OP, TRACK_THREADS, "u", 2, 1000, 1100);
    add(t, EVENT_OP, TRACK_THREADS + 1, "u", 2, 1000, 1100);
    add(t, EVENT_PHASE, TRACK_HOST, "forward", -1, 0, 1100);
    add(t, EVENT_STEP, TRACK_HOST, TRACE_STEP, -1, 0, 1100);
    struct profile out = profile_of_threads(p, t, (double[]){0.75, 0.15, 0.1}, (double[]){0, 0.1, 0});
    profile_release(&out);
    trace_free(t);
    program_free(p);
}

/* Two products of 48 FLOPs in a step of 1 µs, of which each works `a_ns` and `b_ns`; held against these peaks. */
static struct profile two_products(struct program **program, int64_t a_ns, int64_t b_ns, double step_us, struct peaks peaks, double model_flops)
{
    struct program *p = *program = one_op();
    program_emit(p, OP_MATMUL, (struct op_attrs){.trans_b = true}, "z", 2, (value_id)0, (value_id)1);
    struct trace *t = trace_new();
    add(t, EVENT_OP, TRACK_THREADS, "y", 0, 0, a_ns);
    add(t, EVENT_OP, TRACK_THREADS, "z", 1, a_ns, a_ns + b_ns);
    add(t, EVENT_PHASE, TRACK_HOST, "forward", -1, 0, 1000);
    add(t, EVENT_STEP, TRACK_HOST, TRACE_STEP, -1, 0, 1000);
    const struct profile_input in = {.program = p, .trace = t, .peaks = peaks, .threads = 1, .step_us = &step_us, .n_steps = 1,
                                     .batch = 1, .seq = 1, .accumulate = 1, .model_flops = model_flops};
    struct profile out;
    struct error err;
    assert_ok(profile_build(&out, &in, &err), err);
    trace_free(t);
    return out;
}

static void release_both(struct profile *p, struct program *program)
{
    profile_release(p);
    program_free(program);
}

/* 48 FLOPs at 0.1 GFLOP/s take 0.48 µs at least. */
static void test_nothing_is_above_its_roofline(void **state)
{
    (void)state;
    const struct peaks peaks = {.threads = 1, .gflops[NUMBERS_F32] = 0.1, .copy_gb_per_s = {[3] = 100}, .machine = "slow"};
    struct program *program;

    /* The first op ran at its roofline, the second a little above. Steps without events are shorter by 0.02: what is not bound by the
     * roofline is, 0.01 of the second op and 0.01 of 0.03 between ops. */
    struct profile p = two_products(&program, 480, 490, 0.98, peaks, 1);
    assert_near(p.peaks.gflops[NUMBERS_F32], 0.1, 0, "nobody beat the peak");
    assert_near(p.ops[0].self_us, 0.48, 1e-9, "an op does not get faster than it can be");
    assert_near(p.ops[1].self_us, 0.48, 1e-9, "nor this one");
    assert_near(part(p.gaps, p.n_gaps, "dispatch"), 0.02, 1e-9, "dispatch");
    release_both(&p, program);

    p = two_products(&program, 480, 490, 0.9, peaks, 1);        /* less than both rooflines: the step proves the peak wrong */
    assert_near(p.ops[0].self_us, 0.9 * 0.48, 1e-9, "all alike");
    assert_near(p.peaks.gflops[NUMBERS_F32], 0.1 / 0.9, 1e-9, "raised");
    assert_near(p.ops[0].floor_us, p.ops[0].self_us, 1e-9, "at the roofline");
    release_both(&p, program);
}

/* An update is left out where gradients are not finite. */
static void test_what_has_not_done_its_work_proves_nothing(void **state)
{
    (void)state;
    const struct peaks peaks = {.threads = 1, .gflops[NUMBERS_F32] = 0.1, .copy_gb_per_s = {[3] = 100}, .machine = "slow"};
    struct program *program;
    struct profile p = two_products(&program, 480, 240, 1.0, peaks, 1);
    struct peaks raised = peaks;
    assert_true(profile_raise_peaks(&p, program, &raised));
    program->ops[1].phase = PHASE_OPTIMIZE;
    raised = peaks;
    assert_false(profile_raise_peaks(&p, program, &raised));
    assert_near(raised.gflops[NUMBERS_F32], 0.1, 0, "the first op ran at it");
    program->ops[1].phase = PHASE_FORWARD;
    program->ops[1].attrs.packed = true;                        /* attention passes by keys of other samples */
    assert_false(profile_raise_peaks(&p, program, &raised));
    program->ops[1].attrs.packed = false;
    p.threads = 2, p.usable_cores = 1;                          /* threads have a part of a core each */
    assert_false(profile_raise_peaks(&p, program, &raised));
    p.usable_cores = 2;
    assert_true(profile_raise_peaks(&p, program, &raised));
    release_both(&p, program);
}

static void test_peaks_rise_to_what_was_reached(void **state)
{
    (void)state;
    const struct peaks peaks = {.threads = 1, .gflops[NUMBERS_F32] = 0.1, .copy_gb_per_s = {0.2, 0, 0, 0.1}, .cache_bytes = {10, 0, 0, 1e9},
                                .machine = "slow"};
    struct program *program;
    struct profile p = two_products(&program, 480, 240, 1.0, peaks, 1);
    assert_near(p.peaks.gflops[NUMBERS_F32], 0.2, 1e-12, "48 FLOPs in 0.24 µs");
    assert_near(p.peaks.copy_gb_per_s[3], 0.1, 0, "104 bytes in 0.24 µs did not come from memory");
    assert_near(p.peaks.copy_gb_per_s[0], 104 / 0.24e3, 1e-12, "and the nearest level is faster than was measured");
    assert_int_equal(p.ops[1].level, 0);
    for (int i = 0; i < 2; i++)
        assert_true(p.ops[i].floor_us <= p.ops[i].self_us * (1 + 1e-12) && p.ops[i].floor_us > 0);
    struct peaks again = peaks;
    assert_true(profile_raise_peaks(&p, program, &again));
    assert_false(profile_raise_peaks(&p, program, &again));
    release_both(&p, program);

    p = two_products(&program, 480, 480, 1.0, peaks, 300);      /* no op beats it, but the step as a whole: 0.3 GFLOP/s */
    assert_near(p.mfu_peak.gflops, 0.3, 1e-12, "the peak");
    assert_near(p.mfu_percent, 100, 1e-9, "MFU");
    release_both(&p, program);
}

/* x (2,3,4) and w (5,4): 480 FLOPs to the loss, as many again for both gradients. */
static void test_gradients_in_the_forward(void **state)
{
    (void)state;
    struct program *p = program_new("loss");
    const value_id x = program_add_parameter(p, "x", shape_of(3, (int64_t)2, (int64_t)3, (int64_t)4), ROLE_MATRIX, INIT_ONES, 0);
    const value_id w = program_add_parameter(p, "w", shape_of(2, (int64_t)5, (int64_t)4), ROLE_MATRIX, INIT_ONES, 0);
    const value_id in[] = {x, w, program_add_value(p, "targets", VALUE_INPUT, I32, shape_of(2, (int64_t)2, (int64_t)3))};
    assert_int_equal(program_add_op(p, OP_LINEAR_LOSS, (struct op_attrs){.parts = 4}, "loss", 3, in), 0);
    assert_near(op_gradient_share(p, &p->ops[0]), 0.5, 1e-12, "share");
    struct trace *t = trace_new();
    add(t, EVENT_OP, TRACK_THREADS, "loss", 0, 0, 900);
    add(t, EVENT_PHASE, TRACK_HOST, "forward", -1, 0, 1000);
    add(t, EVENT_STEP, TRACK_HOST, TRACE_STEP, -1, 0, 1000);
    const double step_us[] = {1};
    const struct profile_input input = {.program = p, .trace = t, .peaks = PEAKS, .threads = 1, .step_us = step_us, .n_steps = 1,
                                        .batch = 2, .seq = 3, .accumulate = 1};
    struct profile out;
    struct error err;
    assert_ok(profile_build(&out, &input, &err), err);
    assert_near(part(out.split, out.n_split, "forward"), 0.55, 1e-12, "half of the work, and dispatch");
    assert_near(part(out.split, out.n_split, "backward"), 0.45, 1e-12, "the gradients");
    assert_near(part(out.parts, out.n_parts, "head and loss"), 0.9, 1e-12, "all of it");
    assert_near(out.products.us, 0.9, 1e-12, "a product");
    assert_true(out.products.ops == 1 && out.products.projections == 1);
    profile_release(&out);
    trace_free(t);
    p->ops[0].attrs.parts = 2;                          /* evaluation makes none */
    assert_near(op_gradient_share(p, &p->ops[0]), 0, 0, "share");
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

/* Steps that choose nodes and steps that keep the choice are timed together: a turn is of three of them. */
static void test_steps_of_a_cycle(void **state)
{
    (void)state;
    static const char text[] = "model: {arch: k1, dim: 32, heads: 2, seq: 16, tree: [3, 2]}\nk1: {k: 5, every: 3}\n"
                               "data: {chars: 20000, workers: 0}\ntrain: {batch_size: 2}\neval: {every: 0}\nthreads: 1\n";
    enum { WARM_UP = 3, TURNS = 4, TOKENS = 2 * 16 };
    struct config c;
    struct measured m;
    struct error err;
    assert_ok(config_parse(&c, "test", text, sizeof text - 1, NULL, 0, &err), err);
    assert_ok(measure_steps(&m, &c, TURNS, NULL, NULL, NULL, &err), err);
    assert_int_equal(m.n, TURNS);
    assert_near(m.run->fill.positions, TOKENS * (WARM_UP + TURNS * (3 + 1)), 0, "tokens of all steps");     /* a turn, and a step with events */
    measured_release(&m);
}

static volatile sig_atomic_t stop;

static void stop_now(int signal)
{
    (void)signal;
    stop = 1;
}

static void stop_in_next_turn(void *context, int done, int total)
{
    (void)context;
    (void)total;
    if (done == 1)
        setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {.tv_usec = 1000}}, NULL);
}

/* Ctrl-C within a turn of slow steps is heard after the step that is under way; what was measured of the turn does not count. */
static void test_stop_within_a_turn(void **state)
{
    (void)state;
    static const char text[] = "model: {arch: k1, dim: 64, heads: 2, seq: 64, tree: [3, 2]}\nk1: {k: 5, every: 8}\n"
                               "data: {chars: 20000, workers: 0}\ntrain: {batch_size: 8}\neval: {every: 0}\nthreads: 1\n";
    enum { WARM_UP = 3, TOKENS = 8 * 64 };
    struct config c;
    struct measured m;
    struct error err;
    signal(SIGALRM, stop_now);
    assert_ok(config_parse(&c, "test", text, sizeof text - 1, NULL, 0, &err), err);
    assert_ok(measure_steps(&m, &c, 3, &stop, stop_in_next_turn, NULL, &err), err);
    assert_int_equal(m.n, 1);
    assert_true(m.run->fill.positions < TOKENS * (WARM_UP + 8 + 1 + 8));
    measured_release(&m);
}

static void stop_at_once(void *context, int done, int total)
{
    (void)context;
    (void)done;
    (void)total;
    stop = 1;
}

/* Stopped before the evaluation was measured: that it takes no time is not known. */
static void test_stop_before_evaluation(void **state)
{
    (void)state;
    struct config c;
    struct measured m;
    struct error err;
    stop = 0;
    assert_ok(config_parse(&c, "test", CONFIG, sizeof CONFIG - 1, NULL, 0, &err), err);
    assert_ok(measure_steps(&m, &c, 9, &stop, stop_at_once, NULL, &err), err);
    assert_true(m.n == 1 && isnan(m.evaluation_us) && isnan(measured_evaluation_us(&m)));
    measured_release(&m);
    stop = 0;
}

/* A run over domains is evaluated at the end of each stage, also where eval.every is 0. */
static void test_evaluation_of_stages(void **state)
{
    (void)state;
    static const char text[] = "model: {arch: k1, dim: 32, heads: 2, seq: 16, tree: [2]}\nk1: {k: 2}\n"
                               "data: {domains: [formulas, code], chars: 20000, workers: 0}\ntrain: {batch_size: 4, steps: 10}\neval: {every: 0, batches: 1}\nthreads: 1\n";
    struct config c;
    struct measured m;
    struct error err;
    assert_ok(config_parse(&c, "test", text, sizeof text - 1, NULL, 0, &err), err);
    assert_ok(measure_steps(&m, &c, 2, NULL, NULL, NULL, &err), err);
    assert_true(m.total_steps == 20 && m.evaluations.stage == 10 && m.evaluation_us > 0);
    assert_near(measured_evaluation_us(&m), m.evaluation_us * 2 / 20, 1e-9 * m.evaluation_us, "two of 20 steps");
    measured_release(&m);
}

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
    assert_true(m.evaluation_us > 0 && m.evaluations.every == 10 && m.model_flops > 0 && m.rss_peak_bytes > 1e6);
    const struct profile_input in = {
        .program = m.program, .trace = m.trace, .peaks = PEAKS, .threads = m.threads, .step_us = m.step_us, .wait_us = m.wait_us, .n_steps = m.n,
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
    assert_near(work + gaps, p.step_us, 1e-9 * p.step_us, "work and gaps");
    assert_near(split, p.step_us + m.evaluation_us / 10, 1e-9 * split, "the split");
    assert_near(kinds, work, 1e-9 * work, "kinds");
    double parts = 0;
    for (int i = 0; i < p.n_parts; i++) {
        assert_true(p.parts[i].us > 0);             /* a llama with accumulation has all of them */
        parts += p.parts[i].us;
    }
    assert_int_equal(p.n_parts, 7);
    assert_near(parts, work, 1e-9 * work, "parts of the model");
    for (int i = 0; i < p.n_ops; i++)
        assert_true(p.ops[i].floor_us <= p.ops[i].self_us * (1 + 1e-12));
    assert_true(p.mfu_percent <= 100 * (1 + 1e-12));
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts_by_hand), cmocka_unit_test(test_times_of_kernels), cmocka_unit_test(test_nothing_measured),
                                       cmocka_unit_test(test_far_more_than_a_cache),
                                       cmocka_unit_test(test_threads_that_do_not_meet), cmocka_unit_test(test_help_is_work),
                                       cmocka_unit_test(test_nothing_is_above_its_roofline), cmocka_unit_test(test_what_has_not_done_its_work_proves_nothing),
                                       cmocka_unit_test(test_peaks_rise_to_what_was_reached),
                                       cmocka_unit_test(test_gradients_in_the_forward),
                                       cmocka_unit_test(test_steps_of_a_cycle), cmocka_unit_test(test_stop_within_a_turn), cmocka_unit_test(test_stop_before_evaluation), cmocka_unit_test(test_evaluation_of_stages),
                                       cmocka_unit_test(test_sums_of_a_run)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
