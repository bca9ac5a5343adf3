/* Products of matrices by cuBLAS, and what is added to them. cuBLAS thinks in columns: a row-major matrix is to it the transposed one, so
 * y = a b is asked for as y^T = b^T a^T. */
#include <cuda_bf16.h>

#include "ops/cuda/products.cuh"

void cuda_multiply(const struct cuda_call *c, float *y, struct operand a, struct operand b, int64_t m, int64_t n, int64_t k, float beta)
{
    const float one = 1;
    const cudaDataType_t type = a.bf16 ? CUDA_R_16BF : CUDA_R_32F;
    if (cublasGemmEx_64(c->blas, b.trans ? CUBLAS_OP_T : CUBLAS_OP_N, a.trans ? CUBLAS_OP_T : CUBLAS_OP_N, n, m, k, &one,
                        b.at, type, b.trans ? k : n, a.at, type, a.trans ? m : k, &beta, y, CUDA_R_32F, n, CUBLAS_COMPUTE_32F,
                        CUBLAS_GEMM_DEFAULT) != CUBLAS_STATUS_SUCCESS)
        refuse(c);
}

static __global__ void round_to_bf16(__nv_bfloat16 *to, const float *x, int64_t n)
{
    EACH(i, n)
        to[i] = __float2bfloat16_rn(x[i]);
}

struct operand cuda_operand(const struct cuda_call *c, const float *x, int64_t n, bool trans, bool bf16, void *room)
{
    if (bf16)
        round_to_bf16<<<blocks_for(n), THREADS, 0, c->stream>>>((__nv_bfloat16 *)room, x, n);
    return {bf16 ? room : (const void *)x, trans, bf16};
}

static __global__ void add_bias(float *y, const float *bias, int64_t rows, int64_t n)      /* (rows, n), (n) */
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x)
        EACH_OF_BLOCK(i, n)
            y[row * n + i] += bias[i];
}

static void add_bias_launch(const struct cuda_call *c, float *y, const float *bias, int64_t rows, int64_t n)
{
    add_bias<<<blocks_of(rows), threads_for_row(n), 0, c->stream>>>(y, bias, rows, n);
}

static int64_t count_of(const struct program *p, value_id v) { return shape_count(p->values[v].shape); }
static void *after(void *room, size_t bytes) { return (char *)room + bytes; }

/* ---- one product ---- */

static size_t two_operands_scratch(const struct program *p, const struct op *op)
{
    const bool bf16 = op->attrs.round == ROUND_BF16;
    return operand_room(count_of(p, op->in[0]), bf16) + operand_room(count_of(p, op->in[1]), bf16);
}

static void matmul_launch(const struct cuda_call *c)
{
    const bool ta = c->op->attrs.trans_a, tb = c->op->attrs.trans_b, bf16 = c->op->attrs.round == ROUND_BF16;
    const struct shape as = cuda_in(c, 0)->shape, bs = cuda_in(c, 1)->shape;
    const int64_t m = ta ? shape_last(as) : shape_rows(as), k = ta ? shape_rows(as) : shape_last(as);
    const int64_t n = tb ? shape_rows(bs) : shape_last(bs);
    const struct operand a = cuda_operand(c, in_floats(c, 0), m * k, ta, bf16, c->scratch);
    const struct operand b = cuda_operand(c, in_floats(c, 1), k * n, tb, bf16, after(c->scratch, operand_room(m * k, bf16)));
    cuda_multiply(c, out_floats(c, 0), a, b, m, n, k, 0);
    if (c->op->n_in > 2)
        add_bias_launch(c, out_floats(c, 0), in_floats(c, 2), m, n);
}

/* y (rows, n) holds x w^T; it becomes gelu(y + bias), and slope, where it is asked for, gelu' there. */
static __global__ void bias_gelu(float *y, float *slope, const float *bias, int64_t rows, int64_t n)
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x)
        EACH_OF_BLOCK(i, n) {
            const float u = y[row * n + i] + bias[i], gate = gelu_gate(u);
            y[row * n + i] = u * gate;
            if (slope)
                slope[row * n + i] = gelu_slope(u, gate);
        }
}

