/* What a kernel of the GPU is: a function that puts the work of one op into a stream. It waits for nothing, allocates nothing and reads
 * nothing on the host, so that what it puts there can be captured into a graph and replayed; numbers that change from step to step
 * (learning rate, counters, factors) are values on the device. */
#ifndef HONE_OPS_CUDA_KERNEL_H
#define HONE_OPS_CUDA_KERNEL_H

#include <cublas_v2.h>
#include <cuda_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "backend/backend.h"
#include "ops/cuda/lanes.h"

int cuda_capability(int index);     /* of a GPU: 90 is 9.0; 0 where it is not known (device.c) */

struct cuda_plan;                   /* products.h */
struct cuda_reduction;              /* reductions.h */
enum { CALL_PLANS = 8, GROUP_MOST = 9 };      /* GROUP_MOST: nodes of a level; of other groups groups.c says it */

/* Sums over rows that a call makes for ops that come later, beside its own work (merge_sums.c): of its first output; or, where it sums
 * rows itself, of other matrices like its own. */
enum { SUMS_MOST = 2 };
struct cuda_sums {
    int n;
    const void *of[SUMS_MOST];      /* NULL: the first output */
    float *to[SUMS_MOST];
    size_t of_bytes, to_bytes;      /* of each */
    size_t scratch;                 /* that it needs for them */
};

/* A bias that becomes narrow (biases.cu). */
enum { BIASES_MOST = 4 };
struct cuda_cast {
    const float *from;
    void *to;
    int64_t n;
};

/* How the products of a call are made, besides their plans. */
struct cuda_way {
    bool at_once;
    int pieces, width;
};

/* One op bound to memory on the device. */
struct cuda_call {
    const struct program *program;
    const struct op *op;
    void **in, **out;               /* in the order of op->in and op->out */
    void *scratch;                  /* kernel->scratch bytes; calls of a lane run one after the other and share it */
    void *own;                      /* pieces->own bytes that nothing else uses, where it runs in pieces; else NULL */
    cudaStream_t stream;
    cublasHandle_t blas;            /* works in that stream */
    void *workspace;                /* of that stream: where cuBLAS puts sums of parts */
    size_t workspace_bytes;
    struct cuda_plan *plans[CALL_PLANS];    /* how its products are done, in the order its kernel wants; NULL: it has no more */
    struct cuda_plan *together;     /* all of them as one call; NULL: it is not to be had */
    bool at_once;                   /* they are done so (together.cu) */
    int pieces;                     /* above 0: they are small, and so many blocks share each tile (small.cuh) */
    int width;                      /* above 0: not so small, and tiles are so wide (hopper.cu) */
    struct cuda_way alone;          /* the same as it would be without those whose work it does */
    const float *leave;             /* where it is 0 the op may be left out; NULL: it always runs */
    void *beside;                   /* what GELU was applied to, where a product multiplies by its slope there (pairs.c) */
    void *biases[BIASES_MOST];      /* narrow ones of its products, which another call makes; NULL: it casts its own, in scratch */
    const struct cuda_cast *casts;  /* biases that it casts, one behind the other, for all calls of the list; NULL: none */
    int n_casts;
    size_t casts_bytes;
    struct cuda_sums sums;
    float *parts;                   /* products that are added up: the call leaves them there, or reads them as its first input (together.cu) */
    int64_t parts_apart;            /* from one to the next */
    size_t parts_bytes;
    int n_parts;
    struct cuda_call *also[GROUP_MOST - 1];         /* whose work it does beside its own (groups.c) */
    int n_also;
    struct cuda_reduction *reduction;       /* of OP_REDUCE_START and _WAIT, where there are other ranks */
    struct cuda_gather *gather;     /* of OP_GATHER_START and _WAIT, likewise */
    bool merged;                    /* another op does its work */
    double saves_us;                /* by what was chosen for this op, besides its plans */
};

/* What of an op need not run together: in a graph of several lanes every piece finds its own place, where memory lets it. So a part that
 * does not need what comes late runs early. Pieces in their order are the same as launch(), bit for bit. */
struct cuda_pieces {
    enum op_kind op;
    int (*count)(const struct program *p, const struct op *op);         /* at least 1 */
    void (*launch)(const struct cuda_call *c, int piece);
    /* Lists what a piece touches, beside scratch; at most one for each input and output of the op, and two more. Returns how many. */
    int (*touches)(const struct cuda_call *c, int piece, struct lane_touch *out);
    size_t (*own)(const struct program *p, const struct op *op);        /* bytes that stay from piece to piece; NULL: none */
    size_t (*scratch)(const struct program *p, const struct op *op, int piece);     /* NULL: what the op needs as a whole */
};

struct cuda_kernel {
    enum op_kind op;
    const char *name;
    void (*launch)(const struct cuda_call *c);      /* failures are asked of CUDA after it, by who calls */
    size_t (*scratch)(const struct program *p, const struct op *op);        /* NULL: none */
};

/* One list per file of kernels; each ends with an entry whose launch is NULL. */
extern const struct cuda_kernel cuda_elementwise[], cuda_sums[], cuda_positions[], cuda_rows[], cuda_norms[], cuda_norm_grads[], cuda_matrix[],
    cuda_attention[], cuda_embedding[], cuda_loss[], cuda_head[], cuda_squares[], cuda_clip[], cuda_select[], cuda_optimizer[], cuda_ranks[], cuda_cache[];

/* Counters of the stream: 0, and 0 again when a kernel that uses them is done. They lie behind the memory for cuBLAS. */
static inline unsigned *cuda_counter(const struct cuda_call *c) { return (unsigned *)((char *)c->workspace + c->workspace_bytes); }

/* Of the ops that can run in pieces. */
extern const struct cuda_pieces cuda_squares_pieces, cuda_embed_grad_pieces, cuda_layernorm_grad_pieces, cuda_rmsnorm_grad_pieces,
    cuda_linear_loss_pieces;

static inline const struct value *cuda_in(const struct cuda_call *c, int i) { return &c->program->values[c->op->in[i]]; }
static inline struct lane_touch cuda_touch_in(const struct cuda_call *c, int i)
{
    const struct lane_touch t = {c->in[i], value_bytes(cuda_in(c, i)), false};
    return t;
}
static inline const struct value *cuda_out(const struct cuda_call *c, int i) { return &c->program->values[c->op->out[i]]; }

#ifdef __cplusplus
}
#endif

#endif
