/* Bounds of estimates: no number that cannot be. */
#include "unit/trace_models.h"

#include "analyze/traced/bounds.h"

static void a_step_lies_between_its_device_and_its_record(void **state)
{
    (void)state;
    assert_near(bounds_step(66, 76, 0, 215), 76, 0, "the busy device");
    assert_near(bounds_step(66, 76, 195, 215), 195, 0, "what the profiler's cost does not explain");
    assert_near(bounds_step(99, 66, 0, 67.6), 67.6, 0, "the recorded step");
    assert_near(bounds_step(50, 40, 45, 60), 50, 0, "the replay");
    assert_near(bounds_step(50, 40, 45, 0), 50, 0, "nothing recorded");
}

static void a_gain_is_no_more_than_the_time_allows(void **state)
{
    (void)state;
    const struct gain g = {100, 50, 40};
    assert_near(bounds_speedup(g, 1), 2, 1e-12, "as replayed");
    assert_near(bounds_speedup(g, 2), 2.5, 1e-12, "with doubt: what is left alone stays");
    assert_near(bounds_most(g), 2.5, 1e-12, "the most");
    assert_near(bounds_speedup((struct gain){0, 1, 0}, 1), 1, 0, "no step");
    assert_near(bounds_speedup((struct gain){100, NAN, 0}, 1), 1, 0, "no number");
}

static void an_interval_is_in_order(void **state)
{
    (void)state;
    const struct interval i = bounds_interval((struct interval){5, 6, 4}, 3), bad = bounds_interval((struct interval){NAN, INFINITY, NAN}, 0);
    assert_near(i.usual, 3, 0, "usual");
    assert_true(i.low <= i.usual && i.usual <= i.high);
    assert_near(bad.usual, 1, 0, "usual");
    assert_true(bad.low == 1 && bad.high == 1);
}

/* The host waits for something that is no work of the device: 10 ms in a call of the step. */
static void wait_for_others(struct model *m)
{
    traced_at(&m->t, EVENT_RUNTIME, "cudaStreamSynchronize", m->t.now_us, 10000);
    traced_idle(&m->t, 10000);
}

static void waits_that_nothing_explains_stay(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.after_forward = wait_for_others;
    struct judged j = model_judge(&m, 0);
    const struct corrected_view *c = &j.d.corrected;
    assert_true(c->step_us >= 10000);
    assert_true(c->low_us <= c->step_us && c->step_us <= c->high_us && c->step_us <= c->recorded_us * 1.0001);
    assert_true(c->high_us <= c->recorded_us * 1.0601);     /* another run may take longer by so much, with or without the profiler */
    assert_true(c->step_us >= c->recorded_us - c->cost_per_event_us * c->events_per_step - 1);
    judged_release(&j);
}

/* Two streams, one after the other's launch and beside its work. */
static void the_device_is_busy_when_any_stream_is(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < 4; i++) {
        const double at = 2000 * i;
        traced_step_at(&m, i, at, 2000);
        traced_work_at(&m, "cudaLaunchKernel", at + 10, 5, EVENT_KERNEL, "gemm", at + 20, 480);
        traced_work_at(&m, "cudaLaunchKernel", at + 20, 5, EVENT_KERNEL, "gemm", at + 1000, 900);
        traced_on_stream(&m, 20);
        traced_work_at(&m, "cudaLaunchKernel", at + 30, 5, EVENT_KERNEL, "ncclDevKernel_AllReduce", at + 500, 500);     /* launched last, in between */
        traced_on_stream(&m, 7);
    }
    struct judged j = trace_judge(m.trace, 0);
    assert_near(j.d.corrected.device_us, 1880, 0.1, "busy");
    assert_true(j.d.corrected.step_us >= 1880 && j.d.corrected.step_us <= j.d.corrected.recorded_us);
    judged_release(&j);
}

/* Work of a step that runs before the end of the one before is in no window but that one's. */
static void a_step_is_not_busy_for_longer_than_it_takes(void **state)
{
    (void)state;
    struct traced m = traced_new();
    traced_step_at(&m, 1, 0, 100);
    traced_step_at(&m, 2, 100, 20);
    traced_work_at(&m, "cudaLaunchKernel", 10, 5, EVENT_KERNEL, "long", 20, 480);
    traced_on_stream(&m, 20);
    traced_work_at(&m, "cudaLaunchKernel", 101, 5, EVENT_KERNEL, "beside", 110, 300);
    struct view v = traced_view(m.trace);
    struct diagnosis d = traced_numbers(&v);
    for (int i = 0; i < d.n_steps; i++)
        assert_true(d.steps[i].busy_us <= d.steps[i].total_us);
    arena_release(&d.arena);
    view_release(&v);
    trace_free(m.trace);
}

static void wait_for_data(struct model *m)
{
    traced_begin(&m->t, EVENT_ANNOTATION, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    traced_idle(&m->t, 1500);
    traced_end(&m->t);
}

static void a_roadmap_is_no_less_than_its_best_part_and_grows(void **state)
{
    (void)state;
    for (int kind = HOST_BOUND; kind <= DEVICE_BOUND; kind++) {
        struct model m = model_new((enum model_kind)kind);
        m.data = wait_for_data;
        m.kernel_us = 4;
        struct judged j = model_judge(&m, 0);
        double before = 1;
        assert_true(j.d.n_phases > 0);
        for (int p = 0; p < j.d.n_phases; p++) {
            const struct plan_phase *x = &j.d.phases[p];
            for (int i = 0; i < x->n; i++)
                assert_true(x->speedup >= j.d.findings[x->findings[i]].speedup);
            assert_true(x->speedup >= before && x->low <= x->speedup && x->speedup <= x->high);
            before = x->speedup;
        }
        judged_release(&j);
    }
}

static void what_would_cost_time_is_no_finding(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.types = F32;                          /* autocast adds host work to a step that is bound by the host */
    struct judged j = model_judge(&m, 0);
    for (int i = 0; i < j.d.n_findings; i++)
        assert_true(j.d.findings[i].speedup >= 1);
    judged_release(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_lies_between_its_device_and_its_record),
        cmocka_unit_test(a_gain_is_no_more_than_the_time_allows),
        cmocka_unit_test(an_interval_is_in_order),
        cmocka_unit_test(waits_that_nothing_explains_stay),
        cmocka_unit_test(the_device_is_busy_when_any_stream_is),
        cmocka_unit_test(a_step_is_not_busy_for_longer_than_it_takes),
        cmocka_unit_test(a_roadmap_is_no_less_than_its_best_part_and_grows),
        cmocka_unit_test(what_would_cost_time_is_no_finding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
