/* data-parallel: a step's samples are divided over shards, and shards over ranks. Every shard has its gradient and its count of targets; the
 * step's gradient is the sum of count x gradient over the sum of counts. Sums are a tree of pairs in the order of shards: the lower levels
 * of it, those of one rank, are made by OP_SUM_SHARDS from micro-batch to micro-batch, the upper ones between ranks.
 *
 * Between ranks gradients travel in buckets, in the order in which backward makes them. A bucket starts behind the op that writes its last
 * gradient, so that it is on its way while backward goes on, and is waited for before the norm is taken. Counts, losses and whether
 * somebody wants to stop are a bucket of their own, and the first. */
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"
#include "program/rewriter.h"

enum { FIRST_BUCKET_BYTES = 1 << 20 };      /* small, so that the first is soon on its way */
enum { BUCKETS = 12, BUCKET_BYTES = 25000000 };     /* where nothing is said: so many, as what is in the last one nothing hides; but of no more bytes */

struct pending {                    /* a parameter whose gradient is known from op `ready` on */
    value_id param, grad;
    int ready;
};

struct building {
    struct program *p;
    struct rewriter r;
    const struct ranks_settings *s;
    int levels;                     /* of the tree that this rank sums, and one more; 0: it has one micro-batch, and nothing to sum */
    value_id batch;                 /* counts micro-batches */
    value_id count, loss;           /* of this rank: as they are, or their sums */
    value_id stops;                 /* how many ranks want to stop */
    value_id weight;                /* of gradients; NO_VALUE: they have it already */
    struct pending *list;           /* (n) in the order in which they are ready */
    value_id *bucket;               /* (n): the bucket that the gradient is in */
    int n;
    int first;                      /* op of backward, as autodiff left it */
    enum phase start, wait;         /* of what starts sums between ranks, and of what waits for them */
    struct error err;               /* of what cannot be divided */
};

static int levels_of(int shards)
{
    int levels = 1;
    while (shards > 1) {
        shards /= 2;
        levels++;
    }
    return levels;
}

/* ---- where ops go ---- */

static int first_backward(const struct rewriter *r)
{
    int i = r->first;
    while (i != NO_OP && r->p->ops[i].phase < PHASE_BACKWARD)
        i = rewriter_next(r, i);
    return i;
}

static bool is_of_layer(const struct op *op, const struct op *of)
{
    return of->layer != NO_LAYER && op->layer == of->layer && op->phase == of->phase;
}

static bool is_own(const struct op *op) { return op->kind == OP_SUM_SHARDS || op->kind == OP_REDUCE_START; }

/* Behind an op, and in backward at the earliest: there behind the counter and the sums of scalars. Where it is to be behind the op's layer, it
 * is behind what was put there before, too. */
static int place_behind(const struct building *b, int op)
{
    const struct op *ops = b->p->ops;
    if (op == NO_OP || ops[op].phase < PHASE_BACKWARD)
        return b->first;
    int next = rewriter_next(&b->r, op);
    while (b->s->whole_layers && next != NO_OP && (is_of_layer(&ops[next], &ops[op]) || is_own(&ops[next])))
        next = rewriter_next(&b->r, next);
    return next;
}

static int insert(struct building *b, int before, enum op_kind kind, struct op_attrs attrs, const char *name, int n_in, const value_id *in)
{
    b->p->phase = PHASE_BACKWARD;
    const int op = rewriter_insert(&b->r, before, kind, attrs, name, n_in, in);
    if (op != NO_OP) {
        b->p->ops[op].layer = NO_LAYER;
        b->p->ops[op].phase = PHASE_BACKWARD;
    }
    return op;
}

/* ---- this rank's own sums ---- */

/* Sums `x` over the micro-batches of a step, behind op `after`; returns the value that holds the sum at the end. *op is who sums. */
static value_id add_sum(struct building *b, int after, const char *name, value_id x, value_id weight, int *op)
{
    struct program *p = b->p;
    value_id in[40];
    int n = 0;
    for (; n < b->levels; n++)
        in[n] = program_add_value(p, arena_printf(&p->arena, "%s.%d", name, n), VALUE_TABLE, F32, p->values[x].shape);
    in[n++] = b->batch;
    in[n++] = x;
    if (weight != NO_VALUE)
        in[n++] = weight;
    *op = insert(b, place_behind(b, after), OP_SUM_SHARDS, (struct op_attrs){.parts = b->levels, .total = b->s->accumulate}, name, n, in);
    return in[0];
}

