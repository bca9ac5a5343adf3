/* GPT-2 as nanoGPT writes it: the names of Hugging Face with plain matrices, (out, in), and biases only where they were asked for. */
#include "weights/weights_int.h"

static const struct name_row rows[] = {
    {"wte.weight", {"emb.weight"}, LAYOUT_SAME, false},
    {"wpe.weight", {"pos.weight"}, LAYOUT_SAME, false},
    {"h.#.ln_1.weight", {"blocks.#.n1.weight"}, LAYOUT_SAME, false},
    {"h.#.ln_1.bias", {"blocks.#.n1.bias"}, LAYOUT_SAME, true},
    {"h.#.attn.c_attn.weight", {"blocks.#.attn.q.weight", "blocks.#.attn.k.weight", "blocks.#.attn.v.weight"}, LAYOUT_SAME, false},
    {"h.#.attn.c_attn.bias", {"blocks.#.attn.q.bias", "blocks.#.attn.k.bias", "blocks.#.attn.v.bias"}, LAYOUT_SAME, true},
    {"h.#.attn.c_proj.weight", {"blocks.#.attn.o.weight"}, LAYOUT_SAME, false},
    {"h.#.attn.c_proj.bias", {"blocks.#.attn.o.bias"}, LAYOUT_SAME, true},
    {"h.#.ln_2.weight", {"blocks.#.n2.weight"}, LAYOUT_SAME, false},
    {"h.#.ln_2.bias", {"blocks.#.n2.bias"}, LAYOUT_SAME, true},
    {"h.#.mlp.c_fc.weight", {"blocks.#.u.weight"}, LAYOUT_SAME, false},
    {"h.#.mlp.c_fc.bias", {"blocks.#.u.bias"}, LAYOUT_SAME, true},
    {"h.#.mlp.c_proj.weight", {"blocks.#.dn.weight"}, LAYOUT_SAME, false},
    {"h.#.mlp.c_proj.bias", {"blocks.#.dn.bias"}, LAYOUT_SAME, true},
    {"ln_f.weight", {"norm.weight"}, LAYOUT_SAME, false},
    {"ln_f.bias", {"norm.bias"}, LAYOUT_SAME, true},
    {"lm_head.weight", {"head.weight"}, LAYOUT_SAME, false},
    {NULL, {NULL}, LAYOUT_SAME, false},
};

static const char *const passed_over[] = {"h.#.attn.bias", NULL};

const struct family family_nanogpt = {.title = "GPT-2 of nanoGPT", .sign = "h.0.attn.c_attn.weight", .arch = ARCH_GPT, .rows = rows,
                                      .passed_over = passed_over,
                                      .note = "nanoGPT computes GELU by the error function, and hone by its tanh form: outputs differ a little"};
