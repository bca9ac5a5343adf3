/* When kernels ran, told by CUPTI, which comes with CUDA's toolkit: loaded when something is measured, by the absolute path that CMake
 * found. Whose a kernel is, is known by what was being started when it, or the node of the graph that it is of, was made. */
#ifndef HONE_OPS_CUDA_CUPTI_H
#define HONE_OPS_CUDA_CUPTI_H

#include <stdbool.h>
#include <stdint.h>

struct kernel_span {
    int op;                         /* -1: nobody's */
    int64_t start_ns, end_ns;       /* on the host's clock (core/clock.h) */
    bool is_kernel, is_fill;        /* neither: a copy */
    uint32_t stream;                /* CUDA's number of it */
    int blocks, threads;            /* of the kernel; threads per block */
    int registers, shared_bytes;    /* per thread; per block */
};

bool cupti_open(void);              /* false: it is not there, or somebody else uses it */
const char *cupti_refusal(void);    /* why */
/* What is started or captured from now on belongs to this op; -1: to nobody. Costs nothing while nothing is traced. */
void cupti_mark(int op);
/* one_by_one: kernels are started by the host, not by a graph. False: nothing is recorded. */
bool cupti_begin(bool one_by_one);
/* Ends it, after all is done on the device. *n spans by their start, good until the next end; copies since the end before it are among them. */
const struct kernel_span *cupti_end(int *n);
/* Nothing is recorded any more, until the next begin. */
void cupti_stop(void);

#endif
