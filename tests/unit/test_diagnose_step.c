/* The step of a diagnosis: its time as recorded and without the profiler are of the same steps; marks that are missing; several devices; times
 * that are given. */
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
    assert_true(c->low_us <= 0.94 * c->step_us && c->high_us >= 1.06 * c->step_us);         /* as two runs of one step differ anyway */
    judged_release(&j);
}

/* Long steps are judged around the middle, as many as fit. */
static void it_is_known_how_many_steps_are_judged(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct traced m = traced_new();
        for (int i = 0; i < 5; i++) {
            traced_step_begin(&m, i);
            for (int op = 0; op < (k ? 45000 : 100); op++)
                traced_op(&m, "aten::mm", 40);
            traced_step_end(&m);
        }
        struct judged j = trace_judge(m.trace, 0);
        assert_int_equal(j.d.judged_steps, k ? 2 : 5);
        judged_release(&j);
    }
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

/* The device fills steps of 4 ms; in one of eight the host writes a file for 2 s. */
static struct judged judge_saving(int at)
{
    struct traced m = traced_new();
    for (int i = 0; i < 8; i++) {
        traced_step_begin(&m, i);
        for (int k = 0; k < 10; k++)
            traced_run(&m, "aten::mm", 50, "gemm", 400);
        traced_wait(&m, "cudaStreamSynchronize");
        if (i == at) {
            traced_begin(&m, EVENT_ANNOTATION, "save_checkpoint");
            traced_idle(&m, 2e6);
            traced_end(&m);
        }
        traced_step_end(&m);
    }
    return trace_judge(m.trace, 0);
}

static void one_odd_step_is_not_the_verdict_for_all(void **state)
{
    (void)state;
    static const int places[] = {5, 0, 7};
    for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
        struct judged j = judge_saving(places[k]);
        char words[128];
        snprintf(words, sizeof words, "step %d is not like the others and left out of what is judged: it takes 2.00 s", places[k]);
        assert_int_equal(j.d.n_steps, 7);
        assert_near(j.d.corrected.recorded_us, 4060, 60, "as recorded");
        assert_near(j.d.mean.total_us, 4060, 60, "the mean step");
        assert_true(j.d.gpu.idle_us < 0.1 * j.d.gpu.total_us);
        assert_string_equal(j.d.bound_by, "device");
        assert_int_equal(j.d.n_warnings, 1);
        assert_non_null(strstr(j.d.warnings[0], words));
        assert_non_null(strstr(j.d.warnings[0], "save_checkpoint in it, which the others do not have, takes 2.00 s"));
        judged_release(&j);
    }
}

/* On a CPU, too: an evaluation that one of the recorded steps has. */
static void an_odd_step_of_a_cpu_says_how_many_ops_it_has(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < 8; i++) {
        traced_step_begin(&m, i);
        for (int k = 0; k < (i == 5 ? 90 : 10); k++) {
            traced_begin(&m, EVENT_HOST_OP, "aten::mm");
            traced_idle(&m, 100);
            traced_end(&m);
        }
        traced_step_end(&m);
    }
    struct judged j = trace_judge(m.trace, 0);
    assert_int_equal(j.d.n_odd, 1);
    assert_true(j.d.odd[0].number == 5 && j.d.odd[0].total_us > 8 * j.d.odd[0].usual_us);
    assert_non_null(strstr(j.d.warnings[0], "; it has 90 ops, the others 10"));
    judged_release(&j);
}

/* A loader that has nothing ready in one step is what the trace is looked at for. */
static void a_step_that_waits_for_its_data_is_not_odd(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < 8; i++) {
        traced_step_begin(&m, i);
        traced_begin(&m, EVENT_ANNOTATION, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
        traced_idle(&m, i == 5 ? 1e5 : 100);
        traced_end(&m);
        for (int k = 0; k < 10; k++)
            traced_run(&m, "aten::mm", 50, "gemm", 400);
        traced_wait(&m, "cudaStreamSynchronize");
        traced_step_end(&m);
    }
    struct judged j = trace_judge(m.trace, 0);
    assert_int_equal(j.d.n_steps, 8);
    assert_string_equal(j.d.bound_by, "data");
    judged_release(&j);
}

/* ---- marks that are missing ---- */

static void drop_marks(struct trace *t, int from, int to)
{
    for (int64_t i = 0; i < t->n; i++)
        if (t->events[i].kind == EVENT_STEP && t->events[i].step >= from && t->events[i].step <= to)
            t->events[i].kind = EVENT_OVERHEAD;
}

static struct judged model_without(enum model_kind kind, int from, int to)
{
    struct model m = model_new(kind);
    m.steps = 6;
    model_train(&m);
    drop_marks(m.t.trace, from, to);
    return model_judge(&m, 0);
}

