/* Gains of repairs where the models of gain were wrong in principle once: what is planted says what a repair must win. */
#include "unit/trace_models.h"

#include "unit/replayed.h"

/* ---- data-stall: the loader of the fix also pins the batch ---- */

static void upload(struct model *m, int64_t bytes, double us)
{
    model_begin(m, "to", "[[32, 256]]");
    model_begin(m, "copy_", "[[32, 256], [32, 256]]");
    traced_idle(&m->t, 10);
    traced_copy(&m->t, "Memcpy HtoD (Pageable -> Device)", bytes, us);
    traced_wait(&m->t, "cudaStreamSynchronize");
    model_end(m);
    model_end(m);
}

static void load(struct model *m)
{
    traced_begin(&m->t, EVENT_ANNOTATION, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    traced_idle(&m->t, 40000);
    traced_end(&m->t);
}

static void load_and_upload(struct model *m)
{
    load(m);
    upload(m, 8 << 20, 2000);
}

static void a_loader_that_pins_its_batches_wins_their_copies_too(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.data = load_and_upload;
    struct judged j = model_judge(&m, model_step_us(&m));
    const double step = model_step_us(&m);
    /* 200 µs to hand the batch over and 420 µs for a copy at 20 GB/s stay; the host does not wait for it */
    const double left = step - m.planted_us + 200, wait = left + 420;
    const struct finding *f = assert_found(&j, "data-stall");
    assert_true(f->speedup > 0.9 * step / wait && f->speedup < 1.1 * step / left);
    judged_release(&j);
}

static void a_long_stall_leaves_no_more_than_a_short_one(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.data = load;
    struct judged j = model_judge(&m, model_step_us(&m));
    const double step = model_step_us(&m);
    assert_gain(&j, "data-stall", step / (step - m.planted_us + 200), 0.01);
    judged_release(&j);
}

/* ---- no-flash-attention: what a mask skips ---- */

#define SCORES "[[32, 8, 256, 256], [256, 256]]"
enum { PRODUCT_US = 200, WIDE_US = 400 };

static const char *between_op, *between_dims;

static void attend(struct model *m)
{
    model_projections(m);
    model_begin(m, "matmul", "[[32, 8, 256, 64], [32, 8, 64, 256]]");
    model_op(m, "bmm", "[[256, 256, 64], [256, 64, 256]]", "gemm_bmm", PRODUCT_US, NULL);
    model_end(m);
    model_learn(m, "BmmBackward0", 2 * PRODUCT_US, 0);
    if (between_op)
        model_op(m, between_op, between_dims, "vectorized_elementwise_kernel", WIDE_US, "MulBackward0");
    model_op(m, "softmax", SCORES, "cunn_SoftMaxForward", WIDE_US, "SoftmaxBackward0");
    model_begin(m, "matmul", "[[32, 8, 256, 256], [32, 8, 256, 64]]");
    model_op(m, "bmm", "[[256, 256, 256], [256, 256, 64]]", "gemm_bmm", PRODUCT_US, NULL);
    model_end(m);
    model_learn(m, "BmmBackward0", 2 * PRODUCT_US, 0);
    model_linear(m, MODEL_WIDTH, MODEL_WIDTH, "nvjet_gemm", m->kernel_us);
}

/* Time of the device per step that goes, in µs. */
static double attention_wins(const char *op, const char *dims)
{
    between_op = op;
    between_dims = dims;
    struct model m = model_new(DEVICE_BOUND);
    m.attention = attend;
    struct judged j = model_judge(&m, 0);
    const struct finding *f = assert_found(&j, "no-flash-attention");
    const double us = j.d.corrected.step_us * (1 - 1 / f->speedup);
    judged_release(&j);
    return us;
}

static void without_a_causal_mask_all_products_stay(void **state)
{
    (void)state;
    /* softmax with its backward, which takes twice as long, and the backward of products, whose kernels here are no products by name */
    const double layers = 3, wide = layers * 3 * WIDE_US, plain_us = wide + layers * 4 * PRODUCT_US, products = layers * 2 * PRODUCT_US;
    assert_near(attention_wins(NULL, NULL), plain_us, 0.03 * wide, "no mask");
    assert_near(attention_wins("add", "[[32, 8, 256, 256], [1, 8, 256, 256]]"), plain_us + wide, 0.03 * wide, "a bias of each head");
    assert_near(attention_wins("masked_fill", SCORES), plain_us + wide + 0.3 * products, 0.03 * wide, "a mask");
    assert_near(attention_wins("add", SCORES), plain_us + wide + 0.3 * products, 0.03 * wide, "a mask that is added");
}

/* Scores without a mask are not told to become causal, which would be another model. */
static void the_code_of_attention_has_the_mask_that_is_there(void **state)
{
    (void)state;
    static const struct { const char *op, *dims, *has; bool causal; } cases[] = {
        {NULL, NULL, "scaled_dot_product_attention(q, k, v, dropout_p=p)", false},
        {"mul", "[[32, 8, 256, 256], []]", "scaled_dot_product_attention(q, k, v, dropout_p=p)", false},
        {"add", "[[32, 8, 256, 256], [32, 1, 1, 256]]", "attn_mask=bias", false},
        {"masked_fill", SCORES, "any other: attn_mask=mask", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        between_op = cases[i].op;
        between_dims = cases[i].dims;
        struct model m = model_new(DEVICE_BOUND);
        m.attention = attend;
        struct judged j = model_judge(&m, 0);
        const char *fix = assert_found(&j, "no-flash-attention")->fix;
        assert_non_null(strstr(fix, cases[i].has));
        assert_int_equal(strstr(fix, "is_causal") != NULL, cases[i].causal);
        judged_release(&j);
    }
}

/* ---- host-bound ---- */

/* A step that is one graph of 2 ms, with Python around it. */
static void of_a_stretch_of_python_around_a_graph_nothing_stays(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < 4; i++) {
        traced_step_begin(&m, i);
        for (int k = 0; k < 4; k++) {
            traced_idle(&m, 2500);
            traced_start(&m, "cudaGraphLaunch", EVENT_KERNEL, "gemm", 500);
        }
        traced_wait(&m, "cudaStreamSynchronize");
        traced_step_end(&m);
    }
    const double step = m.now_us / 4;
    struct judged j = trace_judge(m.trace, step);
    const struct finding *f = assert_found(&j, "host-bound");
    assert_true(f->speedup > 0.93 * step / 2010 && f->speedup <= 1.01 * step / 2000);
    assert_not_found(&j, "launch-bound");
    judged_release(&j);
}

/* The launch of a graph of 400 kernels takes the longer for each that is recorded. */
static void kernels_of_a_graph_are_recorded_in_its_launch(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&m, i);
        const int64_t call = traced_at(&m, EVENT_RUNTIME, "cudaGraphLaunch", m.now_us, 500);
        traced_get(&m, call)->link = ++m.link;
        for (int k = 0; k < 400; k++) {
            const int64_t kernel = traced_at(&m, EVENT_KERNEL, "gemm", m.now_us + 10 + k, 0.5);
            traced_get(&m, kernel)->link = m.link;
        }
        traced_idle(&m, 600);
        traced_step_end(&m);
    }
    struct played p = play(m.trace);
    start(&p);
    struct replay_cost low, high;
    replay_calibrate(&p.replay, 0, &low, &high);
    assert_near(replay_run(&p.replay, NULL).host_ns, 0.5 * 500e3 + 96e3, 3e3, "host");
    release(&p);
}

