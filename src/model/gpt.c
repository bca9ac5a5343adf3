/* GPT-2 style: pre-LayerNorm, learned positions, GELU, biases, head tied to the embedding unless model.head is own. */
#include "model/model_int.h"

static value_id block(struct builder *b, int layer, value_id x)
{
    const value_id a = build_attention(b, layer, build_layernorm(b, "n1", x), true, false);
    x = build_add(b, "res1", x, a);
    return build_add(b, "res2", x, build_mlp_gelu(b, build_layernorm(b, "n2", x)));
}

const struct arch_info arch_gpt = {ARCH_GPT, block, NULL, build_layernorm, .learned_positions = true};
