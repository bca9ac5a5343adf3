/* Rules on traces of a CPU alone: the host's threads do all the work. Each fault with the gain that its planted time promises, and a
 * step without it that must stay quiet. */
#include "unit/trace_models.h"

enum { STEPS = 4, TENSORS = 12 };

struct cpu {                                /* a step; 0: as usual */
    int threads, batch, loader_ops;
    double product_us, python_us, meeting_us, loader_us, compiled_us;
    bool loop_optimizer, fills, again;
    const char *small;                      /* the op that takes meeting_us; NULL: mul_ */
};

static int64_t op(struct traced *t, const char *name, const char *dims, double us)
{
    traced_idle(t, 2);
    const int64_t event = traced_op(t, name, us);
    traced_inputs(t, event, dims, NULL);
    return event;
}

/* Layer norm's backward has a row per thread. */
static void norm_backward(struct traced *t, int threads)
{
    char dims[64];
    snprintf(dims, sizeof dims, "[[2, %d, 256]]", threads);
    traced_get(t, traced_begin(t, EVENT_HOST_OP, "autograd::engine::evaluate_function: NativeLayerNormBackward0"))->link = 109;
    const int64_t node = traced_begin(t, EVENT_HOST_OP, "aten::native_layer_norm_backward");
    traced_inputs(t, node, "[[16, 128, 256]]", NULL);
    op(t, "aten::zero_", dims, 3);
    traced_idle(t, 150);
    traced_end(t);
    traced_end(t);
}

static void forward(struct traced *t, const struct cpu *c)
{
    char dims[64];
    const int64_t lookup = op(t, "aten::embedding", "[[512, 256], []]", 30);
    snprintf(dims, sizeof dims, "[[512, 256], [%d, 128]]", c->batch);
    traced_inputs(t, lookup, dims, NULL);
    for (int i = 0; i < 10; i++) {
        snprintf(dims, sizeof dims, "[[2048, 256], [256, %d]]", 256 + 64 * i);
        traced_get(t, op(t, "aten::mm", dims, c->product_us))->link = 100 + i;
        op(t, "aten::native_layer_norm", "[[16, 128, 256], []]", 30);
    }
}

/* As torch.compile runs it: what is between the products is in no op. */
static void run_compiled(struct traced *t, double us)
{
    traced_begin(t, EVENT_HOST_OP, "Torch-Compiled Region: 0/0");
    traced_begin(t, EVENT_HOST_OP, "CompiledFunction");
    traced_begin(t, EVENT_ANNOTATION, "## Call CompiledFxGraph ftn77jd3smahr3jfe6 ##");
    traced_idle(t, us);
    traced_end(t);
    traced_end(t);
    traced_end(t);
}

static void accumulate(struct traced *t, bool adds)
{
    for (int i = 0; i < TENSORS; i++) {
        traced_begin(t, EVENT_HOST_OP, "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad");
        if (adds)
            op(t, "aten::add_", "[[256, 256], [256, 256], []]", 40);
        traced_idle(t, 2);
        traced_end(t);
    }
}

static void optimize(struct traced *t, const struct cpu *c)
{
    static const char *const parts[] = {"aten::mul_", "aten::lerp_", "aten::addcmul_", "aten::sqrt", "aten::add_", "aten::addcdiv_"};
    traced_begin(t, EVENT_ANNOTATION, "Optimizer.step#AdamW.step");
    for (int i = 0; c->loop_optimizer && i < TENSORS; i++)
        for (int k = 0; k < 6; k++)
            op(t, parts[k], "[[256, 256], []]", 20);
    if (!c->loop_optimizer)
        op(t, "aten::_fused_adamw_", "[[[256, 256]], []]", 300);
    traced_end(t);
}

