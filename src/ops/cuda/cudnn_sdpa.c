/* Attention as a graph of operations: the pattern that cuDNN knows and makes one kernel of forward, and a few backward. Between the
 * products nothing is stored. Shapes are (B, H, T, D), whatever the order in memory: strides say that values are (B, T, H, D). */
#ifdef HONE_CUDNN

#include "ops/cuda/cudnn_int.h"

enum { NONE = NO_TENSOR };

/* ---- shapes ---- */

static struct cudnn_shape rows(const struct cudnn_attention_of *a, int64_t heads)       /* of values (B, T, heads, D) */
{
    return (struct cudnn_shape){{a->batch, heads, a->seq, a->size}, {a->seq * heads * a->size, a->size, heads * a->size, 1}};
}

static struct cudnn_shape turned(struct cudnn_shape s)
{
    return (struct cudnn_shape){{s.dim[0], s.dim[1], s.dim[3], s.dim[2]}, {s.stride[0], s.stride[1], s.stride[3], s.stride[2]}};
}

static struct cudnn_shape packed(int64_t b, int64_t h, int64_t m, int64_t n)
{
    return (struct cudnn_shape){{b, h, m, n}, {h * m * n, m * n, n, 1}};
}

static struct cudnn_shape scores(const struct cudnn_attention_of *a) { return packed(a->batch, a->heads, a->seq, a->seq); }
static struct cudnn_shape stats(const struct cudnn_attention_of *a) { return packed(a->batch, a->heads, a->seq, 1); }

/* ---- pieces ---- */

/* y = mode(x, b), in f32, never stored. */
static int math(struct cudnn_graph *g, cudnnPointwiseMode_t mode, struct cudnn_shape s, int x, int b)
{
    const int y = cudnn_inner(g, s, CUDNN_DATA_FLOAT);
    cudnn_pointwise(g, mode, CUDNN_DATA_FLOAT, y, x, b, NONE);
    return y;
}

static int product(struct cudnn_graph *g, struct cudnn_shape s, cudnnDataType_t type, int a, int b)
{
    const int y = cudnn_inner(g, s, type);
    cudnn_product(g, y, a, b);
    return y;
}

static int reduced(struct cudnn_graph *g, cudnnReduceTensorOp_t op, struct cudnn_shape s, int x)
{
    const int y = cudnn_inner(g, s, CUDNN_DATA_FLOAT);
    cudnn_reduce(g, op, y, x);
    return y;
}

static int reshaped(struct cudnn_graph *g, struct cudnn_shape s, cudnnDataType_t type, int x)
{
    const int y = cudnn_inner(g, s, type);
    cudnn_reshape(g, y, x);
    return y;
}

/* Scores x where row >= column, `masked` elsewhere. */
static int causal(struct cudnn_graph *g, const struct cudnn_attention_of *a, int x, int masked)
{
    const struct cudnn_shape s = scores(a);
    const int row = cudnn_inner(g, s, CUDNN_DATA_INT32), col = cudnn_inner(g, s, CUDNN_DATA_INT32);
    const int seen = cudnn_inner(g, s, CUDNN_DATA_BOOLEAN), y = cudnn_inner(g, s, CUDNN_DATA_FLOAT);
    cudnn_index(g, 2, row, x);
    cudnn_index(g, 3, col, x);
    cudnn_pointwise(g, CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, seen, row, col, NONE);
    cudnn_pointwise(g, CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, y, x, masked, seen);
    return y;
}

/* ---- forward ---- */

static void give_forward(struct cudnn_graph *g, const struct cudnn_attention_of *a)
{
    cudnn_given(g, rows(a, a->heads), a->type);                 /* FORWARD_Q, and so on */
    cudnn_given(g, turned(rows(a, a->kv_heads)), a->type);
    cudnn_given(g, rows(a, a->kv_heads), a->type);
    cudnn_given(g, rows(a, a->heads), a->type);
    cudnn_given(g, stats(a), CUDNN_DATA_FLOAT);
    cudnn_number(g);
    cudnn_number(g);
}

/* The weights, in the type of the values, for the second product; log(sum of e^score) goes to FORWARD_STATS. */
static int softmax(struct cudnn_graph *g, const struct cudnn_attention_of *a, int x)
{
    const struct cudnn_shape s = scores(a), one = stats(a);
    const int largest = reduced(g, CUDNN_REDUCE_TENSOR_MAX, one, x);
    const int less = math(g, CUDNN_POINTWISE_SUB, s, x, largest);
    const int e = math(g, CUDNN_POINTWISE_EXP, s, less, NONE);
    const int sum = reduced(g, CUDNN_REDUCE_TENSOR_ADD, one, e);
    const int log_sum = math(g, CUDNN_POINTWISE_LOG, one, sum, NONE);
    cudnn_pointwise(g, CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT, FORWARD_STATS, largest, log_sum, NONE);
    const int weights = cudnn_inner(g, s, a->type);
    cudnn_pointwise(g, CUDNN_POINTWISE_DIV, CUDNN_DATA_FLOAT, weights, e, sum, NONE);
    return weights;
}

