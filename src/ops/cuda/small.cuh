/* Products of narrow matrices that are so small that starting kernels takes longer than multiplying: several at once in one kernel, with
 * what is done to their results. See small.cu. */
#ifndef HONE_OPS_CUDA_SMALL_CUH
#define HONE_OPS_CUDA_SMALL_CUH

#include "ops/cuda/products.h"

enum { SMALL_PARTS = GROUP_MOST };

struct small_part {
    const void *a, *b;
    void *y;
    const float *bias;              /* NULL: none */
    void *slope;                    /* where gelu: gelu' of the product, NULL: not wanted */
    const float *leave;             /* where that is 0 the part is left out; NULL: never */
    int m, n, k;                    /* m: that of all, where the kernel for small ones makes them */
    int a_stride, b_stride, y_stride;
    int before;                     /* tiles of the parts before it, or steps in k where parts are summed */
};

/* Products y (m, n) = op(a) op(b) + bias of one m; or, summed, one product of all of them, or of every few. */
struct small_products {
    struct small_part part[SMALL_PARTS];
    const void *times;              /* what the result is multiplied by, of the type of the operands; NULL: nothing */
    float *partial;                 /* sums of clusters, and counters of them: given by the launch */
    unsigned *counters;
    int m, parts;
    int each;                       /* where summed: parts of one product; all of them but in hopper.cu */
    int pieces;                     /* that k is cut into, each for a block: up to CLUSTER a cluster adds up, beyond that memory is used */
    bool trans_a, trans_b, summed, gelu;
    bool wide;                      /* y is f32 */
    bool add;                       /* to what is in y */
    bool f16;
};

/* matrix.cu: the products of an op; false: they cannot be made so. And what puts the op into the stream, either way. */
bool cuda_small_of(struct small_products *out, const struct cuda_call *c);
void cuda_matrix_launch(const struct cuda_call *c);

/* Strides and memory are aligned for 16 bytes; and there is such a kernel. */
bool cuda_small_is_aligned(const struct small_products *p);
bool cuda_small_fits(const struct small_products *p);
void cuda_small_launch(const struct cuda_call *c, struct small_products p);
int64_t cuda_small_tiles(const struct small_products *p);       /* blocks, where k is not cut */
int64_t cuda_small_steps(const struct small_products *p);       /* in k of each of them */
bool cuda_small_has_room(const struct small_products *p, int pieces);   /* for sums in memory, and counters */

/* hopper.cu: the same products, larger ones, and those of several ops, where a GPU is of compute capability 9.0: tiles of 128 rows and a width
 * of 64, 128 or 192, and k in 1, 2 or 4 pieces. */
enum { HOPPER_WAYS = 9 };
bool cuda_hopper_fits(const struct small_products *p);
int64_t cuda_hopper_blocks(const struct small_products *p, int width);          /* where k is not cut */
void cuda_hopper_launch(const struct cuda_call *c, const struct small_products *p, int width);

/* choosing.cu: how many of 1, 2, 4, ... pieces are worth a try for so much arithmetic, 0: none; and which of these is taken without a
 * measurement, -1: none. */
enum { SMALL_WAYS = 7, CLUSTER = 8 };
int cuda_small_ways(const struct cuda_backend *b, const struct small_products *p, double flops);
int cuda_small_by_rule(const struct cuda_backend *b, const struct small_products *p, double flops);

#endif
