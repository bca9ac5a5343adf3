/* What a thread claims while it waits: lines of memory that it will write at the end of a step, and that all threads have read in it. Weights are such: a core that stores to a line which
 * others hold waits until they have let go, and an update on many cores is little else (docs/performance.md). So a thread that has nothing to do asks for lines of its own share, one
 * by one, once all have met behind the last call that reads them. Nothing but time hangs on it. */
#ifndef HONE_OPS_CPU_CLAIMS_H
#define HONE_OPS_CPU_CLAIMS_H

#include "ops/cpu/kernel.h"

struct claims;

/* Of calls that run in this order; NULL: there is nothing to claim. Where groups are left out of an update nobody knows before which numbers a thread will have: nothing is claimed. */
struct claims *claims_find(const struct kernel_call *calls, int n, int threads);
void claims_free(struct claims *c);                             /* NULL may be freed */

int claims_until(const struct claims *c);                       /* the first call that updates something: before it all is claimed, or never */
void claims_begin(struct claims *c, int thread);                /* a run begins */
void claims_reach(struct claims *c, int thread, int call, int met);     /* the thread begins this one, and all of them have met before `met` */
/* The line that the thread may claim next; NULL: there is none now. */
const void *claims_next(struct claims *c, int thread);
void claims_take(struct claims *c, int thread);                 /* asks for that line, where there is one, and waits for it */

#endif
