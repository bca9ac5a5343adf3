/* The reports of an imported trace: fields and values of report.json, the timeline, hostile names in every form; test_trace_report_little.c
 * has diagnoses with little in them.
 * `test_trace_report --write DIR` instead writes reports of a sample, of hostile names, of nothing and of a trace without a
 * device into DIR/sample, DIR/hostile, DIR/empty and DIR/cpu, for tests/cli/trace-report-chromium.sh. */
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "report_check.h"
#include "trace_diagnosis.h"
#include "trace_written.h"

/* ---- report.json ---- */

static void report_json_has_the_fields_others_rely_on(void **state)
{
    (void)state;
    static const char *const parts[] = {"kernel_us", "memcpy_us", "memset_us", "comm_us", "runtime_us", "dataloader_us", "cpu_us",
                                        "other_us"};
    struct diagnosis *d = traced_diagnosis();
    json_t *j = trace_json(d);
    assert_string_equal(words(j, "schema"), "hone-report");
    assert_string_equal(words(j, "kind"), "trace");
    assert_string_equal(words(j, "device"), "NVIDIA H200");
    assert_int_equal(json_array_size(at(j, "steps")), TRACED_STEPS);
    for (int i = 0; i < TRACED_STEPS; i++) {
        json_t *step = json_array_get(at(j, "steps"), (size_t)i);
        double whole = 0;
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
            whole += number(step, parts[k]);
        assert_number(step, "step", TRACED_FIRST + i);
        assert_number(step, "total_us", TRACED_STEP_US + 500 * i);
        assert_near(whole, number(step, "total_us"), 1e-6, "parts of a step");
    }
    assert_number(j, "steps.2.runtime_us", 0.12 * 21000);
    assert_number(j, "gpu.busy_us", 45000);
    assert_number(j, "gpu.idle_us", 35000);
    assert_number(j, "gpu.total_us", 80000);
    assert_string_equal(words(j, "findings.0.rule"), "host-bound");
    assert_string_equal(words(j, "findings.0.severity"), "high");
    assert_string_equal(words(j, "findings.1.effort"), "low");
    assert_number(j, "findings.0.share", 0.41);
    assert_number(j, "findings.0.expected_speedup", 1.55);
    assert_number(j, "findings.0.expected_speedup_low", 1.3);
    assert_number(j, "findings.0.expected_speedup_high", 1.8);
    assert_string_equal(words(j, "findings.1.where"), "train.py(88): log");
    assert_string_equal(words(j, "findings.0.fix"), d->findings[0].fix);          /* with its lines */
    assert_string_equal(words(j, "findings.2.evidence"), d->findings[2].evidence);
    assert_string_equal(words(j, "findings.1.after"), "host-bound");
    assert_string_equal(words(j, "findings.0.confidence"), "medium");
    assert_string_equal(words(j, "findings.0.raise"), "step marks (prof.step())");
    assert_true(json_is_null(at(j, "findings.1.raise")));
    assert_true(json_is_null(at(j, "findings.0.predicted_speedup")));
    assert_string_equal(words(j, "kernels.1.short_name"), "vectorized_elementwise_kernel<CUDAFunctor_add>");
    assert_string_equal(words(j, "kernels.2.short_name"), d->kernels[2].name);
    assert_number(j, "roofline.0.tflops", 168);
    assert_number(j, "roofline.0.percent_of_peak", 17);
    assert_string_equal(words(j, "roofline.0.limit"), "products");
    assert_true(json_is_null(at(j, "roofline.1.flops")) && json_is_null(at(j, "roofline.1.percent_of_peak")));
    assert_number(j, "peaks.gbps", 4800);
    assert_number(j, "mfu_percent", 12.5);
    assert_number(j, "baseline.change", 0.075);
    assert_true(json_is_true(at(j, "baseline.slower")));
    assert_string_equal(words(j, "baseline.longer.0.name"), "aten::addmm");
    assert_number(j, "modules.1.backward_us", 1900);
    assert_string_equal(words(j, "modules_are"), "modules");
    assert_number(j, "python.0.self_us", 2100);
    assert_true(json_is_null(at(j, "findings.0.after")));
    json_decref(j);
    traced_free(d);
}

