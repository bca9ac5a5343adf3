/* The ops: what exists, with which attributes, and one table that knows everything that does not depend on a device. */
#ifndef HONE_PROGRAM_OPS_H
#define HONE_PROGRAM_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

struct program;
struct op;
struct shape;

enum dtype { F32, BF16, F16, I32 };

/* Shapes in the comments: B batch, T sequence, D width, H heads, V vocabulary, N any leading dimensions. */
enum op_kind {
    OP_EMBED,           /* table (V,D), ids (B,T) i32 -> (B,T,D); zeros where an id is below 0 */
    OP_EMBED_GRAD,      /* table, ids, dy -> dtable */
    OP_MATMUL,          /* a, b[, bias] -> op(a) op(b) + bias; leading dimensions of a are flattened */
    OP_SUM_LEADING,     /* x (N..,S..), like (S..) -> sum over the leading dimensions */
    OP_ADD,             /* a (N..,S..), b (S..) -> a + b, b repeated over the leading dimensions */
    OP_MUL,             /* a, b of one shape */
    OP_GELU, OP_GELU_GRAD,              /* tanh form; x, dy -> dx */
    OP_SILU, OP_SILU_GRAD,
    OP_LAYERNORM,       /* x, gain, shift -> y, mean (N), rstd (N) */
    OP_LAYERNORM_GRAD,  /* dy, x, gain, mean, rstd[, more] -> dx (+ more), dgain, dshift */
    OP_RMSNORM,         /* x, gain -> y, rstd (N) */
    OP_RMSNORM_GRAD,    /* dy, x, gain, rstd[, more] -> dx (+ more), dgain */
    OP_ROPE_TABLE,      /* -> cos, sin (T, D/2): rows, cols, base, stretch */
    OP_ROPE,            /* x (B,T,H*D), cos, sin[, places (B,T) i32] -> rotated pairs, by row t of the tables or row places[b,t]; inverse:
                           rotated back. Where a place is below 0: zeros */
    OP_CAUSAL_MASK,     /* -> (T,T): 0 on and below the diagonal, -inf above */
    OP_ATTN_SCORES,     /* q (B,T,H*D), k (B,T,K*D) -> scale * q k^T (B,H,T,T) */
    OP_ATTN_MIX,        /* p (B,H,T,T), v (B,T,K*D) -> scale * p v (B,T,H*D) */
    OP_ATTN_MIX_T,      /* p (B,H,T,T), x (B,T,H*D) -> scale * p^T x, heads of a group summed (B,T,K*D) */
    OP_SOFTMAX, OP_SOFTMAX_GRAD,        /* last dimension; y, dy -> dx */
    OP_LOG_SOFTMAX, OP_LOG_SOFTMAX_GRAD,
    OP_DROPOUT,         /* x, tick -> x * mask / (1 - p); its own gradient. Numbers are drawn by place, counted from attrs.first */
    OP_NLL,             /* logp (N,V), targets (N) i32 -> mean loss, count; targets below 0 are padding */
    OP_NLL_GRAD,        /* logp, targets, count, dloss -> dlogp */
    OP_FILL,            /* like -> value everywhere */
    OP_ADVANCE,         /* counter i32, in place: + 1 */
    OP_LR,              /* step -> learning rate by the schedule in the attributes */
    OP_ACCUMULATE,      /* acc in place, x[, weight[, batch]]: acc += x * weight; acc = x * weight where batch, i32, is 1 */
    OP_DIVIDE,          /* x, by (scalar) -> x / by */
    OP_ZERO,            /* x in place */
    OP_SUM_SQUARES,     /* x, or n of them[, held (G)] -> sum of squares, or one of each (n). attrs.masked: held is there, and values whose
                           group (attrs.members) it leaves out count as 0 and are not read */
    OP_CLIP,            /* loss[, loss scale], sums of squares... -> norm, factor; factor is NaN when loss or norm is not finite.
                           attrs.scaled: gradients are scale times too large; the norm is the true one, the factor takes the scale off */
    OP_ADAMW,           /* param, m, v[, copy] in place; grad, lr, step, factor; nothing changes when factor is NaN. attrs.copies is 1
                           where a narrow copy of the parameter is written, too. attrs.masked: mask (G), n (G) i32 follow the factor; a
                           parameter of group g >= 0 (value.group) is untouched, its gradient unread, where mask[g] is 0; else lr is
                           times mask[g] and the step n[g] */
    OP_HOST_READ,       /* x -> the same on the host */
    /* what passes put in the place of several ops above */
    OP_PROJECT,         /* x, n weights[, n biases] -> n products x w^T + bias: attrs.parts is n */
    OP_PROJECT_GRAD,    /* n dy, n weights -> dx = sum of dy w */
    OP_SWIGLU,          /* gate, up -> silu(gate) * up */
    OP_SWIGLU_GRAD,     /* gate, up, dy -> dgate, dup */
    OP_ATTENTION,       /* q (B,T,H*D), k, v (B,T,K*D)[, tick][, starts (B,T) i32] -> y (B,T,H*D), largest score of every row (B,H,T), sum of
                           e^(score - largest) (B,H,T); causal, dropout by prob, seed and stream as OP_DROPOUT would on the
                           weights (B,H,T,T). attrs.packed: rows hold several samples, and query i sees no key before starts[i],
                           which is at most i */
    OP_ATTENTION_GRAD,  /* dy, q, k, v, y, largest, sums[, tick][, starts] -> dq, dk, dv */
    OP_ADD_LAYERNORM,   /* x, r, gain, shift -> norm of x + r, x + r, mean (N), rstd (N) */
    OP_ADD_RMSNORM,     /* x, r, gain -> norm of x + r, x + r, rstd (N) */
    OP_LINEAR_GELU,     /* x, w, bias -> gelu(u)[, its slope gelu'(u)], u = x w^T + bias: attrs.parts is 1 or 2 */
    OP_LINEAR_LOSS,     /* x (N..,D), w (V,D), targets[, loss scale] -> mean loss, count[, dx, dw]: attrs.parts is 2 or 4. The
                           logits are never whole in memory; gradients are of the mean loss, times the scale */
    OP_ADAMW_ALL,       /* n params, n m, n v, k copies of the first k params in place; n grads, lr, step, factor[, mask, n]: attrs.parts
                           is n, attrs.copies k */
    OP_KEEP,            /* ring (R,n) in place, step, values of n numbers in all: row step mod R gets them */
    OP_CAST,            /* x -> x in the type attrs.to */
    OP_RESCALE,         /* loss scale, count i32 in place; factor: halves the scale and restarts the count where the factor is NaN;
                           doubles it after every attrs.total steps in a row where it is not */
    /* a tree of blocks, of which some are selected: src/passes/select.c. G groups of parameters (value.group) */
    OP_MEAN,            /* n >= 2 values of one shape -> (first + second + ...) / n, added in this order */
    OP_SCALE,           /* x -> attrs.scale * x */
    OP_HELD,            /* last (G) i32, step i32 -> held (G): 0 for a group that the step to come surely leaves out, because the selection of
                           a step before it is kept (attrs.every); else 1 */
    OP_GROUP_SCORES,    /* factor, squares, one value or several of n numbers in all -> scores (G): factor * sum over units of
                           sqrt(sum of the unit's squares). attrs.members has n entries, attrs.parts is G */
    OP_TOP_K,           /* n, last (G) i32 in place; step i32, factor, scores, one value or several of G numbers in all -> n, last, mask (G):
                           1 for the attrs.k groups with the highest scores, the lower index where two are equal, else 0; n + 1 and
                           last = step where it is 1. attrs.random: by numbers drawn from attrs.seed, stream and the step instead of scores.
                           attrs.every: a selection is kept for so many steps. Factor NaN: the mask is 0, nothing is counted */
    /* ranks: what the pass data-parallel adds */
    OP_SUM_SHARDS,      /* n sums in place, batch i32, x[, weight]: micro-batch `batch`, from 1, of a step. attrs.total of them are a shard; the
                           first sum is that of x * weight over the shard, and once the last shard is done over all, in pairs, then pairs of
                           pairs; the other n - 1 hold what waits for the other of its pair */
    OP_REDUCE_START,    /* n gradients[, weight] -> bucket (N): all of them times weight; its sum over all ranks begins. attrs.parts is n.
                           attrs.cuts: every rank gets the sum of its slice alone */
    OP_REDUCE_WAIT,     /* bucket[, total], n values alone for their shapes -> n gradients: that sum, over total. attrs.parts is n; with
                           attrs.sliced they are this rank's slice, one after the other from attrs.first on, else the whole bucket */
    /* and where the optimizer's state is divided over ranks (src/passes/shard_optimizer.c) */
    OP_SQUARE_BLOCKS,   /* n slices of gradients[, held (G)] -> (attrs.rows): sums of squares of SLICE_BLOCK numbers each, as OP_SUM_SQUARES has
                           them on its way. Of slice i the first goes to place attrs.members[i].unit; 0 for what other ranks have */
    OP_SUM_BLOCKS,      /* such sums of all ranks (N) -> n sums, attrs.parts is n: of those from attrs.members[i].unit up to the next one's */
    OP_GATHER_START,    /* n parameters in place: every rank begins to send its slice of them, by attrs.cuts. attrs.parts is n */
    OP_GATHER_WAIT,     /* n parameters, k narrow copies in place: what that has begun is done, if it was, and copies are made anew. attrs.copies is
                           k, copy i is of parameter attrs.members[i].unit */
    /* generation: keys and values of tokens are kept, so that a new token costs one token. S samples, room for C tokens of each */
    OP_STORE_KV,        /* keys, values (S,C,W) in place; k, v (B,T,W), places (B,T) i32: what is at place places[b,t] of sample b, or of all
                           samples where B is 1. Places below 0 and from C on are left out; those of a sample differ */
    OP_ATTEND_KV,       /* q (B,T,H*D), keys, values (B,C,K*D), places (B,T) i32 -> y (B,T,H*D): query (b,t) sees what is at places 0 to
                           places[b,t]. Zeros where that is below 0; it is below C */
    OP_KINDS
};