/* The sums of counts and losses come first in backward, the counter before them. */
static void sum_scalars(struct building *b)
{
    struct program *p = b->p;
    b->batch = program_add_value(p, "batch", VALUE_TABLE, I32, shape_of(0));
    int at = insert(b, b->first, OP_ADVANCE, (struct op_attrs){0}, "batch", 1, &b->batch);
    const value_id count = p->count, loss = p->loss;
    b->count = add_sum(b, at, "count", count, NO_VALUE, &at);
    b->loss = add_sum(b, at, "loss", loss, count, &at);
}

/* Gradients that one op makes are summed in their order, so that what stands behind the sum of the last one stands behind all. */
static void sum_gradients(struct building *b)
{
    const value_id count = b->p->count;
    int writer = NO_OP, sum = NO_OP;
    for (int i = 0; i < b->n; i++) {
        struct pending *g = &b->list[i];
        const int behind = i > 0 && g->ready == writer ? sum : g->ready;
        writer = g->ready;
        g->grad = add_sum(b, behind, b->p->values[g->param].name, g->grad, count, &sum);
        g->ready = sum;
    }
}

/* ---- between ranks ---- */

static void start_scalars(struct building *b)
{
    struct program *p = b->p;
    const value_id stop = program_add_value(p, "stop", VALUE_INPUT, F32, shape_of(0));
    int at = b->first;
    if (!b->levels) {
        const int op = insert(b, at, OP_MUL, (struct op_attrs){0}, "loss", 2, (value_id[]){p->loss, p->count});
        b->count = p->count;
        b->loss = op == NO_OP ? NO_VALUE : p->ops[op].out[0];
    } else {
        at = place_behind(b, rewriter_writer(&b->r, b->loss));
    }
    if (b->loss == NO_VALUE)
        return;
    const int op = insert(b, at, OP_REDUCE_START, (struct op_attrs){.parts = 3}, "scalars", 3, (value_id[]){b->count, b->loss, stop});
    if (op != NO_OP)
        p->ops[op].last = true;
}

/* Every rank has a block of a bucket at least, where they are divided. */
static int64_t blocks_from(const struct building *b, int from)
{
    int64_t n = 0;
    for (int i = from; i < b->n; i++)
        n += shard_blocks(b->p, b->list[i].param);
    return n;
}

static bool can_end(const struct building *b, int from, int i)
{
    const int64_t behind = blocks_from(b, i + 1);
    return !b->s->shard_optimizer || i + 1 == b->n || (blocks_from(b, from) - behind >= b->s->ranks && behind >= b->s->ranks);
}

static bool cut_bucket(struct building *b, int from, int n, struct op_attrs *attrs)
{
    struct program *p = b->p;
    value_id *parameters = xcalloc((size_t)n, sizeof *parameters);
    for (int i = 0; i < n; i++)
        parameters[i] = b->list[from + i].param;
    const enum status st = shard_bucket(p, parameters, n, b->s, &b->err);
    free(parameters);
    if (st != OK)
        return false;
    attrs->n_cuts = b->s->ranks + 1;
    attrs->cuts = p->buckets[p->n_buckets - 1].cuts;
    return true;
}

/* Gradients [from, to) in one bucket, behind the last of them. */
static void start_bucket(struct building *b, int number, int from, int to)
{
    struct program *p = b->p;
    const int n = to - from;
    value_id *in = xcalloc((size_t)n + 1, sizeof *in);
    for (int i = 0; i < n; i++)
        in[i] = b->list[from + i].grad;
    in[n] = b->weight;
    struct op_attrs attrs = {.parts = n};
    if (b->s->shard_optimizer && !cut_bucket(b, from, n, &attrs)) {
        free(in);
        return;
    }
    const int op = insert(b, place_behind(b, b->list[to - 1].ready), OP_REDUCE_START, attrs,
                          arena_printf(&p->arena, "bucket.%d", number), n + (b->weight != NO_VALUE), in);
    free(in);
    if (op == NO_OP)
        return;
    p->ops[op].phase = b->start;
    p->ops[op].last = b->start == PHASE_BACKWARD;
    for (int i = from; i < to; i++)
        b->bucket[i] = p->ops[op].out[0];
}

