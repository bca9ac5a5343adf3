/* Tuned: gradient norm and AdamW, over one tensor or over many in one sweep. Threads divide the tensors as if they stood one
 * after the other, in units of whole cache lines, so that small tensors cost no more than their bytes.
 *
 * A tensor's squares are summed in blocks that begin with it, and the blocks' sums in their order: the result is the same to
 * the bit on any number of threads, and whether the tensor is summed alone or among others. */
#include <math.h>
#include <string.h>

#include "ops/cpu/tuned/narrow.h"
#include "ops/cpu/tuned/vec.h"

enum { SMALL = 8192 };              /* below this one thread is faster than two and a barrier */
enum { UNIT = 64 };                 /* floats: as my_elements */
enum { PIECE_UPDATED = 1 << 15, MOST_PIECES = 64 };         /* numbers of a piece that another thread may take, about; pieces at most */
enum { LINE = 16, AHEAD = 256 };      /* floats: of a cache line; between a number and the line that is asked for meanwhile */
enum { BLOCK = SLICE_BLOCK };       /* floats: short sums in single precision, added up in double */

static int64_t units_of(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }

/* Units of input i; 0 where it is left out: threads divide what is left. */
typedef int64_t units_fn(const struct kernel_call *c, int i);

/* The thread's share of the first n inputs, in units of their concatenation. */
static struct span my_units(const struct kernel_call *c, const struct kernel_thread *t, int n, units_fn *units)
{
    int64_t total = 0;
    for (int i = 0; i < n; i++)
        total += units(c, i);
    return my_rows(t, total);
}

/* What the share holds of a tensor of `count` numbers that begins at unit `first`: [lo, hi) within the tensor. */
static struct span share_of(struct span mine, int64_t first, int64_t count, int64_t unit)
{
    const int64_t lo = mine.lo > first ? (mine.lo - first) * unit : 0, hi = (mine.hi - first) * unit;
    return (struct span){lo < count ? lo : count, hi < count ? hi : count};
}

static float squares(const float *x, int64_t n)
{
    vec strand[STRANDS] = {0};
    float sum = 0;
    int64_t i = 0;
    for (; i + STRIDE <= n; i += STRIDE)
        EACH_STRAND(k) strand[k] += load(x + i + k * LANES) * load(x + i + k * LANES);
    for (; i < n; i++)
        sum += x[i] * x[i];
    return sum + lanes_sum((strand[0] + strand[1]) + (strand[2] + strand[3]));
}

/* sums: one per block. */
static void squares_of_blocks(const float *x, struct span s, float *sums)
{
    for (int64_t i = s.lo; i < s.hi; i += BLOCK)
        sums[i / BLOCK] = squares(x + i, i + BLOCK < s.hi ? BLOCK : s.hi - i);
}

static float sum_of_blocks(const float *sums, int64_t n)
{
    double total = 0;
    for (int64_t i = 0; i < n; i++)
        total += sums[i];
    return (float)total;
}

static int64_t blocks_of(const struct kernel_call *c, int i) { return squares_left_out(c, i) ? 0 : units_of(in_count(c, i), BLOCK); }

static void sum_squares(const struct kernel_call *c, const struct kernel_thread *t)
{
    float *sums = c->scratch;                       /* one per block of all tensors */
    const int n = c->op->n_in - c->op->attrs.masked;
    const bool alone = n == 1 && in_count(c, 0) < SMALL;
    const struct span mine = alone ? (struct span){0, t->index ? 0 : blocks_of(c, 0)} : my_units(c, t, n, blocks_of);
    int64_t first = 0;
    for (int i = 0; i < n && first < mine.hi; i++) {
        const int64_t blocks = blocks_of(c, i);
        if (blocks)
            squares_of_blocks(c->in[i], share_of(mine, first, in_count(c, i), BLOCK), sums + first);
        first += blocks;
    }
    if (!alone)
        team_barrier(t->team);
    first = 0;
    for (int i = 0; i < n; i++) {
        const int64_t blocks = blocks_of(c, i);
        if (i % t->count == t->index)
            ((float *)c->out[0])[i] = sum_of_blocks(sums + first, blocks);
        first += blocks;
    }
}

