/* What tune did, as JSON, as Markdown and as a page: of results made by hand, with numbers that are missing and names that are markup.
 * `test_tune_report --write DIR` instead writes report.html and report.json of each result into DIR/NAME, for
 * tests/cli/tune-report-chromium.sh. */
#include <string.h>

#include "backend/comm.h"
#include "core/fs.h"
#include "report_check.h"
#include "tune_consistent.h"
#include "tune_results.h"
#include "written.h"

/* The document as it is after a round through a file. Releases the result. */
static json_t *document_of(struct tune_result *r)
{
    json_t *j = tune_json(r);
    assert_non_null(j);
    char *text = json_dumps(j, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    assert_non_null(text);
    json_decref(j);
    j = parsed(text);
    free(text);
    free(r);
    return j;
}

static void assert_null_at(json_t *j, const char *path)
{
    if (!json_is_null(at(j, path)))
        fail_msg("'%s' is not null", path);
}

/* ---- JSON ---- */

static void the_document_says_what_the_result_says(void **state)
{
    (void)state;
    json_t *j = document_of(sample_result());
    assert_string_equal(words(j, "schema"), "hone-report");
    assert_string_equal(words(j, "kind"), "tune");
    assert_string_equal(words(j, "headline"), "A step is 1.37 times as fast as the program without passes (1.33 to 1.41), memory 262 → 124 MB");
    assert_int_equal(json_array_size(at(j, "stages")), 5);
    assert_string_equal(words(j, "stages.0.pass"), "flash-attention");
    assert_number(j, "stages.0.predicted_speedup", 1.30);
    assert_number(j, "stages.0.measured_speedup", 1.25);
    assert_number(j, "stages.0.prediction_error", 1.30 / 1.25 - 1);
    assert_true(json_is_true(at(j, "stages.0.kept")));
    assert_string_equal(words(j, "stages.2.why"), "slower: × 0.960 (0.930 to 0.990)");
    assert_string_equal(words(j, "stages.1.change"), "train.batch_size: 16, train.accumulate: 1");
    assert_number(j, "stages.1.phase", 1);
    assert_number(j, "before.mfu_percent", 30);
    assert_number(j, "before.mfu_peak_gflops", 80);
    assert_string_equal(words(j, "before.mfu_peak_type"), "f32");
    assert_number(j, "after.planned_bytes", 124e6);
    assert_number(j, "model.seq", 256);
    assert_string_equal(words(j, "bound"), "This step is bound by memory: attention takes 41 % of its 40.0 ms");
    json_decref(j);
}

/* 40 ms; kept are 1.25, 1.10 and 1.00; what was dropped leaves the step as it was. */
static void stages_go_on_from_what_was_kept(void **state)
{
    (void)state;
    json_t *j = document_of(sample_result());
    assert_number(j, "stages.0.step_before_us", 40000);
    assert_number(j, "stages.0.step_after_us", 32000);
    assert_number(j, "stages.1.step_before_us", 32000);
    assert_number(j, "stages.2.step_before_us", 32000 / 1.1);
    assert_number(j, "stages.2.step_after_us", 32000 / 1.1 / 0.96);
    assert_number(j, "stages.2.cumulative_speedup", 1.375);
    assert_number(j, "stages.3.step_before_us", 32000 / 1.1);
    assert_number(j, "stages.4.cumulative_speedup", 1.375);
    assert_null_at(j, "stages.4.measured_speedup");
    assert_null_at(j, "stages.4.step_after_us");
    /* errors of what was kept: 4 %, 5 %, 1 %; of what was dropped: 8 % */
    assert_near(number(j, "median_prediction_error"), 0.045, 1e-9, "median error");
    json_decref(j);
}

static void ideas_know_what_became_of_them(void **state)
{
    (void)state;
    json_t *j = document_of(sample_result());
    const char *const outcomes[] = {"kept", "dropped", "not tried", "kept", "kept", "not tried"};
    for (int i = 0; i < 6; i++) {
        char path[64];
        snprintf(path, sizeof path, "roadmap.%d.outcome", i);
        assert_string_equal(words(j, path), outcomes[i]);
    }
    assert_string_equal(words(j, "roadmap.3.effort"), "medium");
    assert_number(j, "roadmap.5.phase", 3);
    json_decref(j);
}

static void changes_are_the_keys_that_differ(void **state)
{
    (void)state;
    json_t *j = document_of(sample_result());
    assert_int_equal(json_array_size(at(j, "changes")), 3);     /* the batch of the evaluation follows that of the training */
    assert_string_equal(words(j, "changes.0.key"), "train.batch_size");
    assert_string_equal(words(j, "changes.0.before"), "8");
    assert_string_equal(words(j, "changes.0.after"), "16");
    assert_string_equal(words(j, "changes.1.key"), "eval.batch_size");
    assert_string_equal(words(j, "changes.2.key"), "optimize.passes");
    assert_string_equal(words(j, "changes.2.before"), "none");
    assert_string_equal(words(j, "changes.2.after"), "[flash-attention, fuse-loss]");
    json_decref(j);

    struct tune_result *r = empty_result();
    r->tuned = tune_config("empty", "threads=1", NULL);         /* a key outside the sections */
    j = document_of(r);
    assert_int_equal(json_array_size(at(j, "changes")), 1);
    assert_string_equal(words(j, "changes.0.key"), "threads");
    json_decref(j);
}

static void what_was_not_measured_is_null(void **state)
{
    (void)state;
    json_t *j = document_of(empty_result());
    assert_string_equal(words(j, "headline"), "Nothing to try: no pass and no setting changes this program");
    assert_int_equal(json_array_size(at(j, "stages")) + json_array_size(at(j, "sizes")) + json_array_size(at(j, "roadmap")) +
                     json_array_size(at(j, "changes")), 0);
    assert_null_at(j, "before.step_us");
    assert_null_at(j, "after.mfu_percent");
    assert_null_at(j, "after.mfu_peak_type");
    assert_null_at(j, "median_prediction_error");
    json_decref(j);

    j = document_of(hostile_result());
    assert_null_at(j, "stages.0.predicted_speedup");
    assert_null_at(j, "stages.1.measured_low");
    assert_null_at(j, "stages.2.step_after_us");
    assert_null_at(j, "speedup");
    assert_null_at(j, "seconds");
    assert_null_at(j, "sizes.0.before.planned_bytes");
    assert_null_at(j, "roadmap.1.what");
    assert_has(words(j, "name"), "(javascript:1)?\"'&<!--");                /* the byte that is no UTF-8 */
    json_decref(j);
}

static void the_headline_fits_what_happened(void **state)
{
    (void)state;
    json_t *j = document_of(vain_result());
    assert_string_equal(words(j, "headline"), "Nothing made this step faster: the config stays as it was");
    json_decref(j);
    j = document_of(interrupted_result());
    assert_has(words(j, "headline"), "Interrupted: what was proved by then multiplies, stage by stage, to 1.38 times as fast; it was not");      /* 1.375 */
    assert_true(json_is_true(at(j, "interrupted")));
    json_decref(j);
    struct tune_result *r = interrupted_result();
    r->n_stages = 0;
    j = document_of(r);
    assert_string_equal(words(j, "headline"), "Interrupted before anything was proved to be faster");
    json_decref(j);
    r = vain_result();                                          /* as with --budget 0 */
    for (int i = 0; i < r->n_stages; i++)
    {
        r->stages[i].measured = NAN;
        r->stages[i].outcome = TUNE_NOT_TRIED;
    }
    j = document_of(r);
    assert_string_equal(words(j, "headline"), "Nothing was tried: these are predictions only");
    json_decref(j);
}

/* Fewer evaluations are kept whatever becomes of the step: tuned.yaml has them, and so the page says it. */
static void what_is_kept_around_the_step_is_said(void **state)
{
    (void)state;
    static const char around[] = "less of the run is evaluation";
    const struct { struct tune_result *(*make)(void); int stages; const char *begins; } cases[] = {
        {sample_result, -1, "A step is 1.37 times as fast as the program without passes (1.33 to 1.41)"},
        {interrupted_result, 0, "Interrupted before a step was proved to be faster"},
        {interrupted_result, 2, "Interrupted: what was proved by then multiplies"},
        {taken_back_result, -1, "A step is as it was: what won stage by stage does not, all together, against"},
        {empty_result, -1, "A step is as it was"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tune_result *r = cases[i].make();
        r->n_stages = cases[i].stages >= 0 ? cases[i].stages : r->n_stages;
        tune_add(r, (struct tune_stage){.answers = "evaluation-bound", .what = "less evaluation", .effort = PASS_LOW, .phase = 1, .places = 1, .predicted = 1.1,
                 .measured = 1.1, .low = 1.08, .high = 1.12, .around = true, .outcome = TUNE_KEPT}, "eval-schedule", "eval.every: 50", "less of the run is evaluation; the step is the same");
        json_t *j = document_of(r);
        const char *said = words(j, "headline");
        assert_int_equal(strncmp(said, cases[i].begins, strlen(cases[i].begins)), 0);
        assert_true(strlen(said) > sizeof around && !strcmp(said + strlen(said) - sizeof around + 1, around));
        json_decref(j);
    }
}

/* Where nobody can say, that is not "nothing is faster"; and a program that is faster than what came out is named. */
static void the_headline_hides_nothing(void **state)
{
    (void)state;
    struct tune_result *r = vain_result();
    r->stages[0].outcome = TUNE_NO_VERDICT;
    r->delayed_share = 0.48;
    snprintf(r->warning, sizeof r->warning, "other work took the cores for 48 %% of the time");
    json_t *j = document_of(r);
    assert_has(words(j, "headline"), "Nothing was proved to make this step faster, and of 1 of ");
    assert_has(words(j, "headline"), "there is no verdict, as other work took the cores for up to 48 % of the time: the config stays as it was");
    assert_number(j, "delayed_share", 0.48);
    char *text = text_of(report_tune_write_markdown, j);
    assert_has(text, "| warning | other work took the cores for 48 % of the time |\n");
    free(text);
    json_decref(j);
    for (int judged = 0; judged < 2; judged++) {
        r = vain_result();
        r->n_references = 1;
        r->references[0] = (struct tune_reference){.name = "the program with all passes", .all = true, .step_us = 850, .tuned_us = 1000, .speedup = 0.85, .low = 0.76,
                                                   .high = 0.93, .judged = judged};
        j = document_of(r);
        assert_int_equal(strstr(words(j, "headline"), ". But the program with all passes is 1.18 times as fast as that (1.08 to 1.32): measured, and by no gate; try "
                                "--set optimize.passes=all") != NULL, judged);
        json_decref(j);
    }
}

/* What an interval rests on is told with it; and what the config seems to win over itself, where its interval does not hold 1. */
static void an_interval_says_what_it_rests_on(void **state)
{
    (void)state;
    json_t *j = document_of(sample_result());
    assert_number(j, "check.believed_above", 1);
    assert_number(j, "check.openings", 8);
    assert_number(j, "check.turns", 48);
    const json_t *stages = json_object_get(j, "stages");
    assert_int_equal(json_integer_value(json_object_get(json_array_get(stages, 0), "turns")), 96);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(stages, 0), "openings")), 8);
    assert_true(json_is_null(json_object_get(json_array_get(stages, 4), "turns")));
    char *text = text_of(report_tune_write_markdown, j);
    assert_has(text, "| noise | the config against itself: 1.00× (0.99× to 1.01×, 48 turns in 8 openings), the same bits |\n");
    assert_has(text, " (1.22× to 1.29×, 96 turns in 8 openings) |");
    assert_has(text, " (0.93× to 0.99×) |");
    assert_null(strstr(text, "| warning |"));
    free(text);
    json_decref(j);
    struct tune_result *r = sample_result();
    r->check.low = r->check.believed = 1.004;
    j = document_of(r);
    text = text_of(report_tune_write_markdown, j);
    assert_has(text, "48 turns in 8 openings), the same bits; no gain up to 1.004× was believed |\n");
    free(text);
    json_decref(j);
}

