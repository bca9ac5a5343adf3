/* One plain kernel per op. */
#include "ops/cpu/ranks.h"
#include "ops/cpu/reference/reference.h"

const struct kernel cpu_reference_kernels[] = {
#define KERNEL(kind, function) {.op = kind, .name = "reference", .run = function, .serial = true},
    KERNEL(OP_EMBED, ref_embed)
    KERNEL(OP_EMBED_GRAD, ref_embed_grad)
    KERNEL(OP_MATMUL, ref_matmul)
    KERNEL(OP_SUM_LEADING, ref_sum_leading)
    KERNEL(OP_ADD, ref_add)
    KERNEL(OP_MUL, ref_mul)
    KERNEL(OP_GELU, ref_gelu)
    KERNEL(OP_GELU_GRAD, ref_gelu_grad)
    KERNEL(OP_SILU, ref_silu)
    KERNEL(OP_SILU_GRAD, ref_silu_grad)
    KERNEL(OP_LAYERNORM, ref_layernorm)
    KERNEL(OP_LAYERNORM_GRAD, ref_layernorm_grad)
    KERNEL(OP_RMSNORM, ref_rmsnorm)
    KERNEL(OP_RMSNORM_GRAD, ref_rmsnorm_grad)
    KERNEL(OP_ROPE_TABLE, ref_rope_table)
    KERNEL(OP_ROPE, ref_rope)
    KERNEL(OP_CAUSAL_MASK, ref_causal_mask)
    KERNEL(OP_ATTN_SCORES, ref_attn_scores)
    KERNEL(OP_ATTN_MIX, ref_attn_mix)
    KERNEL(OP_ATTN_MIX_T, ref_attn_mix_t)
    KERNEL(OP_SOFTMAX, ref_softmax)
    KERNEL(OP_SOFTMAX_GRAD, ref_softmax_grad)
    KERNEL(OP_LOG_SOFTMAX, ref_log_softmax)
    KERNEL(OP_LOG_SOFTMAX_GRAD, ref_log_softmax_grad)
    KERNEL(OP_DROPOUT, ref_dropout)
    KERNEL(OP_NLL, ref_nll)
    KERNEL(OP_NLL_GRAD, ref_nll_grad)
    KERNEL(OP_FILL, ref_fill)
    KERNEL(OP_ADVANCE, ref_advance)
    KERNEL(OP_LR, ref_lr)
    KERNEL(OP_ACCUMULATE, ref_accumulate)
    KERNEL(OP_DIVIDE, ref_divide)
    KERNEL(OP_ZERO, ref_zero)
    KERNEL(OP_SUM_SQUARES, ref_sum_squares)
    KERNEL(OP_CLIP, ref_clip)
    KERNEL(OP_ADAMW, ref_adamw)
    KERNEL(OP_ADAMW_ALL, ref_adamw_all)
    KERNEL(OP_KEEP, ref_keep)
    KERNEL(OP_HOST_READ, ref_host_read)
    KERNEL(OP_LINEAR_LOSS, ref_linear_loss)
    KERNEL(OP_PROJECT, ref_project)
    KERNEL(OP_PROJECT_GRAD, ref_project_grad)
    KERNEL(OP_SWIGLU, ref_swiglu)
    KERNEL(OP_SWIGLU_GRAD, ref_swiglu_grad)
    KERNEL(OP_ADD_LAYERNORM, ref_add_layernorm)
    KERNEL(OP_ADD_RMSNORM, ref_add_rmsnorm)
    KERNEL(OP_LINEAR_GELU, ref_linear_gelu)
    KERNEL(OP_CAST, ref_cast)
    KERNEL(OP_RESCALE, ref_rescale)
    KERNEL(OP_MEAN, ref_mean)
    KERNEL(OP_SCALE, ref_scale)
    KERNEL(OP_HELD, ref_held)
    KERNEL(OP_GROUP_SCORES, ref_group_scores)
    KERNEL(OP_TOP_K, ref_top_k)
#undef KERNEL
    {.op = OP_ATTENTION, .name = "reference", .run = ref_attention, .serial = true, .scratch = ref_attention_scratch},
    {.op = OP_ATTENTION_GRAD, .name = "reference", .run = ref_attention_grad, .serial = true,
     .scratch = ref_attention_scratch},
    {.op = OP_STORE_KV, .name = "reference", .run = ref_store_kv, .serial = true},
    {.op = OP_ATTEND_KV, .name = "reference", .run = ref_attention, .serial = true, .scratch = ref_attention_scratch},
    {.op = OP_SUM_SHARDS, .name = "ranks", .run = ranks_sum_shards},
    {.op = OP_REDUCE_START, .name = "ranks", .run = ranks_reduce_start},
    {.op = OP_REDUCE_WAIT, .name = "ranks", .run = ranks_reduce_wait},
    {.op = OP_SQUARE_BLOCKS, .name = "reference", .run = ref_square_blocks, .serial = true},
    {.op = OP_SUM_BLOCKS, .name = "ranks", .run = ranks_sum_blocks, .serial = true},
    {.op = OP_GATHER_START, .name = "ranks", .run = ranks_gather_start, .serial = true},
    {.op = OP_GATHER_WAIT, .name = "ranks", .run = ranks_gather_wait, .serial = true},
    {.run = NULL},
};
