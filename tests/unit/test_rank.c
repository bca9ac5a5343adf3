/* The order of findings, and advice that fits what is used already. */
#include "unit/trace_models.h"

#include "analyze/traced/judge.h"

static int place(const struct judged *j, const char *rule)
{
    for (int i = 0; i < j->d.n_findings; i++)
        if (!strcmp(j->d.findings[i].rule, rule))
            return i;
    fail_msg("%s was not found", rule);
    return -1;
}

/* ---- order ---- */

static void insert(struct diagnosis *d, const char *rule, double speedup, enum effort effort, bool symptom)
{
    finding_insert(d, (struct finding){.rule = rule, .speedup = speedup, .speedup_low = 0.9 * speedup, .speedup_high = 1.1 * speedup,
                                       .effort = effort, .symptom = symptom});
}

static void causes_stand_before_symptoms(void **state)
{
    (void)state;
    struct diagnosis d = {0};
    insert(&d, "launch-bound", 2.6, EFFORT_MEDIUM, true);
    insert(&d, "odd", 1.001, EFFORT_LOW, false);
    insert(&d, "host-sync", 1.006, EFFORT_LOW, false);      /* a graph cannot hold it */
    insert(&d, "cause", 1.1, EFFORT_LOW, false);
    insert(&d, "dear", 1.305, EFFORT_HIGH, false);
    insert(&d, "cheap", 1.3, EFFORT_LOW, false);            /* as good as equal */
    finding_insert(&d, (struct finding){.rule = "no-clipping", .speedup = 1, .speedup_low = 1, .speedup_high = 1});
    static const char *const order[] = {"cheap", "dear", "cause", "host-sync", "launch-bound", "odd", "no-clipping"};
    for (int i = 0; i < d.n_findings; i++)
        assert_string_equal(d.findings[i].rule, order[i]);
    arena_release(&d.arena);
}

static void read_number(struct model *m) { model_read(m, "cudaStreamSynchronize"); }

static void what_a_graph_cannot_hold_is_named_before_it(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.end = read_number;
    struct judged j = model_judge(&m, 0);
    assert_true(place(&j, "host-sync") < place(&j, "launch-bound"));
    assert_null(judged_find(&j, "host-sync")->after);
    assert_non_null(strstr(judged_find(&j, "launch-bound")->fix, "first: host-sync"));
    judged_release(&j);
}

/* ---- compiled code and graphs ---- */

static void call_compiled(struct model *m)
{
    model_begin(m, "torch::CompiledFunction", "[[32, 256]]");
    traced_idle(&m->t, 10);
    traced_launch(&m->t, "triton_poi_fused_add_0", 5);
    model_end(m);
}

static void compiled_code_is_not_advised_to_be_compiled(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND), eager = model_new(HOST_BOUND);
    m.data = call_compiled;
    struct judged j = model_judge(&m, 0), k = model_judge(&eager, 0);
    assert_null(strstr(assert_found(&j, "launch-bound")->fix, "torch.compile(model)"));
    assert_non_null(strstr(judged_find(&j, "launch-bound")->fix, "launched as one graph"));
    assert_non_null(strstr(assert_found(&k, "launch-bound")->fix, "capture the whole step by hand"));
    for (int i = 0; i < j.d.n_findings; i++)
        assert_null(strstr(j.d.findings[i].fix, "torch.compile(model) "));
    judged_release(&j);
    judged_release(&k);
}

/* One graph per step, then Python that the device waits for. */
static struct trace *graph_steps(double idle_us)
{
    struct traced m = traced_new();
    for (int i = 0; i < 4; i++) {
        traced_step_begin(&m, i);
        for (int k = 0; k < 5; k++) {
            traced_op(&m, "aten::copy_", 20);
            traced_idle(&m, 100);
        }
        const int64_t first = traced_start(&m, "cudaGraphLaunch", EVENT_KERNEL, "gemm", 500);
        const int64_t link = traced_get(&m, first)->link;
        for (int k = 0; k < 99; k++) {
            const int64_t more = traced_at(&m, EVENT_KERNEL, k % 2 ? "gemm" : "norm", m.free_us, 5);
            traced_get(&m, more)->link = link;
            m.free_us += 5;
        }
        traced_idle(&m, idle_us);
        traced_step_end(&m);
    }
    return m.trace;
}

