/* Gradient accumulation: forward and backward run several times per optimizer step. */
#include "passes/passes.h"

/* A state that starts at zero, takes x * weight in every micro-batch, and is zeroed after it was used. */
static value_id add_accumulator(struct program *p, const char *name, value_id x, value_id weight)
{
    const struct shape shape = p->values[x].shape;
    const value_id acc = program_add_value(p, name, VALUE_STATE, F32, shape);
    p->phase = PHASE_BACKWARD;
    if (weight == NO_VALUE)
        program_emit(p, OP_ACCUMULATE, (struct op_attrs){0}, name, 2, acc, x);
    else
        program_emit(p, OP_ACCUMULATE, (struct op_attrs){0}, name, 3, acc, x, weight);
    return acc;
}

/* The weighted mean, in the optimize phase, and a zeroed accumulator for the next step. */
static value_id take_mean(struct program *p, const char *name, value_id acc, value_id total)
{
    p->phase = PHASE_OPTIMIZE;
    const value_id mean = program_emit(p, OP_DIVIDE, (struct op_attrs){0}, name, 2, acc, total);
    program_emit(p, OP_ZERO, (struct op_attrs){0}, name, 1, acc);
    return mean;
}

enum status pass_accumulate(struct program *p, int micro_batches, struct error *err)
{
    if (micro_batches <= 1)
        return OK;
    p->made_by = "accumulate";
    p->micro_batches = micro_batches;
    program_scope(p, NO_LAYER, "accumulate");
    const int n = p->n_values;
    value_id *acc = arena_alloc(&p->arena, (size_t)n * sizeof *acc);
    const value_id total = add_accumulator(p, "count", p->count, NO_VALUE);
    const value_id loss = add_accumulator(p, "loss", p->loss, p->count);
    for (int i = 0; i < n; i++)
        if (p->values[i].kind == VALUE_PARAMETER)
            acc[i] = add_accumulator(p, p->values[i].name, p->values[i].grad, p->count);

    program_scope(p, NO_LAYER, "mean");
    p->loss = take_mean(p, "loss", loss, total);
    for (int i = 0; i < n; i++)
        if (p->values[i].kind == VALUE_PARAMETER) {
            const value_id mean = take_mean(p, p->values[i].name, acc[i], total);
            p->values[i].grad = mean;           /* only now: the list of values may have moved */
        }
    program_emit(p, OP_ZERO, (struct op_attrs){0}, "count", 1, total);
    p->count = NO_VALUE;                    /* gone: it was zeroed */
    program_scope(p, NO_LAYER, "%s", "");
    return p->error.status ? error_set(err, p->error.status, "accumulate: %s", p->error.text) : OK;
}
