/* The diagnosis as a whole: severity, order, what pays only later, the roadmap, the corrected view, several ranks, odd traces. */
#include "unit/trace_models.h"

#include "analyze/traced/judge.h"

/* ---- faults ---- */

static void copy_layout(struct model *m)
{
    model_attention(m);
    model_begin(m, "contiguous", "[[32, 256, 512], []]");
    model_op(m, "clone", MODEL_X, "elementwise_kernel<direct_copy>", 900, NULL);
    model_end(m);
}

static void read_loss(struct model *m)
{
    model_begin(m, "item", "[[]]");
    traced_copy(&m->t, "Memcpy DtoH (Device -> Pageable)", 4, 2);
    traced_wait(&m->t, "cudaStreamSynchronize");
    model_end(m);
}

static void load_data(struct model *m)
{
    traced_begin(&m->t, EVENT_ANNOTATION, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    traced_idle(&m->t, 800);
    traced_end(&m->t);
}

static void loop_over_tensors(struct model *m)
{
    for (int i = 0; i < 20; i++) {
        model_op(m, "addcmul_", "[[512, 512], [512, 512]]", "vectorized_elementwise_kernel", 5, NULL);
        model_op(m, "addcdiv_", "[[512, 512], [512, 512]]", "vectorized_elementwise_kernel", 5, NULL);
    }
}

static struct model with_many_faults(enum model_kind kind)
{
    struct model m = model_new(kind);
    m.types = F32;
    m.attention = copy_layout;
    m.after_forward = read_loss;
    m.data = load_data;
    m.optimizer = loop_over_tensors;
    return m;
}

/* ---- findings ---- */

static void severity_follows_the_gain_and_not_the_name(void **state)
{
    (void)state;
    struct model host = model_new(HOST_BOUND), device = model_new(DEVICE_BOUND);
    host.host_us = 600;                     /* beside it, the copies' 900 µs in each layer are nothing */
    host.attention = device.attention = copy_layout;
    struct judged slow = model_judge(&host, model_step_us(&host)), full = model_judge(&device, 0);
    const struct finding *small = assert_found(&slow, "layout-copies"), *large = assert_found(&full, "layout-copies");
    assert_int_equal(small->severity, SEVERITY_LOW);
    assert_true(large->severity >= SEVERITY_HIGH);
    for (int i = 0; i < slow.d.n_findings; i++)
        assert_int_equal(slow.d.findings[i].severity, severity_of(slow.d.findings[i].speedup));
    judged_release(&slow);
    judged_release(&full);
}

static void findings_are_ranked_by_place_and_gain(void **state)
{
    (void)state;
    for (int kind = HOST_BOUND; kind <= DEVICE_BOUND; kind++) {
        struct model m = with_many_faults((enum model_kind)kind);
        struct judged j = model_judge(&m, 0);
        assert_true(j.d.n_findings >= 5);
        for (int i = 0; i < j.d.n_findings; i++) {
            const struct finding *f = &j.d.findings[i];
            assert_found(&j, f->rule);
            assert_non_null(rule_text_find(f->rule));
            for (int k = 0; k < i; k++) {
                const struct finding *before = &j.d.findings[k];
                assert_string_not_equal(before->rule, f->rule);
                /* a symptom stands behind all causes that pay; gains that differ by less than 2 % are equal */
                assert_false(before->symptom && !f->symptom && f->speedup >= 1.02);
                if (before->symptom == f->symptom && f->speedup >= 1.02 * 1.02)
                    assert_true(before->speedup * 1.02 >= f->speedup || finding_blocks_graphs(before));
            }
            if (f->after)
                assert_found(&j, f->after);
        }
        judged_release(&j);
    }
}

static void a_fault_of_the_device_pays_after_the_hosts_in_a_step_bound_by_the_host(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.types = F32;
    m.kernel_us = 20;
    m.host_us = 60;
    struct judged j = model_judge(&m, model_step_us(&m));
    const struct finding *f = assert_found(&j, "no-mixed-precision");
    assert_int_equal(f->severity, SEVERITY_LOW);
    assert_non_null(f->after);
    assert_string_equal(f->after, "launch-bound");
    assert_null(assert_found(&j, "launch-bound")->after);
    judged_release(&j);
    struct model full = model_new(DEVICE_BOUND);
    full.types = F32;
    struct judged k = model_judge(&full, 0);
    assert_null(assert_found(&k, "no-mixed-precision")->after);
    judged_release(&k);
}

static void a_fault_of_the_host_pays_after_the_devices_in_a_step_that_the_device_fills(void **state)
{
    (void)state;
    struct model m = model_new(DEVICE_BOUND);
    m.types = F32;
    m.optimizer = loop_over_tensors;
    m.data = load_data;
    struct judged j = model_judge(&m, 0);
    const struct finding *f = assert_found(&j, "data-stall");
    assert_int_equal(f->severity, SEVERITY_LOW);
    assert_string_equal(f->after, "no-mixed-precision");
    judged_release(&j);
}

static void wait_for_a_batch(struct model *m)
{
    traced_begin(&m->t, EVENT_ANNOTATION, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    traced_idle(&m->t, 20000);
    traced_end(&m->t);
}

/* The headline, the largest part and the finding say one thing in one figure: of the step without the profiler. */
static void a_loader_has_one_share_of_the_step(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.data = wait_for_a_batch;
    struct judged j = model_judge(&m, 0);
    char share[32], largest[64];
    const double percent = 100 * 20e3 / j.d.corrected.step_us;
    snprintf(share, sizeof share, ", %.0f %%, are in the loader", percent);
    snprintf(largest, sizeof largest, "the data loader: 20.0 ms, %.0f %% of the step", percent);
    assert_string_equal(j.d.bound_by, "data");
    assert_non_null(strstr(j.d.headline, share));
    assert_string_equal(j.d.largest, largest);
    assert_near(100 * assert_found(&j, "data-stall")->share, percent, 1, "of the finding");
    judged_release(&j);
}

/* ---- the roadmap ---- */

static void assert_phases(const struct diagnosis *d)
{
    bool seen[64] = {0};
    double before = 1;
    for (int p = 0; p < d->n_phases; p++) {
        const struct plan_phase *phase = &d->phases[p];
        assert_true(phase->n > 0);
        if (!(phase->speedup >= 0.995 * before && phase->low <= phase->speedup && phase->speedup <= phase->high))
            fail_msg("phase '%s' gives %.3f (%.3f to %.3f) behind %.3f", phase->title, phase->speedup, phase->low, phase->high, before);
        before = phase->speedup;
        const struct finding *alone = &d->findings[phase->findings[0]];
        if (p == 0 && phase->n == 1 && !(phase->speedup == alone->speedup && phase->low == alone->speedup_low && phase->high == alone->speedup_high))
            fail_msg("phase '%s' of one finding gives %.3f (%.3f to %.3f), and %s %.3f (%.3f to %.3f)", phase->title, phase->speedup, phase->low, phase->high, alone->rule,
                     alone->speedup, alone->speedup_low, alone->speedup_high);
        for (int i = 0; i < phase->n; i++) {
            const int at = phase->findings[i];
            assert_in_range(at, 0, d->n_findings - 1);
            assert_false(seen[at]);
            seen[at] = true;
            const bool later = !strcmp(phase->title, "Once the step has another bound");
            assert_int_equal(later, d->findings[at].after != NULL);
            if (!strcmp(phase->title, "Quick wins"))
                assert_int_equal(d->findings[at].effort, EFFORT_LOW);
        }
    }
}

static void phases_are_cumulative(void **state)
{
    (void)state;
    for (int kind = HOST_BOUND; kind <= DEVICE_BOUND; kind++)
        for (int given = 0; given < 2; given++) {
            struct model m = with_many_faults((enum model_kind)kind);
            struct judged j = model_judge(&m, given ? model_step_us(&m) : 0);
            assert_true(j.d.n_phases >= 1);
            assert_phases(&j.d);
            /* together they give no less than the best alone */
            double best = 1;
            for (int i = 0; i < j.d.n_findings; i++)
                best = fmax(best, j.d.findings[i].speedup);
            assert_true(j.d.phases[j.d.n_phases - 1].speedup >= 0.995 * best);
            assert_non_null(j.d.first_action);
            assert_non_null(j.d.realistic_gain);
            judged_release(&j);
        }
}

static void one_finding_gives_what_it_says(void **state)
{
    (void)state;
    struct model m = model_new(DEVICE_BOUND);
    m.end = model_evaluate;
    struct judged j = model_judge(&m, 0);
    assert_int_equal(j.d.phases[0].n, 1);
    assert_phases(&j.d);
    judged_release(&j);
}

/* ---- without the profiler ---- */

static void the_corrected_view_is_consistent(void **state)
{
    (void)state;
    for (int kind = HOST_BOUND; kind <= DEVICE_BOUND; kind++) {
        struct model m = with_many_faults((enum model_kind)kind);
        struct judged j = model_judge(&m, 0);
        const struct corrected_view *c = &j.d.corrected;
        assert_false(c->given);
        assert_true(c->low_us <= c->step_us && c->step_us <= c->high_us);
        assert_true(c->step_us <= 1.001 * c->recorded_us);
        assert_true(c->device_us <= 1.001 * c->step_us);
        assert_true(c->host_us <= 1.001 * c->step_us);
        assert_near(c->idle_us, c->step_us - c->device_us, 1, "idle");
        assert_near(c->recorded_idle_us, c->recorded_us - c->device_us, 1, "recorded idle");
        assert_true(c->cost_per_event_us > 0 && c->cost_per_event_us < 15);
        assert_true(c->events_per_step > 300 && c->events_per_step < 1000);
        judged_release(&j);
    }
}

/* ---- odd traces ---- */

static void without_marks_the_trace_is_one_step_and_says_so(void **state)
{
    (void)state;
    struct model m = with_many_faults(HOST_BOUND);
    model_train(&m);
    struct trace *t = m.t.trace;
    for (int64_t i = 0; i < t->n; i++)
        if (t->events[i].kind == EVENT_STEP)
            t->events[i].kind = EVENT_OVERHEAD;
    struct judged j = model_judge(&m, 0);
    assert_true(j.d.no_step_marks);
    assert_true(warns(&j.d, "ProfilerStep"));
    assert_found(&j, "data-stall");
    assert_found(&j, "host-sync");
    judged_release(&j);
}

static void keep_only(struct trace *t, bool device)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t->n; i++)
        if (traced_on_device((enum event_kind)t->events[i].kind) == device)
            t->events[n++] = t->events[i];
    t->n = n;
}

