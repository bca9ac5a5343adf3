/* What kernels of the CPU share: access to shapes and typed memory of a call. */
#ifndef HONE_OPS_CPU_CPU_INT_H
#define HONE_OPS_CPU_CPU_INT_H

#include "ops/cpu/kernel.h"

/* Lists end with an entry whose run is NULL. */
extern const struct kernel cpu_reference_kernels[];
/* For every op, where one of its values is of 16 bits. */
extern const struct kernel cpu_narrow_kernel;
bool op_has_narrow_values(const struct program *p, const struct op *op);

static inline const struct value *call_in(const struct kernel_call *c, int i)
{
    return &c->program->values[c->op->in[i]];
}
static inline const struct value *call_out(const struct kernel_call *c, int i)
{
    return &c->program->values[c->op->out[i]];
}
static inline int64_t in_count(const struct kernel_call *c, int i) { return shape_count(call_in(c, i)->shape); }
static inline int64_t out_count(const struct kernel_call *c, int i) { return shape_count(call_out(c, i)->shape); }

/* The sizes of a matmul: c (m, n) = a (m, k) b (k, n) after transposition. */
struct matmul_dims { int64_t m, n, k; };
static inline struct matmul_dims matmul_dims(const struct program *p, const struct op *op)
{
    const struct shape a = p->values[op->in[0]].shape, b = p->values[op->in[1]].shape;
    const bool ta = op->attrs.trans_a, tb = op->attrs.trans_b;
    return (struct matmul_dims){ta ? shape_last(a) : shape_rows(a), tb ? shape_rows(b) : shape_last(b),
                                ta ? shape_rows(a) : shape_last(a)};
}

/* The sizes of an attention op, from its weights (B, H, T, T) and the other operand. */
struct attn_dims { int64_t batch, heads, kv_heads, seq, size; };   /* size: of one head */
static inline struct attn_dims attn_dims(const struct kernel_call *c)
{
    const struct op_attrs *a = &c->op->attrs;
    const struct value *x = c->op->kind == OP_ATTN_SCORES ? call_in(c, 0) : call_in(c, 1);
    const int64_t width_heads = c->op->kind == OP_ATTN_MIX ? a->kv_heads : a->heads;
    return (struct attn_dims){x->shape.dim[0], a->heads, a->kv_heads, x->shape.dim[1], x->shape.dim[2] / width_heads};
}

void cpu_model_read(char *out, size_t size);        /* the CPU's name, as far as the system tells it */

/* Memory of backends (memory.c): zeroed, whole pages; NULL where there is not so much. NULL may be given back. */
void *cpu_memory_take(size_t bytes);
void cpu_memory_give(void *at);
/* Tests say what is free: the folder that stands before /proc and /sys; NULL: the machine's own. */
void cpu_memory_root(const char *folder);

/* Products that are timed multiply these, between -1/4 and 1/4, so that sums are of the size that values of a model have. Zeros are multiplied faster than a step can be (docs/performance.md). */
static inline float cpu_number_at(int64_t i)
{
    uint32_t x = (uint32_t)i * 2654435769u;
    x = (x ^ x >> 15) * 2246822519u;
    return (float)(int32_t)(x ^ x >> 13) * 0x1p-33f;
}

/* The team of a CPU backend, for measurements that are not programs. */
struct team *cpu_team(struct backend *b);
struct pace cpu_pace(struct backend *b, enum numbers numbers);  /* as in struct backend */
struct pace cpu_pace_for(struct backend *b, enum numbers numbers, double seconds);      /* every thread's best in so long a time */
float *cpu_pace_matrices(int threads);              /* for it, from cpu_memory_take; NULL: there is no memory */
float *cpu_pace_room(struct backend *b);            /* those of a backend, made when they are first asked for */

/* How tensor i of an AdamW op is updated; `made`: it is changed at all. */
struct update {
    float lr, factor;
    int32_t step;
    bool made;
};
struct update update_of(const struct kernel_call *c, int i);
int64_t update_first(const struct kernel_call *c, int i, int n);        /* of tensor i of n: where its slice begins; 0: it is whole */
int units_most(const struct op_attrs *a);                       /* OP_GROUP_SCORES: above the unit of every member */
bool squares_left_out(const struct kernel_call *c, int k);     /* OP_SUM_SQUARES: of input k */

/* Learning rate of the schedule at a step counted from 1; shared so that every kernel and test agrees on it. */
float lr_at(const struct op_attrs *a, int64_t step);

#endif
