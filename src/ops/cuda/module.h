/* What the program and the CUDA module know of each other: one function by name, which gives this table. Both sides are of one build, or
 * the module is not used: who loads it compares `build`, the first field, before it looks at anything else. */
#ifndef HONE_OPS_CUDA_MODULE_H
#define HONE_OPS_CUDA_MODULE_H

#include <stdbool.h>

#include "backend/backend.h"
#include "core/choices.h"
#include "core/peaks.h"

struct cuda_device {                /* a GPU */
    int index;                      /* its place among those that CUDA_VISIBLE_DEVICES lets be seen */
    char name[96];
    int major, minor;               /* compute capability */
    int driver, runtime;            /* versions of CUDA: 13000 */
    double memory_bytes, free_bytes;
    char address[32];               /* on the PCI bus: "0000:1B:00.0"; empty: not known */
    int processors;                 /* SMs */
};

/* The program's memory of what was timed (core/choices.h). */
struct cuda_choices {
    int (*recall)(struct choice *list, int n);
    enum status (*remember)(struct choice *list, int n, struct error *err);
};

/* What is captured and replayed; of all else the host starts every kernel each time. */
enum cuda_graphs { GRAPHS_BY_PROGRAM, GRAPHS_ALWAYS, GRAPHS_NEVER };

/* What is asked of a backend. */
struct cuda_wish {
    enum cuda_graphs graphs;
    int device;                     /* place of the GPU */
    bool nccl;                      /* sums over ranks are NCCL's, with one rank too; else the group's (backend.comm) */
};

struct cuda_module {
    const char *build;
    const char *(*kernel)(enum op_kind kind);       /* the name of the kernel of an op; NULL: there is none */
    int (*devices)(void);                           /* how many GPUs there are; takes nothing of them */
    enum status (*device)(struct cuda_device *out, int index, struct error *err);
    enum status (*nccl)(int *version, struct error *err);           /* 22809 */
    enum status (*backend_new)(struct backend **out, const struct cuda_wish *wish, const struct cuda_choices *choices, struct error *err);
    enum status (*measure_peaks)(struct backend *b, struct peaks *out, struct error *err);
};

typedef const struct cuda_module *cuda_module_fn(void);
#define CUDA_MODULE_FUNCTION "hone_cuda_module"

#endif
