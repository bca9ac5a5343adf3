/* Rules on traces about what bounds a step and about the device: each on a step that has the fault, with the gain that the planted
 * time promises, and on near misses that must stay quiet. */
#include "unit/trace_models.h"

/* ---- what bounds the step ---- */

static void think(struct model *m) { traced_idle(&m->t, 4000); }

static void pythons_own_time_is_told_from_launching(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.end = think;
    struct judged j = model_judge(&m, model_step_us(&m));
    assert_gain(&j, "host-bound", model_gain(&m), 0.05);
    assert_string_equal(j.d.bound_by, "host");
    judged_release(&j);
}

static void many_short_launches_bind_the_step_to_the_host(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    struct judged j = model_judge(&m, model_step_us(&m));
    const struct finding *f = assert_found(&j, "launch-bound");
    /* no more than until the device is the bound */
    assert_true(f->speedup > 1.5 && f->speedup < 1.01 * j.d.corrected.step_us / j.d.corrected.device_us);
    judged_release(&j);
}

static void a_step_that_the_device_fills_is_not_bound_by_the_host(void **state)
{
    (void)state;
    struct model m = model_new(DEVICE_BOUND);
    m.end = think;                          /* beside the device's work */
    struct judged j = model_judge(&m, 0);
    assert_not_found(&j, "host-bound");
    assert_not_found(&j, "launch-bound");
    assert_not_found(&j, "small-batch");
    assert_string_equal(j.d.bound_by, "device");
    judged_release(&j);
}

/* Host work, then device work that the host waits for: neither fills the step. */
static struct trace *serial_steps(void (*work)(struct traced *m))
{
    struct traced m = traced_new();
    for (int i = 0; i < 4; i++) {
        traced_step_begin(&m, i);
        work(&m);
        for (int k = 0; k < 10; k++)
            traced_run(&m, "aten::mm", 20, "gemm", 5000);
        traced_wait(&m, "cudaStreamSynchronize");
        traced_step_end(&m);
    }
    return m.trace;
}

static void prepare_in_a_range(struct traced *m)
{
    traced_begin(m, EVENT_ANNOTATION, "preprocess");
    traced_idle(m, 25000);
    traced_op(m, "aten::upsample_bilinear2d", 5000);        /* on the host, inside the range */
    traced_idle(m, 10000);
    traced_end(m);
}

static void prepare_in_a_frame(struct traced *m)
{
    const double from = m->now_us;
    traced_idle(m, 40000);
    traced_at(m, EVENT_PYTHON, "train.py(12): augment", from, 40000);
    traced_at(m, EVENT_PYTHON, "numpy/random.py(3): shuffle", from + 100, 30000);
}

static void host_work_in_series_with_the_device_is_named(void **state)
{
    (void)state;
    const struct { void (*work)(struct traced *m); const char *name; } cases[] = {
        {prepare_in_a_range, "preprocess"}, {prepare_in_a_frame, "train.py(12): augment"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct judged j = trace_judge(serial_steps(cases[i].work), 0);
        const struct finding *f = assert_gain(&j, "host-bound", 90.1 / 50.1, 0.05);
        assert_string_equal(f->where, cases[i].name);
        assert_non_null(strstr(f->evidence, i ? "augment 39.9 ms" : "preprocess 39.9 ms"));
        assert_not_found(&j, "launch-bound");
        judged_release(&j);
    }
}

static void few_long_launches_are_not_launch_bound(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < 4; i++) {
        traced_step_begin(&m, i);
        for (int k = 0; k < 10; k++)
            traced_run(&m, "aten::mm", 500, "gemm", 20);
        traced_step_end(&m);
    }
    struct judged j = trace_judge(m.trace, 0);
    assert_not_found(&j, "launch-bound");
    assert_found(&j, "host-bound");
    judged_release(&j);
}

static void short_products_gain_by_a_larger_batch(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.kernel_us = 4;
    struct judged j = model_judge(&m, 0);
    const struct finding *f = assert_found(&j, "small-batch");
    assert_true(f->speedup > 1.5 && f->speedup <= 32);
    judged_release(&j);
    struct model large = model_new(HOST_BOUND);
    large.kernel_us = 25;                   /* products of 25 to 50 µs */
    large.host_us = 60;
    struct judged k = model_judge(&large, 0);
    assert_not_found(&k, "small-batch");
    judged_release(&k);
}

