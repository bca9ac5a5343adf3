/* Traces whose file was cut off: the step in which it ends is in no number, since what is missing of it would be taken for the host's time. */
#include "unit/trace_models.h"

/* Steps, of which the file has the events that begin before that part of the last one. A profiler knows how long a step takes when it writes its mark. */
static struct trace *cut_at(int steps, double until, double *step_us)
{
    struct model m = model_new(HOST_BOUND);
    m.steps = steps;
    *step_us = model_step_us(&m);
    struct trace *t = m.t.trace;
    int64_t n = 0;
    for (int64_t i = 0; i < t->n; i++)
        if ((double)t->events[i].start_ns < 1e3 * *step_us * (steps - 1 + until))
            t->events[n++] = t->events[i];
    t->n = n;
    t->origin.truncated = true;
    return t;
}

/* What is missing is not taken for Python's own time. */
static void assert_no_python(const struct judged *j)
{
    const struct finding *f = judged_find(j, "host-bound");
    if (f && f->speedup > 1.1)
        fail_msg("host-bound is %g: %s", f->speedup, f->evidence);
}

static void the_step_in_which_a_file_ends_is_left_out(void **state)
{
    (void)state;
    double step_us;
    struct judged j = trace_judge(cut_at(4, 0.3, &step_us), 0);
    assert_int_equal(j.d.n_steps, 3);
    assert_true(fabs(j.d.mean.total_us - step_us) < 0.02 * step_us);
    assert_no_python(&j);
    assert_true(warns(&j.d, "cut off within step 3: the last step is left out"));
    assert_false(j.d.only_cut);
    judged_release(&j);
}

/* The same numbers as without that step. */
static void numbers_are_those_of_the_steps_before(void **state)
{
    (void)state;
    double step_us;
    struct judged cut = trace_judge(cut_at(4, 0.5, &step_us), 0);
    struct model m = model_new(HOST_BOUND);
    m.steps = 3;
    struct judged whole = model_judge(&m, 0);
    assert_int_equal(cut.d.n_steps, whole.d.n_steps);
    assert_true(fabs(cut.d.mean.total_us - whole.d.mean.total_us) < 0.01);
    assert_true(fabs(cut.d.corrected.step_us - whole.d.corrected.step_us) < 0.01 * whole.d.corrected.step_us);
    assert_int_equal(cut.d.n_findings, whole.d.n_findings);
    assert_int_equal(cut.d.mean.kernels, whole.d.mean.kernels);
    judged_release(&whole);
    judged_release(&cut);
}

static void the_only_step_ends_with_what_was_read(void **state)
{
    (void)state;
    double step_us;
    struct judged j = trace_judge(cut_at(1, 0.4, &step_us), 0);
    assert_int_equal(j.d.n_steps, 1);
    assert_true(j.d.mean.total_us < 0.45 * step_us);
    assert_true(warns(&j.d, "no step is whole"));
    assert_no_python(&j);
    assert_true(j.d.n_findings > 0);
    for (int i = 0; i < j.d.n_findings; i++)
        assert_string_equal(j.d.findings[i].confidence, "low");
    judged_release(&j);
}

/* Work of the device comes last in a file: steps whose launches are there, but not their work, are not whole either. */
static void steps_without_their_work_are_left_out(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    const double step_us = model_step_us(&m);
    struct trace *t = m.t.trace;
    int64_t n = 0;
    for (int64_t i = 0; i < t->n; i++)
        if (!traced_on_device((enum event_kind)t->events[i].kind) || (double)t->events[i].start_ns < 2.5e3 * step_us)
            t->events[n++] = t->events[i];
    t->n = n;
    t->origin.truncated = true;
    struct judged j = trace_judge(t, 0);
    assert_int_equal(j.d.n_steps, 2);
    assert_true(warns(&j.d, "cut off within step 2: the last 2 steps are left out"));
    judged_release(&j);
}

/* A thread that has little to do may be done before the last step. */
static void a_thread_that_is_done_early_cuts_nothing(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    model_step_us(&m);
    traced_on_thread(&m.t, 99);
    traced_at(&m.t, EVENT_HOST_OP, "aten::pin_memory", 10, 5);
    m.t.trace->origin.truncated = true;
    struct judged j = trace_judge(m.t.trace, 0);
    assert_int_equal(j.d.n_steps, 3);
    judged_release(&j);
}

static void a_whole_file_keeps_its_last_step(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    struct judged j = model_judge(&m, 0);
    assert_int_equal(j.d.n_steps, 4);
    assert_false(warns(&j.d, "was cut off"));
    judged_release(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_step_in_which_a_file_ends_is_left_out),
        cmocka_unit_test(numbers_are_those_of_the_steps_before),
        cmocka_unit_test(the_only_step_ends_with_what_was_read),
        cmocka_unit_test(steps_without_their_work_are_left_out),
        cmocka_unit_test(a_thread_that_is_done_early_cuts_nothing),
        cmocka_unit_test(a_whole_file_keeps_its_last_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
