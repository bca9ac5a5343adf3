/* hone bench */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench.h"
#include "core/arena.h"
#include "core/delay.h"
#include "lib/peaks.h"
#include "report/report.h"
#include "train/train.h"

enum { CASE_COLUMNS = 20 };

/* Null where the peak of the device is not known. */
static json_t *known(double x, const struct bench_result *r) { return r->mfu_peak.gflops > 0 ? json_real(x) : json_null(); }

/* What happened to the GPU, or that other work had the cores. */
static bool result_warning(const struct bench_result *r, char out[WATCH_WORDS]) { return gpu_watch_warning(&r->gpu, out) || delay_warning(r->delayed_share, out); }

static json_t *result_json(const char *name, const struct bench_result *r)
{
    json_t *loss = isfinite(r->loss) ? json_real(r->loss) : json_null();
    char passes[PASSES_TEXT_MAX];
    json_t *kernels = r->kernels >= 0 ? json_real(r->kernels) : json_null();
    char warning[WATCH_WORDS];
    json_t *told = result_warning(r, warning) ? json_text(warning) : json_null(), *delayed = r->delayed_share < 0 ? json_null() : json_real(r->delayed_share);
    return json_pack("{s:o, s:o, s:I, s:b, s:o, s:o, s:s, s:s, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:s, s:s, s:o, s:I, s:i, s:s}", "case", json_text(name), "warning", told, "vocab", (json_int_t)r->vocab,
                     "vocab_assumed", r->vocab_assumed, "delayed_share", delayed, "kernels_per_step", kernels,
                     "device", r->device, "device_name", r->device_name, "threads", r->threads, "ms_per_step", r->ms_per_step, "ms_spread", r->ms_spread,
                     "samples_per_s", r->samples_per_s, "tokens_per_s", r->tokens_per_s, "peak_mb", r->peak_mb, "planned_mb", r->planned_mb,
                     "tflops", r->tflops, "mfu_percent", known(r->mfu_percent, r), "mfu_peak_gflops", known(r->mfu_peak.gflops, r),
                     "mfu_peak_type", numbers_name(r->mfu_peak.numbers), "mfu_peak_of", products_peak_word(r->mfu_peak), "loss", loss,
                     "steps", (json_int_t)r->steps, "ops_per_step", r->ops,
                     "passes", train_passes_text(r->places, passes));
}

static void print_result(const char *name, const struct bench_result *r, bool first)
{
    char passes[PASSES_TEXT_MAX], warning[WATCH_WORDS];
    if (first)
        printf("%-*s %7s %12s %9s %11s %11s %9s %9s %8s %7s %-4s %6s  %s\n", CASE_COLUMNS, "case", "threads", "ms/step", "spread", "samples/s",
               "tokens/s", "peak MB", "plan MB", "TFLOP/s", "MFU %", "of", "ops", "passes");
    report_put_padded(stdout, name, CASE_COLUMNS);
    printf(" %7d %12.3f %9.3f %11.1f %11.0f %9.1f %9.1f %8.4f %7.1f %-4s %6d  %s\n", r->threads, r->ms_per_step, r->ms_spread,
           r->samples_per_s, r->tokens_per_s, r->peak_mb, r->planned_mb, r->tflops, r->mfu_percent, numbers_name(r->mfu_peak.numbers),
           r->ops, train_passes_text(r->places, passes));
    fflush(stdout);
    if (result_warning(r, warning))
        fprintf(stderr, "%swarning:%s %s\n", style(stderr, "yellow"), style(stderr, "off"), warning);
    if (r->vocab_assumed)
        bench_say_vocab(r->vocab);
}

static json_t *components_json(const struct bench_component *list, int n)
{
    json_t *j = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(j, json_pack("{s:s, s:f, s:f, s:i}", "name", list[i].name, "us", list[i].us, "floor_us",
                                           list[i].floor_us, "ops", list[i].ops));
    return j;
}

