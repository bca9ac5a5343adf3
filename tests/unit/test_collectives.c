/* Communication: what counts as a collective, the table over ranks, who the others wait for, and faults that one rank has alone. */
#include "unit/trace_models.h"

enum { RANKS = 3, STEPS = 4 };

/* ---- ranks over gloo: 20 ms of work, then all wait for the last; 2 ms for the exchange itself ---- */

struct plan {
    double extra_us[RANKS][STEPS];          /* of a rank's own work, in a step */
    double clock_us[RANKS], loader_us[RANKS];
};

static struct trace *record(const struct plan *p, int rank, const double done_us[STEPS])
{
    struct traced t = traced_new();
    t.now_us = 1000 + p->clock_us[rank];
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&t, i);
        if (p->loader_us[rank] > 0) {
            traced_begin(&t, EVENT_ANNOTATION, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
            traced_idle(&t, p->loader_us[rank]);
            traced_end(&t);
        }
        traced_op(&t, "aten::mm", 20000 + p->extra_us[rank][i]);
        traced_on_thread(&t, 99);
        const double end_us = done_us[i] + p->clock_us[rank];
        traced_inputs(&t, traced_at(&t, EVENT_ANNOTATION, "gloo:all_reduce", t.now_us, end_us - t.now_us), "[[1000000]]", "[\"float\"]");
        traced_on_thread(&t, 1);
        t.now_us = end_us;
        traced_op(&t, "aten::add", 500);
        traced_step_end(&t);
    }
    t.trace->origin.rank = rank;
    t.trace->origin.world_size = RANKS;
    t.trace->origin.path = "rank";
    return t.trace;
}

/* All ranks, as collectives bind them together. */
static void record_job(const struct plan *p, struct trace **out)
{
    double done[STEPS], now = 1000;
    for (int i = 0; i < STEPS; i++) {
        double last = 0;
        for (int r = 0; r < RANKS; r++)
            last = fmax(last, now + p->loader_us[r] + 20000 + p->extra_us[r][i]);
        done[i] = last + 2000;
        now = done[i] + 500;
    }
    for (int r = 0; r < RANKS; r++)
        out[r] = record(p, r, done);
}

/* The same of ranks that do not say which they are. */
static struct judged judge_unknown(const struct plan *p, struct trace **traces, const char *const paths[RANKS])
{
    struct judged j = {0};
    struct error err;
    record_job(p, traces);
    for (int r = 0; r < RANKS; r++) {
        traces[r]->origin.rank = -1;
        traces[r]->origin.world_size = 0;
        traces[r]->origin.path = paths[r];
    }
    assert_ok(diagnose(&j.d, traces, RANKS, NULL, &err), err);
    return j;
}

static struct judged judge_job(const struct plan *p, struct trace **traces)
{
    struct judged j = {0};
    struct error err;
    record_job(p, traces);
    assert_ok(diagnose(&j.d, traces, RANKS, NULL, &err), err);
    return j;
}

static void release(struct judged *j, struct trace **traces)
{
    diagnosis_release(&j->d);
    for (int r = 0; r < RANKS; r++)
        trace_free(traces[r]);
}

/* ---- kinds ---- */

static void kernels_of_other_libraries_communicate(void **state)
{
    (void)state;
    static const char *const names[] = {"void deep_ep::intranode::dispatch<8, 768>", "deep_ep::internode::combine", "ncclDevKernel_AllReduce", "gloo_kernel"};
    for (int i = 0; i < 4; i++) {
        struct traced t = traced_new();
        traced_step_begin(&t, 0);
        traced_run(&t, "some::op", 20, names[i], 500);
        traced_step_end(&t);
        struct judged j = trace_judge(t.trace, 0);
        assert_near(j.d.mean.comm_us, 500, 1e-6, names[i]);
        assert_int_equal(j.d.n_collectives, 1);
        judged_release(&j);
    }
}

