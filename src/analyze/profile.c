/* The profile: sums over the trace, and what the op table and the peaks say they could be. */
#include "analyze/profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "passes/passes.h"

static const double WAIT_MOST = 0.99;       /* of a step that does something: a mean may lie above the median */

/* What one recorded step was made of, in nanoseconds; sums over the steps that are used. */
struct step_sum {
    double total, loader, upload, recording;
    double phase[PHASES];
};

struct builder {
    const struct profile_input *in;
    struct profile *out;
    int steps;                      /* recorded */
    int64_t *step_ns;               /* (steps) */
    bool *used;                     /* (steps): in the middle half */
    int n_used;
    double recorded_us;             /* median of the recorded steps */
    double loader_us;               /* waiting for the batch, in a step without events */
    double scale;                   /* from a recorded step to one without events */
    bool exact;                     /* ops are not scaled: their times are those of kernels, and fit into the step */
    double upload_us, idle_us;      /* before the first op, and between ops, in a step without events; for exact times */
    double *busy, *idle;            /* (ops): sums over used steps of the threads' mean time in an op, and waiting behind it */
    const struct event **aside;     /* sums and help since threads last met: they come when threads meet, behind later ops */
    int n_aside;
    struct step_sum sum;
};

static void find_steps(struct builder *b)
{
    const struct trace *t = b->in->trace;
    for (int64_t i = 0; i < t->n; i++)
        if (t->events[i].kind == EVENT_STEP && t->events[i].step >= b->steps)
            b->steps = t->events[i].step + 1;
    b->step_ns = xcalloc((size_t)b->steps, sizeof *b->step_ns);
    b->used = xcalloc((size_t)b->steps, sizeof *b->used);
    for (int64_t i = 0; i < t->n; i++)
        if (t->events[i].kind == EVENT_STEP)
            b->step_ns[t->events[i].step] = t->events[i].duration_ns;
}

/* Keeps the steps between the quartiles, and the one nearest to the median for the timeline. */
static void choose_steps(struct builder *b)
{
    double *sorted = xcalloc((size_t)b->steps, sizeof *sorted);
    for (int i = 0; i < b->steps; i++)
        sorted[i] = (double)b->step_ns[i];
    stats_sort(sorted, b->steps);
    const double low = stats_percentile(sorted, b->steps, 0.25), high = stats_percentile(sorted, b->steps, 0.75);
    const double median = stats_percentile(sorted, b->steps, 0.5);
    double nearest = 1e300;
    for (int i = 0; i < b->steps; i++) {
        const double ns = (double)b->step_ns[i], off = ns > median ? ns - median : median - ns;
        b->used[i] = ns >= low && ns <= high;
        if (off < nearest) {
            nearest = off;
            b->out->timeline_step = i;
        }
    }
    if (b->steps < 4)               /* too few for quartiles: all of them */
        for (int i = 0; i < b->steps; i++)
            b->used[i] = true;
    for (int i = 0; i < b->steps; i++)
        b->n_used += b->used[i];
    b->recorded_us = median / 1e3;
    free(sorted);
}

static bool is_named(const struct trace *t, const struct event *e, const char *name)
{
    return !strcmp(t->names[e->name], name);
}

static void add_host_event(struct builder *b, const struct event *e)
{
    const struct trace *t = b->in->trace;
    const double ns = (double)e->duration_ns;
    if (e->kind == EVENT_STEP)
        b->sum.total += ns;
    else if (is_named(t, e, TRACE_LOADER_WAIT))
        b->sum.loader += ns;
    else if (is_named(t, e, TRACE_UPLOAD))
        b->sum.upload += ns;
    else if (is_named(t, e, TRACE_RECORDING))
        b->sum.recording += ns;
    for (enum phase ph = 0; ph < PHASES && e->kind == EVENT_PHASE; ph++)
        if (is_named(t, e, phase_name(ph)))
            b->sum.phase[ph] += ns;
}

/* The threads' events of the op that follows without the host in between, or NULL. */
static const struct event *next_op(const struct trace *t, int64_t at, int threads)
{
    const int32_t step = t->events[at - 1].step;
    for (; at + threads <= t->n && t->events[at].step == step && t->events[at].kind != EVENT_WAIT; at++)
        if (t->events[at].kind == EVENT_OP)
            return &t->events[at];
    return NULL;
}

