/* Sums over rows on the way. What sums a gradient for a bias reads all of it again, a moment after it was made. Where a kernel of ours
 * makes it, whose threads have its numbers in registers, that one sums them; sums of matrices of one shape that are there at the same time are
 * one launch. The op that would have summed has nothing left to do then. */
#include "ops/cuda/sums.h"

enum { PAYS = 1 << 20 };            /* numbers of a matrix: below, a launch of its own beside other ops costs less */

static bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    return (const char *)a < (const char *)b + b_bytes && (const char *)b < (const char *)a + a_bytes;
}

static bool touches(const struct cuda_call *c, const void *memory, size_t bytes)
{
    bool touched = c->beside && overlap(memory, bytes, c->beside, value_bytes(cuda_out(c, 0)));
    for (int i = 0; i < c->op->n_in; i++)
        touched |= overlap(memory, bytes, c->in[i], value_bytes(cuda_in(c, i)));
    for (int i = 0; i < c->op->n_out; i++)
        touched |= overlap(memory, bytes, c->out[i], value_bytes(cuda_out(c, i)));
    for (int i = 0; i < c->sums.n; i++)
        touched |= overlap(memory, bytes, c->sums.to[i], c->sums.to_bytes);
    return touched;
}

/* Whether the result of op `sum` may be written when op `at` runs already. */
static bool may_come_early(const struct prepared *list, int at, int sum)
{
    const struct cuda_call *s = &list->calls[sum];
    bool free = true;
    for (int i = at; i < sum && free; i++)
        free = !touches(&list->calls[i], s->out[0], value_bytes(cuda_out(s, 0)));
    return free;
}

/* The op before `end` that writes the value; -1: none. */
static int writer_of(const struct prepared *list, int end, value_id v)
{
    for (int i = end - 1; i >= 0; i--)
        for (int j = 0; j < list->calls[i].op->n_out; j++)
            if (list->calls[i].op->out[j] == v)
                return i;
    return -1;
}

/* A sum over all dimensions but the last, of rows of whole packs. */
static bool is_sum_of_rows(const struct cuda_call *c)
{
    const struct value *x = c->op->kind == OP_SUM_LEADING ? cuda_in(c, 0) : NULL;
    return x && !c->merged && shape_count(cuda_out(c, 0)->shape) == shape_last(x->shape) && shape_count(x->shape) >= PAYS &&
           shape_last(x->shape) * (int64_t)dtype_size(x->dtype) % 16 == 0;
}

static bool can_sum(const struct cuda_call *c)
{
    if (c->merged || c->sums.n)
        return false;
    return c->op->kind == OP_MUL || (c->op->kind == OP_LAYERNORM_GRAD && cuda_layernorm_grad_pieces.count(c->program, c->op) > 1);
}

static void merge(struct prepared *list, int into, int sum, const void *of)
{
    struct cuda_call *c = &list->calls[into], *s = &list->calls[sum];
    struct cuda_sums *sums = &c->sums;
    sums->of[sums->n] = of;
    sums->to[sums->n++] = s->out[0];
    sums->of_bytes = value_bytes(cuda_in(s, 0));
    sums->to_bytes = value_bytes(cuda_out(s, 0));
    sums->scratch = list->kernels[sum]->scratch(s->program, s->op);
    s->merged = true;
}

/* An earlier op that sums a matrix of the same shape and type, and is left out when this one is, when this one has been made already: op `made`
 * does, or none. */
static int sum_alike(const struct prepared *list, int sum, int made)
{
    const struct value *x = cuda_in(&list->calls[sum], 0);
    for (int i = sum - 1; i > made; i--) {
        const struct cuda_call *c = &list->calls[i];
        if (is_sum_of_rows(c) && c->sums.n < SUMS_MOST && c->leave == list->calls[sum].leave &&
            shape_equal(cuda_in(c, 0)->shape, x->shape) && cuda_in(c, 0)->dtype == x->dtype &&
            may_come_early(list, i, sum))
            return i;
    }
    return -1;
}

void cuda_merge_sums(struct prepared *list)
{
    for (int i = 0; i < list->n; i++) {
        const struct cuda_call *s = &list->calls[i];
        if (!is_sum_of_rows(s))
            continue;
        const int made = writer_of(list, i, s->op->in[0]);
        if (made >= 0 && list->calls[made].op->out[0] == s->op->in[0] && can_sum(&list->calls[made]) && may_come_early(list, made, i)) {
            merge(list, made, i, NULL);
            continue;
        }
        const int alike = sum_alike(list, i, made);
        if (alike >= 0)
            merge(list, alike, i, s->in[0]);
    }
}