/* The same blocks of this rank's slices, each where it stands among those of all ranks. */
static void square_blocks(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct op_attrs *a = &c->op->attrs;
    float *sums = c->out[0];
    const int n = c->op->n_in - a->masked;
    const struct span zeros = my_elements(t, a->rows), mine = my_units(c, t, n, blocks_of);
    int64_t first = 0;
    memset(sums + zeros.lo, 0, (size_t)(zeros.hi - zeros.lo) * sizeof *sums);
    team_barrier(t->team);
    for (int i = 0; i < n && first < mine.hi; i++) {
        const int64_t blocks = blocks_of(c, i);
        if (blocks)
            squares_of_blocks(c->in[i], share_of(mine, first, in_count(c, i), BLOCK), sums + a->members[i].unit);
        first += blocks;
    }
}

static size_t sum_scratch(const struct program *p, const struct op *op, int threads)
{
    (void)threads;
    int64_t blocks = 0;
    for (int i = 0; i < op->n_in; i++)
        blocks += units_of(shape_count(p->values[op->in[i]].shape), BLOCK);
    return (size_t)blocks * sizeof(float);
}

/* What all elements of a step share. The correction of v stands in rate and eps, not under every root. */
struct adamw_step {
    float b1, b2, eps, keep, rate, factor;
};

static struct adamw_step step_of(const struct op_attrs *a, float lr, int32_t step, float factor)
{
    const double root = sqrt(1 - pow(a->beta2, step));
    return (struct adamw_step){.b1 = a->beta1, .b2 = a->beta2, .eps = (float)(a->eps * root), .keep = 1 - lr * a->weight_decay,
                               .rate = (float)(lr * root / (1 - pow(a->beta1, step))), .factor = factor};
}

/* Every element the same way, wherever it stands. */
INLINE void update_each(struct adamw_step a, float *restrict p, float *restrict m, float *restrict v, const float *restrict grad, struct span s)
{
    for (int64_t i = s.lo; i < s.hi; i++) {
        const float g = grad[i] * a.factor;
        m[i] = a.b1 * m[i] + (1 - a.b1) * g;
        v[i] = a.b2 * v[i] + (1 - a.b2) * g * g;
        p[i] = p[i] * a.keep - a.rate * m[i] / (sqrtf(v[i]) + a.eps);
    }
}

/* One function, so that one op and many give equal bits. Other cores have read p: a core that finds a line of it shared when it stores waits for it, with all stores behind
 * it, so lines are asked for ahead, to be written; but none from `end` on, which are another thread's. */
__attribute__((noinline)) static void update(struct adamw_step a, float *p, float *m, float *v, const float *grad, struct span s, int64_t end)
{
    int64_t i = s.lo;
    for (; i + LINE <= s.hi && i + AHEAD < end; i += LINE) {
        WANT_TO_WRITE(p + i + AHEAD);
        update_each(a, p, m, v, grad, (struct span){i, i + LINE});
    }
    update_each(a, p, m, v, grad, (struct span){i, s.hi});
}

/* The same, and the copy of p in bf16, block by block while p is near. */
static void update_with_copy(struct adamw_step a, float *p, float *m, float *v, const float *grad, uint16_t *copy, struct span s)
{
    for (int64_t first = s.lo; first < s.hi; first += BLOCK) {
        const struct span block = {first, least(first + BLOCK, s.hi)};
        update(a, p, m, v, grad, block, s.hi);
        if (copy)
            narrow_piece(copy + block.lo, p + block.lo, block.hi - block.lo);
    }
}

/* Of tensor i: how many numbers are updated, all of it or a rank's slice. */
static int64_t moments(const struct kernel_call *c, int i) { return in_count(c, op_update_tensors(c->op) + i); }

static int64_t updated_units(const struct kernel_call *c, int i) { return update_of(c, i).made ? units_of(moments(c, i), UNIT) : 0; }

static bool same_step(const struct update *a, const struct update *b) { return a->lr == b->lr && a->step == b->step; }

/* Units [mine.lo, mine.hi) of n tensors. */
static void sweep_units(const struct kernel_call *c, int n, struct span mine)
{
    struct update of = {0};         /* which `a` is */
    struct adamw_step a = {0};
    int64_t first = 0;
    for (int i = 0; i < n && first < mine.hi; i++) {
        const int64_t units = updated_units(c, i);
        const struct update u = update_of(c, i);
        if (first + units <= mine.lo || !units) {
            first += units;
            continue;
        }
        if (!same_step(&u, &of))
            a = step_of(&c->op->attrs, u.lr, u.step, u.factor);
        of = u;
        update_with_copy(a, (float *)c->out[i] + update_first(c, i, n), c->out[n + i], c->out[2 * n + i], c->in[3 * n + c->op->attrs.copies + i],
                         i < c->op->attrs.copies ? c->out[3 * n + i] : NULL, share_of(mine, first, moments(c, i), UNIT));
        first += units;
    }
}