static int64_t end_of(const struct event *e) { return e->start_ns + e->duration_ns; }

/* What a thread summed up, or did for others, between two times. */
static int64_t done_between(const struct builder *b, int track, int64_t from, int64_t to)
{
    int64_t sum = 0;
    for (int i = 0; i < b->n_aside; i++) {
        const struct event *e = b->aside[i];
        sum += e->track == track && e->start_ns >= from && e->start_ns < to ? e->duration_ns : 0;
    }
    return sum < to - from ? sum : to - from;
}

/* What threads waited for each other behind an op: some go on as soon as they can, and what the others take longer to begin the next
 * one is waiting, but for sums that they make and what they help others with. Behind the last op of a run they wait for the last one. */
static double waited(const struct builder *b, const struct event *e, int threads, const struct event *next)
{
    int64_t sum = 0, least = INT64_MAX, last = 0;
    for (int k = 0; k < threads; k++)
        last = end_of(&e[k]) > last ? end_of(&e[k]) : last;
    for (int k = 0; k < threads; k++) {
        const int64_t to = next ? next[k].start_ns : last, gap = to - end_of(&e[k]) - done_between(b, e[k].track, end_of(&e[k]), to);
        sum += gap;
        least = gap < least ? gap : least;
    }
    return (double)sum / threads - (double)least;
}

/* Events of an op, one of every thread; how many. */
static int add_events(struct builder *b, int64_t at)
{
    const struct trace *t = b->in->trace;
    const struct event *first = &t->events[at];
    int64_t busy = 0;
    int threads = 0;
    for (; at + threads < t->n && threads < b->in->threads && first[threads].kind == EVENT_OP && first[threads].op == first->op; threads++)
        busy += first[threads].duration_ns;
    b->busy[first->op] += threads ? (double)busy / threads : 0;
    return threads;
}

/* Those that came before their thread's next op have been counted. */
static void drop_aside(struct builder *b, const struct event *next, int threads)
{
    int n = 0;
    for (int i = 0; i < b->n_aside && next; i++) {
        const int thread = b->aside[i]->track - next->track;
        if (thread >= 0 && thread < threads && b->aside[i]->start_ns >= next[thread].start_ns)
            b->aside[n++] = b->aside[i];
    }
    b->n_aside = n;
}

/* Sums of an op, or help with it: of some threads or all, in the mean of all. How many events. */
static int64_t add_aside(struct builder *b, int64_t at, int32_t op, int threads)
{
    const struct trace *t = b->in->trace;
    int64_t n = 0;
    for (; at + n < t->n && (t->events[at + n].kind == EVENT_SUMS || t->events[at + n].kind == EVENT_HELP) && t->events[at + n].op == op; n++) {
        b->aside[b->n_aside++] = &t->events[at + n];
        b->busy[op] += (double)t->events[at + n].duration_ns / threads;
    }
    return n;
}

/* Events of one op's threads follow each other in the trace, and those of their sums and help behind them. */
static int64_t add_op_events(struct builder *b, int64_t at)
{
    const struct trace *t = b->in->trace;
    const struct event *first = &t->events[at];
    const int threads = add_events(b, at);
    at += threads;
    at += add_aside(b, at, first->op, threads);
    const struct event *next = next_op(t, at, threads);
    b->idle[first->op] += waited(b, first, threads, next);
    drop_aside(b, next, threads);
    return at;
}

static void sum_events(struct builder *b)
{
    const struct trace *t = b->in->trace;
    for (int64_t i = 0; i < t->n;) {
        const struct event *e = &t->events[i];
        if (e->step < 0 || !b->used[e->step]) {
            i++;
        } else if (e->kind == EVENT_OP) {
            i = add_op_events(b, i);
        } else {
            if (e->track == TRACK_HOST)
                add_host_event(b, e);
            i++;
        }
    }
}

/* Of what an op counts, the part that it does: on a CPU the fused loss passes by rows that have no target. */
static double done_share(const struct profile_input *in, const struct op *op) { return op->kind == OP_LINEAR_LOSS && !in->gpu ? 1 - in->padding_share : 1; }

static double flops_done(const struct profile_input *in)
{
    double flops = in->model_flops;
    for (int i = 0; i < in->program->n_ops; i++) {
        const struct op *op = &in->program->ops[i];
        flops -= op_flops(in->program, op) * op_runs_per_step(in->program, op) * (1 - done_share(in, op));
    }
    return fmax(flops, 0);
}

