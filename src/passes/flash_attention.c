/* flash-attention: scores, causal mask, softmax[, dropout] and mix become one op. The weights (B, H, T, T) are then whole in
 * memory neither forward nor backward, and nothing above the diagonal is computed. Dropout keeps its seed, stream and tick, so
 * the same weights are dropped. */
#include <string.h>

#include "passes/optimize.h"
#include "program/rewrite.h"
#include "program/rewriter.h"

/* The ops of one attention, from the last to the first; dropout is -1 where there is none. */
struct chain { int mix, dropout, softmax, add, scores, mask; };

/* The op of this kind that makes input k of op `at`, where nothing else reads it; else -1. */
static int sole_source(const struct rewriter *r, int at, int k, enum op_kind kind)
{
    const struct program *p = r->p;
    const value_id v = p->ops[at].in[k];
    const int from = rewriter_writer(r, v);
    return from >= 0 && p->ops[from].kind == kind && rewriter_readers(r, v) == 1 && !program_is_root(p, v) ? from : -1;
}

static bool find_chain(const struct rewriter *r, int mix, struct chain *c)
{
    const struct program *p = r->p;
    *c = (struct chain){.mix = mix, .dropout = sole_source(r, mix, 0, OP_DROPOUT)};
    c->softmax = sole_source(r, c->dropout < 0 ? mix : c->dropout, 0, OP_SOFTMAX);
    c->add = c->softmax < 0 ? -1 : sole_source(r, c->softmax, 0, OP_ADD);
    c->scores = c->add < 0 ? -1 : sole_source(r, c->add, 0, OP_ATTN_SCORES);
    c->mask = c->add < 0 ? -1 : rewriter_writer(r, p->ops[c->add].in[1]);
    if (c->scores < 0 || c->mask < 0 || p->ops[c->mask].kind != OP_CAUSAL_MASK)
        return false;
    const struct op_attrs *s = &p->ops[c->scores].attrs, *m = &p->ops[mix].attrs;
    return m->scale == 1 && s->heads == m->heads && s->kv_heads == m->kv_heads;
}

/* Puts the op in front of op `at`, named as that but for the last word. */
static int insert(struct rewriter *r, int at, struct op_attrs attrs, int n_in, const value_id *in)
{
    struct program *p = r->p;
    const char *scope = p->scope, *of = p->values[p->ops[at].out[0]].name, *dot = strrchr(of, '.');
    p->scope = dot ? arena_printf(&p->arena, "%.*s", (int)(dot - of), of) : "";
    const int made = rewriter_insert(r, at, OP_ATTENTION, attrs, "attention", n_in, in);
    p->scope = scope;
    return made;
}

static struct op_attrs attributes(const struct program *p, const struct chain *c)
{
    const struct op_attrs *scores = &p->ops[c->scores].attrs;
    struct op_attrs attrs = {.heads = scores->heads, .kv_heads = scores->kv_heads, .scale = scores->scale, .causal = true};
    if (c->dropout >= 0 && p->ops[c->dropout].attrs.prob > 0) {
        const struct op_attrs *d = &p->ops[c->dropout].attrs;
        attrs.prob = d->prob;
        attrs.seed = d->seed;
        attrs.stream = d->stream;
        attrs.first = d->first;
    }
    return attrs;
}

/* Returns the new op, or NO_OP after a mistake. */
static int replace(struct rewriter *r, const struct chain *c)
{
    const struct program *p = r->p;
    const struct op_attrs attrs = attributes(p, c);
    const struct op *scores = &p->ops[c->scores];
    value_id in[4] = {scores->in[0], scores->in[1], p->ops[c->mix].in[1]};
    int n_in = 3;
    if (attrs.prob > 0)
        in[n_in++] = p->ops[c->dropout].in[1];
    const int made = insert(r, c->mix, attrs, n_in, in);
    if (made == NO_OP)
        return NO_OP;
    rewriter_replace(r, p->ops[c->mix].out[0], p->ops[made].out[0]);
    const int chain[] = {c->mix, c->dropout, c->softmax, c->add, c->scores};        /* readers before what they read */
    for (int i = 0; i < 5; i++)
        if (chain[i] >= 0)
            rewriter_remove(r, chain[i]);
    if (rewriter_readers(r, p->ops[c->mask].out[0]) == 0)
        rewriter_remove(r, c->mask);
    return made;
}

int pass_flash_attention(struct program *p)
{
    struct rewriter r;
    struct chain c;
    int places = 0;
    rewriter_open(&r, p);
    for (int i = r.last; i != NO_OP; i = rewriter_prev(&r, i))
        if (p->ops[i].kind == OP_ATTN_MIX && find_chain(&r, i, &c)) {
            i = replace(&r, &c);
            if (i == NO_OP)
                break;
            places++;
        }
    rewriter_close(&r);
    return places;
}