static void report_json_says_what_the_diagnosis_says(void **state)
{
    (void)state;
    struct diagnosis *d = traced_diagnosis();
    json_t *j = trace_json(d);
    assert_string_equal(words(j, "answers.bound_by"), "host");
    assert_string_equal(words(j, "answers.headline"), d->headline);
    assert_number(j, "mean_step.total_us", TRACED_STEP_US + 750);
    assert_number(j, "mean_step.kernels", 2 * TRACED_LAYERS);
    assert_number(j, "gpu.idle_host_us", 29000);
    assert_number(j, "gpu.exposed_comm_us", 3600);
    assert_number(j, "gpu.busy_share", 45.0 / 80);
    assert_number(j, "corrected.step_us", 15200);
    assert_number(j, "corrected.recorded_us", 20750);
    assert_number(j, "corrected.slowdown", 20750.0 / 15200);
    assert_true(json_is_false(at(j, "corrected.given")));
    assert_string_equal(words(j, "iteration.1.name"), "forward");
    assert_number(j, "iteration.1.us", 4900);
    assert_number(j, "iteration.1.share", 4900.0 / 15200);
    assert_number(j, "iteration.1.recorded_us", 6900);
    assert_number(j, "iteration.1.busy_us", 3450);
    assert_true(json_is_null(at(j, "iteration_note")));
    assert_number(j, "kernels.0.occupancy_percent", 41.5);
    assert_true(json_is_null(at(j, "kernels.2.occupancy_percent")));
    assert_string_equal(words(j, "kernels.2.op"), "c10d::allreduce_");
    assert_number(j, "ops.3.device_us", 14880);
    assert_number(j, "no_op_share", 0);
    assert_string_equal(words(j, "ops_note"), "Shares are of all time on the device in steps.");
    assert_number(j, "kinds.1.share", 1440.0 / 6000);
    assert_number(j, "launches.per_step", 26);
    assert_number(j, "launches.queue_max", 25);
    assert_int_equal(json_array_size(at(j, "queue")), TRACED_POINTS);
    assert_number(j, "queue.20.1", 20);
    assert_int_equal(json_array_size(at(j, "memory.points")), TRACED_POINTS);
    assert_number(j, "memory.peak_bytes", 3.16e9);
    assert_number(j, "ranks.1.rank", 1);
    assert_number(j, "ranks.0.wait_us", 640);
    assert_number(j, "collectives.0.bytes", 52428800);
    assert_number(j, "collectives.0.gb_per_s", 87.4);
    assert_number(j, "collectives.0.exposed_us", 600);
    assert_number(j, "collectives.0.last_rank", 1);
    assert_number(j, "collectives.1.per_step", 2.5);
    assert_string_equal(words(j, "phases.0.title"), "Quick wins");
    assert_string_equal(words(j, "phases.0.rules.1"), "exposed-comm");
    assert_number(j, "phases.0.findings.1", 2);
    assert_number(j, "phases.1.cumulative_speedup", 1.62);
    assert_number(j, "phases.1.cumulative_speedup_high", 1.95);
    assert_int_equal(json_array_size(at(j, "warnings")), 1);
    assert_string_equal(words(j, "trace.path"), d->trace->origin.path);
    assert_string_equal(words(j, "trace.backend"), "nccl");
    assert_number(j, "trace.events", 21000);
    assert_number(j, "trace.bytes", 6400000);
    assert_true(json_is_false(at(j, "trace.truncated")));
    json_decref(j);
    traced_free(d);
}

/* ---- the timeline ---- */

static int row_of(json_t *j, const char *name)
{
    json_t *tracks = at(j, "timeline.tracks");
    for (size_t i = 0; i < json_array_size(tracks); i++)
        if (!strcmp(words(json_array_get(tracks, i), "name"), name))
            return (int)number(json_array_get(tracks, i), "track");
    fail_msg("there is no row '%s'", name);
    return -1;
}

static size_t events_on(json_t *j, int track)
{
    json_t *events = at(j, "timeline.events");
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(events); i++)
        n += (int)number(json_array_get(events, i), "0") == track;
    return n;
}

