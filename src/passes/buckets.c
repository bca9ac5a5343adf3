/* Which values can live in a bucket: a gradient that nobody reads but the op that starts the sum, and what the op makes of it that waits for
 * the sum. As far as its place there is aligned as memory of its own would be. */
#include "passes/buckets.h"

enum { ALIGN = 64 };

static bool is_read_twice(const struct op *op, int n, value_id v)
{
    int times = 0;
    for (int i = 0; i < n; i++)
        times += op->in[i] == v;
    return times > 1;
}

static void place(struct bucket_place *to, value_id bucket, size_t behind)
{
    if (behind % ALIGN == 0)
        *to = (struct bucket_place){bucket, behind};
}

static void place_gradients(struct bucket_place *places, const struct program *p, int at, const int *first, const int *last)
{
    const struct op *op = &p->ops[at];
    size_t behind = 0;
    for (int i = 0; i < op->attrs.parts; i++) {
        const value_id v = op->in[i];
        if (first[v] >= 0 && last[v] == at && !is_read_twice(op, op->n_in, v))
            place(&places[v], op->out[0], behind);
        behind += value_bytes(&p->values[v]);
    }
}

static void place_sums(struct bucket_place *places, const struct program *p, int at, const int *first, const int *last)
{
    const struct op *op = &p->ops[at];
    size_t behind = 0;
    for (int i = 0; i < op->n_out; i++) {
        if (first[op->in[0]] >= 0 && last[op->in[0]] == at)
            place(&places[op->out[i]], op->in[0], behind);
        behind += value_bytes(&p->values[op->out[i]]);
    }
}

struct bucket_place *buckets_find(const struct program *p, const int *first, const int *last)
{
    struct bucket_place *places = xcalloc((size_t)p->n_values + 1, sizeof *places);
    for (int i = 0; i < p->n_values; i++)
        places[i].bucket = NO_VALUE;
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_REDUCE_START && !p->ops[i].attrs.n_cuts)
            place_gradients(places, p, i, first, last);
        else if (p->ops[i].kind == OP_REDUCE_WAIT && !p->ops[i].attrs.sliced)
            place_sums(places, p, i, first, last);
    return places;
}