static void print_components(const struct bench_component *list, int n, const struct bench_result *r)
{
    const double step_ms = r->ms_per_step;
    printf("    %-16s %5s %13s %7s %13s %6s\n", "component", "ops", "µs", "share", "floor µs", "floor");        /* µ is two bytes */
    for (int i = 0; i < n; i++)
        if (!list[i].ops)
            printf("    %-16s %5s %12.1f %5.1f %%\n", list[i].name, "-", list[i].us, list[i].us / step_ms / 10);
        else
            printf("    %-16s %5d %12.1f %5.1f %% %12.1f %4.0f %%\n", list[i].name, list[i].ops, list[i].us,
               list[i].us / step_ms / 10, list[i].floor_us, list[i].us > 0 ? list[i].floor_us / list[i].us * 100 : 0);
    printf("    timing the ops: %.3f ms with, %.3f ms without, in turns: %+.1f %%\n", r->recorded_ms, r->unrecorded_ms,
           (r->recorded_ms / r->unrecorded_ms - 1) * 100);
}

/* Where results go: a JSON list, or a table whose head stands before the first case. */
struct output {
    json_t *results;
    bool components, started;
    struct batch_list *batches;             /* NULL: one batch, the config's own */
};

/* A step that beats the peak proves it wrong: it is measured again, and raised to what the step reached. */
static void judge_by_peaks(struct config *c, struct peaks *peaks, struct bench_result *r)
{
    const double reached = r->mfu_percent / 100 * r->mfu_peak.gflops;
    if (!(r->mfu_percent > 100))
        return;
    measure_peaks_again(c, peaks);
    double *peak = &peaks->gflops[r->mfu_peak.numbers];
    *peak = reached > *peak ? reached : *peak;
    peaks_remember(peaks, NULL);            /* no harm if it cannot be written */
    r->mfu_peak = peaks_products(peaks, r->mfu_peak.numbers);
    r->mfu_percent = 100 * reached / *peak;
}

static enum status bench_case(const struct config *given, double seconds, struct output *out, struct error *err)
{
    struct bench_component list[BENCH_COMPONENTS];
    char words[THREADS_WORDS];          /* the table says how many */
    int n = 0;
    struct config c = *given;
    struct bench_result r;
    struct peaks peaks;
    if (!out->batches)
        train_settle_threads(&c, words);
    enum status st = known_peaks(&c, &peaks, NULL, err);
    if (st == OK && out->batches)
        return bench_batches(&c, out->batches, seconds, &peaks, out->results, err);
    if (st == OK)
        st = bench_run(&c, seconds, &peaks, &stop_requested, &r, out->components ? list : NULL, &n, err);
    if (st != OK)
        return st;
    judge_by_peaks(&c, &peaks, &r);
    if (out->results) {
        json_t *j = result_json(c.name, &r);
        if (out->components)
            json_object_update_new(j, json_pack("{s:o, s:f, s:f}", "components", components_json(list, n), "recorded_ms",
                                                r.recorded_ms, "unrecorded_ms", r.unrecorded_ms));
        json_array_append_new(out->results, j);
        return OK;
    }
    print_result(c.name, &r, !out->started);
    out->started = true;
    if (out->components)
        print_components(list, n, &r);
    return OK;
}

/* All before the first is measured: a name that is wrong costs no time. */
static enum status load_cases(struct config **out, const struct text_list *cases, const struct text_list *sets, struct error *err)
{
    enum status st = OK;
    struct config *list = *out = xcalloc((size_t)cases->n, sizeof *list);
    for (int i = 0; i < cases->n && st == OK; i++)
        st = config_load(&list[i], cases->item[i], sets->item, sets->n, err);
    return st;
}

/* Once there is a result, who stops gets it. */
static enum status bench_cases(const struct config *cases, int n, double seconds, struct output *out, struct error *err)
{
    int done = 0;
    enum status st = OK;
    while (done < n && st == OK && (!done || !stop_requested)) {
        if (done)
            install_stop_handler();
        st = bench_case(&cases[done], seconds, out, err);
        done += st == OK;
    }
    if (!done || done == n || (st != OK && !err->stopped))
        return st;
    fprintf(stderr, "stopped before all cases were measured: %d of %d\n", done, n);
    return OK;
}