static void numbers_are_one_set(void **state)
{
    (void)state;
    struct tune_result *(*const makers[])(void) = {sample_result, empty_result, vain_result, taken_back_result, interrupted_result};
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        json_t *j = document_of(makers[i]());
        assert_consistent(j);
        json_decref(j);
    }
}

static void what_was_judged_is_told(void **state)
{
    (void)state;
    json_t *j = document_of(sample_result());
    assert_string_equal(words(j, "given"), "the program without passes");
    assert_int_equal(json_array_size(at(j, "gates")), 6);
    assert_string_equal(words(j, "gates.5.gate"), "throughput");
    assert_true(json_is_true(at(j, "gates_pass")) && json_is_false(at(j, "sizes.0.gates_pass")) && json_is_null(at(j, "sizes.1.gates")));
    assert_string_equal(words(j, "sizes.0.gates.5.outcome"), "no verdict");
    assert_string_equal(words(j, "references.0.name"), "the program with all passes");
    assert_string_equal(words(j, "limits"), "--set verify.min_gain=0 --set verify.memory=1.021");
    assert_number(j, "check.speedup_high", 1.01);
    char *text = text_of(report_tune_write_markdown, j);
    assert_has(text, "## Gates\n\nFrom the program without passes (a) to the tuned config (b).\n");
    assert_has(text, "| determinism | pass | determinism of a and of b agree |\n");
    assert_has(text, "Measured on its own, the tuned config is 1.00× (0.98× to 1.02×) against the program with all passes, a step of which takes 29.3 ms.");
    assert_has(text, "The same verdict again: hone verify base.yaml tuned.yaml --set verify.min_gain=0 --set verify.memory=1.021\n");
    free(text);
    json_decref(j);

    struct comm two = {.size = 2};                          /* hone verify would judge one rank, which is another program */
    struct tune_result *shared = sample_result();
    shared->base.dist.comm = shared->tuned.dist.comm = &two;
    j = document_of(shared);
    assert_true(json_is_null(at(j, "limits")));
    assert_number(j, "ranks", 2);
    text = text_of(report_tune_write_markdown, j);
    assert_null(strstr(text, "hone verify"));
    free(text);
    json_decref(j);

    j = document_of(taken_back_result());
    assert_has(words(j, "headline"), "Nothing was won: what won stage by stage does not, all together, against the program without passes (too much");
    assert_number(j, "speedup", 1);
    assert_true(json_is_true(at(j, "taken_back")));
    text = text_of(report_tune_write_markdown, j);
    assert_has(text, "to the tuned config (b), which was taken back.");
    assert_has(text, "| throughput | **no verdict** |");
    free(text);
    json_decref(j);
}

