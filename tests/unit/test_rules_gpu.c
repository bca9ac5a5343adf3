/* Rules that only a GPU can break, on programs and profiles made by hand: fired on a GPU, not fired near the limit, never on a CPU; and the
 * words of a GPU's profile, which knows no threads. */
#include "unit/rule_programs.h"

/* A chain of two products (2, 3, 4) x (4, n)^T x (4, n), 100 µs each. */
static struct profiled on_gpu(int64_t n, bool gpu)
{
    struct program *p = program_new("two");
    const value_id x = product(p, "up", embedded(p), matrix(p, "w1", n, 4));
    product(p, "down", x, matrix(p, "w2", 4, n));
    struct profiled y = profiled_new(p);
    y.profile.gpu = gpu;
    y.profile.device_name = "NVIDIA H200";
    y.profile.peaks.gflops[NUMBERS_BF16] = 16;
    y.profile.peaks.gpu.replayed_us = 0.5;
    y.profile.peaks.gpu.launched_us = 3;
    set_us(&y, OP_MATMUL, 100);
    return y;
}

/* No op is a product of narrower numbers, and none of another rule. */
static void round_operands(struct profiled *x)
{
    for (int i = 0; i < x->program->n_ops; i++)
        if (x->program->ops[i].kind == OP_MATMUL)
            x->program->ops[i].attrs.round = ROUND_TF32;
}

static void test_launch_bound(void **state)
{
    (void)state;
    struct profiled x = on_gpu(8, true);
    x.profile.kernels_per_step = 40;
    add_gap(&x, "idle between kernels", 100);       /* of 300 */
    add_up(&x);
    run_detect(&x);                                 /* as a graph it would be 20 */
    const struct finding *f = assert_finding(&x, "launch-bound", 1 / 3.0, 300 / 260.0, 300 / 220.0, 1.5);
    assert_text(f->where, "between the 40 kernels of the step");
    assert_text(f->fix, "optimize.capture=on");
    assert_text(f->evidence, "kernels work for 200 µs of the 300 µs step, 5 µs each; one that does nothing costs 3 µs");
    assert_null(find(&x, "host-bound"));
    x.facts.replayed = true;                        /* it is one already */
    run_detect(&x);
    f = assert_finding(&x, "launch-bound", 1 / 3.0, 300 / 275.0, 300 / 250.0, 1.5);
    assert_text(f->fix, "passes that fuse");
    x.profile.gaps[0].us = 20;
    add_up(&x);
    run_detect(&x);                                 /* 9 % */
    assert_null(find(&x, "launch-bound"));
    profiled_release(&x);
    x = on_gpu(8, false);
    add_gap(&x, "idle between kernels", 100);
    add_up(&x);
    run_detect(&x);
    assert_null(find(&x, "launch-bound"));
    profiled_release(&x);
}

/* Kernels of 4 µs that move next to nothing are not held back by memory, whichever side of the roofline they lie on. */
static void test_latency(void **state)
{
    (void)state;
    struct profiled x = on_gpu(8, true);
    x.profile.peaks.gflops[NUMBERS_F32] = x.profile.peaks.copy_gb_per_s[CACHE_LEVELS - 1] = 1e6;
    set_us(&x, OP_MATMUL, 4);
    add_up(&x);
    run_detect(&x);
    assert_string_equal(x.profile.bound_by, "latency");
    assert_text(x.profile.headline, "100 % of its 8 µs is in 2 short ops that take 4 µs each, whatever they do; their arithmetic and traffic "
                                    "alone would take 0 % of that");
    set_us(&x, OP_MATMUL, 40);                      /* long enough for what they do to count */
    add_up(&x);
    run_detect(&x);
    assert_string_equal(x.profile.bound_by, "compute");
    set_us(&x, OP_MATMUL, 4);
    x.profile.gpu = false;
    add_up(&x);
    run_detect(&x);
    assert_string_equal(x.profile.bound_by, "compute");
    profiled_release(&x);
}

