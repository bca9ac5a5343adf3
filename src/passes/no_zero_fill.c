/* no-zero-fill: sums of gradients over micro-batches need no zeros to start from. A table counts the micro-batches of a step;
 * in the first one the sums are written, in the others added to. The results have the same bits; between steps the sums hold
 * what is left of the last one, and nothing reads them. */
#include "passes/optimize.h"
#include "program/rewriter.h"

/* The op that adds to `sum`, if it is the only one that changes it but for the op `zero`, and nothing reads it earlier than the
 * step's end or later than that zero; else NO_OP. */
static int find_accumulate(const struct rewriter *r, value_id sum, int zero)
{
    int found = NO_OP;
    for (int u = rewriter_first_use(r, sum); u != NO_USE; u = r->uses[u].next) {
        const int i = r->uses[u].op;
        const struct op *op = &r->p->ops[i];
        const bool adds = op->kind == OP_ACCUMULATE && r->uses[u].input == 0;
        if (i == zero)
            continue;
        if (adds ? found != NO_OP || op->n_in != 3 || op->phase >= PHASE_OPTIMIZE
                 : op->phase < PHASE_OPTIMIZE || rewriter_is_before(r, zero, i))
            return NO_OP;
        found = adds ? i : found;
    }
    return found;
}

static int first_accumulate(const struct rewriter *r)
{
    int i = r->first;
    while (i != NO_OP && r->p->ops[i].kind != OP_ACCUMULATE)
        i = rewriter_next(r, i);
    return i;
}

/* Counts the micro-batches of a step: + 1 before anything is added up, and zero again in front of the op `zero`. */
static value_id add_counter(struct rewriter *r, int zero)
{
    const struct op_attrs none = {0};
    struct program *p = r->p;
    const int layer = p->layer;
    program_scope(p, NO_LAYER, "%s", "");
    const value_id batch = program_add_value(p, "accumulate.batch", VALUE_TABLE, I32, shape_of(0));
    p->layer = layer;
    const bool added = rewriter_insert(r, zero, OP_ZERO, none, "accumulate.batch", 1, &batch) != NO_OP &&
                       rewriter_insert(r, first_accumulate(r), OP_ADVANCE, none, "accumulate.batch", 1, &batch) != NO_OP;
    return added ? batch : NO_VALUE;
}

static void write_first(struct rewriter *r, int at, value_id batch)
{
    struct op *op = &r->p->ops[at];
    const value_id in[] = {op->in[0], op->in[1], op->in[2], batch};
    rewriter_set_inputs(r, at, 4, in);
    op->made_by = r->p->made_by;
}

static int rewrite_zeros(struct rewriter *r)
{
    value_id batch = NO_VALUE;
    int places = 0;
    for (int i = r->first, next; i != NO_OP; i = next) {
        const struct op *op = &r->p->ops[i];
        next = rewriter_next(r, i);
        const int adds = op->kind == OP_ZERO && op->phase == PHASE_OPTIMIZE ? find_accumulate(r, op->in[0], i) : NO_OP;
        if (adds == NO_OP)
            continue;
        if (batch == NO_VALUE)
            batch = add_counter(r, i);
        if (batch == NO_VALUE)
            break;
        write_first(r, adds, batch);
        rewriter_remove(r, i);
        places++;
    }
    return places;
}

int pass_no_zero_fill(struct program *p)
{
    struct rewriter r;
    rewriter_open(&r, p);
    const int places = rewrite_zeros(&r);
    rewriter_close(&r);
    return places;
}