/* Of the buckets behind the first. */
static double bucket_bytes(const struct building *b)
{
    double part = 0;
    if (b->s->bucket_bytes > 0)
        return b->s->bucket_bytes;
    for (int i = 0; i < b->n; i++)
        part += (double)value_bytes(&b->p->values[b->list[i].param]) / BUCKETS;
    part = part > FIRST_BUCKET_BYTES ? part : FIRST_BUCKET_BYTES;
    return b->s->ranks > 1 && part < BUCKET_BYTES ? part : BUCKET_BYTES;
}

/* What lies before the first layer gets its gradient from the last ops of backward: what is ready long before them does not wait for it, where it is worth
 * a message. */
static bool ends_layers(const struct building *b, int i, double bytes, double most)
{
    const struct value *values = b->p->values;
    bool last = values[b->list[i].param].layer != NO_LAYER && i + 1 < b->n && bytes >= most / 4;
    for (int k = i + 1; k < b->n && last; k++)
        last = values[b->list[k].param].layer == NO_LAYER;
    return last;
}

static void start_buckets(struct building *b)
{
    const double behind = bucket_bytes(b);
    double bytes = 0, most = FIRST_BUCKET_BYTES;
    int number = 0, from = 0;
    most = behind < most ? behind : most;
    for (int i = 0; i < b->n; i++) {
        bytes += (double)value_bytes(&b->p->values[b->list[i].param]);
        if ((bytes < most && i + 1 < b->n && !ends_layers(b, i, bytes, most)) || !can_end(b, from, i))
            continue;
        start_bucket(b, number++, from, i + 1);
        from = i + 1;
        bytes = 0;
        most = behind;
    }
}

/* ---- what the step reads of it: appended in the order of phases ---- */

/* Total, sum of losses, and how many want to stop. */
static value_id wait_scalars(struct building *b)
{
    struct program *p = b->p;
    const value_id bucket = program_find(p, "ranks.scalars"), stop = program_find(p, RANKS_STOP);
    p->phase = PHASE_COMMUNICATE;
    const int op = program_add_op(p, OP_REDUCE_WAIT, (struct op_attrs){.parts = 3}, "sum", 4, (value_id[]){bucket, stop, stop, stop});
    if (op < 0)
        return NO_VALUE;
    b->loss = p->ops[op].out[1];
    b->stops = p->ops[op].out[2];
    return p->ops[op].out[0];
}

static void wait_bucket(struct building *b, int from, int to, value_id total)
{
    struct program *p = b->p;
    const int n = to - from;
    value_id *in = xcalloc((size_t)n + 2, sizeof *in);
    const int first = total == NO_VALUE ? 1 : 2;
    in[0] = b->bucket[from];
    in[1] = total;
    for (int i = 0; i < n; i++)
        in[first + i] = b->list[from + i].param;
    p->phase = b->wait;
    const int op = program_add_op(p, OP_REDUCE_WAIT, (struct op_attrs){.parts = n}, p->values[in[first]].name, first + n, in);
    for (int i = 0; i < n && op >= 0; i++)
        p->values[in[first + i]].grad = p->ops[op].out[i];
    free(in);
}

static void wait_buckets(struct building *b, value_id total)
{
    int number = 0;
    for (int from = 0, to; from < b->n; from = to, number++) {
        for (to = from + 1; to < b->n && b->bucket[to] == b->bucket[from]; to++)
            ;
        if (b->s->shard_optimizer)
            shard_wait(b->p, number, b->s, b->bucket[from], total);
        else
            wait_bucket(b, from, to, total);
    }
    if (b->s->shard_optimizer)
        shard_squares(b->p);
}

