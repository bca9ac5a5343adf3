/* small-batch, low-occupancy: kernels too small for the device. */
#include <math.h>

#include "analyze/traced/collectives.h"
#include "analyze/traced/rules.h"

static const double SHORT_NS = 10000;       /* a kernel so short takes less than its launch */
static const double LEAST_SHARE = 0.5;      /* of the kernels that grow with the batch are short */
static const double MOST_FACTOR = 16;       /* how much larger a batch is thought of */
static const double IDLE = 0.3;             /* of the step, the device is idle or under-filled at least */
static const double LOW_PERCENT = 15;       /* occupancy */

static int multiprocessors(const struct study *s)
{
    const struct trace *t = s->v->trace;
    return t->n_devices && t->devices[0].multiprocessors > 0 ? t->devices[0].multiprocessors : 100;
}

/* How much of the device one wave of the kernel's blocks fills; 1 where the grid is not known. */
static double filled(const struct study *s, const struct event *e)
{
    const struct event_args *a = e->args >= 0 ? &s->v->trace->args[e->args] : NULL;
    if (!a || a->grid[0] <= 0)
        return 1;
    const double blocks = (double)a->grid[0] * fmax(a->grid[1], 1) * fmax(a->grid[2], 1);
    return fmin(blocks / multiprocessors(s), 1);
}

static bool grows_with_batch(enum kernel_kind k)
{
    return k == KERNEL_GEMM || k == KERNEL_ATTENTION || k == KERNEL_CONV || k == KERNEL_NORM || k == KERNEL_SOFTMAX;
}

/* ---- what a larger batch makes longer, per step, in ns ---- */

struct growth {
    double data_ns, comm_ns, python_ns;     /* in which the host or the device waits for a batch, other ranks, Python */
    double device_ns, fill;                 /* the rest of the device's work; how much of the device one of its kernels fills */
};

static struct growth growth_of(const struct study *s, double fill)
{
    struct growth g = {.data_ns = fmin(study_loader_ns(s), s->base_ns), .fill = fill};
    g.comm_ns = s->comm ? fmin(collectives_exposed_us(s->comm) * 1e3, s->base_ns) : 0;
    g.python_ns = fmin(study_python_ns(s), s->base_ns);
    g.device_ns = fmax(s->device_ns - g.comm_ns, 0);
    return g;
}

/* A step with k times the batch: what waits for more samples takes k times as long, all else of the host stays, and kernels fill
 * up before they take longer. No step gets shorter by it. */
static double step_at(const struct study *s, const struct growth *g, double k)
{
    const double waits = fmin(g->data_ns + g->comm_ns + g->python_ns, s->base_ns);
    return fmax(s->base_ns + (k - 1) * waits, k * g->comm_ns + g->device_ns * fmax(1, k * g->fill));
}

bool trace_rule_small_batch(struct study *s, struct charge *c)
{
    const struct view *v = s->v;
    if (study_found(s, "per-head-attention") || s->replay->all_cold)
        return false;                       /* kernels of single heads are short at any batch; so is what starts a process */
    if (study_on_cpu(s))
        return cpu_small_batch(s, c);
    double all = 0, small = 0, grows = 0, n = 0;
    for (int32_t d = 0; d < v->n_device; d++) {
        const struct event *e = view_event(v, v->device + d);
        const enum kernel_kind kind = view_kernel_kind(v, v->device + d);
        if (e->kind != EVENT_KERNEL || v->launch[d] < 0 || !study_has(s, v->launch[d]) || !grows_with_batch(kind))
            continue;
        const double part = filled(s, e), ns = (double)e->duration_ns;
        all += ns;
        n++;
        small += ns < SHORT_NS;
        grows += ns * part;
    }
    if (!(all > 0) || small < LEAST_SHARE * n || (s->device_ns > (1 - IDLE) * s->base_ns && grows > (1 - IDLE) * all))
        return false;
    const struct growth g = growth_of(s, grows / all);
    double best = 1, at = 1;
    for (double k = 2; k <= MOST_FACTOR; k *= 2) {
        const double gain = k * s->base_ns / step_at(s, &g, k);
        if (gain > 1.1 * best)
            best = gain, at = k;
    }
    if (!(best > 1))
        return false;
    /* short kernels are not why such a step is long: what it waits for goes first */
    c->finding.symptom = study_is_bound_by(s, fmax(g.data_ns, g.comm_ns));
    c->speedup = best;
    c->asks.times = (int)at;
    c->doubt = 0.5;
    c->involved_ns = s->base_ns;
    c->finding.where = "the whole step";
    c->finding.per_sample = true;
    c->finding.cause = "kernels are so short that the device waits for launches: a larger batch would take hardly longer";
    c->finding.evidence = study_text(s, "%.0f %% of the kernels of products, attention and norms take less than %.0f µs, and one "
                                     "fills %.0f %% of the device's %d multiprocessors; the gain is per sample, at %.0f times the batch",
                                     100 * small / n, SHORT_NS / 1e3, 100 * g.fill, multiprocessors(s), at);
    return true;
}

bool trace_rule_low_occupancy(struct study *s, struct charge *c)
{
    const struct view *v = s->v;
    double all = 0, low = 0;
    int32_t worst = -1;
    for (int32_t d = 0; d < v->n_device; d++) {
        const struct event *e = view_event(v, v->device + d);
        const enum kernel_kind kind = view_kernel_kind(v, v->device + d);
        if (v->launch[d] < 0 || !study_has(s, v->launch[d]) || e->kind != EVENT_KERNEL)
            continue;
        all += (double)e->duration_ns;
        /* products and attention hide latency with registers instead of warps: few warps are right there */
        if (e->args < 0 || v->trace->args[e->args].occupancy < 0 || kind == KERNEL_GEMM || kind == KERNEL_ATTENTION ||
            kind == KERNEL_COMM || kind == KERNEL_CONV || (double)v->trace->args[e->args].occupancy >= LOW_PERCENT || filled(s, e) < 1)
            continue;
        low += (double)e->duration_ns;
        c->edit.device[d] = 0.5f;
        if (worst < 0 || e->duration_ns > view_event(v, worst)->duration_ns)
            worst = v->device + d;
    }
    if (worst < 0 || low < 0.05 * all)
        return false;
    c->doubt = 0.6;
    c->finding.where = study_text(s, "kernel %s", study_kernel(s, view_name(v, worst)));
    c->finding.cause = "kernels bound by memory keep too few warps in flight to hide its latency";
    c->finding.evidence = study_text(s, "%s per step in kernels with an occupancy below %.0f %%", study_us(s, per_step(s, low)),
                                     LOW_PERCENT);
    return true;
}
