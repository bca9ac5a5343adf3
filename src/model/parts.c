/* The parts that architectures are made of. */
#include <math.h>

#include "model/model_int.h"

static const float INIT_STD = 0.02f;

static value_id parameter(struct builder *b, const char *name, const char *what, struct shape s, enum param_role role,
                          enum param_init init)
{
    return program_add_parameter(b->p, arena_printf(&b->p->arena, "%s.%s", name, what), s, role, init, INIT_STD);
}

value_id build_layernorm(struct builder *b, const char *name, value_id x)
{
    const struct shape width = shape_of(1, b->m->dim);
    const value_id gain = parameter(b, name, "weight", width, ROLE_NORM, INIT_ONES);
    const value_id shift = parameter(b, name, "bias", width, ROLE_NORM, INIT_ZEROS);
    return program_emit(b->p, OP_LAYERNORM, (struct op_attrs){.eps = (float)b->m->norm_eps}, name, 3, x, gain, shift);
}

value_id build_rmsnorm(struct builder *b, const char *name, value_id x)
{
    const value_id gain = parameter(b, name, "weight", shape_of(1, b->m->dim), ROLE_NORM, INIT_ONES);
    return program_emit(b->p, OP_RMSNORM, (struct op_attrs){.eps = (float)b->m->norm_eps}, name, 2, x, gain);
}

value_id build_linear(struct builder *b, const char *name, value_id x, int64_t out, bool bias)
{
    if (b->p->error.status)
        return NO_VALUE;
    const int64_t in = shape_last(b->p->values[x].shape);
    const struct op_attrs attrs = {.trans_b = true};
    const value_id w = parameter(b, name, "weight", shape_of(2, out, in), ROLE_MATRIX, INIT_NORMAL);
    if (!bias)
        return program_emit(b->p, OP_MATMUL, attrs, name, 2, x, w);
    const value_id c = parameter(b, name, "bias", shape_of(1, out), ROLE_BIAS, INIT_ZEROS);
    return program_emit(b->p, OP_MATMUL, attrs, name, 3, x, w, c);
}

value_id build_table(struct builder *b, const char *name, int64_t rows)
{
    return program_add_parameter(b->p, name, shape_of(2, rows, b->m->dim), ROLE_EMBEDDING, INIT_NORMAL, INIT_STD);
}

value_id build_embed(struct builder *b, const char *name, value_id table, value_id ids)
{
    return program_emit(b->p, OP_EMBED, (struct op_attrs){0}, name, 2, table, ids);
}

value_id build_loss(struct builder *b, const char *name, value_id logits, value_id targets, value_id *count)
{
    const char *dot = *name ? "." : "";
    const value_id logp = program_emit(b->p, OP_LOG_SOFTMAX, (struct op_attrs){0}, arena_printf(&b->p->arena, "%s%slogp", name, dot), 1, logits);
    const value_id in[] = {logp, targets};
    const int at = program_add_op(b->p, OP_NLL, (struct op_attrs){0}, arena_printf(&b->p->arena, "%s%sloss", name, dot), 2, in);
    if (at < 0)
        return NO_VALUE;
    if (count)
        *count = b->p->ops[at].out[1];
    return b->p->ops[at].out[0];
}

value_id build_dropout(struct builder *b, value_id x)
{
    if (b->tick == NO_VALUE)
        return x;
    const struct shape s = b->p->values[x].shape;
    const struct op_attrs attrs = {.prob = (float)b->m->dropout, .seed = b->o.seed, .stream = (uint64_t)++b->dropouts,
                                   .first = b->o.first_sample * (shape_count(s) / s.dim[0])};
    return program_emit(b->p, OP_DROPOUT, attrs, "dropout", 2, x, b->tick);
}

value_id build_add(struct builder *b, const char *name, value_id x, value_id y)
{
    return program_emit(b->p, OP_ADD, (struct op_attrs){0}, name, 2, x, y);
}

static value_id rotate(struct builder *b, const char *name, value_id x, int64_t heads)
{
    const bool placed = b->o.samples > 0;
    return program_emit(b->p, OP_ROPE, (struct op_attrs){.heads = (int32_t)heads}, name, placed ? 4 : 3, x, b->cosine, b->sine, b->p->positions);
}

/* Norms of their gradients count as one: other programs hold the three as one tensor. */
static void join_units(struct builder *b, int layer, const char *what)
{
    static const char *const names[] = {"q", "k", "v"};
    value_id first = NO_VALUE;
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "blocks.%d.attn.%s.%s", layer, names[i], what);
        const value_id v = program_find(b->p, name);
        first = i ? first : v;
        if (v != NO_VALUE)
            b->p->values[v].unit = first;
    }
}