/* Between two ops 1 ms of Python, all of it in 1000 recorded frames: the profiler's, and a library's. */
static void frames_of_a_library_are_no_stretch_of_the_users(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < 4; i++) {
        traced_step_begin(&m, i);
        for (int k = 0; k < 1000; k++)
            traced_at(&m, EVENT_PYTHON, "torch/_tensor.py(1225): __hash__", m.now_us + k, 0.5);
        traced_idle(&m, 1000);
        for (int k = 0; k < 100; k++)
            traced_run(&m, "aten::mm", 20, "gemm", 5);
        traced_step_end(&m);
    }
    struct judged j = trace_judge(m.trace, 0);
    const struct finding *f = judged_find(&j, "host-bound");
    assert_true(!f || f->speedup < 1.02);
    judged_release(&j);
}

/* ---- eval-share under compile: kernels are launched with no op around them ---- */

static void evaluate_compiled(struct model *m)
{
    m->no_grad = true;
    traced_begin(&m->t, EVENT_HOST_OP, "Torch-Compiled Region: 1/0");
    traced_begin(&m->t, EVENT_HOST_OP, "## Call CompiledFxGraph f00 ##");
    for (int i = 0; i < 8; i++) {
        traced_idle(&m->t, 20);
        traced_launch(&m->t, "triton_poi_fused_gelu_0", 300);
        model_op(m, "mm", "[[8192, 512], [512, 512]]", "nvjet_gemm", 100, NULL);
        traced_idle(&m->t, 20);
        traced_launch(&m->t, "triton_red_fused_norm_1", 300);
    }
    traced_end(&m->t);
    traced_end(&m->t);
    model_read(m, "cudaStreamSynchronize");
    m->no_grad = false;
}

static void all_of_a_compiled_evaluation_counts(void **state)
{
    (void)state;
    struct model m = model_new(DEVICE_BOUND);
    m.end = evaluate_compiled;
    struct judged j = model_judge(&m, 0);
    const double step = j.d.corrected.step_us;
    assert_gain(&j, "eval-share", step / (step - 0.95 * 8 * 700), 0.05);
    judged_release(&j);
}

/* ---- the host's part of a known step ---- */

/* The device fills the step, and the host's work takes nearly as long: what makes the device faster wins little. */
static void a_host_that_is_as_slow_as_the_device_is_the_next_bound(void **state)
{
    (void)state;
    struct replay_cost low, high;
    struct played q = plain(50, 60, 20);
    start(&q);
    replay_calibrate(&q.replay, 1010e3, &low, &high);
    assert_near(replay_run(&q.replay, NULL).host_ns, 0.95 * 1010e3, 10e3, "no more than the step");
    release(&q);
}

