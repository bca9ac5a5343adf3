/* The report as text: names stay text in the page, in Markdown and in a terminal; what each form says; profiles with little
 * in them. */
#include "report/terminal_int.h"
#include "report_check.h"
#include "report_profile.h"

/* ---- names stay text ---- */

static void hostile_names_stay_text_in_the_page(void **state)
{
    (void)state;
    struct profile *tame = sample_profile(), *p = hostile_profile();
    char *before = written(report_write_html, tame), *html = written(report_write_html, p);
    assert_has_not(html, "alert(1)</script");
    assert_has_not(html, "<script>alert");
    assert_has_not(html, "\x1b[31m");
    assert_has_not(html, "\xe2\x80\xa8");
    static const char *const markup[] = {"<script", "</script", "<!--", "<title", "</title", "<h1"};
    for (size_t i = 0; i < sizeof markup / sizeof *markup; i++)
        assert_int_equal(occurrences(html, markup[i]), occurrences(before, markup[i]));
    assert_has(html, "<title>&#60;/script&#62;&#60;script&#62;alert(1)");

    const char *start = strstr(html, "id=\"report-data\">");
    assert_non_null(start);
    start = strchr(start, '>') + 1;
    char *json = strndup(start, (size_t)(strstr(start, "</script>") - start));
    json_t *j = parsed(json);
    assert_has(words(j, "model.name"), "</script><script>alert(1)</script><!-- & \" ' \\ \x1b[31m\n\x01 \xef\xbf\xbd\xef\xbf\xbd(");
    assert_has(words(j, "model.name"), "\xf0\x9f\x94\xa5");
    json_decref(j);
    free(json);
    free(before);
    free(html);
    sample_free(tame);
    sample_free(p);
}

static void hostile_names_stay_text_in_markdown(void **state)
{
    (void)state;
    struct profile *p = hostile_profile();
    char *md = written(report_write_markdown, p), *config = strstr(md, "## Config");
    assert_non_null(config);
    *config = 0;                                /* the config is an indented block: text whatever it says */
    assert_has_not(md, "<script");
    assert_has_not(md, "@all");
    assert_has_not(md, "#1 ");
    assert_has_not(md, "[x](");
    assert_has_not(md, "\x1b");
    assert_has(md, "# Profile of &#60;/script&#62;&#60;script&#62;alert(1)&#60;/script&#62;");
    assert_has(md, "\\[x\\](http:&#47;/y) \\|\\`\\*\\_\\~");
    assert_has(md, "\xf0\x9f\x94\xa5");
    free(md);
    sample_free(p);
}

static void hostile_names_keep_every_json_valid(void **state)
{
    (void)state;
    static writer *const writers[] = {report_write_json, report_write_flops, report_write_intensity, report_write_roofline};
    struct profile *p = hostile_profile();
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
        json_decref(document(writers[i], p));
    sample_free(p);
}

/* ---- the page ---- */

static void the_page_is_complete_and_closed(void **state)
{
    (void)state;
    struct profile *p = sample_profile();
    char *a = written(report_write_html, p), *b = written(report_write_html, p);
    assert_has(a, "default-src 'none'; script-src 'nonce-");
    assert_has_not(a, "unsafe-inline");
    assert_has_not(a, "{{");
    assert_has_not(a, " src=");
    assert_has(a, "d3js.org v5");
    assert_string_not_equal(a, b);                              /* every page has a nonce of its own */
    const char *nonce = strstr(a, "'nonce-") + 7;
    char *attribute = arena_printf(&p->arena, "nonce=\"%.36s\"", nonce);
    assert_int_equal(occurrences(a, attribute), 3);
    free(a);
    free(b);
    sample_free(p);
}

/* ---- Markdown and terminal ---- */

static void markdown_fits_an_issue_comment(void **state)
{
    (void)state;
    struct profile *p = sample_profile();
    p->layers = 48;
    p->n_split = p->n_gaps = 8;
    p->findings = arena_alloc(&p->arena, 40 * sizeof *p->findings);
    p->n_findings = 40;
    p->run.steps = 1000;
    p->run.seconds = 300;
    for (int i = 0; i < 40; i++)
        p->findings[i].saves_s = 100;
    char config[3000] = "";
    for (int i = 0; i < 200; i++)
        strcat(config, "a: b\n");
    p->config_yaml = config;
    char *md = written(report_write_markdown, p);
    assert_in_range(occurrences(md, "\n"), 150, 199);
    assert_has(md, "The whole config is in report.json.");
    assert_has(md, "| 15 |");
    assert_has_not(md, "| 16 |");
    free(md);
    sample_free(p);
}