/* ---- Markdown ---- */

/* Lengths that this machine cannot run are there, and marked; so is the peak that MFU is of, where a pass changed it. */
static void what_does_not_fit_is_marked(void **state)
{
    (void)state;
    struct tune_result *r = sample_result();
    r->after.mfu_peak = (struct products_peak){.gflops = 160, .numbers = NUMBERS_BF16};
    json_t *j = document_of(r);
    assert_true(json_is_true(at(j, "sizes.4.before.fits")) && json_is_false(at(j, "sizes.5.before.fits")));
    assert_true(json_is_true(at(j, "sizes.5.after.fits")) && json_is_true(at(j, "before.fits")));
    char *text = text_of(report_tune_write_markdown, j);
    assert_has(text, "| 8 × 1024 | 2.20 GB | 472 MB | -78.6 % |\n");
    assert_has(text, "| 8 × 2048 | 6.39 GB (does not fit) | 919 MB | -85.6 % |\n");
    assert_has(text, "| MFU, of the f32 and of the bf16 peak | 30.0 % |");
    free(text);
    json_decref(j);
}

/* On a GPU: kernels per step of three programs, and what happened to its clock. */
static void kernels_are_counted(void **state)
{
    (void)state;
    struct tune_result *r = sample_result();
    json_t *j = document_of(r);
    assert_true(json_is_null(at(j, "before.kernels")) && json_is_null(at(j, "naive_kernels")) && json_is_null(at(j, "warning")));
    char *text = text_of(report_tune_write_markdown, j);
    assert_null(strstr(text, "kernels per step"));
    free(text);
    json_decref(j);
    r = sample_result();
    r->before.kernels = 200;
    r->after.kernels = 125;
    r->naive_kernels = 555;
    snprintf(r->warning, sizeof r->warning, "The clock of the GPU fell");
    j = document_of(r);
    assert_true(json_number_value(at(j, "after.kernels")) == 125 && json_number_value(at(j, "naive_kernels")) == 555);
    assert_string_equal(json_string_value(at(j, "warning")), "The clock of the GPU fell");
    text = text_of(report_tune_write_markdown, j);
    assert_has(text, "| kernels per step | 200 | 125 | -37.5 % |\n");
    assert_has(text, "The program without passes starts 555 kernels per step.");
    free(text);
    json_decref(j);
}