/* A long stretch that no event is in, and short ones: of the short ones 30 % stay at least, the rest is the machine. */
static void a_known_step_does_not_take_all_from_short_stretches(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&m, i);
        traced_idle(&m, 6000);
        for (int k = 0; k < 100; k++)
            traced_run(&m, "aten::mm", 40, "gemm", 5);
        traced_step_end(&m);
    }
    struct played p = play(m.trace);
    start(&p);
    struct replay_cost low, high;
    replay_calibrate(&p.replay, 6000e3, &low, &high);
    assert_near(p.replay.cost.left, 0.3, 0.01, "of a short stretch");
    assert_true(p.replay.cost.scale < 0.9);
    assert_near(replay_run(&p.replay, NULL).step_ns, 6000e3, 1e3, "the known step");
    release(&p);
}

/* ---- waits inside of an op that works ---- */

/* Steps of compiled code: one op with all kernels, 10 ms of them, and a wait. With `bytes` a tensor of that size is read before. */
static struct judged judge_compiled(int64_t bytes, bool elsewhere)
{
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&m, i);
        traced_begin(&m, EVENT_HOST_OP, "CompiledFunction");
        for (int k = 0; k < 20; k++) {
            traced_idle(&m, 10);
            traced_launch(&m, "gemm", 500);
        }
        if (bytes)
            traced_copy(&m, "Memcpy DtoH (Device -> Pageable)", bytes, 20);
        traced_wait(&m, "cudaStreamSynchronize");
        traced_end(&m);
        traced_idle(&m, 300);
        traced_step_end(&m);
    }
    /* work of the same device that no call of the trace launched */
    for (int i = 0; elsewhere && i < STEPS; i++) {
        traced_on_stream(&m, 9);
        traced_at(&m, EVENT_KERNEL, "gemm", 11000.0 * i + 100, 9000);
    }
    return trace_judge(m.trace, 0);
}

static void what_works_stays_when_its_waits_go(void **state)
{
    (void)state;
    struct judged j = judge_compiled(0, false);
    const struct finding *f = assert_found(&j, "host-sync");
    const double most = j.d.corrected.step_us / j.d.corrected.device_us;
    assert_true(f->speedup > 1 && f->speedup <= most * 1.0001 && f->speedup_high <= most * 1.07);
    assert_true(f->share > 0.9 && f->share <= 1);           /* the host is in the wait for nearly all of the step */
    judged_release(&j);
    struct judged k = judge_compiled(1 << 20, false);
    f = assert_found(&k, "device-to-host-copy");
    assert_true(f->speedup > 1 && f->speedup < 1.1);
    judged_release(&k);
}

/* No edit takes away what it cannot name: the device's work is as long as before where nothing of it goes. */
static void work_that_no_call_launched_stays(void **state)
{
    (void)state;
    struct judged j = judge_compiled(0, true);
    const struct finding *f = assert_found(&j, "host-sync");
    assert_true(f->speedup <= 1.0001 * j.d.corrected.step_us / j.d.corrected.device_us);
    judged_release(&j);
}

/* A short wait in a step that the device fills: its part of the step, not of what the host does. */
static void a_share_is_of_the_step(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&m, i);
        traced_run(&m, "aten::mm", 20, "gemm", 100);
        traced_begin(&m, EVENT_HOST_OP, "aten::item");
        traced_idle(&m, 20);
        traced_wait(&m, "cudaStreamSynchronize");
        traced_end(&m);
        traced_run(&m, "aten::mm", 20, "gemm", 9900);
        traced_begin(&m, EVENT_HOST_OP, "aten::to");        /* the next batch, behind all that */
        traced_copy(&m, "Memcpy HtoD (Pageable -> Device)", 4096, 10);
        traced_wait(&m, "cudaStreamSynchronize");
        traced_end(&m);
        traced_step_end(&m);
    }
    struct judged j = trace_judge(m.trace, 0);
    const struct finding *f = assert_found(&j, "host-sync");
    assert_true(f->share < 0.02);
    judged_release(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loader_that_pins_its_batches_wins_their_copies_too),
        cmocka_unit_test(a_long_stall_leaves_no_more_than_a_short_one),
        cmocka_unit_test(without_a_causal_mask_all_products_stay),
        cmocka_unit_test(the_code_of_attention_has_the_mask_that_is_there),
        cmocka_unit_test(of_a_stretch_of_python_around_a_graph_nothing_stays),
        cmocka_unit_test(kernels_of_a_graph_are_recorded_in_its_launch),
        cmocka_unit_test(frames_of_a_library_are_no_stretch_of_the_users),
        cmocka_unit_test(all_of_a_compiled_evaluation_counts),
        cmocka_unit_test(a_host_that_is_as_slow_as_the_device_is_the_next_bound),
        cmocka_unit_test(a_known_step_does_not_take_all_from_short_stretches),
        cmocka_unit_test(what_works_stays_when_its_waits_go),
        cmocka_unit_test(work_that_no_call_launched_stays),
        cmocka_unit_test(a_share_is_of_the_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
