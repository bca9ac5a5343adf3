/* LLaMA as Hugging Face writes it: numbers of a head that are rotated together are half a head apart. */
#include <string.h>

#include "weights/weights_int.h"

static const struct name_row rows[] = {
    {"embed_tokens.weight", {"emb.weight"}, LAYOUT_SAME, false},
    {"layers.#.input_layernorm.weight", {"blocks.#.n1.weight"}, LAYOUT_SAME, false},
    {"layers.#.self_attn.q_proj.weight", {"blocks.#.attn.q.weight"}, LAYOUT_HALVES, false},
    {"layers.#.self_attn.k_proj.weight", {"blocks.#.attn.k.weight"}, LAYOUT_HALVES, false},
    {"layers.#.self_attn.v_proj.weight", {"blocks.#.attn.v.weight"}, LAYOUT_SAME, false},
    {"layers.#.self_attn.o_proj.weight", {"blocks.#.attn.o.weight"}, LAYOUT_SAME, false},
    {"layers.#.post_attention_layernorm.weight", {"blocks.#.n2.weight"}, LAYOUT_SAME, false},
    {"layers.#.mlp.gate_proj.weight", {"blocks.#.g.weight"}, LAYOUT_SAME, false},
    {"layers.#.mlp.up_proj.weight", {"blocks.#.u.weight"}, LAYOUT_SAME, false},
    {"layers.#.mlp.down_proj.weight", {"blocks.#.dn.weight"}, LAYOUT_SAME, false},
    {"norm.weight", {"norm.weight"}, LAYOUT_SAME, false},
    {"lm_head.weight", {"head.weight"}, LAYOUT_SAME, false},
    {NULL, {NULL}, LAYOUT_SAME, false},
};

static const char *const passed_over[] = {"layers.#.self_attn.rotary_emb.inv_freq", "rotary_emb.inv_freq", NULL};

static enum status read_sizes(struct model_facts *f, const json_t *j, const char *where, struct error *err)
{
    static const char *const keys[] = {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
                                       "intermediate_size", "max_position_embeddings"};
    int64_t *const to[] = {&f->vocab, &f->dim, &f->layers, &f->heads, &f->kv_heads, &f->ffn, &f->positions};
    enum status st = OK;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && st == OK; i++)
        st = facts_int(to[i], j, keys[i], where, err);
    if (st == OK)
        st = facts_real(&f->norm_eps, j, "rms_norm_eps", where, err);
    f->tied_known = true;
    return st == OK ? facts_bool(&f->tied, j, "tie_word_embeddings", where, err) : st;
}

/* What scales angles has all of its numbers, as transformers asks for them. */
static enum status read_scaling(struct model_facts *f, const json_t *rope, const char *where, struct error *err)
{
    static const char *const keys[] = {"factor", "low_freq_factor", "high_freq_factor"};
    double *const to[] = {&f->rope_factor, &f->rope_low, &f->rope_high};
    const size_t n = f->rope_scaling == ROPE_LLAMA3 ? 3 : 1;
    enum status st = OK;
    for (size_t i = 0; i < n && st == OK; i++) {
        st = facts_need(rope, keys[i], where, err);
        if (st == OK)
            st = facts_real(to[i], rope, keys[i], where, err);
    }
    if (st != OK || f->rope_scaling != ROPE_LLAMA3)
        return st;
    st = facts_need(rope, "original_max_position_embeddings", where, err);
    return st == OK ? facts_int(&f->rope_context, rope, "original_max_position_embeddings", where, err) : st;
}

static enum status read_rope_type(struct model_facts *f, const json_t *rope, const char *key, const char *where, struct error *err)
{
    static const char *const words[] = {"default", "linear", "llama3", NULL};
    const char *is = json_string_value(json_object_get(rope, key));
    const enum status st = facts_want_word(rope, key, words, where, err);
    if (st != OK || !is || !strcmp(is, "default"))
        return st;
    f->rope_scaling = strcmp(is, "linear") ? ROPE_LLAMA3 : ROPE_LINEAR;
    return read_scaling(f, rope, where, err);
}

/* Since version 5 of transformers in rope_parameters, before in rope_theta and rope_scaling. Where there are both, rope_scaling alone counts unless it
 * is empty, as there: the type of one with the factor of the other would be a third model. */
static enum status find_rope(const json_t **out, const json_t *j, const char *where, struct error *err)
{
    static const char *const keys[] = {"rope_parameters", "rope_scaling"};
    *out = NULL;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *rope = json_object_get(j, keys[i]);
        if (rope && !json_is_null(rope) && !json_is_object(rope))
            return error_set(err, BAD_INPUT, "'%s': %s is not an object", where, keys[i]);
        if (json_object_size(rope))
            *out = rope;
    }
    return OK;
}