/* A step's wait for gloo is communication; where ops run beside it, it is theirs. */
static void gloo_on_another_thread_is_communication(void **state)
{
    (void)state;
    struct traced t = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&t, i);
        const double at = t.now_us;
        traced_op(&t, "aten::mm", 6000);
        traced_on_thread(&t, 99);
        const int64_t e = traced_at(&t, EVENT_ANNOTATION, "gloo:all_reduce", at + 2000, 10000);
        traced_inputs(&t, e, "[[1000, 1000]]", "[\"c10::BFloat16\"]");
        traced_on_thread(&t, 1);
        traced_idle(&t, 6000);
        traced_op(&t, "aten::add", 1000);
        traced_step_end(&t);
    }
    struct judged j = trace_judge(t.trace, 0);
    assert_near(j.d.mean.comm_us, 6000, 1e-6, "communication");
    assert_near(j.d.mean.cpu_us, 7000, 1e-6, "ops");
    assert_int_equal(j.d.n_collectives, 1);
    const struct trace_collective *c = &j.d.collectives[0];
    assert_string_equal(c->name, "all_reduce");
    assert_near(c->bytes, 2e6, 1e-6, "bytes");
    assert_near(c->exposed_us, 6000, 1e-6, "exposed");
    assert_near(c->gb_per_s, 0.2, 1e-9, "GB/s");
    assert_string_equal(j.d.bound_by, "communication");
    assert_found(&j, "exposed-comm");
    judged_release(&j);
}

/* A rank of which nothing but its sums was recorded. */
static void a_step_of_sums_alone_is_bound_by_them(void **state)
{
    (void)state;
    struct traced t = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&t, i);
        traced_on_thread(&t, 99);
        traced_inputs(&t, traced_at(&t, EVENT_ANNOTATION, "gloo:all_reduce", t.now_us + 1000, 8000), "[[1000]]", "[\"float\"]");
        traced_on_thread(&t, 1);
        traced_idle(&t, 10000);
        traced_step_end(&t);
    }
    struct judged j = trace_judge(t.trace, 0);
    assert_near(j.d.mean.comm_us, 8000, 1e-6, "communication");
    assert_string_equal(j.d.bound_by, "communication");
    assert_non_null(strstr(j.d.headline, "8.00 ms of its 10.0 ms"));
    assert_non_null(strstr(j.d.largest, "8.00 ms"));
    judged_release(&j);
}

/* ---- ranks ---- */

static void the_table_matches_ranks_whatever_their_clocks(void **state)
{
    (void)state;
    const struct plan p = {.extra_us = {{0}, {3000, 3000, 3000, 3000}, {1000, 1000, 1000, 1000}}, .clock_us = {0, 7e6, -300}};
    struct trace *traces[RANKS];
    struct judged j = judge_job(&p, traces);
    assert_int_equal(j.d.n_collectives, 1);
    const struct trace_collective *c = &j.d.collectives[0];
    assert_near(c->bytes, 4e6, 1e-6, "bytes");
    assert_int_equal(c->ranks, RANKS);
    assert_near(c->per_step, 1, 1e-9, "per step");
    assert_near(c->best_us, 2000, 1e-3, "the last one's time");
    assert_near(c->gb_per_s, 2, 1e-6, "GB/s");
    assert_near(c->spread_us, 3000, 1e-3, "arrivals");
    assert_int_equal(c->last_rank, 1);
    assert_near(c->last_share, 1, 1e-9, "always");
    assert_near(c->exposed_us, (5000 + 2000 + 4000) / 3.0, 1e-3, "exposed");
    release(&j, traces);
}

static void a_rank_that_is_late_in_every_step_is_named(void **state)
{
    (void)state;
    const struct plan p = {.extra_us = {{0}, {0}, {9000, 9000, 9000, 9000}}, .clock_us = {0, 5000, -800}};
    struct trace *traces[RANKS];
    struct judged j = judge_job(&p, traces);
    assert_gain(&j, "straggler", 31500 / 22500.0, 0.02);
    assert_string_equal(assert_found(&j, "straggler")->where, "rank 2");
    release(&j, traces);
}