/* Fixes of little effort that are worth a word, the largest saving first, in seconds of the run. */
static void quick_wins_in_seconds(void **state)
{
    (void)state;
    struct profile *p = sample_profile();
    char *md = written(report_write_markdown, p);
    assert_has_not(md, "The whole run");            /* its length is not known */
    free(md);
    p->run.steps = 2000;
    p->run.seconds = 300;
    p->run.evaluation_s = 12.34;
    p->findings[1].saves_s = 12;                    /* unfused-optimizer */
    p->findings[2].saves_s = 63;                    /* unfused-projections */
    p->findings[3].saves_s = 1;                     /* constant-rebuilt: too little */
    p->findings[4].saves_s = 90;                    /* small-batch: high effort here */
    md = written(report_write_markdown, p);
    assert_has(md, "\n## The whole run\n\nAt this speed 2000 steps take 300 s, 12.3 s of it evaluation. Each alone, of that: unfused-projections saves 63.0 s (21.0 %), "
                   "unfused-optimizer saves 12.0 s (4.0 %).\n\n");
    free(md);
    sample_free(p);
}

static void seconds_as_people_say_them(void **state)
{
    number_text n;
    (void)state;
    assert_string_equal(report_show_seconds(0.004, n), "4.00 ms");
    assert_string_equal(report_show_seconds(0, n), "0 s");
    assert_string_equal(report_show_seconds(0.9996, n), "1.00 s");
    assert_string_equal(report_show_seconds(9.994, n), "9.99 s");
    assert_string_equal(report_show_seconds(9.996, n), "10.0 s");
    assert_string_equal(report_show_seconds(99.96, n), "100 s");
    assert_string_equal(report_show_seconds(599.6, n), "10:00 min");
    assert_string_equal(report_show_seconds(3599, n), "59:59 min");
    assert_string_equal(report_show_seconds(7384, n), "2:03:04 h");
    assert_string_equal(report_show_seconds(NAN, n), "–");
}

/* What TensorBoard shows of the ops: both tables, and nothing else of the report. */
static void operations_alone(void **state)
{
    (void)state;
    struct profile *p = sample_profile();
    char *md = written(report_write_operations, p);
    assert_has(md, "A step takes ");
    assert_has(md, "| kind | ops | self | share |");
    assert_has(md, "| op | kind | phase | bound | self |");
    assert_has_not(md, "## Findings");
    assert_true(occurrences(md, "\n| ") >= 20);
    free(md);
    sample_free(p);
}

static void markdown_has_the_numbers(void **state)
{
    (void)state;
    struct profile *p = sample_profile();
    char *md = written(report_write_markdown, p);
    assert_has(md, "- **Found:** 5 findings: 1 high, 1 medium, 3 low\n");
    assert_has(md, "| impact | low effort | medium effort | high effort |\n|---|---|---|---|\n| high | | no-flash-attention | |\n");
    assert_has(md, "| low | unfused-projections, constant-rebuilt | | small-batch |\n");
    assert_has(md, "| 1. Quick wins | unfused-optimizer, unfused-projections | 1.09× (1.04×–1.14×) |\n");
    assert_has(md, "## Check list\n\n- [ ] no-flash-attention: --set optimize.flash-attention=on gives 1.27× (1.18× to 1.36×)\n");
    assert_has(md, "- [ ] small-batch: fixed, it gives 1.04× samples/s (0.98× to 1.10×)\n");
    assert_true(strstr(md, "## Findings") < strstr(md, "## Iteration"));
    assert_has(md, "# Profile of tinyllama-small\n");
    assert_has(md, p->headline);
    assert_has(md, "| speed | ");
    assert_has(md, " of 80.0 G FLOP/s measured in f32; band 40-60 % |");
    assert_has(md, "| peak | 80.0 GFLOP/s (f32 matrix product), L1 ");
    assert_has(md, "| lm_head.grad | matmul | backward | compute |");
    assert_has(md, "| high | no-flash-attention | 31.0 % | 1.27× (1.18×–1.36×) | medium | blocks.\\*.attn |");
    assert_has(md, "at their peak, while ");
    assert_has(md, "    model:\n      arch: llama\n");
    free(md);
    sample_free(p);
}

