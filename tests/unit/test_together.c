/* Traces that are given together: which are ranks of one job, who is left out, and which ranks are missing. */
#include "unit/trace_models.h"

enum { MOST = 8, STEPS = 4 };

struct given {
    struct judged j;
    struct trace *traces[MOST];
    int n;
};

/* A step on the host: 20 ms of work and, where there is one, a collective that ends 2 ms after the latest rank came to it. */
static struct trace *on_host(const char *path, const char *collective, double late_us)
{
    struct traced t = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&t, i);
        const double end_us = t.now_us + 32000;
        traced_op(&t, "aten::mm", 20000 + late_us);
        if (collective) {
            traced_on_thread(&t, 99);
            traced_inputs(&t, traced_at(&t, EVENT_ANNOTATION, collective, t.now_us, end_us - t.now_us), "[[1000000]]", "[\"float\"]");
            traced_on_thread(&t, 1);
        }
        t.now_us = end_us;
        traced_op(&t, "aten::add", 500);
        traced_step_end(&t);
    }
    t.trace->origin.path = path;
    return t.trace;
}

static struct trace *on_device(const char *path, const char *device, const char *kernel)
{
    struct traced t = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&t, i);
        traced_run(&t, "aten::mm", 20, "gemm", 5000);
        if (kernel)
            traced_run(&t, "c10d::allreduce_", 20, kernel, 500);
        traced_wait(&t, "cudaStreamSynchronize");
        traced_step_end(&t);
    }
    t.trace->devices = xcalloc(1, sizeof *t.trace->devices);
    t.trace->devices[0].name = trace_name(t.trace, device);
    t.trace->n_devices = 1;
    t.trace->origin.path = path;
    return t.trace;
}

static struct trace *as_rank(struct trace *t, int rank, int world_size)
{
    t->origin.rank = rank;
    t->origin.world_size = world_size;
    return t;
}

static void judge_given(struct given *g)
{
    struct error err;
    while (g->n < MOST && g->traces[g->n])
        g->n++;
    assert_ok(diagnose(&g->j.d, g->traces, g->n, NULL, &err), err);
}

static void release(struct given *g)
{
    diagnosis_release(&g->j.d);
    for (int i = 0; i < g->n; i++)
        trace_free(g->traces[i]);
}

/* All that is said, in one text. */
static const char *said(struct given *g)
{
    const char *all = "";
    for (int i = 0; i < g->j.d.n_warnings; i++)
        all = arena_printf(&g->j.d.arena, "%s%s\n", all, g->j.d.warnings[i]);
    return all;
}

static void assert_alone(struct given *g, const char *warning)
{
    judge_given(g);
    assert_string_equal(said(g), warning);
    assert_int_equal(g->j.d.n_ranks, 1);
    assert_int_equal(g->j.d.n_others, 0);
    assert_ptr_equal(g->j.d.trace, g->traces[0]);
    assert_string_equal(g->j.d.name, g->traces[0]->origin.path);
    assert_not_found(&g->j, "straggler");
    for (int i = 0; i < g->j.d.n_findings; i++)
        assert_null(strstr(g->j.d.findings[i].evidence, "ranks, here"));
    release(g);
}

static void assert_together(struct given *g, const char *warnings)
{
    judge_given(g);
    assert_string_equal(said(g), warnings);
    assert_int_equal(g->j.d.n_ranks, g->n);
    release(g);
}

#define ALONE(file) "; '" file "' alone is judged. Give one trace, the ranks of one job, or compare two with --diff\n"

/* ---- no job ---- */

