/* The answers in words: what bounds the step, the largest bottleneck, what to do first and what gain is realistic.
 * Every sentence holds the numbers it follows from. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/delay.h"
#include "analyze/rules.h"

static const double BUSY_PREEMPTIONS_PER_S = 1500;      /* where that is not known; a quiet machine was seen to preempt about a hundred times a second, one
                                                           with a busy process twenty thousand times */
static const double SHORT_US = 10, SHORT_ROOF = 0.25;   /* of a GPU: an op that is so short and does so little of what it could takes its time whatever it does */

/* ---- what bounds the step ---- */

struct bounds {
    double compute_us, compute_floor_us;    /* self time of ops by the side of the roofline that they lie on */
    double memory_us, memory_floor_us;
    double latency_us, latency_floor_us, latency_runs;
    double overhead_us, data_us, comm_us;
};

/* Starting, the way to memory and back, and ending are what it takes, not what it moves or computes. */
static bool is_latency(const struct scene *s, int i)
{
    const double us = scene_self_us(s, i), runs = scene_runs(s, i);
    return s->p->gpu && runs > 0 && us / runs <= SHORT_US && scene_floor_us(s, i) < SHORT_ROOF * us;
}

static struct bounds find_bounds(const struct scene *s)
{
    struct bounds b = {.overhead_us = s->dispatch_us + s->stalled_us + s->imbalance_us + s->host_us + s->upload_us,
                       .data_us = s->data_wait_us};
    for (int i = 0; i < s->p->n_ops; i++) {
        const bool memory = s->p->ops[i].memory_bound, waits = s->p->n_ranks > 1 && op_waits_for_ranks(scene_op(s, i)->kind);
        b.comm_us += waits ? scene_self_us(s, i) - scene_floor_us(s, i) : 0;
        if (waits)
            continue;
        if (is_latency(s, i)) {
            b.latency_us += scene_self_us(s, i);
            b.latency_floor_us += scene_floor_us(s, i);
            b.latency_runs += scene_runs(s, i);
            continue;
        }
        *(memory ? &b.memory_us : &b.compute_us) += scene_self_us(s, i);
        *(memory ? &b.memory_floor_us : &b.compute_floor_us) += scene_floor_us(s, i);
    }
    return b;
}

static double percent(double part, double whole) { return whole > 0 ? fmin(100 * part / whole, 100) : 0; }

static const char *op_headline(const struct scene *s, const char *bound, double us, double floor_us)
{
    struct arena *a = &s->p->arena;
    const char *roof =
        floor_us > 0 ? arena_printf(a, ", which run at %.0f %% of their roofline", percent(floor_us, us)) : "";
    return arena_printf(a, "This step is bound by %s: %.0f %% of its %s is in ops that %s limits%s", bound,
                        percent(us, s->step_us), scene_time(s),
                        strcmp(bound, "compute") ? "memory traffic" : "arithmetic", roof);
}

static const char *latency_headline(const struct scene *s, const struct bounds *b)
{
    struct arena *a = &s->p->arena;
    return arena_printf(a, "This step is bound by latency: %.0f %% of its %s is in %.0f short ops that take %s each, whatever they do; their arithmetic "
                        "and traffic alone would take %.0f %% of that", percent(b->latency_us, s->step_us), scene_time(s), b->latency_runs,
                        text_us(a, b->latency_us / b->latency_runs), percent(b->latency_floor_us, b->latency_us));
}

static void write_gpu_warning(struct profile *p)
{
    char words[WATCH_WORDS];
    p->warning = gpu_watch_warning(&p->watch, words)
                     ? arena_printf(&p->arena, "%s: times are longer than they can be; measure again when it is cool", words) : NULL;
}

/* Nothing of this system took the cores away, and yet they were slow. Steps that did more than the cores had behind them were not. */
static const char *slow_cores(struct profile *p)
{
    char words[PACE_WORDS];
    const char *why = pace_words(p->pace_share, p->clock_share, words);
    if (!why || p->mfu_percent > 100 * p->pace_share)
        return NULL;
    return arena_printf(&p->arena, "The cores did small products of %s at %.0f %% of their best while this was measured, and no program here took them away: %s. "
                        "Times are longer than they can be; of what the cores had MFU is %.0f %%",
                        numbers_name(p->mfu_peak.numbers), 100 * p->pace_share, why, p->mfu_percent / p->pace_share);
}

