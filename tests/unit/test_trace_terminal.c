/* The screens of an imported trace and of two traces side by side: what they say, that they fit 100 columns, that names
 * stay text, and traces with little in them. */
#include "report_check.h"

enum { SAMPLE_FINDINGS = 3, SAMPLE_RANKS = 3 };

struct sample {
    struct diagnosis d;
    struct trace_kernel kernels[7];
    struct trace_op ops[7];
    struct finding findings[12];
    struct trace_rank ranks[12];
    struct plan_phase phases[2];
};

static const int first_phase[] = {0, 2}, second_phase[] = {1};

static void sample_tables(struct sample *s)
{
    for (int i = 0; i < 7; i++) {
        s->kernels[i] = (struct trace_kernel){.name = i ? "void vectorized_elementwise_kernel<4, at::native::add>" : "ampere_gemm",
                                              .op = "aten::mm", .kind = "gemm", .count = 1200, .total_us = 9000 - 1000.0 * i,
                                              .mean_us = 7.5, .share = 0.31, .occupancy = 50};
        s->ops[i] = (struct trace_op){.name = i ? "aten::add" : "aten::mm", .count = 96, .launches = 96, .self_us = 812,
                                      .total_us = 900, .device_self_us = 9000, .device_us = 9000, .share = 0.25};
    }
    for (int i = 0; i < 12; i++)
        s->ranks[i] = (struct trace_rank){.rank = i, .path = "runs/a/rank.json", .steps = 4, .step_us = 38200, .kernel_us = 18000,
                                          .comm_us = 6000, .exposed_comm_us = 4000, .idle_us = 12000, .wait_us = i == 1 ? 0 : 3500, .straggler = i == 1};
}

static void sample_plan(struct sample *s)
{
    s->findings[0] = (struct finding){
        .rule = "host-bound", .severity = SEVERITY_HIGH, .effort = EFFORT_MEDIUM, .share = 0.31, .speedup = 1.42,
        .speedup_low = 1.3, .speedup_high = 1.6, .where = "train.py(12): step", .cause = "The device waits for the host.",
        .fix = "model = torch.compile(model)\nsecond_line()", .evidence = "812 launches"};
    s->findings[1] = (struct finding){
        .rule = "host-sync", .severity = SEVERITY_LOW, .effort = EFFORT_LOW, .share = 0.02, .speedup = 1.03, .speedup_low = 1,
        .speedup_high = 1.05, .where = "aten::item", .cause = "Reads a value.", .fix = "loss.detach()", .after = "host-bound"};
    s->findings[2] = (struct finding){
        .rule = "straggler", .severity = SEVERITY_MEDIUM, .effort = EFFORT_HIGH, .share = 0.1, .speedup = 1.1, .speedup_low = 1.05,
        .speedup_high = 1.15, .where = "rank 1", .cause = "Rank 1 comes last.", .fix = "even batches"};
    s->phases[0] = (struct plan_phase){.title = "Quick wins", .findings = first_phase, .n = 2, .speedup = 1.5, .low = 1.4, .high = 1.7};
    s->phases[1] = (struct plan_phase){.title = "Larger work", .findings = second_phase, .n = 1, .speedup = 1.55, .low = 1.4, .high = 1.8};
}