/* A loader without workers: a sample takes as long in any batch, and a batch is put together by ops, of which some are for each sample. */
static void load(struct traced *t, double us, int ops)
{
    traced_begin(t, EVENT_ANNOTATION, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    traced_idle(t, us);
    for (int i = 0; i < ops; i++)
        op(t, "aten::select", "[[1000, 128], [], []]", 3);
    op(t, "aten::cat", "[[1, 128], [1, 128]]", 20);
    traced_end(t);
}

static double recorded_us;                  /* a step of the latest trace */

static struct trace *record(struct cpu c)
{
    struct traced t = traced_new();
    c.threads = c.threads ? c.threads : 8;
    c.batch = c.batch ? c.batch : 16;
    c.product_us = c.product_us > 0 ? c.product_us : 900;
    c.meeting_us = c.meeting_us > 0 ? c.meeting_us : 18;
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&t, i);
        if (c.loader_us > 0)
            load(&t, c.loader_us, c.loader_ops);
        forward(&t, &c);
        if (c.compiled_us > 0)
            run_compiled(&t, c.compiled_us);
        if (c.fills) {
            traced_begin(&t, EVENT_ANNOTATION, "Optimizer.zero_grad#AdamW.zero_grad");
            for (int k = 0; k < TENSORS; k++)
                op(&t, "aten::zero_", "[[256, 256]]", 30);
            traced_end(&t);
        }
        if (c.threads > 0)                  /* else nothing tells how many */
            norm_backward(&t, c.threads);
        accumulate(&t, c.fills);
        for (int k = 0; k < 12; k++)
            op(&t, c.small ? c.small : "aten::mul_", "[[256, 256], []]", c.meeting_us);      /* gradients are clipped */
        optimize(&t, &c);
        traced_idle(&t, c.python_us);
        traced_step_end(&t);
    }
    t.trace->origin.has_shapes = true;
    recorded_us = t.now_us / STEPS;
    return t.trace;
}

/* With the time of a step known to be the recorded one: the profiler costs nothing. */
static struct judged judge(struct cpu c)
{
    struct trace *t = record(c);
    return trace_judge(t, recorded_us);
}

static void assert_quiet(const struct judged *j, const char *but)
{
    for (int i = 0; i < j->d.n_findings; i++)
        if (j->d.findings[i].severity >= SEVERITY_MEDIUM && (!but || strcmp(j->d.findings[i].rule, but)))
            fail_msg("%s is raised", j->d.findings[i].rule);
}

static void nothing_wrong_raises_nothing(void **state)
{
    (void)state;
    struct judged j = trace_judge(record((struct cpu){0}), 0);
    assert_quiet(&j, NULL);
    assert_not_found(&j, "threads-unused");
    assert_not_found(&j, "cpu-oversubscribed");
    assert_not_found(&j, "small-batch");
    judged_release(&j);
}

static void one_thread_leaves_cores_idle(void **state)
{
    (void)state;
    struct judged j = trace_judge(record((struct cpu){.threads = 1, .product_us = 5000}), 0);
    const struct finding *f = assert_found(&j, "threads-unused");
    assert_true(f->speedup > 4 && f->speedup < 5.5);
    assert_true(f->speedup_low == 1 && j.d.phases[0].low == 1);        /* there may be one core */
    assert_non_null(strstr(f->cause, "with 8 cores"));
    assert_int_equal(strncmp(f->fix, "import os\ntorch.set_num_threads(len(os.", 39), 0);
    assert_quiet(&j, "threads-unused");
    judged_release(&j);
}

/* Without a buffer that tells: four times the elements take four times as long, or hardly longer. */
static struct trace *scaled(double small_us, double large_us)
{
    struct traced t = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&t, i);
        for (int k = 0; k < 4; k++) {
            op(&t, "aten::mm", "[[2048, 256], [256, 256]]", 5000);
            op(&t, "aten::mul_", "[[256, 256], []]", small_us);
            op(&t, "aten::mul_", "[[1024, 256], []]", large_us);
        }
        traced_step_end(&t);
    }
    return t.trace;
}

static void time_in_proportion_to_elements_is_one_threads(void **state)
{
    (void)state;
    struct judged j = trace_judge(scaled(23, 90), 0);
    assert_found(&j, "threads-unused");
    judged_release(&j);
    j = trace_judge(scaled(18, 21), 0);
    assert_not_found(&j, "threads-unused");
    judged_release(&j);
}

/* Every op waits until all threads have had a core. */
static void threads_without_a_core_are_waited_for(void **state)
{
    (void)state;
    struct judged j = trace_judge(record((struct cpu){.threads = 64, .meeting_us = 200}), 0);
    const struct finding *f = assert_found(&j, "cpu-oversubscribed");
    assert_true(f->speedup > 1.2 && f->speedup < 1.8);
    assert_string_equal(f->where, "all ops, 64 threads");
    assert_non_null(strstr(f->fix, "torch.set_num_threads(32) "));
    judged_release(&j);
}