/* As recorded; scaled below. */
static void fill_ops(struct builder *b)
{
    const struct program *p = b->in->program;
    struct profile *out = b->out;
    const double us = 1e3 * b->n_used;
    out->n_ops = p->n_ops;
    out->ops = arena_alloc(&out->arena, (size_t)p->n_ops * sizeof *out->ops);
    for (int i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        struct profile_op *o = &out->ops[i];
        const double runs = op_runs_per_step(p, op);
        *o = (struct profile_op){
            .name = p->values[op->out[0]].name, .kind = op_info(op->kind)->name, .made_by = op->made_by,
            .kernel = b->in->kernels ? b->in->kernels[i] : "", .part = op_model_part(p, i), .phase = op->phase, .layer = op->layer,
            .self_us = b->busy[i] / us, .imbalance_us = b->idle[i] / us, .flops = op_flops(p, op) * runs * done_share(b->in, op),
            .bytes = op_bytes(p, op) * runs, .occupancy = b->in->occupancy ? b->in->occupancy[i] : 0, .gradient_share = op_gradient_share(p, op)};
        out->hardware_flops += o->flops;
        out->hardware_bytes += o->bytes;
    }
    profile_fill_floors(out, p);
}

/* ---- from recorded steps to those without events ---- */

/* Kernels take as long in a recorded step as in others; what lies between them does not. Loader and upload are as they were measured without
 * recording, the host's work as recorded, as far as there is room for them, and the device was idle for the rest. False: the kernels alone are
 * longer than the step. */
static bool keep_exact(struct builder *b)
{
    const double us = 1e3 * b->n_used;
    double work = 0, phases = 0;
    for (int i = 0; i < b->out->n_ops; i++)
        work += b->out->ops[i].self_us;
    for (enum phase ph = 0; ph < PHASES; ph++)
        phases += b->sum.phase[ph];
    if (!(b->out->step_us >= work))
        return false;
    b->loader_us = fmin(b->loader_us, b->out->step_us - work);
    const double rest = b->out->step_us - work - b->loader_us;
    const double host = fmax((b->sum.total - b->sum.recording - b->sum.loader - b->sum.upload - phases) / us, 0);
    b->exact = true;
    b->scale = b->out->scale = 1;
    b->upload_us = fmin(b->upload_us, rest);
    b->idle_us = fmax(rest - b->upload_us - host, 0);
    return true;
}

/* Per step, of a phase or (PHASES) of all. */
static double runs_of(const struct builder *b, enum phase phase)
{
    double n = 0;
    for (int i = 0; i < b->out->n_ops; i++)
        n += b->out->ops[i].phase == phase || phase == PHASES ? op_runs_per_step(b->in->program, &b->in->program->ops[i]) : 0;
    return n;
}

/* The factor that makes the parts add up to the step. Where rooflines alone are more than it, the step has proved them wrong, and all
 * is scaled alike. */
static void scale_ops(struct builder *b)
{
    struct profile *out = b->out;
    const double us = 1e3 * b->n_used, whole_us = (b->sum.total - b->sum.recording - b->sum.loader) / us;
    if (b->in->times_kernels && keep_exact(b))
        return;
    struct timed *times = xcalloc((size_t)out->n_ops + 1, sizeof *times);
    double work_us = 0;
    bool alike;
    for (int i = 0; i < out->n_ops; i++) {
        times[i] = (struct timed){out->ops[i].self_us, out->ops[i].floor_us};
        work_us += out->ops[i].self_us;
    }
    const double factor = timed_factor(times, out->n_ops, whole_us - work_us, out->step_us - b->loader_us, &alike);
    b->scale = out->scale = factor;
    for (int i = 0; i < out->n_ops; i++) {
        struct profile_op *o = &out->ops[i];
        o->self_us = alike ? o->self_us * factor : timed_scaled(times[i], factor);
        o->imbalance_us *= factor;
    }
    free(times);
}

/* What the threads did in a phase, or in all (PHASES), besides working on ops: scaled. */
static double around_us(const struct builder *b, enum phase phase)
{
    double sum = 0;
    if (b->exact)
        return runs_of(b, PHASES) > 0 ? b->idle_us * runs_of(b, phase) / runs_of(b, PHASES) : 0;
    for (enum phase ph = 0; ph < PHASES; ph++)
        sum += ph == phase || phase == PHASES ? b->sum.phase[ph] : 0;
    for (int i = 0; i < b->out->n_ops; i++)
        sum -= b->out->ops[i].phase == phase || phase == PHASES ? b->busy[i] : 0;
    return sum * b->scale / (1e3 * b->n_used);
}

