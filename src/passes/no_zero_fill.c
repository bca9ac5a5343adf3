/* no-zero-fill: sums of gradients over micro-batches need no zeros to start from. A table counts the micro-batches of a step;
 * in the first one the sums are written, in the others added to. The results have the same bits; between steps the sums hold
 * what is left of the last one, and nothing reads them. */
#include "passes/optimize.h"
#include "program/rewrite.h"

/* The op that adds to `sum`, if it is the only one that changes it but for the zero at `zero`, and nothing reads it earlier
 * than the step's end or later than that zero; else -1. */
static int find_accumulate(const struct program *p, value_id sum, int zero)
{
    int found = -1;
    for (int i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        for (int k = 0; k < op->n_in && i != zero; k++) {
            const bool adds = op->kind == OP_ACCUMULATE && k == 0;
            if (op->in[k] != sum)
                continue;
            if (adds ? found >= 0 || op->n_in != 3 || op->phase >= PHASE_OPTIMIZE : op->phase < PHASE_OPTIMIZE || i > zero)
                return -1;
            found = adds ? i : found;
        }
    }
    return found;
}

static int first_accumulate(const struct program *p)
{
    int i = 0;
    while (i < p->n_ops && p->ops[i].kind != OP_ACCUMULATE)
        i++;
    return i;
}

/* Counts the micro-batches of a step: + 1 before anything is added up, and zero again in front of the op `zero`. Two ops more
 * stand before that one now. */
static value_id add_counter(struct program *p, int zero)
{
    const struct op_attrs none = {0};
    const int layer = p->layer;
    program_scope(p, NO_LAYER, "%s", "");
    const value_id batch = program_add_value(p, "accumulate.batch", VALUE_TABLE, I32, shape_of(0));
    p->layer = layer;
    const bool added = program_insert_op(p, zero, OP_ZERO, none, "accumulate.batch", 1, &batch) >= 0 &&
                       program_insert_op(p, first_accumulate(p), OP_ADVANCE, none, "accumulate.batch", 1, &batch) >= 0;
    return added ? batch : NO_VALUE;
}

static void write_first(struct program *p, struct op *op, value_id batch)
{
    const value_id in[] = {op->in[0], op->in[1], op->in[2], batch};
    op->in = arena_copy(&p->arena, in, sizeof in);
    op->n_in = 4;
    op->made_by = p->made_by;
}

int pass_no_zero_fill(struct program *p)
{
    value_id batch = NO_VALUE;
    int places = 0;
    for (int i = 0; i < p->n_ops; i++) {
        const bool zero = p->ops[i].kind == OP_ZERO && p->ops[i].phase == PHASE_OPTIMIZE;
        const value_id sum = zero ? p->ops[i].in[0] : NO_VALUE;
        if (!zero || find_accumulate(p, sum, i) < 0)
            continue;
        if (batch == NO_VALUE) {
            batch = add_counter(p, i);
            i += 2;
        }
        if (batch == NO_VALUE)
            break;
        write_first(p, &p->ops[find_accumulate(p, sum, i)], batch);
        program_remove_op(p, i--);
        places++;
    }
    return places;
}
