/* Measures whole steps: warm-up, then steps without and with events in turns, then one evaluation. */
#include <math.h>
#include <stdlib.h>

#include "core/arena.h"
#include "core/clock.h"
#include "core/delay.h"
#include "core/counters.h"
#include "core/process.h"
#include "core/stats.h"
#include "model/model.h"
#include "train/follow_int.h"
#include "train/train_int.h"

enum { WARM_UP = 3, LOOK_EVERY = 4 };       /* steps; between two that are measured */
static const double SETTLES_S = 0.3, AHEAD = 1.5;       /* s; steps: the device is what is waited for */

static void count_after(struct measured *m, const struct counters *c, struct counter_values before, int64_t steps)
{
    const struct counter_values now = counters_read(c);
    m->instructions += (now.instructions - before.instructions) / (double)steps;
    m->cycles += (now.cycles - before.cycles) / (double)steps;
    m->cache_misses += (now.cache_misses - before.cache_misses) / (double)steps;
}

/* Of the bytes of sums; -1: there were none. */
static double hidden_since(const struct dist *d, struct dist_bytes before)
{
    const struct dist_bytes now = dist_sum_bytes(d);
    return now.all > before.all ? (now.hidden - before.hidden) / (now.all - before.all) : -1;
}

/* A turn of steps as a run takes them. What the host waits for while the device is more than a step behind it costs nothing. Of a turn
 * that was cut off the steps may not be like those of a whole one: it counts where there is nothing else. */
static enum status plain_steps(struct measured *m, struct loader *l, const struct counters *c, int64_t steps, const volatile sig_atomic_t *stop,
                               struct error *err)
{
    const struct counter_values before = m->has_counters ? counters_read(c) : (struct counter_values){0};
    struct dist *d = ranks_of(&m->run->config);
    const int64_t waited = loader_wait_ns(l), communicated = dist_wait_ns(d), uploaded = m->run->upload_ns;
    const struct dist_bytes bytes = dist_sum_bytes(d);
    struct turn_time t;
    const enum status st = model_run_turn(m->run, l, steps, stop, &t, err);
    if (m->n > 0 && t.steps < steps)
        return st;
    const double us = t.behind_s > AHEAD * t.step_s ? 0 : 1e-3 / (double)t.steps;
    m->step_us[m->n++] = t.step_s * 1e6;
    m->wait_us[m->n - 1] = (double)(loader_wait_ns(l) - waited) * us;
    m->upload_us[m->n - 1] = (double)(m->run->upload_ns - uploaded) * us;
    m->comm_us[m->n - 1] = (double)(dist_wait_ns(d) - communicated) / 1e3;
    m->hidden[m->n - 1] = hidden_since(d, bytes);
    m->pace[m->n - 1] = m->run->backend->pace ? m->run->backend->pace(m->run->backend, program_numbers(exec_program(m->run->train))) : (struct pace){0};
    m->data_wait_us += m->wait_us[m->n - 1];
    if (m->has_counters)
        count_after(m, c, before, t.steps);
    return st;
}

static enum status recorded_step(struct measured *m, struct loader *l, struct recorder *recorder, struct error *err)
{
    bool whole;
    m->run->recorder = recorder;
    exec_measure(m->run->train, true);
    const enum status st = model_run_step(m->run, l, NULL, &whole, err);
    exec_measure(m->run->train, false);
    m->run->recorder = NULL;
    return st;
}

/* What one measurement needs. */
struct session {
    struct measured *m;
    struct loader *loader;
    const struct counters *counters;
    struct recorder *recorder;
    int steps;
    int64_t turn;               /* steps in a row that are timed without events */
    bool traced;
    const volatile sig_atomic_t *stop;
    void (*progress)(void *context, int done, int total);
    void *context;
};

static bool has_ranks(const struct session *s) { return dist_size(ranks_of(&s->m->run->config)) > 1; }