static void test_host_bound(void **state)
{
    (void)state;
    struct profiled x = on_gpu(8, true);
    add_gap(&x, "upload", 20);
    add_gap(&x, "host", 30);
    add_up(&x);
    run_detect(&x);
    const struct finding *f = assert_finding(&x, "host-bound", 0.2, 1, 250 / 225.0, 1.25);
    assert_text(f->cause, "The GPU waits for the host for 20.0 % of the step");
    x.profile.gaps[1].us = x.profile.gaps[0].us = 5;
    add_up(&x);
    run_detect(&x);
    assert_null(find(&x, "host-bound"));
    profiled_release(&x);
}

static void test_no_mixed_precision(void **state)
{
    (void)state;
    struct profiled x = on_gpu(8, true);
    add_up(&x);
    run_detect(&x);                                 /* at 1/16 of the time 187.5 of 200 would go; half of it is expected */
    const struct finding *f = assert_finding(&x, "no-mixed-precision", 1, 200 / (200 - 187.5 / 4), 200 / (200 - 187.5 / 2), 16);
    assert_text(f->cause, "2 products are of f32 on a GPU whose tensor cores multiply bf16 16 times as fast");
    assert_text(f->fix, "optimize.precision=bf16");
    round_operands(&x);
    run_detect(&x);
    assert_null(find(&x, "no-mixed-precision"));
    profiled_release(&x);
    x = on_gpu(8, true);
    x.profile.peaks.gflops[NUMBERS_BF16] = 0;       /* it has no such products */
    add_up(&x);
    run_detect(&x);
    assert_null(find(&x, "no-mixed-precision"));
    profiled_release(&x);
    x = on_gpu(8, false);
    add_up(&x);
    run_detect(&x);
    assert_null(find(&x, "no-mixed-precision"));
    profiled_release(&x);
}

static void test_misaligned_dims(void **state)
{
    (void)state;
    struct profiled x = on_gpu(50257, true);
    round_operands(&x);
    add_up(&x);
    run_detect(&x);
    const struct finding *f = find(&x, "misaligned-dims");
    assert_non_null(f);
    assert_text(f->cause, "Rows of 50257 numbers");
    assert_text(f->fix, "50304 instead of 50257");
    profiled_release(&x);
    x = on_gpu(50257, true);                        /* products of f32 need no tensor cores */
    add_up(&x);
    run_detect(&x);
    assert_null(find(&x, "misaligned-dims"));
    profiled_release(&x);
    x = on_gpu(8, true);                            /* 32 bytes */
    round_operands(&x);
    add_up(&x);
    run_detect(&x);
    assert_null(find(&x, "misaligned-dims"));
    profiled_release(&x);
}

static void test_low_occupancy(void **state)
{
    (void)state;
    struct profiled x = on_gpu(8, true);
    const int embed = op_of_kind(x.program, OP_EMBED, 0);
    x.facts.batch = 4;
    x.profile.ops[embed].self_us = 50;
    x.profile.ops[embed].floor_us = 10;
    x.profile.ops[embed].occupancy = 0.05;
    x.profile.ops[op_of_kind(x.program, OP_MATMUL, 0)].occupancy = 0.05;        /* good products have few warps */
    add_up(&x);
    run_detect(&x);
    const struct finding *f = assert_finding(&x, "low-occupancy", 0.2, 1, 250 / 230.0, 250 / 210.0);
    assert_string_equal(f->where, "emb");
    assert_text(f->fix, "train.batch_size=8");
    assert_text(f->evidence, "an occupancy of 5 %");
    x.profile.ops[embed].floor_us = 30;             /* fast as it is */
    run_detect(&x);
    assert_null(find(&x, "low-occupancy"));
    x.profile.ops[embed].floor_us = 10;
    x.profile.ops[embed].occupancy = 0.2;
    run_detect(&x);
    assert_null(find(&x, "low-occupancy"));
    x.profile.ops[embed].occupancy = 0;             /* not known */
    run_detect(&x);
    assert_null(find(&x, "low-occupancy"));
    profiled_release(&x);
}

