/* Work that is done again. constant-rebuilt: ops without inputs give the same result in every step. recompute: an op
 * with the inputs, attributes and kind of an earlier one. */
#include <stdlib.h>
#include <string.h>

#include "analyze/rules.h"

/* ---- constant-rebuilt ---- */

/* How many constants there would be if equal ones were built once. */
static int distinct_constants(const struct scene *s, const struct claim *c)
{
    int *kept = xcalloc((size_t)c->n_ops, sizeof *kept), n = 0;
    for (int i = 0; i < s->p->n_ops; i++) {
        if (!c->ops[i])
            continue;
        bool seen = false;
        for (int j = 0; j < n && !seen; j++)
            seen = scene_op(s, kept[j])->kind == scene_op(s, i)->kind &&
                   op_attrs_equal(&scene_op(s, kept[j])->attrs, &scene_op(s, i)->attrs);
        if (!seen)
            kept[n++] = i;
    }
    free(kept);
    return n;
}

static bool is_constant(const struct op *op) { return op->n_in == 0 && op->n_out > 0 && op->phase != PHASE_SETUP; }

bool rule_constant_rebuilt(struct scene *s, struct claim *c)
{
    struct arena *a = &s->p->arena;
    for (int i = 0; i < s->p->n_ops; i++)
        if (is_constant(scene_op(s, i))) {
            claim_op(s, c, i);
            c->won_low_us += scene_op_us(s, i);
        }
    if (!c->n_ops)
        return false;
    c->won_us = c->won_high_us = c->involved_us;
    const int distinct = distinct_constants(s, c);
    c->finding.where = claim_where(s, c);
    c->finding.cause =
        arena_printf(a, "%d op%s nothing that changes and still run%s in every step; %d distinct value%s", c->n_ops,
                     c->n_ops == 1 ? " reads" : "s read", c->n_ops == 1 ? "s" : "", distinct,
                     distinct == 1 ? " would do" : "s would do");
    c->finding.fix = arena_printf(a, "--set optimize.hoist-constants=on: each mask and table is built once and kept");
    c->finding.evidence =
        arena_printf(a, "%d constant%s (%d distinct) take%s %s of the %s, %s included", c->n_ops, c->n_ops == 1 ? "" : "s",
                     distinct, c->n_ops == 1 ? "s" : "", text_us(a, c->involved_us), scene_step(s), scene_start_word(s));
    return true;
}

/* ---- recompute ---- */

struct key {
    uint64_t hash;
    int op;
};

static uint64_t mix(uint64_t hash, uint64_t x) { return (hash ^ x) * 0x9e3779b97f4a7c15u ^ (hash >> 29); }

/* Hash of kind and inputs, where an input that was updated in place counts as a new value. */
static uint64_t hash_op(const struct op *op, const int *version)
{
    uint64_t hash = mix(1, (uint64_t)op->kind);
    for (int i = 0; i < op->n_in; i++)
        hash = mix(mix(hash, (uint64_t)op->in[i]), (uint64_t)version[op->in[i]]);
    return hash;
}

/* Constants have a rule of their own; ops that write in place, and reads by the host, have effects; and what the pass recompute
 * repeats was dropped on purpose. */
static bool is_pure(const struct op *op)
{
    return op->n_in > 0 && op_updated(op->kind, &op->attrs) == 0 && op->kind != OP_HOST_READ && strcmp(op->made_by, "recompute");
}

static int by_hash(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    return x->hash != y->hash ? (x->hash < y->hash ? -1 : 1) : x->op - y->op;
}

static struct key *sorted_keys(const struct scene *s, int *n)
{
    struct key *keys = xcalloc((size_t)s->p->n_ops, sizeof *keys);
    int *version = xcalloc((size_t)s->program->n_values, sizeof *version);
    *n = 0;
    for (int i = 0; i < s->p->n_ops; i++) {
        const struct op *op = scene_op(s, i);
        if (is_pure(op))
            keys[(*n)++] = (struct key){hash_op(op, version), i};
        for (int k = 0; k < op_updated(op->kind, &op->attrs) && k < op->n_in; k++)
            version[op->in[k]]++;
    }
    free(version);
    qsort(keys, (size_t)*n, sizeof *keys, by_hash);
    return keys;
}

static bool same_work(const struct op *a, const struct op *b)
{
    bool same = a->kind == b->kind && a->n_in == b->n_in && op_attrs_equal(&a->attrs, &b->attrs);
    for (int i = 0; same && i < a->n_in; i++)
        same = a->in[i] == b->in[i];
    return same;
}

bool rule_recompute(struct scene *s, struct claim *c)
{
    struct arena *a = &s->p->arena;
    int n;
    struct key *keys = sorted_keys(s, &n);
    int original = -1;                      /* of the first pair */
    for (int i = 0, first = 0; i < n; i++) {
        if (keys[i].hash != keys[first].hash || !same_work(scene_op(s, keys[first].op), scene_op(s, keys[i].op)))
            first = i;
        if (first == i)
            continue;
        claim_op(s, c, keys[i].op);
        c->won_low_us += scene_self_us(s, keys[i].op);
        if (c->first_op == keys[i].op)
            original = keys[first].op;
    }
    free(keys);
    if (!c->n_ops)
        return false;
    c->won_us = c->won_high_us = c->involved_us;
    c->finding.where = claim_where(s, c);
    c->finding.cause = arena_printf(a, "%s has kind, attributes and inputs of %s, which ran before it",
                                    scene_op_name(s, c->first_op), scene_op_name(s, original));
    c->finding.fix = arena_printf(
        a, "Compute the value once and use it in both places, unless it was dropped on purpose to save memory");
    c->finding.evidence = arena_printf(a, "%d repeated op%s %s of the %s", c->n_ops,
                                       c->n_ops == 1 ? " takes" : "s take", text_us(a, c->involved_us),
                                       scene_step(s));
    return true;
}
