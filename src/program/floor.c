/* The roofline: what an op must take on a machine with these peaks, and which of them a program is held against. */
#include "program/program.h"

enum numbers program_numbers(const struct program *p)
{
    enum numbers narrowest = NUMBERS_F32;
    for (int i = 0; i < p->n_ops; i++) {
        const enum numbers n = op_numbers(p, &p->ops[i]);
        narrowest = n > narrowest ? n : narrowest;
    }
    return narrowest;
}

struct products_peak program_peak(const struct program *p, const struct peaks *peaks) { return peaks_products(peaks, program_numbers(p)); }

struct op_roof op_roof(const struct program *p, const struct op *op, const struct peaks *peaks)
{
    const double bytes = op_bytes(p, op), bandwidth = peaks_bandwidth(peaks, bytes);
    const double peak = peaks_products(peaks, op_numbers(p, op)).gflops;
    return (struct op_roof){.arithmetic_us = peak > 0 ? op_flops(p, op) / peak / 1e3 : 0,
                            .traffic_us = bandwidth > 0 ? bytes / bandwidth / 1e3 : 0};
}

double op_floor_us(const struct program *p, const struct op *op, const struct peaks *peaks, bool *memory_bound)
{
    const struct op_roof r = op_roof(p, op, peaks);
    if (memory_bound)
        *memory_bound = r.traffic_us >= r.arithmetic_us;
    return r.traffic_us > r.arithmetic_us ? r.traffic_us : r.arithmetic_us;
}

double op_runs_per_step(const struct program *p, const struct op *op)
{
    if (op->phase == PHASE_SETUP)
        return 0;
    return op->phase <= PHASE_BACKWARD && !op->last ? p->micro_batches : 1;
}

double program_runs_per_step(const struct program *p)
{
    double n = 0;
    for (int i = 0; i < p->n_ops; i++)
        n += op_runs_per_step(p, &p->ops[i]);
    return n;
}