static struct sample sample_make(void)
{
    struct sample s = {.d = {
        .device = "NVIDIA H200", .name = "trace.json.gz", .n_steps = 4,
        .mean = {.total_us = 38200, .kernel_us = 18000, .memcpy_us = 120, .comm_us = 6000, .runtime_us = 4000, .dataloader_us = 900,
                 .cpu_us = 8000, .other_us = 1180, .busy_us = 24100, .kernels = 812, .launches = 830, .host_ops = 2100},
        .gpu = {.busy_us = 96400, .idle_us = 53600, .total_us = 150000, .computation_us = 72000, .comm_us = 24000,
                .exposed_comm_us = 16000, .idle_host_us = 50000, .idle_kernel_us = 3000, .idle_other_us = 600, .streams = 2},
        .launches = {.count = 3320, .per_step = 830, .call_us = 4.2, .delay_us = 8.1, .delay_p90_us = 31, .kernel_us = 6,
                     .queue_mean = 3.4, .queue_max = 120, .syncs = 4, .sync_us = 812},
        .memory_peak_bytes = 12.3e9, .memory_total_bytes = 143e9, .mean_occupancy = -1,
        .corrected = {.step_us = 29500, .low_us = 27000, .high_us = 31000, .recorded_us = 38200, .host_us = 21000,
                      .device_us = 24100, .cost_per_event_us = 4.14, .events_per_step = 2100, .idle_us = 5400,
                      .recorded_idle_us = 14100},
        .n_findings = SAMPLE_FINDINGS, .n_phases = 2, .n_ranks = 1, .n_kernels = 7, .n_ops = 7,
        .headline = "The step is bound by the host.", .bound_by = "host", .largest = "host-bound",
        .first_action = "Compile the model.", .realistic_gain = "1.4× to 1.8×"}};
    sample_tables(&s);
    sample_plan(&s);
    return s;
}

/* The arrays lie in the sample itself, so it must have come to rest. */
static __attribute__((noinline)) char *screen(struct sample *s, bool color)
{
    char *text = NULL;
    size_t size = 0;
    s->d.kernels = s->kernels;
    s->d.ops = s->ops;
    s->d.findings = s->findings;
    s->d.ranks = s->ranks;
    s->d.phases = s->phases;
    FILE *to = open_memstream(&text, &size);
    report_trace_print_terminal(&s->d, to, color);
    assert_int_equal(fclose(to), 0);
    return text;
}

static __attribute__((noinline)) char *diff_screen(const struct trace_diff *d, bool color)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    report_diff_print_terminal(d, to, color);
    assert_int_equal(fclose(to), 0);
    return text;
}

/* The widest line, in code points without colours. */
static size_t widest(const char *text)
{
    size_t most = 0, n = 0;
    bool escape = false;
    for (const char *c = text; *c; c++) {
        if (*c == '\n')
            n = 0;
        else if (*c == '\033')
            escape = true;
        else if (!escape && ((unsigned char)*c & 0xC0) != 0x80)
            n++;
        escape = escape && *c != 'm';
        most = n > most ? n : most;
    }
    return most;
}

static size_t lines_with(const char *text, const char *part) { return occurrences(text, part); }

/* ---- what the screen says ---- */

static void the_screen_says_what_the_diagnosis_says(void **state)
{
    (void)state;
    struct sample s = sample_make();
    char *t = screen(&s, false);
    assert_has(t, "trace · NVIDIA H200 · 4 steps, 812 kernels each\nThe step is bound by the host.\n");
    assert_has(t, "  as recorded           38.2 ms      24.1 ms   63.1 %      14.1 ms   36.9 %\n");
    assert_has(t, "  without profiler      29.5 ms      24.1 ms   81.7 %      5.40 ms   18.3 %  27.0 ms to 31.0 ms\n");
    assert_has(t, "the profiler's cost: 4.14 µs for each of 2.10 k host events in a step");
    assert_has(t, "  kernel                18.0 ms   47.1 %\n");
    assert_has_not(t, "  memset");                                        /* there is none */
    assert_has(t, "  host wait             50.0 ms   33.3 %  nothing was launched yet\n");
    assert_has(t, "  launches   830 per step, median call 4.20 µs, delay 8.10 µs (p90 31 µs)\n"
                  "  queue      3.40 launched and not finished on average, at most 120\n");
    assert_has(t, "  waits      4 calls in which the host waits for the device, 812 µs in all\n");
    assert_has(t, "  comm       24.0 ms, of which 16.0 ms (66.7 %) hidden by nothing\n");
    assert_has(t, "  memory     12.3 GB at the peak of 143 GB\n");
    assert_has(t, "bound by   host\n");
    assert_has(t, "realistic  1.4× to 1.8×\n");
    free(t);
}

