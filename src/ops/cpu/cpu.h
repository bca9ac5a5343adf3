/* The CPU backend: kernels run on a team of threads that lives as long as the backend. */
#ifndef HONE_OPS_CPU_CPU_H
#define HONE_OPS_CPU_CPU_H

#include <stdbool.h>

#include "backend/backend.h"
#include "core/error.h"

/* threads 0: one per usable core. reference_only: the plain kernels, to compare against. */
enum status cpu_backend_new(struct backend **out, int threads, bool reference_only, struct error *err);

/* What the machine offers and this build uses, for people: "neon", "avx2", "avx512", "portable". */
const char *cpu_isa_name(void);
const char *cpu_blas_name(void);

/* Single-precision product of n*n matrices and a copy through memory, on all threads of the team: what `doctor` and the
 * roofline use as peaks. */
double cpu_peak_gflops(struct backend *b, int n, double seconds);
double cpu_copy_gb_per_s(struct backend *b, size_t bytes, double seconds);

#endif