static double work_us(const struct profile *p, enum phase phase)
{
    double sum = 0;
    for (int i = 0; i < p->n_ops; i++)
        sum += p->ops[i].phase == phase ? p->ops[i].self_us : 0;
    return sum;
}

static double phase_us(const struct builder *b, enum phase phase) { return work_us(b->out, phase) + around_us(b, phase); }

static int slower_first(const void *a, const void *b)
{
    const struct profile_kind *x = a, *y = b;
    return x->self_us > y->self_us ? -1 : x->self_us < y->self_us;
}

static void fill_kinds(struct profile *out)
{
    out->kinds = arena_alloc(&out->arena, OP_KINDS * sizeof *out->kinds);
    for (int i = 0; i < out->n_ops; i++) {
        const struct profile_op *o = &out->ops[i];
        int k = 0;
        while (k < out->n_kinds && strcmp(out->kinds[k].kind, o->kind))
            k++;
        if (k == out->n_kinds)
            out->kinds[out->n_kinds++].kind = o->kind;
        struct profile_kind *sum = &out->kinds[k];
        sum->count++;
        sum->self_us += o->self_us;
        sum->imbalance_us += o->imbalance_us;
        sum->flops += o->flops;
        sum->bytes += o->bytes;
        sum->floor_us += o->floor_us;
    }
    qsort(out->kinds, (size_t)out->n_kinds, sizeof *out->kinds, slower_first);
}

static double upload_us(const struct builder *b) { return b->exact ? b->upload_us : b->sum.upload * b->scale / (1e3 * b->n_used); }

/* Everything of the step that is not work of ops, so that work and gaps add up to it exactly. */
static void fill_gaps(struct builder *b)
{
    struct profile *out = b->out;
    const double upload = upload_us(b), around = around_us(b, PHASES);
    double self = 0, imbalance = 0;
    for (int i = 0; i < out->n_ops; i++) {
        self += out->ops[i].self_us;
        imbalance += out->ops[i].imbalance_us;
    }
    const struct profile_part host = {"host", fmax(out->step_us - b->loader_us - upload - self - around, 0)};
    const struct profile_part cpu[] = {{TRACE_LOADER_WAIT, b->loader_us}, {TRACE_UPLOAD, upload}, {"thread imbalance", imbalance},
                                       {"dispatch", around - imbalance}, host};
    const struct profile_part gpu[] = {{TRACE_LOADER_WAIT, b->loader_us}, {TRACE_UPLOAD, upload}, {"idle between kernels", around}, host};
    out->n_gaps = b->in->gpu ? 4 : 5;
    memcpy(out->gaps, b->in->gpu ? gpu : cpu, (size_t)out->n_gaps * sizeof *gpu);
}

/* By what is computed: gradients that an op of the forward makes on the way belong to the backward. */
static void fill_split(struct builder *b)
{
    struct profile *out = b->out;
    double early = 0;
    for (int i = 0; i < out->n_ops; i++)
        if (out->ops[i].phase == PHASE_FORWARD)
            early += (out->ops[i].self_us + out->ops[i].imbalance_us) * out->ops[i].gradient_share;
    const double data = b->loader_us + upload_us(b) + phase_us(b, PHASE_DATA);
    const double forward = phase_us(b, PHASE_FORWARD) - early, backward = phase_us(b, PHASE_BACKWARD) + early;
    const double optimizer = phase_us(b, PHASE_OPTIMIZE), communication = b->in->n_ranks > 1 ? phase_us(b, PHASE_COMMUNICATE) : 0;
    const double rest = out->step_us - data - forward - backward - optimizer - communication;
    const double other = fabs(rest) > 1e-9 * out->step_us ? rest : 0;       /* what is left of rounding is no time */
    const struct profile_part split[] = {
        {"data", data}, {"forward", forward}, {"backward", backward}, {"optimizer", optimizer}, {"evaluation", b->in->evaluation_us},
        {"other", other}, {"communication", communication}};
    out->n_split = (int)(sizeof split / sizeof *split) - (b->in->n_ranks < 2);
    memcpy(out->split, split, sizeof split);
}

