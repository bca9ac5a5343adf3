/* Whole-step timing on random tokens. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/delay.h"
#include "core/process.h"
#include "core/stats.h"
#include "core/arena.h"
#include "model/model.h"
#include "train/train_int.h"

enum { MOST_STEPS = 100000, FEWEST_STEPS = 5 };

/* A GPU that was idle comes up to its clock in about a second: an H200 took 2.6 ms for a step in its first half second, and 2.37 from then on. */
static double warm_up_s(const struct model_run *r, double seconds)
{
    return r->backend->finish ? fmin(2 * seconds, 1) : 0.1 * seconds;
}

/* A turn, unless it was stopped. */
static enum status turn(struct model_run *r, struct loader *l, int64_t steps, const volatile sig_atomic_t *stop, struct turn_time *t, struct error *err)
{
    return stop && *stop ? error_stopped(err, "stopped before the steps were timed") : model_run_turn(r, l, steps, NULL, t, err);
}

/* Turns until the time is up, behind a warm-up that is not counted. */
static enum status time_steps(struct model_run *r, struct loader *l, double seconds, const volatile sig_atomic_t *stop, double *times, int64_t *n, int64_t *steps,
                              struct gpu_watch *gpu, struct error *err)
{
    enum status st = OK;
    struct turn_time t = {.step_s = seconds};
    const double begin = clock_s();
    while (st == OK && clock_s() - begin < warm_up_s(r, seconds))
        st = turn(r, l, 1, stop, &t, err);
    *steps = model_run_turn_steps(r, t.step_s);
    gpu_watch_look(gpu, NULL);
    const double start = clock_s();
    for (*n = 0; st == OK && *n < MOST_STEPS && (*n < FEWEST_STEPS || clock_s() - start < seconds * 0.9); times[(*n)++] = t.step_s)
        st = turn(r, l, *steps, stop, &t, err);
    return st;
}

static void summarize(struct model_run *r, double *times, int64_t n, int64_t steps, const struct peaks *peaks, struct bench_result *out)
{
    const int64_t batch = r->config.train.batch_size * r->config.train.accumulate;
    const struct exec_memory m = exec_memory(r->train);
    stats_sort(times, (int)n);
    const double median = stats_percentile(times, (int)n, 0.5);
    const struct products_peak peak = program_peak(exec_program(r->train), peaks);
    const double flops = model_step_flops(exec_program(r->train), &r->config.model, batch);
    *out = (struct bench_result){
        .ms_per_step = median * 1e3, .ms_spread = (stats_percentile(times, (int)n, 0.9) - stats_percentile(times, (int)n, 0.1)) * 1e3,
        .samples_per_s = (double)batch / median, .tokens_per_s = (double)(batch * r->config.model.seq) / median,
        .peak_mb = process_peak_bytes() / 1e6, .tflops = flops / median / 1e12,
        .mfu_percent = products_peak_percent(peak, flops, median * 1e6), .mfu_peak = peak,
        .loss = model_run_host(r, "host.loss"), .threads = r->backend->lanes, .steps = n * steps, .ops = (int)program_runs_per_step(exec_program(r->train)),
        .planned_mb = exec_memory_bytes(&m) / 1e6};
    memcpy(out->places, r->places, sizeof out->places);
    out->device = r->backend->name;
    snprintf(out->device_name, sizeof out->device_name, "%s", r->backend->device ? r->backend->device : "");
}

static double taken_mb(size_t before, struct backend *b)
{
    const size_t now = b->available(b);
    return before != SIZE_MAX && now < before ? (double)(before - now) / 1e6 : 0;
}

struct config bench_config(const struct config *c)
{
    struct config known = *c;
    if (!known.model.vocab && c->model.arch != ARCH_REGIONS)
        known.model.vocab = BENCH_VOCAB;
    known.eval.batches = 0;
    known.data.bucket = 0;              /* every step has the same work */
    known.data.group = 1;
    if (c->model.arch != ARCH_REGIONS) {
        known.model.given_positions = false;
        known.model.positions = 0;
    }
    return known;
}

/* Tokens of regions are no random ids. */
enum status bench_open_data(struct dataset **out, const struct config *c, struct error *err)
{
    if (c->model.arch == ARCH_REGIONS)
        return dataset_open(out, c, err);
    return dataset_open_random(out, c->model.vocab, c->model.seq, c->model.segments, (uint64_t)c->train.seed, err);
}

/* Random ids are made in no time; walks are made ahead, as in training. */
static enum status bench_loader(struct loader **out, const struct model_run *r, struct error *err)
{
    const struct config *c = &r->config;
    const bool ahead = c->model.arch == ARCH_REGIONS;
    return model_run_loader(out, r, 0, ahead ? (int)c->data.workers : 0, ahead ? (int)c->data.prefetch : 1, err);
}

enum status bench_run(const struct config *c, double seconds, const struct peaks *peaks, const volatile sig_atomic_t *stop, struct bench_result *out,
                      struct bench_component *components, int *n_components, struct error *err)
{
    const struct config known = bench_config(c);
    struct dataset *d;
    struct loader *l = NULL;
    struct model_run r = {0};
    double *times = xcalloc(MOST_STEPS, sizeof *times);
    int64_t n = 0, steps = 1;
    struct gpu_watch gpu;
    process_reset_peak();
    const size_t free_before = train_available_bytes(&known);
    enum status st = bench_open_data(&d, &known, err);
    if (st == OK)
        st = model_run_open(&r, &known, d, err);
    if (st == OK)
        st = bench_loader(&l, &r, err);
    const struct delay delay = delay_begin();
    if (st == OK) {
        gpu_watch_begin(&gpu, r.backend->address);
        st = time_steps(&r, l, seconds, stop, times, &n, &steps, &gpu, err);
    }
    if (st == OK) {
        gpu_watch_look(&gpu, NULL);
        summarize(&r, times, n, steps, peaks, out);
        out->kernels = exec_kernels_per_step(r.train);
        out->delayed_share = r.backend->address || !delay_is_of_others(out->threads) ? -1 : delay_share(&delay, out->threads);
        out->vocab = known.model.vocab;
        out->vocab_assumed = known.model.vocab != c->model.vocab;
        out->gpu = gpu;
        out->gpu.address = NULL;            /* the backend's, which goes */
        if (r.backend->device)              /* what is gone from its memory, not what the host took */
            out->peak_mb = taken_mb(free_before, r.backend);
    }
    if (st == OK && components)
        st = components_measure(&r, l, peaks, stop, components, n_components, out, err);
    loader_free(l);
    model_run_close(&r);
    free(times);
    return st;
}