/* Samples that share rows: one op, which sees a sample at a time. */
static value_id packed_attention(struct builder *b, struct op_attrs attrs, value_id q, value_id k, value_id v)
{
    value_id in[] = {q, k, v, b->p->starts, NO_VALUE};
    int n = 4;
    attrs.causal = attrs.packed = true;
    attrs.cols = b->o.batch * b->seq / b->o.packed;
    if (b->tick != NO_VALUE) {
        attrs.prob = (float)b->m->dropout;
        attrs.seed = b->o.seed;
        attrs.stream = (uint64_t)++b->dropouts;
        attrs.first = b->o.first_sample * b->m->heads * b->seq * b->seq;
        in[3] = b->tick;
        in[n++] = b->p->starts;
    }
    const int at = program_add_op(b->p, OP_ATTENTION, attrs, "attention", n, in);
    return at < 0 ? NO_VALUE : b->p->ops[at].out[0];
}

/* Scores, their mask, weights and what they mix, each by itself. */
static value_id plain_attention(struct builder *b, struct op_attrs heads, value_id q, value_id k, value_id v)
{
    value_id w = program_emit(b->p, OP_ATTN_SCORES, heads, "scores", 2, q, k);
    const value_id mask = program_emit(b->p, OP_CAUSAL_MASK, (struct op_attrs){.rows = b->seq}, "mask", 0);
    w = program_emit(b->p, OP_ADD, (struct op_attrs){0}, "masked", 2, w, mask);
    w = program_emit(b->p, OP_SOFTMAX, (struct op_attrs){0}, "weights", 1, w);
    w = build_dropout(b, w);
    heads.scale = 1;
    return program_emit(b->p, OP_ATTN_MIX, heads, "mix", 2, w, v);
}

/* Keys and values of the tokens are put to those of their samples. */
struct kept { value_id keys, values; };

static struct kept keep(struct builder *b, value_id k, value_id v)
{
    if (b->p->error.status)
        return (struct kept){NO_VALUE, NO_VALUE};
    const struct shape room = shape_of(3, b->o.samples, b->m->seq, shape_last(b->p->values[k].shape));
    const value_id keys = program_add_value(b->p, "keys", VALUE_TABLE, F32, room), values = program_add_value(b->p, "values", VALUE_TABLE, F32, room);
    program_emit(b->p, OP_STORE_KV, (struct op_attrs){0}, "keep", 5, keys, values, k, v, b->p->positions);
    return (struct kept){keys, values};
}

static value_id attend(struct builder *b, struct op_attrs heads, value_id q, value_id k, value_id v)
{
    if (b->o.packed)
        return packed_attention(b, heads, q, k, v);
    const struct kept kept = b->o.samples ? keep(b, k, v) : (struct kept){NO_VALUE, NO_VALUE};
    if (b->o.samples && !b->o.begins)
        return program_emit(b->p, OP_ATTEND_KV, heads, "attention", 4, q, kept.keys, kept.values, b->p->positions);
    return plain_attention(b, heads, q, k, v);
}

value_id build_attention(struct builder *b, int layer, value_id x, bool bias, bool rotary)
{
    const struct config_model *m = b->m;
    const int64_t size = m->dim / m->heads;
    program_scope(b->p, layer, "blocks.%d.attn", layer);
    value_id q = build_linear(b, "q", x, m->dim, bias);
    value_id k = build_linear(b, "k", x, m->kv_heads * size, bias);
    const value_id v = build_linear(b, "v", x, m->kv_heads * size, bias);
    join_units(b, layer, "weight");
    join_units(b, layer, "bias");
    if (rotary) {
        q = rotate(b, "q.rope", q, m->heads);
        k = rotate(b, "k.rope", k, m->kv_heads);
    }
    struct op_attrs heads = {.heads = (int32_t)m->heads, .kv_heads = (int32_t)m->kv_heads};
    heads.scale = 1 / sqrtf((float)size);
    const value_id out = build_dropout(b, build_linear(b, "o", attend(b, heads, q, k, v), m->dim, bias));
    program_scope(b->p, layer, "blocks.%d", layer);
    return out;
}

value_id build_mlp_gelu(struct builder *b, value_id x)
{
    const value_id up = build_linear(b, "u", x, b->m->ffn, true);
    const value_id mid = program_emit(b->p, OP_GELU, (struct op_attrs){0}, "gelu", 1, up);
    return build_dropout(b, build_linear(b, "dn", mid, b->m->dim, true));
}

value_id build_mlp_swiglu(struct builder *b, value_id x)
{
    const value_id gate = build_linear(b, "g", x, b->m->ffn, false);
    const value_id up = build_linear(b, "u", x, b->m->ffn, false);
    const value_id act = program_emit(b->p, OP_SILU, (struct op_attrs){0}, "silu", 1, gate);
    const value_id mid = program_emit(b->p, OP_MUL, (struct op_attrs){0}, "mul", 2, act, up);
    return build_dropout(b, build_linear(b, "dn", mid, b->m->dim, false));
}
