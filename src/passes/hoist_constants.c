/* hoist-constants: ops without inputs give the same numbers in every step. They move to the setup, which runs once; their
 * outputs become tables, which persist; and equal ones become one. A table is named by what it holds, so that programs that
 * share memory by name (training and evaluation) share it too. */
#include "passes/optimize.h"
#include "program/rewriter.h"

static bool same_constant(const struct op *a, const struct op *b)
{
    return a->kind == b->kind && op_attrs_equal(&a->attrs, &b->attrs);
}

/* The first op behind the setup, and the one in it that makes the same as op `at`, or NO_OP. */
static int end_of_setup(const struct rewriter *r, int at, int *same)
{
    const struct op *ops = r->p->ops;
    int i = r->first;
    *same = NO_OP;
    for (; i != NO_OP && ops[i].phase == PHASE_SETUP; i = rewriter_next(r, i))
        if (same_constant(&ops[at], &ops[i]))
            *same = i;
    return i;
}

static const char *stretched(struct program *p, const struct rope_stretch *s)
{
    return s->factor == 0 ? "" : arena_printf(&p->arena, ".by%.9g.%.9g-%.9g.%.9g", s->factor, s->low, s->high, s->context);
}

static void make_table(struct program *p, const struct op *op, int out)
{
    struct value *v = &p->values[op->out[out]];
    v->kind = VALUE_TABLE;
    v->layer = NO_LAYER;
    program_rename(p, op->out[out], arena_printf(&p->arena, "table.%s.%lldx%lld.base%.9g%s.%d", op_info(op->kind)->name, (long long)op->attrs.rows,
                                                 (long long)op->attrs.cols, op->attrs.base, stretched(p, &op->attrs.stretch), out));
}

static void move_to_setup(struct rewriter *r, int at, int end)
{
    struct op *op = &r->p->ops[at];
    op->phase = PHASE_SETUP;
    op->layer = NO_LAYER;
    op->made_by = r->p->made_by;
    rewriter_move(r, at, end);
    for (int i = 0; i < op->n_out; i++)
        make_table(r->p, op, i);
}

static void share(struct rewriter *r, int at, int with)
{
    for (int i = 0; i < r->p->ops[at].n_out; i++)
        rewriter_replace(r, r->p->ops[at].out[i], r->p->ops[with].out[i]);
    rewriter_remove(r, at);
}

int pass_hoist_constants(struct program *p)
{
    struct rewriter r;
    int places = 0, same;
    rewriter_open(&r, p);
    for (int i = r.first, next; i != NO_OP; i = next) {
        next = rewriter_next(&r, i);
        if (p->ops[i].n_in || p->ops[i].phase == PHASE_SETUP)
            continue;
        const int end = end_of_setup(&r, i, &same);
        if (same == NO_OP)
            move_to_setup(&r, i, end);
        else
            share(&r, i, same);
        places++;
    }
    rewriter_close(&r);
    return places;
}