static void the_iteration_has_its_phases(void **state)
{
    (void)state;
    struct trace_phase phases[] = {{"data", 0, 0, 0}, {"forward", 9500, 12200, 8100}, {"backward", 20000, 26000, 16000}};
    struct sample s = sample_make();
    s.d.iteration = phases;
    s.d.n_iteration = 3;
    char *t = screen(&s, false);
    assert_has(t, "\nIteration; time in which the GPU is idle goes to the phase that the host is in\n  without profiler         time    share     GPU busy    as recorded\n"
                  "  forward               9.50 ms   32.2 %      8.10 ms        12.2 ms\n"
                  "  backward              20.0 ms   67.8 %      16.0 ms        26.0 ms\n\nStep split");
    free(t);
    s.d.gpu.total_us = 0;
    s.d.n_ranks = 2;
    t = screen(&s, false);
    assert_has(t, "\nIteration, of the first rank\n");
    assert_has(t, "  forward               9.50 ms   32.2 %        12.2 ms\n");
    free(t);
    s.d.n_iteration = 0;
    s.d.iteration_note = "no op of a model is in the trace";
    t = screen(&s, false);
    assert_has(t, "  – no op of a model is in the trace\n");
    free(t);
}

static void several_devices_are_said_to_count_together(void **state)
{
    (void)state;
    struct sample s = sample_make();
    s.d.gpu.devices = 2;
    s.d.gpu.busiest_us = s.d.gpu.total_us / 4;
    char *t = screen(&s, false);
    assert_has(t, "\n  2 devices: they count as busy while one of them works and as idle while none does; the busiest\n  alone works 25.0 % of the time.\n");
    free(t);
}

/* Of which steps it is, and of a device only where there is one. */
static void the_recorded_step_says_which_steps_it_is_of(void **state)
{
    (void)state;
    struct sample s = sample_make();
    s.d.mean.total_us = 2 * s.d.corrected.recorded_us;
    char *t = screen(&s, false);
    assert_has(t, "  38.2 ms as recorded: of the steps that are judged, each without what the device had left of steps\n  before; the mean of all steps, with it, is 76.4 ms.\n");
    free(t);
    s.d.gpu.total_us = 0;
    s.d.judged_steps = 1;
    t = screen(&s, false);
    assert_has(t, "  38.2 ms as recorded: of the 1 of 4 steps that is judged; the mean of all steps is 76.4 ms.\n");
    free(t);
    s.d.judged_steps = 4;
    t = screen(&s, false);
    assert_has(t, "of the steps that are judged, with the time between them; the mean");
    free(t);
}

static void a_cost_that_rounds_to_nothing_is_not_told(void **state)
{
    (void)state;
    struct sample s = sample_make();
    s.d.corrected.cost_per_event_us = 1.3e-6;
    char *t = screen(&s, false);
    assert_has_not(t, "the profiler's cost");
    free(t);
}

static void tables_have_five_rows_of_cut_names(void **state)
{
    (void)state;
    struct sample s = sample_make();
    char *t = screen(&s, false);
    assert_int_equal(lines_with(t, "\n  ampere_gemm "), 1);
    assert_int_equal(lines_with(t, "\n  vectorized_elementwise_kern…::native::add> aten::mm "), 4);
    assert_int_equal(lines_with(t, "\n  aten::add "), 4);
    assert_has(t, "9.00 ms  31.0 % 1.20 k  7.50 µs\n");
    free(t);
}

static void shares_of_ops_say_what_they_are_of(void **state)
{
    (void)state;
    struct sample s = sample_make();
    char *t = screen(&s, false);
    assert_has(t, "  Shares are of all time on the device in steps.\n");
    free(t);
    s.d.no_op_share = 0.967;
    t = screen(&s, false);
    assert_has(t, "  Shares are of all time on the device in steps. No op launched 96.7 % of it: graphs,");
    assert_true(widest(t) <= 100);
    free(t);
    for (int i = 0; i < 7; i++)
        s.ops[i].device_self_us = 0;
    t = screen(&s, false);
    assert_has(t, "  Shares are of the self time of all ops on the host: which of them launched");
    free(t);
}