static void markdown_has_the_peak_of_bf16(void **state)
{
    (void)state;
    struct profile *p = bf16_profile();
    char *md = written(report_write_markdown, p);
    assert_has(md, " of 160 G FLOP/s measured in bf16; band 40-60 % |");
    assert_has(md, "| peak | 80.0 GFLOP/s (f32 matrix product), 160 GFLOP/s (bf16), L1 ");
    free(md);
    sample_free(p);
}

static __attribute__((noinline)) char *terminal(const struct profile *p, bool color)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    report_print_terminal(p, to, color);
    assert_int_equal(fclose(to), 0);
    return text;
}

/* Evaluation is beside the step, and no part of it. */
static void shares_say_what_they_are_of(void **state)
{
    (void)state;
    struct profile *p = sample_profile();
    p->findings[0].with_evaluation = true;
    char *md = written(report_write_markdown, p), *json = written(report_write_json, p), *shown = terminal(p, false);
    assert_has(md, "| no-flash-attention | 31.0 % of steps with their evaluation | ");
    assert_has(md, "| unfused-optimizer | 9.0 % | ");
    assert_has(shown, "31.0 % of steps with their evaluation, expected 1.27×");
    assert_has(shown, "9.0 % of the step, expected 1.06×");
    json_t *j = parsed(json);
    assert_true(json_is_true(at(j, "findings.0.with_evaluation")) && json_is_false(at(j, "findings.1.with_evaluation")));
    json_decref(j);
    free(md);
    free(json);
    free(shown);
    sample_free(p);
}

/* Of a GPU the values' peak is not what is of the memory that was there. */
static void available_memory_is_told_of_the_right_thing(void **state)
{
    (void)state;
    struct profile *cpu = sample_profile(), *gpu = gpu_profile();
    char *a = terminal(cpu, false), *b = terminal(gpu, false);
    assert_has(a, " of it at their peak; process ");
    assert_has(a, " of 8.00 GB\n");
    assert_has(b, " of it at their peak; 8.00 GB available\n");
    free(a);
    free(b);
    sample_free(cpu);
    sample_free(gpu);
}

static void check_cut(char *cut, const char *wanted)
{
    assert_string_equal(cut, wanted);
    free(cut);
}

/* Letters of East Asia have two columns, and one that would stand half outside is left out. */
static void columns_of_wide_letters(void **state)
{
    (void)state;
    assert_int_equal(report_columns("größe"), 5);
    assert_int_equal(report_columns("日本 한 🔥"), 4 + 1 + 2 + 1 + 2);
    static const char *const pictures[] = {"⌚", "⏩", "◽", "☔", "♈", "♓", "♿", "⚓", "⚡", "⚪", "⚫", "⚽", "⛄", "⛎", "⛔", "⛪", "⛲", "⛵", "⛺", "⛽", "✅", "✊",
                                           "✨", "❌", "❎", "❓", "❕", "❗", "➕", "➗", "➰", "➿", "⬛", "⭐", "⭕", "🌀", "🚀", "🟢", "🤖", "🥇", "🧠", "🪐", "🫠", "🃏", "🆗", "🈁", "ｗ", "￥", "〈"};
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++)
        if (report_columns(pictures[i]) != 2)
            fail_msg("'%s' has %zu columns", pictures[i], report_columns(pictures[i]));
    static const char *const narrow[] = {"é", "→", "☀", "✓", "❤", "▁", "█", "€", "ﾊ", "🌡", "🇩", "\u00AD", "\uFFFD"};
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
        if (report_columns(narrow[i]) != 1)
            fail_msg("'%s' has %zu columns", narrow[i], report_columns(narrow[i]));
    assert_int_equal(report_columns("e\u0301 \u200Ba\u20DD ก\u0E34 ✓\uFE0E \uFEFF\u200D"), 8);
    assert_int_equal(report_columns("👩\u200D🔬"), 4);
    check_cut(report_cut("e\u0301e\u0301e\u0301", 3), "e\u0301e\u0301e\u0301");       /* a mark stays with its letter */
    check_cut(report_cut("e\u0301e\u0301e\u0301", 1), "e\u0301…");
    check_cut(report_cut_middle("ae\u0301e\u0301bcd\u0301e\u0301", 5, 2), "ae\u0301…d\u0301e\u0301");
    check_cut(report_cut("e\u0301\u0301\u0301\u0301\u0301\u0301abc", 2), "e\u0301\u0301\u0301\u0301\u0301\u0301a…");
    for (size_t i = 1; i < columns_ranges_n; i++)
        assert_true(columns_ranges[i - 1].last < columns_ranges[i].first && columns_ranges[i].first <= columns_ranges[i].last);
    check_cut(report_cut("日本語", 6), "日本語");
    check_cut(report_cut("日本語", 5), "日本…");
    check_cut(report_cut("日本語", 4), "日本…");
    check_cut(report_cut_middle("日本語の名前", 9, 4), "日本…名前");
    check_cut(report_cut_middle("abcdefghij", 7, 3), "abc…hij");
    char *text = NULL;
    size_t size = 0;
    const struct screen s = {open_memstream(&text, &size), false};
    screen_put_padded(&s, "日本語", 6);
    screen_put_padded(&s, "日本語", 5);
    screen_put_padded(&s, "日本語", 4);
    screen_put_padded(&s, "日本", 5);
    assert_int_equal(fclose(s.to), 0);
    assert_string_equal(text, "日本語日本…日… 日本 ");
    free(text);
}

