/* Reference: which groups of parameters learn in a step. */
#include <math.h>

#include "core/rng.h"
#include "ops/cpu/reference/reference.h"

static int32_t newest(const int32_t *last, int64_t groups)
{
    int32_t most = 0;
    for (int64_t j = 0; j < groups; j++)
        most = last[j] > most ? last[j] : most;
    return most;
}

/* Of a step counted from 1: does it keep the selection of a step before it? Not where there is none yet. */
static bool keeps(const struct op_attrs *a, int32_t step, int32_t selected) { return selected > 0 && (step - 1) % a->every != 0; }

void ref_held(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const int32_t *last = c->in[0], selected = newest(last, in_count(c, 0));
    const bool kept = keeps(&c->op->attrs, *(const int32_t *)c->in[1] + 1, selected);
    for (int64_t j = 0; j < in_count(c, 0); j++)
        ((float *)c->out[0])[j] = !kept || last[j] == selected;
}

/* Number i of values that stand one behind the other from input `first` on. */
static float number(const struct kernel_call *c, int first, int64_t i)
{
    while (i >= in_count(c, first))
        i -= in_count(c, first++);
    return ((const float *)c->in[first])[i];
}

static bool same_unit(struct op_member a, struct op_member b) { return a.group == b.group && a.unit == b.unit; }

/* A unit is summed up where its first member stands; units are added in this order. */
static double unit_norm(const struct kernel_call *c, int first)
{
    const struct op_attrs *a = &c->op->attrs;
    double sum = 0;
    for (int i = 0; i < first; i++)
        if (same_unit(a->members[i], a->members[first]))
            return 0;
    for (int i = first; i < a->n_members; i++)
        if (same_unit(a->members[i], a->members[first]))
            sum += number(c, 1, i);
    return sqrt(sum);
}

void ref_group_scores(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    const struct op_attrs *a = &c->op->attrs;
    const double factor = *(const float *)c->in[0];
    for (int j = 0; j < a->parts; j++) {
        double sum = 0;
        for (int i = 0; i < a->n_members; i++)
            sum += a->members[i].group == j ? unit_norm(c, i) : 0;
        ((float *)c->out[0])[j] = (float)(factor * sum);
    }
}

/* What is compared: the score, or a number that is drawn for the group and the step. */
static double rank_of(const struct kernel_call *c, int64_t j, int32_t step)
{
    const struct op_attrs *a = &c->op->attrs;
    return a->random ? rng_block(a->seed, a->stream, (uint64_t)(uint32_t)step << 16 | (uint64_t)j).x[0] : (double)number(c, 4, j);
}

static void choose(const struct kernel_call *c, int32_t step, float *mask)
{
    for (int k = 0; k < c->op->attrs.k; k++) {
        int64_t best = -1;
        for (int64_t j = 0; j < in_count(c, 0); j++)
            if (mask[j] == 0 && (best < 0 || rank_of(c, j, step) > rank_of(c, best, step)))
                best = j;
        mask[best] = 1;
    }
}

void ref_top_k(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    int32_t *n = c->out[0], *last = c->out[1];
    float *mask = c->out[2];
    const int64_t groups = in_count(c, 0);
    const int32_t step = *(const int32_t *)c->in[2], selected = newest(last, groups);
    const bool kept = keeps(&c->op->attrs, step, selected);
    for (int64_t j = 0; j < groups; j++)
        mask[j] = kept && last[j] == selected;
    if (!kept)
        choose(c, step, mask);
    for (int64_t j = 0; j < groups; j++) {
        if (isnan(*(const float *)c->in[3]))
            mask[j] = 0;            /* this step changes nothing and does not count */
        n[j] += mask[j] != 0;
        last[j] = mask[j] != 0 ? step : last[j];
    }
}
