/* Matrix products by cuBLASLt. What a product looks like is known when an op is prepared: then it gets a plan, one for all products that
 * look alike, which says how cuBLASLt does it. A launch takes the plan and the memory. */
#ifndef HONE_OPS_CUDA_PRODUCTS_H
#define HONE_OPS_CUDA_PRODUCTS_H

#include <cublasLt.h>

#include "ops/cuda/cuda_int.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is done to a product before it is stored. */
enum product_end {
    END_PLAIN,
    END_BIAS,                       /* plus a bias (n), of the type of the result */
    END_GELU,                       /* plus bias, that is stored too, as `beside`, and GELU of it */
    END_GELU_GRAD,                  /* times the slope of GELU at `beside` */
    END_TIMES,                      /* times `beside`: by the kernel for small products alone */
};

/* y (m, n) = op(a) (m, k) op(b) (k, n) + beta y, all of them row-major; sums are f32. The memory of each is 16-byte aligned. */
struct product {
    int64_t m, n, k;
    int64_t a_stride, b_stride, y_stride;       /* from a row to the next, as they are stored; 0: there is nothing between them */
    bool trans_a, trans_b;          /* they are stored (k, m) and (n, k) */
    enum product_end end;
    bool tf32;                      /* f32 operands may be rounded to it */
    enum dtype operands, result;    /* result: F32, or as the operands are */
    int32_t batch;                  /* so many of them in one call, evenly apart in memory; 0: one */
};

enum { PLAN_WAYS = 8 };

struct cuda_plan {
    struct cuda_plan *next;         /* of the backend's */
    struct product product;
    cublasLtMatmulDesc_t how;
    cublasLtMatrixLayout_t a, b, y;
    cublasLtMatmulHeuristicResult_t ways[PLAN_WAYS];        /* the best as cuBLASLt guesses; none: plain cuBLAS does it */
    int n_ways;
    int small_ways;                 /* after those: by the kernel for small products, in 1, 2, 4, ... pieces (small.cuh) */
    int way;
    bool adds_bias;                 /* else somebody else must */
    bool wide_bias;                 /* it is f32, whatever the result is */
    bool timed, settled;            /* the way is chosen by timing; it was */
    double saves_us;
};

/* The plan for such a product: the backend's, for as long as it lives. */
enum status cuda_plan_product(struct cuda_backend *b, struct cuda_plan **out, const struct product *p, bool timed, struct error *err);
/* Puts it into the call's stream. A failure is found by who asks CUDA afterwards. */
struct product_memory {
    void *y;
    const void *a, *b;
    const void *bias;               /* NULL where the plan does not add it */
    void *beside;
    bool add;                       /* to what is in y: beta is 1 */
};
void cuda_multiply(const struct cuda_call *c, struct cuda_plan *p, struct product_memory m);
/* A batch: elements from one to the next, none of them below 0. */
struct product_apart { int64_t a, b, y, bias; };
void cuda_multiply_batch(const struct cuda_call *c, struct cuda_plan *p, struct product_memory m, struct product_apart apart);
void cuda_free_plans(struct cuda_backend *b);

static inline bool cuda_plan_is_small(const struct cuda_plan *p) { return p->small_ways > 0 && p->way >= p->n_ways; }

/* planning.c: plans for all products of ops, chosen by timing where ops ask for it. */
enum status cuda_plan_calls(struct cuda_backend *b, struct prepared *p, struct error *err);
double cuda_saves_us(const struct cuda_call *c);
bool cuda_is_small(const struct cuda_call *c);          /* done by the kernel for small products */

/* Which products an op has: matrix.cu and head.cu. At most CALL_PLANS. */
int cuda_matrix_products(struct product *out, const struct program *p, const struct op *op);
int cuda_loss_products(struct product *out, const struct program *p, const struct op *op);

/* together.cu: products of an op as one call. */
enum status cuda_plan_together(struct cuda_backend *b, struct cuda_call *c, const struct product *products, int n, struct error *err);
bool cuda_may_together(const struct cuda_call *c);      /* its memory lies so */
size_t cuda_together_scratch(const struct program *p, const struct op *op);
void cuda_together_launch(const struct cuda_call *c, void *scratch, const void *bias, int64_t bias_apart);
/* Once it is known how products are made: where a norm's gradient alone reads a sum of them, it adds them up itself. */
void cuda_place_parts(struct cuda_backend *b, struct prepared *list);
void cuda_release_parts(struct cuda_backend *b, struct prepared *list);
bool cuda_norm_grad_sums(const struct cuda_call *c);    /* norm_grads.cu: it can */

/* pairs.c: products that are followed by GELU, or by its gradient, do that themselves where that is faster. */
enum status cuda_pair_gelu(struct cuda_backend *b, struct prepared *p, struct error *err);
extern const struct cuda_kernel cuda_gelu_sweep;        /* elementwise.cu: du = dy * gelu'(u), in the place of OP_MUL; u is the call's `beside` */

/* groups.c: gradients of weights, and products of nodes of one level, of which the last makes all. Each is one by itself again where that is
 * faster. */
void cuda_find_groups(struct cuda_call *calls, int n);
void cuda_dissolve_group(struct cuda_call *c);
void cuda_join_sweeps(struct cuda_call *calls, int n);  /* norms and sweeps of nodes of one level: the last makes all */
void cuda_pair_ropes(struct cuda_call *calls, int n);   /* two that follow each other: the second turns both */

/* biases.cu: casts biases in the call's stream; and gives those of a list memory, once it is known how its products are made. */
void cuda_cast_biases(const struct cuda_call *c, const struct cuda_cast *list, int n, enum dtype to);
void cuda_place_biases(struct cuda_backend *b, struct prepared *list);
void cuda_release_biases(struct cuda_backend *b, struct prepared *list);

/* tuning.cu: chooses among the ways of plans that are to be timed. */
void cuda_tune_plans(struct cuda_backend *b);
enum { CHOICE_KEY_MOST = 480 };
extern const char cuda_kernels_id[];    /* 16 letters that change with the kernels, the compiler and its flags (cmake/KernelsId.cmake) */
int cuda_write_machine(const struct cuda_backend *b, char key[CHOICE_KEY_MOST]);       /* how a key begins; returns its length */
/* choosing.cu: whether small products are made by the kernel for them: those of ops by themselves, or of groups, which are dissolved where
 * that is no faster. */
void cuda_choose_small(struct cuda_backend *b, struct cuda_call *calls, int n, bool groups);

#ifdef __cplusplus
}
#endif

#endif
