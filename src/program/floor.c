/* The roofline of an op: what it must take on a machine with these peaks. */
#include "program/program.h"

/* GFLOP/s of an op's products. A machine without bf16 products rounds and multiplies in f32. */
static double products_peak(const struct op *op, const struct peaks *peaks)
{
    return op->attrs.bf16 && peaks->bf16_gflops > 0 ? peaks->bf16_gflops : peaks->gemm_gflops;
}

struct op_roof op_roof(const struct program *p, const struct op *op, const struct peaks *peaks)
{
    const double bytes = op_bytes(p, op), bandwidth = peaks_bandwidth(peaks, bytes), peak = products_peak(op, peaks);
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
    return op->phase <= PHASE_BACKWARD ? p->micro_batches : 1;
}