/* A profile is of one program, whose rows have model.seq tokens. */
static void warn_of_rows(struct scene *s)
{
    struct profile *p = s->p;
    if (s->rows_scale == 1)
        return;
    const char *rows = arena_printf(&p->arena, "Every batch was measured at model.seq: the run's batches are shorter, with %.1f %% padding instead of %.1f %%. Seconds of "
                                    "the whole run are estimated for those, by their tokens; all other times are of what was measured",
                                    100 * positive(s->facts.padding), 100 * positive(s->facts.padding_rows));
    p->warning = p->warning ? arena_printf(&p->arena, "%s. %s", p->warning, rows) : rows;
}

static void warn_of_machine(struct scene *s)
{
    struct profile *p = s->p;
    if (s->facts.left_out) {
        p->warning = "The loss or the norm of the gradients was not finite when this was measured, and updates were left out: times, above all the optimizer's, are not those of "
                     "a run that learns; a lower train.lr, or train.clip, before anything else";
        return;
    }
    if (p->gpu) {
        write_gpu_warning(p);               /* it does not need the cores; data that comes late has a row of its own */
        return;
    }
    const bool known = p->delayed_share >= 0, ours = s->facts.usable_cores > 0 && s->facts.threads > s->facts.usable_cores;
    const bool taken = known ? delay_is_much(p->delayed_share) : p->preemptions_per_s > BUSY_PREEMPTIONS_PER_S;
    p->warning = ours || taken ? NULL : slow_cores(p);
    if (ours || !taken)
        return;                             /* threads without a core because they are too many are a finding */
    const char *how = known ? arena_printf(&p->arena, "for %.0f %% of the time", 100 * p->delayed_share)
                            : arena_printf(&p->arena, "%.0f times a second", p->preemptions_per_s);
    p->warning = arena_printf(&p->arena,
                              "Other work took the cores away %s while this was measured: times are too long, waiting of threads is not all "
                              "hone's, and advice that rests on them may be wrong; measure again on a quiet machine", how);
}

static void write_bound(struct scene *s)
{
    struct profile *p = s->p;
    const struct bounds b = find_bounds(s);
    const double most = fmax(fmax(fmax(b.compute_us, b.memory_us), fmax(b.overhead_us, b.data_us)), fmax(b.comm_us, b.latency_us));
    if (s->step_us <= 0 || most <= 0) {
        p->bound_by = "overhead";
        p->headline = "This step does nothing that takes time";
    } else if (b.comm_us == most) {
        p->bound_by = "communication";
        p->headline = arena_printf(&p->arena, "This step is bound by communication: for %.0f %% of its %s rank 0 waits for the other%s",
                                   percent(b.comm_us, s->step_us), scene_time(s),
                                   p->n_ranks == 2 ? " rank" : arena_printf(&p->arena, " %d ranks", p->n_ranks - 1));
    } else if (b.data_us == most) {
        p->bound_by = "data";
        p->headline =
            arena_printf(&p->arena, "This step is bound by data: %.0f %% of its %s is spent waiting for batches",
                         percent(b.data_us, s->step_us), scene_time(s));
    } else if (b.overhead_us == most && p->gpu) {
        p->bound_by = "overhead";
        p->headline = arena_printf(&p->arena, "This step is bound by overhead: of its %s, the GPU is idle between kernels for %.0f %%, host and "
                                   "upload take %.0f %%, around %d op%s", scene_time(s),
                                   percent(s->dispatch_us, s->step_us), percent(s->host_us + s->upload_us, s->step_us), p->n_ops,
                                   p->n_ops == 1 ? "" : "s");
    } else if (b.overhead_us == most) {
        p->bound_by = "overhead";
        p->headline = arena_printf(&p->arena,
                                   "This step is bound by overhead: of its %s, dispatch takes %.0f %%, thread "
                                   "imbalance %.0f %%, host and upload %.0f %%, around %d op%s",
                                   scene_time(s), percent(s->dispatch_us + s->stalled_us, s->step_us),
                                   percent(s->imbalance_us, s->step_us), percent(s->host_us + s->upload_us, s->step_us),
                                   p->n_ops, p->n_ops == 1 ? "" : "s");
    } else if (b.latency_us == most) {
        p->bound_by = "latency";
        p->headline = latency_headline(s, &b);
    } else if (b.memory_us == most) {
        p->bound_by = "memory";
        p->headline = op_headline(s, "memory", b.memory_us, b.memory_floor_us);
    } else {
        p->bound_by = "compute";
        p->headline = op_headline(s, "compute", b.compute_us, b.compute_floor_us);
    }
}

/* Where the first thing to do is about threads, the headline says that, and what bounds the rest. */
static void write_threads(struct scene *s, const struct claim *claims, int n)
{
    struct profile *p = s->p;
    const struct finding *f = n ? &claims[0].finding : NULL;
    if (!f || strcmp(f->rule, "cpu-oversubscribed") || f->speedup < WORTH_DOING)
        return;
    p->headline = arena_printf(&p->arena, "This step is held back by threads that wait for each other: they lose %.0f %% of its %s; what "
                               "is left is bound by %s", 100 * f->share, scene_time(s), p->bound_by);
    p->bound_by = "threads";
}