static void findings_have_gain_place_cause_and_first_line_of_the_fix(void **state)
{
    (void)state;
    struct sample s = sample_make();
    char *t = screen(&s, false);
    assert_has(t, "  high       host-bound            1.42× (1.30× to 1.60×), 31.0 % of the step, medium effort\n"
                  "             at   train.py(12): step\n"
                  "                  The device waits for the host.\n"
                  "             fix  model = torch.compile(model) …\n");
    assert_has_not(t, "second_line");
    assert_has(t, "             pays after host-bound\n");
    assert_has(t, "             fix  loss.detach()\n");
    assert_has(t, "  low        host-sync             1.03× (1.00× to 1.05×)");
    assert_has(t, "  1  Quick wins                    1.50× (1.40× to 1.70×)\n             host-bound, straggler\n");
    assert_has(t, "  2  Larger work                   1.55× (1.40× to 1.80×)\n             host-sync\n");
    free(t);
}

static void a_given_step_time_is_said_to_be_given(void **state)
{
    (void)state;
    struct sample s = sample_make();
    s.d.corrected.given = true;
    char *t = screen(&s, false);
    assert_has(t, "18.3 %  given\n");
    assert_has_not(t, "27.0 ms to");
    free(t);
}

/* Four low findings are shown, five are one line. */
static void many_low_findings_are_one_line(void **state)
{
    (void)state;
    struct sample s = sample_make();
    for (int i = 3; i < 6; i++)
        s.findings[i] = (struct finding){.rule = "zero-grad-fills", .severity = SEVERITY_LOW, .cause = "Fills.", .fix = "None"};
    s.d.n_findings = 6;
    char *four = screen(&s, false);
    assert_int_equal(lines_with(four, "  low        zero-grad-fills "), 3);
    s.findings[6] = s.findings[5];
    s.d.n_findings = 7;
    char *five = screen(&s, false);
    assert_has(five, "  low        host-sync, zero-grad-fills, zero-grad-fills, zero-grad-fills, zero-grad-fills\n");
    assert_int_equal(lines_with(five, "\n  low "), 1);
    assert_has(five, "  high       host-bound");
    free(four);
    free(five);
}

static void findings_beyond_the_screen_are_counted(void **state)
{
    (void)state;
    struct sample s = sample_make();
    for (int i = 0; i < 12; i++)
        s.findings[i] = s.findings[0];
    s.d.n_findings = 12;
    char *t = screen(&s, false);
    assert_int_equal(lines_with(t, "\n  high       host-bound"), 8);
    assert_has(t, "  and 4 more\n");
    free(t);
}

/* ---- ranks ---- */

static void ranks_are_a_table_when_there_are_several(void **state)
{
    (void)state;
    struct sample s = sample_make();
    char *one = screen(&s, false);
    assert_has_not(one, "\nRanks");
    s.d.n_ranks = SAMPLE_RANKS;
    char *several = screen(&s, false);
    assert_has(several, "\nRanks");
    assert_has(several, "       0   38.2 ms   18.0 ms   6.00 ms   4.00 ms   12.0 ms   3.50 ms  rank.json\n");
    assert_has(several, "0 µs  rank.json  ← straggler\n");
    assert_int_equal(lines_with(several, "straggler\n"), 2);              /* that row and the phase */
    s.d.n_findings = 2;                                                   /* no such finding: nobody is accused */
    s.ranks[1].straggler = false;
    s.d.n_phases = 0;
    char *even = screen(&s, false);
    assert_has_not(even, "straggler");
    free(one);
    free(several);
    free(even);
}

