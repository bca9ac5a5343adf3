/* Gradients of biases by the product that gives those of the weights: dw = dy^T x, and the gradient of the bias is the sum of the rows of dy,
 * which cuBLASLt makes on the way. The op that would sum them has nothing left to do, and what it writes is written by the product, which
 * comes before it: that memory must not be in use yet, and who orders ops by the memory they touch must see it. */
#include <stdlib.h>
#include <string.h>

#include "ops/cuda/products.h"

/* A product with one more output. */
struct widened_op {
    struct op op;
    value_id out[2];
    void *memory[2];
};

static bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    return (const char *)a < (const char *)b + b_bytes && (const char *)b < (const char *)a + a_bytes;
}

static bool touches(const struct bound_op *b, const void *memory, size_t bytes)
{
    for (int i = 0; i < b->op->n_in; i++)
        if (overlap(b->in[i], value_bytes(&b->program->values[b->op->in[i]]), memory, bytes))
            return true;
    for (int i = 0; i < b->op->n_out; i++)
        if (overlap(b->out[i], value_bytes(&b->program->values[b->op->out[i]]), memory, bytes))
            return true;
    return false;
}

static bool gives_weights(const struct cuda_call *c, value_id dy)
{
    return c->op->kind == OP_MATMUL && c->op->attrs.trans_a && !c->op->attrs.trans_b && c->op->n_in == 2 && c->op->in[0] == dy &&
           c->plans[0] && c->plans[0]->product.end == END_PLAIN && dtype_is_narrow(cuda_in(c, 0)->dtype) && cuda_out(c, 0)->dtype == F32;
}

/* The product before op `sum` that can do its work; -1: none. */
static int product_for(const struct prepared *p, int sum)
{
    const struct cuda_call *s = &p->calls[sum];
    const size_t bytes = value_bytes(cuda_out(s, 0));
    if (s->op->kind != OP_SUM_LEADING || cuda_out(s, 0)->shape.rank != 1)
        return -1;
    for (int i = sum - 1; i >= 0; i--) {
        if (touches(&p->ops[i], s->out[0], bytes))
            return -1;
        if (gives_weights(&p->calls[i], s->op->in[0]) && shape_last(cuda_in(s, 0)->shape) == shape_count(cuda_out(s, 0)->shape))
            return i;
    }
    return -1;
}

static void widen(struct bound_op *b, struct widened_op *w, const struct cuda_call *sum)
{
    w->op = *b->op;
    w->out[0] = b->op->out[0];
    w->out[1] = sum->op->out[0];
    w->memory[0] = b->out[0];
    w->memory[1] = sum->out[0];
    w->op.n_out = 2;
    w->op.out = w->out;
    b->op = &w->op;
    b->out = w->memory;
}

static enum status merge(struct cuda_backend *b, struct prepared *p, int product, int sum, struct widened_op *w, struct error *err)
{
    struct cuda_call *c = &p->calls[product];
    struct product wanted = c->plans[0]->product;
    struct cuda_plan *plan = NULL;
    wanted.end = END_BIAS_GRAD;
    const enum status st = cuda_plan_product(b, &plan, &wanted, c->op->timed, err);
    if (st != OK || plan->n_ways == 0)
        return st;
    c->plans[0] = plan;
    c->beside = p->calls[sum].out[0];
    p->calls[sum].merged = true;
    widen(&p->own_ops[product], w, &p->calls[sum]);
    return OK;
}

enum status cuda_merge_bias_grads(struct cuda_backend *b, struct prepared *p, struct error *err)
{
    enum status st = OK;
    p->own_ops = calloc((size_t)p->n + 1, sizeof *p->own_ops);
    p->widened = calloc((size_t)p->n + 1, sizeof *p->widened);
    if (!p->own_ops || !p->widened)
        return error_no_memory(err, "a list of ops", (size_t)p->n * sizeof *p->widened);
    memcpy(p->own_ops, p->ops, (size_t)p->n * sizeof *p->own_ops);
    for (int i = 0; i < p->n && st == OK; i++) {
        const int product = product_for(p, i);
        if (product >= 0)
            st = merge(b, p, product, i, &p->widened[i], err);
    }
    p->ops = p->own_ops;
    return st;
}
