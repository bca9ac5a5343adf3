/* small-batch: a large part of the step does not grow with the batch, so that a larger one shares it between more
 * samples. Each op's time is split into a part per sample and a fixed part by what it reads and writes:
 *   nothing of the batch (optimizer, constants): all fixed; bound by memory: fixed as its weights are of its bytes;
 *   bound by compute: nothing fixed. Dispatch and host work are fixed. */
#include <stdlib.h>

#include "analyze/rules.h"

static const double FIXED_SHARE = 0.05;     /* below it a larger batch is not worth a word */

/* Outputs that are sums over the batch: gradients of weights, norms' gain and shift, losses. */
static bool sums_over_batch(const struct op *op, int out)
{
    switch (op->kind) {
    case OP_MATMUL: return op->attrs.trans_a;
    case OP_EMBED_GRAD: case OP_SUM_LEADING: case OP_SUM_SQUARES: case OP_CLIP: case OP_NLL: return true;
    case OP_LAYERNORM_GRAD: case OP_RMSNORM_GRAD: return out > 0;
    case OP_LINEAR_LOSS: return out != 2;                   /* all but dx */
    default: return false;
    }
}

/* Marks the values whose size grows with the batch: inputs, and what follows from them until it is summed. */
static bool *mark_batch(const struct program *p)
{
    bool *grows = xcalloc((size_t)p->n_values, sizeof *grows);
    for (int i = 0; i < p->n_values; i++)
        grows[i] = p->values[i].kind == VALUE_INPUT;
    for (int i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        bool any = false;
        for (int j = 0; j < op->n_in; j++)
            any |= grows[op->in[j]];
        for (int k = 0; any && k < op->n_out; k++)
            if (!value_is_persistent(&p->values[op->out[k]]))
                grows[op->out[k]] = !sums_over_batch(op, k) && shape_count(p->values[op->out[k]].shape) > 1;
    }
    return grows;
}

struct split {
    double growing_bytes, bytes;
    bool any;                               /* something grows */
};

static struct split split_traffic(const struct program *p, const struct op *op, const bool *grows)
{
    struct split x = {0};
    for (int i = 0; i < op->n_in + op->n_out; i++) {
        const value_id v = i < op->n_in ? op->in[i] : op->out[i - op->n_in];
        const double bytes = (double)value_bytes(&p->values[v]);
        x.bytes += bytes;
        x.growing_bytes += grows[v] ? bytes : 0;
        x.any |= grows[v];
    }
    return x;
}

/* The fixed part of an op's time: all, the share of its weights, or nothing. */
static double fixed_us(const struct scene *s, int i, const bool *grows)
{
    const struct op *op = scene_op(s, i);
    const struct split x = split_traffic(s->program, op, grows);
    if (!x.any)
        return scene_op_us(s, i);
    const bool by_weights = s->p->ops[i].memory_bound && !op_info(op->kind)->bytes && x.bytes > 0;
    return by_weights ? scene_self_us(s, i) * (1 - x.growing_bytes / x.bytes) : 0;
}

struct fixed {
    double idle_us;                         /* ops that see nothing of the batch */
    double weights_us;                      /* traffic of weights in the others */
    double beyond_us;                       /* what the others take beyond their roofline */
};

static struct fixed sum_fixed(const struct scene *s)
{
    bool *grows = mark_batch(s->program);
    struct fixed f = {0};
    for (int i = 0; i < s->p->n_ops; i++) {
        const double us = fixed_us(s, i, grows);
        if (!split_traffic(s->program, scene_op(s, i), grows).any)
            f.idle_us += us;
        else
            f.weights_us += us;
        f.beyond_us += positive(scene_self_us(s, i) - us - scene_floor_us(s, i));
    }
    free(grows);
    return f;
}

/* Twice the activations beside the same parameters, state and tables; a batch's numbers of tokens are few. */
static bool doubling_fits(const struct scene *s)
{
    const struct profile *p = s->p;
    double growing = 0;
    if (p->memory && p->peak_op >= 0 && p->peak_op < p->n_ops)
        growing = positive(p->memory[p->peak_op].activations);
    return s->available_bytes <= 0 || positive(p->peak_bytes) + growing <= s->available_bytes;
}

bool rule_small_batch(struct scene *s, struct claim *c)
{
    struct arena *a = &s->p->arena;
    const struct fixed f = sum_fixed(s);
    const double calls_us = s->dispatch_us + s->host_us, fixed = calls_us + f.idle_us + f.weights_us;
    c->broad = true;
    c->finding.per_sample = true;
    c->involved_us = fixed;
    if (s->step_us <= 0 || s->facts.batch < 1 || fixed < FIXED_SHARE * s->step_us || !doubling_fits(s))
        return false;
    /* Two samples share what one paid: half of it is won per sample. */
    c->won_us = fixed / 2;
    c->won_low_us = (calls_us + f.idle_us) / 2;
    c->won_high_us = (fixed + f.beyond_us / 2 + s->imbalance_us / 2) / 2;
    c->finding.where = arena_printf(a, "the whole step at batch size %lld", (long long)s->facts.batch);
    c->finding.cause = arena_printf(a, "%.1f %% of the step does not grow with the batch", 100 * fixed / s->step_us);
    c->finding.fix = arena_printf(a,
                                  "--set train.batch_size=%lld; the gain is per sample, and as updates get fewer the "
                                  "learning rate may need to rise",
                                  (long long)(2 * s->facts.batch));
    c->finding.evidence =
        arena_printf(a,
                     "fixed per step: %s and host %s, ops without batch %s, weight traffic %s of %s; twice the "
                     "batch halves that per sample",
                     s->p->gpu ? "idleness between kernels" : "dispatch", text_us(a, calls_us), text_us(a, f.idle_us),
                     text_us(a, f.weights_us), scene_time(s));
    return true;
}
