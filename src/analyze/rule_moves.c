/* Ops that compute nothing. layout-copies: the same numbers are written somewhere else. zero-grad-fills: buffers are
 * filled with a constant that a later op could overwrite instead of adding to. */
#include "analyze/rules.h"

/* One input, one output with the same elements, all of both moved, no arithmetic; or arithmetic that changes nothing:
 * a sum over no dimension, dropout of nothing. */
static bool only_moves(const struct program *p, const struct op *op)
{
    if (op->n_in < 1 || op->n_out != 1 || op_info(op->kind)->n_updated || op->kind == OP_HOST_READ)
        return false;
    const int64_t n = shape_count(p->values[op->out[0]].shape);
    if (n < 2 || shape_count(p->values[op->in[0]].shape) != n)
        return false;
    if (op->kind == OP_SUM_LEADING || op->kind == OP_DROPOUT)
        return op->kind == OP_SUM_LEADING || op->attrs.prob == 0;
    const double moved = (double)(value_bytes(&p->values[op->in[0]]) + value_bytes(&p->values[op->out[0]]));
    return op->n_in == 1 && op_flops(p, op) == 0 && op_bytes(p, op) >= moved;
}

static bool only_fills(const struct program *p, const struct op *op)
{
    return (op->kind == OP_ZERO || op->kind == OP_FILL) && shape_count(p->values[op->out[0]].shape) > 1;
}

static double claim_all(struct scene *s, struct claim *c, bool (*is)(const struct program *p, const struct op *op))
{
    double bytes = 0;
    for (int i = 0; i < s->p->n_ops; i++)
        if (scene_runs(s, i) > 0 && is(s->program, scene_op(s, i))) {
            claim_op(s, c, i);
            c->won_low_us += scene_self_us(s, i);
            bytes += op_bytes(s->program, scene_op(s, i)) * scene_runs(s, i);
        }
    c->won_us = c->won_high_us = c->involved_us;
    return bytes;
}

bool rule_layout_copies(struct scene *s, struct claim *c)
{
    struct arena *a = &s->p->arena;
    const double bytes = claim_all(s, c, only_moves);
    if (!c->n_ops)
        return false;
    c->won_low_us /= 2;                     /* the consumer may read more slowly what was not laid out for it */
    c->finding.where = claim_where(s, c);
    c->finding.cause = arena_printf(a, "%d op%s data without computing anything", c->n_ops,
                                    c->n_ops == 1 ? " moves" : "s move");
    c->finding.fix =
        arena_printf(a, "Let the op that follows read the source in its own layout, or the one before write it so");
    c->finding.evidence = arena_printf(a, "%s moved in %s of the %s", text_bytes(a, bytes),
                                       text_us(a, c->involved_us), scene_step(s));
    return true;
}

bool rule_zero_grad_fills(struct scene *s, struct claim *c)
{
    struct arena *a = &s->p->arena;
    const double bytes = claim_all(s, c, only_fills);
    if (!c->n_ops)
        return false;
    c->finding.where = claim_where(s, c);
    c->finding.cause = arena_printf(a, "%d buffer%s filled in every step, and then added to", c->n_ops,
                                    c->n_ops == 1 ? " is" : "s are");
    c->finding.fix = arena_printf(a, "--set optimize.no-zero-fill=on: the first op that adds to a buffer writes it instead");
    c->finding.evidence = arena_printf(a, "%s filled in %s of the %s", text_bytes(a, bytes),
                                       text_us(a, c->involved_us), scene_step(s));
    return true;
}
