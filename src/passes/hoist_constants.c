/* hoist-constants: ops without inputs give the same numbers in every step. They move to the setup, which runs once; their
 * outputs become tables, which persist; and equal ones become one. A table is named by what it holds, so that programs that
 * share memory by name (training and evaluation) share it too. */
#include <string.h>

#include "passes/optimize.h"
#include "program/rewrite.h"

/* rows, cols and base are all the attributes that constants have. */
static bool same_constant(const struct op *a, const struct op *b)
{
    return a->kind == b->kind && a->attrs.rows == b->attrs.rows && a->attrs.cols == b->attrs.cols &&
           a->attrs.base == b->attrs.base;
}

/* The number of ops in the setup, and the one among them that makes the same as `op`, or -1. */
static int setup_length(const struct program *p, const struct op *op, int *same)
{
    int n = 0;
    *same = -1;
    for (; n < p->n_ops && p->ops[n].phase == PHASE_SETUP; n++)
        if (same_constant(op, &p->ops[n]))
            *same = n;
    return n;
}

static void make_table(struct program *p, const struct op *op, int out)
{
    struct value *v = &p->values[op->out[out]];
    v->kind = VALUE_TABLE;
    v->layer = NO_LAYER;
    v->name = arena_printf(&p->arena, "table.%s.%lldx%lld.base%.9g.%d", op_info(op->kind)->name, (long long)op->attrs.rows,
                           (long long)op->attrs.cols, op->attrs.base, out);
}

static void move_to_setup(struct program *p, int from, int to)
{
    struct op op = p->ops[from];
    op.phase = PHASE_SETUP;
    op.layer = NO_LAYER;
    op.made_by = p->made_by;
    memmove(&p->ops[to + 1], &p->ops[to], (size_t)(from - to) * sizeof op);
    p->ops[to] = op;
    for (int i = 0; i < op.n_out; i++)
        make_table(p, &op, i);
}

static void share(struct program *p, int from, int with)
{
    for (int i = 0; i < p->ops[from].n_out; i++)
        program_replace_value(p, p->ops[from].out[i], p->ops[with].out[i]);
    program_remove_op(p, from);
}

int pass_hoist_constants(struct program *p)
{
    int places = 0;
    for (int i = 0; i < p->n_ops; i++) {
        int same;
        const int length = setup_length(p, &p->ops[i], &same);
        if (p->ops[i].n_in || i < length)
            continue;
        if (same < 0)
            move_to_setup(p, i, length);
        else
            share(p, i--, same);
        places++;
    }
    return places;
}