static void the_timeline_is_the_median_step_with_named_rows(void **state)
{
    (void)state;
    struct diagnosis *d = traced_diagnosis();
    json_t *j = trace_json(d), *events = at(j, "timeline.events");
    const double length = TRACED_STEP_US + 500 * TRACED_MEDIAN;
    assert_number(j, "timeline.step", TRACED_FIRST + TRACED_MEDIAN);
    assert_near(number(j, "timeline.us"), length, 1e-3, "from the step's mark to its last kernel");
    assert_int_equal(events_on(j, row_of(j, "thread 4242")), 3 * TRACED_LAYERS + 2);    /* and the mark, and the optimizer */
    assert_int_equal(events_on(j, row_of(j, "thread 4250")), TRACED_LAYERS);
    assert_int_equal(events_on(j, row_of(j, "GPU 0 stream 7")), 2 * TRACED_LAYERS + 2);
    assert_int_equal(events_on(j, row_of(j, "GPU 0 stream 20")), 1);
    assert_string_equal(words(j, "timeline.tracks.0.label"), "thread 4242 (python)");
    assert_int_equal(json_array_size(at(j, "timeline.names")), 11);                     /* those that occur */
    assert_number(j, "timeline.left_out", 0);
    for (size_t i = 0; i < json_array_size(events); i++) {
        json_t *e = json_array_get(events, i);
        assert_true(number(e, "1") >= 0 && number(e, "1") + number(e, "2") <= length + 1e-6);
        assert_true(number(e, "4") < (double)json_array_size(at(j, "timeline.names")));
    }
    json_decref(j);

    d->timeline_step = 99;                                      /* a step that is not there */
    j = trace_json(d);
    assert_int_equal(json_array_size(at(j, "timeline.events")), 0);
    json_decref(j);
    traced_free(d);
}

/* A hundred thousand calls on one thread, ten kernels on a stream: no row starves, and each keeps its longest. */
static void a_huge_step_keeps_the_longest_events_of_each_row(void **state)
{
    (void)state;
    enum { CALLS = 100000, LIMIT = 6000 };
    struct diagnosis *d = traced_diagnosis();
    struct trace *t = d->trace;
    t->n = 0;
    trace_reserve(t, CALLS + 100);
    traced_event(t, EVENT_HOST_OP, TRACED_MAIN, "outer", TRACED_MEDIAN, 0, CALLS * 10);
    for (int i = 0; i < CALLS; i++)
        traced_event(t, EVENT_HOST_OP, TRACED_MAIN, "call", TRACED_MEDIAN, i * 10, 1 + i % 7);
    for (int i = 0; i < 10; i++)
        traced_event(t, EVENT_KERNEL, TRACED_COMPUTE, "short", TRACED_MEDIAN, i * 10, 0.5);
    traced_event(t, EVENT_HOST_OP, TRACED_AUTOGRAD, "backwards in time", TRACED_MEDIAN, 50, -20);
    traced_event(t, EVENT_HOST_OP, 900, "on no track", TRACED_MEDIAN, 50, 20);
    json_t *j = trace_json(d), *events = at(j, "timeline.events");
    assert_int_equal(json_array_size(events), LIMIT);
    assert_number(j, "timeline.left_out", CALLS + 11 - LIMIT);
    assert_int_equal(events_on(j, TRACED_COMPUTE), 10);
    for (size_t i = 0; i < json_array_size(events); i++)
        assert_true(number(json_array_get(events, i), "0") == TRACED_COMPUTE || number(json_array_get(events, i), "2") >= 7);
    json_decref(j);
    traced_free(d);
}

/* ---- names stay text ---- */

static void hostile_names_stay_text_in_the_page(void **state)
{
    (void)state;
    struct diagnosis *tame = traced_diagnosis(), *d = traced_hostile();
    char *before = trace_written(report_trace_write_html, tame), *html = trace_written(report_trace_write_html, d);
    static const char *const markup[] = {"<script", "</script", "<!--", "<title", "</title", "<h1", "<section"};
    for (size_t i = 0; i < sizeof markup / sizeof *markup; i++)
        assert_int_equal(occurrences(html, markup[i]), occurrences(before, markup[i]));
    assert_has_not(html, "<script>alert");
    assert_has_not(html, "\x1b");
    assert_has_not(html, "\xe2\x80\xa8");
    assert_has_not(html, "{{");
    assert_has(html, "<title>y) |&#96;*_~$ · hone trace</title>");
    assert_true(strlen(html) < strlen(before) + 400000);        /* names of 100 kB are cut */
    free(before);
    free(html);
    traced_free(tame);
    traced_free(d);
}

