/* Within the executor. */
#ifndef HONE_EXEC_EXEC_INT_H
#define HONE_EXEC_EXEC_INT_H

#include "backend/backend.h"
#include "exec/exec.h"

struct memory_plan;

/* ---- plan.c: each adds to *m what it is asked about ---- */

void exec_count_value(struct exec_memory *m, const struct value *v);       /* one that persists */
/* Scratch is shared, so only the most that any op needs counts. */
enum status exec_count_op(struct exec_memory *m, const struct program *p, const struct op *op, struct backend *b, struct error *err);
void exec_count_workspace(struct exec_memory *m, const struct program *p, const struct memory_plan *plan);

/* ---- draw.c: first values of weights ---- */

struct team;

/* Threads to draw with; NULL: one is enough, or there are no more. team_free ends them. */
struct team *exec_new_drawers(const struct program *p, const struct backend *b);
void exec_draw_normal(struct team *t, float *out, const struct value *v, uint64_t seed);        /* t may be NULL */

#endif
