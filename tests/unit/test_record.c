/* Events of a recorded step: where the backend tells what measuring took before and behind a run, the trace's clock stands still meanwhile. */
#include "core/clock.h"
#include "support/models.h"
#include "train/record.h"

static const struct event *named(const struct trace *t, const char *name)
{
    for (int64_t i = 0; i < t->n; i++)
        if (!strcmp(t->names[t->events[i].name], name))
            return &t->events[i];
    return NULL;
}

static int64_t end_of(const struct event *e) { return e->start_ns + e->duration_ns; }

static void test_measuring_takes_no_time(void **state)
{
    (void)state;
    struct program *p = program_new("one");
    const value_id a = program_add_parameter(p, "a", shape_of(2, (int64_t)2, (int64_t)3), ROLE_MATRIX, INIT_ONES, 0);
    program_emit(p, OP_MATMUL, (struct op_attrs){.trans_b = true}, "y", 2, a, a);
    struct backend *b = new_backend(1, true);
    struct exec *e = new_exec(p, b);
    struct trace *t = trace_new();
    struct recorder *r = recorder_new(e, t, 0);
    struct device_event queued[3];
    exec_measure(e, true);
    for (int told = 0; told < 2; told++) {
        recorder_begin_step(r);
        recorder_loaded(r, &(struct batch){.worker = -1});
        const int64_t uploads_ns = clock_ns();
        while (clock_ns() < uploads_ns + 2000)      /* its copy is over before the run begins, 1000 ns before its op */
            ;
        recorder_uploaded(r);
        exec_run(e, PHASE_DATA, PHASE_OPTIMIZE);
        if (told) {
            b->ran_from_ns = exec_times(e, 0)[0].start_ns - 1000;
            b->ran_to_ns = exec_times(e, 0)[0].end_ns + 2000;
            queued[0] = (struct device_event){DEVICE_COPY, 0, NULL, uploads_ns, uploads_ns + 200};
            queued[1] = (struct device_event){DEVICE_LAUNCH, 0, NULL, b->ran_from_ns + 10, b->ran_from_ns + 20};
            queued[2] = (struct device_event){DEVICE_KERNEL, 1, &p->ops[0], b->ran_from_ns + 1500, b->ran_from_ns + 1600};
            b->events = queued;
            b->n_events = 3;
        }
        recorder_ran(r, PHASE_DATA, PHASE_OPTIMIZE);
        recorder_end_step(r);
        const struct event *op = named(t, "matmul y"), *forward = named(t, "forward"), *upload = named(t, TRACE_UPLOAD), *step = named(t, TRACE_STEP);
        assert_true(op && forward && upload && step);
        assert_int_equal(forward->start_ns, end_of(upload));
        assert_int_equal(named(t, TRACE_RECORDING) == NULL, told);
        if (told) {
            assert_int_equal(op->start_ns - forward->start_ns, 1000);
            assert_int_equal(end_of(forward) - end_of(op), 2000);
            const struct event *copy = named(t, "copy"), *launch = named(t, "launch of a graph"), *kernel = &t->events[t->n - 2];
            assert_true(copy && copy->track == TRACK_COPIES && copy->start_ns < end_of(copy) && end_of(copy) <= forward->start_ns);
            assert_true(launch && launch->track == TRACK_LAUNCHES && launch->start_ns == forward->start_ns + 10 && launch->duration_ns == 10);
            assert_true(kernel->kind == EVENT_QUEUED && kernel->track == TRACK_QUEUES + 1 && kernel->op == 0 && kernel->duration_ns == 100);
            assert_int_equal(kernel->start_ns, forward->start_ns + 1500);
        }
        assert_true(end_of(step) >= end_of(forward) && step->start_ns <= upload->start_ns);
        t->n = 0;                   /* the next step is looked at alone */
    }
    exec_measure(e, false);
    recorder_free(r);
    trace_free(t);
    exec_free(e);
    b->free(b);
}