/* One thread takes as long for such an op; and slow ops of a program that may have one thread tell of no other. */
static void ops_that_are_slow_by_themselves_are_not_waited_for(void **state)
{
    (void)state;
    static const char *const slow[] = {"aten::gelu", "aten::gelu_backward", "aten::exp", "aten::silu", "aten::tanh", "aten::pow"};
    for (size_t k = 0; k < sizeof slow / sizeof *slow; k++) {
        struct judged j = trace_judge(record((struct cpu){.threads = 64, .meeting_us = 200, .small = slow[k]}), 0);
        assert_not_found(&j, "cpu-oversubscribed");
        judged_release(&j);
    }
    struct judged j = trace_judge(record((struct cpu){.threads = -1, .meeting_us = 200}), 0);
    assert_not_found(&j, "cpu-oversubscribed");
    judged_release(&j);
}

static void pythons_own_time_counts_without_a_device(void **state)
{
    (void)state;
    struct judged j = judge((struct cpu){.python_us = 9000});
    assert_gain(&j, "host-bound", recorded_us / (recorded_us - 9000), 0.05);
    assert_quiet(&j, "host-bound");
    judged_release(&j);
}

/* A stretch in each of three steps, no longer than it has to be to count at all: none of them is longer than all others together. */
static void a_short_stretch_in_each_step_is_no_single_one(void **state)
{
    (void)state;
    struct traced t = traced_new();
    for (int step = 0; step < 3; step++) {
        traced_step_begin(&t, step);
        for (int i = 0; i < 10; i++, traced_idle(&t, 20))
            traced_op(&t, "aten::mm", 100);
        traced_idle(&t, 550);
        traced_op(&t, "aten::mm", 100);
        traced_step_end(&t);
    }
    struct judged j = trace_judge(t.trace, 0);
    assert_found(&j, "host-bound");
    judged_release(&j);
}

static void a_batch_of_one_is_small(void **state)
{
    (void)state;
    struct judged j = trace_judge(record((struct cpu){.batch = 1, .product_us = 60}), 0);
    const struct finding *f = assert_found(&j, "small-batch");
    assert_true(f->speedup > 2);
    int promised = 0, written = 0;          /* the code is for the batch of the promise */
    const char *at = strstr(f->evidence, ", at "), *size = strstr(f->fix, "batch_size=");
    assert_true(at && size && sscanf(at, ", at %d times the batch", &promised) == 1 && sscanf(size, "batch_size=%d * B", &written) == 1);
    assert_int_equal(promised, written);
    assert_null(strstr(f->fix, "accumulate"));
    judged_release(&j);
    j = trace_judge(record((struct cpu){.batch = 1}), 0);      /* its products take all of the step */
    assert_not_found(&j, "small-batch");
    judged_release(&j);
}

static void samples_that_take_their_time_grow_with_the_batch(void **state)
{
    (void)state;
    struct judged j = trace_judge(record((struct cpu){.batch = 1, .product_us = 60, .loader_us = 5000}), 0);
    assert_not_found(&j, "small-batch");
    judged_release(&j);
    j = trace_judge(record((struct cpu){.batch = 1, .product_us = 60, .python_us = 5000}), 0);
    assert_not_found(&j, "small-batch");
    judged_release(&j);
    j = trace_judge(record((struct cpu){.batch = 1, .product_us = 60, .loader_us = 150}), 0);      /* a finished batch is handed over */
    assert_found(&j, "small-batch");
    judged_release(&j);
}

static void compiled_code_grows_with_the_batch(void **state)
{
    (void)state;
    struct judged j = trace_judge(record((struct cpu){.batch = 1, .product_us = 60, .compiled_us = 5000}), 0);
    assert_not_found(&j, "small-batch");
    judged_release(&j);
}

static void a_step_in_the_loader_is_bound_by_its_data(void **state)
{
    (void)state;
    struct judged j = judge((struct cpu){.loader_us = 9000});
    assert_string_equal(j.d.bound_by, "data");
    assert_non_null(strstr(j.d.headline, "waits for its data"));
    assert_non_null(strstr(j.d.largest, "the data loader"));
    judged_release(&j);
    j = judge((struct cpu){.loader_us = 900});
    assert_string_equal(j.d.bound_by, "cpu");
    judged_release(&j);
}

