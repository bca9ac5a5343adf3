/* Programs of attention and its gradient alone. */
#ifndef HONE_TESTS_ATTENTION_H
#define HONE_TESTS_ATTENTION_H

#include "support/check.h"
#include "support/plain.h"

struct sizes { int64_t batch, seq, heads, kv_heads, size; };
enum { Q, K, V, DY, TICK, INPUTS };

/* Attention of inputs q, k, v and its gradient for dy; op 0 and op 1. */
static inline struct program *attention_program(struct sizes s, bool causal, float prob)
{
    struct program *p = program_new("attention");
    const struct shape q = shape_of(3, s.batch, s.seq, s.heads * s.size), k = shape_of(3, s.batch, s.seq, s.kv_heads * s.size);
    const struct shape shapes[] = {q, k, k, q};
    for (int i = 0; i < 4; i++)
        program_add_value(p, (const char *[]){"q", "k", "v", "dy"}[i], VALUE_INPUT, F32, shapes[i]);
    program_add_value(p, "tick", VALUE_INPUT, I32, shape_of(0));
    const struct op_attrs attrs = {.heads = (int32_t)s.heads, .kv_heads = (int32_t)s.kv_heads, .causal = causal, .prob = prob,
                                   .scale = 1 / sqrtf((float)s.size), .seed = 11, .stream = 3};
    p->phase = PHASE_FORWARD;
    const int at = program_add_op(p, OP_ATTENTION, attrs, "y", prob > 0 ? 4 : 3, (value_id[]){Q, K, V, TICK});
    assert_int_equal(at, 0);
    const value_id *out = p->ops[0].out;                /* y, largest, sums */
    p->phase = PHASE_BACKWARD;
    program_add_op(p, OP_ATTENTION_GRAD, attrs, "d", prob > 0 ? 8 : 7,
                   (value_id[]){DY, Q, K, V, out[0], out[1], out[2], TICK});
    struct error err;
    assert_ok(program_validate(p, &err), err);
    return p;
}

/* The same of rows that hold several samples. */
static inline struct program *packed_program(struct sizes s, float prob)
{
    struct program *p = attention_program(s, true, prob);
    const value_id starts = program_add_value(p, "starts", VALUE_INPUT, I32, shape_of(2, s.batch, s.seq));
    for (int i = 0; i < 2; i++) {
        struct op *op = &p->ops[i];
        value_id in[9];
        memcpy(in, op->in, (size_t)op->n_in * sizeof *in);
        in[op->n_in++] = starts;
        op->in = arena_copy(&p->arena, in, (size_t)op->n_in * sizeof *in);
        op->attrs.packed = true;
    }
    struct error err;
    assert_ok(program_validate(p, &err), err);
    return p;
}

/* Samples of 1 to 2 * mean tokens. */
static inline void write_starts(struct plain *x, struct sizes s, int64_t mean)
{
    int32_t *starts = xcalloc((size_t)(s.batch * s.seq), sizeof *starts);
    for (int64_t i = 0, first = 0, next = 0; i < s.batch * s.seq; i++) {
        if (i % s.seq == 0 || i == next) {
            first = i % s.seq;
            next = i + 1 + (int64_t)rng_below(5, 6, (uint64_t)i, (uint64_t)(2 * mean));
        }
        starts[i] = (int32_t)first;
    }
    plain_write(x, program_find(x->program, "starts"), starts);
    free(starts);
}

#endif