/* Of several ranks all hear it after the same step. */
static bool stopped(const struct session *s) { return has_ranks(s) ? s->m->run->stopping : s->stop && *s->stop; }
static const volatile sig_atomic_t *stop_of_ranks(const struct session *s) { return has_ranks(s) ? s->stop : NULL; }

/* A device that works by itself may be faster than the loader, which has batches ready from before: a long run has used them up. Of
 * several ranks all take the same number of steps. */
static bool may_use_up(const struct session *s, int64_t start_ns)
{
    return s->m->run->backend->finish && !has_ranks(s) && (double)(clock_ns() - start_ns) / 1e9 < SETTLES_S && loader_ahead(s->loader) > 0;
}

static enum status warm_up(const struct session *s, struct error *err)
{
    enum status st = OK;
    bool whole;
    const int64_t start = clock_ns();
    for (int i = 0; (i < WARM_UP || may_use_up(s, start)) && st == OK && !stopped(s); i++)
        st = model_run_step(s->m->run, s->loader, stop_of_ranks(s), &whole, err);
    exec_finish(s->m->run->train);
    gpu_watch_look(&s->m->gpu, NULL);
    return st;
}

/* Of several ranks every step is told by itself. */
static enum status choose_turn(struct session *s, struct error *err)
{
    struct turn_time t = {0};
    s->turn = has_ranks(s) ? 1 : model_run_turn_steps(s->m->run, 0);
    if (!s->m->run->backend->finish || has_ranks(s) || stopped(s))
        return OK;
    const enum status st = model_run_turn(s->m->run, s->loader, 1, NULL, &t, err);
    s->turn = model_run_turn_steps(s->m->run, t.step_s);
    return st;
}

/* Step i of each kind that is asked for; the one without events is a turn of them. */
static enum status measure_one(const struct session *s, int i, bool plain, bool recorded, struct error *err)
{
    const int before = s->m->n;
    enum status st = plain ? plain_steps(s->m, s->loader, s->counters, s->turn, s->stop, err) : OK;
    if (plain && s->m->n == before)
        return st;                      /* cut off */
    if (st == OK && recorded)
        st = recorded_step(s->m, s->loader, s->recorder, err);
    if (i % LOOK_EVERY == LOOK_EVERY - 1 || i + 1 == s->steps)
        gpu_watch_look(&s->m->gpu, NULL);
    if (s->progress && recorded)
        s->progress(s->context, i + 1, s->steps);
    return st;
}

static enum status time_evaluation(struct measured *m, const volatile sig_atomic_t *stop, struct error *err);

static enum status measure_all(const struct session *s, struct error *err)
{
    enum status st = OK;
    for (int i = 0; i < s->steps && st == OK && !stopped(s); i++)
        st = measure_one(s, i, true, !s->traced, err);
    if (st == OK)
        st = time_evaluation(s->m, s->stop, err);
    if (!s->traced)
        return st;
    s->m->run->backend->traces = true;
    for (int i = 0; i < s->steps && st == OK && (i == 0 || !stopped(s)); i++)      /* one at least: a profile needs it */
        st = measure_one(s, i, false, true, err);
    return st;
}

static enum status run_all(struct session *s, struct error *err)
{
    struct measured *m = s->m;
    struct dist *d = ranks_of(&m->run->config);
    gpu_watch_begin(&m->gpu, m->run->backend->address);
    const double start = clock_s(), switches = process_preemptions();
    const struct delay delay = delay_begin();
    enum status st = warm_up(s, err);
    if (st == OK)
        st = choose_turn(s, err);
    const int64_t sums = dist_sum_ns(d);
    if (st == OK)
        st = measure_all(s, err);
    if (st != OK && dist_status(d, NULL) == OK)
        dist_give_up(d, err);               /* the others wait for this one */
    m->preemptions_per_s = (process_preemptions() - switches) / (clock_s() - start);
    m->delayed_share = delay_share(&delay, exec_lanes(m->run->train));
    if (st == OK && m->n == 0)
        st = error_stopped(err, "stopped before the first step was measured");
    else if (st == OK)
        st = measure_ranks(m, (double)(dist_sum_ns(d) - sums) / 1e3 / (2.0 * m->n), err);     /* with events and without */
    return st;
}