static void fill_parts(struct profile *out)
{
    for (; model_parts[out->n_parts]; out->n_parts++) {
        struct profile_part *part = &out->parts[out->n_parts];
        part->name = model_parts[out->n_parts];
        for (int i = 0; i < out->n_ops; i++)
            part->us += !strcmp(out->ops[i].part, part->name) ? out->ops[i].self_us : 0;
    }
}

/* Products of the forward pass are by weights. */
static void fill_products(struct builder *b)
{
    struct profile_products *products = &b->out->products;
    for (int i = 0; i < b->out->n_ops; i++) {
        const struct op *op = &b->in->program->ops[i];
        if (!op_info(op->kind)->product)
            continue;
        products->us += b->out->ops[i].self_us;
        products->ops++;
        products->projections += op->phase != PHASE_FORWARD ? 0 : op->kind == OP_PROJECT ? op->attrs.parts : 1;
    }
}

static void fill_memory(struct builder *b)
{
    struct profile *out = b->out;
    const struct program *p = b->in->program;
    struct memory_point *points = xcalloc((size_t)p->n_ops + 1, sizeof *points);
    pass_memory_timeline(p, points);
    out->memory = arena_alloc(&out->arena, (size_t)p->n_ops * sizeof *out->memory);
    for (int i = 0; i < p->n_ops; i++) {
        const struct memory_point *m = &points[i];
        const double total = m->parameters + m->state + m->gradients + m->activations + m->inputs;
        out->memory[i] = (struct profile_memory_point){m->parameters, m->state, m->gradients, m->activations, m->inputs};
        if (total > out->peak_bytes) {
            out->peak_bytes = total;
            out->peak_op = i;
        }
    }
    free(points);
}

/* What a step without events waits for its batch, or takes to upload it: the mean of those in the middle half by time. Recorded steps
 * wait less, as the loader goes on while events are kept. */
static double usual_us(const struct builder *b, const double *sorted, const double *of_steps)
{
    const struct profile_input *in = b->in;
    const double low = stats_percentile(sorted, in->n_steps, 0.25), high = stats_percentile(sorted, in->n_steps, 0.75);
    double sum = 0;
    int n = 0;
    for (int i = 0; i < in->n_steps; i++)
        if (in->step_us[i] >= low && in->step_us[i] <= high) {
            sum += of_steps[i];
            n++;
        }
    return n ? sum / n : 0;
}

static void fill_whole_steps(struct builder *b)
{
    const struct profile_input *in = b->in;
    struct profile *out = b->out;
    double *sorted = xcalloc((size_t)in->n_steps, sizeof *sorted);
    memcpy(sorted, in->step_us, (size_t)in->n_steps * sizeof *sorted);
    out->steps_us = arena_copy(&out->arena, in->step_us, (size_t)in->n_steps * sizeof *in->step_us);
    stats_sort(sorted, in->n_steps);
    out->step_us = stats_percentile(sorted, in->n_steps, 0.5);
    out->step_p10_us = stats_percentile(sorted, in->n_steps, 0.1);
    out->step_p90_us = stats_percentile(sorted, in->n_steps, 0.9);
    out->samples_per_s = (double)(in->batch * in->accumulate) / out->step_us * 1e6;
    out->tokens_per_s = out->samples_per_s * (double)in->seq;
    if (in->tokens_per_step > 0)
        out->tokens_per_s = in->tokens_per_step / out->step_us * 1e6;
    out->padding_share = in->padding_share;
    out->recording_percent = 100 * (b->recorded_us / out->step_us - 1);
    const double us = 1e3 * b->n_used, all = (b->sum.total - b->sum.recording) / us, loader = b->sum.loader / us;
    b->loader_us = in->wait_us ? usual_us(b, sorted, in->wait_us) : all > 0 ? loader * out->step_us / all : 0;
    b->loader_us = fmin(b->loader_us, all > loader ? WAIT_MOST * out->step_us : out->step_us);
    b->upload_us = in->upload_us ? usual_us(b, sorted, in->upload_us) : b->sum.upload / us;
    free(sorted);
}

/* The median over the steps, of the best. */
static double median_share(double *of, int n, double best)
{
    stats_sort(of, n);
    return best > 0 ? fmin(stats_percentile(of, n, 0.5) / best, 1) : 0;
}