enum { SLICE_BLOCK = 1024 };        /* floats: squares are summed in such blocks, and what ranks divide is cut between them */

enum rounding { ROUND_NO, ROUND_TF32, ROUND_BF16 };

/* Where a tensor belongs: a group of parameters that are selected together, -1: none; and within it those whose norm is one. */
struct op_member { int32_t group, unit; };

/* Longer contexts than a model was first trained on: slow pairs turn slower by a factor (program/rope.h). All 0: nothing is changed. */
struct rope_stretch { float factor, low, high, context; };

struct op_attrs {
    bool trans_a, trans_b, inverse, causal;
    enum rounding round;                    /* products: what f32 operands are rounded to; attention: what they may be; sums are f32 */
    enum dtype to;                          /* OP_CAST */
    int32_t heads, kv_heads;
    int32_t parts;                          /* ops over several values at once: how many */
    int32_t copies;                         /* of parameters, that an optimizer writes */
    bool packed;                            /* attention: the last input says where the sample of every query begins */
    bool scaled;                            /* OP_CLIP: the second input is the loss scale */
    int64_t rows, cols;                     /* constants: their shape */
    float scale;                            /* attention: factor on the product */
    float eps, value, prob;
    float base;                             /* RoPE */
    struct rope_stretch stretch;
    uint64_t seed, stream;                  /* dropout */
    float lr, min_lr, weight_decay, beta1, beta2, max_norm;
    int32_t schedule;                       /* 0 cosine, 1 linear, 2 constant */
    int64_t warmup, total;
    bool masked, random;                    /* groups that are left out; selected at random */
    int32_t k, every;                       /* OP_TOP_K, OP_HELD; k of OP_ADAMW with a mask: how many groups are selected, for its costs */
    int32_t n_members;
    const struct op_member *members;        /* of the program's arena, or static */
    bool sliced;                            /* OP_REDUCE_WAIT */
    int64_t first;                          /* where in a longer list this begins: a slice of a bucket; dropout of a part of a batch */
    int32_t n_cuts;                         /* ranks + 1, or 0 */
    const int64_t *cuts;                    /* of the values one after the other: slice k is [cuts[k], cuts[k + 1]); of the arena */
};

