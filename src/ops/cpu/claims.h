/* What a thread claims while it waits: lines of memory that it will write at the end of a step, and that all threads have read in it. Weights are such: a core that stores to a line which
 * others hold waits until they have let go, and an update on many cores is little else (docs/performance.md). So a thread that has nothing to do asks for lines of its own share, one
 * by one, once nobody reads them any more. Nothing but time hangs on it. */
#ifndef HONE_OPS_CPU_CLAIMS_H
#define HONE_OPS_CPU_CLAIMS_H

#include "ops/cpu/kernel.h"

struct claims;

/* Of calls that run in this order; NULL: there is nothing to claim. */
struct claims *claims_find(const struct kernel_call *calls, int n, int threads);
void claims_free(struct claims *c);                             /* NULL may be freed */

int claims_until(const struct claims *c);                       /* the first call that updates something: before it all is claimed, or never */
void claims_begin(struct claims *c, int thread);                /* a run begins */
void claims_reach(struct claims *c, int thread, int call);      /* the thread begins this one */
/* The line that the thread may claim next, nobody reads it in the calls from here on; NULL: there is none now. */
const void *claims_next(struct claims *c, int thread);
void claims_take(struct claims *c, int thread);                 /* asks for that line, where there is one, and waits for it */

#endif
