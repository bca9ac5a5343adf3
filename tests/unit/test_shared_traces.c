/* Traces that other projects published, against the results of their own tools. The folder is $HONE_TRACES or
 * ../shared/traces beside the source; without it these tests say so and are skipped. */
#include "unit/trace_models.h"

#include <dirent.h>
#include <unistd.h>

#include "core/fs.h"

/* ---- files ---- */

static const char *folder(void)
{
    static char path[4096];
    const char *given = getenv("HONE_TRACES");
    snprintf(path, sizeof path, "%s", given ? given : HONE_CONFIGS "/../../shared/traces");
    return path;
}

static bool absent(void)
{
    if (access(folder(), R_OK) == 0)
        return false;
    print_message("skipped: there are no traces in '%s'; set HONE_TRACES to a folder that has them\n", folder());
    return true;
}

#define SKIP_IF_ABSENT()                                                                                               \
    if (absent())                                                                                                      \
        skip()

static const char *path_of(const char *name)
{
    static char path[4200];
    snprintf(path, sizeof path, "%s/public/%s", folder(), name);
    return path;
}

/* The second folder may be absent too. */
static bool second_absent(void)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/public2", folder());
    if (access(path, R_OK) == 0)
        return false;
    print_message("skipped: there is no folder '%s'\n", path);
    return true;
}

struct shared {
    struct trace *trace;
    struct view view;
    struct diagnosis d;
};

static struct shared shared_read(const char *name)
{
    struct shared s = {0};
    struct error err;
    assert_ok(import_read(&s.trace, path_of(name), NULL, NULL, &err), err);
    s.view = traced_view(s.trace);
    s.d = traced_numbers(&s.view);
    return s;
}

static void shared_release(struct shared *s)
{
    arena_release(&s->d.arena);
    view_release(&s->view);
    trace_free(s->trace);
}

/* ---- tables ---- */

enum { MOST_FIELDS = 16 };

struct table {
    char *text, *at;
    char *header[MOST_FIELDS], *row[MOST_FIELDS];
    int n;
};

/* Splits a line in place; fields in quotes may hold commas. Returns how many there are; 0 at the end. */
static int split_line(char **at, char **fields)
{
    int n = 0;
    char *in = *at;
    if (!*in)
        return 0;
    for (bool more = true; more;) {
        assert_true(n < MOST_FIELDS);
        char *out = fields[n++] = in;
        const bool quoted = *in == '"';
        for (in += quoted; *in && (quoted ? *in != '"' || in[1] == '"' : *in != ',' && *in != '\n'); in++) {
            in += quoted && *in == '"';
            *out++ = *in;
        }
        in += quoted;
        more = *in == ',';
        in += *in != 0;
        *out = 0;
    }
    *at = in;
    return n;
}

static struct table table_read(const char *name)
{
    struct table t = {0};
    size_t size;
    struct error err;
    assert_ok(fs_read(path_of(name), &t.text, &size, 0, &err), err);
    t.at = t.text;
    t.n = split_line(&t.at, t.header);
    return t;
}

static bool table_next(struct table *t)
{
    const int n = split_line(&t->at, t->row);
    assert_true(n == 0 || n == t->n);
    return n > 0;
}

static const char *text_of(const struct table *t, const char *column)
{
    for (int i = 0; i < t->n; i++)
        if (!strcmp(t->header[i], column))
            return t->row[i];
    return "";
}

static double number_of(const struct table *t, const char *column) { return atof(text_of(t, column)); }

/* ---- the step split of the resnet50 files ---- */

static void check_step(const struct table *t, const struct trace_step *s)
{
    const struct { const char *column; double us; } parts[] = {
        {"Kernel", s->kernel_us}, {"Memcpy", s->memcpy_us}, {"Memset", s->memset_us}, {"Runtime", s->runtime_us},
        {"DataLoader", s->dataloader_us}, {"CPU_Exec", s->cpu_us}, {"Other", s->other_us},
    };
    double sum = s->comm_us;
    assert_int_equal(s->number, (int)number_of(t, "step"));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        assert_near(parts[i].us, number_of(t, parts[i].column), 1e-6, parts[i].column);
        sum += parts[i].us;
    }
    assert_near(s->comm_us, 0, 0, "communication");
    assert_near(sum, s->total_us, 1e-6, "the sum of the parts");
}