static void traces_that_never_meet_are_no_job(void **state)
{
    (void)state;
    struct given two = {.traces = {on_device("a.json", "H200", NULL), on_device("b.json", "H200", NULL)}};
    assert_alone(&two, "'a.json' and 'b.json' are not ranks of one job: they have no collectives in common, and do not say which ranks they are" ALONE("a.json"));
    struct given three = {.traces = {on_host("a.json", NULL, 0), on_host("b.json", NULL, 0), on_host("c.json", NULL, 0), on_host("d.json", NULL, 0)}};
    assert_alone(&three, "'a.json', 'b.json' and 2 others are not ranks of one job: they have no collectives in common, and do not say which ranks they are"
                 ALONE("a.json"));
    struct given other = {.traces = {on_host("a.json", "gloo:all_reduce", 0), on_host("b.json", "gloo:broadcast", 9000)}};
    assert_alone(&other, "'a.json' and 'b.json' are not ranks of one job: they have no collectives in common, and do not say which ranks they are" ALONE("a.json"));
}

static void devices_that_exchange_nothing_are_no_job(void **state)
{
    (void)state;
    struct given one_knows = {.traces = {on_device("a.json", "H200", NULL), as_rank(on_host("rank0.json", "gloo:all_reduce", 0), 0, 4)}};
    assert_alone(&one_knows, "'a.json' and 'rank0.json' are not ranks of one job: one ran on H200, the other on CPU" ALONE("a.json"));
    struct given both = {.traces = {as_rank(on_host("rank0.json", "gloo:all_reduce", 0), 0, 2), as_rank(on_device("rank1.json", "H200", "ncclDevKernel_AllReduce"), 1, 2)}};
    assert_alone(&both, "'rank0.json' and 'rank1.json' are not ranks of one job: one ran on CPU, the other on H200" ALONE("rank0.json"));
}

static void jobs_of_other_sizes_are_not_one(void **state)
{
    (void)state;
    struct given sizes = {.traces = {as_rank(on_host("a.json", "gloo:all_reduce", 0), 0, 2), as_rank(on_host("b.json", "gloo:all_reduce", 9000), 1, 4)}};
    assert_alone(&sizes, "'a.json' and 'b.json' are not ranks of one job: they are of jobs of 2 and 4 ranks" ALONE("a.json"));
    struct given single = {.traces = {as_rank(on_host("a.json", "gloo:all_reduce", 0), 0, 1), as_rank(on_host("b.json", "gloo:all_reduce", 9000), 0, 1)}};
    assert_alone(&single, "'a.json' and 'b.json' are not ranks of one job: one is the only rank of its job" ALONE("a.json"));
}

/* Runs beside each other on gpu0 and gpu1 are no ranks. */
static void guessed_numbers_make_no_job(void **state)
{
    (void)state;
    struct given g = {.traces = {as_rank(on_device("gpu0.json", "H200", NULL), 0, 0), as_rank(on_device("gpu1.json", "H200", NULL), 1, 0)}};
    g.traces[0]->origin.rank_by_names = g.traces[1]->origin.rank_by_names = true;
    assert_alone(&g, "'gpu0.json' and 'gpu1.json' are not ranks of one job: they have no collectives in common, and do not say which ranks they are"
                 ALONE("gpu0.json"));
}

/* ---- a job ---- */

static void ranks_of_a_job_go_on_together(void **state)
{
    (void)state;
    struct given silent = {.traces = {on_host("a.json", "gloo:all_reduce", 0), on_host("b.json", "gloo:all_reduce", 0)}};
    assert_together(&silent, "");
    struct given apart = {.traces = {as_rank(on_host("a.json", NULL, 0), 0, 2), as_rank(on_host("b.json", NULL, 0), 1, 2)}};
    assert_together(&apart, "");                                    /* the exchange was not recorded */
    struct given mixed = {.traces = {as_rank(on_device("a.json", "A100", "ncclDevKernel_AllReduce"), 0, 2),
                                     as_rank(on_device("b.json", "H200", "ncclDevKernel_AllReduce"), 1, 2)}};
    assert_together(&mixed, "");
    struct given nameless = {.traces = {on_device("a.json", "H200", "ncclDevKernel_AllReduce"), on_device("b.json", "", "ncclDevKernel_AllReduce")}};
    assert_together(&nameless, "");
}

