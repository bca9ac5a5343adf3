/* LLaMA style: pre-RMSNorm, rotary positions, grouped-query attention, SwiGLU, no biases, head tied to the embedding unless model.head is own. */
#include "model/model_int.h"

static value_id block(struct builder *b, int layer, value_id x)
{
    const value_id a = build_attention(b, layer, build_rmsnorm(b, "n1", x), false, true);
    x = build_add(b, "res1", x, a);
    return build_add(b, "res2", x, build_mlp_swiglu(b, build_rmsnorm(b, "n2", x)));
}

const struct arch_info arch_llama = {ARCH_LLAMA, block, NULL, build_rmsnorm, .learned_positions = false};
