/* Results of an op case on a backend, held against the reference and against each other. */
#ifndef HONE_TESTS_OP_COMPARE_H
#define HONE_TESTS_OP_COMPARE_H

#include "support/op_fill.h"

/* Which values of a case are of 16 bits: those with one of these letters (program/types.c). Copies are so in any case. */
struct typing {
    enum dtype type;
    const char *letters;
};

static inline enum dtype type_of(struct typing t, enum op_type letter)
{
    if (letter == TYPE_I32)
        return I32;
    if (letter == TYPE_NARROW)
        return t.type == F32 ? BF16 : t.type;
    return strchr(t.letters, (int)(letter == TYPE_STORED ? TYPE_ALIKE : letter)) ? t.type : F32;
}

/* A program of the one op, whose inputs are given. */
static inline struct program *program_of_typed_case(const struct op_case *c, struct typing types)
{
    struct program *p = program_new("case");
    struct error err;
    value_id in[CASE_INPUTS];
    const int n = case_inputs(c);
    const struct op like = {.kind = c->kind, .n_in = n, .attrs = c->attrs};
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "in%d", i);
        in[i] = program_add_value(p, name, i < op_updated(c->kind, &c->attrs) ? VALUE_STATE : VALUE_INPUT,
                                  content_is_int(c->in[i].content) ? I32 : type_of(types, op_in_type(&like, i)), c->in[i].shape);
    }
    for (int i = 0; i < n && c->attrs.masked; i++)
        p->values[in[i]].group = i % 4 - 1;
    program_add_op(p, c->kind, c->attrs, "out", n, in);
    for (int i = op_updated(c->kind, &c->attrs); i < p->ops[0].n_out && c->kind != OP_CAST; i++)
        p->values[p->ops[0].out[i]].dtype = type_of(types, op_out_type(&p->ops[0], i));
    assert_ok(program_validate(p, &err), err);
    return p;
}

static inline struct program *program_of_case(const struct op_case *c) { return program_of_typed_case(c, (struct typing){F32, ""}); }

struct variant {
    struct backend *backend;
    int alias;              /* output 0 takes the memory of this input; -1: none */
    bool nan;               /* the first number of the first float input is NaN */
};

static inline void fail_case(const struct op_case *c, struct variant v, const char *what, int out, int64_t i, double is,
                             double should)
{
    fail_msg("%s, case %d, %d threads, alias %d, nan %d: %s: output %d[%lld] is %.9g; it should be %.9g",
             op_info(c->kind)->name, (int)(c - op_cases), v.backend->lanes, v.alias, v.nan, what, out, (long long)i,
             is, should);
}

/* Blocks of causal attention multiply a NaN by weights that are 0 because of the mask, as ops on whole weights do; the
 * reference leaves those out. */
static inline bool spreads_further(enum op_kind kind) { return kind == OP_ATTENTION || kind == OP_ATTENTION_GRAD; }

static inline void compare_floats(const struct op_case *c, struct variant v, int out, const float *is, const float *should,
                                  int64_t n, double tolerance)
{
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(should[i]) && fabs(should[i]) > largest)
            largest = fabs(should[i]);
    for (int64_t i = 0; i < n; i++) {
        if (isnan(should[i]) ? isnan(is[i]) : is[i] == should[i] || (isnan(is[i]) && v.nan && spreads_further(c->kind)))
            continue;
        if (!(fabs((double)is[i] - should[i]) <= tolerance * largest))
            fail_case(c, v, "differs from the reference", out, i, is[i], should[i]);
    }
}

/* Two numbers that are nearly the same may be rounded to neighbours. */
static inline double one_rounding(enum dtype type) { return type == BF16 ? 0x1p-7 : type == F16 ? 0x1p-10 : 0; }

static inline void compare(const struct op_case *c, struct variant v, const struct plain *is, const struct plain *should,
                           const double tolerances[OP_KINDS])
{
    const struct op *op = &is->program->ops[0];
    for (int j = 0; j < op->n_out; j++) {
        const struct value *value = &is->program->values[op->out[j]];
        const void *a = is->memory[op->out[j]], *b = should->memory[op->out[j]];
        const int64_t n = shape_count(value->shape);
        if (value->dtype == I32) {
            assert_memory_equal(a, b, value_bytes(value));
            continue;
        }
        float *x = widened(a, n, value->dtype), *y = widened(b, n, value->dtype);
        compare_floats(c, v, j, x, y, n, tolerances[c->kind] + one_rounding(value->dtype));
        free(x);
        free(y);
    }
}

static inline void assert_same_bits(const struct op_case *c, struct variant v, const struct plain *a, const struct plain *b)
{
    const struct op *op = &a->program->ops[0];
    for (int j = 0; j < op->n_out; j++)
        if (memcmp(a->memory[op->out[j]], b->memory[op->out[j]], value_bytes(&a->program->values[op->out[j]])))
            fail_msg("%s, case %d, %d threads, alias %d: output %d differs between two runs that must be equal",
                     op_info(c->kind)->name, (int)(c - op_cases), v.backend->lanes, v.alias, j);
}

static inline bool may_alias(const struct program *p, int i)
{
    const struct op *op = &p->ops[0];
    return (op_info(op->kind)->reuse >> i & 1) &&
           p->values[op->in[i]].dtype == p->values[op->out[0]].dtype &&
           value_bytes(&p->values[op->in[i]]) == value_bytes(&p->values[op->out[0]]);
}

#endif
