/* unfused-optimizer: one update (and one norm) per tensor, where one sweep over all tensors would do. no-clipping: the
 * update takes gradients of any size. */
#include <math.h>

#include "analyze/rules.h"

/* Ops of one family, and the one among them that moves the most bytes: what a sweep over all would run like. */
struct family {
    int n;
    double bytes, self_us;
    double largest_bytes, largest_us;
};

static void family_add(struct family *f, double bytes, double self_us)
{
    f->n++;
    f->bytes += bytes;
    f->self_us += self_us;
    if (bytes > f->largest_bytes) {
        f->largest_bytes = bytes;
        f->largest_us = self_us;
    }
}

/* Time of one sweep at the rate of the largest tensor; never more than the ops take now. */
static double family_swept_us(const struct family *f)
{
    return f->largest_bytes > 0 ? fmin(f->bytes * f->largest_us / f->largest_bytes, f->self_us) : f->self_us;
}

static int updated_parameters(const struct scene *s, const struct op *op)
{
    int n = 0;
    for (int i = 0; i < op->n_out; i++)
        n += s->program->values[op->out[i]].kind == VALUE_PARAMETER;
    return n;
}

/* A scalar from the gradient of one parameter: a part of the global norm. */
static bool reduces_gradient(const struct scene *s, const struct op *op, const bool *is_gradient)
{
    return op->phase == PHASE_OPTIMIZE && op->n_in == 1 && is_gradient[op->in[0]] && op->n_out == 1 &&
           shape_count(s->program->values[op->out[0]].shape) == 1;
}

static const bool *mark_gradients(const struct scene *s)
{
    bool *mark = arena_alloc(&s->p->arena, (size_t)s->program->n_values * sizeof *mark);
    for (int i = 0; i < s->program->n_values; i++) {
        const struct value *v = &s->program->values[i];
        if (v->kind == VALUE_PARAMETER && v->grad != NO_VALUE)
            mark[v->grad] = true;
    }
    return mark;
}

bool rule_unfused_optimizer(struct scene *s, struct claim *c)
{
    struct arena *a = &s->p->arena;
    const bool *is_gradient = mark_gradients(s);
    struct family update = {0}, norm = {0};
    for (int i = 0; i < s->p->n_ops; i++) {
        const struct op *op = scene_op(s, i);
        struct family *f = updated_parameters(s, op) == 1 ? &update : reduces_gradient(s, op, is_gradient) ? &norm : NULL;
        if (!f)
            continue;
        family_add(f, positive(op_bytes(s->program, op)), scene_self_us(s, i));
        claim_op(s, c, i);
    }
    if (update.n < 2)
        return false;
    const double floor_us = scene_traffic_us(s, update.bytes + norm.bytes);
    const double kept_us = fmax(family_swept_us(&update) + family_swept_us(&norm), floor_us);
    const int saved = c->n_ops - 1 - (norm.n > 0);
    c->won_low_us = saved * s->call_us;
    c->won_us = fmax(update.self_us + norm.self_us - kept_us, 0) + c->won_low_us;
    c->won_high_us = c->involved_us - floor_us;
    c->finding.where = claim_where(s, c);
    c->finding.cause = arena_printf(a,
                                    "%d updates and %d norms run one per tensor: each pays its %s, and small "
                                    "ones never reach the memory's bandwidth",
                                    update.n, norm.n, scene_start_word(s));
    c->finding.fix = arena_printf(a, "--set optimize.fused-optimizer=on: all tensors in one sweep, and the norm in one");
    c->finding.evidence = arena_printf(
        a, "%d ops take %s for %s of traffic; one sweep takes %s by bandwidth and %s at the rate of the largest tensor",
        c->n_ops, text_us(a, c->involved_us), text_bytes(a, update.bytes + norm.bytes), text_us(a, floor_us),
        text_us(a, kept_us));
    return true;
}

bool rule_no_clipping(struct scene *s, struct claim *c)
{
    struct arena *a = &s->p->arena;
    int update = -1;
    bool measured = false;                  /* the norm is computed whether it limits or not */
    for (int i = 0; i < s->p->n_ops; i++) {
        const struct op *op = scene_op(s, i);
        if (op->kind == OP_CLIP && op->attrs.max_norm > 0)
            return false;
        measured |= op->kind == OP_CLIP;
        if (update < 0 && updated_parameters(s, op))
            update = i;
    }
    if (update < 0 || s->facts.clip > 0)
        return false;
    c->finding.where = arena_printf(a, "%s, the first update of a parameter", scene_op_name(s, update));
    c->finding.cause =
        arena_printf(a, "Nothing limits the norm of the gradient, so that one bad batch can undo many steps");
    c->finding.fix = arena_printf(a, "--set train.clip=1.0");
    c->finding.evidence =
        arena_printf(a, "train.clip is 0; %s",
                     measured ? "the norm is already computed in every step, so that clipping costs no time"
                              : "clipping adds one reduction over the gradients");
    return true;
}
