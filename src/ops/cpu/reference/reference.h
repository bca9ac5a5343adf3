/* The plain kernels: loop nests that are obviously right, one thread, the yardstick for every tuned kernel. */
#ifndef HONE_OPS_CPU_REFERENCE_H
#define HONE_OPS_CPU_REFERENCE_H

#include "ops/cpu/cpu_int.h"

kernel_fn ref_embed;
kernel_fn ref_embed_grad;
kernel_fn ref_matmul;
kernel_fn ref_sum_leading;
kernel_fn ref_add;
kernel_fn ref_mul;
kernel_fn ref_gelu;
kernel_fn ref_gelu_grad;
kernel_fn ref_silu;
kernel_fn ref_silu_grad;
kernel_fn ref_layernorm;
kernel_fn ref_layernorm_grad;
kernel_fn ref_rmsnorm;
kernel_fn ref_rmsnorm_grad;
kernel_fn ref_rope_table;
kernel_fn ref_rope;
kernel_fn ref_causal_mask;
kernel_fn ref_attn_scores;
kernel_fn ref_attn_mix;
kernel_fn ref_attn_mix_t;
kernel_fn ref_attention;
kernel_fn ref_attention_grad;
kernel_fn ref_store_kv;
size_t ref_attention_scratch(const struct program *p, const struct op *op, int threads);
kernel_fn ref_softmax;
kernel_fn ref_softmax_grad;
kernel_fn ref_log_softmax;
kernel_fn ref_log_softmax_grad;
kernel_fn ref_dropout;
kernel_fn ref_nll;
kernel_fn ref_nll_grad;
kernel_fn ref_fill;
kernel_fn ref_advance;
kernel_fn ref_lr;
kernel_fn ref_accumulate;
kernel_fn ref_divide;
kernel_fn ref_zero;
kernel_fn ref_sum_squares;
kernel_fn ref_square_blocks;
kernel_fn ref_clip;
kernel_fn ref_adamw;
kernel_fn ref_adamw_all;
kernel_fn ref_keep;
kernel_fn ref_host_read;
kernel_fn ref_linear_loss;
kernel_fn ref_project;
kernel_fn ref_project_grad;
kernel_fn ref_swiglu;
kernel_fn ref_swiglu_grad;
kernel_fn ref_add_layernorm;
kernel_fn ref_add_rmsnorm;
kernel_fn ref_linear_gelu;
kernel_fn ref_cast;
kernel_fn ref_rescale;
kernel_fn ref_mean;
kernel_fn ref_scale;
kernel_fn ref_held;
kernel_fn ref_group_scores;
kernel_fn ref_top_k;

#endif