/* One rank: its sums are the step's. */
static void take_means(struct building *b)
{
    struct program *p = b->p;
    p->phase = PHASE_COMMUNICATE;
    for (int i = 0; i < b->n; i++) {
        const struct pending *g = &b->list[i];
        p->layer = p->values[g->param].layer;
        const value_id mean = program_emit(p, OP_DIVIDE, (struct op_attrs){0}, p->values[g->param].name, 2, g->grad, b->count);
        p->values[g->param].grad = mean;
    }
    p->layer = NO_LAYER;
}

/* ---- the pass ---- */

static int by_readiness(const void *a, const void *b)
{
    const struct pending *x = a, *y = b;
    return x->ready != y->ready ? x->ready < y->ready ? -1 : 1 : x->param - y->param;
}

/* At first the number of an op is its place. */
static void list_gradients(struct building *b)
{
    const struct program *p = b->p;
    b->list = xcalloc((size_t)p->n_values, sizeof *b->list);
    b->bucket = xcalloc((size_t)p->n_values, sizeof *b->bucket);
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER)
            b->list[b->n++] = (struct pending){i, p->values[i].grad, rewriter_writer(&b->r, p->values[i].grad)};
    qsort(b->list, (size_t)b->n, sizeof *b->list, by_readiness);
}

/* One rank, and nothing to divide: gradients as they are, in buckets. Where micro-batches were added up, that was in the optimizer's phase. */
static void sum_alone(struct building *b)
{
    b->weight = NO_VALUE;
    if (b->s->accumulate > 1)
        b->start = b->wait = PHASE_OPTIMIZE;
    start_buckets(b);
    rewriter_close(&b->r);
    wait_buckets(b, NO_VALUE);
}

static void append_rest(struct building *b)
{
    struct program *p = b->p;
    value_id total = b->count;
    if (b->s->ranks > 1) {
        total = wait_scalars(b);
        wait_buckets(b, total);
    } else {
        take_means(b);
    }
    p->phase = PHASE_OPTIMIZE;
    const value_id loss = program_emit(p, OP_DIVIDE, (struct op_attrs){0}, "mean", 2, b->loss, total);
    if (b->s->ranks > 1)
        program_emit(p, OP_HOST_READ, (struct op_attrs){0}, "host.stop", 1, b->stops);
    if (b->levels)
        program_emit(p, OP_ZERO, (struct op_attrs){0}, "batch", 1, b->batch);
    p->loss = loss;
    p->count = NO_VALUE;
}

static void sum_divided(struct building *b)
{
    const int mine = b->s->shards / b->s->ranks * b->s->accumulate;
    b->p->micro_batches = mine;
    b->levels = mine > 1 ? levels_of(b->s->shards / b->s->ranks) : 0;
    if (b->levels) {
        sum_scalars(b);
        sum_gradients(b);
        b->weight = NO_VALUE;
    }
    if (b->s->ranks > 1) {
        start_scalars(b);
        start_buckets(b);
    }
    rewriter_close(&b->r);
    if (b->err.status == OK)
        append_rest(b);
}

enum status pass_data_parallel(struct program *p, const struct ranks_settings *s, struct error *err)
{
    struct building b = {.p = p, .s = s, .batch = NO_VALUE, .stops = NO_VALUE, .weight = p->count, .start = PHASE_BACKWARD,
                         .wait = PHASE_COMMUNICATE};
    if (s->shards <= 1 && !s->alone)
        return OK;
    p->made_by = "data-parallel";
    program_scope(p, NO_LAYER, "ranks");
    rewriter_open(&b.r, p);
    b.first = first_backward(&b.r);
    list_gradients(&b);
    if (s->shards > 1)
        sum_divided(&b);
    else
        sum_alone(&b);
    free(b.list);
    free(b.bucket);
    program_scope(p, NO_LAYER, "%s", "");
    if (b.err.status != OK) {
        *err = b.err;
        return err->status;
    }
    return p->error.status ? error_set(err, p->error.status, "data-parallel: %s", p->error.text) : OK;
}