static void check_breakdown(const char *file, double step_us, double utilisation, double loader, double occupancy)
{
    char name[256];
    snprintf(name, sizeof name, "kineto_tb_resnet50_%s.json.gz", file);
    struct shared s = shared_read(name);
    struct table t = table_read("EXPECTED_tb_step_breakdown.csv");
    int rows = 0;
    while (table_next(&t))
        if (!strcmp(text_of(&t, "file"), file)) {
            assert_true(rows < s.d.n_steps);
            check_step(&t, &s.d.steps[rows++]);
        }
    assert_int_equal(rows, 6);
    assert_int_equal(s.d.n_steps, rows);
    assert_near(s.d.mean.total_us, step_us, 0.51, "the mean step");
    const struct trace_step *first = &s.d.steps[0], *last = &s.d.steps[rows - 1];
    const double all_us = last->start_us + last->total_us - first->start_us;    /* with the time between steps */
    assert_near(100 * rows * s.d.mean.kernel_us / all_us, utilisation, 0.0051, "the device's use");
    assert_near(100 * s.d.mean.dataloader_us / s.d.mean.total_us, loader, 0.051, "the data loader");
    assert_near(s.d.mean_occupancy, occupancy, 0.0051, "occupancy");
    free(t.text);
    shared_release(&s);
}

static void the_step_split_without_workers(void **state)
{
    (void)state;
    SKIP_IF_ABSENT();
    check_breakdown("workers0_1623143089861", 177592, 55.51, 33.4, 49.13);
}

static void the_step_split_with_workers(void **state)
{
    (void)state;
    SKIP_IF_ABSENT();
    check_breakdown("workers4_1623212756351", 141068, 70.27, 0.84, 48.91);
}

/* ---- the device's timeline and kernels ---- */

static double gpu_part(const struct trace_gpu *g, const char *type)
{
    const struct { const char *type; double us; } parts[] = {
        {"computation_time", g->computation_us}, {"exposed_comm_time", g->exposed_comm_us},
        {"exposed_memcpy_time", g->exposed_memcpy_us}, {"busy_time", g->busy_us}, {"idle_time", g->idle_us},
        {"total_time", g->total_us}, {"total_comm_time", g->comm_us}, {"total_memcpy_time", g->memcpy_us},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strcmp(parts[i].type, type))
            return parts[i].us;
    fail_msg("no part '%s'", type);
    return 0;
}

static void check_timeline(const struct trace_gpu *g, const char *csv)
{
    struct table t = table_read(csv);
    int rows = 0;
    for (; table_next(&t); rows++) {
        const double us = 1000 * number_of(&t, "time ms");
        assert_near(gpu_part(g, text_of(&t, "type")), us, 1e-6 * us, text_of(&t, "type"));
    }
    assert_int_equal(rows, 8);
    assert_near(g->idle_host_us + g->idle_kernel_us + g->idle_other_us, g->idle_us, 1e-6 * g->total_us, "the parts of idle");
    free(t.text);
}

static const struct trace_kernel *find_kernel(const struct diagnosis *d, const struct table *t)
{
    for (int i = 0; i < d->n_kernels; i++) {
        const struct trace_kernel *k = &d->kernels[i];
        if (!strcmp(k->name, text_of(t, "Kernel name")) && !strcmp(k->op, text_of(t, "Parent cpu_op")) &&
            k->stream == atoll(text_of(t, "Kernel stream")))
            return k;
    }
    fail_msg("no kernel '%s' of '%s'", text_of(t, "Kernel name"), text_of(t, "Parent cpu_op"));
    return NULL;
}

static void check_kernels(const struct diagnosis *d, const char *csv)
{
    struct table t = table_read(csv);
    int rows = 0;
    for (; table_next(&t); rows++) {
        const struct trace_kernel *k = find_kernel(d, &t);
        assert_int_equal(k->count, (int64_t)number_of(&t, "Kernel duration (µs)_count"));
        assert_near(k->total_us, number_of(&t, "Kernel duration (µs)_sum"), 1e-6, "sum");
        assert_near(k->mean_us, number_of(&t, "Kernel duration (µs)_mean"), 1e-6, "mean");
        assert_near(k->min_us, number_of(&t, "Kernel duration (µs)_min"), 1e-6, "min");
        assert_near(k->max_us, number_of(&t, "Kernel duration (µs)_max"), 1e-6, "max");
        assert_near(100 * k->share, number_of(&t, "Percent of kernels time (%)"), 1e-6, "share");
    }
    assert_int_equal(rows, d->n_kernels);
    free(t.text);
}