/* Of ops that are recorded in a loader the profiler has its part, as of others: what the loader takes of the step is what would be won without it. */
static void ops_in_the_loader_are_slowed_by_the_profiler(void **state)
{
    (void)state;
    struct judged j = trace_judge(record((struct cpu){.loader_us = 100, .loader_ops = 3000, .product_us = 100}), 0);
    const struct finding *f = assert_found(&j, "data-stall");
    assert_true(fabs(f->share - (1 - 1 / f->speedup)) < 0.06);
    assert_string_equal(j.d.bound_by, "data");
    judged_release(&j);
}

static void an_optimizer_tensor_by_tensor_needs_no_launches_to_be_seen(void **state)
{
    (void)state;
    struct judged j = judge((struct cpu){.loop_optimizer = true});
    assert_gain(&j, "unfused-optimizer", recorded_us / (recorded_us - 0.7 * 6 * TENSORS * 22), 0.05);
    judged_release(&j);
}

static void gradients_set_to_zero_need_no_launches_to_be_seen(void **state)
{
    (void)state;
    struct judged j = judge((struct cpu){.fills = true});
    assert_gain(&j, "zero-grad-fills", recorded_us / (recorded_us - TENSORS * 72), 0.05);
    judged_release(&j);
}

/* A second forward is taken away once: hooks cost nothing beside what a CPU computes. */
static void recomputation_costs_its_own_time(void **state)
{
    (void)state;
    struct traced t = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&t, i);
        for (int k = 0; k < 8; k++)
            traced_get(&t, op(&t, "aten::mm", "[[2048, 256], [256, 256]]", 1000))->link = 100 + k;
        traced_get(&t, traced_begin(&t, EVENT_HOST_OP, "autograd::engine::evaluate_function: MmBackward0"))->link = 107;
        for (int k = 0; k < 8; k++)
            traced_get(&t, op(&t, "aten::mm", "[[2048, 256], [256, 256]]", 1000))->link = 200 + k;
        traced_idle(&t, 2000);
        traced_end(&t);
        traced_step_end(&t);
    }
    struct judged j = trace_judge(t.trace, 0);
    assert_gain(&j, "recompute", j.d.corrected.step_us / (j.d.corrected.step_us - 8000), 0.08);
    judged_release(&j);
}

/* Waiting for other ranks is no Python of one's own. */
static void a_wait_for_gloo_is_not_the_hosts_work(void **state)
{
    (void)state;
    struct traced t = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&t, i);
        for (int k = 0; k < 8; k++)
            op(&t, "aten::mm", "[[2048, 256], [256, 256]]", 1000);
        const double at = t.now_us;
        traced_on_thread(&t, 77);
        traced_at(&t, EVENT_ANNOTATION, "gloo:all_reduce", at + 5, 4000);
        traced_on_thread(&t, 1);
        traced_idle(&t, 4010);
        op(&t, "aten::_fused_adamw_", "[[[256, 256]], []]", 300);
        traced_step_end(&t);
    }
    struct judged j = trace_judge(t.trace, 0);
    assert_not_found(&j, "host-bound");
    judged_release(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_wrong_raises_nothing),
        cmocka_unit_test(one_thread_leaves_cores_idle),
        cmocka_unit_test(time_in_proportion_to_elements_is_one_threads),
        cmocka_unit_test(threads_without_a_core_are_waited_for),
        cmocka_unit_test(ops_that_are_slow_by_themselves_are_not_waited_for),
        cmocka_unit_test(pythons_own_time_counts_without_a_device),
        cmocka_unit_test(a_short_stretch_in_each_step_is_no_single_one),
        cmocka_unit_test(a_batch_of_one_is_small),
        cmocka_unit_test(samples_that_take_their_time_grow_with_the_batch),
        cmocka_unit_test(compiled_code_grows_with_the_batch),
        cmocka_unit_test(a_step_in_the_loader_is_bound_by_its_data),
        cmocka_unit_test(ops_in_the_loader_are_slowed_by_the_profiler),
        cmocka_unit_test(an_optimizer_tensor_by_tensor_needs_no_launches_to_be_seen),
        cmocka_unit_test(gradients_set_to_zero_need_no_launches_to_be_seen),
        cmocka_unit_test(recomputation_costs_its_own_time),
        cmocka_unit_test(a_wait_for_gloo_is_not_the_hosts_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
