/* A step on a GPU by its phases: what the device works for, whom it waits for, and what a trace does not show. */
#include "unit/trace_phases.h"

static void run_of(struct traced *m, const char *op, double kernel_us, int64_t number) { traced_get(m, traced_run(m, op, 40, "gemm", kernel_us))->link = number; }

static void run_node(struct traced *m, double kernel_us, int64_t number)
{
    traced_on_thread(m, 2);
    traced_get(m, traced_begin(m, EVENT_HOST_OP, "autograd::engine::evaluate_function: AddmmBackward0"))->link = number;
    traced_run(m, "aten::mm", 40, "gemm", kernel_us);
    traced_end(m);
    traced_on_thread(m, 1);
}

static void run_update(struct traced *m)
{
    traced_begin(m, EVENT_ANNOTATION, "Optimizer.step#AdamW.step");
    traced_run(m, "aten::_fused_adamw_", 40, "multi_tensor_apply_kernel", 20);
    traced_end(m);
}

/*            0        40        80        120       160     200    262      362
 * host       linear   linear    node      node      update  waits  nothing
 * device       42–72     82–112    122–182 182–242 242–262 */
static void gpu_step(struct traced *m, int64_t number)
{
    run_of(m, "aten::linear", 30, number);
    run_of(m, "aten::linear", 30, number + 1);
    run_node(m, 60, number + 1);
    run_node(m, 60, number);
    run_update(m);
    traced_wait(m, "cudaStreamSynchronize");
    traced_idle(m, 100);
}

static void a_device_works_for_a_phase_or_waits_for_the_host_in_one(void **state)
{
    (void)state;
    struct traced m = traced_new();
    struct judged j = judged_steps(&m, gpu_step);
    assert_phases(&j.d, (struct expected){.forward = 42 + 30 + 8 + 30, .backward = 2 + 10 + 120, .optimizer = 20, .other = 100});
    assert_busy(&j.d, (struct expected){.forward = 60, .backward = 120, .optimizer = 20});
    judged_release(&j);
}

/* The host is done after 140 µs; all the rest is the device's, gaps between its kernels too, and what communication nothing hides. */
static void busy_step(struct traced *m, double at)
{
    const double from = at + 10;
    traced_get(m, traced_at(m, EVENT_HOST_OP, "aten::linear", from - 10, 30))->link = llround(at) + 1;
    traced_work_at(m, "cudaLaunchKernel", from, 5, EVENT_KERNEL, "gemm", at + 20, 100);         /* 20 to 120 */
    traced_get(m, traced_at(m, EVENT_HOST_OP, "autograd::engine::evaluate_function: AddmmBackward0", at + 40, 60))->link = llround(at) + 1;
    traced_work_at(m, "cudaLaunchKernel", at + 50, 5, EVENT_KERNEL, "gemm", at + 122, 200);     /* 122 to 322 */
    traced_on_stream(m, 20);
    traced_work_at(m, "cudaLaunchKernel", at + 60, 5, EVENT_KERNEL, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 300, 82);   /* to 382 */
    traced_on_stream(m, 7);
    traced_at(m, EVENT_ANNOTATION, "Optimizer.step#AdamW.step", at + 105, 30);
    traced_at(m, EVENT_HOST_OP, "aten::_fused_adamw_", at + 110, 20);
    traced_work_at(m, "cudaLaunchKernel", at + 115, 5, EVENT_KERNEL, "multi_tensor_apply_kernel", at + 385, 15);    /* 385 to 400 */
    traced_step_at(m, (int)(at / 400), at, 400);
}

static void a_gap_between_kernels_is_of_the_next_one(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < 4; i++)
        busy_step(&m, 400 * i);
    struct judged j = trace_judge(m.trace, 400);
    assert_phases(&j.d, (struct expected){.forward = 20 + 100, .backward = 2 + 200, .communication = 60, .optimizer = 3 + 15});
    judged_release(&j);
}

/* The first rank's stand in the report of a job, beside its step. */
static void a_job_has_the_phases_of_its_first_rank(void **state)
{
    (void)state;
    struct trace *traces[2];
    struct diagnosis d;
    struct error err;
    for (int rank = 0; rank < 2; rank++) {
        struct traced m = traced_new();
        for (int i = 0; i < 4; i++)
            busy_step(&m, 400 * i);
        traces[rank] = m.trace;
        traces[rank]->origin.rank = rank;
        traces[rank]->origin.world_size = 2;
    }
    assert_ok(diagnose(&d, traces, 2, NULL, &err), err);
    assert_int_equal(d.n_ranks, 2);
    assert_phases(&d, (struct expected){.forward = 20 + 100, .backward = 2 + 200, .communication = 60, .optimizer = 3 + 15});
    diagnosis_release(&d);
    trace_free(traces[0]);
    trace_free(traces[1]);
}

