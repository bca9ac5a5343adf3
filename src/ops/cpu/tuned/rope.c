/* Tuned: rotary positions, and the constants that are built from attributes. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "ops/cpu/tuned/narrow.h"
#include "program/rope.h"

/* One row of (H, D) with the table's row of D/2 repeated for every head. y may be x. */
static inline void rotate_row(float *y, const float *x, const float *restrict cosine, const float *restrict sine,
                              float sign, int64_t heads, int64_t half)
{
    for (int64_t h = 0; h < heads; h++)
        INDEPENDENT
        for (int64_t j = 0; j < half; j++) {
            const int64_t i = (h * half + j) * 2;
            const float u = x[i], v = x[i + 1], si = sign * sine[j];
            y[i] = u * cosine[j] - v * si;
            y[i + 1] = u * si + v * cosine[j];
        }
}

/* The same to bf16, some heads at a time, or a part of one that is large. */
static void rotate_row_bf16(uint16_t *y, const float *x, const float *cosine, const float *sine, float sign, int64_t heads, int64_t half)
{
    float piece[PIECE];
    const int64_t part = least(half, PIECE / 2), many = PIECE / 2 / part;
    for (int64_t h = 0; h < heads; h += many)
        for (int64_t j = 0; j < half; j += part) {
            const int64_t n = least(part, half - j), at = (h * half + j) * 2, together = least(many, heads - h);
            assert(n > 0 && together > 0);
            rotate_row(piece, x + at, cosine + j, sine + j, sign, together, n);
            narrow_piece(y + at, piece, 2 * n * together);
        }
}

static void rope(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct shape s = call_in(c, 0)->shape;    /* (B, T, H * D) */
    const int64_t half = shape_last(call_in(c, 1)->shape);
    const float *cosine = c->in[1], *sine = c->in[2], sign = c->op->attrs.inverse ? -1 : 1;
    const int32_t *places = c->op->n_in > 3 ? c->in[3] : NULL;
    const size_t size = gives_bf16(c, 0) ? sizeof(uint16_t) : sizeof(float);
    const struct span rows = my_rows(t, s.dim[0] * s.dim[1]);
    for (int64_t r = rows.lo; r < rows.hi; r++) {
        const int64_t place = places ? places[r] : r % s.dim[1], at = place * half;
        const float *x = (const float *)c->in[0] + r * s.dim[2];
        char *y = (char *)c->out[0] + (size_t)(r * s.dim[2]) * size;
        if (place < 0)
            memset(y, 0, (size_t)s.dim[2] * size);
        else if (gives_bf16(c, 0))
            rotate_row_bf16((uint16_t *)y, x, cosine + at, sine + at, sign, c->op->attrs.heads, half);
        else
            rotate_row((float *)y, x, cosine + at, sine + at, sign, c->op->attrs.heads, half);
    }
}

/* x, and the places of rows; of the table all. */
static struct share rope_share(const struct kernel_call *c, const struct kernel_thread *t)
{
    const int64_t rows = shape_rows(call_in(c, 0)->shape);
    return share_rows(my_rows(t, rows), rows, 1 | 8);
}

static void rope_table(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct op_attrs *a = &c->op->attrs;
    const struct span columns = my_rows(t, a->cols);
    for (int64_t j = columns.lo; j < columns.hi; j++) {
        const double frequency = rope_frequency(a->base, a->stretch, j, a->cols);
        for (int64_t i = 0; i < a->rows; i++) {
            double si, co;
            sincos((double)i * frequency, &si, &co);
            ((float *)c->out[0])[i * a->cols + j] = (float)co;
            ((float *)c->out[1])[i * a->cols + j] = (float)si;
        }
    }
}

static void causal_mask(const struct kernel_call *c, const struct kernel_thread *t)
{
    const int64_t n = c->op->attrs.rows;
    const struct span rows = my_rows(t, n);
    for (int64_t i = rows.lo; i < rows.hi; i++) {
        float *y = (float *)c->out[0] + i * n;
        for (int64_t j = 0; j <= i; j++)
            y[j] = 0;
        for (int64_t j = i + 1; j < n; j++)
            y[j] = -INFINITY;
    }
}

const struct kernel TUNED(rope)[] = {
    {.op = OP_ROPE, .name = "simd", .run = rope, .stores = true, .share = rope_share},
    {.op = OP_ROPE_TABLE, .name = "columns", .run = rope_table},
    {.op = OP_CAUSAL_MASK, .name = "rows", .run = causal_mask},
    {.run = NULL},
};