static void hostile_names_stay_text_in_json(void **state)
{
    (void)state;
    struct diagnosis *d = traced_hostile();
    json_t *j = trace_json(d);
    assert_has(words(j, "kernels.1.name"), "</script><script>alert(1)</script><!-- & \" ' \\ \x1b[31m\n\x01 \xef\xbf\xbd\xef\xbf\xbd(");
    const char *cut = words(j, "kernels.0.name");
    assert_true(strlen(cut) > 4000 && strlen(cut) < 3 * 4096 + 8);
    assert_string_equal(cut + strlen(cut) - strlen("…"), "…");
    json_decref(j);
    traced_free(d);
}

/* Takes fenced blocks away: in them everything is text, and none may be ended by what is in it. */
static void blank_blocks(char *md)
{
    char end[64] = "";
    for (char *line = md, *next; line; line = next) {
        next = strchr(line, '\n');
        next = next ? next + 1 : NULL;
        const size_t indent = strspn(line, " "), ticks = strspn(line + indent, "`");
        if (!*end && ticks >= 3)
            snprintf(end, sizeof end, "%.*s\n", (int)(indent + ticks), line);
        else if (*end && !strncmp(line, end, strlen(end)))
            *end = 0;
        else if (*end)
            memset(line, '.', (size_t)((next ? next - 1 : strchr(line, 0)) - line));
    }
    assert_string_equal(end, "");
}

static void several_devices_are_said_to_count_together(void **state)
{
    (void)state;
    struct diagnosis *d = traced_diagnosis();
    json_t *one = trace_json(d);
    assert_true(json_is_null(at(one, "gpu.devices_note")));
    json_decref(one);
    d->gpu.devices = 2;
    d->gpu.busiest_us = 36000;
    json_t *two = trace_json(d);
    char *md = trace_written(report_trace_write_markdown, d);
    assert_number(two, "gpu.devices", 2);
    assert_number(two, "gpu.busiest_us", 36000);
    assert_has(words(two, "gpu.devices_note"), "the busiest alone works 45.0 % of the time.");
    assert_has(md, words(two, "gpu.devices_note"));
    json_decref(two);
    free(md);
    traced_free(d);
}

static void hostile_names_stay_text_in_markdown(void **state)
{
    (void)state;
    struct diagnosis *d = traced_hostile();
    char *md = trace_written(report_trace_write_markdown, d);
    assert_has_not(md, "\x1b");
    assert_has(md, "   `````python\n   ```\n   ````python\n   ~~~\n   </script>");         /* longer than what is in it */
    blank_blocks(md);
    assert_has_not(md, "<script");
    assert_has_not(md, "@all");
    assert_has_not(md, "#1 ");
    assert_has_not(md, "[x](");
    assert_has(md, "# Diagnosis of y) \\|\\`\\*\\_\\~&#36;\n");
    free(md);
    traced_free(d);
}

/* ---- the page and Markdown ---- */

static void the_page_is_complete_and_closed(void **state)
{
    (void)state;
    struct diagnosis *d = traced_diagnosis();
    char *html = trace_written(report_trace_write_html, d);
    assert_has(html, "default-src 'none'; script-src 'nonce-");
    assert_has_not(html, "unsafe-inline");
    assert_has_not(html, " src=");
    assert_has(html, "<title>rank0 · hone trace</title>");
    assert_has(html, "<section id=\"roadmap\">");
    assert_has_not(html, "<section id=\"roofline\">");          /* a part of profiles */
    assert_has(html, "drawPage(");
    free(html);
    traced_free(d);
}