static void a_trace_of_the_host_alone_is_bound_by_the_cpu(void **state)
{
    (void)state;
    struct model m = with_many_faults(HOST_BOUND);
    model_train(&m);
    keep_only(m.t.trace, false);
    for (int64_t i = 0; i < m.t.trace->n; i++)              /* nothing was launched */
        if (m.t.trace->events[i].kind == EVENT_RUNTIME)
            m.t.trace->events[i].kind = EVENT_OVERHEAD;
    struct judged j = model_judge(&m, 0);
    assert_string_equal(j.d.bound_by, "cpu");
    assert_not_found(&j, "host-bound");
    assert_not_found(&j, "launch-bound");
    assert_not_found(&j, "small-batch");
    assert_found(&j, "data-stall");
    judged_release(&j);
}

static void a_trace_of_the_device_alone_is_not_bound_by_a_host_that_is_not_seen(void **state)
{
    (void)state;
    struct model m = with_many_faults(DEVICE_BOUND);
    model_train(&m);
    keep_only(m.t.trace, true);
    struct judged j = model_judge(&m, 0);
    assert_not_found(&j, "host-bound");
    assert_not_found(&j, "launch-bound");
    assert_string_equal(j.d.bound_by, "device");
    assert_true(j.d.corrected.device_us > 0.9 * j.d.corrected.step_us);
    judged_release(&j);
}

