/* The optimizer's state divided over ranks. Gradients travel in buckets (data_parallel.c); the parameters of a bucket, one after the other, are
 * cut into a slice for every rank, between blocks of SLICE_BLOCK numbers. A rank gets the sum of its slice of the gradients alone, has moments
 * for it alone, updates it, and sends it to all others; whoever reads the weights next waits for them.
 *
 * Squares are summed block by block in any case (OP_SUM_SQUARES), so ranks tell each other the sums of their blocks, and the norm, the factor
 * that clips, scores of groups and so the weights have the bits that they have where nothing is divided. */
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"
#include "program/rewrite.h"

int64_t shard_blocks(const struct program *p, value_id parameter)
{
    return (shape_count(p->values[parameter].shape) + SLICE_BLOCK - 1) / SLICE_BLOCK;
}

/* Where every slice begins, in numbers: after as many blocks for each, one more or less. */
static const int64_t *cut(struct program *p, const value_id *parameters, const int64_t *start, int n, int64_t blocks, int ranks)
{
    int64_t *cuts = arena_alloc(&p->arena, (size_t)(ranks + 1) * sizeof *cuts), before = 0;
    int k = 0;
    for (int i = 0; i < n; i++) {
        const int64_t mine = shard_blocks(p, parameters[i]);
        for (; k < ranks && blocks * k / ranks < before + mine; k++)
            cuts[k] = start[i] + (blocks * k / ranks - before) * SLICE_BLOCK;
        before += mine;
    }
    cuts[ranks] = start[n];
    return cuts;
}

enum status shard_bucket(struct program *p, const value_id *parameters, int n, const struct ranks_settings *s, struct error *err)
{
    struct program_bucket *list = arena_alloc(&p->arena, (size_t)(p->n_buckets + 1) * sizeof *list);
    int64_t blocks = 0, *start = arena_alloc(&p->arena, (size_t)(n + 1) * sizeof *start);
    start[0] = 0;
    for (int i = 0; i < n; i++) {
        blocks += shard_blocks(p, parameters[i]);
        start[i + 1] = start[i] + shape_count(p->values[parameters[i]].shape);
    }
    if (blocks < s->ranks)
        return error_set(err, BAD_INPUT, "dist.shard is optimizer, and the model has %lld blocks of %d parameters for %d ranks; leave dist.shard out",
                         (long long)blocks, SLICE_BLOCK, s->ranks);
    if (p->n_buckets)
        memcpy(list, p->buckets, (size_t)p->n_buckets * sizeof *list);
    list[p->n_buckets++] = (struct program_bucket){n, arena_copy(&p->arena, parameters, (size_t)n * sizeof *parameters), start,
                                                   cut(p, parameters, start, n, blocks, s->ranks)};
    p->buckets = list;
    p->ranks = s->ranks;
    return OK;
}

/* ---- gradients ---- */

static value_id add_slice(struct program *p, char which, value_id parameter, struct slice at)
{
    const struct value_slice of = {parameter, at.first};
    const char *name = arena_printf(&p->arena, "adam.%c.%s", which, p->values[parameter].name), *scope = p->scope;
    p->scope = "";                          /* checkpoints know them by these names */
    const value_id v = program_add_value(p, name, VALUE_STATE, F32, shape_of(1, at.n));
    p->scope = scope;
    p->values[v].layer = p->values[parameter].layer;
    p->values[v].slice = arena_copy(&p->arena, &of, sizeof of);
    return v;
}

/* This rank's slice of the bucket `reduced`, and moments for it, whose shapes are those of the gradients. */
void shard_wait(struct program *p, int bucket, const struct ranks_settings *s, value_id reduced, value_id total)
{
    const struct program_bucket *b = &p->buckets[bucket];
    struct op_attrs attrs = {.sliced = true, .first = b->cuts[slice_place(s->rank, s->ranks)]};
    value_id *in = xcalloc((size_t)b->n + 2, sizeof *in);
    in[0] = reduced;
    in[1] = total;
    for (int i = 0; i < b->n; i++) {
        const struct slice at = slice_of_parameter(p, b, i, s->rank);
        p->values[b->parameter[i]].grad = NO_VALUE;
        if (!at.n)
            continue;
        in[2 + attrs.parts++] = add_slice(p, 'm', b->parameter[i], at);
        add_slice(p, 'v', b->parameter[i], at);
    }
    p->phase = PHASE_COMMUNICATE;
    const int op = program_add_op(p, OP_REDUCE_WAIT, attrs, arena_printf(&p->arena, "slice.%d", bucket), attrs.parts + 2, in);
    for (int i = 0; i < attrs.parts && op >= 0; i++)
        p->values[p->values[in[2 + i]].slice->of].grad = p->ops[op].out[i];
    free(in);
}

