/* Within the executor. */
#ifndef HONE_EXEC_EXEC_INT_H
#define HONE_EXEC_EXEC_INT_H

#include "backend/backend.h"
#include "exec/exec.h"

struct memory_plan;

/* ---- plan.c: each adds to *m what it is asked about ---- */

void exec_count_value(struct exec_memory *m, const struct value *v);       /* one that persists */
void exec_count_kept(struct exec_memory *m, const struct program *p, struct backend *b);        /* when all ops are counted */
/* Scratch is shared, so only the most that any op needs counts. */
enum status exec_count_op(struct exec_memory *m, const struct program *p, const struct op *op, struct backend *b, struct error *err);
void exec_count_workspace(struct exec_memory *m, const struct program *p, const struct memory_plan *plan);

/* ---- exec.c ---- */

const struct backend *exec_backend(const struct exec *e);
bool exec_is_touched(const struct exec *e);        /* a step was run or something written: memory is not what the backend gave */

#endif
