/* The CPU backend: kernels run on a team of threads that lives as long as the backend. */
#ifndef HONE_OPS_CPU_CPU_H
#define HONE_OPS_CPU_CPU_H

#include <stdbool.h>

#include "backend/backend.h"
#include "core/error.h"
#include "core/peaks.h"

/* threads 0: one per usable core. reference_only: the plain kernels, to compare against. */
enum status cpu_backend_new(struct backend **out, int threads, bool reference_only, struct error *err);

/* What the machine offers and this build uses, for people: "neon", "sse2", "avx2", "avx512", "portable". */
const char *cpu_isa_name(void);
const char *cpu_blas_name(void);        /* "openblas", "blis", or "own kernels" where no library is used */
const char *cpu_blas_about(void);       /* the same with its file, and why it is used or not */

extern const char cpu_kernels_id[];     /* 16 letters that change with the kernels, the compiler and its flags (cmake/KernelsId.cmake) */

struct cpu_machine {
    char model[96];
    char hardware[128], fingerprint[160];       /* what it is called; with the library for products */
    int cores, usable;              /* in the machine; that this process may use */
    double cache_bytes[3];          /* one cache of each level; 0: none */
    int caches[3];                  /* how many there are of each */
    double memory_bytes;
};

void cpu_machine_read(struct cpu_machine *m);
void cpu_hardware_read(struct cpu_machine *m);      /* the same without a fingerprint: no library is loaded for it, nor looked into */
int cpu_usable_cores(void);
size_t cpu_available_bytes(void);   /* memory that can still be had: free now, and promised to no backend; SIZE_MAX: unknown */

/* Measures what the threads of a backend reach together: multiply-adds in registers, a GEMM, one of bf16 where the CPU has that, and copies from each
 * cache and from memory; at least what is remembered of them. Takes two to five seconds. */
void cpu_measure_peaks(struct backend *b, const struct cpu_machine *m, struct peaks *out);

#endif
