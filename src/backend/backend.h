/* The device interface. A backend owns memory on its device, chooses a kernel for every op, and runs a list of calls.
 * Today there is one, for CPUs, and it shows: kernels see a team of threads, a backend has a number of them, times are one per thread
 * and call, and a run returns when it is done and cannot fail. A device with a queue of its own needs lanes in the place of threads
 * and a status of a run first. */
#ifndef HONE_BACKEND_BACKEND_H
#define HONE_BACKEND_BACKEND_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/team.h"
#include "program/program.h"

/* One op bound to memory, ready to run. */
struct kernel_call {
    const struct kernel *kernel;
    const struct program *program;
    struct op *op;
    void **in, **out;               /* device memory, in the order of op->in and op->out */
    void *scratch;                  /* kernel->scratch bytes, shared by all calls of a program */
    int variant;                    /* of kernel->variants */
    bool early;                     /* threads may begin it while others are still in the calls before; else they meet first */
    double saves_us;                /* of a run, compared with variant 0, when both were timed; 0: not timed */
};

/* What a kernel sees of the thread that runs it. */
struct kernel_thread {
    int index, count;
    struct team *team;              /* for barriers inside a kernel */
};

/* A kernel touches nothing but its inputs, outputs and scratch, and every thread passes the same barriers in it: threads may be in
 * different calls at the same time. */
typedef void kernel_fn(const struct kernel_call *c, const struct kernel_thread *t);

/* When one thread worked on one call. What lies between its end and its next start is waiting for the others, unless the next
 * call is early. */
struct kernel_time {
    int64_t start_ns, end_ns;
};

struct kernel {
    enum op_kind op;
    const char *name;
    kernel_fn *run;                 /* called by every thread of the team */
    bool serial;                    /* called by thread 0 alone */
    bool (*supports)(const struct program *p, const struct op *op);     /* NULL: every shape */
    size_t (*scratch)(const struct program *p, const struct op *op, int threads);   /* NULL: none */
    const char *const *variants;    /* names of ways to run it, NULL at the end; the first is taken by rule; NULL: there is one */
};

struct backend {
    const char *name;
    int threads;
    /* Memory on the device, zeroed, 64-byte aligned; NULL when there is not enough. */
    void *(*alloc)(struct backend *b, size_t bytes);
    void (*free_memory)(struct backend *b, void *memory, size_t bytes);
    void (*upload)(struct backend *b, void *to, const void *host, size_t bytes);
    void (*download)(struct backend *b, void *host, const void *from, size_t bytes);
    const struct kernel *(*choose)(struct backend *b, const struct program *p, const struct op *op);
    /* Sets the variant of every call whose op is `timed` to the one that is fastest here, by a remembered or a new measurement, which
     * overwrites the outputs. NULL: the backend has no variants. */
    void (*tune)(struct backend *b, struct kernel_call *calls, int n);
    /* Runs calls[0 .. n) in order; threads meet before those that are not early. `times` (n, threads) gets when each thread worked
     * on each call; NULL: not measured. */
    void (*run)(struct backend *b, struct kernel_call *calls, int n, struct kernel_time *times);
    void (*free)(struct backend *b);
};

#endif
