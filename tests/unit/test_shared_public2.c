/* Public traces on which advice was wrong once: what their README says is true of each. What is judged of them is in test_shared_traces.c.
 * The folder is $HONE_TRACES or ../shared/traces beside the source; without it these tests say so and are skipped. */
#include "unit/trace_models.h"

#include <unistd.h>

static const char *path_of(const char *name)
{
    static char path[4200];
    const char *given = getenv("HONE_TRACES");
    snprintf(path, sizeof path, "%s/public2/%s", given ? given : HONE_CONFIGS "/../../shared/traces", name);
    return path;
}

static bool absent(void)
{
    if (access(path_of(""), R_OK) == 0)
        return false;
    print_message("skipped: there is no folder '%s'\n", path_of(""));
    return true;
}

struct read {
    struct trace *trace;
    struct view view;
};

static struct read read_one(const char *name)
{
    char file[256];
    struct read r = {0};
    struct error err;
    snprintf(file, sizeof file, "%s.json.gz", name);
    assert_ok(import_read(&r.trace, path_of(file), NULL, NULL, &err), err);
    r.view = traced_view(r.trace);
    return r;
}

static void read_release(struct read *r)
{
    view_release(&r->view);
    trace_free(r->trace);
}

static struct judged judge_one(const char *name)
{
    char file[256];
    struct trace *t = NULL;
    struct error err;
    snprintf(file, sizeof file, "%s.json.gz", name);
    assert_ok(import_read(&t, path_of(file), NULL, NULL, &err), err);
    return trace_judge(t, 0);
}

/* Union of kernels, copies and fills over all streams, and from the first to the last. */
static double busy_ms(const struct view *v, double *span_ms)
{
    int64_t busy = 0, end = INT64_MIN, first = INT64_MAX;
    for (int32_t i = v->device; i < v->device + v->n_device; i++) {    /* by start */
        const struct event *e = view_event(v, i);
        const int64_t from = e->start_ns > end ? e->start_ns : end;
        first = e->start_ns < first ? e->start_ns : first;
        busy += event_end(e) > from ? event_end(e) - from : 0;
        end = event_end(e) > end ? event_end(e) : end;
    }
    *span_ms = (double)(end - first) / 1e6;
    return (double)busy / 1e6;
}

static double longest_call_ms(const struct view *v, const char *name)
{
    double ms = 0;
    for (int32_t i = 0; i < v->n_host; i++)
        if (!strcmp(view_name(v, i), name))
            ms = fmax(ms, (double)view_event(v, i)->duration_ns / 1e6);
    return ms;
}

static void numbers_of_the_devices(void **state)
{
    (void)state;
    if (absent())
        skip();
    static const struct { const char *name; int events; double busy, span, tolerance; int steps; } facts[] = {
        {"tl_vllm_piecewise", 423, 156.1, 156.5, 0.1, 0}, {"hta_alexnet", 98, 66, 0, 0.5, 0}, {"hta_negqueue", 0, 438, 1231, 3, 5},
        {"hta_mtia_infer", 1313, 424, 443, 0.5, 0},       {"tl_norm_layer", 173, 1.0, 1069, 1, 0}, {"tl_mi300_resnet_ckpt", 0, 84.0, 86.6, 0.1, 3}};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        struct read r = read_one(facts[i].name);
        double span;
        assert_near(busy_ms(&r.view, &span), facts[i].busy, facts[i].tolerance, facts[i].name);
        if (facts[i].span > 0)
            assert_near(span, facts[i].span, facts[i].tolerance, facts[i].name);
        if (facts[i].events)
            assert_int_equal(r.view.n_device, facts[i].events);
        assert_int_equal(r.view.no_step_marks, !facts[i].steps);
        if (facts[i].steps)
            assert_int_equal(r.view.n_steps, facts[i].steps);
        read_release(&r);
    }
}

