/* GELU and its gradient at the end of products. A program says: linear_gelu makes gelu(u) and its slope at u; behind it, a product gives dy,
 * and mul makes du = dy * slope. Where nobody else reads dy or the slope: of large products cuBLASLt applies GELU before it stores, if u
 * itself is kept in the memory of the slope, and multiplies by the slope there, which pays where the inner dimension is long; where
 * it is short, a sweep takes the place of mul. Small products have a kernel that multiplies by the slope. */
#include "ops/cuda/products.h"

static const double LARGE_FLOPS = 6e9, SMALL_FLOPS = 2e8;
enum { LONG = 512 };

struct pair { int gelu, product, mul; value_id slope, dy; };

static int writer_of(const struct cuda_call *calls, int n, value_id v)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < calls[i].op->n_out; j++)
            if (calls[i].op->out[j] == v)
                return i;
    return -1;
}

static int readers_of(const struct cuda_call *calls, int n, value_id v)
{
    int readers = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < calls[i].op->n_in; j++)
            readers += calls[i].op->in[j] == v;
    return readers;
}

static bool is_gelu(const struct cuda_call *c, value_id slope)
{
    return c->op->kind == OP_LINEAR_GELU && c->op->n_out == 2 && c->op->out[1] == slope && c->plans[0] &&
           c->plans[0]->product.end == END_PLAIN && dtype_is_narrow(cuda_in(c, 0)->dtype) && cuda_out(c, 1)->dtype == cuda_in(c, 0)->dtype;
}

static bool is_plain_product(const struct cuda_call *c, enum dtype t)
{
    return c->op->kind == OP_MATMUL && c->op->n_in == 2 && c->plans[0] && c->plans[0]->product.end == END_PLAIN && cuda_in(c, 0)->dtype == t &&
           cuda_out(c, 0)->dtype == t;
}

static bool find_pair(struct pair *p, const struct cuda_call *calls, int n, int mul, int side)
{
    const struct op *op = calls[mul].op;
    *p = (struct pair){.mul = mul, .slope = op->in[side], .dy = op->in[1 - side]};
    p->gelu = writer_of(calls, n, p->slope);
    p->product = writer_of(calls, n, p->dy);
    return p->gelu >= 0 && p->product > p->gelu && p->product < mul && is_gelu(&calls[p->gelu], p->slope) &&
           is_plain_product(&calls[p->product], cuda_out(&calls[p->gelu], 1)->dtype) && readers_of(calls, n, p->slope) == 1 &&
           readers_of(calls, n, p->dy) == 1 && calls[mul].out[0] == calls[p->product].out[0] &&
           !value_is_persistent(&calls[mul].program->values[p->slope]) && !value_is_persistent(&calls[mul].program->values[p->dy]);
}

static enum status end_with(struct cuda_backend *b, struct cuda_plan **out, const struct cuda_call *c, enum product_end end, struct error *err)
{
    struct product p = c->plans[0]->product;
    p.end = end;
    return cuda_plan_product(b, out, &p, c->op->timed, err);
}

static enum status merge_small(struct cuda_backend *b, struct cuda_call *calls, const struct pair *p, struct error *err)
{
    struct cuda_call *product = &calls[p->product];
    struct cuda_plan *plan = NULL;
    const enum status st = end_with(b, &plan, product, END_TIMES, err);
    if (st != OK || plan->small_ways == 0)
        return st;
    product->plans[0] = plan;
    product->beside = calls[p->gelu].out[1];
    calls[p->mul].merged = true;
    return OK;
}

static enum status merge_large(struct cuda_backend *b, struct prepared *list, const struct pair *p, struct error *err)
{
    struct cuda_call *gelu = &list->calls[p->gelu], *product = &list->calls[p->product], *mul = &list->calls[p->mul];
    struct cuda_plan *forward = NULL, *backward = NULL;
    enum status st = end_with(b, &forward, gelu, END_GELU, err);
    if (st != OK || forward->n_ways == 0)
        return st;
    if (product->plans[0]->product.k >= LONG)
        st = end_with(b, &backward, product, END_GELU_GRAD, err);
    if (st != OK)
        return st;
    gelu->plans[0] = forward;
    if (backward && backward->n_ways > 0) {
        product->plans[0] = backward;
        product->beside = gelu->out[1];
        mul->merged = true;
    } else {
        mul->beside = gelu->out[1];
        list->kernels[p->mul] = &cuda_gelu_sweep;
    }
    return OK;
}

static enum status merge(struct cuda_backend *b, struct prepared *list, const struct pair *p, struct error *err)
{
    const struct cuda_call *gelu = &list->calls[p->gelu];
    const double flops = op_flops(gelu->program, gelu->op);
    return flops > LARGE_FLOPS ? merge_large(b, list, p, err) : flops < SMALL_FLOPS ? merge_small(b, list->calls, p, err) : OK;
}

enum status cuda_pair_gelu(struct cuda_backend *b, struct prepared *list, struct error *err)
{
    enum status st = OK;
    for (int i = 0; i < list->n && st == OK; i++)
        for (int side = 0; side < 2 && list->calls[i].op->kind == OP_MUL && !list->calls[i].merged && st == OK; side++) {
            struct pair p;
            if (find_pair(&p, list->calls, list->n, i, side))
                st = merge(b, list, &p, err);
        }
    return st;
}