static void one_is_not_many(void **state)
{
    (void)state;
    struct profile *p = sample_profile();
    p->steps = 1;
    p->run.steps = 1;
    p->run.seconds = 2;
    p->n_kinds = 7;
    char *md = written(report_write_markdown, p), *shown = terminal(p, false);
    assert_has(md, "; 1 step) |\n");
    assert_has(md, "At this speed 1 step takes 2.00 s.\n");
    assert_has(shown, "p10 to p90 of 1 step; ");
    assert_has(shown, "  and 1 more kind\n");
    free(md);
    free(shown);
    sample_free(p);
}

static void the_terminal_says_which_peak_mfu_is_of(void **state)
{
    (void)state;
    struct profile *p = bf16_profile();
    char *plain = terminal(p, false);
    assert_has(plain, " of 160 G FLOP/s in bf16, band 40-60 %");
    free(plain);
    sample_free(p);
}

static void the_terminal_is_plain_or_coloured(void **state)
{
    (void)state;
    struct profile *p = sample_profile();
    char *plain = terminal(p, false), *color = terminal(p, true);
    assert_has_not(plain, "\x1b");
    assert_has_not(plain, "█");
    assert_has(plain, p->headline);
    assert_has(plain, "samples/s");
    assert_has(plain, "no-flash-attention");
    assert_has(plain, " of 80.0 G FLOP/s in f32, band 40-60 %");
    assert_has(color, "\x1b[1m");
    assert_has(color, "█");
    assert_has(plain, "Largest bottlenecks, 5 findings: 1 high, 1 medium, 3 low\n");
    assert_has(plain, "1  Quick wins");
    assert_true(occurrences(plain, "\n") < 55);
    free(plain);
    free(color);
    sample_free(p);

    p = hostile_profile();
    plain = terminal(p, false);
    assert_has_not(plain, "\x1b");                              /* a name cannot drive the terminal */
    assert_has_not(plain, "\x01");
    free(plain);
    sample_free(p);
}

/* ---- little in it ---- */

static void assert_no_nan(const char *text)
{
    assert_has_not(text, "nan");
    assert_has_not(text, "NaN");
    assert_has_not(text, "inf,");
    assert_has_not(text, ": inf");
}

static void try_all(const struct profile *p)
{
    static writer *const writers[] = {report_write_json, report_write_flops, report_write_intensity, report_write_roofline};
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
        json_decref(document(writers[i], p));
    char *texts[] = {written(report_write_html, p), written(report_write_markdown, p), terminal(p, true), terminal(p, false)};
    for (size_t i = 1; i < sizeof texts / sizeof *texts; i++)
        assert_no_nan(texts[i]);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
}

static void an_empty_profile_is_reported(void **state)
{
    (void)state;
    const struct profile empty = {0};
    try_all(&empty);
    json_t *j = document(report_write_json, &empty);
    assert_int_equal(json_array_size(at(j, "ops")), 0);
    assert_true(json_is_null(at(j, "model.name")));
    assert_true(json_is_null(at(j, "step.recording_overhead_percent")));
    assert_true(json_is_null(at(j, "memory.peak_op")));
    assert_true(json_is_null(at(j, "counters")));
    json_decref(j);
    j = document(report_write_intensity, &empty);
    assert_true(json_is_null(at(j, "memory_bound_vs_compute_bound")));
    json_decref(j);
}