int cmd_bench(int argc, char **argv)
{
    struct text_list sets = {0}, cases = {0};
    struct picked device = {.words = device_words}, batches = {.words = (const char *const[]){"auto", NULL}};
    int64_t threads = INT64_MIN;        /* not given */
    double seconds = NAN;                /* not given */
    bool json = false, by_component = false;
    const struct option_def options[] = {
        {"--device", NULL, OPTION_WORD, &device, "the same as --set device=..."},
        {"--threads", "N", OPTION_INT, &threads, "the same as --set threads=N"},
        {"--seconds", "X", OPTION_REAL, &seconds, "time per case (default 6), or per batch size (default 2)"},
        {"--batches", "LIST", OPTION_OPEN, &batches, "speed and memory at these batch sizes (8,16,32), or at powers of two"},
        {"--set", "KEY=VALUE", OPTION_LIST, &sets, "override a key of the configs; may be repeated"},
        {"--components", NULL, OPTION_FLAG, &by_component, "also time forward, one block, attention, ... with their rooflines"},
        {"--json", NULL, OPTION_FLAG, &json, "print the results as one JSON document"},
        {0},
    };
    const struct usage usage = {
        "bench", "CASE...", "Times whole training steps on random tokens (256 different ones where model.vocab is 0): forward, backward,\n"
        "clipping and AdamW. A step time is a median. MFU counts 6 FLOPs per weight and token plus causal attention, over the\n"
        "measured peak of the machine in f32, or in bf16 where the step multiplies in it. Plan: memory for values and for what kernels\n"
        "work in; peak: of the process, with the program itself. With --batches: which sizes are too\n"
        "small, which is the sweet spot (the smallest within 5 % of the fastest) and which do not fit in memory; exit code 3\n"
        "where none does.", options,
        "  hone bench lecture-gpt-b4 tinyllama-ex3 --threads 2\n  hone bench my.yaml --set train.batch_size=64 --json\n"
        "  hone bench my.yaml --batches auto\n", 1, MAX_LIST};
    const enum parsed parsed = parse_options(&usage, argc, argv, &cases);
    if (parsed != PARSED_GO)
        return parsed == PARSED_HELP ? OK : BAD_INPUT;
    char device_set[64], threads_set[64];
    snprintf(device_set, sizeof device_set, "device=%s", device.text ? device.text : "");
    snprintf(threads_set, sizeof threads_set, "threads=%lld", (long long)threads);
    struct error err;
    struct batch_list sizes = {0};
    if (ranks_check_alone("bench", &err) != OK)
        return ranks_refuse(&err);
    if (isnan(seconds))
        seconds = batches.text ? 2 : 6;
    if (!(seconds > 0)) {
        error_set(&err, BAD_INPUT, "--seconds is %g; it must be above 0", seconds);
        return report_error(&err);
    }
    if (sets.n + 2 > MAX_LIST) {
        error_set(&err, BAD_INPUT, "--set is given %d times; at most %d are taken", sets.n, MAX_LIST - 2);
        return report_error(&err);
    }
    if (batches.text && by_component) {
        error_set(&err, BAD_INPUT, "--components is of one batch size; give it without --batches");
        return report_error(&err);
    }
    if (batches.text && batch_list_parse(&sizes, batches.text, &err) != OK)
        return report_error(&err);
    if (device.text)
        sets.item[sets.n++] = device_set;
    if (threads != INT64_MIN)
        sets.item[sets.n++] = threads_set;
    struct output to = {.results = json ? json_array() : NULL, .components = by_component, .batches = batches.text ? &sizes : NULL};
    struct config *configs;
    enum status st = load_cases(&configs, &cases, &sets, &err);
    if (batches.text)
        install_stop_handler();
    if (st == OK)
        st = bench_cases(configs, cases.n, seconds, &to, &err);
    free(configs);
    if (json && st == OK) {
        json_t *j = json_pack("{s:O}", batches.text ? "sweeps" : "results", to.results);
        st = print_document(j, 9, &err);
    }
    json_decref(to.results);
    if (st == OK && sizes.none_fits)
        return CANNOT;
    return st == OK ? OK : report_error(&err);
}