static void one_that_is_no_rank_is_left_out(void **state)
{
    (void)state;
    struct given g = {.traces = {on_device("a.json", "H200", NULL), as_rank(on_host("rank0.json", "gloo:all_reduce", 0), 0, 3),
                                 on_host("other.json", NULL, 0), as_rank(on_host("rank1.json", "gloo:all_reduce", 0), 1, 3),
                                 as_rank(on_host("rank2.json", "gloo:all_reduce", 9000), 2, 3)}};
    judge_given(&g);
    assert_string_equal(said(&g), "'a.json' and 1 other are left out: no ranks of the job of 'rank0.json': one ran on CPU, the other on H200\n");
    assert_int_equal(g.j.d.n_ranks, 3);
    assert_ptr_equal(g.j.d.trace, g.traces[1]);
    assert_string_equal(assert_found(&g.j, "straggler")->where, "rank 2");
    release(&g);
}

/* Moves a trace in time, as the second cycle of a profiler's schedule. */
static struct trace *later(struct trace *t, double us)
{
    for (int64_t i = 0; i < t->n; i++)
        t->events[i].start_ns += (int64_t)(us * 1e3);
    return t;
}

static struct trace *cycle(const char *path, int rank, double late_us, double at_us)
{
    return later(as_rank(on_host(path, "gloo:all_reduce", late_us), rank, 3), at_us);
}

/* Two recordings of each rank are not twice as many ranks, of which none is alone the last. */
static void of_each_rank_one_recording_goes_on(void **state)
{
    (void)state;
    const double next = 1e8;
    struct given g = {.traces = {cycle("0a.json", 0, 0, 0), cycle("0b.json", 0, 0, next), cycle("1a.json", 1, 0, 0), cycle("1b.json", 1, 0, next + 50),
                                 cycle("2a.json", 2, 9000, 0), cycle("2b.json", 2, 9000, next)}};
    judge_given(&g);
    assert_string_equal(said(&g), "several traces are of one rank: those that were recorded together last are judged, one of each rank, and 3 are left out: "
                        "'0a.json', '1a.json', '2a.json'\n");
    assert_int_equal(g.j.d.n_ranks, 3);
    assert_ptr_equal(g.j.d.trace, g.traces[1]);
    assert_string_equal(assert_found(&g.j, "straggler")->where, "rank 2");
    release(&g);
}

/* The last cycle was cut off: the one before it has all ranks. */
static void a_cycle_that_lacks_ranks_is_left_out(void **state)
{
    (void)state;
    const double next = 1e8;
    struct given g = {.traces = {cycle("0a.json", 0, 0, 0), cycle("0b.json", 0, 0, next), cycle("1a.json", 1, 0, 0), cycle("1b.json", 1, 0, next),
                                 cycle("2a.json", 2, 9000, 0)}};
    judge_given(&g);
    assert_non_null(strstr(said(&g), "2 are left out: '0b.json', '1b.json'\n"));
    assert_int_equal(g.j.d.n_ranks, 3);
    release(&g);
}

/* A schedule that repeats in one process without ranks, and the trace of another one. */
static void of_one_process_the_last_recording_goes_on(void **state)
{
    (void)state;
    const double next = 1e8;
    struct given g = {.traces = {on_host("t/vm_7.100.pt.trace.json", NULL, 0), later(on_host("t/vm_7.300.pt.trace.json.gz", NULL, 0), 2 * next),
                                 later(on_host("t/vm_7.200.pt.trace.json", NULL, 0), next)}};
    judge_given(&g);
    assert_string_equal(said(&g), "several traces are of one process: the one that was recorded last is judged, and 2 are left out: "
                        "'t/vm_7.100.pt.trace.json', 't/vm_7.200.pt.trace.json'\n");
    assert_int_equal(g.j.d.n_ranks, 1);
    assert_ptr_equal(g.j.d.trace, g.traces[1]);
    release(&g);
    struct given other = {.traces = {on_host("t/vm_7.100.pt.trace.json", NULL, 0), later(on_host("t/vm_77.200.pt.trace.json", NULL, 0), next)}};
    judge_given(&other);
    assert_non_null(strstr(said(&other), "are not ranks of one job"));
    release(&other);
}