static void a_profile_of_one_op_is_reported(void **state)
{
    (void)state;
    struct profile p = {.threads = 1, .steps = 1, .batch = 1, .seq = 1, .step_us = 10, .loss = NAN,
                        .samples_per_s = INFINITY, .mfu_percent = NAN, .n_ops = 1, .n_kinds = 1};
    struct profile_op op = {.name = "fill", .kind = "fill", .phase = PHASE_FORWARD, .layer = NO_LAYER, .self_us = 10};
    struct profile_kind kind = {.kind = "fill", .count = 1, .self_us = 10};
    struct profile_memory_point point = {.activations = 4};
    p.ops = &op;
    p.kinds = &kind;
    p.memory = &point;
    p.peak_bytes = 4;
    try_all(&p);
    json_t *j = document(report_write_json, &p);
    assert_true(json_is_null(at(j, "step.loss")));
    assert_true(json_is_null(at(j, "step.samples_per_s")));
    assert_number(j, "ops.0.share", 1);
    assert_number(j, "ops.0.gflops_per_s", 0);
    assert_true(json_is_null(at(j, "ops.0.intensity")));
    assert_has(words(j, "memory.peak_words"), "Values take 4 B at their peak, while fill runs (forward, op 1 of 1): activations 4 B (100.0 %).");
    json_decref(j);
}

/* What a GPU is and did, and no word of threads or instruction sets. */
static void a_gpu_has_words_of_its_own(void **state)
{
    (void)state;
    struct profile *p = gpu_profile();
    char *texts[] = {written(report_write_markdown, p), terminal(p, false)};
    for (int i = 0; i < 2; i++) {
        assert_non_null(strstr(texts[i], i ? "NVIDIA H200" : "| ops timed by | CUPTI's records of kernels |"));
        assert_non_null(strstr(texts[i], "321"));
        assert_non_null(strstr(texts[i], "SM clock 1980 to 1980 MHz"));
        assert_non_null(strstr(texts[i], "counting what lies between and around the steps"));
        assert_true(i || strstr(texts[i], "idle between kernels"));         /* too little for the screen */
        assert_null(strstr(texts[i], "thread"));
        assert_null(strstr(texts[i], "instruction"));
        assert_null(strstr(texts[i], "BLAS"));
        free(texts[i]);
    }
    json_t *j = document(report_write_json, p);
    assert_string_equal(words(j, "machine.gpu.name"), "NVIDIA H200");
    assert_number(j, "machine.gpu.kernels_per_step", 321);
    assert_number(j, "machine.gpu.busy_percent", 87);
    assert_number(j, "machine.peaks.gpu.launched_us", 3.25);
    assert_string_equal(words(j, "timeline.tracks.1.name"), "GPU");
    json_decref(j);
    sample_free(p);
    p = sample_profile();
    j = document(report_write_json, p);
    assert_true(json_is_null(at(j, "machine.gpu")) && json_is_null(at(j, "machine.peaks.gpu")));
    json_decref(j);
    sample_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_has_words_of_its_own),
        cmocka_unit_test(hostile_names_stay_text_in_the_page),
        cmocka_unit_test(hostile_names_stay_text_in_markdown),
        cmocka_unit_test(hostile_names_keep_every_json_valid),
        cmocka_unit_test(the_page_is_complete_and_closed),
        cmocka_unit_test(markdown_fits_an_issue_comment),
        cmocka_unit_test(shares_say_what_they_are_of),
        cmocka_unit_test(available_memory_is_told_of_the_right_thing),
        cmocka_unit_test(columns_of_wide_letters),
        cmocka_unit_test(one_is_not_many),
        cmocka_unit_test(quick_wins_in_seconds), cmocka_unit_test(seconds_as_people_say_them), cmocka_unit_test(operations_alone), cmocka_unit_test(markdown_has_the_numbers),
        cmocka_unit_test(markdown_has_the_peak_of_bf16),
        cmocka_unit_test(the_terminal_is_plain_or_coloured),
        cmocka_unit_test(the_terminal_says_which_peak_mfu_is_of),
        cmocka_unit_test(an_empty_profile_is_reported),
        cmocka_unit_test(a_profile_of_one_op_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
