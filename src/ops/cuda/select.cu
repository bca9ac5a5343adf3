/* Which groups of parameters learn in a step: their scores, and the choice among them. */
#include <stdlib.h>

#include "ops/cuda/items.cuh"

/* ---- selections that are kept: as ref_held and ref_top_k on a CPU ---- */

struct larger_of { __device__ int32_t operator()(int32_t a, int32_t b) const { return a > b ? a : b; } };

/* The newest step that selected; 0: none has. Every thread of the block gets it, and all have read `last` then. */
static __device__ int32_t newest(const int32_t *last, int64_t groups)
{
    int32_t most = 0;
    EACH_OF_BLOCK(j, groups)
        most = last[j] > most ? last[j] : most;
    return block_reduce(most, (int32_t)0, larger_of());
}

static __device__ bool keeps(int32_t every, int32_t step, int32_t selected) { return selected > 0 && (step - 1) % every != 0; }

static __global__ void held(float *to, const int32_t *last, const int32_t *step, int64_t groups, int32_t every)
{
    const int32_t selected = newest(last, groups);
    const bool kept = keeps(every, *step + 1, selected);
    EACH_OF_BLOCK(j, groups)
        to[j] = !kept || last[j] == selected;
}

static void held_launch(const struct cuda_call *c)
{
    held<<<1, THREADS, 0, c->stream>>>(out_floats(c, 0), (const int32_t *)c->in[0], (const int32_t *)c->in[1], in_count(c, 0),
                                       c->op->attrs.every);
}

/* ---- scores: a block for each group, whose members stand together, unit by unit ---- */

struct member {
    const float *squares;
    int32_t group, unit;
    int32_t place;                  /* of the unit's first member: units are added in this order */
    int32_t at;
};