/* ---- what a thread will write ---- */

static int64_t all_units(const struct kernel_call *c, int i) { return units_of(moments(c, i), UNIT); }

/* Of parameters, both moments, and copies of the first parameters: a thread has the same numbers of each, but for those of a slice, which stand further behind in the parameter. */
static struct span updated_share(const struct kernel_call *c, const struct kernel_thread *t, int in)
{
    const int n = op_update_tensors(c->op), tensor = in < 3 * n ? in % n : in - 3 * n;
    const struct span mine = my_units(c, t, n, all_units);
    int64_t first = 0;
    for (int i = 0; i < tensor; i++)
        first += all_units(c, i);
    const struct span s = share_of(mine, first, moments(c, tensor), UNIT);
    const int64_t behind = in < n ? update_first(c, tensor, n) : 0;
    return s.lo < s.hi ? (struct span){s.lo + behind, s.hi + behind} : (struct span){0, 0};
}

/* To wait for it keeps requests few: those that are under way when the others have come hold up what is next. */
static void claim(const void *line)
{
    WANT_TO_WRITE(line);
    (void)*(const volatile char *)line;
}

/* A thread's units. */
struct sweep {
    const struct kernel_call *c;
    int n, pieces;
    struct span mine;
};

static void sweep_piece(void *argument, int piece, int helper)
{
    (void)helper;
    const struct sweep *s = argument;
    const struct span part = team_span(s->mine.hi - s->mine.lo, 1, piece, s->pieces);
    sweep_units(s->c, s->n, (struct span){s->mine.lo + part.lo, s->mine.lo + part.hi});
}

static void sweep(const struct kernel_call *c, const struct kernel_thread *t, int n)
{
    struct sweep s = {.c = c, .n = n, .mine = my_units(c, t, n, updated_units)};
    s.pieces = (int)least(1 + (s.mine.hi - s.mine.lo) * UNIT / PIECE_UPDATED, MOST_PIECES);
    team_pieces(sweep_piece, &s, s.pieces);
}

static void adamw(const struct kernel_call *c, const struct kernel_thread *t) { sweep(c, t, 1); }
static void adamw_all(const struct kernel_call *c, const struct kernel_thread *t) { sweep(c, t, c->op->attrs.parts); }

/* Units of all groups are summed up in one sweep over the members, each in their order. */
static void group_scores(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const struct op_attrs *a = &c->op->attrs;
    const int units = units_most(a);
    double *sums = c->scratch;                      /* (groups, units) */
    memset(sums, 0, (size_t)a->parts * (size_t)units * sizeof *sums);
    for (int in = 1, i = 0; in < c->op->n_in; in++)
        for (int64_t k = 0; k < in_count(c, in); k++, i++)
            if (a->members[i].group >= 0)
                sums[a->members[i].group * units + a->members[i].unit] += ((const float *)c->in[in])[k];
    for (int j = 0; j < a->parts; j++) {
        double sum = 0;
        for (int u = 0; u < units; u++)
            sum += sqrt(sums[j * units + u]);
        ((float *)c->out[0])[j] = (float)(*(const float *)c->in[0] * sum);
    }
}

static size_t group_scratch(const struct program *p, const struct op *op, int threads)
{
    (void)p, (void)threads;
    return (size_t)op->attrs.parts * (size_t)units_most(&op->attrs) * sizeof(double);
}

const struct kernel TUNED(optimizer)[] = {
    {.op = OP_SUM_SQUARES, .name = "simd", .run = sum_squares, .scratch = sum_scratch},
    {.op = OP_SQUARE_BLOCKS, .name = "simd", .run = square_blocks},
    {.op = OP_ADAMW, .name = "simd", .run = adamw, .stores = true, .updates = CAN_WANT_TO_WRITE ? updated_share : NULL, .claim = claim},
    {.op = OP_ADAMW_ALL, .name = "sweep", .run = adamw_all, .stores = true, .updates = CAN_WANT_TO_WRITE ? updated_share : NULL, .claim = claim},
    {.op = OP_GROUP_SCORES, .name = "sums", .run = group_scores, .serial = true, .scratch = group_scratch},
    {.run = NULL},
};