static enum status read_rope(struct model_facts *f, const json_t *j, const char *where, struct error *err)
{
    const json_t *rope;
    enum status st = find_rope(&rope, j, where, err);
    if (st == OK)
        st = facts_real(&f->rope_base, j, "rope_theta", where, err);
    if (st == OK)
        st = facts_real(&f->rope_base, rope, "rope_theta", where, err);
    return st == OK ? read_rope_type(f, rope, json_object_get(rope, "rope_type") ? "rope_type" : "type", where, err) : st;
}

static enum status check_head_width(const struct model_facts *f, const json_t *j, const char *where, struct error *err)
{
    int64_t width = 0;
    const enum status st = facts_int(&width, j, "head_dim", where, err);
    if (st != OK || !width || !f->heads || width * f->heads == f->dim)
        return st;
    return error_set(err, BAD_INPUT, "'%s': head_dim is %lld, and hidden_size %lld has %lld heads; heads whose width is not hidden_size / num_attention_heads "
                     "cannot be read so far", where, (long long)width, (long long)f->dim, (long long)f->heads);
}

static enum status read_config(struct model_facts *f, const json_t *j, const char *where, struct error *err)
{
    static const char *const silu[] = {"silu", "swish", NULL};
    f->norm_eps = 1e-6;
    f->rope_base = 10000;
    enum status st = read_sizes(f, j, where, err);
    if (st == OK)
        st = read_rope(f, j, where, err);
    if (st == OK)
        st = check_head_width(f, j, where, err);
    if (st == OK)
        st = facts_want_word(j, "hidden_act", silu, where, err);
    if (st == OK)
        st = facts_want_bool(j, "rope_interleaved", false, "numbers that are half a head apart are rotated together", where, err);
    if (st == OK)
        st = facts_want_bool(j, "attention_bias", false, "arch llama has no biases", where, err);
    return st == OK ? facts_want_bool(j, "mlp_bias", false, "arch llama has no biases", where, err) : st;
}

static json_t *write_rope(const struct config_model *m)
{
    static const char *const types[] = {[ROPE_PLAIN] = "default", [ROPE_LINEAR] = "linear", [ROPE_LLAMA3] = "llama3"};
    json_t *rope = json_pack("{s:f, s:s}", "rope_theta", m->rope_base, "rope_type", types[m->rope_scaling]), *more = NULL;
    if (m->rope_scaling == ROPE_LINEAR)
        more = json_pack("{s:f}", "factor", m->rope_factor);
    if (m->rope_scaling == ROPE_LLAMA3)
        more = json_pack("{s:f, s:f, s:f, s:I}", "factor", m->rope_factor, "low_freq_factor", m->rope_low, "high_freq_factor", m->rope_high,
                         "original_max_position_embeddings", (json_int_t)m->rope_context);
    if (m->rope_scaling != ROPE_PLAIN && (!rope || json_object_update_missing_new(rope, more))) {
        json_decref(rope);
        return NULL;
    }
    return rope;
}

/* The context that the angles are made for, where they are scaled for one; what config.json said of it, where the model came with one, goes
 * before (export.c). */
static int64_t positions_of(const struct config_model *m)
{
    const double made_for = m->rope_scaling == ROPE_LLAMA3 ? m->rope_factor * (double)m->rope_context : 0;
    return made_for > (double)m->seq && made_for <= INT32_MAX ? (int64_t)made_for : m->seq;
}

/* Versions of transformers before 5 read rope_theta and rope_scaling, which is null where nothing is scaled. */
static json_t *write_config(const struct config_model *m)
{
    return json_pack("{s:[s], s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:f, s:o, s:o, s:b, s:b, s:b, s:n, s:n, s:s}", "architectures",
                     "LlamaForCausalLM", "model_type", "llama", "vocab_size", (json_int_t)m->vocab, "hidden_size", (json_int_t)m->dim, "num_hidden_layers",
                     (json_int_t)m->layers, "num_attention_heads", (json_int_t)m->heads, "num_key_value_heads", (json_int_t)m->kv_heads,
                     "intermediate_size", (json_int_t)m->ffn, "max_position_embeddings", (json_int_t)positions_of(m), "head_dim", (json_int_t)(m->dim / m->heads),
                     "hidden_act", "silu", "rms_norm_eps", m->norm_eps, "rope_theta", m->rope_base, "rope_parameters", write_rope(m),
                     "rope_scaling", m->rope_scaling == ROPE_PLAIN ? json_null() : write_rope(m), "tie_word_embeddings", config_head_is_tied(m), "attention_bias", 0, "mlp_bias", 0, "bos_token_id",
                     "eos_token_id", "torch_dtype", "float32");
}

const struct family family_llama = {.title = "LLaMA of Hugging Face", .model_type = "llama", .sign = "layers.0.self_attn.q_proj.weight", .arch = ARCH_LLAMA,
                                    .rows = rows, .passed_over = passed_over, .read_config = read_config, .heads_key = "num_attention_heads", .dim_key = "hidden_size", .write_config = write_config};
