/* The report's files: fields and values of every JSON, sums, the timeline, full disks.
 * `test_report --write DIR` instead writes reports of a sample, of one in bf16, of hostile names and of nothing into DIR/sample,
 * DIR/bf16, DIR/hostile and DIR/empty, for tests/cli/report-chromium.sh. */
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "report_check.h"
#include "report_profile.h"

static char root[64];

static int make_root(void **state)
{
    (void)state;
    strcpy(root, "/tmp/hone-report-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    return fs_remove_tree(root, NULL) == OK ? 0 : -1;
}

/* ---- report.json ---- */

static void report_json_says_what_the_profile_says(void **state)
{
    (void)state;
    struct profile *p = sample_profile();
    json_t *j = document(report_write_json, p);
    assert_string_equal(words(j, "schema"), "hone-report");
    assert_number(j, "schema_version", 2);
    assert_string_equal(words(j, "hone_version"), "0.1.0");
    assert_string_equal(words(j, "model.name"), "tinyllama-small");
    assert_number(j, "model.parameters", 3300000);
    assert_number(j, "model.seq", 256);
    assert_string_equal(words(j, "machine.fingerprint"), "Neoverse-N1, 2 cores, neon, blis");
    assert_number(j, "machine.peaks.gemm_gflops", SAMPLE_GFLOPS);
    assert_int_equal(json_array_size(at(j, "machine.peaks.levels")), 3);        /* there is no L3 */
    assert_string_equal(words(j, "machine.peaks.levels.2.level"), "memory");
    assert_number(j, "machine.peaks.levels.2.ridge_flops_per_byte", SAMPLE_GFLOPS / SAMPLE_GB_PER_S);
    assert_string_equal(words(j, "answers.headline"), p->headline);
    assert_string_equal(words(j, "answers.bound_by"), "memory");
    assert_number(j, "step.median_us", p->step_us);
    assert_number(j, "step.p90_us", p->step_us * 1.06);
    assert_near(number(j, "step.recording_overhead_percent"), 1.5, 1e-9, "recording");
    assert_number(j, "step.loss", 3.21);
    assert_true(json_is_null(at(j, "answers.warning")));
    assert_string_equal(words(j, "findings.0.pass"), "flash-attention");
    assert_near(sum(at(j, "recorded.parts"), "us"), number(j, "recorded.op_self_us"), 1e-6, "parts of the model");
    assert_number(j, "efficiency.mfu_percent", p->mfu_percent);
    assert_number(j, "counters.instructions_per_cycle", 1.5);
    assert_string_equal(words(j, "findings.0.rule"), "no-flash-attention");
    assert_string_equal(words(j, "findings.0.severity"), "high");
    assert_string_equal(words(j, "findings.0.effort"), "medium");
    assert_number(j, "findings.0.expected_speedup_high", 1.36);
    assert_string_equal(words(j, "findings.0.option"), "--set optimize.flash-attention=on");
    assert_string_equal(words(j, "findings.2.option"), "--set optimize.fuse-qkv=on --set optimize.fuse-gate-up=on");
    assert_true(json_is_null(at(j, "findings.3.option")));                  /* the fix is words */
    assert_number(j, "counts.high", 1);
    assert_number(j, "counts.low", 3);
    assert_string_equal(words(j, "phases.1.rules.0"), "no-flash-attention");
    assert_number(j, "phases.2.cumulative_speedup", 1.42);
    assert_string_equal(words(j, "checks.0.text"), "no-flash-attention: --set optimize.flash-attention=on gives 1.27× (1.18× to 1.36×)");
    assert_int_equal(json_array_size(at(j, "checks")), 6);                  /* four that are worth it, and two for all */
    assert_true(json_is_null(at(j, "checks.5.finding")));
    assert_string_equal(words(j, "config_yaml"), p->config_yaml);
    json_decref(j);
    sample_free(p);
}

static void mfu_says_which_peak_it_is_of(void **state)
{
    (void)state;
    struct profile *p = sample_profile();
    json_t *j = document(report_write_json, p);
    assert_true(json_is_null(at(j, "machine.peaks.bf16_gflops")));
    assert_number(j, "efficiency.mfu_peak_gflops", SAMPLE_GFLOPS);
    assert_string_equal(words(j, "efficiency.mfu_peak_type"), "f32");
    json_decref(j);
    sample_free(p);

    p = bf16_profile();
    j = document(report_write_json, p);
    assert_number(j, "machine.peaks.gemm_gflops", SAMPLE_GFLOPS);
    assert_number(j, "machine.peaks.bf16_gflops", 2 * SAMPLE_GFLOPS);
    assert_number(j, "machine.peaks.levels.2.ridge_flops_per_byte", 2 * SAMPLE_GFLOPS / SAMPLE_GB_PER_S);
    assert_number(j, "efficiency.mfu_peak_gflops", 2 * SAMPLE_GFLOPS);
    assert_string_equal(words(j, "efficiency.mfu_peak_type"), "bf16");
    json_decref(j);
    j = document(report_write_flops, p);
    assert_number(j, "efficiency_metrics.device_peak_flops", 160e9);
    assert_number(j, "efficiency_metrics.hfu_percent", 100 * p->hardware_flops / p->step_us / 160e3);
    assert_string_equal(words(j, "efficiency_metrics.device_peak_source"), "measured bf16 matrix product");
    json_decref(j);
    j = document(report_write_intensity, p);
    assert_number(j, "ridge_flops_per_byte", 2 * SAMPLE_GFLOPS / SAMPLE_GB_PER_S);
    json_decref(j);
    sample_free(p);
}

static void self_times_and_gaps_sum_to_the_step(void **state)
{
    (void)state;
    struct profile *p = sample_profile();
    json_t *j = document(report_write_json, p);
    const double step = number(j, "recorded.us");
    assert_near(sum(at(j, "ops"), "self_us") + sum(at(j, "recorded.gaps"), "us"), step, step * 1e-9, "ops + gaps");
    assert_near(sum(at(j, "kinds"), "self_us"), number(j, "recorded.op_self_us"), step * 1e-9, "kinds");
    assert_near(sum(at(j, "recorded.split"), "us"), step, step * 1e-9, "split");
    assert_near(sum(at(j, "recorded.split"), "share"), 1, 1e-9, "shares of the split");
    assert_near(sum(at(j, "ops"), "share") + sum(at(j, "recorded.gaps"), "share"), 1, 1e-9, "shares");
    assert_near(sum(at(j, "ops"), "flops"), number(j, "efficiency.hardware_flops"), 1, "FLOPs");
    assert_near(sum(at(j, "kinds"), "bytes"), number(j, "efficiency.hardware_bytes"), 1, "bytes");
    json_decref(j);
    sample_free(p);
}

/* attn.q of the first block: 134 MFLOP and 2.4 MB at 80 GFLOP/s and 20 GB/s, 1.25 times its floor. */
static void an_op_has_its_rates(void **state)
{
    (void)state;
    struct profile *p = sample_profile();
    json_t *j = document(report_write_json, p), *op = at(j, "ops.3");
    assert_string_equal(words(op, "name"), "blocks.0.attn.q");
    assert_string_equal(words(op, "phase"), "forward");
    assert_string_equal(words(op, "kernel"), "blis");
    assert_number(op, "op", 3);
    assert_number(op, "layer", 0);
    assert_number(op, "runs", 1);
    assert_number(op, "floor_us", 1675);
    assert_number(op, "self_us", 1675 * 1.25);
    assert_number(op, "imbalance_us", 1675 * 1.25 / 20);
    assert_number(op, "efficiency", 0.8);
    assert_number(op, "gflops_per_s", 64);
    assert_number(op, "gb_per_s", 2.4e6 / (1675 * 1.25) / 1e3);
    assert_number(op, "intensity", 134.0 / 2.4);
    assert_true(json_is_false(at(op, "memory_bound")));
    assert_true(json_is_null(at(j, "ops.1.layer")));
    assert_true(json_is_null(at(j, "ops.0.gflops_per_s")) || number(j, "ops.0.gflops_per_s") == 0);
    json_decref(j);

    p->accumulate = 4;
    j = document(report_write_json, p);
    assert_number(j, "ops.3.runs", 4);
    char last[32];
    snprintf(last, sizeof last, "ops.%d.runs", p->n_ops - 1);
    assert_number(j, last, 1);                                  /* the optimizer runs once */
    json_decref(j);
    sample_free(p);
}

static void memory_is_there_with_its_peak_in_words(void **state)
{
    (void)state;
    struct profile *p = sample_profile();
    json_t *j = document(report_write_json, p);
    assert_int_equal(json_array_size(at(j, "memory.points")), p->n_ops);
    assert_number(j, "memory.points.0.parameters", 13.2e6);
    assert_number(j, "memory.points.0.state", 26.4e6);
    assert_number(j, "memory.points.0.activations", 33e3);
    assert_number(j, "memory.peak_op", p->peak_op);
    assert_number(j, "memory.naive_bytes", p->peak_bytes * 2.6);
    const char *said = words(j, "memory.peak_words");
    assert_has(said, "while loss.read runs (forward, op 81 of 197)");
    assert_has(said, ": activations 150 MB (79.1 %), optimizer state 26.4 MB (13.9 %), parameters 13.2 MB (7.0 %), inputs and tables 16.0 kB (0.0 %).");
    assert_has(said, "8.00 GB were available.");
    json_decref(j);
    sample_free(p);
}

/* ---- the timeline ---- */

static void the_timeline_is_the_median_step(void **state)
{
    (void)state;
    struct profile *p = sample_profile();
    json_t *j = document(report_write_json, p), *events = at(j, "timeline.events");
    assert_number(j, "timeline.step", SAMPLE_STEP);
    assert_number(j, "timeline.left_out", 0);
    assert_near(number(j, "timeline.us"), p->step_us, 1e-2, "length");
    assert_int_equal(json_array_size(at(j, "timeline.tracks")), 4);             /* host, two threads, a loader */
    assert_string_equal(words(j, "timeline.tracks.2.name"), "thread 1");
    assert_string_equal(words(j, "timeline.tracks.3.name"), "loader worker 0");
    assert_int_equal(json_array_size(events), 2 * p->n_ops + 1 + 3 + 1 + 2);    /* ops, wait, phases, step, loader */
    for (size_t i = 0; i < json_array_size(events); i++) {
        json_t *e = json_array_get(events, i);
        assert_true(number(e, "1") >= 0 && number(e, "2") >= 0);
        assert_true(number(e, "1") + number(e, "2") <= number(j, "timeline.us") + 1e-6);
        assert_true(number(e, "4") >= -1 && number(e, "4") < p->n_ops);
        assert_true(number(e, "5") < (double)json_array_size(at(j, "timeline.names")));
    }
    json_decref(j);

    p->timeline_step = 99;                                      /* a step without events */
    j = document(report_write_json, p);
    assert_int_equal(json_array_size(at(j, "timeline.events")), 0);
    json_decref(j);
    sample_free(p);
}

static void a_huge_timeline_loses_its_shortest_events(void **state)
{
    (void)state;
    enum { EVENTS = 70000 };
    struct profile *p = sample_profile();
    struct trace *t = arena_alloc(&p->arena, sizeof *t);
    t->events = arena_alloc(&p->arena, EVENTS * sizeof *t->events);
    t->names = arena_alloc(&p->arena, sizeof *t->names);
    t->names[0] = "op";
    t->n_names = 1;
    for (int i = 0; i < EVENTS; i++)
        sample_event(t, EVENT_OP, TRACK_THREADS, 0, 0, i * 20, 1 + i % 10);
    p->trace = t;
    json_t *j = document(report_write_json, p), *events = at(j, "timeline.events");
    assert_int_equal(json_array_size(events) + (size_t)number(j, "timeline.left_out"), EVENTS);
    assert_true(json_array_size(events) <= 60000 && json_array_size(events) >= 50000);
    for (size_t i = 0; i < json_array_size(events); i++)
        assert_true(number(json_array_get(events, i), "2") > 1);
    json_decref(j);
    sample_free(p);
}

/* ---- the small files ---- */

/* Samples that share rows: a step has fewer tokens than samples of model.seq would. */
static void tokens_are_those_of_the_rows(void **state)
{
    (void)state;
    struct profile *p = sample_profile();
    p->tokens_per_s /= 2;
    json_t *j = document(report_write_json, p), *flops = document(report_write_flops, p);
    assert_number(j, "step.tokens_per_step", 4 * 256);
    assert_number(flops, "flops_analysis.flops_per_token", p->model_flops / (4 * 256));
    assert_number(flops, "flops_analysis.flops_per_sample", p->model_flops / 8);
    json_decref(j);
    json_decref(flops);
    sample_free(p);
}

/* FLOPs of a profile are one rank's; samples and tokens per second are of all. */
static void flops_of_a_sample_do_not_depend_on_ranks(void **state)
{
    (void)state;
    struct profile *p = sample_profile();
    struct profile_rank ranks[4] = {{.host = "a"}, {.host = "b"}, {.host = "c"}, {.host = "d"}};
    p->model_flops /= 4;
    p->ranks = ranks;
    p->n_ranks = 4;
    json_t *j = document(report_write_flops, p);
    assert_number(j, "flops_analysis.flops_per_sample", p->model_flops / 2);
    assert_number(j, "flops_analysis.flops_per_token", p->model_flops / (2 * 256));
    json_decref(j);
    sample_free(p);
}

static void recording_wins_no_time(void **state)
{
    (void)state;
    struct profile *p = sample_profile();
    p->recording_percent = -3;
    json_t *j = document(report_write_json, p);
    assert_number(j, "step.recording_overhead_percent", 0);
    json_decref(j);
    sample_free(p);
}

static void flops_profile_has_its_fields(void **state)
{
    (void)state;
    struct profile *p = sample_profile();
    json_t *j = document(report_write_flops, p);
    const double s = p->step_us / 1e6;
    assert_number(j, "efficiency_metrics.mfu_percent", 100 * p->model_flops / s / 80e9);
    assert_number(j, "efficiency_metrics.hfu_percent", 100 * p->hardware_flops / s / 80e9);
    assert_number(j, "efficiency_metrics.device_peak_flops", 80e9);
    assert_number(j, "performance_metrics.flops_per_sec", p->model_flops / s);
    assert_number(j, "performance_metrics.throughput_samples_per_sec", 8 / s);
    assert_number(j, "performance_metrics.throughput_tokens_per_sec", 8 * 256 / s);
    assert_number(j, "performance_metrics.step_time_ms", p->step_us / 1e3);
    assert_number(j, "flops_analysis.flops_per_parameter", p->model_flops / 3300000);
    assert_number(j, "flops_analysis.flops_per_token", p->model_flops / (8 * 256));
    assert_number(j, "flops_analysis.total_parameters", 3300000);
    json_t *phases = at(j, "flops_analysis.hardware_flops_by_phase");
    assert_near(number(phases, "forward") + number(phases, "backward") + number(phases, "optimize"), p->hardware_flops, 1,
                "phases");
    assert_near(number(phases, "optimize"), 38 * 0.9e6, 1, "optimize");
    assert_near(sum(at(j, "flops_analysis.hardware_flops_by_kind"), "share"), 1, 1e-9, "kinds");
    json_decref(j);
    sample_free(p);
}

static void computational_intensity_has_its_fields(void **state)
{
    (void)state;
    struct profile *p = sample_profile();
    json_t *j = document(report_write_intensity, p);
    const double intensity = p->hardware_flops / p->hardware_bytes, used = p->hardware_bytes / p->step_us / 1e3;
    assert_number(j, "arithmetic_intensity_flops_per_byte", intensity);
    assert_number(j, "memory_bandwidth_used_gb_per_sec", used);
    assert_number(j, "memory_bandwidth_peak_gb_per_sec", SAMPLE_GB_PER_S);
    assert_number(j, "memory_bandwidth_utilization_percent", 100 * used / SAMPLE_GB_PER_S);
    double floors = 0;
    for (int i = 0; i < p->n_ops; i++)
        floors += p->ops[i].floor_us;
    assert_near(number(j, "floor_us.memory_bound_ops") + number(j, "floor_us.compute_bound_ops"), floors, 1e-6, "floors");
    json_decref(j);

    for (int memory = 0; memory < 2; memory++) {    /* whatever the intensity: most of the roofline time of the ops says it */
        for (int i = 0; i < p->n_ops; i++)
            p->ops[i].memory_bound = (i % 3 == 0) != memory, p->ops[i].floor_us = 10;
        p->hardware_flops = (memory ? 4.1 : 3.9) * p->hardware_bytes;
        j = document(report_write_intensity, p);
        assert_string_equal(words(j, "memory_bound_vs_compute_bound"), memory ? "memory_bound" : "compute_bound");
        json_decref(j);
    }
    sample_free(p);
}

static void roofline_data_has_a_point_per_op(void **state)
{
    (void)state;
    struct profile *p = sample_profile();
    json_t *j = document(report_write_roofline, p);
    assert_number(j, "peaks.gemm_gflops", SAMPLE_GFLOPS);
    assert_number(j, "peaks.levels.0.gb_per_s", 210);
    assert_int_equal(json_array_size(at(j, "points")), p->n_ops);
    assert_number(j, "points.3.intensity", 134.0 / 2.4);
    assert_number(j, "points.3.gflops_per_s", 64);
    assert_number(j, "step.gflops_per_s", p->hardware_flops / p->step_us / 1e3);
    json_decref(j);
    sample_free(p);
}

/* ---- files ---- */

static const char *const names[] = {"report.html", "report.md", "report.json", "flops_profile.json",
                                    "computational_intensity.json", "roofline_data.json"};

static void every_file_is_written(void **state)
{
    (void)state;
    struct profile *p = sample_profile();
    struct error err;
    assert_ok(report_write(p, root, &err), err);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct stat s;
        assert_int_equal(stat(arena_printf(&p->arena, "%s/%s", root, names[i]), &s), 0);
        assert_true(s.st_size > 300);
    }
    sample_free(p);
}

