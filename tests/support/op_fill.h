/* Makes the inputs of an op case: values of a program and their contents. */
#ifndef HONE_TESTS_OP_FILL_H
#define HONE_TESTS_OP_FILL_H

#include "core/bf16.h"
#include "core/f16.h"
#include "core/rng.h"
#include "support/op_cases.h"
#include "support/plain.h"

static inline void narrow_floats(uint16_t *to, const float *from, int64_t n, enum dtype type)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = type == BF16 ? bf16_bits(from[i]) : f16_bits(from[i]);
}

/* n numbers of a type as f32; the caller frees them. */
static inline float *widened(const void *from, int64_t n, enum dtype type)
{
    float *to = plain_alloc((size_t)n * sizeof *to);
    const uint16_t *half = from;
    for (int64_t i = 0; i < n; i++)
        to[i] = type == F32 ? ((const float *)from)[i] : type == BF16 ? bf16_value(half[i]) : f16_value(half[i]);
    return to;
}

static inline bool content_is_int(enum content c) { return c >= IDS && c <= COUNTER; }
static inline bool content_has_gradient(enum content c) { return c == NORMAL || c == MASKED; }

static inline int case_inputs(const struct op_case *c)
{
    int n = 0;
    while (n < CASE_INPUTS && c->in[n].content != NOTHING)
        n++;
    return n;
}

/* Columns above the row, as a causal mask sees a (.., T, T) value. */
static inline bool is_masked(struct shape s, int64_t i)
{
    const int64_t n = shape_last(s);
    return i % n > i / n % n;
}

static inline void fill_floats(float *x, const struct case_input *in, uint64_t key, uint64_t stream)
{
    const int64_t n = shape_count(in->shape), width = shape_last(in->shape);
    rng_fill_normal(x, n, 1, key, stream);
    for (int64_t i = 0; i < n; i++)
        switch (in->content) {
        case MASKED: x[i] = is_masked(in->shape, i) ? -INFINITY : x[i]; break;
        case MASK: x[i] = is_masked(in->shape, i) ? -INFINITY : 0; break;
        case LARGE: x[i] = 1024; break;
        case HIGH: x[i] = 4 + fabsf(x[i]); break;
        case POSITIVE: x[i] = 0.1f + fabsf(x[i]); break;
        case NOT_A_NUMBER: x[i] = NAN; break;
        case SOME: x[i] = i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : 0.5f; break;
        default: break;
        }
    if (in->content != PROBABILITIES && in->content != LOG_PROBABILITIES)
        return;
    for (int64_t r = 0; r < n / width; r++) {
        double sum = 0;
        for (int64_t i = 0; i < width; i++)
            sum += exp(x[r * width + i]);
        for (int64_t i = 0; i < width; i++) {
            const double logp = x[r * width + i] - log(sum);
            x[r * width + i] = (float)(in->content == PROBABILITIES ? exp(logp) : logp);
        }
    }
}

static inline void fill_ints(int32_t *x, const struct case_input *in, uint64_t key, uint64_t stream)
{
    for (int64_t i = 0; i < shape_count(in->shape); i++) {
        x[i] = (int32_t)rng_below(key, stream, (uint64_t)i, 5);
        if (in->content == PADDING || (in->content == TARGETS && i && rng_below(key, stream + 1, (uint64_t)i, 3) == 0))
            x[i] = -1;
        if (in->content == STARTS)      /* samples of 1, 36, 71... places */
            x[i] = i % shape_last(in->shape) == 0 || i % shape_last(in->shape) == x[i - 1] + 1 + 35 * (x[i - 1] % 5) ? (int32_t)(i % shape_last(in->shape)) : x[i - 1];
        if (in->content == PLACES)
            x[i] = (i / shape_last(in->shape) + i % shape_last(in->shape)) % 4 == 3 ? -1 : (int32_t)(i / shape_last(in->shape) * 7 + i % shape_last(in->shape));
        if (in->content == COUNTER || in->content == FIRST)
            x[i] = in->content == FIRST ? 1 : 4;
    }
}

/* Fills value v as input i of the case; the same numbers for the same case in every run. */
static inline void fill_input(struct plain *x, value_id v, const struct op_case *c, int i)
{
    const uint64_t stream = (uint64_t)i * 16, key = (uint64_t)(c - op_cases);
    const enum dtype type = x->program->values[v].dtype;
    const int64_t n = shape_count(c->in[i].shape);
    if (content_is_int(c->in[i].content)) {
        fill_ints(x->memory[v], &c->in[i], key, stream);
        return;
    }
    float *wide = dtype_is_narrow(type) ? plain_alloc((size_t)n * sizeof *wide) : x->memory[v];
    fill_floats(wide, &c->in[i], key, stream);
    if (dtype_is_narrow(type)) {
        narrow_floats(x->memory[v], wide, n, type);
        free(wide);
    }
}

#endif