static void a_straggler_is_shown_however_many_ranks_there_are(void **state)
{
    (void)state;
    struct sample s = sample_make();
    s.d.n_ranks = 12;
    s.ranks[1].wait_us = 100;
    s.ranks[11].wait_us = 0;
    s.findings[2].where = "rank 11";
    s.ranks[1].straggler = false;
    s.ranks[11].straggler = true;
    char *t = screen(&s, false);
    assert_has(t, "\n      11 ");
    assert_has_not(t, "\n      10 ");
    assert_has(t, "12 ranks in all");
    free(t);
}

static void ranks_without_numbers_have_their_files(void **state)
{
    (void)state;
    static const char *const paths[] = {"runs/w.json", "runs/x.json", "runs/y.json"};
    struct sample s = sample_make();
    struct trace_collective row = {"all_reduce", 52428800, 3, 1, 920, 600, 920, 600, 87.4, 640, -1, 1, "a-file-with-a-rather-long-name.json"};
    s.d.n_ranks = SAMPLE_RANKS;
    s.d.collectives = &row;
    s.d.n_collectives = 1;
    for (int i = 0; i < SAMPLE_RANKS; i++) {
        s.ranks[i].rank = -1;
        s.ranks[i].path = paths[i];
        s.ranks[i].straggler = i == 2;
    }
    char *t = screen(&s, false);
    assert_has(t, "       –   38.2 ms   18.0 ms   6.00 ms   4.00 ms   12.0 ms   3.50 ms  w.json\n");
    assert_has(t, "3.50 ms  y.json  ← straggler\n");
    assert_has(t, "  640 µs  a-file-with-a-r…\n");
    assert_has_not(t, "-1");
    assert_true(widest(t) <= 100);
    free(t);
}

static void collectives_have_a_table(void **state)
{
    (void)state;
    struct sample s = sample_make();
    struct trace_collective rows[8] = {{"all_reduce", 52428800, 4096, 1, 920, 600, 920, 600, 87.4, 640, 4095, 1, "rank 4095"},
                                       {"broadcast", -1, 0, 2.5, 100, 0, 40, 38, 0, -1, -1, 0, NULL}};
    for (int i = 2; i < 8; i++)
        rows[i] = rows[1];
    s.d.n_ranks = 12;
    s.d.collectives = rows;
    s.d.n_collectives = 8;
    char *t = screen(&s, false);
    assert_has(t, "  all_reduce      52.4 MB  4096   1.00   920 µs   920 µs   600 µs   87.4   640 µs  4095, in 100.0 %\n");
    assert_has(t, "  broadcast             –     –   2.50    40 µs   100 µs     0 µs      –        –  –\n");
    assert_has(t, "8 kinds and sizes in all");
    assert_true(widest(t) <= 100);
    free(t);
}

/* ---- every screen ---- */

static void colours_and_bars_only_where_asked(void **state)
{
    (void)state;
    struct sample s = sample_make();
    s.d.n_ranks = SAMPLE_RANKS;
    char *plain = screen(&s, false), *color = screen(&s, true);
    assert_has_not(plain, "\033");
    assert_has_not(plain, "█");
    assert_has(color, "\033[1mThe step is bound by the host.\n");
    assert_has(color, "\033[31mhigh");
    assert_has(color, "█");
    assert_true(widest(plain) <= 100);
    assert_true(widest(color) <= 100);
    free(plain);
    free(color);
}

#define HOSTILE "</b>\x1b[31m\x07\n\x9b evil \xff\xfe \xe2\x80\xae" "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz012345" \
                "6789abcdefghijklmnopqrstuvwxyz0123456789"