/* What threads sum up when all have met is an event of its own, behind the op on every thread, and part of the op's time. */
static void test_sums_are_events(void **state)
{
    (void)state;
    enum { THREADS = 2 };
    struct program *p = program_new("sums");
    const value_id a = program_add_parameter(p, "a", shape_of(2, (int64_t)1024, (int64_t)64), ROLE_MATRIX, INIT_ONES, 0);
    const value_id like = program_add_parameter(p, "like", shape_of(1, (int64_t)64), ROLE_MATRIX, INIT_ONES, 0);
    program_emit(p, OP_SUM_LEADING, (struct op_attrs){0}, "y", 2, a, like);
    struct backend *b = new_backend(THREADS, false);
    struct exec *e = new_exec(p, b);
    struct trace *t = trace_new();
    struct recorder *r = recorder_new(e, t, 0);
    exec_measure(e, true);
    recorder_begin_step(r);
    exec_run(e, PHASE_DATA, PHASE_OPTIMIZE);
    recorder_ran(r, PHASE_DATA, PHASE_OPTIMIZE);
    recorder_end_step(r);
    int64_t last = 0, work = 0;
    int ops = 0, sums = 0;
    for (int64_t i = 0; i < t->n; i++) {
        const struct event *x = &t->events[i];
        ops += x->kind == EVENT_OP;
        sums += x->kind == EVENT_SUMS;
        last = x->kind == EVENT_OP && end_of(x) > last ? end_of(x) : last;
        work += x->kind == EVENT_OP || x->kind == EVENT_SUMS ? x->duration_ns : 0;
        assert_true(x->kind != EVENT_SUMS || (x->start_ns >= last && x->op == 0));
    }
    assert_true(ops == THREADS && sums == THREADS);
    assert_int_equal(p->ops[0].profile.total_ns, work / THREADS);
    exec_measure(e, false);
    recorder_free(r);
    trace_free(t);
    exec_free(e);
    b->free(b);
}

/* Where a thread helps another, which is not in our hands, that is an event behind those of the op, and part of the op's time. */
static void test_help_is_an_event(void **state)
{
    (void)state;
    enum { THREADS = 2, STEPS = 300 };
    struct program *p = program_new("help");
    const value_id a = program_add_parameter(p, "a", shape_of(2, (int64_t)515, (int64_t)128), ROLE_MATRIX, INIT_ONES, 0);
    const value_id w = program_add_parameter(p, "w", shape_of(2, (int64_t)256, (int64_t)128), ROLE_MATRIX, INIT_ONES, 0);
    program_emit(p, OP_MATMUL, (struct op_attrs){.trans_b = true}, "y", 2, a, w);
    struct backend *b = new_backend(THREADS, false);
    struct exec *e = new_exec(p, b);
    struct trace *t = trace_new();
    struct recorder *r = recorder_new(e, t, 0);
    int helped = 0;
    exec_measure(e, true);
    for (int step = 0; step < STEPS && helped < 3; step++) {
        const int64_t before = p->ops[0].profile.total_ns;
        recorder_begin_step(r);
        exec_run(e, PHASE_DATA, PHASE_OPTIMIZE);
        recorder_ran(r, PHASE_DATA, PHASE_OPTIMIZE);
        recorder_end_step(r);
        int64_t work = 0;
        for (int64_t i = 0; i < t->n; i++) {
            const struct event *x = &t->events[i];
            helped += x->kind == EVENT_HELP;
            work += x->kind == EVENT_OP || x->kind == EVENT_HELP ? x->duration_ns : 0;
            assert_true(x->kind != EVENT_HELP || (x->op == 0 && x->duration_ns > 0 && x->track >= TRACK_THREADS && x->track < TRACK_THREADS + THREADS));
        }
        assert_int_equal(p->ops[0].profile.total_ns - before, work / THREADS);
        t->n = 0;
    }
    exec_measure(e, false);
    recorder_free(r);
    trace_free(t);
    exec_free(e);
    b->free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_measuring_takes_no_time), cmocka_unit_test(test_sums_are_events), cmocka_unit_test(test_help_is_an_event)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
