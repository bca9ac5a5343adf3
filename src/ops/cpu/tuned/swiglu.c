/* Tuned: the gated unit, forward and backward in one sweep each. Nothing is kept from the forward: the sigmoid is made
 * again from the gate. Results may lie where inputs were: every element is read before it is written. */
#include "ops/cpu/tuned/tuned.h"

static void swiglu(const struct kernel_call *c, const struct kernel_thread *t)
{
    const float *gate = c->in[0], *up = c->in[1];
    float *y = c->out[0];
    const struct span s = my_elements(t, in_count(c, 0));
    INDEPENDENT
    for (int64_t i = s.lo; i < s.hi; i++)
        y[i] = gate[i] * fast_sigmoid(gate[i]) * up[i];
}

static void swiglu_grad(const struct kernel_call *c, const struct kernel_thread *t)
{
    const float *gate = c->in[0], *up = c->in[1], *dy = c->in[2];
    float *d_gate = c->out[0], *d_up = c->out[1];
    const struct span s = my_elements(t, in_count(c, 0));
    INDEPENDENT
    for (int64_t i = s.lo; i < s.hi; i++) {
        const float g = gate[i], d = dy[i], sigmoid = fast_sigmoid(g);
        d_gate[i] = d * up[i] * sigmoid * (1 + g * (1 - sigmoid));
        d_up[i] = d * g * sigmoid;
    }
}

const struct kernel TUNED(swiglu)[] = {
    {.op = OP_SWIGLU, .name = "simd", .run = swiglu},
    {.op = OP_SWIGLU_GRAD, .name = "simd", .run = swiglu_grad},
    {.run = NULL},
};
