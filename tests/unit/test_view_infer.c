/* Steps of traces without marks: told by what a loop does in every turn, or by the device's own time. */
#include "unit/trace_models.h"

/* ---- training ---- */

/* The model's steps without their marks. */
static struct judged judge_unmarked(struct model *m)
{
    if (!m->trained)
        model_train(m);
    struct trace *t = m->t.trace;
    int64_t n = 0;
    for (int64_t i = 0; i < t->n; i++)
        if (t->events[i].kind != EVENT_STEP)
            t->events[n++] = t->events[i];
    t->n = n;
    return model_judge(m, 0);
}

static void the_optimizer_ends_a_step(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND), same = model_new(HOST_BOUND);
    struct judged j = judge_unmarked(&m), k = model_judge(&same, 0);
    assert_int_equal(j.d.n_steps, m.steps - 1);             /* where the first begins is not known */
    assert_string_equal(j.d.steps_by, "Optimizer.step");
    assert_true(j.d.no_step_marks);
    assert_near(j.d.corrected.step_us, k.d.corrected.step_us, 0.02 * k.d.corrected.step_us, "the step");
    judged_release(&j);
    judged_release(&k);
}

static void read_loss(struct model *m)
{
    traced_copy(&m->t, "Memcpy DtoH (Device -> Pageable)", 4, 2);
    traced_wait(&m->t, "cudaStreamSynchronize");
}

/* Backward runs, and launches most, on a thread of its own; the loop turns on the other. */
static void what_comes_once_in_a_turn_begins_a_step(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.end = read_loss;
    model_train(&m);
    for (int64_t i = 0; i < m.t.trace->n; i++)
        if (m.t.trace->events[i].kind == EVENT_ANNOTATION)
            m.t.trace->events[i].kind = EVENT_OVERHEAD;     /* no range names the optimizer */
    struct judged j = judge_unmarked(&m);
    assert_int_equal(j.d.n_steps, m.steps - 1);
    assert_string_equal(j.d.steps_by, "aten::embedding");
    judged_release(&j);
}

static void next_batch(struct traced *m)
{
    traced_begin(m, EVENT_ANNOTATION, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
    traced_idle(m, 50);
    traced_end(m);
}

static void a_batch_begins_a_step(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < 5; i++) {
        next_batch(&m);
        for (int k = 0; k < 10; k++)
            traced_run(&m, "aten::mm", 20, "gemm", 30);
    }
    struct view v = traced_view(m.trace);
    assert_int_equal(v.n_steps, 4);
    assert_int_equal(v.steps[1].end_ns - v.steps[1].start_ns, 250000);
    view_release(&v);
    trace_free(m.trace);
}

/* ---- inference ---- */

/* A token: some layers, and what was chosen goes back to the host. */
static void decode(struct traced *m, int layers, bool reads)
{
    traced_run(m, "aten::embedding", 20, "gather", 5);
    for (int i = 0; i < layers; i++)
        traced_run(m, "aten::linear", 20, "gemm", 30);
    traced_run(m, "aten::argmax", 20, "reduce", 5);
    if (reads) {
        traced_copy(m, "Memcpy DtoH (Device -> Pageable)", 8, 2);
        traced_wait(m, "cudaStreamSynchronize");
    }
}

static void tokens_that_come_back_are_steps(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < 6; i++)
        decode(&m, 8, true);
    struct view v = traced_view(m.trace);
    assert_int_equal(v.n_steps, 5);
    assert_string_equal(v.steps_by, "aten::embedding");
    assert_int_equal(view_event(&v, traced_find(&v, "gather"))->step, 0);
    view_release(&v);
    trace_free(m.trace);
}

static void layers_are_no_steps(void **state)
{
    (void)state;
    struct traced m = traced_new();
    decode(&m, 24, true);
    struct view v = traced_view(m.trace);
    assert_int_equal(v.n_steps, 1);
    assert_null(v.steps_by);
    view_release(&v);
    trace_free(m.trace);
}

static void a_graph_per_token_is_a_step(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < 5; i++) {
        traced_copy(&m, "Memcpy HtoD (Pinned -> Device)", 64, 2);
        traced_start(&m, "cudaGraphLaunch", EVENT_KERNEL, "gemm", 400);
        traced_wait(&m, "cudaEventSynchronize");
    }
    struct view v = traced_view(m.trace);
    assert_int_equal(v.n_steps, 4);
    assert_string_equal(v.steps_by, "cudaGraphLaunch");
    view_release(&v);
    trace_free(m.trace);
}

/* ---- one step ---- */

/* The host launches at once and is done; the device begins long after that. What the host did before is nobody's wait. */
static struct trace *late_device(void)
{
    struct traced m = traced_new();
    traced_op(&m, "aten::empty", 50000);
    for (int i = 0; i < 100; i++)
        traced_work_at(&m, "hipLaunchKernel", 50000 + 20 * i, 5, EVENT_KERNEL, i % 2 ? "gemm" : "attention", 150000 + 1000 * i, 999);
    traced_on_thread(&m, 9);                /* a watchdog asks all the time */
    for (int i = 0; i < 300; i++)
        traced_at(&m, EVENT_RUNTIME, "hipEventQuery", 1000 * i, 900);
    return m.trace;
}

static void a_device_that_starts_late_fills_its_step(void **state)
{
    (void)state;
    struct judged j = trace_judge(late_device(), 0);
    assert_int_equal(j.d.n_steps, 1);
    assert_null(j.d.steps_by);
    assert_near(j.d.corrected.recorded_us, 100e3, 10, "from the first device event to the last");
    assert_near(j.d.corrected.device_us, 99.9e3, 10, "busy");
    assert_near(j.d.mean.runtime_us, 0, 0, "the watchdog's calls");
    assert_string_equal(j.d.bound_by, "device");
    assert_not_found(&j, "host-bound");
    judged_release(&j);
}

static void device_events_without_a_launch_are_part_of_it(void **state)
{
    (void)state;
    struct traced m = traced_new();
    traced_work_at(&m, "runModel", 0, 5, EVENT_KERNEL, "a", 10, 40);
    traced_on_stream(&m, 8);
    traced_at(&m, EVENT_KERNEL, "b", 40, 50);               /* overlaps by 10 */
    struct judged j = trace_judge(m.trace, 0);
    assert_near(j.d.corrected.device_us, 80, 0.01, "busy");
    assert_near(j.d.gpu.busy_us, 80, 0.01, "busy");
    assert_near(j.d.corrected.recorded_us, 80, 0.01, "recorded");
    judged_release(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_optimizer_ends_a_step),
        cmocka_unit_test(what_comes_once_in_a_turn_begins_a_step),
        cmocka_unit_test(a_batch_begins_a_step),
        cmocka_unit_test(tokens_that_come_back_are_steps),
        cmocka_unit_test(layers_are_no_steps),
        cmocka_unit_test(a_graph_per_token_is_a_step),
        cmocka_unit_test(a_device_that_starts_late_fills_its_step),
        cmocka_unit_test(device_events_without_a_launch_are_part_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
