/* The roofline of an op: what it must take on a machine with these peaks. */
#include "program/program.h"

double op_floor_us(const struct program *p, const struct op *op, const struct peaks *peaks, bool *memory_bound)
{
    const double bytes = op_bytes(p, op), bandwidth = peaks_bandwidth(peaks, bytes);
    const double compute = peaks->gemm_gflops > 0 ? op_flops(p, op) / peaks->gemm_gflops / 1e3 : 0;
    const double traffic = bandwidth > 0 ? bytes / bandwidth / 1e3 : 0;
    if (memory_bound)
        *memory_bound = traffic >= compute;
    return traffic > compute ? traffic : compute;
}

double op_runs_per_step(const struct program *p, const struct op *op)
{
    if (op->phase == PHASE_SETUP)
        return 0;
    return op->phase <= PHASE_BACKWARD ? p->micro_batches : 1;
}
