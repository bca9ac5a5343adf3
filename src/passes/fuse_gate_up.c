/* fuse-gate-up: mul(silu(x g^T), x u^T) becomes one op of two products and one sweep over their results. The weights stay
 * two parameters; what SiLU gave is not kept for the backward but made again. */
#include "passes/optimize.h"
#include "passes/projections.h"
#include "program/rewrite.h"

/* The ops of one gated unit. */
struct unit { int gate, up, silu, mul; };

/* Op `mul` with input k from a SiLU that nothing else reads, both sides from products of one input. */
static bool find_unit(const struct rewriter *r, int mul, int k, struct unit *u)
{
    const struct program *p = r->p;
    const struct op *op = &p->ops[mul];
    const value_id act = op->in[k];
    u->mul = mul;
    u->silu = rewriter_writer(r, act);
    if (u->silu < 0 || p->ops[u->silu].kind != OP_SILU || rewriter_readers(r, act) != 1 || program_is_root(p, act))
        return false;
    u->gate = rewriter_writer(r, p->ops[u->silu].in[0]);
    u->up = rewriter_writer(r, op->in[1 - k]);
    return u->gate >= 0 && u->up >= 0 && u->gate != u->up && projection_is(p, &p->ops[u->gate]) &&
           projection_is(p, &p->ops[u->up]) && projections_fit(&p->ops[u->gate], &p->ops[u->up]);
}

/* Returns the op that now makes the unit's result, or NO_OP after a mistake, which is in p->error. */
static int fuse(struct rewriter *r, const struct unit *u)
{
    const struct program *p = r->p;
    const int project = projections_join(r, (int[]){u->gate, u->up}, 2, "gate_up");
    if (project == NO_OP)
        return NO_OP;
    const value_id in[] = {p->ops[project].out[0], p->ops[project].out[1]};
    const int made = projection_insert(r, u->mul, OP_SWIGLU, (struct op_attrs){0}, "swiglu", 2, in);
    if (made == NO_OP)
        return NO_OP;
    rewriter_replace(r, p->ops[u->mul].out[0], p->ops[made].out[0]);
    rewriter_remove(r, u->mul);
    rewriter_remove(r, u->silu);
    return made;
}

int pass_fuse_gate_up(struct program *p)
{
    struct rewriter r;
    struct unit u;
    int places = 0;
    rewriter_open(&r, p);
    for (int i = r.first; i != NO_OP; i = rewriter_next(&r, i))
        if (p->ops[i].kind == OP_MUL && (find_unit(&r, i, 0, &u) || find_unit(&r, i, 1, &u))) {
            i = fuse(&r, &u);
            if (i == NO_OP)
                break;
            places++;
        }
    rewriter_close(&r);
    return places;
}