static void ranks_that_are_late_in_turn_are_not(void **state)
{
    (void)state;
    const struct plan p = {.extra_us = {{9000, 0, 0, 9000}, {0, 9000, 0, 0}, {0, 0, 9000, 0}}};
    struct trace *traces[RANKS];
    struct judged j = judge_job(&p, traces);
    assert_not_found(&j, "straggler");
    for (int i = 0; i < j.d.n_findings; i++)
        assert_true(strcmp(j.d.findings[i].rule, "exposed-comm") || j.d.findings[i].speedup < 1.06);   /* waits for others are not its own */
    release(&j, traces);
}

/* One rank's loader holds all of them up: the fault is found there, and costs no more than the others wait. */
static void a_fault_of_another_rank_is_found(void **state)
{
    (void)state;
    const struct plan p = {.loader_us = {0, 6000, 0}};
    struct trace *traces[RANKS];
    struct judged j = judge_job(&p, traces);
    const double gain = 28500 / 22500.0;
    const struct finding *f = assert_gain(&j, "data-stall", gain, 0.15), *s = assert_gain(&j, "straggler", gain, 0.02);
    assert_non_null(strstr(f->where, "rank 1: "));
    assert_non_null(strstr(s->cause, "loader"));
    assert_string_equal(s->where, "rank 1");
    for (int i = 0; i < j.d.n_phases; i++)
        for (int k = 0; k < j.d.phases[i].n; k++)
            assert_true(j.d.phases[i].speedup >= j.d.findings[j.d.phases[i].findings[k]].speedup - 1e-9);
    release(&j, traces);
}

/* Of a rank that waits for another anyway a fault costs the job nothing. */
static void a_fault_of_a_rank_that_waits_costs_nothing(void **state)
{
    (void)state;
    const struct plan p = {.loader_us = {0, 6000, 0}, .extra_us = {{9000, 9000, 9000, 9000}}};
    struct trace *traces[RANKS];
    struct judged j = judge_job(&p, traces);
    const struct finding *f = judged_find(&j, "data-stall");
    assert_true(!f || f->speedup < 1.01);
    assert_string_equal(assert_found(&j, "straggler")->where, "rank 0");
    release(&j, traces);
}

/* Ranks without numbers are told by their files, and the mark is at the one that is late. */
static void ranks_without_numbers_are_told_by_their_files(void **state)
{
    (void)state;
    static const char *const paths[] = {"runs/w.json", "runs/x.json", "runs/y.json"};
    const struct plan p = {.loader_us = {0, 6000, 0}};
    struct trace *traces[RANKS];
    struct judged j = judge_unknown(&p, traces, paths);
    const struct finding *s = assert_found(&j, "straggler"), *f = assert_found(&j, "data-stall");
    assert_string_equal(s->where, "x.json");
    assert_non_null(strstr(s->cause, "x.json arrives last"));
    assert_non_null(strstr(s->evidence, "than x.json does"));
    assert_non_null(strstr(f->where, "x.json: "));
    assert_non_null(strstr(f->evidence, "here x.json"));
    assert_int_equal(j.d.n_ranks, RANKS);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(j.d.ranks[r].rank, -1);
        assert_string_equal(j.d.ranks[r].path, paths[r]);
        assert_string_equal(j.d.ranks[r].name, paths[r] + 5);
        assert_int_equal(j.d.ranks[r].straggler, r == 1);
    }
    assert_int_equal(j.d.collectives[0].last_rank, -1);
    assert_string_equal(j.d.collectives[0].last_name, "x.json");
    release(&j, traces);
}

static void files_of_one_name_are_told_by_their_folders(void **state)
{
    (void)state;
    static const char *const paths[] = {"a/trace.json", "b/trace.json", "c/last.json"};
    const struct plan p = {.extra_us = {{0}, {9000, 9000, 9000, 9000}, {0}}};
    struct trace *traces[RANKS];
    struct judged j = judge_unknown(&p, traces, paths);
    assert_string_equal(assert_found(&j, "straggler")->where, "b/trace.json");
    assert_string_equal(j.d.ranks[0].name, "a/trace.json");
    assert_string_equal(j.d.ranks[2].name, "last.json");
    release(&j, traces);
}

