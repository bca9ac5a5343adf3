/* fuse-gate-up: mul(silu(x g^T), x u^T) becomes one op of two products and one sweep over their results. The weights stay
 * two parameters; what SiLU gave is not kept for the backward but made again. */
#include "passes/optimize.h"
#include "passes/projections.h"
#include "program/rewrite.h"

/* The ops of one gated unit. */
struct unit { int gate, up, silu, mul; };

/* Op `mul` with input k from a SiLU that nothing else reads, both sides from products of one input. */
static bool find_unit(const struct program *p, int mul, int k, struct unit *u)
{
    const struct op *op = &p->ops[mul];
    const value_id act = op->in[k];
    u->mul = mul;
    u->silu = program_writer(p, act);
    if (u->silu < 0 || p->ops[u->silu].kind != OP_SILU || program_readers(p, act, NULL) != 1 || program_is_root(p, act))
        return false;
    u->gate = program_writer(p, p->ops[u->silu].in[0]);
    u->up = program_writer(p, op->in[1 - k]);
    return u->gate >= 0 && u->up >= 0 && u->gate != u->up && projection_is(p, &p->ops[u->gate]) &&
           projection_is(p, &p->ops[u->up]) && projections_fit(&p->ops[u->gate], &p->ops[u->up]);
}

/* Returns the index of the op that now makes the unit's result, or -1 after a mistake, which is in p->error. */
static int fuse(struct program *p, const struct unit *u)
{
    const value_id act = p->ops[u->silu].out[0], y = p->ops[u->mul].out[0];
    const int project = projections_join(p, (int[]){u->gate, u->up}, 2, "gate_up");
    if (project < 0)
        return -1;
    const value_id in[] = {p->ops[project].out[0], p->ops[project].out[1]};
    const int at = projection_insert(p, program_writer(p, y), OP_SWIGLU, (struct op_attrs){0}, "swiglu", 2, in);
    if (at < 0)
        return -1;
    const value_id made = p->ops[at].out[0];
    program_replace_value(p, y, made);
    program_remove_op(p, program_writer(p, y));
    program_remove_op(p, program_writer(p, act));
    return program_writer(p, made);
}

int pass_fuse_gate_up(struct program *p)
{
    int places = 0;
    struct unit u;
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_MUL && (find_unit(p, i, 0, &u) || find_unit(p, i, 1, &u))) {
            i = fuse(p, &u);
            if (i < 0)
                break;
            places++;
        }
    return places;
}
