/* no-flash-attention: the scores of all pairs of tokens are written to memory and read back by every op up to the mix
 * with the values, and again in backward. Kept in blocks that stay in cache, they never go there.
 *
 * What would remain: the products, once more for the scores in backward (which are not stored), and softmax, both for
 * the blocks that a causal mask leaves. */
#include <math.h>
#include <stdlib.h>

#include "analyze/rules.h"

struct search {
    const struct scene *s;
    bool *scores;               /* per value: shaped like scores and derived from them */
    bool *mask;                 /* per value: a causal mask */
    int products, forwards;     /* ops that multiply; those that make scores in forward */
    bool backward, causal;
    double self_us, imbalance_us, products_us, softmax_us, dropout_us, flops;
    double calls_us;            /* dispatch of one op forward, and one backward, where there are many now */
    double score_bytes, other_bytes;        /* traffic of scores, and of queries, keys, values, results and gradients */
    int64_t seq;
};

static bool is_product(enum op_kind k) { return k == OP_ATTN_SCORES || k == OP_ATTN_MIX || k == OP_ATTN_MIX_T; }

static bool reads_scores(const struct search *w, const struct op *op)
{
    for (int i = 0; i < op->n_in; i++)
        if (w->scores[op->in[i]])
            return true;
    return false;
}

static void add_traffic(struct search *w, const value_id *ids, int n, int runs)
{
    for (int i = 0; i < n; i++) {
        double *to = w->scores[ids[i]] ? &w->score_bytes : &w->other_bytes;
        *to += (double)value_bytes(&w->s->program->values[ids[i]]) * runs;
    }
}

static void add_member(struct search *w, int i)
{
    const struct op *op = scene_op(w->s, i);
    const double self_us = scene_self_us(w->s, i);
    w->self_us += self_us;
    w->imbalance_us += scene_op_us(w->s, i) - self_us;
    if (is_product(op->kind)) {
        w->products++;
        w->products_us += self_us;
        w->flops += op_flops(w->s->program, op) * scene_runs(w->s, i);
        if (op->kind == OP_ATTN_SCORES && op->phase == PHASE_FORWARD) {
            w->forwards++;
            w->calls_us += scene_calls_us(w->s, i);
        }
    }
    w->softmax_us += op->kind == OP_SOFTMAX ? self_us : 0;
    w->dropout_us += op->kind == OP_DROPOUT ? self_us : 0;
    w->backward |= op->phase == PHASE_BACKWARD;
    w->causal |= op->kind == OP_ADD && w->mask[op->in[1]];
    add_traffic(w, op->in, op->n_in, scene_runs(w->s, i));
    add_traffic(w, op->out, op->n_out, scene_runs(w->s, i));
}

static void look(struct search *w, struct claim *c)
{
    for (int i = 0; i < w->s->p->n_ops; i++) {
        const struct op *op = scene_op(w->s, i);
        if (op->kind == OP_CAUSAL_MASK)
            w->mask[op->out[0]] = true;
        const bool reads = reads_scores(w, op);
        if (op->kind == OP_ATTN_SCORES) {
            w->scores[op->out[0]] = true;
            w->seq = shape_last(w->s->program->values[op->out[0]].shape);
        } else if (!reads) {
            continue;
        } else if (!is_product(op->kind) && op->n_out > 0) {
            w->scores[op->out[0]] = true;               /* masked, softmax, dropped, their gradients */
        }
        claim_op(w->s, c, i);
        add_member(w, i);
    }
}

static void estimate(const struct search *w, struct claim *c)
{
    const double left = w->causal ? ((double)w->seq + 1) / (2 * (double)w->seq) : 1;    /* pairs the mask leaves */
    const double again = (double)(w->products + (w->backward ? w->forwards : 0)) / w->products;
    const double times = w->backward ? 2 : 1;           /* weights are made again in backward */
    const double spread = w->self_us > 0 ? 1 + w->imbalance_us / w->self_us : 1;        /* threads stay as uneven */
    const double calls_us = times * w->calls_us;
    const double kept_us = spread * (again * w->products_us + times * w->softmax_us + w->dropout_us);
    const double floor_us =
        fmax(scene_compute_us(w->s, left * again * w->flops), scene_traffic_us(w->s, w->other_bytes));
    c->won_us = c->involved_us - calls_us - fmax(left * kept_us, floor_us);
    c->won_low_us = c->involved_us - calls_us - kept_us;        /* no block is skipped */
    c->won_high_us = c->involved_us - calls_us - floor_us;
}

static void describe(const struct search *w, struct claim *c)
{
    struct arena *a = &w->s->p->arena;
    c->finding.where = claim_where(w->s, c);
    c->finding.cause = arena_printf(
        a, "Scores of all %lld × %lld pairs are written to memory and read back between scores, %ssoftmax and mix%s",
        (long long)w->seq, (long long)w->seq, w->causal ? "mask, " : "", w->backward ? ", and again in backward" : "");
    c->finding.fix =
        arena_printf(a, "--set optimize.flash-attention=on: blocks with a running softmax%s, one number per row kept for backward",
                     w->causal ? ", blocks above the diagonal skipped" : "");
    c->finding.evidence =
        arena_printf(a, "%d ops take %s of the %s and move %s of scores; products %s, softmax %s",
                     c->n_ops, text_us(a, c->involved_us), scene_step(w->s), text_bytes(a, w->score_bytes),
                     text_us(a, w->products_us), text_us(a, w->softmax_us));
}

/* Scores that reach softmax: the pattern is scores, then something that reads them, then a mix. */
static bool is_materialised(const struct search *w, const struct claim *c)
{
    return w->forwards > 0 && w->products > w->forwards && c->n_ops > w->products;
}

bool rule_no_flash_attention(struct scene *s, struct claim *c)
{
    const size_t n = (size_t)s->program->n_values;
    struct search w = {.s = s, .scores = xcalloc(n, sizeof *w.scores), .mask = xcalloc(n, sizeof *w.mask)};
    look(&w, c);
    const bool found = is_materialised(&w, c);
    if (found) {
        estimate(&w, c);
        describe(&w, c);
    }
    free(w.scores);
    free(w.mask);
    return found;
}
