/* LLaMA as Meta and llama2.c write it: neighbours are rotated together, as in ours. params.json has the sizes, but for the width of the
 * feed-forward layer, which the tensors tell. */
#include "weights/weights_int.h"

static const struct name_row rows[] = {
    {"tok_embeddings.weight", {"emb.weight"}, LAYOUT_SAME, false},
    {"layers.#.attention_norm.weight", {"blocks.#.n1.weight"}, LAYOUT_SAME, false},
    {"layers.#.attention.wq.weight", {"blocks.#.attn.q.weight"}, LAYOUT_SAME, false},
    {"layers.#.attention.wk.weight", {"blocks.#.attn.k.weight"}, LAYOUT_SAME, false},
    {"layers.#.attention.wv.weight", {"blocks.#.attn.v.weight"}, LAYOUT_SAME, false},
    {"layers.#.attention.wo.weight", {"blocks.#.attn.o.weight"}, LAYOUT_SAME, false},
    {"layers.#.ffn_norm.weight", {"blocks.#.n2.weight"}, LAYOUT_SAME, false},
    {"layers.#.feed_forward.w1.weight", {"blocks.#.g.weight"}, LAYOUT_SAME, false},
    {"layers.#.feed_forward.w3.weight", {"blocks.#.u.weight"}, LAYOUT_SAME, false},
    {"layers.#.feed_forward.w2.weight", {"blocks.#.dn.weight"}, LAYOUT_SAME, false},
    {"norm.weight", {"norm.weight"}, LAYOUT_SAME, false},
    {"output.weight", {"head.weight"}, LAYOUT_SAME, false},
    {NULL, {NULL}, LAYOUT_SAME, false},
};

static const char *const passed_over[] = {"rope.freqs", "freqs_cos", "freqs_sin", NULL};

static enum status read_config(struct model_facts *f, const json_t *j, const char *where, struct error *err)
{
    static const char *const keys[] = {"dim", "n_layers", "n_heads", "n_kv_heads", "max_seq_len"};
    int64_t *const to[] = {&f->dim, &f->layers, &f->heads, &f->kv_heads, &f->positions};
    enum status st = OK;
    f->norm_eps = 1e-5;
    f->rope_base = 10000;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && st == OK; i++)
        st = facts_int(to[i], j, keys[i], where, err);
    if (st == OK)
        st = facts_real(&f->norm_eps, j, "norm_eps", where, err);
    if (st == OK)
        st = facts_real(&f->rope_base, j, "rope_theta", where, err);
    return st == OK ? facts_want_bool(j, "use_scaled_rope", false, "angles are not scaled", where, err) : st;
}

const struct family family_meta = {.title = "LLaMA of Meta", .sign = "layers.0.attention.wq.weight", .arch = ARCH_LLAMA, .rows = rows,
                                   .passed_over = passed_over, .read_config = read_config, .heads_key = "n_heads", .dim_key = "dim"};