static void check_tracelens(const char *name)
{
    char file[256];
    snprintf(file, sizeof file, "tracelens_%s.json.gz", name);
    struct shared s = shared_read(file);
    snprintf(file, sizeof file, "EXPECTED_tracelens_%s_gpu_timeline.csv", name);
    check_timeline(&s.d.gpu, file);
    snprintf(file, sizeof file, "EXPECTED_tracelens_%s_kernel_summary.csv", name);
    check_kernels(&s.d, file);
    shared_release(&s);
}

static void timeline_and_kernels_of_bert(void **state)
{
    (void)state;
    SKIP_IF_ABSENT();
    check_tracelens("h100_bert_small");
}

static void timeline_and_kernels_of_qwen(void **state)
{
    (void)state;
    SKIP_IF_ABSENT();
    check_tracelens("h100_qwen0.5b");
}

static void timeline_and_kernels_of_mi210(void **state)
{
    (void)state;
    SKIP_IF_ABSENT();
    check_tracelens("mi210_gpu_only");
}

/* ---- counts ---- */

static bool is_inside(const struct view *v, int32_t host, const char *name)
{
    while (host >= 0 && strcmp(view_name(v, host), name))
        host = v->parent[host];
    return host >= 0;
}

/* Without the last step; of the optimizer's kernels those that ran before that step began. */
static void events_of_the_first_steps(void **state)
{
    (void)state;
    SKIP_IF_ABSENT();
    struct shared s = shared_read("hta_ns_resolution_ddp_rank0.json.gz");
    const struct view *v = &s.view;
    int events = 0, optimizer = 0;
    for (int32_t i = v->device; i < v->device + v->n_device; i++) {
        const struct event *e = view_event(v, i);
        if (e->step < 0 || e->step == v->n_steps - 1)
            continue;
        events++;
        optimizer += e->kind == EVENT_KERNEL && e->start_ns < v->steps[v->n_steps - 1].start_ns &&
                     is_inside(v, v->launch[i - v->device], "Optimizer.step#SGD.step");
    }
    assert_int_equal(events, 4876);
    assert_int_equal(optimizer, 27);
    shared_release(&s);
}

static void collectives_and_their_sizes(void **state)
{
    (void)state;
    SKIP_IF_ABSENT();
    struct shared s = shared_read("hta_nccl_data.json.gz");
    const struct view *v = &s.view;
    int collectives = 0, of_that_size = 0;
    for (int32_t i = v->device; i < v->device + v->n_device; i++) {
        if (view_kernel_kind(v, i) != KERNEL_COMM)
            continue;
        const int32_t args = view_event(v, i)->args;
        collectives++;
        of_that_size += args >= 0 && s.trace->args[args].elements == 2049000 && s.trace->args[args].collective >= 0 &&
                        !strcmp(s.trace->names[s.trace->args[args].collective], "allreduce");
    }
    assert_int_equal(collectives, 21);
    assert_int_equal(of_that_size, s.d.n_steps);        /* one in each step */
    assert_true(s.d.gpu.exposed_comm_us > 0 && s.d.gpu.exposed_comm_us < s.d.gpu.comm_us);
    shared_release(&s);
}

static void two_traces_differ_by_these_names(void **state)
{
    (void)state;
    SKIP_IF_ABSENT();
    struct shared a = shared_read("hta_trace_compare_base.json.gz"), b = shared_read("hta_trace_compare_test.json.gz");
    struct trace_diff diff;
    struct error err;
    assert_int_equal(a.view.n_steps, 2);
    assert_int_equal(a.view.steps[0].number, 1009);
    assert_int_equal(a.view.steps[1].number, 1010);
    assert_int_equal(a.view.steps[1].end_ns - a.view.steps[1].start_ns, 122149000);
    assert_ok(diagnosis_diff(&diff, &a.d, &b.d, &err), err);
    assert_int_equal(diff.ops_equal, 5);
    assert_int_equal(diff.ops_added, 3);
    assert_int_equal(diff.ops_removed, 1);
    trace_diff_release(&diff);
    shared_release(&a);
    shared_release(&b);
}