/* Old versions and some devices record no correlation. */
static void without_correlations_the_device_is_not_idle(void **state)
{
    (void)state;
    struct model m = model_new(DEVICE_BOUND);
    model_train(&m);
    struct trace *t = m.t.trace;
    for (int64_t i = 0; i < t->n; i++)
        if (t->events[i].kind == EVENT_RUNTIME)
            t->events[i].link = -1;
    struct judged j = model_judge(&m, 0);
    assert_not_found(&j, "host-bound");
    assert_not_found(&j, "launch-bound");
    assert_true(warns(&j.d, "correlation ids are missing"));
    judged_release(&j);
}

/* Launches without work: their ids are missing, or the work is. */
static void what_is_missing_is_told_apart(void **state)
{
    (void)state;
    enum { NO_IDS, FEW_IDS, NO_WORK, CASES };
    static const char *const words[CASES] = {"steps have what the device did in their time", "such work is in no step", "recording of the device failed in part"};
    for (int k = 0; k < CASES; k++) {
        struct model m = model_new(DEVICE_BOUND);
        model_train(&m);
        struct trace *t = m.t.trace;
        for (int64_t i = 0; i < t->n; i++) {
            struct event *e = &t->events[i];
            const bool lost = e->kind == EVENT_KERNEL && (k == NO_IDS || i % 8);
            if (lost && k == NO_WORK)
                e->kind = EVENT_COUNTER;
            else if (lost || (k == NO_IDS && e->kind == EVENT_MEMCPY))
                e->link = -1;
        }
        struct judged j = model_judge(&m, 0);
        for (int other = 0; other < CASES; other++)
            if (warns(&j.d, words[other]) != (other == k))
                fail_msg("case %d: '%s' is%s said", k, words[other], other == k ? " not" : "");
        judged_release(&j);
    }
}