static void share_of_cores(const struct profile_input *in, struct profile *out)
{
    if (!in->pace || in->gpu || in->n_steps == 0)
        return;
    double *of = xcalloc((size_t)in->n_steps, sizeof *of);
    for (int i = 0; i < in->n_steps; i++)
        of[i] = in->pace[i].gflops;
    out->pace_share = median_share(of, in->n_steps, in->peaks.near_gflops[peaks_products(&in->peaks, program_numbers(in->program)).numbers]);
    for (int i = 0; i < in->n_steps; i++)
        of[i] = in->pace[i].clock;
    out->clock_share = median_share(of, in->n_steps, in->peaks.clock);
    free(of);
}

static const char *keep_text(struct profile *p, const char *text) { return arena_printf(&p->arena, "%s", text ? text : ""); }

static void copy_facts(struct profile *out, const struct profile_input *in)
{
    out->name = keep_text(out, in->name);
    out->arch = keep_text(out, in->arch);
    out->device = keep_text(out, in->device);
    out->isa = keep_text(out, in->isa);
    out->blas = keep_text(out, in->blas);
    out->config_yaml = keep_text(out, in->config_yaml);
    out->version = keep_text(out, in->version);
    out->gpu = in->gpu;
    out->device_name = in->gpu ? keep_text(out, in->device_name) : NULL;
    out->timed_by = in->gpu ? keep_text(out, in->timed_by) : NULL;
    out->kernels_per_step = in->kernels_per_step > 0 ? in->kernels_per_step : 0;
    out->watch = in->watch;
    out->watch.address = NULL;              /* not ours, and of no use any more */
    out->threads = in->threads;
    out->usable_cores = in->usable_cores;
    out->steps = in->n_steps;
    out->batch = in->batch;
    out->seq = in->seq;
    out->accumulate = in->accumulate;
    out->layers = in->layers;
    out->parameters = program_parameters(in->program);
    out->peaks = in->peaks;
    out->model_flops = flops_done(in);
    out->loss = in->loss;
    out->preemptions_per_s = in->preemptions_per_s;
    out->delayed_share = in->delayed_share;
    share_of_cores(in, out);
    out->rss_peak_bytes = in->rss_peak_bytes;
    out->available_bytes = in->available_bytes;
    out->planned_bytes = in->planned_bytes;
    out->scratch_bytes = in->scratch_bytes;
    out->naive_bytes = in->naive_bytes;
    out->has_counters = in->has_counters;
    out->instructions = in->instructions;
    out->cycles = in->cycles;
    out->cache_misses = in->cache_misses;
    out->trace = in->trace;
    out->n_ranks = in->n_ranks;
    out->ranks = arena_copy(&out->arena, in->ranks, (size_t)in->n_ranks * sizeof *in->ranks);
    for (int r = 0; r < in->n_ranks; r++)
        out->ranks[r].host = keep_text(out, in->ranks[r].host);
}

enum status profile_build(struct profile *out, const struct profile_input *in, struct error *err)
{
    struct builder b = {.in = in, .out = out};
    *out = (struct profile){0};
    find_steps(&b);
    if (b.steps == 0 || in->n_steps == 0) {
        free(b.step_ns);
        free(b.used);
        return error_set(err, BAD_INPUT, "nothing was measured: a profile needs at least one step");
    }
    b.busy = xcalloc((size_t)in->program->n_ops + 1, sizeof *b.busy);
    b.idle = xcalloc((size_t)in->program->n_ops + 1, sizeof *b.idle);
    b.aside = xcalloc(((size_t)in->program->n_ops + 1) * 2 * (size_t)(in->threads > 0 ? in->threads : 1), sizeof *b.aside);
    copy_facts(out, in);
    choose_steps(&b);
    sum_events(&b);
    fill_whole_steps(&b);
    fill_ops(&b);
    scale_ops(&b);
    profile_hold_against_peaks(out, in->program);
    fill_kinds(out);
    fill_gaps(&b);
    profile_fill_waits(out);
    fill_split(&b);
    fill_parts(out);
    fill_products(&b);
    fill_memory(&b);
    free(b.step_ns);
    free(b.used);
    free(b.busy);
    free(b.aside);
    free(b.idle);
    return OK;
}

void profile_release(struct profile *p)
{
    arena_release(&p->arena);
    *p = (struct profile){0};
}
