/* Cold start: work that a process does once is not the step's, and what comes in every step is. */
#include "unit/trace_models.h"

static void take_memory(struct traced *t, double us)
{
    traced_at(t, EVENT_RUNTIME, "cudaMalloc", t->now_us, us);
    traced_idle(t, us);
}

/* In the first step the allocator grows, a module is loaded, and the first launch of a kernel takes long. */
static void set_up(struct model *m)
{
    if (m->step)
        return;
    for (int i = 0; i < 4; i++)
        take_memory(&m->t, 40000);
    traced_at(&m->t, EVENT_RUNTIME, "cuLibraryLoadData", m->t.now_us, 25000);
    traced_idle(&m->t, 25000);
    m->t.launch_us = 60000, m->t.latency_us = 60002;
    traced_launch(&m->t, "only_once", 10);
    m->t.launch_us = 4, m->t.latency_us = 6;
}

static void a_cold_first_step_is_left_out(void **state)
{
    (void)state;
    struct model cold = model_new(HOST_BOUND), warm = model_new(HOST_BOUND);
    cold.data = set_up;
    struct judged j = model_judge(&cold, 0), k = model_judge(&warm, 0);
    assert_int_equal(j.d.cold_steps, 1);
    assert_false(j.d.all_cold);
    assert_true(warns(&j.d, "the first step is cold"));
    assert_not_found(&j, "allocator-churn");
    assert_near(j.d.corrected.step_us, k.d.corrected.step_us, 0.01 * k.d.corrected.step_us, "the step");
    assert_near(j.d.corrected.recorded_us, k.d.corrected.recorded_us, 0.02 * k.d.corrected.recorded_us, "as recorded");
    assert_false(warns(&k.d, "cold"));
    judged_release(&j);
    judged_release(&k);
}

static void of_cold_steps_alone_what_is_done_once_is_taken_out(void **state)
{
    (void)state;
    struct model cold = model_new(HOST_BOUND), warm = model_new(HOST_BOUND);
    cold.data = set_up;
    cold.steps = warm.steps = 1;
    struct judged j = model_judge(&cold, 0), k = model_judge(&warm, 0);
    assert_true(j.d.all_cold && warns(&j.d, "record after warm-up"));
    assert_not_found(&j, "allocator-churn");
    assert_not_found(&j, "launch-bound");
    assert_not_found(&j, "small-batch");
    assert_non_null(strstr(j.d.first_action, "after warm-up"));
    assert_near(j.d.corrected.step_us, k.d.corrected.step_us, 0.1 * k.d.corrected.step_us, "the step");
    judged_release(&j);
    judged_release(&k);
}

/* Without marks the step is the device's time: what the host did once before it is no part of it. */
static void what_lies_before_the_step_is_not_taken_out_of_it(void **state)
{
    (void)state;
    struct traced t = traced_new();
    traced_at(&t, EVENT_RUNTIME, "cudaDeviceGetStreamPriorityRange", t.now_us, 2e6);
    traced_idle(&t, 2e6);
    traced_run(&t, "aten::mm", 40, "gemm", 100);
    take_memory(&t, 50000);
    traced_run(&t, "aten::add", 40, "elementwise", 100);
    struct judged j = trace_judge(t.trace, 0);
    assert_true(j.d.all_cold);
    assert_true(warns(&j.d, "only cold steps were recorded: 50.0 ms in them are work that a process does once (50.0 ms in one cudaMalloc)"));
    judged_release(&j);
}

static void churn(struct model *m)
{
    take_memory(&m->t, 2000);
    traced_at(&m->t, EVENT_RUNTIME, "cudaFree", m->t.now_us, 2000);
    traced_idle(&m->t, 2000);
}

static void what_comes_in_every_step_is_not_cold(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.data = churn;
    struct judged j = model_judge(&m, model_step_us(&m));
    assert_int_equal(j.d.cold_steps, 0);
    assert_gain(&j, "allocator-churn", model_gain(&m), 0.1);
    judged_release(&j);
}

/* A launch that waits for room in a full queue is long, and the first of its kernel; its work starts long after. */
static void a_full_queue_is_not_cold(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < 4; i++) {
        traced_step_begin(&m, i);
        for (int k = 0; k < 20; k++)
            traced_run(&m, "aten::mm", 20, "gemm", 2000);
        m.launch_us = 5000;
        traced_launch(&m, i ? "gemm" : "another", 10);
        m.launch_us = 4;
        traced_step_end(&m);
    }
    struct judged j = trace_judge(m.trace, 0);
    assert_int_equal(j.d.cold_steps, 0);
    judged_release(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cold_first_step_is_left_out),
        cmocka_unit_test(of_cold_steps_alone_what_is_done_once_is_taken_out),
        cmocka_unit_test(what_lies_before_the_step_is_not_taken_out_of_it),
        cmocka_unit_test(what_comes_in_every_step_is_not_cold),
        cmocka_unit_test(a_full_queue_is_not_cold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