/* ---- traces on which advice was wrong once: what is true of each ---- */

#define SKIP_IF_SECOND_ABSENT()                                                                                        \
    if (second_absent())                                                                                               \
        skip()

static struct judged judge_second(const char *name)
{
    char path[4200];
    struct trace *t = NULL;
    struct error err;
    snprintf(path, sizeof path, "%s/public2/%s.json.gz", folder(), name);
    assert_ok(import_read(&t, path, NULL, NULL, &err), err);
    return trace_judge(t, 0);
}

static void a_device_that_starts_late_is_not_idle_before(void **state)
{
    (void)state;
    SKIP_IF_SECOND_ABSENT();
    struct judged j = judge_second("tl_vllm_piecewise");
    assert_near(j.d.corrected.recorded_us, 156.5e3, 100, "from the first device event to the last");
    assert_near(j.d.corrected.device_us, 156.1e3, 100, "busy");
    assert_string_equal(j.d.bound_by, "device");
    assert_not_found(&j, "host-bound");
    judged_release(&j);
}

static void a_device_of_many_engines_is_busy_when_one_is(void **state)
{
    (void)state;
    SKIP_IF_SECOND_ABSENT();
    struct judged j = judge_second("hta_mtia_infer");
    assert_near(j.d.gpu.busy_us, 424e3, 500, "busy");
    assert_near(j.d.gpu.total_us, 443e3, 500, "from the first device event to the last");
    assert_string_equal(j.d.bound_by, "device");
    assert_not_found(&j, "launch-bound");
    judged_release(&j);
}

static void cold_starts_are_no_fault(void **state)
{
    (void)state;
    SKIP_IF_SECOND_ABSENT();
    static const char *const names[] = {"hta_alexnet", "tl_norm_layer"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct judged j = judge_second(names[i]);
        assert_true(j.d.all_cold && warns(&j.d, "record after warm-up"));
        assert_true(j.d.corrected.step_us < 350e3);         /* of 43 s and 1 s as recorded */
        for (int k = 0; k < j.d.n_findings; k++)
            assert_int_equal(j.d.findings[k].severity, SEVERITY_LOW);
        judged_release(&j);
    }
}

static void a_wait_that_nothing_explains_stays_in_the_step(void **state)
{
    (void)state;
    SKIP_IF_SECOND_ABSENT();
    struct judged j = judge_second("hta_negqueue");
    const struct corrected_view *c = &j.d.corrected;
    assert_near(c->recorded_us, 215e3, 1e3, "as recorded");
    assert_string_equal(j.d.bound_by, "wait");
    assert_non_null(strstr(assert_found(&j, "no-mixed-precision")->evidence, "in TF32"));
    assert_true(c->step_us > 147e3 && c->step_us >= c->recorded_us - c->cost_per_event_us * c->events_per_step - 1e3);
    judged_release(&j);
}

static void streams_are_busy_together(void **state)
{
    (void)state;
    SKIP_IF_SECOND_ABSENT();
    struct judged j = judge_second("tl_mi300_resnet_ckpt");
    const struct corrected_view *c = &j.d.corrected;
    assert_true(c->device_us > 0.95 * c->recorded_us && c->step_us >= c->device_us && c->step_us <= c->recorded_us);
    assert_found(&j, "exposed-comm");
    judged_release(&j);
}

static void a_copy_and_its_call_take_their_time_once(void **state)
{
    (void)state;
    SKIP_IF_SECOND_ABSENT();
    struct judged j = judge_second("ptbench_trace2");
    assert_near(j.d.corrected.step_us, 67.6e3, 1e3, "without profiler");
    assert_true(assert_found(&j, "pageable-copies")->speedup <= 1.9);
    judged_release(&j);
}

