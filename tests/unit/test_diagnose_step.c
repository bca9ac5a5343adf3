/* The step of a diagnosis: its time as recorded and without the profiler are of the same steps. */
#include "unit/trace_models.h"

/* ---- steps that differ ---- */

/* Every second step does twice the work, as one that evaluates does. The time of the marks' mean. */
static double host_steps(struct traced *m, int steps)
{
    for (int i = 0; i < steps; i++) {
        traced_step_begin(m, i);
        for (int k = 0; k < (i % 2 ? 200 : 100); k++) {
            traced_op(m, "aten::mm", 40);
            traced_idle(m, 10);
        }
        traced_step_end(m);
    }
    return m->now_us / steps;
}

static void the_recorded_step_is_of_the_steps_that_are_replayed(void **state)
{
    (void)state;
    struct traced m = traced_new();
    const double mean_us = host_steps(&m, 4);
    struct judged j = trace_judge(m.trace, 0);
    const struct corrected_view *c = &j.d.corrected;
    assert_near(c->recorded_us, mean_us, 0.001 * mean_us, "as recorded");
    assert_near(c->recorded_us, j.d.mean.total_us, 0.001 * mean_us, "the mean step");
    assert_near(c->recorded_us - c->step_us, c->cost_per_event_us * c->events_per_step, 0.001 * mean_us, "the profiler's cost");
    judged_release(&j);
}

/* The host launches all of a step in 0.5 ms and runs ahead; the device takes 4 ms for it, 8 ms in every second step. */
static struct traced device_steps(int steps, double before_us)
{
    struct traced m = traced_new();
    m.free_us = before_us;                  /* what it has left of steps before */
    for (int i = 0; i < steps; i++) {
        traced_step_begin(&m, i);
        for (int k = 0; k < 10; k++)
            traced_run(&m, "aten::mm", 50, "gemm", i % 2 ? 800 : 400);
        traced_step_end(&m);
    }
    return m;
}

static void a_device_that_fills_its_steps_sets_their_pace(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct traced m = device_steps(4, k ? 5000 : 0);
        struct judged j = trace_judge(m.trace, 0);
        const struct corrected_view *c = &j.d.corrected;
        assert_near(c->recorded_us, 6000, 60, "as recorded");
        assert_near(c->device_us, 6000, 60, "device");
        assert_true(c->step_us <= 1.001 * c->recorded_us);
        judged_release(&j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_recorded_step_is_of_the_steps_that_are_replayed),
        cmocka_unit_test(a_device_that_fills_its_steps_sets_their_pace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