static const char *mfu_band(double percent_mfu)
{
    const double mfu = positive(percent_mfu);
    return mfu < 20 ? "< 20 %" : mfu < 40 ? "20-40 %" : mfu <= 60 ? "40-60 %" : "> 60 %";
}

/* ---- the largest bottleneck ---- */

struct kind_time {
    int count;
    double self_us, floor_us;
};

static void sum_kinds(const struct scene *s, struct kind_time kinds[OP_KINDS])
{
    for (int i = 0; i < s->p->n_ops; i++) {
        struct kind_time *k = &kinds[scene_op(s, i)->kind];
        k->count++;
        k->self_us += scene_self_us(s, i);
        k->floor_us += scene_floor_us(s, i);
    }
}

static double lost_us(const struct kind_time *k) { return fmax(k->self_us - k->floor_us, 0); }

static const char *largest_gap(const struct scene *s, double *us)
{
    const struct profile_part gaps[] = {
        {"waiting for data", s->data_wait_us},
        {s->p->gpu ? "idle between kernels" : "dispatch", s->dispatch_us + s->stalled_us},
        {"thread imbalance", s->imbalance_us},
        {"host work", s->host_us},
        {"upload", s->upload_us},
    };
    const char *name = gaps[0].name;
    *us = gaps[0].us;
    for (size_t i = 1; i < sizeof gaps / sizeof *gaps; i++)
        if (gaps[i].us > *us) {
            *us = gaps[i].us;
            name = gaps[i].name;
        }
    return name;
}

static void write_largest(struct scene *s)
{
    struct arena *a = &s->p->arena;
    struct kind_time kinds[OP_KINDS] = {{0}};
    int top = 0, lossy = 0;
    double gap;
    const char *gap_name = largest_gap(s, &gap);
    sum_kinds(s, kinds);
    for (int k = 1; k < OP_KINDS; k++) {
        top = kinds[k].self_us > kinds[top].self_us ? k : top;
        lossy = lost_us(&kinds[k]) > lost_us(&kinds[lossy]) ? k : lossy;
    }
    const struct kind_time *t = &kinds[top];
    if (s->step_us <= 0 || (t->self_us <= 0 && gap <= 0)) {
        s->p->largest = "Nothing takes time";
    } else if (gap > t->self_us) {
        s->p->largest = arena_printf(a, "%s: %s, %.1f %% of the step%s; the largest kind of op, %s, takes %.1f %%",
                                     gap_name, text_us(a, gap), percent(gap, s->step_us), scene_wait_words(s),
                                     op_info((enum op_kind)top)->name, percent(t->self_us, s->step_us));
    } else {
        const char *beyond = text_us(a, lost_us(&kinds[lossy]));
        s->p->largest = arena_printf(a, "%s: %s in %d op%s, %.1f %% of the step%s, at %.0f %% of its roofline; %s", op_info((enum op_kind)top)->name,
                                     text_us(a, t->self_us), t->count, t->count == 1 ? "" : "s", percent(t->self_us, s->step_us),
                                     scene_wait_words(s), percent(t->floor_us, t->self_us),
                                     lossy == top ? arena_printf(a, "%s of it is beyond the roofline, more than of any other kind", beyond)
                                                  : arena_printf(a, "most time beyond the roofline is in %s: %s", op_info((enum op_kind)lossy)->name, beyond));
    }
}

/* ---- what to do first ---- */

static void write_first_action(struct scene *s, const struct claim *claims, int n)
{
    struct arena *a = &s->p->arena;
    const struct finding *f = n ? &claims[0].finding : NULL;
    if (f && f->speedup >= WORTH_DOING)
        s->p->first_action = arena_printf(a, "%s (%s): %s. Expected %.2f×, %.2f× to %.2f×", f->rule, f->where, f->fix,
                                          f->speedup, f->speedup_low, f->speedup_high);
    else if (f && f->speedup > 1.0005)
        s->p->first_action = arena_printf(a, "Nothing above 2 %% is left; the most is %s with %.1f %%", f->rule,
                                          100 * (f->speedup - 1));
    else
        s->p->first_action = "Nothing above 2 % is left";
}

void words_fill(struct scene *s, const struct claim *claims, int n)
{
    warn_of_machine(s);
    warn_of_rows(s);
    write_bound(s);
    write_threads(s, claims, n);
    write_largest(s);
    write_first_action(s, claims, n);
    roadmap_fill(s, claims, n);
    s->p->mfu_band = mfu_band(s->p->mfu_percent);
}
