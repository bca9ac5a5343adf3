/* What the files behind the op table share: shapes and the table itself in ops.c, shapes of sums over ranks in op_ranks.c, of what generation
 * keeps in op_cache.c, costs in op_costs.c. */
#ifndef HONE_PROGRAM_OPS_INT_H
#define HONE_PROGRAM_OPS_INT_H

#include "program/program.h"

static inline const struct value *input(const struct program *p, const struct op *op, int i) { return &p->values[op->in[i]]; }
static inline struct shape in_shape(const struct program *p, const struct op *op, int i) { return input(p, op, i)->shape; }
static inline int64_t in_count(const struct program *p, const struct op *op, int i) { return shape_count(in_shape(p, op, i)); }
static inline int parts(const struct op *op) { return op->attrs.parts; }

/* Gives the shapes of an op's results, or says why its inputs do not fit. */
typedef enum status op_shape(const struct program *p, const struct op *op, struct shape *out, struct error *err);
op_shape shape_sum_shards, shape_reduce_start, shape_reduce_wait, shape_square_blocks, shape_sum_blocks, shape_gather, shape_store_kv,
    shape_attend_kv;
bool op_heads_fit(const struct op_attrs *a, int64_t q_width, int64_t k_width);
enum status op_misfit(const struct program *p, const struct op *op, const char *what, struct error *err);

/* FLOPs of an op, and bytes where "every value once" is wrong. */
typedef double op_cost(const struct program *p, const struct op *op);
op_cost flops_none, flops_per_element, flops_few, flops_many, flops_per_input, flops_per_third,
    flops_per_output, flops_matmul, flops_attn, flops_project, flops_attention, flops_linear_gelu,
    flops_linear_loss, flops_squares, flops_shards, flops_adamw, flops_reduce_wait, flops_attend_kv;
op_cost bytes_embed, bytes_embed_grad, bytes_nll, bytes_nll_grad, bytes_output, bytes_sum_leading, bytes_adamw,
    bytes_keep, bytes_shards, bytes_reduce_wait, bytes_gather_start, bytes_gather_wait, bytes_store_kv,
    bytes_attend_kv;

#endif