template <int BYTES> static __device__ int first_of(const struct items<struct member, BYTES> &all, int32_t group)
{
    int low = 0, high = all.n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (all.item[middle].group < group)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

template <int BYTES>
static __global__ void group_scores(float *to, const float *factor, int32_t first_group, const __grid_constant__ struct items<struct member, BYTES> all)
{
    __shared__ float squares[items<struct member, BYTES>::MOST];
    const int32_t group = first_group + (int32_t)blockIdx.x;
    const int first = first_of(all, group), n = first_of(all, group + 1) - first;
    EACH_OF_BLOCK(i, n)
        squares[i] = *all.item[first + i].squares;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    double sum = 0, unit = 0;
    for (int i = 0; i < n; i++) {
        unit += squares[i];
        if (i + 1 == n || all.item[first + i + 1].unit != all.item[first + i].unit) {
            sum += sqrt(unit);
            unit = 0;
        }
    }
    to[group] = (float)(*factor * sum);
}

static int by_place(const void *a, const void *b)
{
    const struct member *x = (const struct member *)a, *y = (const struct member *)b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static int32_t first_of_unit(const struct op_attrs *a, int at)
{
    int i = 0;
    while (a->members[i].group != a->members[at].group || a->members[i].unit != a->members[at].unit)
        i++;
    return i;
}

/* All members that are in a group, in order. Returns how many; *list is the caller's. */
static int list_members(const struct cuda_call *c, struct member **list)
{
    const struct op_attrs *a = &c->op->attrs;
    int n = 0, at = 0;
    *list = (struct member *)malloc((size_t)at_least(1, a->n_members) * sizeof **list);
    for (int i = 1; *list && i < c->op->n_in; i++)
        for (int64_t k = 0; k < in_count(c, i); k++, at++)
            if (a->members[at].group >= 0)
                (*list)[n++] = {in_floats(c, i) + k, a->members[at].group, a->members[at].unit, first_of_unit(a, at), at};
    if (*list)
        qsort(*list, (size_t)n, sizeof **list, by_place);
    return n;
}

/* Of as many whole groups as a launch takes, from `group` on; returns the first that is left. */
template <class Items> static int32_t scores_launch(const struct cuda_call *c, Items &all, const struct member *list, int n, int *at, int32_t group)
{
    const int32_t first = group, groups = c->op->attrs.parts;
    for (all.n = 0; group < groups; group++) {
        int end = *at;
        while (end < n && list[end].group == group)
            end++;
        if (all.n + end - *at > all.MOST)
            break;
        for (; *at < end; ++*at)
            all.item[all.n++] = list[*at];
    }
    if (group == first)
        refuse(c);                  /* a group of more tensors than a launch takes */
    else
        group_scores<<<(unsigned)(group - first), THREADS, 0, c->stream>>>(out_floats(c, 0), in_floats(c, 0), first, all);
    return group > first ? group : groups;
}

static void group_scores_launch(const struct cuda_call *c)
{
    struct member *list;
    const int n = list_members(c, &list);
    if (!list)
        refuse(c);
    else
        with_items<struct member>(n, [&](auto all) {
            int at = 0;
            for (int32_t group = 0; group < c->op->attrs.parts;)
                group = scores_launch(c, all, list, n, &at, group);
        });
    free(list);
}

/* ---- the choice: one block ---- */

struct scores {
    const float *x;
    unsigned first;
};

struct choice {
    int32_t *n, *last;
    float *mask;
    const int32_t *step;
    const float *factor;
    double *rank;                   /* room for one number per group */
    int64_t groups;
    uint64_t seed, stream;
    int32_t k, every;
    bool random;
};

/* How many are chosen before group j: higher ones, and equal ones of a lower number. */
static __device__ int64_t chosen_before(const double *rank, int64_t groups, int64_t j)
{
    const double mine = rank[j];
    int64_t before = 0;
    for (int64_t i = 0; i < groups; i++)
        before += rank[i] > mine || (rank[i] == mine && i < j);
    return before;
}

template <int BYTES> static __global__ void top_k(const struct choice a, const __grid_constant__ struct items<struct scores, BYTES> all)
{
    const int32_t step = *a.step, selected = newest(a.last, a.groups);
    const bool kept = keeps(a.every, step, selected), counts = !isnan(*a.factor);
    EACH_OF_BLOCK(j, a.groups) {
        const struct scores &s = item_at(all, (unsigned)j);
        a.rank[j] = a.random ? philox(a.seed, a.stream, (uint64_t)(uint32_t)step << 16 | (uint64_t)j).x[0] : (double)s.x[j - s.first];
    }
    __syncthreads();
    EACH_OF_BLOCK(j, a.groups) {
        const bool chosen = counts && (kept ? a.last[j] == selected : chosen_before(a.rank, a.groups, j) < a.k);
        a.mask[j] = chosen;
        a.n[j] += chosen;
        a.last[j] = chosen ? step : a.last[j];
    }
}

static void top_k_launch(const struct cuda_call *c)
{
    const struct op_attrs *o = &c->op->attrs;
    const struct choice a = {(int32_t *)c->out[0], (int32_t *)c->out[1], out_floats(c, 2), (const int32_t *)c->in[2], in_floats(c, 3),
                             (double *)c->scratch, in_count(c, 0), o->seed, o->stream, o->k, o->every, o->random};
    with_items<struct scores>(c->op->n_in - 4, [&](auto all) {
        if (c->op->n_in - 4 > all.MOST) {
            refuse(c);
            return;
        }
        unsigned first = 0;
        for (all.n = 0; all.n < c->op->n_in - 4; all.n++) {
            all.item[all.n] = {in_floats(c, 4 + all.n), first};
            first += (unsigned)in_count(c, 4 + all.n);
        }
        top_k<<<1, THREADS, 0, c->stream>>>(a, all);
    });
}

static size_t top_k_scratch(const struct program *p, const struct op *op)
{
    return (size_t)shape_count(p->values[op->in[0]].shape) * sizeof(double);
}

const struct cuda_kernel cuda_select[] = {
    {OP_HELD, "held", held_launch, NULL},
    {OP_GROUP_SCORES, "group_scores", group_scores_launch, NULL},
    {OP_TOP_K, "top_k", top_k_launch, top_k_scratch},
    {OP_KINDS, NULL, NULL, NULL},
};
