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
    case OP_STORE_KV: return k == 2 ? KEY : k == 3 ? VALUE : NO_ROLE;
    case OP_ATTEND_KV: return k == 0 ? QUERY : NO_ROLE;
    default: return NO_ROLE;
    }
}

/* What value v is to attention, rotated or not: what its first reader with a role says. */
static enum role role_of(const struct rewriter *r, value_id v)
{
    enum role role = NO_ROLE;
    int first = NO_USE;
    for (int u = rewriter_first_use(r, v); u != NO_USE; u = r->uses[u].next) {
        const struct value_use *use = &r->uses[u];
        const struct op *op = &r->p->ops[use->op];
        const enum role own = op->kind == OP_ROPE && use->input == 0 ? role_of(r, op->out[0]) : role_of_input(op, use->input);
        if (own == NO_ROLE)
            continue;
        const bool earlier = first == NO_USE || rewriter_is_before(r, use->op, r->uses[first].op) ||
                             (use->op == r->uses[first].op && use->input < r->uses[first].input);
        first = earlier ? u : first;
        role = earlier ? own : role;
    }
    return role;
}

/* The products of the group that op `first` begins, by role, of each the first; false: it is not whole. */
static bool find_group(const struct rewriter *r, int first, int at[ROLES])
{
    const struct op *ops = r->p->ops;
    for (int i = 0; i < ROLES; i++)
        at[i] = NO_OP;
    for (int u = rewriter_first_use(r, ops[first].in[0]); u != NO_USE; u = r->uses[u].next) {
        const int i = r->uses[u].op;
        if (r->uses[u].input != 0 || rewriter_is_before(r, i, first) || !projection_is(r->p, &ops[i]) ||
            !projections_fit(&ops[first], &ops[i]))
            continue;
        const enum role role = role_of(r, ops[i].out[0]);
        if (role != NO_ROLE && (at[role] == NO_OP || rewriter_is_before(r, i, at[role])))
            at[role] = i;
    }
    return at[QUERY] != NO_OP && at[KEY] != NO_OP && at[VALUE] != NO_OP;
}

int pass_fuse_qkv(struct program *p)
{
    struct rewriter r;
    int places = 0, at[ROLES];
    rewriter_open(&r, p);
    for (int i = r.first; i != NO_OP; i = rewriter_next(&r, i))
        if (projection_is(p, &p->ops[i]) && role_of(&r, p->ops[i].out[0]) != NO_ROLE && find_group(&r, i, at)) {
            i = projections_join(&r, at, ROLES, "qkv");
            if (i == NO_OP)
                break;
            places++;
        }
    rewriter_close(&r);
    return places;
}