static void test_copies(void **state)
{
    (void)state;
    struct program *p = program_new("read");
    const value_id loss = with_loss(p, product(p, "head", embedded(p), matrix(p, "w", 5, 4)));
    program_emit(p, OP_HOST_READ, NONE, "host.loss", 1, loss);
    struct profiled x = profiled_new(p);
    x.profile.gpu = true;
    set_us(&x, OP_MATMUL, 80);
    set_us(&x, OP_HOST_READ, 20);
    add_up(&x);
    run_detect(&x);
    const struct finding *f = assert_finding(&x, "device-to-host-copy", 0.2, 1, 1.25, 1.25);
    assert_string_equal(f->after, "host-sync");
    assert_text(f->cause, "4 B are copied from the GPU to the host in every step");
    assert_non_null(find(&x, "host-sync"));
    x.profile.gpu = false;
    run_detect(&x);
    assert_null(find(&x, "device-to-host-copy"));
    x.profile.gpu = true;
    profiled_release(&x);
}

/* ---- words ---- */

static void assert_no_cpu(const char *text)
{
    static const char *const words[] = {"thread", "meet", "Thread", "core", "AVX", "BFMMLA", "dispatch", "preempt"};
    for (size_t i = 0; text && i < sizeof words / sizeof *words; i++) {
        const char *at = strstr(text, words[i]);
        if (at && strncmp(at, "cores multiply", 14) && strncmp(at, "cores get", 9))       /* tensor cores */
            fail_msg("'%s' in '%s'", words[i], text);
    }
}

static void test_words(void **state)
{
    (void)state;
    struct profiled x = on_gpu(50257, true);
    x.facts = (struct run_facts){.batch = 4, .threads = 1, .usable_cores = 1, .workers = 1, .available_bytes = 100, .eval_us_per_step = 50,
                                 .eval_batches = 3, .eval_every_steps = 10};
    x.profile.peak_bytes = 99;
    x.profile.delayed_share = 0.5;                  /* the host's cores are busy, which does not matter */
    x.profile.ops[0].self_us = 60;
    x.profile.ops[0].occupancy = 0.01;
    add_gap(&x, "loader wait", 40);
    add_gap(&x, "upload", 50);
    add_gap(&x, "idle between kernels", 400);
    add_gap(&x, "host", 60);
    add_up(&x);
    run_detect(&x);
    const struct profile *p = &x.profile;
    assert_true(p->n_findings >= 8);
    for (int i = 0; i < p->n_findings; i++) {
        assert_no_cpu(p->findings[i].where);
        assert_no_cpu(p->findings[i].cause);
        assert_no_cpu(p->findings[i].fix);
        assert_no_cpu(p->findings[i].evidence);
    }
    assert_null(p->warning);
    assert_string_equal(p->bound_by, "overhead");
    assert_text(p->headline, "the GPU is idle between kernels for 49 %");
    assert_text(p->largest, "idle between kernels: 400 µs");
    assert_no_cpu(p->headline);
    assert_no_cpu(p->largest);
    assert_no_cpu(p->first_action);
    gpu_watch_begin(&x.profile.watch, NULL);
    gpu_watch_add(&x.profile.watch, &(struct gpu_state){.sm_mhz = 1980, .slowed = SLOWED_BY_HEAT});
    run_detect(&x);
    assert_text(p->warning, "held down by heat while this was measured");
    profiled_release(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launch_bound), cmocka_unit_test(test_latency), cmocka_unit_test(test_host_bound), cmocka_unit_test(test_no_mixed_precision),
        cmocka_unit_test(test_misaligned_dims), cmocka_unit_test(test_low_occupancy), cmocka_unit_test(test_copies), cmocka_unit_test(test_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
