/* The device interface. A backend owns memory on its device and prepares a list of ops, bound to that memory, into something that it can
 * run again and again: a CPU the kernels for its team of threads, another device a queue or a graph. Which kernels there are, how an op is
 * divided and what may run beside what is the backend's own affair; what the executor and the recorder see of it are lanes: as many
 * lines of times as work on an op at once. A run may fail, also because of an op before: the error names the op where that is known. */
#ifndef HONE_BACKEND_BACKEND_H
#define HONE_BACKEND_BACKEND_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "program/program.h"

/* One op with the memory of its values, in the order of op->in and op->out. */
struct bound_op {
    const struct program *program;
    struct op *op;
    void **in, **out;
    const float *leave;             /* where it is 0 the op may be left out; NULL: it always runs. A backend need not look at it, or
                                       may for some ops alone */
};

/* When one lane worked on one op. What lies between its end and its next start is waiting, or another op's. */
struct lane_time {
    int64_t start_ns, end_ns;
    int64_t sums_start_ns, sums_end_ns;     /* of what it left to sum up, once all lanes were there; 0: nothing */
    int64_t help_start_ns, help_ns;         /* what it did of another lane's part while it waited: since when, and for how long in all; 0: nothing */
};

/* What the queues of a device did in a measured run, beside what ops are timed by: the host's calls that start work, copies and fills, and
 * each kernel in the queue in which it ran. */
enum device_event_kind { DEVICE_LAUNCH, DEVICE_COPY, DEVICE_FILL, DEVICE_KERNEL };
struct device_event {
    enum device_event_kind kind;
    int queue;                      /* of a kernel, numbered as they come */
    const struct op *op;            /* whose it is; NULL: nobody's, or of a whole list of ops */
    int64_t start_ns, end_ns;
};

/* What an op became. */
struct prepared_op {
    const char *kernel;             /* its name, with its variant where one was chosen: "blocks/thirds" */
    double saves_us;                /* of a run, compared with what would have been taken by rule, as both were timed; 0: not timed */
    double occupancy;               /* of a GPU, as it was measured: warps that its kernels can have there at once, of those that fit; 0: not known */
};

struct comm;
struct backend;
struct prepared;                    /* a list of ops, ready to run; a backend's own */

struct backend {
    struct comm *comm;              /* to the other ranks (comm.h), set by who opens it; NULL: there are none */
    const char *name;
    const char *device;             /* which one, for people: "NVIDIA H200"; NULL: the machine's own CPU */
    const char *address;            /* of a GPU on the PCI bus, for those who watch it (core/gpu.h); NULL: not known */
    int lanes;                      /* threads of a CPU */
    bool traces;                    /* set by who measures: ops may be timed in a way that makes all that this process runs later slower */
    const char *timed_by;           /* how ops are timed, for people, once some were; NULL: by the lanes themselves */
    bool times_kernels;             /* times are those of kernels alone: what measuring adds lies between them */
    int64_t ran_from_ns, ran_to_ns; /* of the last measured run, without what measuring took before and behind it; 0: all of the call */
    const struct device_event *events;      /* (n_events) of the last measured run and since the one before; none: not told */
    int n_events;
    size_t (*available)(struct backend *b);         /* bytes that can still be had; SIZE_MAX: unknown */
    /* Memory on the device, zeroed, 64-byte aligned; NULL when there is not enough. */
    void *(*alloc)(struct backend *b, size_t bytes);
    void (*spread)(struct backend *b, void *memory, size_t bytes);      /* of new memory that all threads will read: not in one place. NULL: nothing to do */
    void (*free_memory)(struct backend *b, void *memory, size_t bytes);
    enum status (*upload)(struct backend *b, void *to, const void *host, size_t bytes, struct error *err);
    enum status (*download)(struct backend *b, void *host, const void *from, size_t bytes, struct error *err);
    /* Bytes of scratch that an op needs. CANNOT: there is no kernel for it. */
    enum status (*scratch)(struct backend *b, size_t *bytes, const struct program *p, const struct op *op, struct error *err);
    size_t (*kept)(struct backend *b, const struct program *p);        /* bytes of scratch besides that ops of the program need together. NULL: none */
    /* Bytes that it takes beside that, at most, to run ops of the program side by side; where there are none it does without. NULL: none. */
    size_t (*beside)(struct backend *b, const struct program *p);
    /* The ops and `scratch`, of which all of them use the same `bytes`, must live as long as what is prepared. Variants are chosen now,
     * where ops ask for it: by a remembered or a new measurement, which overwrites outputs. */
    enum status (*prepare)(struct backend *b, struct prepared **out, const struct bound_op *ops, int n, void *scratch, size_t bytes,
                           struct error *err);
    struct prepared_op (*about)(const struct prepared *p, int i);
    /* Kernels that running ops [first, end) starts; below 0: not known. NULL: there is no such thing. */
    int (*kernels)(struct backend *b, struct prepared *p, int first, int end);
    /* Runs ops [first, end) in order. `times` (end - first, lanes) gets when each lane worked on each; NULL: not measured. */
    enum status (*run)(struct backend *b, struct prepared *p, int first, int end, struct lane_time *times, struct error *err);
    /* Waits until all that was run is done: a run may return before, and reading waits by itself. NULL: no run returns before. */
    enum status (*finish)(struct backend *b, struct error *err);
    /* What the lanes have now, in a burst of some tens of microseconds: of products of such numbers, or of f32 where there are none of them; 0: there was no
     * memory for it. NULL: there is no such thing. */
    struct pace (*pace)(struct backend *b, enum numbers numbers);
    void (*release)(struct backend *b, struct prepared *p);     /* NULL is fine */
    void (*free)(struct backend *b);
};

#endif