static void graphs_are_not_advised_to_be_graphs(void **state)
{
    (void)state;
    struct judged j = trace_judge(graph_steps(4000), 0);
    const struct finding *f = assert_found(&j, "host-bound");
    assert_not_found(&j, "launch-bound");
    assert_null(strstr(f->fix, "torch.compile"));
    /* usual gaps of 100 µs are long: what is beyond 200 µs goes */
    assert_true(f->speedup > 3);
    judged_release(&j);
}

/* What was captured before the steps says what the kernels of a replay are for. */
static void replays_are_linked_to_their_capture(void **state)
{
    (void)state;
    struct traced m = traced_new();
    static const char *const ops[] = {"aten::mm", "aten::gelu", "aten::mm"};
    traced_at(&m, EVENT_RUNTIME, "cudaStreamBeginCapture", 0, 2);
    for (int i = 0; i < 3; i++) {
        traced_at(&m, EVENT_HOST_OP, ops[i], 10 + 20 * i, 15);
        traced_at(&m, EVENT_RUNTIME, "cudaLaunchKernel", 15 + 20 * i, 4);
    }
    traced_at(&m, EVENT_RUNTIME, "cudaStreamEndCapture", 100, 5);
    for (int step = 0; step < 2; step++) {
        const double at = 1000 + 500 * step;
        traced_step_at(&m, step, at, 500);
        const int64_t first = traced_work_at(&m, "cudaGraphLaunch", at + 10, 10, EVENT_KERNEL, "kernel_a", at + 30, 50);
        const int64_t link = traced_get(&m, first)->link;
        traced_get(&m, traced_at(&m, EVENT_KERNEL, "kernel_b", at + 80, 20))->link = link;
        traced_get(&m, traced_at(&m, EVENT_KERNEL, "kernel_a", at + 100, 50))->link = link;
    }
    struct view v = traced_view(m.trace);
    struct diagnosis d = traced_numbers(&v);
    assert_int_equal(d.n_kernels, 2);
    assert_string_equal(d.kernels[0].op, "aten::mm");
    assert_string_equal(d.kernels[0].kind, "gemm");
    assert_string_equal(d.kernels[1].op, "aten::gelu");
    arena_release(&d.arena);
    view_release(&v);
    trace_free(m.trace);
}

/* ---- a device that was not recorded ---- */

static void launches_without_work_say_that_recording_failed(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    model_train(&m);
    struct trace *t = m.t.trace;
    int64_t n = 0;
    for (int64_t i = 0; i < t->n; i++)
        if (!traced_on_device((enum event_kind)t->events[i].kind))
            t->events[n++] = t->events[i];
    t->n = n;
    struct judged j = model_judge(&m, 0);
    bool warned = false;
    for (int i = 0; i < j.d.n_warnings; i++)
        warned |= strstr(j.d.warnings[i], "recording of the device failed") != NULL;
    assert_true(warned);
    assert_string_equal(j.d.bound_by, "unknown");
    assert_non_null(strstr(j.d.headline, "not recorded"));
    judged_release(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(causes_stand_before_symptoms),
        cmocka_unit_test(what_a_graph_cannot_hold_is_named_before_it),
        cmocka_unit_test(compiled_code_is_not_advised_to_be_compiled),
        cmocka_unit_test(graphs_are_not_advised_to_be_graphs),
        cmocka_unit_test(replays_are_linked_to_their_capture),
        cmocka_unit_test(launches_without_work_say_that_recording_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