static void what_lies_between_missing_marks_is_part_of_no_step(void **state)
{
    (void)state;
    static const int dropped[][2] = {{2, 2}, {2, 3}, {1, 4}};
    for (int kind = HOST_BOUND; kind <= DEVICE_BOUND; kind++) {
        struct judged all = model_without((enum model_kind)kind, -1, -1);
        const struct corrected_view *a = &all.d.corrected;
        assert_false(warns(&all.d, "marks are missing"));
        for (size_t k = 0; k < sizeof dropped / sizeof *dropped; k++) {
            struct judged some = model_without((enum model_kind)kind, dropped[k][0], dropped[k][1]);
            const struct corrected_view *c = &some.d.corrected;
            char words[80];
            snprintf(words, sizeof words, "behind ProfilerStep#%d comes #%d;", dropped[k][0] - 1, dropped[k][1] + 1);
            assert_true(warns(&some.d, words));
            assert_int_equal(some.d.n_steps, 6 - (dropped[k][1] - dropped[k][0] + 1));
            assert_near(c->recorded_us, a->recorded_us, 0.02 * a->recorded_us, "as recorded");
            assert_near(some.d.mean.total_us, all.d.mean.total_us, 0.02 * a->recorded_us, "the mean step");
            assert_near(c->step_us, a->step_us, 0.02 * a->step_us, "step");
            assert_near(c->device_us, a->device_us, 0.01 * a->device_us, "device");
            assert_near(c->host_us, a->host_us, 0.01 * a->host_us, "host");
            assert_near(c->events_per_step, a->events_per_step, 1, "events");
            assert_near(some.d.launches.per_step, all.d.launches.per_step, 1e-6, "launches");
            judged_release(&some);
        }
        judged_release(&all);
    }
}

static void gaps_may_be_many(void **state)
{
    (void)state;
    struct traced m = traced_new();
    host_steps(&m, 400);
    for (int i = 1; i < 400; i += 2)                        /* the long ones */
        drop_marks(m.trace, i, i);
    struct judged j = trace_judge(m.trace, 0);
    assert_true(warns(&j.d, "behind ProfilerStep#0 comes #2, and so in 198 places more;"));
    assert_near(j.d.corrected.recorded_us, 5000, 5, "as recorded");
    assert_near(j.d.corrected.events_per_step, 100, 1e-6, "events");
    judged_release(&j);
}

/* Whoever numbers every tenth step has marks without gaps. */
static void numbers_that_jump_without_time_between_are_no_gap(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    model_train(&m);
    for (int64_t i = 0; i < m.t.trace->n; i++)
        if (m.t.trace->events[i].kind == EVENT_STEP)
            m.t.trace->events[i].step *= 10;
    const double step_us = model_step_us(&m);
    struct judged j = model_judge(&m, 0);
    assert_false(warns(&j.d, "missing"));
    assert_near(j.d.corrected.recorded_us, step_us, 0.01 * step_us, "as recorded");
    judged_release(&j);
}

/* ---- several devices ---- */

/* Two devices in turns, 9 ms each, in steps of 20 ms that end with a wait for both. */
static struct traced in_turns(int steps)
{
    struct traced m = traced_new();
    const int first = m.stream, other = traced_track(&m, TRACK_DEVICE_STREAM, 1, 7);
    for (int i = 0; i < steps; i++) {
        traced_step_begin(&m, i);
        traced_idle(&m, 1000);
        for (int k = 0; k < 40; k++) {
            m.stream = k < 20 ? first : other;
            traced_run(&m, "aten::mm", 20, "gemm", 450);
        }
        traced_wait(&m, "cudaDeviceSynchronize");
        traced_idle(&m, 900);
        traced_step_end(&m);
    }
    return m;
}

static void devices_in_turns_have_one_busy_time_everywhere(void **state)
{
    (void)state;
    struct traced m = in_turns(4);
    struct judged j = trace_judge(m.trace, 0);
    const struct diagnosis *d = &j.d;
    assert_int_equal(d->gpu.devices, 2);
    assert_near(d->mean.busy_us, 18000, 1, "busy in the mean step");
    assert_near(d->corrected.device_us, d->mean.busy_us, 1, "busy in a step");
    assert_near(d->gpu.busy_us, 4 * 18000, 1, "busy in all");
    assert_near(d->gpu.busiest_us, 4 * 9000, 1, "the busiest");
    assert_string_equal(d->bound_by, "device");
    assert_non_null(strstr(d->headline, "The devices take turns: one of 2 works for 18.0 ms of a step"));
    assert_null(strstr(d->first_action, "Nothing that is worth changing"));
    for (int i = 0; i < d->n_findings; i++)                 /* nothing wins more than the time in which none works */
        if (strcmp(d->findings[i].rule, "small-batch"))
            assert_true(d->findings[i].speedup <= d->corrected.recorded_us / d->corrected.device_us);
    judged_release(&j);
}

