/* hone doctor: what this machine is, what it reaches, and whether a config is all right on it. */
#include <hwloc.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/statvfs.h>
#include <yaml.h>

#include "cli/doctor.h"
#include "core/json_whole.h"
#include "data/data.h"
#include "lib/peaks.h"
#include "model/model.h"
#include "ops/cpu/bf16.h"
#include "ops/cpu/cpu.h"
#include "passes/passes.h"
#include "train/train.h"

struct machine {
    struct cpu_machine cpu;
    struct peaks peaks, one;                /* all threads, and one */
    struct doctor_pace pace;                /* of all threads */
    double free_memory_bytes, free_disk_bytes;
    struct doctor_gpu gpu;
    struct doctor_ranks ranks;
    struct doctor_disk disk;
};

/* ---- the machine ---- */

static enum status measure_peaks(int threads, const struct cpu_machine *cpu, struct peaks *out, struct doctor_pace *pace, struct error *err)
{
    struct backend *b;
    const enum status st = cpu_backend_new(&b, threads, false, err);
    if (st != OK)
        return st;
    cpu_measure_peaks(b, cpu, out);
    peaks_remember(out, NULL);              /* so that others need not measure; no harm if it cannot be written */
    if (pace)
        doctor_read_pace(pace, b, out);
    b->free(b);
    return OK;
}

/* All of it takes seconds, and nobody knows how many. */
static void tell(struct progress *bar, const char *what)
{
    progress_clear(bar);
    progress_start(bar, 0, 0);
    progress_line(bar, what);
}

static enum status measure(struct machine *m, bool anew, struct error *err)
{
    struct statvfs disk;
    struct progress bar = {0};
    cpu_machine_read(&m->cpu);
    tell(&bar, "looking for a GPU");
    doctor_read_gpu(&m->gpu, anew);
    if (anew)
        peaks_forget(m->cpu.fingerprint, NULL);         /* a cache that cannot be written holds nothing either */
    tell(&bar, "measuring the peaks of one thread");
    enum status st = measure_peaks(1, &m->cpu, &m->one, NULL, err);
    tell(&bar, "measuring the peaks of all cores");
    if (st == OK)
        st = measure_peaks(0, &m->cpu, &m->peaks, &m->pace, err);
    m->free_memory_bytes = (double)cpu_available_bytes();
    tell(&bar, "reading from the disk");
    doctor_read_disk(&m->disk);
    progress_clear(&bar);
    m->free_disk_bytes = statvfs(".", &disk) == 0 ? (double)disk.f_bavail * (double)disk.f_frsize : 0;
    return st;
}

/* ---- a config on this machine ---- */

enum { CHECKS_MOST = 32 };
struct check {
    char text[CHECKS_MOST][600];
    bool problem[CHECKS_MOST];
    int n;
    bool data_is_asked;         /* opened, so that what is wrong from then on is wrong with it */
    bool has_fit;
    struct doctor_fit fit;
    struct doctor_data data;
    int64_t checkpoints;        /* that the run writes */
    int64_t given_steps;        /* as the config has them, before they were counted for epochs and domains */
    struct doctor_time time;
};

