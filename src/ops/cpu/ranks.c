/* Sums over shards and ranks. A number has the same bits whether a shard's part of it was added up here or came from another rank, so
 * nothing is contracted: a product is rounded, then added (cmake/TunedKernels.cmake). */
#include <math.h>
#include <string.h>

#include "ops/cpu/ranks.h"

enum { UNIT = 64 };                 /* floats, so that threads share no cache line */

static struct span mine(const struct kernel_thread *t, int64_t n) { return team_span(n, UNIT, t->index, t->count); }

static void meet(const struct kernel_thread *t)
{
    if (t->count > 1)
        team_barrier(t->team);
}

/* A gradient may lie in its bucket already (src/passes/buckets.c), so `to` may be x. */
static void scale_part(float *to, const float *x, float weight, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = x[i] * weight;
}

static void add_scaled(float *restrict to, const float *restrict x, float weight, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += x[i] * weight;
}

static void add_part(float *restrict to, const float *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += x[i];
}

/* A shard that is done meets those before it, as carries do when one is added to a number: shard 1 its neighbour 0, shard 3 first 2 and
 * then what 0 and 1 made. What has no other of its pair yet waits in the sum of its level. */
void ranks_sum_shards(const struct kernel_call *c, const struct kernel_thread *t)
{
    const int n = c->op->attrs.parts;
    const int64_t micro = *(const int32_t *)c->in[n] - 1, each = c->op->attrs.total, shard = micro / each;
    const float weight = c->op->n_in > n + 2 ? *(const float *)c->in[n + 2] : 1;
    const struct span s = mine(t, in_count(c, n + 1));
    const int64_t size = s.hi - s.lo;
    float *sum = (float *)c->out[0] + s.lo;
    const float *x = (const float *)c->in[n + 1] + s.lo;
    if (micro % each == 0)
        scale_part(sum, x, weight, size);
    else
        add_scaled(sum, x, weight, size);
    if (micro % each != each - 1)
        return;
    int level = 1;
    for (int64_t left = shard; left & 1 && level < n; left >>= 1, level++)
        add_part(sum, (const float *)c->out[level] + s.lo, size);
    if (level < n)
        memcpy((float *)c->out[level] + s.lo, sum, (size_t)size * sizeof *sum);
}

void ranks_reduce_start(const struct kernel_call *c, const struct kernel_thread *t)
{
    const int n = c->op->attrs.parts;
    const float weight = c->op->n_in > n ? *(const float *)c->in[n] : 1;
    float *bucket = c->out[0];
    int64_t at = 0;
    for (int i = 0; i < n; i++) {
        const struct span s = mine(t, in_count(c, i));
        if (c->op->n_in > n)
            scale_part(bucket + at + s.lo, (const float *)c->in[i] + s.lo, weight, s.hi - s.lo);
        else if (s.hi > s.lo && bucket + at != (const float *)c->in[i])
            memcpy(bucket + at + s.lo, (const float *)c->in[i] + s.lo, (size_t)(s.hi - s.lo) * sizeof *bucket);
        at += in_count(c, i);
    }
    if (!c->comm)
        return;
    meet(t);
    if (t->index == 0 && c->op->attrs.n_cuts)
        c->comm->scatter(c->comm, bucket, c->op->attrs.cuts);
    else if (t->index == 0)
        c->comm->start(c->comm, bucket, at);
}

static void divide_part(float *to, const float *x, float by, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = x[i] / by;
}

/* Without the other ranks there are no numbers, and so no update. */
static void forget(float *bucket, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        bucket[i] = NAN;
}

void ranks_reduce_wait(const struct kernel_call *c, const struct kernel_thread *t)
{
    const int n = c->op->attrs.parts, first = c->op->n_in - n;
    const float by = first > 1 ? *(const float *)c->in[1] : 1;
    float *bucket = c->in[0];
    int64_t at = c->op->attrs.first;
    if (c->comm && t->index == 0 && !c->comm->wait(c->comm, bucket))
        forget(bucket, in_count(c, 0));
    if (c->comm)
        meet(t);
    for (int i = 0; i < n; i++) {
        const struct span s = mine(t, out_count(c, i));
        divide_part((float *)c->out[i] + s.lo, bucket + at + s.lo, by, s.hi - s.lo);
        at += out_count(c, i);
    }
}

/* ---- the optimizer's state divided over ranks ---- */

/* In the order of blocks, in double: what sum_squares does with its own. */
void ranks_sum_blocks(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct op_attrs *a = &c->op->attrs;
    const float *blocks = c->in[0];
    (void)t;
    for (int i = 0; i < a->parts; i++) {
        const int64_t end = i + 1 < a->parts ? a->members[i + 1].unit : in_count(c, 0);
        double sum = 0;
        for (int64_t k = a->members[i].unit; k < end; k++)
            sum += blocks[k];
        *(float *)c->out[i] = (float)sum;
    }
}

/* The calls before it have written the slices, and threads have met since: they share memory with this one. */
void ranks_gather_start(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    if (c->comm)
        c->comm->gather(c->comm, c->program, c->op, c->in);
}

/* Where the group has failed nothing is updated any more, and nothing saved. Copies are f32 here: who asks for narrow ones rounds them. */
void ranks_gather_wait(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct op_attrs *a = &c->op->attrs;
    (void)t;
    if (c->comm)
        c->comm->gathered(c->comm, c->in[0]);
    for (int i = 0; i < a->copies; i++)
        memcpy(c->out[a->parts + i], c->in[a->members[i].unit], (size_t)out_count(c, a->parts + i) * sizeof(float));
}