/* Two that say the same number are told apart; those without one stand behind the others. */
static void a_number_that_two_have_tells_none(void **state)
{
    (void)state;
    const struct plan p = {.extra_us = {{0}, {9000, 9000, 9000, 9000}, {0}}};
    struct trace *traces[RANKS];
    struct judged j = {0};
    struct error err;
    record_job(&p, traces);
    traces[0]->origin.rank = -1;
    traces[2]->origin.rank = 1;
    traces[0]->origin.path = "x.json";
    traces[1]->origin.path = "y.json";
    traces[2]->origin.path = "z.json";
    assert_ok(diagnose(&j.d, traces, RANKS, NULL, &err), err);
    assert_string_equal(j.d.ranks[0].name, "rank 1 (y.json)");
    assert_string_equal(j.d.ranks[1].name, "rank 1 (z.json)");
    assert_string_equal(j.d.ranks[2].name, "x.json");
    assert_true(j.d.ranks[0].straggler && !j.d.ranks[1].straggler && !j.d.ranks[2].straggler);
    release(&j, traces);
}

/* Who recorded them knows, where they do not say it themselves. */
static void ranks_can_be_given(void **state)
{
    (void)state;
    static const int ranks[] = {4, 5, 6};
    const struct plan p = {0};
    struct trace *traces[RANKS];
    struct judged j = {0};
    struct error err;
    record_job(&p, traces);
    traces[0]->origin.rank = traces[2]->origin.rank = -1;
    assert_ok(diagnose(&j.d, traces, RANKS, &(struct diagnose_options){.ranks = ranks}, &err), err);
    assert_true(j.d.ranks[0].rank == 1 && j.d.ranks[1].rank == 4 && j.d.ranks[2].rank == 6);
    release(&j, traces);
}

/* ---- many small ones ---- */

static void many_small_collectives_want_buckets(void **state)
{
    (void)state;
    struct traced t = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&t, i);
        traced_op(&t, "aten::mm", 20000);
        for (int k = 0; k < 40; k++) {
            const double at = t.now_us;
            traced_on_thread(&t, 99);
            traced_inputs(&t, traced_at(&t, EVENT_ANNOTATION, "gloo:all_reduce", at, 200), "[[1000]]", "[\"float\"]");
            traced_on_thread(&t, 1);
            traced_idle(&t, 200);
        }
        traced_op(&t, "aten::add", 500);
        traced_step_end(&t);
    }
    struct judged j = trace_judge(t.trace, 28500);
    const struct finding *f = assert_found(&j, "small-collectives");
    assert_true(f->speedup > 1.1 && f->speedup < 28500.0 / 20500);
    judged_release(&j);
}

static void few_large_ones_do_not(void **state)
{
    (void)state;
    const struct plan p = {0};
    struct trace *traces[RANKS];
    struct judged j = judge_job(&p, traces);
    assert_not_found(&j, "small-collectives");
    release(&j, traces);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_of_other_libraries_communicate),
        cmocka_unit_test(gloo_on_another_thread_is_communication),
        cmocka_unit_test(a_step_of_sums_alone_is_bound_by_them),
        cmocka_unit_test(the_table_matches_ranks_whatever_their_clocks),
        cmocka_unit_test(a_rank_that_is_late_in_every_step_is_named),
        cmocka_unit_test(ranks_that_are_late_in_turn_are_not),
        cmocka_unit_test(a_fault_of_another_rank_is_found),
        cmocka_unit_test(a_fault_of_a_rank_that_waits_costs_nothing),
        cmocka_unit_test(ranks_without_numbers_are_told_by_their_files),
        cmocka_unit_test(files_of_one_name_are_told_by_their_folders),
        cmocka_unit_test(a_number_that_two_have_tells_none),
        cmocka_unit_test(ranks_can_be_given),
        cmocka_unit_test(many_small_collectives_want_buckets),
        cmocka_unit_test(few_large_ones_do_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
