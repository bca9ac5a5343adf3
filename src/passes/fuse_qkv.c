/* fuse-qkv: the queries, keys and values of a layer are three products of one input; they become one op of three parts.
 * The weights stay three parameters, so checkpoints do not change. */
#include "passes/optimize.h"
#include "passes/projections.h"

enum role { QUERY, KEY, VALUE, ROLES, NO_ROLE = -1 };

/* What an attention op, in pieces or whole, takes as its input k. */
static enum role role_of_input(const struct op *op, int k)
{
    switch (op->kind) {
    case OP_ATTN_SCORES: return k == 0 ? QUERY : KEY;
    case OP_ATTN_MIX: return k == 1 ? VALUE : NO_ROLE;
    case OP_ATTENTION: return k < ROLES ? (enum role)k : NO_ROLE;
    default: return NO_ROLE;
    }
}

/* What value v, written by op `at`, is to attention, rotated or not. */
static enum role role_of(const struct program *p, int at, value_id v)
{
    for (int i = at + 1; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        for (int k = 0; k < op->n_in; k++) {
            if (op->in[k] != v)
                continue;
            const enum role role = op->kind == OP_ROPE && k == 0 ? role_of(p, i, op->out[0]) : role_of_input(op, k);
            if (role != NO_ROLE)
                return role;
        }
    }
    return NO_ROLE;
}

/* The products of the group that op `first` begins, by role; false: it is not whole. */
static bool find_group(const struct program *p, int first, int at[ROLES])
{
    for (int r = 0; r < ROLES; r++)
        at[r] = -1;
    int found = 0;
    for (int i = first; i < p->n_ops && found < ROLES; i++) {
        const struct op *op = &p->ops[i];
        if (!projection_is(p, op) || !projections_fit(&p->ops[first], op))
            continue;
        const enum role role = role_of(p, i, op->out[0]);
        if (role != NO_ROLE && at[role] < 0) {
            at[role] = i;
            found++;
        }
    }
    return found == ROLES;
}

int pass_fuse_qkv(struct program *p)
{
    int places = 0, at[ROLES];
    for (int i = 0; i < p->n_ops; i++)
        if (projection_is(p, &p->ops[i]) && role_of(p, i, p->ops[i].out[0]) != NO_ROLE && find_group(p, i, at)) {
            if (projections_join(p, at, ROLES, "qkv") < 0)
                break;
            places++;
        }
    return places;
}
