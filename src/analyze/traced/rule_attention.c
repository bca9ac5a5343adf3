/* no-flash-attention, per-head-attention: the scores of all pairs of tokens are written out, or heads are looped over. */
#include <math.h>
#include <string.h>

#include "analyze/traced/rules.h"

enum { NEAR = 10, LEAST_HEADS = 2, LONGEST_BODY = 40 };
static const double FORWARD_UNITS = 12, BACKWARD_UNITS = 16;    /* host ops in one attention op */
static const double MASKED_LEFT = 0.7;      /* of the products' device time: blocks, half of them masked, one recomputed */
static const double PRODUCTS_LEFT = 1;      /* where all pairs count, none is skipped */
static const double ONE_HEAD_LEFT = 0.35;   /* of the device's time when all heads go together */
static const double PROJECTION_UNITS = 40;  /* host ops of one product with weights, forward and backward */

static bool is_product(const struct study *s, int32_t top)
{
    const enum task t = study_task(s, top);
    if (t == TASK_BATCHED)
        return true;
    return t == TASK_LINEAR && study_find(s, top, TASK_BATCHED) >= 0;      /* matmul of two batches */
}

static bool is_scores(const struct study *s, int32_t top)
{
    if (study_task(s, top) != TASK_SOFTMAX)
        return false;
    const struct dims d = study_dims(s, top, 0);
    return d.n < 0 || (d.n >= 3 && d.size[d.n - 1] > 1 && d.size[d.n - 2] > 1);
}

/* The nearest product before (step -1) or behind (step 1) on the way; -1: none. */
static int32_t product_near(const struct study *s, int32_t at, int step)
{
    for (int32_t k = at + step; k >= 0 && k < s->n_top && k - at <= NEAR && at - k <= NEAR; k += step) {
        if (study_is_backward(s, k) || study_task(s, s->top[k]) == TASK_NORM)
            return -1;
        if (is_product(s, s->top[k]))
            return k;
    }
    return -1;
}

/* Kernels of products stay in part, all others go. */
static void charge_chain_device(const struct study *s, struct charge *c, int32_t host, double products)
{
    const struct view *v = s->v;
    for (int32_t i = host; i < v->end[host]; i++)
        for (int32_t d = v->launched[i]; d >= 0; d = v->next_launched[d - v->device]) {
            const float f = view_kernel_kind(v, d) == KERNEL_GEMM ? (float)products : 0;
            c->edit.device[d - v->device] = fminf(c->edit.device[d - v->device], f);
        }
}

struct chain {
    const struct study *s;
    struct charge *c;
    double part, products;
};

static void charge_node(void *context, int32_t node)
{
    const struct chain *x = context;
    charge_host(x->s, x->c, node, x->part);
    charge_chain_device(x->s, x->c, node, x->products);
}

static void charge_op(struct chain *x, int32_t top)
{
    charge_node(x, top);
    study_twins(x->s, top, charge_node, x);
}

/* The chain's ends: also what scales the scores before and drops or casts behind lies between the products. */
static bool chain_at(const struct study *s, int32_t at, int32_t *first, int32_t *last)
{
    if (study_is_backward(s, at) || !is_scores(s, s->top[at]))
        return false;
    *first = product_near(s, at, -1);
    *last = product_near(s, at, 1);
    return *first >= 0 && *last >= 0;
}

/* Two turns of the loop over heads around a softmax: the shortest body that repeats from one of the ops before it, or is
 * repeated there. Projections of single heads may be inside. */
static bool loop_at(const struct study *s, int32_t at, struct loop *out)
{
    for (int32_t start = at; start >= 0 && at - start <= LONGEST_BODY; start--) {
        if (study_is_backward(s, start))
            return false;
        struct loop l;
        if (!study_loop(s, start, LEAST_HEADS, LONGEST_BODY, &l) || at - start >= l.ops)
            continue;
        int products = 0, norms = 0, chains = 0;
        for (int32_t k = start; k < start + l.period; k++) {
            products += study_task(s, s->top[k]) == TASK_LINEAR || study_task(s, s->top[k]) == TASK_BATCHED;
            norms += study_task(s, s->top[k]) == TASK_NORM;
            chains += is_scores(s, s->top[k]);
        }
        if (products >= 2 && !norms && chains == 1) {       /* a whole layer has norms */
            *out = l;
            return true;
        }
    }
    return false;
}

static void extend(const struct study *s, struct loop *l)
{
    while (l->first > 0 && study_same(s, l->first - 1, l->first - 1 + l->period) && !study_is_backward(s, l->first - 1))
        l->first--, l->ops++;
    study_loop_extend(s, l);
}

/* Where nothing is looped over, the same test says so for the chain: a body of one attention that follows itself. */
static bool is_looped(const struct study *s, int32_t at)
{
    struct loop l;
    return loop_at(s, at, &l);
}

/* A sum with one matrix of tokens by tokens is a mask; one with a matrix per head or sample is a bias, which skips nothing. */
static bool adds_mask(const struct study *s, int32_t top)
{
    const struct dims scores = study_dims(s, top, 0), other = study_dims(s, top, 1);
    if (!strstr(view_name(s->v, top), "::add") || scores.n < 2 || other.n < 2)
        return false;
    const struct dims matrix = {.n = 2, .size = {scores.size[scores.n - 1], scores.size[scores.n - 2]}};
    return dims_elements(matrix) > 0 && dims_elements(other) == dims_elements(matrix);
}