/* They are of the steps that are judged. */
static void a_cold_step_is_in_no_phase(void **state)
{
    (void)state;
    struct traced m = traced_new();
    traced_step_begin(&m, 0);
    traced_at(&m, EVENT_RUNTIME, "cudaModuleLoadData", m.now_us, 50000);
    traced_idle(&m, 50000);
    gpu_step(&m, 50);
    traced_step_end(&m);
    const double cold_us = m.now_us;
    for (int i = 1; i <= STEPS; i++) {
        traced_step_begin(&m, i);
        gpu_step(&m, 100 * i);
        traced_step_end(&m);
    }
    struct judged j = trace_judge(m.trace, (m.now_us - cold_us) / STEPS);
    assert_int_equal(j.d.cold_steps, 1);
    assert_phases(&j.d, (struct expected){.forward = 42 + 30 + 8 + 30, .backward = 2 + 10 + 120, .optimizer = 20, .other = 100});
    judged_release(&j);
}

static void upload_step(struct traced *m, int64_t number)
{
    traced_begin(m, EVENT_HOST_OP, "aten::to");
    traced_copy(m, "Memcpy HtoD (Pageable -> Device)", 1 << 20, 200);
    traced_end(m);
    run_of(m, "aten::linear", 300, number);
    run_node(m, 600, number);
    run_update(m);
    traced_wait(m, "cudaStreamSynchronize");
}

static void a_copy_of_the_batch_is_data(void **state)
{
    (void)state;
    struct traced m = traced_new();
    struct judged j = judged_steps(&m, upload_step);
    assert_busy(&j.d, (struct expected){.data = 200, .forward = 300, .backward = 600, .optimizer = 20});
    judged_release(&j);
}

/* Kernels of compiled code, and graphs that it replays, are launched in its regions without an op around each. */
static void compiled_step(struct traced *m, int64_t number)
{
    traced_begin(m, EVENT_ANNOTATION, "Torch-Compiled Region: 0/0");
    traced_get(m, traced_begin(m, EVENT_HOST_OP, "CompiledFunction"))->link = number;
    traced_begin(m, EVENT_ANNOTATION, "## Call CompiledFxGraph abc ##");
    traced_launch(m, "triton_poi_fused_gelu_0", 30);
    traced_end(m);
    traced_end(m);
    traced_end(m);
    traced_on_thread(m, 2);
    traced_get(m, traced_begin(m, EVENT_HOST_OP, "autograd::engine::evaluate_function: CompiledFunctionBackward"))->link = number;
    traced_start(m, "cudaGraphLaunch", EVENT_KERNEL, "triton_red_fused_0", 500);
    traced_end(m);
    traced_on_thread(m, 1);
    run_update(m);
    traced_wait(m, "cudaStreamSynchronize");
}

static void compiled_code_has_its_phases(void **state)
{
    (void)state;
    struct traced m = traced_new();
    struct judged j = judged_steps(&m, compiled_step);
    assert_busy(&j.d, (struct expected){.forward = 30, .backward = 500, .optimizer = 20});
    judged_release(&j);
}

/* Old traces have the nodes alone. */
static void old_step(struct traced *m, int64_t number)
{
    (void)number;
    traced_run(m, "aten::linear", 40, "gemm", 30);
    traced_on_thread(m, 2);
    traced_begin(m, EVENT_HOST_OP, "AddmmBackward");
    traced_run(m, "aten::mm", 40, "gemm", 60);
    traced_end(m);
    traced_on_thread(m, 1);
    traced_begin(m, EVENT_HOST_OP, "Optimizer.step#SGD.step");      /* a range that is an op */
    traced_run(m, "aten::add_", 40, "elementwise", 20);
    traced_end(m);
    traced_wait(m, "cudaStreamSynchronize");
}

static void nodes_of_old_traces_are_backward(void **state)
{
    (void)state;
    struct traced m = traced_new();
    struct judged j = judged_steps(&m, old_step);
    assert_busy(&j.d, (struct expected){.forward = 30, .backward = 60, .optimizer = 20});
    judged_release(&j);
}

/* Also that a step bound by the device has the sums of its kernels. */
static void an_evaluation_is_a_phase(void **state)
{
    (void)state;
    for (int kind = HOST_BOUND; kind <= DEVICE_BOUND; kind++) {
        struct model m = model_new((enum model_kind)kind);
        m.end = model_evaluate;
        struct judged j = model_judge(&m, 0);
        assert_sums(&j.d);
        const double evaluation = phase(&j.d, "evaluation")->recorded_us;
        if (kind == HOST_BOUND)
            assert_near(evaluation, m.planted_us, 0.02 * m.planted_us, "its time on the host");
        assert_near(phase(&j.d, "evaluation")->busy_us, phase(&j.d, "forward")->busy_us, 4.01, "its kernels, and the copy of what is read");
        judged_release(&j);
    }
}

static void the_profiler_shortens_the_host_alone(void **state)
{
    (void)state;
    struct model m = model_new(DEVICE_BOUND);
    struct judged j = model_judge(&m, 0);
    assert_sums(&j.d);
    for (int i = 0; i < j.d.n_iteration; i++)
        assert_true(j.d.iteration[i].us >= j.d.iteration[i].busy_us);
    assert_true(phase(&j.d, "backward")->busy_us > 1.5 * phase(&j.d, "forward")->busy_us);
    judged_release(&j);
}

