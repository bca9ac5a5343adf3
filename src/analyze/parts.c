/* Which part of the model an op belongs to. */
#include <string.h>

#include "analyze/analyze.h"

enum part { ATTENTION, FEED_FORWARD, EMBEDDING, HEAD, NORMS, OPTIMIZER, OTHER };

const char *const model_parts[] = {"attention", "feed-forward", "embedding", "head and loss", "norms", "optimizer", "other", NULL};

/* What the kind alone says; OTHER: nothing. */
static enum part part_by_kind(enum op_kind kind)
{
    switch (kind) {
    case OP_EMBED: case OP_EMBED_GRAD:
        return EMBEDDING;
    case OP_LAYERNORM: case OP_LAYERNORM_GRAD: case OP_RMSNORM: case OP_RMSNORM_GRAD: case OP_ADD_LAYERNORM: case OP_ADD_RMSNORM:
        return NORMS;
    case OP_ROPE_TABLE: case OP_ROPE: case OP_CAUSAL_MASK: case OP_ATTN_SCORES: case OP_ATTN_MIX: case OP_ATTN_MIX_T:
    case OP_SOFTMAX: case OP_SOFTMAX_GRAD: case OP_ATTENTION: case OP_ATTENTION_GRAD: case OP_STORE_KV: case OP_ATTEND_KV:
        return ATTENTION;
    case OP_GELU: case OP_GELU_GRAD: case OP_SILU: case OP_SILU_GRAD: case OP_SWIGLU: case OP_SWIGLU_GRAD: case OP_LINEAR_GELU:
        return FEED_FORWARD;
    case OP_LOG_SOFTMAX: case OP_LOG_SOFTMAX_GRAD: case OP_NLL: case OP_NLL_GRAD: case OP_LINEAR_LOSS: case OP_FILL:
        return HEAD;
    default:
        return OTHER;
    }
}

/* Does a weight that it reads, or what it makes, have a name inside of attention? */
static bool names_attention(const struct program *p, const struct op *op)
{
    bool found = false;
    for (int i = 0; i < op->n_out; i++)
        found |= strstr(p->values[op->out[i]].name, ".attn.") != NULL;
    for (int i = 0; i < op->n_in; i++)
        found |= p->values[op->in[i]].kind == VALUE_PARAMETER && strstr(p->values[op->in[i]].name, ".attn.");
    return found;
}

static int writer_of(const struct program *p, value_id v, int before)
{
    while (--before >= 0)
        for (int k = 0; k < p->ops[before].n_out; k++)
            if (p->ops[before].out[k] == v)
                return before;
    return -1;
}

static enum part part_in_layer(const struct program *p, const struct op *op)
{
    return names_attention(p, op) ? ATTENTION : op->kind == OP_ADD ? NORMS : FEED_FORWARD;
}

static enum part part_outside(const struct op *op)
{
    return op->kind == OP_MATMUL ? HEAD : op->kind == OP_ADD || op->kind == OP_SUM_LEADING || op->kind == OP_DROPOUT ? EMBEDDING : OTHER;
}

static enum part part_of(const struct program *p, int i)
{
    const struct op *op = &p->ops[i];
    if (op->kind == OP_HOST_READ || op->kind == OP_KEEP || op->kind == OP_ACCUMULATE)
        return OTHER;
    if (op->phase == PHASE_OPTIMIZE)
        return OPTIMIZER;
    const enum part by_kind = part_by_kind(op->kind);
    if (by_kind != OTHER)
        return by_kind;
    /* a sum of gradients goes with the one that came last */
    const int last = op->kind == OP_ADD && op->phase == PHASE_BACKWARD ? writer_of(p, op->in[1], i) : -1;
    if (last >= 0)
        return part_of(p, last);
    return op->layer == NO_LAYER ? part_outside(op) : part_in_layer(p, op);
}

const char *op_model_part(const struct program *p, int i) { return model_parts[part_of(p, i)]; }