/* ---- the norm ---- */

/* Blocks of all parameters in their order: what every rank has of them, then what all have. */
void shard_squares(struct program *p)
{
    const int values = p->n_values;
    value_id *in = xcalloc((size_t)values + 1, sizeof *in);
    struct op_member *members = arena_alloc(&p->arena, (size_t)values * sizeof *members);
    struct op_attrs attrs = {.members = members};
    for (int v = 0; v < values; v++) {
        const value_id grad = p->values[v].kind == VALUE_PARAMETER ? p->values[v].grad : NO_VALUE;
        if (grad != NO_VALUE) {
            const value_id m = program_find(p, arena_printf(&p->arena, "adam.m.%s", p->values[v].name));
            in[attrs.n_members] = grad;
            members[attrs.n_members++] = (struct op_member){-1, (int32_t)(attrs.rows + p->values[m].slice->first / SLICE_BLOCK)};
        }
        attrs.rows += p->values[v].kind == VALUE_PARAMETER ? shard_blocks(p, v) : 0;
    }
    p->phase = PHASE_COMMUNICATE;
    const int op = program_add_op(p, OP_SQUARE_BLOCKS, attrs, "squares", attrs.n_members, in);
    const value_id mine = op < 0 ? NO_VALUE : p->ops[op].out[0];
    free(in);
    if (op < 0)
        return;
    const value_id bucket = program_emit(p, OP_REDUCE_START, (struct op_attrs){.parts = 1}, "bucket.squares", 1, mine);
    program_emit(p, OP_REDUCE_WAIT, (struct op_attrs){.parts = 1}, "blocks", 2, bucket, mine);
}

int shard_norm(struct program *p, value_id *parts)
{
    struct op_member *members = arena_alloc(&p->arena, (size_t)p->n_values * sizeof *members);
    struct op_attrs attrs = {.members = members};
    int64_t at = 0;
    for (int v = 0; v < p->n_values; v++)
        if (p->values[v].kind == VALUE_PARAMETER) {
            members[attrs.n_members++] = (struct op_member){-1, (int32_t)at};
            at += shard_blocks(p, v);
        }
    attrs.parts = attrs.n_members;
    const value_id blocks = program_find(p, RANKS_BLOCKS);
    const int op = program_add_op(p, OP_SUM_BLOCKS, attrs, "squares", 1, &blocks);
    for (int i = 0; i < attrs.parts && op >= 0; i++)
        parts[i] = p->ops[op].out[i];
    return attrs.parts;
}

/* ---- weights ---- */

static bool reads_any(const struct op *op, const struct program_bucket *b)
{
    for (int i = 0; i < op->n_in; i++)
        for (int k = 0; k < b->n; k++)
            if (op->in[i] == b->parameter[k])
                return true;
    return false;
}

static void add_gather(struct program *p, int bucket)
{
    const struct program_bucket *b = &p->buckets[bucket];
    const struct op_attrs attrs = {.parts = b->n, .n_cuts = p->ranks + 1, .cuts = b->cuts};
    const char *name = arena_printf(&p->arena, "gather.%d", bucket);
    int at = 0;
    program_add_op(p, OP_GATHER_START, attrs, name, b->n, b->parameter);
    while (at < p->n_ops && (p->ops[at].phase < PHASE_FORWARD || !reads_any(&p->ops[at], b)))
        at++;
    if (program_insert_op(p, at, OP_GATHER_WAIT, attrs, name, b->n, b->parameter) >= 0)
        p->ops[at].layer = NO_LAYER;
}

/* The bucket that backward filled last is the one that forward reads first. */
void shard_gather(struct program *p)
{
    for (int i = p->n_buckets - 1; i >= 0; i--)
        add_gather(p, i);
}
