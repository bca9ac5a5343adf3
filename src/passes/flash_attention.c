/* flash-attention: scores, causal mask, softmax[, dropout] and mix become one op. The weights (B, H, T, T) are then whole in
 * memory neither forward nor backward, and nothing above the diagonal is computed. Dropout keeps its seed, stream and tick, so
 * the same weights are dropped. */
#include <string.h>

#include "passes/optimize.h"
#include "program/rewrite.h"

/* The ops of one attention, from the last to the first; dropout is -1 where there is none. */
struct chain { int mix, dropout, softmax, add, scores, mask; };

/* The op of this kind that makes input k of op `at`, where nothing else reads it; else -1. */
static int sole_source(const struct program *p, int at, int k, enum op_kind kind)
{
    const value_id v = p->ops[at].in[k];
    const int from = program_writer(p, v);
    return from >= 0 && p->ops[from].kind == kind && program_readers(p, v, NULL) == 1 && !program_is_root(p, v) ? from : -1;
}

static bool find_chain(const struct program *p, int mix, struct chain *c)
{
    *c = (struct chain){.mix = mix, .dropout = sole_source(p, mix, 0, OP_DROPOUT)};
    c->softmax = sole_source(p, c->dropout < 0 ? mix : c->dropout, 0, OP_SOFTMAX);
    c->add = c->softmax < 0 ? -1 : sole_source(p, c->softmax, 0, OP_ADD);
    c->scores = c->add < 0 ? -1 : sole_source(p, c->add, 0, OP_ATTN_SCORES);
    c->mask = c->add < 0 ? -1 : program_writer(p, p->ops[c->add].in[1]);
    if (c->scores < 0 || c->mask < 0 || p->ops[c->mask].kind != OP_CAUSAL_MASK)
        return false;
    const struct op_attrs *s = &p->ops[c->scores].attrs, *m = &p->ops[mix].attrs;
    return m->scale == 1 && s->heads == m->heads && s->kv_heads == m->kv_heads;
}

/* Puts the op in at `at`, named as what stood there but for the last word. */
static int insert(struct program *p, int at, struct op_attrs attrs, int n_in, const value_id *in)
{
    const char *scope = p->scope, *of = p->values[p->ops[at].out[0]].name, *dot = strrchr(of, '.');
    p->scope = dot ? arena_printf(&p->arena, "%.*s", (int)(dot - of), of) : "";
    const int made = program_insert_op(p, at, OP_ATTENTION, attrs, "attention", n_in, in);
    p->scope = scope;
    return made;
}

/* Removes the op that writes v. */
static void remove_writer(struct program *p, value_id v) { program_remove_op(p, program_writer(p, v)); }

static bool replace(struct program *p, const struct chain *c)
{
    const struct op *scores = &p->ops[c->scores];
    value_id in[4] = {scores->in[0], scores->in[1], p->ops[c->mix].in[1]};
    struct op_attrs attrs = {.heads = scores->attrs.heads, .kv_heads = scores->attrs.kv_heads, .scale = scores->attrs.scale,
                             .causal = true};
    int n_in = 3;
    if (c->dropout >= 0 && p->ops[c->dropout].attrs.prob > 0) {
        const struct op_attrs *d = &p->ops[c->dropout].attrs;
        attrs.prob = d->prob;
        attrs.seed = d->seed;
        attrs.stream = d->stream;
        in[n_in++] = p->ops[c->dropout].in[1];
    }
    const int chain[] = {c->mix, c->dropout, c->softmax, c->add, c->scores};
    const value_id mask = p->ops[c->mask].out[0];
    value_id old[5];
    int n = 0;
    for (int i = 0; i < 5; i++)
        if (chain[i] >= 0)
            old[n++] = p->ops[chain[i]].out[0];

    const int made = insert(p, c->mix, attrs, n_in, in);
    if (made < 0)
        return false;
    program_replace_value(p, old[0], p->ops[made].out[0]);
    for (int i = 0; i < n; i++)                 /* readers before what they read */
        remove_writer(p, old[i]);
    if (program_readers(p, mask, NULL) == 0)
        remove_writer(p, mask);
    return true;
}

int pass_flash_attention(struct program *p)
{
    int places = 0;
    struct chain c;
    for (int i = p->n_ops - 1; i >= 0; i--)     /* backwards: what is removed lies before */
        if (i < p->n_ops && p->ops[i].kind == OP_ATTN_MIX && find_chain(p, i, &c)) {
            if (!replace(p, &c))
                break;
            places++;
        }
    return places;
}