static void linear_gelu_launch(const struct cuda_call *c)
{
    const bool bf16 = c->op->attrs.round == ROUND_BF16;
    const struct shape x = cuda_in(c, 0)->shape;
    const int64_t rows = shape_rows(x), k = shape_last(x), n = shape_last(cuda_out(c, 0)->shape);
    const struct operand a = cuda_operand(c, in_floats(c, 0), rows * k, false, bf16, c->scratch);
    const struct operand b = cuda_operand(c, in_floats(c, 1), n * k, true, bf16, after(c->scratch, operand_room(rows * k, bf16)));
    cuda_multiply(c, out_floats(c, 0), a, b, rows, n, k, 0);
    bias_gelu<<<blocks_of(rows), threads_for_row(n), 0, c->stream>>>(out_floats(c, 0), c->op->n_out > 1 ? out_floats(c, 1) : NULL,
                                                                     in_floats(c, 2), rows, n);
}

/* ---- several products of one input, and the gradient of it ---- */

/* Room for the largest of the inputs [first, first + n). */
static size_t largest_room(const struct program *p, const struct op *op, int first, int n)
{
    size_t most = 0;
    for (int i = first; i < first + n; i++) {
        const size_t room = operand_room(count_of(p, op->in[i]), op->attrs.round == ROUND_BF16);
        most = room > most ? room : most;
    }
    return most;
}

static size_t project_scratch(const struct program *p, const struct op *op)
{
    return largest_room(p, op, 0, 1) + largest_room(p, op, 1, op->attrs.parts);
}

static void project_launch(const struct cuda_call *c)
{
    const int parts = c->op->attrs.parts;
    const bool bf16 = c->op->attrs.round == ROUND_BF16;
    const struct shape s = cuda_in(c, 0)->shape;
    const int64_t rows = shape_rows(s), k = shape_last(s);
    const struct operand x = cuda_operand(c, in_floats(c, 0), rows * k, false, bf16, c->scratch);
    for (int i = 0; i < parts; i++) {
        const int64_t n = shape_last(cuda_out(c, i)->shape);
        const struct operand w = cuda_operand(c, in_floats(c, 1 + i), n * k, true, bf16,
                                              after(c->scratch, operand_room(rows * k, bf16)));
        cuda_multiply(c, out_floats(c, i), x, w, rows, n, k, 0);
        if (c->op->n_in > 1 + parts)
            add_bias_launch(c, out_floats(c, i), in_floats(c, 1 + parts + i), rows, n);
    }
}

static size_t project_grad_scratch(const struct program *p, const struct op *op)
{
    return largest_room(p, op, 0, op->attrs.parts) + largest_room(p, op, op->attrs.parts, op->attrs.parts);
}

/* dx (rows, width) = sum of dy (rows, n) w (n, width) */
static void project_grad_launch(const struct cuda_call *c)
{
    const int parts = c->op->attrs.parts;
    const bool bf16 = c->op->attrs.round == ROUND_BF16;
    const int64_t rows = shape_rows(cuda_out(c, 0)->shape), width = shape_last(cuda_out(c, 0)->shape);
    void *room = after(c->scratch, largest_room(c->program, c->op, 0, parts));
    for (int i = 0; i < parts; i++) {
        const int64_t n = shape_last(cuda_in(c, i)->shape);
        const struct operand dy = cuda_operand(c, in_floats(c, i), rows * n, false, bf16, c->scratch);
        const struct operand w = cuda_operand(c, in_floats(c, parts + i), n * width, false, bf16, room);
        cuda_multiply(c, out_floats(c, 0), dy, w, rows, width, n, i > 0);
    }
}

const struct cuda_kernel cuda_matrix[] = {
    {OP_MATMUL, "cublas", matmul_launch, two_operands_scratch},
    {OP_PROJECT, "cublas", project_launch, project_scratch},
    {OP_PROJECT_GRAD, "cublas", project_grad_launch, project_grad_scratch},
    {OP_LINEAR_GELU, "cublas", linear_gelu_launch, two_operands_scratch},
    {OP_KINDS, NULL, NULL, NULL},
};