/* ---- ranks that are missing ---- */

#define AMONG ": who waits for them is not seen, and the slowest may be among them\n"

static struct given some_of(int world_size, int first, int second)
{
    return (struct given){.traces = {as_rank(on_host("a.json", "gloo:all_reduce", 0), first, world_size),
                                     as_rank(on_host("b.json", "gloo:all_reduce", 0), second, world_size)}};
}

static void missing_ranks_are_named(void **state)
{
    (void)state;
    static const struct { int world_size, first, second; const char *said; } cases[] = {
        {2, 0, 1, ""},
        {0, 3, 7, ""},                                              /* nobody says how many there are */
        {3, 2, 0, "1 of the job's 3 ranks is missing (1): who waits for it is not seen, and it may be the slowest\n"},
        {4, 0, 2, "2 of the job's 4 ranks are missing (1, 3)" AMONG},
        {16, 9, 2, "14 of the job's 16 ranks are missing (0, 1, 3 to 8, 10 to 15)" AMONG},
        {2147483647, 0, 1, "2147483645 of the job's 2147483647 ranks are missing (2 to 2147483646)" AMONG},
        {4, -1, -1, "2 of the job's 4 ranks are missing" AMONG},
        {4, 9, 0, "3 of the job's 4 ranks are missing (1 to 3)" AMONG},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct given g = some_of(cases[i].world_size, cases[i].first, cases[i].second);
        assert_together(&g, cases[i].said);
    }
}

static void many_missing_ranks_are_cut_short(void **state)
{
    (void)state;
    struct given g = {0};
    for (int i = 0; i < MOST; i++)
        g.traces[i] = as_rank(on_host("a.json", "gloo:all_reduce", 0), 2000000000 + 3 * i, 2147483647);
    assert_together(&g, "2147483639 of the job's 2147483647 ranks are missing (0 to 1999999999, 2000000001, 2000000002, 2000000004, 2000000005, 2000000007, 2000000008, "
                    "2000000010, 2000000011, 2000000013, 2000000014, 2000000016, 2000000017, 2000000019, 2000000020, ...)" AMONG);
}

/* One rank alone may wait for others in every collective, and does not show it. A trace that says nothing of a job, or is all of it, lacks none. */
static void a_single_rank_names_the_others(void **state)
{
    (void)state;
    static const struct { int world_size, rank; const char *said; } cases[] = {
        {0, 0, ""},
        {0, -1, ""},
        {1, 0, ""},
        {2, 0, "1 of the job's 2 ranks is missing (1): who waits for it is not seen, and it may be the slowest\n"},
        {4, 1, "3 of the job's 4 ranks are missing (0, 2, 3)" AMONG},
        {4, -1, "3 of the job's 4 ranks are missing" AMONG},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct given g = {.traces = {as_rank(on_host("a.json", "gloo:all_reduce", 0), cases[i].rank, cases[i].world_size)}};
        assert_together(&g, cases[i].said);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traces_that_never_meet_are_no_job),
        cmocka_unit_test(devices_that_exchange_nothing_are_no_job),
        cmocka_unit_test(jobs_of_other_sizes_are_not_one),
        cmocka_unit_test(guessed_numbers_make_no_job),
        cmocka_unit_test(ranks_of_a_job_go_on_together),
        cmocka_unit_test(one_that_is_no_rank_is_left_out),
        cmocka_unit_test(of_each_rank_one_recording_goes_on),
        cmocka_unit_test(a_cycle_that_lacks_ranks_is_left_out),
        cmocka_unit_test(of_one_process_the_last_recording_goes_on),
        cmocka_unit_test(missing_ranks_are_named),
        cmocka_unit_test(many_missing_ranks_are_cut_short),
        cmocka_unit_test(a_single_rank_names_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