static void hostile_names_stay_text(void **state)
{
    (void)state;
    struct sample s = sample_make();
    s.d.n_ranks = SAMPLE_RANKS;
    s.d.name = s.d.device = s.d.headline = s.d.bound_by = s.d.largest = s.d.first_action = s.d.realistic_gain = HOSTILE;
    for (int i = 0; i < 7; i++)
        s.kernels[i].name = s.kernels[i].op = s.ops[i].name = HOSTILE;
    for (int i = 0; i < SAMPLE_FINDINGS; i++) {
        struct finding *f = &s.findings[i];
        f->rule = f->where = f->cause = f->fix = f->after = HOSTILE;
        s.ranks[i].path = HOSTILE;
    }
    s.phases[0].title = HOSTILE;
    char *t = screen(&s, false);
    for (const char *c = t; *c; c++)
        assert_true(*c == '\n' || (unsigned char)*c >= 0x20);
    assert_has_not(t, "\x9b");
    assert_has_not(t, "\xe2\x80\xae");
    assert_true(widest(t) <= 100);
    free(t);
}

static void a_diagnosis_of_nothing_can_be_shown(void **state)
{
    (void)state;
    const struct diagnosis nothing = {.mean = {.total_us = NAN}, .corrected = {.step_us = NAN, .low_us = INFINITY}, .mean_occupancy = -1};
    struct sample s = {.d = nothing};
    char *t = screen(&s, true);
    assert_has(t, "unknown device");
    assert_has(t, "no rule found time to win");
    assert_has_not(t, "nan");
    assert_has_not(t, "inf ");
    assert_has_not(t, "GPU idle");
    assert_has_not(t, "Roadmap");
    free(t);
}

static void a_trace_without_steps_says_so(void **state)
{
    (void)state;
    struct sample s = sample_make();
    s.d.no_step_marks = true;
    s.d.n_steps = 1;
    char *t = screen(&s, false);
    assert_has(t, "NVIDIA H200 · one step (no step marks), 812 kernels\n");
    free(t);
}

/* ---- two traces ---- */

