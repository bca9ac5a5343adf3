/* Whether the BLAS library knows this CPU. */
#include <cblas.h>
#include <string.h>

#include "ops/cpu/cpu.h"
#include "ops/cpu/cpu_int.h"
#include "ops/cpu/gemm.h"

const char *const gemm_variants[] = {"by size", "own", "blas", NULL};

bool gemm_fits(const struct program *p, const struct op *op)
{
    for (int i = 0; i < op->n_in; i++)
        if (shape_rows(p->values[op->in[i]].shape) >= INT32_MAX || shape_last(p->values[op->in[i]].shape) >= INT32_MAX)
            return false;
    return true;
}

const char *cpu_blas_name(void)
{
    return cpu_blas_is_lost() ? HONE_BLAS_NAME " (does not know this CPU: hone's own kernels are used)" : HONE_BLAS_NAME;
}

/* OpenBLAS chooses kernels by a list of CPU models; on one that is newer than the library it falls back to SSE3 and is
 * several times slower than a plain kernel for the instructions that are there. The answer depends on the machine alone,
 * so results stay the same from run to run. */
bool cpu_blas_is_lost(void)
{
#if defined(HONE_BLAS_OPENBLAS) && defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && !strcmp(openblas_get_corename(), "Prescott");
#else
    return false;
#endif
}