/* Scores are masked between the first product and softmax: with a causal mask half of the blocks need not be computed. */
static bool is_masked(const struct study *s, int32_t first, int32_t softmax)
{
    for (int32_t k = first + 1; k < softmax; k++) {
        const char *name = view_name(s->v, s->top[k]);
        if (strstr(name, "masked_fill") || strstr(name, "::where") || strstr(name, "tril") || strstr(name, "triu") || adds_mask(s, s->top[k]))
            return true;
    }
    return strstr(view_name(s->v, s->top[softmax]), "masked") || strstr(view_name(s->v, s->top[first]), "baddbmm");
}

/* A tensor is added to the scores; without shapes it may be a number. */
static bool is_biased(const struct study *s, int32_t first, int32_t softmax)
{
    for (int32_t k = first + 1; k < softmax; k++)
        if (strstr(view_name(s->v, s->top[k]), "::add") && dims_elements(study_dims(s, s->top[k], 1)) > 1)
            return true;
    return false;
}

static enum scores_mask mask_of(const struct study *s, int32_t first, int32_t softmax)
{
    if (is_masked(s, first, softmax))
        return MASK_MASK;
    if (!s->v->trace->origin.has_shapes)
        return MASK_UNKNOWN;                /* what an addition adds is not known */
    return is_biased(s, first, softmax) ? MASK_BIAS : MASK_NONE;
}

/* Of several attentions the code is for the one that needs most to be told. */
static void ask_mask(struct charge *c, enum scores_mask mask)
{
    c->asks.mask = mask > c->asks.mask ? mask : c->asks.mask;
}

bool trace_rule_no_flash_attention(struct study *s, struct charge *c)
{
    int chains = 0;
    double device = 0;
    int32_t example = -1, first, last;
    struct chain x = {s, c, 0, MASKED_LEFT};
    for (int32_t k = 0; k < s->n_top; k++) {
        if (!chain_at(s, k, &first, &last) || is_looped(s, k))
            continue;
        chains++;
        example = example < 0 ? s->top[k] : example;
        x.products = is_masked(s, first, k) ? MASKED_LEFT : PRODUCTS_LEFT;
        ask_mask(c, mask_of(s, first, k));
        for (int32_t i = first; i <= last; i++) {
            device += study_device_ns(s, s->top[i]);
            charge_op(&x, s->top[i]);
        }
        k = last;
    }
    if (!chains)
        return false;
    c->edit.added_ns = per_step(s, chains) * s->unit_ns * (FORWARD_UNITS + (s->trains ? BACKWARD_UNITS : 0));
    c->doubt = 0.35;
    const struct dims d = study_dims(s, example, 0);
    c->finding.where = study_where(s, example);
    c->finding.cause = "the scores of all pairs of tokens are written to memory and read back op by op";
    c->finding.evidence = study_text(s, "%s chains of product, softmax, product per step, %s of the device in their forward",
                                     study_number(s, per_step(s, chains)), study_us(s, per_step(s, device)));
    if (dims_elements(d) > 0)
        c->finding.evidence = study_text(s, "%s; scores of %.2f M elements each", c->finding.evidence,
                                         (double)dims_elements(d) / 1e6);
    return true;
}

bool trace_rule_per_head_attention(struct study *s, struct charge *c)
{
    int loops = 0, heads = 0, projected = 0;
    int32_t example = -1;
    for (int32_t k = 0; k < s->n_top; k++) {
        struct loop l;
        if (study_is_backward(s, k) || !is_scores(s, s->top[k]) || !loop_at(s, k, &l))
            continue;
        const int32_t product = product_near(s, k, -1);
        if (product >= 0)
            ask_mask(c, mask_of(s, product, k));
        extend(s, &l);
        int32_t end = l.first + l.ops;
        while (end < s->n_top && study_task(s, s->top[end]) == TASK_JOIN)
            end++;
        struct chain x = {s, c, 0, ONE_HEAD_LEFT};
        bool projects = false;              /* a product with the weights of one head */
        for (int32_t i = l.first; i < end; i++) {
            projects |= study_task(s, s->top[i]) == TASK_LINEAR && !is_product(s, s->top[i]);
            charge_op(&x, s->top[i]);
        }
        projected += projects;
        loops++;
        heads = l.ops / l.period > heads ? l.ops / l.period : heads;
        example = example < 0 ? s->top[k] : example;
        k = end - 1;
    }
    if (!loops)
        return false;
    c->edit.added_ns = per_step(s, loops * (FORWARD_UNITS + BACKWARD_UNITS) + projected * PROJECTION_UNITS) * s->unit_ns;
    c->doubt = 0.3;
    c->finding.where = study_where(s, example);
    c->finding.cause = "attention runs head by head, with small kernels and their calls for each head";
    c->finding.evidence = study_text(s, "%s loops per step over %d heads", study_number(s, per_step(s, loops)), heads);
    return true;
}