static void traces_that_take_as_long_are_as_fast(void **state)
{
    (void)state;
    static const struct { double a_us, b_us; const char *words; } cases[] = {
        {20000, 20000, "in B: B is as fast as A.\n"}, {20000, 20090, ": B is as fast as A.\n"}, {20090, 20000, ": B is as fast as A.\n"},
        {20000, 20110, ": B is 1.01× slower.\n"}, {20110, 20000, ": B is 1.01× faster.\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct trace_diff d = {.a = "a.json", .b = "b.json", .a_step_us = cases[i].a_us, .b_step_us = cases[i].b_us};
        char *t = diff_screen(&d, false);
        assert_has(t, cases[i].words);
        free(t);
    }
}

static void the_comparison_has_both_sides(void **state)
{
    (void)state;
    struct diff_row split[] = {{"kernel", 18000, 12000, 0, 0}, {"memset", 0, 0, 0, 0}, {"CPU op", 900, 1000, 0, 0}};
    struct diff_row ops[] = {{"aten::mm", 9000, 4000, 96, 48}, {"aten::new", 0, 500, 0, 12}};
    const struct trace_diff d = {.a = "before.json", .b = "after.json", .a_step_us = 40000, .b_step_us = 20000, .split = split,
                                 .n_split = 3, .ops = ops, .n_ops = 2, .ops_equal = 5, .ops_added = 3, .ops_removed = 1};
    char *t = diff_screen(&d, false), *color = diff_screen(&d, true);
    assert_has(t, "A          before.json\n  B          after.json\n");
    assert_has(t, "A step takes 40.0 ms in A and 20.0 ms in B: B is 2.00× faster.\n");
    assert_has(t, "    18.0 ms    12.0 ms    -6.00 ms\n");
    assert_has(t, "     900 µs    1.00 ms     +100 µs\n");
    assert_has_not(t, "memset");
    assert_has(t, "    9.00 ms    4.00 ms    -5.00 ms       96       48\n");
    assert_has(t, "the last step: 5 with equal counts, 3 only in B, 1 only in A\n");
    assert_has_not(t, "\033");
    assert_has(color, "\033[32m");
    assert_true(widest(t) <= 100);
    free(t);
    free(color);
}

static void a_slower_trace_is_called_slower(void **state)
{
    (void)state;
    struct diff_row ops[12];
    for (int i = 0; i < 12; i++)
        ops[i] = (struct diff_row){HOSTILE, 100, 200, 1, 2};
    const struct trace_diff d = {.a = HOSTILE, .b = HOSTILE, .a_step_us = 10, .b_step_us = 15, .ops = ops, .n_ops = 12};
    const struct trace_diff nothing = {.a_step_us = 0};
    char *t = diff_screen(&d, false), *empty = diff_screen(&nothing, false);
    assert_has(t, "B is 1.50× slower.");
    assert_has(t, "and 4 more");
    assert_has_not(t, "\033");
    assert_true(widest(t) <= 100);
    assert_has_not(empty, "faster");
    free(t);
    free(empty);
}

/* Two values for one word are explained where both are seen. */
static void a_mean_that_is_another_step_is_explained(void **state)
{
    (void)state;
    struct sample s = sample_make();
    char *same = screen(&s, false);
    assert_null(strstr(same, "the mean of all steps"));
    free(same);
    s.d.mean.total_us = 1.5 * s.d.corrected.recorded_us;
    char *t = screen(&s, false);
    assert_has(t, "each without what the device had");
    assert_has(t, "with it, is 57.3 ms.");
    free(t);
}

/* "each" is of steps that have equally many. */
static void kernels_of_unequal_steps_are_a_mean(void **state)
{
    (void)state;
    struct sample s = sample_make();
    struct trace_step steps[4] = {{.kernels = 812}, {.kernels = 812}, {.kernels = 800}, {.kernels = 824}};
    s.d.steps = steps;
    char *t = screen(&s, false);
    assert_has(t, "4 steps, 812 kernels on average\n");
    free(t);
}

static void what_a_fix_imports_is_not_its_first_line(void **state)
{
    (void)state;
    struct sample s = sample_make();
    s.findings[0].fix = "import os\nuse(os)\nmore()";
    s.findings[2].fix = "import os";                    /* there is no other */
    char *text = screen(&s, false);
    assert_has(text, "fix  use(os) …\n");
    assert_has(text, "fix  import os\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_screen_says_what_the_diagnosis_says),
        cmocka_unit_test(the_iteration_has_its_phases),
        cmocka_unit_test(several_devices_are_said_to_count_together),
        cmocka_unit_test(the_recorded_step_says_which_steps_it_is_of),
        cmocka_unit_test(a_cost_that_rounds_to_nothing_is_not_told),
        cmocka_unit_test(tables_have_five_rows_of_cut_names),
        cmocka_unit_test(shares_of_ops_say_what_they_are_of),
        cmocka_unit_test(findings_have_gain_place_cause_and_first_line_of_the_fix),
        cmocka_unit_test(a_given_step_time_is_said_to_be_given),
        cmocka_unit_test(many_low_findings_are_one_line),
        cmocka_unit_test(findings_beyond_the_screen_are_counted),
        cmocka_unit_test(ranks_are_a_table_when_there_are_several),
        cmocka_unit_test(ranks_without_numbers_have_their_files),
        cmocka_unit_test(a_straggler_is_shown_however_many_ranks_there_are),
        cmocka_unit_test(collectives_have_a_table),
        cmocka_unit_test(colours_and_bars_only_where_asked),
        cmocka_unit_test(hostile_names_stay_text),
        cmocka_unit_test(a_diagnosis_of_nothing_can_be_shown),
        cmocka_unit_test(a_trace_without_steps_says_so),
        cmocka_unit_test(a_mean_that_is_another_step_is_explained),
        cmocka_unit_test(kernels_of_unequal_steps_are_a_mean),
        cmocka_unit_test(traces_that_take_as_long_are_as_fast),
        cmocka_unit_test(the_comparison_has_both_sides),
        cmocka_unit_test(a_slower_trace_is_called_slower),
        cmocka_unit_test(what_a_fix_imports_is_not_its_first_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