/* Steps that are graphs alone, captured before the first of them: the calls that were captured say what the kernels are for. */
static void kernels_of_a_captured_step_have_its_phases(void **state)
{
    (void)state;
    static const struct { enum event_kind kind; const char *around; } captured[] = {
        {EVENT_HOST_OP, "aten::linear"}, {EVENT_HOST_OP, "autograd::engine::evaluate_function: AddmmBackward0"}, {EVENT_ANNOTATION, "Optimizer.step#AdamW.step"}};
    struct traced m = traced_new();
    traced_at(&m, EVENT_RUNTIME, "cudaStreamBeginCapture", 0, 2);
    for (int i = 0; i < 3; i++) {
        traced_at(&m, captured[i].kind, captured[i].around, 10 + 20 * i, 15);
        traced_at(&m, EVENT_RUNTIME, "cudaLaunchKernel", 15 + 20 * i, 4);
    }
    traced_at(&m, EVENT_RUNTIME, "cudaStreamEndCapture", 100, 5);
    for (int step = 0; step < STEPS; step++) {
        const double at = 1000 + 500 * step;
        traced_step_at(&m, step, at, 500);
        const int64_t first = traced_work_at(&m, "cudaGraphLaunch", at + 10, 10, EVENT_KERNEL, "gemm", at + 30, 50);
        const int64_t link = traced_get(&m, first)->link;
        traced_get(&m, traced_at(&m, EVENT_KERNEL, "gemm", at + 80, 100))->link = link;
        traced_get(&m, traced_at(&m, EVENT_KERNEL, "multi_tensor_apply_kernel", at + 180, 20))->link = link;
    }
    struct judged j = trace_judge(m.trace, 0);
    assert_busy(&j.d, (struct expected){.forward = 50, .backward = 100, .optimizer = 20});
    judged_release(&j);
}

/* ---- what is not told ---- */

static void assert_untold(struct traced *m, const char *words)
{
    struct judged j = trace_judge(m->trace, 0);
    assert_int_equal(j.d.n_iteration, 0);
    assert_non_null(j.d.iteration_note);
    if (!strstr(j.d.iteration_note, words))
        fail_msg("it says '%s'", j.d.iteration_note);
    judged_release(&j);
}

static void a_graph_of_all_is_not_told(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&m, i);
        traced_op(&m, "aten::copy_", 20);
        traced_start(&m, "cudaGraphLaunch", EVENT_KERNEL, "multi_tensor_apply_kernel", 300);
        traced_wait(&m, "cudaStreamSynchronize");
        traced_step_end(&m);
    }
    assert_untold(&m, "no op of a backward pass");
}

static void graphs_beside_a_backward_pass_are_not_told(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&m, i);
        run_of(&m, "aten::linear", 30, 100 * i);
        run_node(&m, 30, 100 * i);
        traced_start(&m, "cudaGraphLaunch", EVENT_KERNEL, "gemm", 300);
        traced_wait(&m, "cudaStreamSynchronize");
        traced_step_end(&m);
    }
    assert_untold(&m, "whole graphs");
}

static void work_of_no_launch_is_not_told(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_at(&m, i, 1000 * i, 1000);
        traced_get(&m, traced_at(&m, EVENT_HOST_OP, "aten::linear", 1000 * i, 100))->link = i;
        traced_get(&m, traced_at(&m, EVENT_HOST_OP, "autograd::engine::evaluate_function: AddmmBackward0", 1000 * i + 200, 100))->link = i;
        traced_at(&m, EVENT_KERNEL, "gemm", 1000 * i + 100, 800);
    }
    assert_untold(&m, "which op launched what");
}

/* The host runs ahead, and of most of what the device does the launch is not known. */
static void work_of_no_launch_beside_some_that_is_known_is_not_told(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&m, i);
        run_of(&m, "aten::linear", 30, 100 * i);
        run_node(&m, 30, 100 * i);
        traced_idle(&m, 900);
        traced_at(&m, EVENT_KERNEL, "gemm", m.now_us - 800, 700);
        traced_step_end(&m);
    }
    assert_untold(&m, "which op launched what");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_works_for_a_phase_or_waits_for_the_host_in_one),
        cmocka_unit_test(a_gap_between_kernels_is_of_the_next_one),
        cmocka_unit_test(a_job_has_the_phases_of_its_first_rank),
        cmocka_unit_test(a_cold_step_is_in_no_phase),
        cmocka_unit_test(a_copy_of_the_batch_is_data),
        cmocka_unit_test(compiled_code_has_its_phases),
        cmocka_unit_test(nodes_of_old_traces_are_backward),
        cmocka_unit_test(an_evaluation_is_a_phase),
        cmocka_unit_test(the_profiler_shortens_the_host_alone),
        cmocka_unit_test(kernels_of_a_captured_step_have_its_phases),
        cmocka_unit_test(a_graph_of_all_is_not_told),
        cmocka_unit_test(graphs_beside_a_backward_pass_are_not_told),
        cmocka_unit_test(work_of_no_launch_is_not_told),
        cmocka_unit_test(work_of_no_launch_beside_some_that_is_known_is_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
