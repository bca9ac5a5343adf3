/* GPT-2 as Hugging Face writes it: matrices are those of Conv1D, (in, out), and query, key and value are one. */
#include "weights/weights_int.h"

static const struct name_row rows[] = {
    {"wte.weight", {"emb.weight"}, LAYOUT_SAME, false},
    {"wpe.weight", {"pos.weight"}, LAYOUT_SAME, false},
    {"h.#.ln_1.weight", {"blocks.#.n1.weight"}, LAYOUT_SAME, false},
    {"h.#.ln_1.bias", {"blocks.#.n1.bias"}, LAYOUT_SAME, false},
    {"h.#.attn.c_attn.weight", {"blocks.#.attn.q.weight", "blocks.#.attn.k.weight", "blocks.#.attn.v.weight"}, LAYOUT_TURNED, false},
    {"h.#.attn.c_attn.bias", {"blocks.#.attn.q.bias", "blocks.#.attn.k.bias", "blocks.#.attn.v.bias"}, LAYOUT_SAME, false},
    {"h.#.attn.c_proj.weight", {"blocks.#.attn.o.weight"}, LAYOUT_TURNED, false},
    {"h.#.attn.c_proj.bias", {"blocks.#.attn.o.bias"}, LAYOUT_SAME, false},
    {"h.#.ln_2.weight", {"blocks.#.n2.weight"}, LAYOUT_SAME, false},
    {"h.#.ln_2.bias", {"blocks.#.n2.bias"}, LAYOUT_SAME, false},
    {"h.#.mlp.c_fc.weight", {"blocks.#.u.weight"}, LAYOUT_TURNED, false},
    {"h.#.mlp.c_fc.bias", {"blocks.#.u.bias"}, LAYOUT_SAME, false},
    {"h.#.mlp.c_proj.weight", {"blocks.#.dn.weight"}, LAYOUT_TURNED, false},
    {"h.#.mlp.c_proj.bias", {"blocks.#.dn.bias"}, LAYOUT_SAME, false},
    {"ln_f.weight", {"norm.weight"}, LAYOUT_SAME, false},
    {"ln_f.bias", {"norm.bias"}, LAYOUT_SAME, false},
    {"lm_head.weight", {"head.weight"}, LAYOUT_SAME, false},
    {NULL, {NULL}, LAYOUT_SAME, false},
};

static const char *const passed_over[] = {"h.#.attn.bias", "h.#.attn.masked_bias", NULL};

static enum status read_sizes(struct model_facts *f, const json_t *j, const char *where, struct error *err)
{
    enum status st = facts_int(&f->vocab, j, "vocab_size", where, err);
    if (st == OK)
        st = facts_int(&f->dim, j, "n_embd", where, err);
    if (st == OK)
        st = facts_int(&f->layers, j, "n_layer", where, err);
    if (st == OK)
        st = facts_int(&f->heads, j, "n_head", where, err);
    if (st == OK)
        st = facts_int(&f->ffn, j, "n_inner", where, err);
    if (st == OK)
        st = facts_int(&f->positions, j, "n_positions", where, err);
    if (st == OK)
        st = facts_real(&f->norm_eps, j, "layer_norm_epsilon", where, err);
    f->tied_known = true;
    return st == OK ? facts_bool(&f->tied, j, "tie_word_embeddings", where, err) : st;
}

/* What config.json leaves out is what the class of Hugging Face takes. */
static enum status read_config(struct model_facts *f, const json_t *j, const char *where, struct error *err)
{
    static const char *const gelu[] = {"gelu_new", "gelu_pytorch_tanh", "gelu_fast", NULL};
    f->norm_eps = 1e-5;
    f->tied = true;
    f->heads = 12;
    enum status st = read_sizes(f, j, where, err);
    if (st == OK)
        st = facts_want_word(j, "activation_function", gelu, where, err);
    if (st == OK)
        st = facts_want_bool(j, "scale_attn_weights", true, "scores are divided by the root of a head's width", where, err);
    if (st == OK)
        st = facts_want_bool(j, "scale_attn_by_inverse_layer_idx", false, "scores are scaled alike in all layers", where, err);
    return st == OK ? facts_want_bool(j, "add_cross_attention", false, "there is no encoder", where, err) : st;
}

static json_t *write_config(const struct config_model *m)
{
    const json_int_t positions = m->positions ? m->positions : m->seq;
    return json_pack("{s:[s], s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:b, s:f, s:f, s:f, s:n, s:n, s:s}", "architectures", "GPT2LMHeadModel",
                     "model_type", "gpt2", "vocab_size", (json_int_t)m->vocab, "n_positions", positions, "n_embd", (json_int_t)m->dim, "n_layer",
                     (json_int_t)m->layers, "n_head", (json_int_t)m->heads, "n_inner", (json_int_t)m->ffn, "activation_function", "gelu_new",
                     "layer_norm_epsilon", m->norm_eps, "tie_word_embeddings", config_head_is_tied(m), "resid_pdrop", m->dropout, "embd_pdrop", m->dropout,
                     "attn_pdrop", m->dropout, "bos_token_id", "eos_token_id", "torch_dtype", "float32");
}

const struct family family_gpt2 = {.title = "GPT-2 of Hugging Face", .model_type = "gpt2", .sign = "h.0.attn.c_attn.weight", .arch = ARCH_GPT, .rows = rows,
                                   .passed_over = passed_over, .read_config = read_config, .heads_key = "n_head", .dim_key = "n_embd", .write_config = write_config};
