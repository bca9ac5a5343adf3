/* Losses of log-probabilities (rows, n). */
#include "ops/cuda/device.cuh"

enum { LOSS_THREADS = 1024 };       /* of the one block that sums over all rows */

static __global__ void nll(float *loss, float *count, const float *logp, const int32_t *targets, int64_t rows, int64_t n)
{
    double sum = 0, known = 0;
    EACH_OF_BLOCK(row, rows)
        if (targets[row] >= 0) {
            sum -= logp[row * n + targets[row]];
            known++;
        }
    sum = block_sum(sum);
    known = block_sum(known);
    if (threadIdx.x == 0) {
        *loss = (float)(sum / (known > 0 ? known : 1));
        *count = (float)known;
    }
}

static void nll_launch(const struct cuda_call *c)
{
    nll<<<1, LOSS_THREADS, 0, c->stream>>>(out_floats(c, 0), out_floats(c, 1), in_floats(c, 0), (const int32_t *)c->in[1], in_count(c, 1),
                                           shape_last(cuda_in(c, 0)->shape));
}

static __global__ void nll_grad(float *dx, const int32_t *targets, const float *count, const float *d_loss, int64_t rows, int64_t n)
{
    EACH(row, rows)
        if (targets[row] >= 0)
            dx[row * n + targets[row]] = -*d_loss / *count;
}

static void nll_grad_launch(const struct cuda_call *c)
{
    const int64_t rows = in_count(c, 1), n = shape_last(cuda_in(c, 0)->shape);
    const int32_t *targets = (const int32_t *)c->in[1];
    cudaMemsetAsync(c->out[0], 0, value_bytes(cuda_out(c, 0)), c->stream);
    nll_grad<<<blocks_for(rows), THREADS, 0, c->stream>>>(out_floats(c, 0), targets, in_floats(c, 2), in_floats(c, 3), rows, n);
}

const struct cuda_kernel cuda_loss[] = {
    {OP_NLL, "nll", nll_launch, NULL},
    {OP_NLL_GRAD, "nll_grad", nll_grad_launch, NULL},
    {OP_KINDS, NULL, NULL, NULL},
};
