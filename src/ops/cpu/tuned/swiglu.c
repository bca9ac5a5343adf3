/* Tuned: the gated unit, forward and backward in one sweep each. Nothing is kept from the forward: the sigmoid is made
 * again from the gate. Results may lie where inputs were: every element is read before it is written. */
#include <string.h>

#include "ops/cpu/tuned/narrow.h"
#include "ops/cpu/tuned/vec.h"

/* Of a gate g: w is g, or -87 below that, where the sigmoid s = 1 / (1 + e) with e = e^-g is 0 but for its last digits. */
struct gate { vec w, e, s; };

INLINE void open_gates(struct gate x[STRANDS], const float *gate)
{
    EACH_STRAND(k) x[k].w = larger(load(gate + k * LANES), all(-87));
    EACH_STRAND(k) x[k].e = exp_low(-x[k].w);
    EACH_STRAND(k) x[k].s = 1 / (1 + x[k].e);
}

/* STRIDE elements each. */
static void forward(float *y, const float *gate, const float *up)
{
    struct gate x[STRANDS];
    open_gates(x, gate);
    EACH_STRAND(k) store(y + k * LANES, x[k].w * x[k].s * load(up + k * LANES));
}

static void backward(float *d_gate, float *d_up, const float *gate, const float *up, const float *dy)
{
    struct gate x[STRANDS];
    vec a[STRANDS], b[STRANDS];
    open_gates(x, gate);
    EACH_STRAND(k) {
        const vec d = load(dy + k * LANES) * x[k].s;
        a[k] = d * load(up + k * LANES) * (x[k].w * (x[k].e * x[k].s) + 1);        /* 1 - s is e s */
        b[k] = d * x[k].w;
    }
    EACH_STRAND(k) {
        store(d_gate + k * LANES, a[k]);
        store(d_up + k * LANES, b[k]);
    }
}

static void forward_all(float *y, const float *gate, const float *up, int64_t n)
{
    float part[3][STRIDE] = {{0}};
    int64_t i = 0;
    for (; i + STRIDE <= n; i += STRIDE)
        forward(y + i, gate + i, up + i);
    const size_t rest = (size_t)(n - i) * sizeof *y;
    memcpy(part[0], gate + i, rest);
    memcpy(part[1], up + i, rest);
    forward(part[2], part[0], part[1]);
    memcpy(y + i, part[2], rest);
}

static void backward_all(float *d_gate, float *d_up, const float *gate, const float *up, const float *dy, int64_t n)
{
    float part[5][STRIDE] = {{0}};
    int64_t i = 0;
    for (; i + STRIDE <= n; i += STRIDE)
        backward(d_gate + i, d_up + i, gate + i, up + i, dy + i);
    const size_t rest = (size_t)(n - i) * sizeof *dy;
    memcpy(part[0], gate + i, rest);
    memcpy(part[1], up + i, rest);
    memcpy(part[2], dy + i, rest);
    backward(part[3], part[4], part[0], part[1], part[2]);
    memcpy(d_gate + i, part[3], rest);
    memcpy(d_up + i, part[4], rest);
}

static void swiglu(const struct kernel_call *c, const struct kernel_thread *t)
{
    const float *gate = c->in[0], *up = c->in[1];
    const struct span s = my_elements(t, in_count(c, 0));
    float piece[PIECE];
    if (!gives_bf16(c, 0))
        forward_all((float *)c->out[0] + s.lo, gate + s.lo, up + s.lo, s.hi - s.lo);
    for (int64_t i = s.lo; gives_bf16(c, 0) && i < s.hi; i += PIECE) {
        const int64_t n = least(PIECE, s.hi - i);
        forward_all(piece, gate + i, up + i, n);
        narrow_piece((uint16_t *)c->out[0] + i, piece, n);
    }
}

/* A piece, each of the results as it is wanted. */
static void backward_piece(const struct kernel_call *c, int64_t i, int64_t n)
{
    const float *gate = c->in[0], *up = c->in[1], *dy = c->in[2];
    float piece[2][PIECE];
    float *d_gate = gives_bf16(c, 0) ? piece[0] : (float *)c->out[0] + i, *d_up = gives_bf16(c, 1) ? piece[1] : (float *)c->out[1] + i;
    backward_all(d_gate, d_up, gate + i, up + i, dy + i, n);
    for (int k = 0; k < 2; k++)
        if (gives_bf16(c, k))
            narrow_piece((uint16_t *)c->out[k] + i, piece[k], n);
}

static void swiglu_grad(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct span s = my_elements(t, in_count(c, 0));
    for (int64_t i = s.lo; i < s.hi; i += PIECE)
        backward_piece(c, i, least(PIECE, s.hi - i));
}

static struct share elements(const struct kernel_call *c, const struct kernel_thread *t)
{
    return share_rows(my_elements(t, in_count(c, 0)), in_count(c, 0), ~0u);
}

const struct kernel TUNED(swiglu)[] = {
    {.op = OP_SWIGLU, .name = "simd", .run = swiglu, .stores = true, .share = elements},
    {.op = OP_SWIGLU_GRAD, .name = "simd", .run = swiglu_grad, .stores = true, .share = elements},
    {.run = NULL},
};