static void the_text_has_every_part(void **state)
{
    (void)state;
    json_t *j = document_of(sample_result());
    json_object_set_new(j, "tuned_config", json_string("runs/a b/tuned.yaml"));
    char *text = text_of(report_tune_write_markdown, j);
    assert_has(text, "# sample, tuned\n\n**A step is 1.37 times as fast as the program without passes (1.33 to 1.41), memory 262 → 124 MB.**\n");
    assert_has(text, "The time was spent before everything was tried");
    assert_has(text, "| flash-attention | `███████████████████▒▒▒▒▒` | 1.25× | 32.0 ms |\n");
    assert_has(text, "| tuned, all together | `██████████████████······` | 1.37× | 29.2 ms |\n");
    assert_has(text, "One by one, what was kept multiplies to 1.38×; all together, measured in turns with the program without passes, it is 1.37×.");
    assert_has(text, "| flash-attention | medium | 1.30× | 1.25× (1.22× to 1.29×, 96 turns in 8 openings) | +4.0 % | kept | 1.25× | optimize.passes: + flash-attention |\n");
    assert_null(strstr(text, "| fuse-qkv + fuse-residual-norm"));         /* nothing was measured: no row of dashes */
    assert_has(text, "- **fuse-qkv + fuse-residual-norm + hoist-constants** (not tried): ");
    assert_has(text, "; expected 1.03×\n");
    assert_has(text, "off by 4.5 % in the median");
    assert_has(text, "| MFU, of the f32 peak | 30.0 % | 41.1 % | +37.0 % |\n");
    assert_has(text, "| planned memory | 262 MB | 124 MB | -52.7 % |\n");
    assert_has(text, "| 8 × 128 | 18.0 ms | 14.4 ms | 1.25× | throughput: no verdict |\n");
    assert_has(text, "| 8 × 128 | 90.0 MB | 60.0 MB | -33.3 % |\n| 8 × 256 | ");       /* the smaller first */
    assert_has(text, "| 8 × 2048 | 6.39 GB (does not fit) | 919 MB | -85.6 % |\n| 16 × 256 | 500 MB | 240 MB | -52.0 % |\n");
    assert_has(text, "| 3 trades | mixed-precision | high | 1.21× | not tried | operands of products in bf16 |\n");
    assert_has(text, "- **fused-optimizer** (dropped): slower: × 0.960");
    assert_has(text, "| optimize.passes | none | \\[flash-attention, fuse-loss\\] |\n");
    assert_has(text, "Use it: hone train runs/a b/tuned.yaml\n");
    free(text);
    json_decref(j);
}