/* Each file in turn is a folder, or a device that is always full. */
static void a_file_that_cannot_be_written_is_named(void **state)
{
    (void)state;
    struct profile *p = sample_profile();
    struct error err;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = arena_printf(&p->arena, "%s/%s", root, names[i]);
        unlink(path);
        assert_int_equal(symlink("/dev/full", path), 0);
        assert_int_equal(report_write(p, root, &err), CANNOT);
        assert_says(&err, path, "No space left on device", NULL);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_not_equal(report_write(p, "/nowhere/at/all", &err), OK);
    assert_says(&err, "/nowhere/at/all/report.html", NULL);
    sample_free(p);
}

static int write_one(const struct profile *p, const char *folder, const char *name)
{
    char path[512];
    struct error err;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (fs_make_dirs(path, &err) == OK && report_write(p, path, &err) == OK)
        return 0;
    fprintf(stderr, "%s\n", err.text);
    return 1;
}

static int write_samples(const char *folder)
{
    const struct profile empty = {0};
    struct profile *sample = sample_profile(), *bf16 = bf16_profile(), *hostile = hostile_profile();
    sample->name = "tiny<script>alert(1)</script>llama";
    const int failed = write_one(sample, folder, "sample") + write_one(bf16, folder, "bf16") + write_one(hostile, folder, "hostile") + write_one(&empty, folder, "empty");
    sample_free(sample);
    sample_free(bf16);
    sample_free(hostile);
    return failed;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_root, remove_root)

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "--write"))
        return write_samples(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report_json_says_what_the_profile_says),
        cmocka_unit_test(mfu_says_which_peak_it_is_of),
        cmocka_unit_test(self_times_and_gaps_sum_to_the_step),
        cmocka_unit_test(an_op_has_its_rates),
        cmocka_unit_test(memory_is_there_with_its_peak_in_words),
        cmocka_unit_test(the_timeline_is_the_median_step),
        cmocka_unit_test(a_huge_timeline_loses_its_shortest_events),
        cmocka_unit_test(tokens_are_those_of_the_rows),
        cmocka_unit_test(flops_of_a_sample_do_not_depend_on_ranks),
        cmocka_unit_test(recording_wins_no_time),
        cmocka_unit_test(flops_profile_has_its_fields),
        cmocka_unit_test(computational_intensity_has_its_fields),
        cmocka_unit_test(roofline_data_has_a_point_per_op),
        TEST(every_file_is_written),
        TEST(a_file_that_cannot_be_written_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