static void load_for_long(struct model *m)
{
    traced_begin(&m->t, EVENT_ANNOTATION, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
    traced_idle(&m->t, 20000);
    traced_end(&m->t);
}

static void load_for_a_third(struct model *m)
{
    traced_begin(&m->t, EVENT_ANNOTATION, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
    traced_idle(&m->t, 4000);
    traced_end(&m->t);
}

static void think_for_long(struct model *m) { traced_idle(&m->t, 20000); }

/* Neither more samples of a slow loader nor more Python on each are free. */
static void waiting_for_samples_grows_with_the_batch(void **state)
{
    (void)state;
    static const struct { model_part *data; const char *first; } cases[] = {
        {load_for_long, "data-stall"}, {load_for_a_third, "data-stall"}, {think_for_long, "host-bound"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model m = model_new(HOST_BOUND);
        m.kernel_us = 4;
        m.data = cases[i].data;
        struct judged j = model_judge(&m, model_step_us(&m));
        const struct finding *small = judged_find(&j, "small-batch");
        const double most = 16 * model_step_us(&m) / (model_step_us(&m) + 15 * 0.85 * m.planted_us);
        assert_true(!small || small->speedup <= most);
        assert_string_equal(j.d.findings[0].rule, cases[i].first);
        assert_int_equal(strncmp(j.d.first_action, cases[i].first, strlen(cases[i].first)), 0);
        judged_release(&j);
    }
}

static void reduce_for_long(struct model *m)
{
    const double start = fmax(m->t.now_us + 6, m->t.free_us) + 1;
    traced_begin(&m->t, EVENT_HOST_OP, "c10d::alltoall_base_");
    traced_on_stream(&m->t, 20);
    traced_work_at(&m->t, "cudaLaunchKernelExC", m->t.now_us, 5, EVENT_KERNEL, "ncclDevKernel_SendRecv", start, 20000);
    traced_on_stream(&m->t, 7);
    traced_idle(&m->t, 10);
    traced_end(&m->t);
    m->t.free_us = start + 20001;
    traced_wait(&m->t, "cudaStreamSynchronize");
}

/* Products of so few blocks that they would not take longer with more. */
static void run_in_few_blocks(struct traced *m)
{
    for (int64_t i = 0; i < m->trace->n; i++)
        if (m->trace->events[i].kind == EVENT_KERNEL)
            traced_args(m, i)->grid[0] = 4;
}

static void waiting_for_other_ranks_grows_with_the_batch(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.kernel_us = 4;
    m.end = reduce_for_long;
    model_train(&m);
    run_in_few_blocks(&m.t);
    struct judged j = model_judge(&m, 0);
    const struct finding *small = judged_find(&j, "small-batch");
    assert_string_equal(j.d.bound_by, "communication");
    assert_true(!small || small->speedup < 1.5);
    assert_int_equal(strncmp(j.d.first_action, "exposed-comm", 12), 0);
    judged_release(&j);
}

/* ---- exposed-comm ---- */

/* A collective on a stream of its own; the optimizer's kernels start when it is done. */
static void reduce_behind_backward(struct model *m)
{
    const double stream_free = m->t.free_us;
    const double start = fmax(m->t.now_us + 6, stream_free) + 1;
    traced_begin(&m->t, EVENT_HOST_OP, "c10d::allreduce_");
    traced_on_stream(&m->t, 20);
    traced_work_at(&m->t, "cudaLaunchKernelExC", m->t.now_us, 5, EVENT_KERNEL, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", start, 3000);
    traced_on_stream(&m->t, 7);
    traced_idle(&m->t, 10);
    traced_end(&m->t);
    m->t.free_us = start + 3001;
    model_norm_of_gradients(m);
}

/* The same beside forward and backward. */
static void reduce_beside(struct model *m)
{
    traced_on_stream(&m->t, 20);
    traced_work_at(&m->t, "cudaLaunchKernelExC", m->t.now_us, 5, EVENT_KERNEL, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
                   fmax(m->t.now_us + 30, m->t.free_us), 3000);
    traced_on_stream(&m->t, 7);
    traced_idle(&m->t, 10);
}

static void collectives_that_nothing_hides_cost_their_time(void **state)
{
    (void)state;
    struct model m = model_new(DEVICE_BOUND);
    m.after_backward = reduce_behind_backward;
    struct judged j = model_judge(&m, 0);
    const double step = j.d.corrected.step_us;
    assert_gain(&j, "exposed-comm", step / (step - 3000), 0.15);
    judged_release(&j);
}

static const char *collective_kernel;

static void exchange_behind_backward(struct model *m)
{
    const double start = fmax(m->t.now_us + 6, m->t.free_us) + 1;
    traced_on_stream(&m->t, 20);
    traced_work_at(&m->t, "cudaLaunchKernelExC", m->t.now_us, 5, EVENT_KERNEL, collective_kernel, start, 3000);
    traced_work_at(&m->t, "cudaLaunchKernelExC", m->t.now_us + 6, 5, EVENT_KERNEL, "ncclDevKernel_Broadcast_RING_LL", start + 3000, 20);
    traced_on_stream(&m->t, 7);
    traced_idle(&m->t, 12);
    m->t.free_us = start + 3021;
    model_norm_of_gradients(m);
}

/* What hides a sum of gradients does nothing for weights that are gathered. */
static void the_code_is_for_the_collective_that_costs_most(void **state)
{
    (void)state;
    static const struct { const char *kernel, *has, *has_not; } cases[] = {
        {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "gradient_as_bucket_view=True", "prefetch"},
        {"ncclDevKernel_AllGather_RING_LL", "set_modules_to_forward_prefetch", "DDP("},
        {"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "backward_prefetch", "DDP("},
        {"ncclDevKernel_AllToAll", "all_to_all_single", "DDP("},
        {"ncclDevKernel_SendRecv", "async_op=True", "DDP("},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model m = model_new(DEVICE_BOUND);
        collective_kernel = cases[i].kernel;
        m.after_backward = exchange_behind_backward;
        struct judged j = model_judge(&m, 0);
        const char *fix = assert_found(&j, "exposed-comm")->fix;
        assert_non_null(strstr(fix, cases[i].has));
        assert_null(strstr(fix, cases[i].has_not));
        assert_null(strstr(fix, "25"));             /* what DDP does anyway is no change */
        judged_release(&j);
    }
}

static void collectives_beside_computation_are_hidden(void **state)
{
    (void)state;
    struct model m = model_new(DEVICE_BOUND);
    m.data = reduce_beside;
    struct judged j = model_judge(&m, 0);
    assert_true(j.d.gpu.comm_us > 0);
    assert_not_found(&j, "exposed-comm");
    judged_release(&j);
}

/* ---- memory-limit ---- */

static struct judged judge_memory(double bytes)
{
    struct model m = model_new(HOST_BOUND);
    struct trace *t = m.t.trace;
    model_train(&m);
    t->devices = xrealloc(NULL, sizeof *t->devices);
    t->n_devices = 1;
    t->devices[0] = (struct trace_device){.id = 0, .name = trace_name(t, "AMD Instinct MI250"), .major = 9, .multiprocessors = 104,
                                          .memory_bytes = (int64_t)64 << 30};
    for (int i = 0; i < 10; i++)
        traced_memory_at(&m.t, 100 * i, bytes * (i + 1) / 10);
    return model_judge(&m, 0);
}

static void memory_that_is_nearly_full_is_said(void **state)
{
    (void)state;
    struct judged j = judge_memory(0.97 * 64 * (1 << 30));
    const struct finding *f = assert_found(&j, "memory-limit");
    assert_near(f->speedup, 1, 0, "speed-up");
    assert_int_equal(f->severity, SEVERITY_LOW);
    assert_string_equal(j.d.device, "AMD Instinct MI250");
    judged_release(&j);
    struct judged k = judge_memory(0.6 * 64 * (1 << 30));
    assert_not_found(&k, "memory-limit");
    judged_release(&k);
}

/* ---- low-occupancy ---- */

static void fill_arguments(struct trace *t, const char *kernel, float occupancy)
{
    struct traced m = {.trace = t};
    for (int64_t i = 0; i < t->n; i++)
        if (t->events[i].kind == EVENT_KERNEL && !strcmp(t->names[t->events[i].name], kernel)) {
            struct event_args *a = traced_args(&m, i);
            a->occupancy = occupancy;
            a->grid[0] = 4096, a->grid[1] = a->grid[2] = 1;
        }
}

static void roll(struct model *m) { model_op(m, "roll", MODEL_X, "roll_cuda_kernel", 1000, "RollBackward0"); }

static struct judged judge_occupancy(const char *kernel, float occupancy)
{
    struct model m = model_new(DEVICE_BOUND);
    m.end = roll;
    model_train(&m);
    fill_arguments(m.t.trace, kernel, occupancy);
    return model_judge(&m, 0);
}

static void kernels_of_few_warps_could_be_faster(void **state)
{
    (void)state;
    struct judged j = judge_occupancy("roll_cuda_kernel", 6);
    const double step = j.d.corrected.step_us;
    assert_gain(&j, "low-occupancy", step / (step - 500), 0.1);
    judged_release(&j);
    struct judged high = judge_occupancy("roll_cuda_kernel", 80), gemm = judge_occupancy("nvjet_gemm", 6);
    assert_not_found(&high, "low-occupancy");
    assert_not_found(&gemm, "low-occupancy");
    judged_release(&high);
    judged_release(&gemm);
}

/* ---- layout-copies ---- */

static void make_contiguous(struct model *m)
{
    model_attention(m);
    model_begin(m, "contiguous", "[[32, 256, 512], []]");
    model_begin(m, "clone", "[[32, 256, 512], []]");
    model_op(m, "copy_", MODEL_X, "elementwise_kernel<direct_copy>", 300, NULL);
    model_end(m);
    model_end(m);
    model_learn(m, "CloneBackward0", 0, 0);
}

static void be_contiguous(struct model *m)
{
    model_attention(m);
    model_view(m, "contiguous", "[[32, 256, 512], []]");
    model_begin(m, "reshape", "[[32, 256, 512], []]");
    model_view(m, "view", "[[32, 256, 512], []]");
    model_end(m);
}

static void copies_for_another_order_cost_their_time(void **state)
{
    (void)state;
    struct model m = model_new(DEVICE_BOUND);
    m.attention = make_contiguous;
    struct judged j = model_judge(&m, 0);
    const double step = j.d.corrected.step_us;
    assert_gain(&j, "layout-copies", step / (step - 3 * 300), 0.05);
    judged_release(&j);
}

/* A convolution as cuDNN runs it on planes: input and weights are turned round, the result is turned back. */
static void convolve_planes(struct model *m)
{
    model_begin(m, "conv2d", "[[512, 64, 64, 64], [64, 64, 3, 3]]");
    model_begin(m, "cudnn_convolution", "[[512, 64, 64, 64], [64, 64, 3, 3]]");
    traced_idle(&m->t, 10);
    traced_launch(&m->t, "void cudnn::engines_precompiled::nchwToNhwcKernel<__nv_bfloat16>", 150);
    traced_launch(&m->t, "sm90_xmma_fprop_implicit_gemm_bf16bf16_nhwckrsc_nhwc", 200);
    traced_launch(&m->t, "void cudnn::engines_precompiled::nhwcToNchwKernel<__nv_bfloat16>", 150);
    model_end(m);
    model_end(m);
}

static void convolve_channels(struct model *m)
{
    model_begin(m, "conv2d", "[[512, 64, 64, 64], [64, 64, 3, 3]]");
    traced_idle(&m->t, 10);
    traced_launch(&m->t, "sm90_xmma_fprop_implicit_gemm_bf16bf16_nhwckrsc_nhwc", 200);
    model_end(m);
}

static void images_turned_round_for_convolutions_cost_their_time(void **state)
{
    (void)state;
    struct model m = model_new(DEVICE_BOUND), well = model_new(DEVICE_BOUND);
    m.mlp = convolve_planes;
    well.mlp = convolve_channels;
    struct judged j = model_judge(&m, 0), k = model_judge(&well, 0);
    const double step = j.d.corrected.step_us;
    const struct finding *f = assert_gain(&j, "layout-copies", step / (step - 3 * 300), 0.05);
    assert_non_null(strstr(f->fix, "channels_last"));
    assert_non_null(strstr(f->where, "cudnn_convolution"));
    assert_not_found(&k, "layout-copies");
    judged_release(&j);
    judged_release(&k);
}

static void views_are_no_copies(void **state)
{
    (void)state;
    struct model m = model_new(DEVICE_BOUND);
    m.attention = be_contiguous;
    struct judged j = model_judge(&m, 0);
    assert_not_found(&j, "layout-copies");
    judged_release(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pythons_own_time_is_told_from_launching),
        cmocka_unit_test(many_short_launches_bind_the_step_to_the_host),
        cmocka_unit_test(a_step_that_the_device_fills_is_not_bound_by_the_host),
        cmocka_unit_test(host_work_in_series_with_the_device_is_named),
        cmocka_unit_test(few_long_launches_are_not_launch_bound),
        cmocka_unit_test(short_products_gain_by_a_larger_batch),
        cmocka_unit_test(waiting_for_samples_grows_with_the_batch),
        cmocka_unit_test(waiting_for_other_ranks_grows_with_the_batch),
        cmocka_unit_test(collectives_that_nothing_hides_cost_their_time),
        cmocka_unit_test(the_code_is_for_the_collective_that_costs_most),
        cmocka_unit_test(collectives_beside_computation_are_hidden),
        cmocka_unit_test(memory_that_is_nearly_full_is_said),
        cmocka_unit_test(kernels_of_few_warps_could_be_faster),
        cmocka_unit_test(copies_for_another_order_cost_their_time),
        cmocka_unit_test(images_turned_round_for_convolutions_cost_their_time),
        cmocka_unit_test(views_are_no_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