static void the_text_leaves_out_what_there_is_not(void **state)
{
    (void)state;
    json_t *j = document_of(empty_result());
    char *text = text_of(report_tune_write_markdown, j);
    assert_has(text, "There was nothing to try");
    assert_has(text, "tuned.yaml is base.yaml, the config as given: nothing was changed.");
    assert_null(strstr(text, "## Before and after"));
    assert_null(strstr(text, "## Roadmap"));
    assert_null(strstr(text, "nan"));
    free(text);
    json_decref(j);

    j = document_of(interrupted_result());
    text = text_of(report_tune_write_markdown, j);
    assert_has(text, "It was interrupted: this is what had been proved by then.");
    assert_has(text, "| flash-attention | `███████████████████▒▒▒▒▒` | 1.25× | – |\n");
    free(text);
    json_decref(j);

    j = json_object();                                          /* a document that lost its fields */
    text = text_of(report_tune_write_markdown, j);
    assert_null(strstr(text, "nan"));
    free(text);
    json_decref(j);
}

static void names_stay_text(void **state)
{
    (void)state;
    json_t *j = document_of(hostile_result());
    char *text = text_of(report_tune_write_markdown, j);
    assert_null(strstr(text, "<img"));
    assert_null(strstr(text, "[a]("));
    assert_null(strstr(text, "nan"));
    free(text);
    text = text_of(report_tune_write_html, j);
    assert_null(strstr(text, "<img"));
    assert_null(strstr(text, "</script><"));
    assert_has(text, "\\u003c/script\\u003e");
    free(text);
    json_decref(j);
}