/* The median of up to three evaluations, fewer when they are long; not known when it was stopped. */
static enum status time_evaluation(struct measured *m, const volatile sig_atomic_t *stop, struct error *err)
{
    double us[3], losses[DOMAINS_MAX];
    int n = 0;
    if (!m->run->eval)
        return OK;
    const int most = dist_size(ranks_of(&m->run->config)) > 1 ? 1 : 3;      /* clocks of ranks differ */
    m->evaluation_us = NAN;
    for (double total = 0; n < most && total < 2e6; total += us[n++]) {
        const int64_t start = clock_ns();
        const enum status st = model_run_evaluate(m->run, stop, losses, err);
        if (st != OK || (stop && *stop))
            return st;
        us[n] = (double)(clock_ns() - start) / 1e3;
    }
    stats_sort(us, n);
    m->evaluation_us = stats_percentile(us, n, 0.5);
    return OK;
}

/* Batches of evaluation are not those of training: their samples are not sorted, and may be more or fewer. */
static double evaluation_scale(const struct dataset *d, const struct config *c)
{
    const int64_t size = c->eval.batch_size;
    double run = 0, measured = 0;
    for (int i = 0; i < dataset_domains(d); i++) {
        const struct dataset *one = dataset_domain(d, i);
        const int64_t n = evaluation_batches(one, SPLIT_VAL, size, c->eval.batches);
        run += (double)n * dataset_validation_rows(one, size, n, c->data.bucket);
        measured += (double)n;
    }
    return measured > 0 ? run / measured : 1;
}

double measured_evaluation_us(const struct measured *m)
{
    return m->evaluation_us * m->evaluation_scale * evaluations_per_step(m->evaluations);
}

static void fill_facts(struct measured *m)
{
    struct model_run *r = m->run;
    m->program = exec_program(r->train);
    m->config = r->config;
    m->total_steps = r->total_steps;
    m->evaluations = model_run_evaluations(r, r->config.eval.every);
    m->threads = exec_lanes(r->train);
    train_passes_text(r->places, m->passes);
    m->memory = exec_memory(r->train);
    m->loss = model_run_host(r, "host.loss");
    m->norm = model_run_host(r, "host.norm");
    m->rss_peak_bytes = process_peak_bytes();
    m->model_flops = model_step_flops(m->program, &r->config.model, r->config.train.batch_size * r->config.train.accumulate / division_of(&r->config).ranks);
    m->data_wait_us /= m->n;            /* sums so far; fewer steps than asked for when it was stopped */
    m->instructions /= m->n;
    m->cycles /= m->n;
    m->cache_misses /= m->n;
    m->kernels = xcalloc((size_t)m->program->n_ops, sizeof *m->kernels);
    m->occupancy = xcalloc((size_t)m->program->n_ops, sizeof *m->occupancy);
    for (int i = 0; i < m->program->n_ops; i++) {
        m->kernels[i] = exec_kernel_name(r->train, i);
        m->occupancy[i] = exec_occupancy(r->train, i);
    }
    m->kernels_per_step = exec_kernels_per_step(r->train);
    m->device_name = r->backend->device;
    m->timed_by = r->backend->timed_by;
    m->times_kernels = r->backend->times_kernels;
}

enum { BUCKET = 16, GROUP = 8 };        /* what is proposed where lengths differ */

static struct padding padding_of(const struct dataset *d, const struct config *c)
{
    const int64_t size = division_of(c).batch, bucket = c->model.seq > BUCKET * LENGTHS_MAX ? c->model.seq / LENGTHS_MAX + 1 : BUCKET;
    const double rows = dataset_padding(d, size, 0, 1), least = dataset_padding(d, size, bucket, GROUP);
    const double packed = rows > 0 ? 1 - (1 - rows) * (double)size / (double)dataset_rows(d, size) : 0;
    const double now = c->data.pack == PACK_ON ? packed : dataset_padding(d, size, c->data.bucket, c->data.group);
    return (struct padding){.now = now, .least = least < now ? least : now, .packed = packed < now ? packed : now, .rows = rows, .bucket = bucket, .group = GROUP};
}

