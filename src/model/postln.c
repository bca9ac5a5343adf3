/* The K-1 baseline: a causal encoder with LayerNorm after each residual, learned positions, GELU, a head of its own. */
#include "model/model_int.h"

value_id build_postln_block(struct builder *b, int layer, value_id x)
{
    const value_id a = build_attention(b, layer, x, true, false);
    x = build_layernorm(b, "n1", build_add(b, "res1", x, a));
    return build_layernorm(b, "n2", build_add(b, "res2", x, build_mlp_gelu(b, x)));
}

const struct arch_info arch_postln = {ARCH_POSTLN, build_postln_block, NULL, build_layernorm, .learned_positions = true};
