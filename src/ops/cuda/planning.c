/* Which plans the ops of a list need. */
#include "ops/cuda/products.h"
#include "ops/cuda/sums.h"

static int products_of(struct product out[CALL_PLANS], const struct cuda_call *c)
{
    switch (c->op->kind) {
    case OP_MATMUL: case OP_PROJECT: case OP_PROJECT_GRAD: case OP_LINEAR_GELU: return cuda_matrix_products(out, c->program, c->op);
    case OP_LINEAR_LOSS: return cuda_loss_products(out, c->program, c->op);
    default: return 0;
    }
}

static enum status plan_all(struct cuda_backend *b, struct prepared *p, struct error *err)
{
    enum status st = OK;
    for (int i = 0; i < p->n && st == OK; i++) {
        struct cuda_call *c = &p->calls[i];
        struct product products[CALL_PLANS];
        const int wanted = products_of(products, c);
        for (int j = 0; j < wanted && st == OK; j++)
            st = cuda_plan_product(b, &c->plans[j], &products[j], c->op->timed, err);
        if (st == OK && wanted > 1)
            st = cuda_plan_together(b, c, products, wanted, err);
    }
    return st;
}

enum status cuda_plan_calls(struct cuda_backend *b, struct prepared *p, struct error *err)
{
    enum status st = plan_all(b, p, err);
    if (st == OK && b->merges)
        st = cuda_pair_gelu(b, p, err);
    if (st == OK && b->merges)
        cuda_merge_sums(p);
    if (st == OK) {
        cuda_tune_plans(b);
        cuda_choose_small(b, p->calls, p->n, false);
        if (b->merges)
            cuda_find_groups(p->calls, p->n);
        cuda_choose_small(b, p->calls, p->n, true);
        if (b->merges) {
            cuda_join_sweeps(p->calls, p->n);
            cuda_pair_ropes(p->calls, p->n);
            cuda_place_biases(b, p);
            cuda_place_parts(b, p);
        }
    }
    return st;
}

double cuda_saves_us(const struct cuda_call *c)
{
    double sum = c->saves_us;
    if (c->at_once)
        return sum + c->together->saves_us;
    if (c->pieces)
        return sum;
    for (int i = 0; i < CALL_PLANS && c->plans[i]; i++)
        sum += c->plans[i]->saves_us;
    return sum;
}

bool cuda_is_small(const struct cuda_call *c)
{
    return c->pieces > 0 || (c->op->kind == OP_MATMUL && c->plans[0] && cuda_plan_is_small(c->plans[0]));
}