/* A profile is of one program: all rows are of model.seq tokens. */
static enum status measure(struct measured *out, const struct config *asked, struct session s, struct error *err)
{
    struct config whole = *asked;
    const struct config *c = &whole;
    const int steps = s.steps;
    whole.data.bucket = 0;
    whole.data.group = 1;
    config_give_positions(&whole);
    struct measured m = {.run = xcalloc(1, sizeof *m.run), .step_us = xcalloc((size_t)steps, sizeof *m.step_us),
                         .wait_us = xcalloc((size_t)steps, sizeof *m.wait_us), .upload_us = xcalloc((size_t)steps, sizeof *m.upload_us),
                         .comm_us = xcalloc((size_t)steps, sizeof *m.comm_us), .hidden = xcalloc((size_t)steps, sizeof *m.hidden),
                         .pace = xcalloc((size_t)steps, sizeof *m.pace), .trace = trace_new()};
    struct counters counters;
    struct loader *l = NULL;
    enum status st = follow_tell(ranks_of(c), ORDER_MEASURE, 0, steps, c, err);
    process_reset_peak();
    m.has_counters = counters_open(&counters);      /* before the team starts, so that its threads are counted */
    if (st == OK)
        st = ranks_compare_configs(c, err);
    if (st == OK)
        st = ranks_agree(ranks_of(c), dataset_open(&m.run->dataset, c, err), err);
    if (st == OK)
        st = ranks_compare(c, m.run->dataset, err);
    if (st == OK)
        st = ranks_open_run(m.run, c, m.run->dataset, err);
    if (st == OK)
        st = model_run_loader(&l, m.run, 0, (int)c->data.workers, (int)c->data.prefetch, err);
    if (st == OK) {
        s.m = &m;
        s.loader = l;
        s.counters = &counters;
        s.recorder = recorder_new(m.run->train, m.trace, 0);
        st = run_all(&s, err);
        m.turn = s.turn;
        recorder_free(s.recorder);
    }
    if (st == OK) {
        fill_facts(&m);
        m.config.data = asked->data;
        m.padding_share = fill_padding(&m.run->fill);
        m.padding = padding_of(m.run->dataset, asked);
        m.evaluation_scale = evaluation_scale(m.run->dataset, asked);
        const struct division v = division_of(asked);
        const int64_t rows = m.run->config.model.rows ? m.run->config.model.rows : v.batch;
        m.tokens_per_step = (double)(rows * v.micro_batches * v.ranks * asked->model.seq);
    }
    loader_free(l);
    if (m.has_counters)
        counters_close(&counters);
    if (st == OK)
        *out = m;
    else
        measured_release(&m);
    return st;
}

enum status measure_steps(struct measured *out, const struct config *c, int steps, const volatile sig_atomic_t *stop,
                          void (*progress)(void *context, int done, int total), void *context, struct error *err)
{
    return measure(out, c, (struct session){.steps = steps, .stop = stop, .progress = progress, .context = context}, err);
}

enum status measure_steps_traced(struct measured *out, const struct config *c, int steps, const volatile sig_atomic_t *stop,
                                 void (*progress)(void *context, int done, int total), void *context, struct error *err)
{
    return measure(out, c, (struct session){.steps = steps, .stop = stop, .progress = progress, .context = context,
                                            .traced = c->device == DEVICE_CUDA}, err);
}

const char *measured_data_warning(const struct measured *m, int i) { return dataset_warning(m->run->dataset, i); }

void measured_release(struct measured *m)
{
    model_run_close(m->run);
    free(m->run);
    free(m->step_us);
    free(m->wait_us);
    free(m->upload_us);
    free(m->comm_us);
    free(m->hidden);
    free(m->pace);
    free(m->ranks);
    free(m->kernels);
    free(m->occupancy);
    trace_free(m->trace);
    *m = (struct measured){0};
}