static void markdown_has_the_numbers(void **state)
{
    (void)state;
    struct diagnosis *d = traced_diagnosis();
    char *md = trace_written(report_trace_write_markdown, d);
    assert_has(md, "# Diagnosis of rank0\n");
    assert_has(md, d->headline);
    assert_has(md, "| step as recorded | 20.8 ms (mean of 4 steps) |");
    assert_has(md, "| step without the profiler | 15.2 ms (13.8 ms to 16.9 ms), estimated |");
    assert_has(md, "## Iteration, without the profiler, of rank 0\n");
    assert_has(md, "| phase | time | share | | GPU busy | as recorded |\n");
    assert_has(md, "| forward | 4.90 ms | 32.2 % |");
    assert_has(md, " | 3.45 ms | 6.90 ms |\n");
    assert_has_not(md, "| evaluation |");
    assert_has(md, "| kernel | 9.34 ms | 45.0 % |");
    assert_has(md, "| idle: waits for the host | 29.0 ms | 36.2 % |");
    assert_has(md, "Communication 4.96 ms, of which 3.60 ms (72.6 %) is not hidden");
    assert_has(md, "| GPU idle | 9.35 ms | 3.80 ms |");
    assert_has(md, "| high | host-bound | 41.0 % | 1.55× (1.30×–1.80×) | medium | the whole step |");
    assert_has(md, "2. **host-sync** *Pays after:* host-bound *Cause:* The host reads the loss in every step.");
    assert_has(md, "   ```python\n   model = torch.compile(model, mode='reduce-overhead')\n\n   for batch in loader:\n"
                   "       loss = model(batch)\n   ```\n");
    assert_has(md, "| 1. Quick wins | host-sync, exposed-comm | 1.08× (1.03×–1.14×) |");
    assert_has(md, "| sm90_xmma_gemm_bf16bf16_bf16f32_tn | aten::addmm | gemm | 14.9 ms | 62.0 % | 48 | 310 µs | 41.5 % |");
    assert_has(md, "| aten::linear | 0 µs | 0.0 % | 4.80 ms | 24.0 ms | 48 | 0 | 14.9 ms |");
    assert_has(md, "Times are sums over the trace. Shares are of all time on the device in steps.\n");
    assert_has(md, "Peak 3.16 GB of 80.0 GB.");
    assert_has(md, "| 1 | 20.8 ms | 9.90 ms | 600 µs |");
    assert_has(md, "- the trace was recorded without stacks");
    free(md);
    traced_free(d);
}

static void markdown_fits_an_issue_comment(void **state)
{
    (void)state;
    enum { MANY = 60 };
    struct diagnosis *d = traced_hostile();
    char *name = traced_long_name(&d->arena), *lines = arena_alloc(&d->arena, 100000);
    memset(lines, '\n', 99999);
    d->findings = arena_alloc(&d->arena, MANY * sizeof *d->findings);
    d->kernels = arena_alloc(&d->arena, MANY * sizeof *d->kernels);
    d->ops = arena_alloc(&d->arena, MANY * sizeof *d->ops);
    d->ranks = arena_alloc(&d->arena, MANY * sizeof *d->ranks);
    d->steps = arena_alloc(&d->arena, MANY * sizeof *d->steps);
    d->warnings = arena_alloc(&d->arena, MANY * sizeof *d->warnings);
    d->n_findings = d->n_kernels = d->n_ops = d->n_ranks = d->n_steps = d->n_warnings = MANY;
    for (int i = 0; i < MANY; i++) {
        d->findings[i] = (struct finding){.rule = "host-sync", .where = name, .cause = name, .evidence = name, .fix = i ? name : lines};
        d->kernels[i] = (struct trace_kernel){.name = name, .op = name, .kind = "gemm"};
        d->ops[i].name = d->warnings[i] = name;
        d->ranks[i].path = d->ranks[i].name = name;
        d->ranks[i].rank = -1;
    }
    char *md = trace_written(report_trace_write_markdown, d);
    assert_true(occurrences(md, "\n") < 350);
    assert_true(strlen(md) < 65536);
    free(md);
    traced_free(d);
}

/* ---- ranks ---- */