static void one_call_of_thirty_seconds_is_a_cold_start(void **state)
{
    (void)state;
    if (absent())
        skip();
    struct read r = read_one("hta_alexnet");
    assert_near(longest_call_ms(&r.view, "cudaDeviceGetStreamPriorityRange"), 30e3, 100, "the call");
    read_release(&r);
    struct judged j = judge_one("hta_alexnet");
    assert_true(j.d.all_cold);
    assert_true(warns(&j.d, "12.7 s in them"));         /* of the device's 12.9 s: the call of thirty seconds lies before them */
    assert_true(!judged_find(&j, "pageable-copies") || judged_find(&j, "pageable-copies")->speedup < 1.05);
    judged_release(&j);
}

static void most_of_a_trace_may_lie_before_the_device_starts(void **state)
{
    (void)state;
    if (absent())
        skip();
    struct read r = read_one("tl_vllm_piecewise");
    assert_near((double)(r.view.last_ns - r.view.first_ns) / 1e6, 307.7, 0.1, "all events");
    read_release(&r);
    struct judged j = judge_one("tl_vllm_piecewise");
    assert_true(j.d.launches.graphs > 0);
    for (int i = 0; i < j.d.n_findings; i++)
        assert_null(strstr(j.d.findings[i].fix, "CUDAGraph"));          /* what has graphs is not advised to have them */
    judged_release(&j);
}

static void the_host_waits_in_one_copy_of_each_step(void **state)
{
    (void)state;
    if (absent())
        skip();
    struct read r = read_one("hta_negqueue");
    int waits = 0;
    for (int32_t i = 0; i < r.view.n_host; i++)
        if (!strcmp(view_name(&r.view, i), "cudaMemcpyAsync") && view_event(&r.view, i)->duration_ns > 100000000) {
            assert_near((double)view_event(&r.view, i)->duration_ns / 1e6, 147, 30, "the copy");
            waits++;
        }
    assert_int_equal(waits, r.view.n_steps);
    read_release(&r);
    struct judged j = judge_one("hta_negqueue");
    assert_true(j.d.launches.graphs > 0);
    judged_release(&j);
}

static void a_device_that_is_not_cudas_gets_no_cuda_graphs(void **state)
{
    (void)state;
    if (absent())
        skip();
    struct judged j = judge_one("hta_mtia_infer");
    for (int i = 0; i < j.d.n_findings; i++)
        assert_true(!strstr(j.d.findings[i].fix, "CUDA") && !strstr(j.d.findings[i].fix, "torch.cuda.graph") && !strstr(j.d.findings[i].fix, "'cuda'"));
    judged_release(&j);
}

/* The part of a time in which some event of the name is, on any thread; looked at every 1/2000. */
static double covered(const struct view *v, const char *name, int64_t from_ns, int64_t to_ns)
{
    enum { POINTS = 2000 };
    int in = 0;
    for (int k = 0; k < POINTS; k++) {
        const int64_t at = from_ns + (to_ns - from_ns) / POINTS * k;
        bool is = false;
        for (int32_t i = 0; i < v->n_host && !is; i++) {
            const struct event *e = view_event(v, i);
            is = e->start_ns <= at && event_end(e) > at && !strcmp(view_name(v, i), name);
        }
        in += is;
    }
    return (double)in / POINTS;
}

static void most_of_each_step_is_an_all_reduce_of_gloo(void **state)
{
    (void)state;
    if (absent())
        skip();
    struct read r = read_one("hta_cpu_only_old");
    const struct view *v = &r.view;
    assert_int_equal(v->n_device, 0);
    assert_int_equal(v->n_steps, 5);
    for (int s = 0; s < v->n_steps; s++) {
        const double share = covered(v, "gloo:all_reduce", v->steps[s].start_ns, v->steps[s].end_ns);
        if (!(share > 0.795 && share < 0.915))
            fail_msg("step %d: %.3f", s, share);
    }
    read_release(&r);
}

static void pinning_halves_one_direction_of_two(void **state)
{
    (void)state;
    if (absent())
        skip();
    struct read r = read_one("ptbench_trace2");
    double all = 0, up = 0;
    for (int32_t i = r.view.device; i < r.view.device + r.view.n_device; i++) {
        const struct event *e = view_event(&r.view, i);
        if (e->kind != EVENT_MEMCPY)
            continue;
        all += (double)e->duration_ns / 1e6 / r.view.n_steps;
        up += strstr(view_name(&r.view, i), "HtoD") ? (double)e->duration_ns / 1e6 / r.view.n_steps : 0;
    }
    assert_int_equal(r.view.n_steps, 10);
    assert_near(all, 66.6, 0.2, "copies in both directions");
    assert_near(up / all, 0.5, 0.05, "to the device");
    read_release(&r);
    struct judged j = judge_one("ptbench_trace2");
    assert_true(assert_found(&j, "pageable-copies")->speedup <= 1.9);
    judged_release(&j);
}