static void hostile_names_change_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"", "%s%n%99999d", "\"</script><script>", "\\", "::", "aten::", "::::item", "\x01\x1b[2J", "\xff\xfe\x80",
                                        "enumerate(DataLoader)", "Optimizer", "autograd::engine::evaluate_function", "ProfilerStep#x", "[[[[[["};
    enum { N = sizeof names / sizeof *names };
    struct model m = with_many_faults(HOST_BOUND);
    char *longest = malloc(200001);
    memset(longest, 'x', 200000);
    longest[200000] = 0;
    model_train(&m);
    struct trace *t = m.t.trace;
    uint64_t random = 5;
    for (int64_t i = 0; i < t->n; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        if (t->events[i].kind == EVENT_STEP || (random >> 60) > 7)
            continue;
        const unsigned pick = (unsigned)(random >> 33) % (N + 1);
        t->events[i].name = trace_name(t, pick < N ? names[pick] : longest);
        if (t->events[i].kind == EVENT_HOST_OP)
            traced_inputs(&m.t, i, pick < N ? names[pick] : longest, pick < N ? names[N - 1 - pick] : longest);
    }
    struct judged j = model_judge(&m, 0);
    for (int i = 0; i < j.d.n_findings; i++) {
        assert_found(&j, j.d.findings[i].rule);
        assert_true(strlen(j.d.findings[i].evidence) < 300000);
    }
    assert_non_null(j.d.headline);
    judged_release(&j);
    free(longest);
}

/* ---- ranks ---- */

static double comm_us;                      /* of the collective */

static void reduce(struct model *m)
{
    traced_begin(&m->t, EVENT_HOST_OP, "c10d::allreduce_");
    traced_launch(&m->t, "rcclDevKernel_AllReduce", comm_us);
    traced_end(&m->t);
    model_norm_of_gradients(m);
}

static struct trace *rank_trace(int rank, double collective_us)
{
    struct model m = with_many_faults(DEVICE_BOUND);
    comm_us = collective_us;
    m.after_backward = reduce;
    model_train(&m);
    m.t.trace->origin.rank = rank;
    m.t.trace->origin.path = rank ? "one" : "zero";
    return m.t.trace;
}

static void judge_two(struct judged *j, struct trace **traces)
{
    struct error err;
    *j = (struct judged){0};
    assert_ok(diagnose(&j->d, traces, 2, NULL, &err), err);
}

/* The one that spends the least time in collectives is who the others wait for. */
static void a_straggler_is_named(void **state)
{
    (void)state;
    struct trace *traces[] = {rank_trace(1, 200), rank_trace(0, 6200)};
    struct judged j;
    judge_two(&j, traces);
    assert_int_equal(j.d.n_ranks, 2);
    assert_int_equal(j.d.ranks[0].rank, 0);
    assert_int_equal(j.d.ranks[1].rank, 1);
    assert_near(j.d.ranks[0].wait_us, 6000, 1, "wait of rank 0");
    assert_near(j.d.ranks[1].wait_us, 0, 1e-6, "wait of rank 1");
    const struct finding *f = assert_found(&j, "straggler");
    assert_string_equal(f->where, "rank 1");
    assert_true(f->speedup > 1.1 && f->speedup_high < 2);
    for (int i = 0; &j.d.findings[i] < f; i++)
        assert_true(j.d.findings[i].speedup * 1.02 >= f->speedup);
    for (int i = 0; i < j.d.n_findings; i++)
        assert_true(&j.d.findings[i] <= f || j.d.findings[i].symptom || j.d.findings[i].speedup <= f->speedup);
    assert_phases(&j.d);                    /* which still name the findings that they named before it came */
    diagnosis_release(&j.d);
    trace_free(traces[0]);
    trace_free(traces[1]);
}