static void add(struct check *k, bool problem, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void add(struct check *k, bool problem, const char *format, ...)
{
    va_list args;
    if (k->n == CHECKS_MOST)
        return;
    va_start(args, format);
    vsnprintf(k->text[k->n], sizeof k->text[0], format, args);
    va_end(args);
    k->problem[k->n++] = problem;
}

/* While one is written, those that are kept are there. */
static void check_checkpoints(struct check *k, const struct config *c, double bytes, double free_bytes)
{
    char one[32], all[32], room[32];
    const int64_t n = k->checkpoints <= c->checkpoint.keep ? k->checkpoints : c->checkpoint.keep + 1;
    const double most = (double)n * bytes;
    if (!(free_bytes > 0))
        return;                             /* not known */
    human_bytes(bytes, one);
    human_bytes(most, all);
    human_bytes(free_bytes, room);
    const char *advice = most <= free_bytes ? "" : n > 1 ? "; try a smaller checkpoint.keep, or --out on another disk" : "; try --out on another disk";
    if (n == 1)
        add(k, most > free_bytes, "checkpoints: one, of %s; %s are free here%s", one, room, advice);
    else
        add(k, most > free_bytes, "checkpoints: %s each; %lld, as many as are there at once, take %s of %s that are free here%s", one, (long long)n, all, room, advice);
}

/* Of one of the ranks that were started, if there are several. False: it does not fit. */
static bool check_memory(struct check *k, const struct config *c, const struct doctor_ranks *r, double free_disk_bytes)
{
    struct step_plan plan;
    struct error err;
    char need[32], have[32], each[32] = "", words[MEMORY_WORDS];
    const bool ranks = r->there && c->device != DEVICE_CUDA;
    if (ranks)
        snprintf(each, sizeof each, " on each of %d ranks", r->links.ranks);
    if ((ranks ? train_plan_rank(&plan, c, r->links.ranks, r->links.machines, &err) : train_plan_step(&plan, c, &err)) != OK) {
        add(k, true, "memory: %.200s", err.text);
        return false;
    }
    human_bytes(plan.bytes + plan.beside, need);
    human_bytes((double)train_available_bytes(c), have);
    add(k, !plan.fits, "memory: a step needs %s%s of %s available%s", need, each, have,
        plan.fits ? "" : "; try a smaller train.batch_size or model.seq");
    if (train_memory_warning(c, plan.bytes, words))
        add(k, true, "%s", words);
    if (!r->there)                          /* of ranks, each may hold a part */
        check_checkpoints(k, c, plan.kept, free_disk_bytes);
    return plan.fits;
}

static void check_fit(struct check *k, const struct config *c)
{
    struct error err;
    char words[FIT_WORDS];
    k->has_fit = doctor_fit(&k->fit, c, &err) == OK;
    for (int i = 0; k->has_fit && i < GPU_SIZES; i++)
        add(k, false, "batch: %.300s", memory_fit_words(&k->fit.size[i], &c->train, words));
}

/* Against the peaks of the device that it runs on; nothing is said where they are not known. Steps that are so fast need the most of a disk. Returns the ms of
 * such a step; 0: not known. */
static double check_floor(struct check *k, const struct config *c, const struct program *p, const struct machine *m)
{
    char floor[32], work[32], least[32], words[DATA_WORDS];
    struct peaks peaks = m->peaks;
    struct error err;
    if (c->device == DEVICE_CUDA && (known_peaks(c, &peaks, NULL, &err) != OK || !peaks_has(&peaks, NUMBERS_F32)))
        return 0;
    const double flops = model_step_flops(p, &c->model, c->train.batch_size * c->train.accumulate);
    const struct products_peak peak = program_peak(p, &peaks);
    const double ms = flops / peak.gflops / 1e6;
    human_time(ms * 1e-3 * (double)c->train.steps, floor);
    human_count(flops, work);
    human_rate(ms, ms < 100, least);
    add(k, false, "time: %s FLOP per step, at least %s ms at the measured %s peak; %lld step%s at least %s",
        work, least, numbers_name(peak.numbers), (long long)c->train.steps, c->train.steps == 1 ? " takes" : "s take", floor);
    if (k->data.known) {
        const bool slow = doctor_data_words(&k->data, doctor_data_need(&k->data, c, ms, m->free_memory_bytes), words);
        add(k, slow, "%s", words);
    }
    return ms;
}

static void check_run(struct check *k, struct config *c, double least_ms)
{
    const int64_t counted = c->train.steps;
    char words[TIME_WORDS];
    struct progress bar = {0};
    tell(&bar, "timing steps");
    c->train.steps = k->given_steps;
    doctor_read_time(&k->time, c, least_ms);
    c->train.steps = counted;
    progress_clear(&bar);
    add(k, k->time.none.status != OK, "%s", doctor_time_words(&k->time, words));
}

static void check_settings(struct check *k, const struct config *c, const struct machine *m)
{
    if (c->train.clip == 0)
        add(k, true, "train.clip is 0: one bad batch can ruin a run; try 1.0 (no-clipping)");
    char words[THREADS_WORDS];
    if (train_threads_warning(c, words))
        add(k, true, "%s", words);
    if (c->threads == 0 && c->data.workers >= m->cpu.usable && m->cpu.usable > 2)
        add(k, true, "data.workers is %lld, as many as cores; they compete with the step; try 2", (long long)c->data.workers);
    if (c->eval.every.n && !c->eval.every.epochs && c->eval.batches > c->eval.every.n / 2)
        add(k, true, "evaluation runs %lld batch%s every %lld step%s: a large share of the time (eval-share)", (long long)c->eval.batches,
            c->eval.batches == 1 ? "" : "es", (long long)c->eval.every.n, c->eval.every.n == 1 ? "" : "s");
    if (c->optimize.precision == PRECISION_BF16 && c->device != DEVICE_CUDA && !cpu_has_bf16())
        add(k, true, "optimize.precision is bf16, and this CPU has no bf16 products: operands are rounded and nothing is gained; "
                     "try f32");
    if (c->device == DEVICE_CUDA && m->gpu.none.status != OK)
        add(k, true, "device is cuda, and %.200s; try device: cpu", m->gpu.none.text);
    if (c->device != DEVICE_CUDA && m->gpu.none.status == OK)
        add(k, true, "device is %s, and there is a GPU that is not used: %s; try device: cuda",
            c->device == DEVICE_AUTO ? "auto, which is the CPU" : "cpu", m->gpu.device.name);
}

static enum status check_data(struct check *k, struct config *c, struct error *err)
{
    struct dataset *d;
    const char *warning;
    k->data_is_asked = true;
    const enum status st = dataset_open(&d, c, err);
    if (st != OK)
        return st;
    const int64_t samples = dataset_samples(d, SPLIT_TRAIN), per_step = c->train.batch_size * c->train.accumulate;
    struct step_counts counts;
    add(k, false, "data: %s", dataset_describe(d));
    for (int i = 0; (warning = dataset_warning(d, i)); i++)
        add(k, true, "data: %s", warning);
    if (train_count_steps(&counts, &c->train, samples, err) != OK) {
        dataset_free(d);
        return err->status;
    }
    k->given_steps = c->train.steps;
    const int64_t steps = c->train.steps = counts.total * config_stages(c);
    k->checkpoints = train_checkpoints(c->checkpoint.every, counts.per_epoch, steps);
    add(k, false, "data: %lld training sample%s; %lld step%s each %.2f times", (long long)samples, samples == 1 ? "" : "s", (long long)steps, steps == 1 ? " sees" : "s see",
        (double)steps * (double)per_step / (double)samples);
    if (c->eval.every.n && !dataset_samples(d, SPLIT_VAL))
        add(k, true, "data: no validation samples; try a larger data.val_fraction or data.val_path");
    if (!c->model.vocab)
        c->model.vocab = dataset_vocab(d);
    doctor_read_data(&k->data, c, dataset_tokens(d, SPLIT_TRAIN) + dataset_tokens(d, SPLIT_VAL));
    dataset_free(d);
    return OK;
}

static enum status check_config(struct check *k, struct config *c, const struct machine *m, struct error *err)
{
    struct program *p = NULL;
    int places[PASSES_MAX] = {0};
    char idle[CONFIG_IDLE_WORDS];
    for (int at = 0; config_tell_idle(c, &at, idle);)
        add(k, false, "key: %s", idle);
    const enum status st = train_step_program(&p, c, c->train.steps, places, err);
    if (st == OK) {
        char passes[PASSES_TEXT_MAX];
        char params[32];
        human_count((double)program_parameters(p), params);
        add(k, false, "model: %s parameters, %.0f ops per step", params, program_runs_per_step(p));
        add(k, false, "passes: %s", train_passes_text(places, passes));
        const bool fits = check_memory(k, c, &m->ranks, m->free_disk_bytes);
        check_fit(k, c);
        const double least_ms = check_floor(k, c, p, m);
        if (fits && least_ms > 0 && !m->ranks.there && k->given_steps)
            check_run(k, c, c->threads && c->device != DEVICE_CUDA ? least_ms * fmax(1, (double)m->peaks.threads / (double)c->threads) : least_ms);
        check_settings(k, c, m);
    }
    program_free(p);
    return st;
}

/* ---- output ---- */

static int problems_of(const struct check *k)
{
    int n = 0;
    for (int i = 0; i < k->n; i++)
        n += k->problem[i];
    return n;
}

static void print_rate(int width, double gflops)
{
    if (gflops > 0)
        printf("%*.1f", width, gflops);
    else
        printf("%*s", width, "-");
}

static void print_text(const struct machine *m, const struct check *k, const struct config *c)
{
    static const char *const levels[] = {"L1", "L2", "L3", "memory"};
    char a[32], b[32];
    human_bytes(m->cpu.memory_bytes, a);
    human_bytes(m->free_memory_bytes, b);
    printf("hone       %s, %s kernels\nBLAS       %s\n", HONE_VERSION, cpu_isa_name(), cpu_blas_about());
    printf("libraries  jansson %s, libyaml %s, hwloc %u.%u\n", JANSSON_VERSION, yaml_get_version_string(),
           HWLOC_API_VERSION >> 16, HWLOC_API_VERSION >> 8 & 255);
    printf("cpu        %s, %d cores, %d usable", m->cpu.model, m->cpu.cores, m->cpu.usable);
    for (int i = 0; i < 3; i++)
        if (m->cpu.caches[i])
            printf(", %d × %s %.0f KiB", m->cpu.caches[i], levels[i], m->cpu.cache_bytes[i] / 1024);
    printf(", bf16 products: %s", cpu_bf16_name());
    printf("\nmemory     %s, %s available\n", a, b);
    doctor_print_disk(&m->disk, m->free_disk_bytes);
    doctor_print_gpu(&m->gpu);
    printf("peaks      %7s %14s %10s %10s %14s %10s", "threads", "f32 GFLOP/s", "registers", "GEMM", "bf16 GFLOP/s", "registers");
    for (int i = 0; i < CACHE_LEVELS; i++)
        printf(" %8s GB/s", levels[i]);
    for (int one = 0; one < 2; one++) {
        const struct peaks *p = one ? &m->one : &m->peaks;
        printf("\n           %7d %14.1f %10.1f %10.1f ", p->threads, p->gflops[NUMBERS_F32], p->registers_gflops, p->product_gflops);
        print_rate(14, p->gflops[NUMBERS_BF16]);
        print_rate(11, p->registers_bf16_gflops);
        for (int i = 0; i < CACHE_LEVELS; i++)
            printf(" %13.1f", p->copy_gb_per_s[i]);
    }
    puts("\n           (f32: the larger of multiply-adds that stay in registers and of a product of 384 × 768 × 768 per thread, the fastest known here, or\n"
         "           what a step was seen to reach; bf16: such products with operands in it, and what registers do; copies count bytes read and\n"
         "           written; MFU is relative to the peak of the numbers that a step multiplies)");
    doctor_print_pace(&m->pace);
    doctor_print_ranks(&m->ranks);
    if (!c)
        return;
    const int problems = problems_of(k);
    printf("\n%s (%s)\n", shown(c->name), shown(c->file));
    for (int i = 0; i < k->n; i++)
        printf("  %s%s%s %s\n", style(stdout, k->problem[i] ? "yellow" : "green"), k->problem[i] ? "!!" : "ok",
               style(stdout, "off"), shown(k->text[i]));
    printf("%d problem%s\n", problems, problems == 1 ? "" : "s");
}

static enum status print_json(const struct machine *m, const struct check *k, const struct config *c, struct error *err)
{
    json_t *checks = json_array();
    for (int i = 0; i < k->n; i++)
        json_array_append_new(checks, json_pack("{s:b, s:o}", "problem", k->problem[i], "text", json_text(k->text[i])));
    json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:b, s:s, s:o, s:o, s:{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
                          "version", HONE_VERSION, "isa", cpu_isa_name(), "blas", cpu_blas_name(), "cpu", m->cpu.model, "cores",
                          m->cpu.cores, "usable_cores", m->cpu.usable, "bf16_products", cpu_has_bf16(), "bf16_by", cpu_bf16_name(),
                          "memory_bytes", json_whole(m->cpu.memory_bytes), "available_bytes", json_whole(m->free_memory_bytes), "peaks", "f32_gflops", m->peaks.gflops[NUMBERS_F32],
                          "f32_registers_gflops", m->peaks.registers_gflops, "f32_product_gflops", m->peaks.product_gflops,
                          "f32_gflops_1_thread", m->one.gflops[NUMBERS_F32], "bf16_gflops", m->peaks.gflops[NUMBERS_BF16],
                          "bf16_gflops_1_thread", m->one.gflops[NUMBERS_BF16], "bf16_registers_gflops", m->peaks.registers_bf16_gflops, "l1_gb_per_s", m->peaks.copy_gb_per_s[0], "l2_gb_per_s",
                          m->peaks.copy_gb_per_s[1], "l3_gb_per_s", m->peaks.copy_gb_per_s[2], "copy_gb_per_s",
                          m->peaks.copy_gb_per_s[3], "gpu", m->gpu.none.status == OK ? json_text(m->gpu.device.name) : json_null(), "gpu_details",
                          doctor_gpu_json(&m->gpu), "links", doctor_ranks_json(&m->ranks), "largest_batch", k->has_fit ? doctor_fit_json(&k->fit) : json_null(), "config",
                          c ? json_text(c->name) : json_null(), "checks", checks, "disk", doctor_disk_json(&m->disk, m->free_disk_bytes), "data_disk", doctor_data_json(&k->data), "pace", doctor_pace_json(&m->pace), "run", doctor_time_json(&k->time));
    return print_document(j, 12, err);
}

int cmd_doctor(int argc, char **argv)
{
    struct text_list sets = {0}, positional = {0};
    bool json = false, anew = false;
    const struct option_def options[] = {
        {"--set", "KEY=VALUE", OPTION_LIST, &sets, "override a key of the config; may be repeated"},
        {"--remeasure", NULL, OPTION_FLAG, &anew, "forget the peaks that this machine has shown so far, and measure anew"},
        {"--json", NULL, OPTION_FLAG, &json, "print everything as one JSON document"},
        {0},
    };
    const struct usage usage = {
        "doctor", "[CONFIG]", "Shows the machine, the libraries, the measured peaks (the best that were ever seen) and what the cores have of\n"
        "them just now; with a config, what it needs, how long its run takes here and what is wrong with it (exit code 1 where something is,\n"
        "2 where the config cannot be read); on several ranks, how fast they talk to each other.", options, "  hone doctor\n  hone launch -n 2 doctor\n  hone doctor --remeasure\n  hone doctor my.yaml --set train.batch_size=256\n", 0, 1};
    const enum parsed parsed = parse_options(&usage, argc, argv, &positional);
    if (parsed != PARSED_GO)
        return parsed == PARSED_HELP ? OK : BAD_INPUT;
    struct machine m = {0};
    struct check k = {0};
    struct config c;
    struct error err;
    if (sets.n && !positional.n) {
        error_set(&err, BAD_INPUT, "--set %.200s changes a config, and none is named; name one: hone doctor CONFIG --set %.200s", sets.item[0], sets.item[0]);
        return report_error(&err);
    }
    const int code = doctor_read_ranks(&m.ranks);
    if (code != OK || (m.ranks.there && !m.ranks.leads))
        return code;
    enum status st = positional.n ? config_load(&c, positional.item[0], sets.item, sets.n, &err) : OK;
    if (st == OK && positional.n)
        st = check_data(&k, &c, &err);      /* before the seconds that measuring takes */
    if (st == BAD_INPUT && k.data_is_asked) {
        add(&k, true, "data: %s", err.text);
        st = OK;
    }
    if (st == OK)
        st = measure(&m, anew, &err);
    if (st == OK && positional.n && c.model.vocab)         /* which the data may have to tell */
        st = check_config(&k, &c, &m, &err);
    if (st != OK)
        return report_error(&err);
    if (json)
        st = print_json(&m, &k, positional.n ? &c : NULL, &err);
    else
        print_text(&m, &k, positional.n ? &c : NULL);
    return st != OK ? report_error(&err) : problems_of(&k) ? ANSWER_NO : OK;
}