static void the_first_of_eight_ranks_says_so(void **state)
{
    (void)state;
    if (absent())
        skip();
    struct read r = read_one("tl_mi300_resnet_ckpt");
    assert_int_equal(r.trace->origin.rank, 0);
    assert_int_equal(r.trace->origin.world_size, 8);
    read_release(&r);
}

/* The file of one of its 8 ranks, without its ending. */
static const char *dlrm_rank(int rank)
{
    static const char *const times[] = {"0_step_12.1694128201545", "1_step_12.1694128201556", "2_step_12.1694128201554", "3_step_12.1694128201557",
                                        "4_step_12.1694128201547", "5_step_12.1694128201549", "6_step_12.1694128201553", "7_step_12.1694128201553"};
    static char name[128];
    snprintf(name, sizeof name, "param_dlrm_8ranks/worker%s.pt.trace", times[rank]);
    return name;
}

/* Marks of ranks lie apart, and yet all of them reach the first all-to-all at the same time of their step. */
static void ranks_arrive_together_whatever_their_marks_say(void **state)
{
    (void)state;
    if (absent())
        skip();
    double mark[8], least = INFINITY, most = 0;
    for (int k = 0; k < 8; k++) {
        struct read r = read_one(dlrm_rank(k));
        int64_t first = INT64_MAX;
        for (int32_t i = 0; i < r.view.n_host; i++)
            if (strstr(view_name(&r.view, i), "all_to_all") && view_event(&r.view, i)->start_ns < first)
                first = view_event(&r.view, i)->start_ns;
        assert_int_equal(r.view.n_steps, 1);
        mark[k] = (double)r.view.steps[0].start_ns / 1e6;
        const double arrives = ((double)first - (double)r.view.steps[0].start_ns) / 1e6;
        least = fmin(least, arrives);
        most = fmax(most, arrives);
        read_release(&r);
    }
    assert_near(mark[7] - mark[1], 7.5, 0.1, "the mark of rank 7 behind that of rank 1");
    assert_true(least > 2.95 && most < 3.95);
}

/* More samples are more bytes to exchange: a larger batch is not the first thing to do, although some ranks do not wait. */
static void ranks_that_wait_for_each_other_are_not_told_to_take_a_larger_batch_first(void **state)
{
    (void)state;
    if (absent())
        skip();
    struct trace *traces[8] = {0};
    struct error err;
    struct diagnosis d;
    for (int k = 0; k < 8; k++) {
        char file[256];
        snprintf(file, sizeof file, "%s.json.gz", dlrm_rank(k));
        assert_ok(import_read(&traces[k], path_of(file), NULL, NULL, &err), err);
    }
    assert_ok(diagnose(&d, traces, 8, NULL, &err), err);
    assert_int_not_equal(strncmp(d.first_action, "small-batch", 11), 0);
    diagnosis_release(&d);
    for (int k = 0; k < 8; k++)
        trace_free(traces[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_the_devices),
        cmocka_unit_test(one_call_of_thirty_seconds_is_a_cold_start),
        cmocka_unit_test(most_of_a_trace_may_lie_before_the_device_starts),
        cmocka_unit_test(the_host_waits_in_one_copy_of_each_step),
        cmocka_unit_test(a_device_that_is_not_cudas_gets_no_cuda_graphs),
        cmocka_unit_test(most_of_each_step_is_an_all_reduce_of_gloo),
        cmocka_unit_test(pinning_halves_one_direction_of_two),
        cmocka_unit_test(the_first_of_eight_ranks_says_so),
        cmocka_unit_test(ranks_arrive_together_whatever_their_marks_say),
        cmocka_unit_test(ranks_that_wait_for_each_other_are_not_told_to_take_a_larger_batch_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