/* ---- times that are given ---- */

static void no_given_step_is_shorter_than_the_devices_work(void **state)
{
    (void)state;
    static const double parts[] = {0.2, 0.52, 0.9, 0.96, 0.98, 1, 1.1};
    struct model plain = model_new(DEVICE_BOUND);
    struct judged usual = model_judge(&plain, 0);
    const double device_us = usual.d.corrected.device_us;
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        struct model m = model_new(DEVICE_BOUND);
        struct judged j = model_judge(&m, parts[k] * device_us);
        const struct corrected_view *c = &j.d.corrected;
        const bool taken = parts[k] > 0.97;
        assert_int_equal(c->given, taken);
        assert_int_equal(warns(&j.d, "ms is shorter than the device's own work of"), parts[k] < 1);
        assert_int_equal(warns(&j.d, "ms per step; it is not taken; is it the time of one step, in ms?"), !taken);
        assert_int_equal(warns(&j.d, "ms per step; it is taken to be that"), taken && parts[k] < 1);
        assert_near(c->step_us, taken ? fmax(parts[k], 1) * device_us : usual.d.corrected.step_us, 1e-6 * device_us, "step");
        assert_true(c->device_us <= 1.000001 * c->step_us);
        assert_near(c->idle_us, c->step_us - c->device_us, 1e-6 * device_us, "idle");
        judged_release(&j);
    }
    judged_release(&usual);
}

/* ---- a step that is given ---- */

static void a_given_step_is_taken(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    const double given = 0.6 * model_step_us(&m);
    struct judged j = model_judge(&m, given);
    const struct corrected_view *c = &j.d.corrected;
    assert_true(c->given);
    assert_near(c->step_us, given, 1e-6, "step");
    assert_near(c->low_us, given, 1e-6, "low");
    assert_near(c->high_us, given, 1e-6, "high");
    assert_near(c->host_us, given, 0.01 * given, "host");
    assert_int_equal(j.d.n_warnings, 0);
    judged_release(&j);
}

static void an_absurd_step_is_doubted(void **state)
{
    (void)state;
    struct model quick = model_new(DEVICE_BOUND);
    struct judged j = model_judge(&quick, 50);
    assert_true(warns(&j.d, "shorter than the device's own work"));
    for (int i = 0; i < j.d.n_findings; i++)
        assert_true(isfinite(j.d.findings[i].speedup) && isfinite(j.d.findings[i].speedup_high));
    judged_release(&j);
    struct model slow = model_new(HOST_BOUND);
    struct judged k = model_judge(&slow, 1e9);
    assert_true(warns(&k.d, "longer than the recorded one"));
    judged_release(&k);
}

/* A host that runs ahead of the device shortens the marks on the host, not the step. */
static void a_host_that_runs_ahead_does_not_make_the_given_step_absurd(void **state)
{
    (void)state;
    struct model m = model_new(DEVICE_BOUND);
    model_train(&m);
    const double device = m.t.free_us / m.steps;
    assert_true(device > 1.5 * model_step_us(&m));
    struct judged j = model_judge(&m, device);
    assert_false(warns(&j.d, "longer than"));
    assert_false(warns(&j.d, "shorter than"));
    assert_true(j.d.corrected.recorded_us >= 0.95 * device);
    judged_release(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_given_step_is_taken),
        cmocka_unit_test(an_absurd_step_is_doubted),
        cmocka_unit_test(a_host_that_runs_ahead_does_not_make_the_given_step_absurd),
        cmocka_unit_test(the_recorded_step_is_of_the_steps_that_are_replayed),
        cmocka_unit_test(it_is_known_how_many_steps_are_judged),
        cmocka_unit_test(a_device_that_fills_its_steps_sets_their_pace),
        cmocka_unit_test(one_odd_step_is_not_the_verdict_for_all), cmocka_unit_test(an_odd_step_of_a_cpu_says_how_many_ops_it_has), cmocka_unit_test(a_step_that_waits_for_its_data_is_not_odd),
        cmocka_unit_test(what_lies_between_missing_marks_is_part_of_no_step),
        cmocka_unit_test(gaps_may_be_many),
        cmocka_unit_test(numbers_that_jump_without_time_between_are_no_gap),
        cmocka_unit_test(devices_in_turns_have_one_busy_time_everywhere),
        cmocka_unit_test(no_given_step_is_shorter_than_the_devices_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