static void the_difference_of_two_traces_is_that_of_their_true_steps(void **state)
{
    (void)state;
    char path[4200];
    struct trace *t[2] = {0};
    struct judged j[2];
    struct trace_diff diff;
    struct error err;
    static const char *const names[] = {"loop-adamw", "clean"};
    snprintf(path, sizeof path, "%s/planted", folder());
    if (access(path, R_OK) != 0)
        skip();
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/planted/h200-gpt-%s.json.gz", folder(), names[i]);
        assert_ok(import_read(&t[i], path, NULL, NULL, &err), err);
        j[i] = trace_judge(t[i], 0);
    }
    assert_ok(diagnosis_diff(&diff, &j[0].d, &j[1].d, &err), err);
    const double ratio = diff.a_step_us / diff.b_step_us;   /* measured without the profiler: 1.48; as recorded: 1.04 */
    assert_true(ratio > 1.25 && ratio < 1.7);
    trace_diff_release(&diff);
    judged_release(&j[0]);
    judged_release(&j[1]);
}

/* ---- all of them ---- */

/* What must hold of any trace: parts add up, points are few, nothing is negative or not a number. */
static void check_sane(const struct shared *s, const char *name)
{
    for (int i = 0; i < s->d.n_steps; i++) {
        const struct trace_step *x = &s->d.steps[i];
        const double sum = x->kernel_us + x->memcpy_us + x->memset_us + x->comm_us + x->runtime_us + x->dataloader_us +
                           x->cpu_us + x->other_us;
        assert_near(sum, x->total_us, 1e-6 * (1 + x->total_us), name);
        const double device = x->kernel_us + x->memcpy_us + x->memset_us, little = 1e-6 * (1 + x->total_us);
        assert_true(x->busy_us >= device - little && x->busy_us <= device + x->comm_us + little);   /* some communicate on the host */
    }
    const struct trace_gpu *g = &s->d.gpu;
    assert_near(g->busy_us + g->idle_us, g->total_us, 1e-6 * (1 + g->total_us), name);
    assert_near(g->idle_host_us + g->idle_kernel_us + g->idle_other_us, g->idle_us, 1e-6 * (1 + g->total_us), name);
    assert_true(s->d.n_queue <= 600 && s->d.n_memory <= 600);
    double peak = 0, share = 0;
    for (int i = 0; i < s->d.n_queue; i++)
        peak = fmax(peak, s->d.queue[i].value);
    assert_near(peak, (double)s->d.launches.queue_max, 0, name);
    for (int i = 0; i < s->d.n_kernels; i++)
        share += s->d.kernels[i].share;
    assert_near(share, s->d.n_kernels ? 1 : 0, 1e-9, name);
    share = s->d.no_op_share;
    for (int i = 0; i < s->d.n_ops; i++)
        share += s->d.ops[i].device_self_us > 0 ? s->d.ops[i].share : 0;
    assert_near(share, share > 0 ? 1 : 0, 1e-9, name);
}

static void every_published_trace_adds_up(void **state)
{
    (void)state;
    SKIP_IF_ABSENT();
    DIR *dir = opendir(path_of(""));
    assert_non_null(dir);
    int n = 0;
    for (struct dirent *e; (e = readdir(dir));) {
        const char *end = strstr(e->d_name, ".json.gz");
        if (!end || end[8])
            continue;
        struct shared s = shared_read(e->d_name);
        check_sane(&s, e->d_name);
        shared_release(&s);
        n++;
    }
    closedir(dir);
    assert_true(n >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_step_split_without_workers),
        cmocka_unit_test(the_step_split_with_workers),
        cmocka_unit_test(timeline_and_kernels_of_bert),
        cmocka_unit_test(timeline_and_kernels_of_qwen),
        cmocka_unit_test(timeline_and_kernels_of_mi210),
        cmocka_unit_test(events_of_the_first_steps),
        cmocka_unit_test(collectives_and_their_sizes),
        cmocka_unit_test(two_traces_differ_by_these_names),
        cmocka_unit_test(a_device_that_starts_late_is_not_idle_before),
        cmocka_unit_test(a_device_of_many_engines_is_busy_when_one_is),
        cmocka_unit_test(cold_starts_are_no_fault),
        cmocka_unit_test(a_wait_that_nothing_explains_stays_in_the_step),
        cmocka_unit_test(streams_are_busy_together),
        cmocka_unit_test(a_copy_and_its_call_take_their_time_once),
        cmocka_unit_test(the_difference_of_two_traces_is_that_of_their_true_steps),
        cmocka_unit_test(every_published_trace_adds_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