/* A step of 8 ms: 4 of work, on the last rank 6, and an exchange of 2 that nothing hides, before which the others wait for it. */
static struct trace *waiting_rank(int rank, bool last)
{
    struct traced t = traced_new();
    for (int i = 0; i < 4; i++) {
        traced_step_begin(&t, i);
        for (int k = 0; k < 20; k++)
            traced_run(&t, "aten::mm", 20, "gemm", last ? 300 : 200);
        traced_run(&t, "c10d::allreduce_", 20, "ncclDevKernel_AllReduce", last ? 2000 : 4000);
        traced_wait(&t, "cudaStreamSynchronize");
        traced_step_end(&t);
    }
    t.trace->origin.rank = rank;
    t.trace->origin.path = last ? "last" : "first";
    return t.trace;
}

/* Neither is part of the other: a step without the delay and with a hidden exchange takes 4 of 8 ms. */
static void the_stragglers_delay_and_the_exchange_add_up(void **state)
{
    (void)state;
    for (int last = 0; last < 2; last++) {
        struct trace *traces[] = {waiting_rank(0, !last), waiting_rank(1, last)};
        struct judged j;
        judge_two(&j, traces);
        const double delay = assert_found(&j, "straggler")->speedup, exchange = assert_found(&j, "exposed-comm")->speedup;
        const double together = 1 / (1 / delay + 1 / exchange - 1), roadmap = j.d.phases[j.d.n_phases - 1].speedup;
        assert_true(together > 1.7);
        assert_near(roadmap, together, 0.1 * together, "everything together");
        if (last)                           /* the headline is the first rank's, which waits */
            assert_non_null(strstr(j.d.headline, "on average 1.00 ms of a step for other ranks and 2.00 ms for the exchange itself."));
        diagnosis_release(&j.d);
        trace_free(traces[0]);
        trace_free(traces[1]);
    }
}

static void an_exchange_that_nobody_is_late_for_is_no_wait_for_ranks(void **state)
{
    (void)state;
    struct trace *traces[] = {waiting_rank(0, false), waiting_rank(1, false)};
    struct judged j;
    judge_two(&j, traces);
    assert_string_equal(j.d.bound_by, "communication");
    assert_non_null(strstr(j.d.headline, "hardly any of it for another rank: it is the exchange itself."));
    diagnosis_release(&j.d);
    trace_free(traces[0]);
    trace_free(traces[1]);
}

static void ranks_that_keep_pace_have_no_straggler(void **state)
{
    (void)state;
    struct trace *traces[] = {rank_trace(0, 400), rank_trace(1, 420)};
    struct judged j;
    judge_two(&j, traces);
    assert_not_found(&j, "straggler");
    diagnosis_release(&j.d);
    trace_free(traces[0]);
    trace_free(traces[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(severity_follows_the_gain_and_not_the_name),
        cmocka_unit_test(findings_are_ranked_by_place_and_gain),
        cmocka_unit_test(a_fault_of_the_device_pays_after_the_hosts_in_a_step_bound_by_the_host),
        cmocka_unit_test(a_fault_of_the_host_pays_after_the_devices_in_a_step_that_the_device_fills),
        cmocka_unit_test(phases_are_cumulative), cmocka_unit_test(one_finding_gives_what_it_says),
        cmocka_unit_test(the_corrected_view_is_consistent),
        cmocka_unit_test(without_marks_the_trace_is_one_step_and_says_so),
        cmocka_unit_test(a_loader_has_one_share_of_the_step),
        cmocka_unit_test(a_trace_of_the_host_alone_is_bound_by_the_cpu),
        cmocka_unit_test(a_trace_of_the_device_alone_is_not_bound_by_a_host_that_is_not_seen),
        cmocka_unit_test(without_correlations_the_device_is_not_idle),
        cmocka_unit_test(what_is_missing_is_told_apart),
        cmocka_unit_test(hostile_names_change_nothing),
        cmocka_unit_test(a_straggler_is_named),
        cmocka_unit_test(the_stragglers_delay_and_the_exchange_add_up),
        cmocka_unit_test(an_exchange_that_nobody_is_late_for_is_no_wait_for_ranks),
        cmocka_unit_test(ranks_that_keep_pace_have_no_straggler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
