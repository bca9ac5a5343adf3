/* Within the executor. */
#ifndef HONE_EXEC_EXEC_INT_H
#define HONE_EXEC_EXEC_INT_H

#include "backend/backend.h"

/* Sets `waits` of calls that are bound to memory and run in this order. scratch: bytes of what all that need scratch share. */
void exec_find_waits(struct kernel_call *calls, int n, size_t scratch);

#endif
