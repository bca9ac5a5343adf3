/* unfused-projections: several products of one input with different weights (Q, K, V; gate and up), forward and their
 * gradients, where one product with the weights side by side would do. */
#include <math.h>
#include <stdlib.h>

#include "analyze/rules.h"

enum part { FORWARD, D_INPUT, D_WEIGHT, PARTS };

/* The products of one input in one part, and those of them with the most FLOPs: how fast a wide one runs. */
struct tally {
    int n;
    double flops, self_us, imbalance_us;
    double largest_flops, rate_flops, rate_us;
};

struct search {
    const struct scene *s;
    const bool *only;           /* per op: the products that the pass in question takes together; NULL: all */
    int *readers;               /* per value: forward products that read it as their first input */
    value_id *input_of;         /* per value: for a weight of such a product, or a gradient of its input, that input */
    struct tally *tallies;      /* (n_values, PARTS), by input */
    int groups, adds;
    double adds_us;             /* sums of the input's gradients: one product needs none */
};

static bool is_projection(const struct search *w, int i)
{
    const struct scene *s = w->s;
    const struct op *op = scene_op(s, i);
    return (!w->only || w->only[i]) && op->kind == OP_MATMUL && op->phase == PHASE_FORWARD && !op->attrs.trans_a &&
           s->program->values[op->in[1]].kind == VALUE_PARAMETER;
}

static void count_readers(struct search *w)
{
    for (int i = 0; i < w->s->program->n_values; i++)
        w->input_of[i] = NO_VALUE;
    for (int i = 0; i < w->s->p->n_ops; i++) {
        const struct op *op = scene_op(w->s, i);
        if (is_projection(w, i) && ++w->readers[op->in[0]] == 2)
            w->groups++;
    }
    for (int i = 0; i < w->s->p->n_ops; i++) {
        const struct op *op = scene_op(w->s, i);
        if (is_projection(w, i) && w->readers[op->in[0]] >= 2)
            w->input_of[op->in[1]] = op->in[0];
    }
}

static void tally_add(struct search *w, struct claim *c, int op, value_id input, enum part part)
{
    struct tally *t = &w->tallies[(size_t)input * PARTS + part];
    const double flops = op_flops(w->s->program, scene_op(w->s, op)) * scene_runs(w->s, op);
    const double self_us = scene_self_us(w->s, op);
    claim_op(w->s, c, op);
    t->n++;
    t->flops += flops;
    t->self_us += self_us;
    t->imbalance_us += scene_op_us(w->s, op) - self_us;
    if (flops > t->largest_flops)
        t->largest_flops = flops, t->rate_flops = t->rate_us = 0;
    if (flops == t->largest_flops)
        t->rate_flops += flops, t->rate_us += self_us;
}

/* The input's gradient comes in parts that are added up: those adds go away. */
static void look_at_add(struct search *w, struct claim *c, int i)
{
    const struct op *op = scene_op(w->s, i);
    const value_id input = w->input_of[op->in[0]];
    if (op->phase != PHASE_BACKWARD || input == NO_VALUE || w->input_of[op->in[1]] != input ||
        w->s->program->values[op->in[0]].kind != VALUE_GRADIENT)
        return;
    w->input_of[op->out[0]] = input;
    w->adds++;
    w->adds_us += scene_op_us(w->s, i);
    claim_op(w->s, c, i);
}

static void look_at_product(struct search *w, struct claim *c, int i)
{
    const struct op *op = scene_op(w->s, i);
    const value_id weight_input = w->input_of[op->in[1]];
    if (is_projection(w, i) && w->readers[op->in[0]] >= 2) {
        tally_add(w, c, i, op->in[0], FORWARD);
    } else if (op->phase == PHASE_BACKWARD && op->attrs.trans_a && w->readers[op->in[1]] >= 2) {
        tally_add(w, c, i, op->in[1], D_WEIGHT);
    } else if (op->phase == PHASE_BACKWARD && !op->attrs.trans_a && weight_input != NO_VALUE) {
        tally_add(w, c, i, weight_input, D_INPUT);
        w->input_of[op->out[0]] = weight_input;
    }
}

/* The fastest product of the program, in FLOPs per µs, among those with at least so many FLOPs. */
static double best_rate(const struct scene *s, double flops)
{
    double best = 0;
    for (int i = 0; i < s->p->n_ops; i++) {
        const double mine = op_flops(s->program, scene_op(s, i)) * scene_runs(s, i);
        if (scene_op(s, i)->kind == OP_MATMUL && mine >= flops && scene_self_us(s, i) > 0)
            best = fmax(best, mine / scene_self_us(s, i));
    }
    return best;
}

static void sum_up(struct search *w, struct claim *c)
{
    double rate = 0, seen = -1;             /* groups are alike: remember the last answer */
    int saved = w->adds;
    for (size_t i = 0; i < (size_t)w->s->program->n_values * PARTS; i++) {
        const struct tally *t = &w->tallies[i];
        if (t->n < 2)
            continue;
        saved += t->n - 1;
        const double wide_us = t->rate_flops > 0 ? t->flops * t->rate_us / t->rate_flops : t->self_us;
        c->won_us += fmax(t->self_us - wide_us, 0);
        if (t->largest_flops != seen)
            rate = best_rate(w->s, seen = t->largest_flops);
        c->won_high_us += rate > 0 ? fmax(t->self_us - t->flops / rate, 0) : 0;
        c->won_high_us += t->imbalance_us * (t->n - 1) / t->n;
    }
    c->won_low_us = saved * w->s->call_us;
    c->won_us += w->adds_us + c->won_low_us;
    c->won_high_us += w->adds_us + c->won_low_us;
}

static void describe(struct search *w, struct claim *c)
{
    struct scene const *s = w->s;
    struct arena *a = &s->p->arena;
    const int products = c->n_ops - w->adds;
    c->finding.where = claim_where(s, c);
    c->finding.cause = arena_printf(a,
                                    "%d input%s multiplied with several weights one after the other, forward and "
                                    "backward, and read again each time",
                                    w->groups, w->groups == 1 ? " is" : "s are");
    c->finding.fix = arena_printf(a, "--set optimize.fuse-qkv=on --set optimize.fuse-gate-up=on: the products of one "
                                     "input in one op");
    c->finding.evidence =
        arena_printf(a,
                     "%d products take %s and %d sums of input gradients %s of the %s; one product at "
                     "the rate of the widest of each group, without the sums, saves %s",
                     products, text_us(a, c->involved_us - w->adds_us), w->adds, text_us(a, w->adds_us),
                     scene_step(s), text_us(a, c->won_us));
}

bool rule_unfused_projections(struct scene *s, struct claim *c)
{
    const size_t n = (size_t)s->program->n_values;
    struct search w = {.s = s, .only = c->remedy ? c->remedy->ops : NULL, .readers = xcalloc(n, sizeof *w.readers), .input_of = xcalloc(n, sizeof *w.input_of),
                       .tallies = xcalloc(n * PARTS, sizeof *w.tallies)};
    count_readers(&w);
    for (int i = 0; i < s->p->n_ops && w.groups; i++) {
        if (scene_op(s, i)->kind == OP_MATMUL)
            look_at_product(&w, c, i);
        else if (scene_op(s, i)->kind == OP_ADD)
            look_at_add(&w, c, i);
    }
    if (w.groups) {
        sum_up(&w, c);
        describe(&w, c);
    }
    free(w.readers);
    free(w.input_of);
    free(w.tallies);
    return w.groups > 0;
}
