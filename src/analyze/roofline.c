/* The profile against the peaks of the machine: rooflines and MFU, none of which can be above 100 %. */
#include <math.h>

#include "analyze/profile.h"

static bool lift(double *peak, double reached)
{
    if (!(isfinite(reached) && reached > *peak))
        return false;
    *peak = reached;
    return true;
}

/* Whether an op does the same work in every step, and all of it: an update is left out where gradients are not finite, what belongs to weights that are not
 * selected may be, the fused loss passes by rows without a target, and attention by keys of other samples. */
static bool does_all(const struct profile *p, const struct op *op)
{
    return op->phase != PHASE_OPTIMIZE && !op->leave && !op->attrs.masked && !op->attrs.packed && !(op->kind == OP_LINEAR_LOSS && p->padding_share > 0);
}

static bool step_does_all(const struct profile *p, const struct program *program)
{
    bool all = true;
    for (int i = 0; i < program->n_ops; i++)
        all = all && (program->ops[i].phase == PHASE_OPTIMIZE || does_all(p, &program->ops[i]));
    return all;
}

/* Kernels of a GPU may run beside each other and have a part of the time each: one of them alone proves nothing, the step does. So do threads that share a core. */
bool profile_raise_peaks(const struct profile *p, const struct program *program, struct peaks *peaks)
{
    const bool beside = p->gpu || (p->usable_cores > 0 && p->threads > p->usable_cores);
    bool rose = false;
    double widest = 0;
    int fastest = CACHE_LEVELS - 1;
    for (int i = 0; i < CACHE_LEVELS; i++)
        if (peaks->copy_gb_per_s[i] > widest)
            widest = peaks->copy_gb_per_s[fastest = i];
    for (int i = 0; i < p->n_ops; i++) {
        const double us = p->ops[i].self_us;
        const enum numbers n = peaks_products(peaks, op_numbers(program, &program->ops[i])).numbers;
        if (!(us > 0) || !peaks_has(peaks, n) || beside || !does_all(p, &program->ops[i]))    /* without peaks there is nothing to hold it against */
            continue;
        rose |= lift(&peaks->gflops[n], p->ops[i].flops / us / 1e3);
        rose |= widest > 0 && lift(&peaks->copy_gb_per_s[fastest], p->ops[i].bytes / us / 1e3);
    }
    const enum numbers n = program_peak(program, peaks).numbers;
    if (p->step_us > 0 && peaks_has(peaks, n) && step_does_all(p, program))
        rose |= lift(&peaks->gflops[n], p->model_flops / p->step_us / 1e3);
    return rose;
}

enum { FAR_MORE = 4 };              /* times a GPU's cache: little of so many bytes can have been left there */

/* The level whose bandwidth an op of so many bytes is held against: the one that holds them, unless the op was faster than that. Then
 * it had them nearer, left there by the op before: in the slowest level that is fast enough. A kernel with far more bytes than a GPU's cache
 * was only better at reading memory than the copy by which it is measured. */
static int level_of(const struct peaks *peaks, double bytes, double gb_per_s, bool gpu)
{
    const double *copy = peaks->copy_gb_per_s;
    int level = peaks_level(peaks, bytes);
    if (gb_per_s <= copy[level])
        return level;
    for (int i = 0; i < CACHE_LEVELS; i++)
        if (copy[i] >= gb_per_s && (copy[level] < gb_per_s || copy[i] < copy[level]) && !(gpu && bytes > FAR_MORE * peaks->cache_bytes[i]))
            level = i;
    return level;
}

static void fill_floor(struct profile_op *o, const struct op_roof *roof, double counted, const struct peaks *peaks, double runs, bool gpu)
{
    o->level = level_of(peaks, runs > 0 ? o->bytes / runs : 0, o->self_us > 0 ? o->bytes / o->self_us / 1e3 : 0, gpu);
    const double bandwidth = peaks->copy_gb_per_s[o->level], compute_us = counted > 0 ? roof->arithmetic_us * o->flops / counted : 0;
    const double traffic_us = bandwidth > 0 ? o->bytes / bandwidth / 1e3 : 0;
    o->memory_bound = traffic_us >= compute_us;
    o->floor_us = fmin(fmax(traffic_us, compute_us), o->self_us);
}

void profile_fill_floors(struct profile *p, const struct program *program)
{
    for (int i = 0; i < p->n_ops; i++) {
        const struct op_roof roof = op_roof(program, &program->ops[i], &p->peaks);
        fill_floor(&p->ops[i], &roof, op_flops(program, &program->ops[i]), &p->peaks, op_runs_per_step(program, &program->ops[i]), p->gpu);
    }
}

void profile_hold_against_peaks(struct profile *p, const struct program *program)
{
    profile_raise_peaks(p, program, &p->peaks);
    profile_fill_floors(p, program);
    p->mfu_peak = program_peak(program, &p->peaks);
    p->mfu_percent = products_peak_percent(p->mfu_peak, p->model_flops, p->step_us);
}
