/* The loss scale of f16, whose least number is 6e-8: gradients would be zero. The loss counts as `scale` times as large, and so do all
 * gradients; clipping gives the true norm and a factor that takes the scale off in the update. Where a gradient became infinite the step
 * changes nothing and the scale is halved; after many good steps in a row it is doubled. The scale is a state: it is saved, and a run
 * that goes on goes on with it. */
#include "passes/loss_scale.h"

#include <string.h>

#include "passes/passes.h"
#include "program/rewrite.h"

static const float FIRST_SCALE = 0x1p16f;
enum { GOOD_STEPS = 2000 };         /* before it is doubled */

static value_id add_state(struct program *p, const char *name, enum dtype type, float first)
{
    const value_id v = program_add_value(p, name, VALUE_STATE, type, shape_of(0));
    p->values[v].init = INIT_VALUE;
    p->values[v].init_std = first;
    return v;
}

static void insert_input(struct program *p, struct op *op, int at, value_id v)
{
    value_id *in = arena_alloc(&p->arena, (size_t)(op->n_in + 1) * sizeof *in);
    memcpy(in, op->in, (size_t)at * sizeof *in);
    in[at] = v;
    memcpy(in + at + 1, op->in + at, (size_t)(op->n_in - at) * sizeof *in);
    op->in = in;
    op->n_in++;
}

/* The gradient of the loss by itself, which is 1 elsewhere. The loss that a step tells may be a mean over micro-batches or ranks: backward begins at that of one. */
static void replace_seed(struct program *p, value_id scale)
{
    for (int i = p->n_ops - 1; i >= 0; i--)
        if (p->ops[i].kind == OP_FILL && p->ops[i].phase == PHASE_BACKWARD) {
            program_replace_value(p, p->ops[i].out[0], scale);
            program_remove_op(p, i);
        }
}

void add_loss_scale(struct program *p)
{
    value_id factor = NO_VALUE;
    if (p->loss_scale != NO_VALUE)
        return;
    program_scope(p, NO_LAYER, "%s", "");
    const value_id scale = add_state(p, LOSS_SCALE, F32, FIRST_SCALE), good = add_state(p, LOSS_SCALE ".good_steps", I32, 0);
    p->loss_scale = scale;
    replace_seed(p, scale);
    for (int i = 0; i < p->n_ops; i++) {
        struct op *op = &p->ops[i];
        if (op->kind == OP_LINEAR_LOSS && op->attrs.parts == 4)
            insert_input(p, op, 3, scale);
        if (op->kind == OP_CLIP) {
            insert_input(p, op, 1, scale);
            op->attrs.scaled = true;
            factor = op->out[1];
        }
    }
    const value_id in[] = {scale, good, factor};
    p->phase = PHASE_OPTIMIZE;
    program_add_op(p, OP_RESCALE, (struct op_attrs){.total = GOOD_STEPS}, "rescale", 3, in);
}
