/* Products of a few rows with weights that are read where they lie, as of the tokens that generation computes: all that counts is to read the
 * weights once, with every multiprocessor. A warp makes a column of all rows; its sum over k has one order, whatever the rows are. All
 * products of an op are one launch, with bias and GELU. */
#include "ops/cuda/device.cuh"
#include "ops/cuda/few.cuh"
#include "ops/cuda/types.cuh"

enum { ROWS_MOST = 8, FEW_PARTS = BIASES_MOST, FEW_WARPS = 4 };

struct few_part { const float *w, *bias; float *y; int64_t n; };        /* (n, k), (n) or NULL, (m, n) */
struct few {
    const float *x;                     /* (m, k) */
    int64_t m, k, columns;              /* columns of all parts */
    bool gelu;
    int parts;
    struct few_part part[FEW_PARTS];
};

/* A column of M rows, P numbers of k at a time in each lane. */
template <int M, int P> static __device__ void dots(float (&sum)[M], const float *x, const float *w, int64_t k)
{
#pragma unroll 4
    for (int64_t at = (int64_t)(threadIdx.x % WARP) * P; at < k; at += WARP * P) {
        float b[P];
        load_pack<P>(b, w + at);
#pragma unroll
        for (int i = 0; i < M; i++) {
            float a[P];
            load_pack<P>(a, x + i * k + at);
#pragma unroll
            for (int e = 0; e < P; e++)
                sum[i] += a[e] * b[e];
        }
    }
#pragma unroll
    for (int i = 0; i < M; i++)
        sum[i] = warp_reduce(sum[i], add_of());
}

template <int M, int P> static __global__ void few_rows(const __grid_constant__ struct few f)
{
    int64_t column = (int64_t)blockIdx.x * FEW_WARPS + threadIdx.x / WARP;
    int i = 0;
    if (column >= f.columns)
        return;
    for (; column >= f.part[i].n; i++)
        column -= f.part[i].n;
    const struct few_part p = f.part[i];
    float sum[M] = {};
    dots<M, P>(sum, f.x, p.w + column * f.k, f.k);
#pragma unroll
    for (int row = 0; row < M; row++)
        if (threadIdx.x % WARP == row) {
            const float y = sum[row] + (p.bias ? p.bias[column] : 0);
            p.y[row * p.n + column] = f.gelu ? y * gelu_gate(y) : y;
        }
}

template <int M> static void launch(const struct cuda_call *c, const struct few &f)
{
    const unsigned blocks = blocks_at_once(f.columns, FEW_WARPS);
    bool wide = f.k % 4 == 0 && is_aligned(f.x, 16);
    for (int i = 0; i < f.parts; i++)
        wide = wide && is_aligned(f.part[i].w, 16);
    if (wide)
        few_rows<M, 4><<<blocks, FEW_WARPS * WARP, 0, c->stream>>>(f);
    else
        few_rows<M, 1><<<blocks, FEW_WARPS * WARP, 0, c->stream>>>(f);
}

bool cuda_few_does(const struct cuda_call *c)
{
    const struct op *op = c->op;
    const struct shape x = cuda_in(c, 0)->shape;
    const bool form = op->kind == OP_PROJECT || (op->kind == OP_LINEAR_GELU && op->n_out == 1) ||
                      (op->kind == OP_MATMUL && op->attrs.trans_b && !op->attrs.trans_a);
    return form && shape_rows(x) <= ROWS_MOST && cuda_in(c, 0)->dtype == F32 && cuda_out(c, 0)->dtype == F32 && op->attrs.round == ROUND_NO &&
           !c->n_also && !c->leave;
}

void cuda_few_launch(const struct cuda_call *c)
{
    const struct shape x = cuda_in(c, 0)->shape;
    struct few f = {};
    f.parts = c->op->kind == OP_PROJECT ? c->op->attrs.parts : 1;
    f.x = in_floats(c, 0);
    f.m = shape_rows(x), f.k = shape_last(x);
    f.gelu = c->op->kind == OP_LINEAR_GELU;
    for (int i = 0; i < f.parts; i++) {
        f.part[i] = {in_floats(c, 1 + i), c->op->n_in > 1 + f.parts ? in_floats(c, 1 + f.parts + i) : NULL, out_floats(c, i),
                     shape_rows(cuda_in(c, 1 + i)->shape)};
        f.columns += f.part[i].n;
    }
    switch (f.m) {
    case 1: launch<1>(c, f); break;
    case 2: launch<2>(c, f); break;
    case 3: launch<3>(c, f); break;
    case 4: launch<4>(c, f); break;
    case 5: launch<5>(c, f); break;
    case 6: launch<6>(c, f); break;
    case 7: launch<7>(c, f); break;
    default: launch<8>(c, f); break;
    }
}
