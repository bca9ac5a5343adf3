/* Links between ops, and from values to those that write and read them; see rewriter.h. */
#include "program/rewriter.h"

#include <stdlib.h>
#include <string.h>

#include "program/rewrite.h"

static const uint64_t GAP = (uint64_t)1 << 32;      /* between the orders of neighbours: ops come in between later */

static void *grown(void *list, int n, int *cap, size_t size)
{
    if (n <= *cap)
        return list;
    *cap = n < 2 * *cap ? 2 * *cap : n;
    return xrealloc(list, (size_t)*cap * size);
}

/* ---- uses ---- */

static void link_use(struct rewriter *r, int use, value_id v)
{
    struct value_uses *of = &r->values[v];
    r->uses[use].prev = NO_USE;
    r->uses[use].next = of->first;
    if (of->first != NO_USE)
        r->uses[of->first].prev = use;
    of->first = use;
    of->readers++;
}

static void unlink_use(struct rewriter *r, int use, value_id v)
{
    const struct value_use *u = &r->uses[use];
    if (u->prev == NO_USE)
        r->values[v].first = u->next;
    else
        r->uses[u->prev].next = u->next;
    if (u->next != NO_USE)
        r->uses[u->next].prev = u->prev;
    r->values[v].readers--;
}

static void add_uses(struct rewriter *r, int op)
{
    const struct op *o = &r->p->ops[op];
    r->uses = grown(r->uses, r->n_uses + o->n_in, &r->cap_uses, sizeof *r->uses);
    r->ops[op].first_use = r->n_uses;
    for (int k = 0; k < o->n_in; k++) {
        r->uses[r->n_uses] = (struct value_use){.op = op, .input = k};
        link_use(r, r->n_uses++, o->in[k]);
    }
}

static void drop_uses(struct rewriter *r, int op)
{
    const struct op *o = &r->p->ops[op];
    for (int k = 0; k < o->n_in; k++)
        unlink_use(r, r->ops[op].first_use + k, o->in[k]);
}

/* ---- the list ---- */

static void renumber(struct rewriter *r)
{
    uint64_t order = 0;
    for (int i = r->first; i != NO_OP; i = r->ops[i].next)
        r->ops[i].order = order += GAP;
}

static void link_op(struct rewriter *r, int op, int before)
{
    const int after = before == NO_OP ? r->last : r->ops[before].prev;
    r->ops[op].next = before;
    r->ops[op].prev = after;
    *(after == NO_OP ? &r->first : &r->ops[after].next) = op;
    *(before == NO_OP ? &r->last : &r->ops[before].prev) = op;
    const uint64_t low = after == NO_OP ? 0 : r->ops[after].order, high = before == NO_OP ? low + 2 * GAP : r->ops[before].order;
    r->ops[op].order = low + (high - low) / 2;
    if (r->ops[op].order == low)
        renumber(r);
}

static void unlink_op(struct rewriter *r, int op)
{
    const int next = r->ops[op].next, prev = r->ops[op].prev;
    *(prev == NO_OP ? &r->first : &r->ops[prev].next) = next;
    *(next == NO_OP ? &r->last : &r->ops[next].prev) = prev;
}

/* Takes up what the program has got since the last time: values, and ops at the end of its array, in front of `before`. */
static void take_up(struct rewriter *r, int before)
{
    const struct program *p = r->p;
    r->values = grown(r->values, p->n_values, &r->cap_values, sizeof *r->values);
    for (; r->n_values < p->n_values; r->n_values++)
        r->values[r->n_values] = (struct value_uses){.writer = NO_OP, .first = NO_USE};
    r->ops = grown(r->ops, p->n_ops, &r->cap_ops, sizeof *r->ops);
    for (; r->n_ops < p->n_ops; r->n_ops++) {
        const int op = r->n_ops;
        r->ops[op] = (struct op_place){0};
        link_op(r, op, before);
        add_uses(r, op);
        for (int k = 0; k < p->ops[op].n_out; k++)
            if (r->values[p->ops[op].out[k]].writer == NO_OP)
                r->values[p->ops[op].out[k]].writer = op;
    }
}

/* ---- from outside ---- */

void rewriter_open(struct rewriter *r, struct program *p)
{
    *r = (struct rewriter){.p = p, .first = NO_OP, .last = NO_OP};
    take_up(r, NO_OP);
}

void rewriter_close(struct rewriter *r)
{
    struct program *p = r->p;
    struct op *ops = xcalloc((size_t)p->cap_ops, sizeof *ops);
    int n = 0;
    for (int i = r->first; i != NO_OP; i = r->ops[i].next)
        ops[n++] = p->ops[i];
    free(p->ops);
    p->ops = ops;
    p->n_ops = n;
    free(r->ops);
    free(r->uses);
    free(r->values);
}

int rewriter_insert(struct rewriter *r, int before, enum op_kind kind, struct op_attrs attrs, const char *name, int n_in,
                    const value_id *in)
{
    struct program *p = r->p;
    const enum phase phase = p->phase;
    const int layer = p->layer;
    if (before != NO_OP) {
        p->phase = p->ops[before].phase;
        p->layer = p->ops[before].layer;
    }
    const int op = program_add_op(p, kind, attrs, name, n_in, in);
    p->phase = phase;
    p->layer = layer;
    if (op < 0)
        return NO_OP;
    take_up(r, before);
    return op;
}

void rewriter_move(struct rewriter *r, int op, int before)
{
    if (op == before)
        return;
    unlink_op(r, op);
    link_op(r, op, before);
}

void rewriter_remove(struct rewriter *r, int op)
{
    const struct op *o = &r->p->ops[op];
    unlink_op(r, op);
    drop_uses(r, op);
    for (int k = 0; k < o->n_out; k++)
        if (r->values[o->out[k]].writer == op)
            r->values[o->out[k]].writer = NO_OP;
}

void rewriter_set_inputs(struct rewriter *r, int op, int n_in, const value_id *in)
{
    struct op *o = &r->p->ops[op];
    drop_uses(r, op);
    o->in = arena_copy(&r->p->arena, in, (size_t)n_in * sizeof *in);
    o->n_in = n_in;
    add_uses(r, op);
}

void rewriter_replace(struct rewriter *r, value_id from, value_id to)
{
    for (int u; from != to && (u = r->values[from].first) != NO_USE;) {
        unlink_use(r, u, from);
        r->p->ops[r->uses[u].op].in[r->uses[u].input] = to;
        link_use(r, u, to);
    }
    program_replace_root(r->p, from, to);
}