static void a_rank_without_a_number_is_told_by_its_file(void **state)
{
    (void)state;
    struct diagnosis *d = traced_diagnosis();
    d->ranks[1].rank = d->collectives[0].last_rank = -1;
    d->ranks[1].name = d->collectives[0].last_name = "y.json";
    d->ranks[1].straggler = true;
    json_t *j = trace_json(d);
    assert_number(j, "ranks.0.rank", 0);
    assert_string_equal(words(j, "ranks.0.name"), "rank 0");
    assert_true(json_is_false(at(j, "ranks.0.straggler")));
    assert_true(json_is_null(at(j, "ranks.1.rank")));
    assert_string_equal(words(j, "ranks.1.name"), "y.json");
    assert_true(json_is_true(at(j, "ranks.1.straggler")));
    assert_true(json_is_null(at(j, "collectives.0.last_rank")));
    assert_string_equal(words(j, "collectives.0.last_name"), "y.json");
    assert_number(j, "collectives.0.last_share", 0.75);
    assert_true(json_is_null(at(j, "collectives.1.last_name")) && json_is_null(at(j, "collectives.1.last_share")));
    json_decref(j);
    char *md = trace_written(report_trace_write_markdown, d);
    assert_has(md, "\n| 0 | 20.8 ms |");
    assert_has(md, "\n| y.json | 20.8 ms |");
    assert_has(md, " | y.json, in 75.0 % |\n");
    assert_has_not(md, "| -1");
    free(md);
    traced_free(d);
}

/* ---- files ---- */

static void every_file_is_written_or_named(void **state)
{
    (void)state;
    static const char *const names[] = {"report.html", "report.md", "report.json"};
    char root[] = "/tmp/hone-trace-report-XXXXXX";
    struct diagnosis *d = traced_diagnosis();
    struct error err;
    assert_non_null(mkdtemp(root));
    assert_ok(report_trace_write(d, root, &err), err);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = arena_printf(&d->arena, "%s/%s", root, names[i]);
        struct stat s;
        assert_int_equal(stat(path, &s), 0);
        assert_true(s.st_size > 1000);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(symlink("/dev/full", path), 0);
        assert_int_equal(report_trace_write(d, root, &err), CANNOT);
        assert_says(&err, path, "No space left on device", NULL);
        assert_int_equal(unlink(path), 0);
    }
    assert_false(fs_exists(arena_printf(&d->arena, "%s/roofline_data.json", root)));
    assert_ok(fs_remove_tree(root, &err), err);
    traced_free(d);
}

static int write_one(const struct diagnosis *d, const char *folder, const char *name)
{
    char path[512];
    struct error err;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (fs_make_dirs(path, &err) == OK && report_trace_write(d, path, &err) == OK)
        return 0;
    fprintf(stderr, "%s\n", err.text);
    return 1;
}

static int write_samples(const char *folder)
{
    const struct diagnosis empty = {0};
    struct diagnosis *sample = traced_diagnosis(), *hostile = traced_hostile(), *cpu = traced_on_cpu();
    const int failed = write_one(sample, folder, "sample") + write_one(hostile, folder, "hostile") +
                       write_one(&empty, folder, "empty") + write_one(cpu, folder, "cpu");
    traced_free(sample);
    traced_free(hostile);
    traced_free(cpu);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "--write"))
        return write_samples(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report_json_has_the_fields_others_rely_on),
        cmocka_unit_test(report_json_says_what_the_diagnosis_says),
        cmocka_unit_test(the_timeline_is_the_median_step_with_named_rows),
        cmocka_unit_test(a_huge_step_keeps_the_longest_events_of_each_row),
        cmocka_unit_test(hostile_names_stay_text_in_the_page),
        cmocka_unit_test(hostile_names_stay_text_in_json),
        cmocka_unit_test(several_devices_are_said_to_count_together),
        cmocka_unit_test(hostile_names_stay_text_in_markdown),
        cmocka_unit_test(the_page_is_complete_and_closed),
        cmocka_unit_test(markdown_has_the_numbers),
        cmocka_unit_test(markdown_fits_an_issue_comment),
        cmocka_unit_test(a_rank_without_a_number_is_told_by_its_file),
        cmocka_unit_test(every_file_is_written_or_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