/* ---- the page ---- */

static void the_page_is_one_file_with_the_data(void **state)
{
    (void)state;
    json_t *j = document_of(sample_result());
    char *text = text_of(report_tune_write_html, j);
    assert_has(text, "<title>sample · hone tune</title>");
    assert_has(text, "<h1 id=\"headline\">A step is 1.37 times as fast as the program without passes (1.33 to 1.41), memory 262 → 124 MB</h1>");
    assert_has(text, "\"pass\":\"fuse-qkv+fuse-residual-norm+hoist-constants\"");
    assert_has(text, "<section id=\"waterfall\">");
    assert_null(strstr(text, "{{"));
    assert_null(strstr(text, " src="));
    assert_null(strstr(text, "<link rel=\"stylesheet\""));
    assert_has(text, "default-src 'none'");
    assert_non_null(at(j, "stages"));                           /* the document is still the caller's */
    free(text);
    json_decref(j);
}

static const struct { const char *name; struct tune_result *(*make)(void); } results[] = {
    {"sample", sample_result}, {"empty", empty_result}, {"vain", vain_result}, {"taken-back", taken_back_result},
    {"interrupted", interrupted_result},
    {"hostile", hostile_result}};

static int write_one(const char *folder, const char *name, const json_t *j)
{
    char path[512], file[600];
    struct error err;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *html = text_of(report_tune_write_html, j), *json = json_dumps(j, JSON_REAL_PRECISION(12));
    enum status st = fs_make_dirs(path, &err);
    snprintf(file, sizeof file, "%s/report.html", path);
    if (st == OK)
        st = fs_write_synced(file, html, strlen(html), &err);
    snprintf(file, sizeof file, "%s/report.json", path);
    if (st == OK)
        st = fs_write_synced(file, json, strlen(json), &err);
    free(html);
    free(json);
    return st == OK ? 0 : fprintf(stderr, "%s\n", err.text);
}

static int write_all(const char *folder)
{
    int failed = 0;
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        json_t *j = document_of(results[i].make());
        failed += write_one(folder, results[i].name, j) != 0;
        json_decref(j);
    }
    return failed;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "--write"))
        return write_all(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_document_says_what_the_result_says),
        cmocka_unit_test(kernels_are_counted),
        cmocka_unit_test(stages_go_on_from_what_was_kept),
        cmocka_unit_test(ideas_know_what_became_of_them),
        cmocka_unit_test(changes_are_the_keys_that_differ),
        cmocka_unit_test(what_was_not_measured_is_null),
        cmocka_unit_test(the_headline_fits_what_happened), cmocka_unit_test(the_headline_hides_nothing), cmocka_unit_test(what_is_kept_around_the_step_is_said), cmocka_unit_test(an_interval_says_what_it_rests_on),
        cmocka_unit_test(numbers_are_one_set), cmocka_unit_test(what_was_judged_is_told),
        cmocka_unit_test(what_does_not_fit_is_marked), cmocka_unit_test(the_text_has_every_part),
        cmocka_unit_test(the_text_leaves_out_what_there_is_not),
        cmocka_unit_test(names_stay_text),
        cmocka_unit_test(the_page_is_one_file_with_the_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
