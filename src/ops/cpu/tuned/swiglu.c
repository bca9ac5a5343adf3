/* Tuned: the gated unit, forward and backward in one sweep each. Nothing is kept from the forward: the sigmoid is made
 * again from the gate. Results may lie where inputs were: every element is read before it is written. */
#include <string.h>

#include "ops/cpu/tuned/vec.h"

/* Of a gate g: w is g, or -87 below that, where the sigmoid s = 1 / (1 + e) with e = e^-g is 0 but for its last digits. */
struct gate { vec w, e, s; };

INLINE void open_gates(struct gate x[STRANDS], const float *gate)
{
    EACH_STRAND(k) x[k].w = larger(load(gate + k * LANES), all(-87));
    EACH_STRAND(k) x[k].e = exp_low(-x[k].w);
    EACH_STRAND(k) x[k].s = 1 / (1 + x[k].e);
}

/* STRIDE elements each, the results from element i on. */
INLINE void forward(struct place y, int64_t i, const float *gate, const float *up)
{
    struct gate x[STRANDS];
    open_gates(x, gate);
    EACH_STRAND(k) put(y, i + k * LANES, x[k].w * x[k].s * load(up + k * LANES));
}

INLINE void backward(struct place d_gate, struct place d_up, int64_t i, const float *gate, const float *up, const float *dy)
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
        put(d_gate, i + k * LANES, a[k]);
        put(d_up, i + k * LANES, b[k]);
    }
}

/* What is left of a span, less than STRIDE elements. */
static void take_rest(float part[STRIDE], const float *from, int64_t n) { memcpy(part, from, (size_t)n * sizeof *from); }
static void put_rest(struct place to, int64_t i, const float *part, int64_t n)
{
    memcpy(place_at(to, i).at, part, (size_t)n * place_size(to));
}

INLINE void swiglu_all(const struct kernel_call *c, const struct kernel_thread *t, const bool bf16)
{
    const float *gate = c->in[0], *up = c->in[1];
    const struct place y = {c->out[0], bf16};
    float part[3][STRIDE] = {{0}};
    const struct span s = my_elements(t, in_count(c, 0));
    int64_t i = s.lo;
    for (; i + STRIDE <= s.hi; i += STRIDE)
        forward(y, i, gate + i, up + i);
    take_rest(part[0], gate + i, s.hi - i);
    take_rest(part[1], up + i, s.hi - i);
    forward((struct place){part[2], bf16}, 0, part[0], part[1]);
    put_rest(y, i, part[2], s.hi - i);
}

INLINE void swiglu_grad_all(const struct kernel_call *c, const struct kernel_thread *t, const bool gate_bf16, const bool up_bf16)
{
    const float *gate = c->in[0], *up = c->in[1], *dy = c->in[2];
    const struct place d_gate = {c->out[0], gate_bf16}, d_up = {c->out[1], up_bf16};
    float part[5][STRIDE] = {{0}};
    const struct span s = my_elements(t, in_count(c, 0));
    int64_t i = s.lo;
    for (; i + STRIDE <= s.hi; i += STRIDE)
        backward(d_gate, d_up, i, gate + i, up + i, dy + i);
    take_rest(part[0], gate + i, s.hi - i);
    take_rest(part[1], up + i, s.hi - i);
    take_rest(part[2], dy + i, s.hi - i);
    backward((struct place){part[3], gate_bf16}, (struct place){part[4], up_bf16}, 0, part[0], part[1], part[2]);
    put_rest(d_gate, i, part[3], s.hi - i);
    put_rest(d_up, i, part[4], s.hi - i);
}

static bool gives_bf16(const struct kernel_call *c, int i) { return call_out(c, i)->dtype == BF16; }

static void swiglu(const struct kernel_call *c, const struct kernel_thread *t)
{
    if (gives_bf16(c, 0))
        swiglu_all(c, t, true);
    else
        swiglu_all(c, t, false);
}

static void swiglu_grad(const struct kernel_call *c, const struct kernel_thread *t)
{
    if (gives_bf16(c, 0) && gives_bf16(c, 1))
        swiglu_grad_all(c, t, true, true);
    else if (gives_bf16(c, 0) || gives_bf16(c, 1))
        swiglu_grad_all(c, t, gives_bf16(c, 0), gives_bf16(c, 1));
    else
        swiglu_grad_all(c, t, false, false);
}

const struct kernel TUNED(swiglu)[] = {
    {.op = OP_SWIGLU, .name = "simd", .run = swiglu, .stores = true},
    {.op = OP_SWIGLU_GRAD, .name = "simd", .run = swiglu_grad, .stores = true},
    {.run = NULL},
};