static void build_forward(struct cudnn_graph *g, const struct cudnn_attention_of *a)
{
    give_forward(g, a);
    const int raw = product(g, scores(a), CUDNN_DATA_FLOAT, FORWARD_Q, FORWARD_K);
    const int scaled = math(g, CUDNN_POINTWISE_MUL, scores(a), raw, FORWARD_SCALE);
    const int weights = softmax(g, a, causal(g, a, scaled, FORWARD_MASKED));
    cudnn_product(g, FORWARD_Y, weights, FORWARD_V);
}

/* ---- backward ---- */

static void give_backward(struct cudnn_graph *g, const struct cudnn_attention_of *a)
{
    const struct cudnn_shape q = rows(a, a->heads), k = rows(a, a->kv_heads);
    const struct { struct cudnn_shape s; cudnnDataType_t type; } given[] = {
        [BACKWARD_Q] = {q, a->type}, [BACKWARD_K] = {turned(k), a->type}, [BACKWARD_V] = {turned(k), a->type}, [BACKWARD_Y] = {q, a->type},
        [BACKWARD_DY] = {q, a->type}, [BACKWARD_STATS] = {stats(a), CUDNN_DATA_FLOAT}, [BACKWARD_DOTS] = {stats(a), CUDNN_DATA_FLOAT},
        [BACKWARD_DQ] = {q, a->type}, [BACKWARD_DK] = {k, a->type}, [BACKWARD_DV] = {k, a->type}};
    for (int i = 0; i < BACKWARD_SCALE; i++)
        cudnn_given(g, given[i].s, given[i].type);
    for (int i = BACKWARD_SCALE; i < BACKWARD_GIVEN; i++)
        cudnn_number(g);
}

/* x^T other to `to`, x (T, T) of every head; heads of a group are summed. */
static void key_gradient(struct cudnn_graph *g, const struct cudnn_attention_of *a, int to, int x, int other)
{
    const int across = reshaped(g, turned(scores(a)), a->type, x);
    if (a->heads == a->kv_heads) {
        cudnn_product(g, to, across, other);
        return;
    }
    const int all = product(g, packed(a->batch, a->heads, a->seq, a->size), a->type, across, other);
    cudnn_reduce(g, CUDNN_REDUCE_TENSOR_ADD, to, all);
}

/* dq is written by the product itself: with an f32 sum in between, tiles would be added in any order. */
static void build_backward(struct cudnn_graph *g, const struct cudnn_attention_of *a)
{
    const struct cudnn_shape s = scores(a), one = stats(a);
    give_backward(g, a);
    const int each = math(g, CUDNN_POINTWISE_MUL, packed(a->batch, a->heads, a->seq, a->size), BACKWARD_DY, BACKWARD_Y);
    const int dots = reduced(g, CUDNN_REDUCE_TENSOR_ADD, one, each);
    cudnn_pointwise(g, CUDNN_POINTWISE_MUL, CUDNN_DATA_FLOAT, BACKWARD_DOTS, dots, BACKWARD_ONE, NONE);

    const int raw = product(g, s, CUDNN_DATA_FLOAT, BACKWARD_Q, BACKWARD_K);
    const int scaled = math(g, CUDNN_POINTWISE_MUL, s, raw, BACKWARD_SCALE);
    const int less = math(g, CUDNN_POINTWISE_SUB, s, scaled, BACKWARD_STATS);
    const int weights = math(g, CUDNN_POINTWISE_EXP, s, causal(g, a, less, BACKWARD_MASKED), NONE);
    key_gradient(g, a, BACKWARD_DV, weights, BACKWARD_DY);

    const int dweights = product(g, s, CUDNN_DATA_FLOAT, BACKWARD_DY, BACKWARD_V);
    const int centred = math(g, CUDNN_POINTWISE_SUB, s, dweights, BACKWARD_DOTS);
    const int weighted = math(g, CUDNN_POINTWISE_MUL, s, centred, weights);
    const int dscores = math(g, CUDNN_POINTWISE_MUL, s, weighted, BACKWARD_SCALE);
    key_gradient(g, a, BACKWARD_DK, dscores, BACKWARD_Q);

    const int keys = reshaped(g, rows(a, a->kv_heads), a->type, BACKWARD_K);
    cudnn_product(g, BACKWARD_DQ, dscores, keys);
}

void cudnn_build_attention(struct cudnn_graph *g, const struct cudnn_attention_of *a)
{
    if (a->backward)
        build_backward(g, a);
    else
        build_forward(g, a);
}

#endif