/* OP_ADAMW, OP_ADAMW_ALL: where the inputs lr, step, factor[, mask, n] begin. */
int op_update_tensors(const struct op *op);
int op_update_scalars(const struct op *op);

/* What OP_RESCALE leaves the loss scale within. */
#define LEAST_LOSS_SCALE 1.0f
#define MOST_LOSS_SCALE 0x1p24f

/* OP_ATTENTION, OP_ATTENTION_GRAD: which input the tick and the starts are; -1: there is none. */
int op_attention_tick(const struct op *op);
int op_attention_starts(const struct op *op);

bool op_attrs_equal(const struct op_attrs *a, const struct op_attrs *b);

enum { OP_MAX_OUT = 4, OP_PARTS = -1 };     /* OP_PARTS in n_out or n_updated: it depends on attrs.parts */

/* Output shapes from the inputs' shapes and the attributes; fails when the inputs do not fit. */
typedef enum status op_shape_fn(const struct program *p, const struct op *op, struct shape *out, struct error *err);
typedef double op_cost_fn(const struct program *p, const struct op *op);

struct op_info {
    const char *name;
    int min_in, max_in, n_out;
    op_shape_fn *shapes;
    op_cost_fn *flops;
    op_cost_fn *bytes;                      /* NULL: every input and output once */
    unsigned reuse;                         /* bit i: output 0 may take the memory of input i when it dies here */
    int n_updated;                          /* the first so many inputs are updated in place and are the outputs */
    bool product;                           /* of matrices, outside of attention: its operands may be rounded, its kernel timed */
};

extern const struct op_info op_table[OP_KINDS];
int op_outputs(enum op_kind kind, const struct op_attrs *attrs);        /* n_out, or what attrs.parts makes it */
int op_updated(enum op_kind kind, const struct op_attrs *attrs);        /* n_updated, likewise */

/* What type a value of an op may have; types.c says more. */
enum op_type { TYPE_F32 = 'f', TYPE_I32 = 'i', TYPE_ALIKE = 'n', TYPE_STORED = 's', TYPE_OPERAND = 'o', TYPE_ANY = 'a', TYPE_NARROW = 'h', TYPE_WHATEVER = 'x' };
enum op_type op_in_type(const struct op *op, int i);
enum op_type op_out_type(const struct op *op, int i);

static inline bool op_waits_for_ranks(enum op_kind kind) { return kind == OP_REDUCE_WAIT || kind == OP_GATHER_WAIT; }
static inline const struct op_info *op_info(enum op_kind kind) { return &op_table[kind]; }

#endif
