/* What a kernel of the CPU is: a function that every thread of a team calls, with the op and its memory. */
#ifndef HONE_OPS_CPU_KERNEL_H
#define HONE_OPS_CPU_KERNEL_H

#include "backend/backend.h"
#include "backend/comm.h"
#include "core/team.h"

struct kernel;

/* How a result is cut into blocks: one per thread, or, where `depth` is more than 1, one for so many threads, of which each has a part of the sum. */
struct blocks { int rows, columns, depth; };

/* One op bound to memory and to a kernel, ready to run. */
struct kernel_call {
    const struct kernel *kernel;
    const struct program *program;
    struct op *op;
    void **in, **out;               /* in the order of op->in and op->out */
    const float *leave;             /* where it is 0 the call is left out; NULL: never */
    struct comm *comm;              /* to the other ranks; NULL: there are none */
    void *scratch;                  /* kernel->scratch bytes, shared by all calls of a program, but for ops that are one call, and for sums */
    size_t scratch_bytes;
    struct blocks blocks;           /* cpu_blocks of it and the team */
    int variant;                    /* of kernel->variants */
    enum { WHOLE, SUMS_NOW, SUMS_LATER } sums;      /* whether something is left when all threads have run it, and when that is done */
    bool early;                     /* threads may begin it while others are still in the calls before; else they meet first */
    bool settled;                   /* they meet twice: sums of calls before must be there, too */
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

/* What a thread touches of the values that have a bit in `in` or `out`: rows [rows.lo, rows.hi) of the `of` that each of them has. Of scratch it then has a
 * part of its own (call_scratch), of anything else it may read all. of is 0: it may touch all of everything. */
struct share {
    struct span rows;
    int64_t of;
    uint32_t in, out;
};

/* Asks for a line of memory that the thread will write, and returns when it is there. */
typedef void claim_fn(const void *line);

struct kernel {
    enum op_kind op;
    const char *name;
    kernel_fn *run;                 /* called by every thread of the team */
    bool serial;                    /* called by thread 0 alone */
    bool stores;                    /* knows bf16 where op_is_rounded_ahead */
    bool (*supports)(const struct program *p, const struct op *op);     /* NULL: every shape */
    size_t (*scratch)(const struct program *p, const struct op *op, int threads);   /* NULL: none */
    /* What is left when all threads have run it: sums of what each of them left in scratch, into outputs with a bit in `summed`, which `run` then does not touch.
     * Every thread calls it, behind the next meeting of all. `sums` says whether there is anything; NULL: always, where there is a `finish`. */
    kernel_fn *finish;
    uint32_t summed;
    bool (*sums)(const struct program *p, const struct op *op, int threads);
    struct share (*share)(const struct kernel_call *c, const struct kernel_thread *t);     /* NULL: threads may touch what others do */
    struct blocks (*split)(const struct program *p, const struct op *op, int threads);      /* NULL: it has no blocks */
    /* Of an op that updates values (op_updated): the numbers of updated input i that a thread writes, if all is updated; and how a line of them is asked for ahead. NULL: nobody does. */
    struct span (*updates)(const struct kernel_call *c, const struct kernel_thread *t, int i);
    claim_fn *claim;
    const char *const *variants;    /* names of ways to run it, NULL at the end; the first is taken by rule; NULL: there is one */
    double (*below)(int variant);   /* what share of the first one's time it has to stay below to be taken, 0 where this machine has no such way; NULL: less than all of it */
};

/* Where a thread's own part of the scratch begins, of a kernel with shares; parts of a program's calls are the same. A thread that waits may help another with such a call, in its
 * own part: what it has there does not outlast a meeting. */
static inline size_t call_scratch_each(const struct kernel_call *c, int threads) { return c->scratch_bytes / (size_t)threads / 64 * 64; }
static inline void *call_scratch(const struct kernel_call *c, const struct kernel_thread *t)
{
    return (char *)c->scratch + (size_t)t->index * call_scratch_each(c, t->count);
}

/* Who does a piece of a thread's work: the thread itself, or who helps it. */
static inline struct kernel_thread kernel_doer(const struct kernel_thread *t, int helper)
{
    return helper < 0 ? *t : (struct kernel_thread){helper, t->count, t->team};
}

/* The tuned kernel for an op, else the plain one; NULL: there is none. */
const struct kernel *cpu_choose(struct backend *b, const struct program *p, const struct op *op);
/* How the kernel cuts the op for so many threads. */
struct blocks cpu_blocks(const struct kernel *k, const struct program *p, const struct op *op, int threads);
/* Runs calls that are in no prepared list, one after the other. */
void cpu_run_calls(struct backend *b, struct kernel_call *calls, int n);
/* Sets `early` and `settled` of calls that are bound to memory and run in this order, by so many threads. */
void cpu_find_waits(struct kernel_call *calls, int n, int threads);
/* Whether something is left to sum up behind a call. */
bool cpu_sums(const struct kernel *k, const struct program *p, const struct op *op, int threads);
/* Chooses the variants of calls whose op is timed. */
void cpu_tune(struct backend *b, struct kernel_call *calls, int n);

#endif
