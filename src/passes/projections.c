/* Several products of one input become one op; see projections.h. */
#include "passes/projections.h"

#include <string.h>

bool projection_is(const struct program *p, const struct op *op)
{
    if (op->kind != OP_MATMUL || op->phase != PHASE_FORWARD || op->attrs.trans_a || !op->attrs.trans_b ||
        p->values[op->in[1]].shape.rank != 2)
        return false;
    for (int i = 1; i < op->n_in; i++)
        if (p->values[op->in[i]].kind != VALUE_PARAMETER)
            return false;
    return true;
}

bool projections_fit(const struct op *a, const struct op *b)
{
    return a->in[0] == b->in[0] && a->layer == b->layer && a->n_in == b->n_in;
}

int projection_insert(struct rewriter *r, int at, enum op_kind kind, struct op_attrs attrs, const char *name, int n_in,
                      const value_id *in)
{
    struct program *p = r->p;
    const char *scope = p->scope, *of = p->values[p->ops[at].out[0]].name, *dot = strrchr(of, '.');
    const char *full = arena_printf(&p->arena, "%.*s%s", dot ? (int)(dot + 1 - of) : 0, of, name);
    p->scope = "";                      /* the name is whole */
    const int made = rewriter_insert(r, at, kind, attrs, full, n_in, in);
    p->scope = scope;
    return made;
}

static int insert_project(struct rewriter *r, const int *at, int n, int first, const char *name)
{
    const struct op *ops = r->p->ops;
    const bool bias = ops[first].n_in > 2;
    value_id in[1 + 2 * OP_MAX_OUT] = {ops[first].in[0]};
    for (int i = 0; i < n; i++) {
        in[1 + i] = ops[at[i]].in[1];
        if (bias)
            in[1 + n + i] = ops[at[i]].in[2];
    }
    return projection_insert(r, first, OP_PROJECT, (struct op_attrs){.parts = n}, name, bias ? 1 + 2 * n : 1 + n, in);
}

int projections_join(struct rewriter *r, const int *at, int n, const char *name)
{
    int first = at[0];
    for (int i = 1; i < n; i++)
        first = rewriter_is_before(r, at[i], first) ? at[i] : first;
    const int made = insert_project(r, at, n, first, name);
    for (int i = 0; made != NO_OP && i < n; i++) {
        rewriter_replace(r, r->p->ops[at[i]].out[0], r->p->ops[made].out[i]);
        rewriter_remove(r, at[i]);
    }
    return made;
}
