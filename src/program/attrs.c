/* When two ops have the same attributes: the one place that knows all of them. */
#include "program/ops.h"

/* Field by field: padding between them is not defined. A new attribute of struct op_attrs gets its line here;
 * tests/unit/test_program.c changes every one of them in turn. */
static bool members_equal(const struct op_attrs *a, const struct op_attrs *b)
{
    bool equal = a->n_members == b->n_members;
    for (int i = 0; i < a->n_members && equal; i++)
        equal = a->members[i].group == b->members[i].group && a->members[i].unit == b->members[i].unit;
    return equal;
}

static bool cuts_equal(const struct op_attrs *a, const struct op_attrs *b)
{
    bool equal = a->n_cuts == b->n_cuts;
    for (int i = 0; i < a->n_cuts && equal; i++)
        equal = a->cuts[i] == b->cuts[i];
    return equal;
}

static bool stretches_equal(const struct rope_stretch *a, const struct rope_stretch *b)
{
    return a->factor == b->factor && a->low == b->low && a->high == b->high && a->context == b->context;
}

bool op_attrs_equal(const struct op_attrs *a, const struct op_attrs *b)
{
    return a->trans_a == b->trans_a && a->trans_b == b->trans_b && a->inverse == b->inverse && a->causal == b->causal &&
           a->round == b->round && a->to == b->to && a->copies == b->copies && a->packed == b->packed && a->scaled == b->scaled && a->heads == b->heads && a->kv_heads == b->kv_heads && a->parts == b->parts &&
           a->rows == b->rows && a->cols == b->cols && a->scale == b->scale && a->eps == b->eps && a->value == b->value &&
           a->prob == b->prob && a->base == b->base && stretches_equal(&a->stretch, &b->stretch) && a->seed == b->seed && a->stream == b->stream && a->lr == b->lr &&
           a->min_lr == b->min_lr && a->weight_decay == b->weight_decay && a->beta1 == b->beta1 && a->beta2 == b->beta2 &&
           a->max_norm == b->max_norm && a->schedule == b->schedule && a->warmup == b->warmup && a->total == b->total && a->masked == b->masked &&
           a->random == b->random && a->k == b->k && a->every == b->every && members_equal(a, b) && a->sliced == b->sliced &&
           a->first == b->first && cuts_equal(a, b);
}
