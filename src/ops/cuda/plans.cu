/* Plans of products, and products by them. cuBLAS thinks in columns: a row-major matrix is to it the transposed one, so y = a b is asked
 * for as y^T = b^T a^T; what is called a here is its B, and the other way round. */
#include <stdlib.h>

#include "ops/cuda/device.cuh"
#include "ops/cuda/small.cuh"
#include "ops/cuda/types.cuh"

static bool product_equal(const struct product *x, const struct product *y)
{
    return x->m == y->m && x->n == y->n && x->k == y->k && x->a_stride == y->a_stride && x->b_stride == y->b_stride &&
           x->y_stride == y->y_stride && x->trans_a == y->trans_a && x->trans_b == y->trans_b && x->end == y->end &&
           x->tf32 == y->tf32 && x->operands == y->operands && x->result == y->result && x->batch == y->batch;
}

static struct product filled_in(struct product p)
{
    p.a_stride = p.a_stride ? p.a_stride : p.trans_a ? p.m : p.k;
    p.b_stride = p.b_stride ? p.b_stride : p.trans_b ? p.k : p.n;
    p.y_stride = p.y_stride ? p.y_stride : p.n;
    return p;
}

/* ---- what cuBLASLt is told ---- */

static cublasComputeType_t compute_of(const struct product *p)
{
    return p->operands == F32 && p->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

/* How many matrices there are, and how many elements lie from one to the next. */
static cublasStatus_t set_batch(cublasLtMatrixLayout_t matrix, int32_t batch, int64_t apart)
{
    const cublasStatus_t s = cublasLtMatrixLayoutSetAttribute(matrix, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch);
    return s != CUBLAS_STATUS_SUCCESS
               ? s
               : cublasLtMatrixLayoutSetAttribute(matrix, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &apart, sizeof apart);
}

static cublasStatus_t set_batches(struct cuda_plan *plan, const struct product_apart *apart)
{
    cublasStatus_t s = set_batch(plan->a, plan->product.batch, apart->a);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = set_batch(plan->b, plan->product.batch, apart->b);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = set_batch(plan->y, plan->product.batch, apart->y);
    return s == CUBLAS_STATUS_SUCCESS && plan->adds_bias
               ? cublasLtMatmulDescSetAttribute(plan->how, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &apart->bias, sizeof apart->bias)
               : s;
}

static cublasStatus_t describe(struct cuda_plan *plan)
{
    const struct product *p = &plan->product;
    const cublasOperation_t first = p->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N, second = p->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cudaDataType_t in = cuda_type(p->operands), out = cuda_type(p->result);
    cublasStatus_t s = cublasLtMatmulDescCreate(&plan->how, compute_of(p), CUDA_R_32F);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatmulDescSetAttribute(plan->how, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatmulDescSetAttribute(plan->how, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatrixLayoutCreate(&plan->b, in, p->trans_b ? p->k : p->n, p->trans_b ? p->n : p->k, p->b_stride);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatrixLayoutCreate(&plan->a, in, p->trans_a ? p->m : p->k, p->trans_a ? p->k : p->m, p->a_stride);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatrixLayoutCreate(&plan->y, out, p->n, p->m, p->y_stride);
    if (s == CUBLAS_STATUS_SUCCESS && p->batch > 1) {   /* how far apart they really lie is told with each call */
        const struct product_apart dense = {0, (p->trans_b ? p->n : p->k) * p->b_stride, p->m * p->y_stride, p->n};
        s = set_batches(plan, &dense);
    }
    return s;
}

static bool has_bias(enum product_end end) { return end == END_BIAS || end == END_GELU; }
static bool has_beside(enum product_end end) { return end == END_GELU || end == END_GELU_GRAD; }

static cublasStatus_t set_pointer(struct cuda_plan *plan, cublasLtMatmulDescAttributes_t which, const void *pointer)
{
    return cublasLtMatmulDescSetAttribute(plan->how, which, &pointer, sizeof pointer);
}

/* A bias that is f32 beside a narrow result needs no copy, where cuBLASLt can. */
static cublasStatus_t set_bias_type(struct cuda_plan *plan, bool wide)
{
    const int32_t type = wide ? CUDA_R_32F : cuda_type(plan->product.result);
    plan->wide_bias = wide || plan->product.result == F32;
    return cublasLtMatmulDescSetAttribute(plan->how, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type);
}

static cublasStatus_t set_epilogue(struct cuda_plan *plan, enum product_end end)
{
    static const cublasLtEpilogue_t epilogues[] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
                                                   CUBLASLT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_DEFAULT};
    const void *aligned_so = (const void *)64;          /* what matters of a pointer now is its alignment */
    cublasStatus_t s = cublasLtMatmulDescSetAttribute(plan->how, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogues[end], sizeof epilogues[end]);
    if (s == CUBLAS_STATUS_SUCCESS && has_bias(end))
        s = set_pointer(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, aligned_so);
    if (s == CUBLAS_STATUS_SUCCESS && has_beside(end))
        s = set_pointer(plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aligned_so);
    if (s == CUBLAS_STATUS_SUCCESS && has_beside(end))
        s = cublasLtMatmulDescSetAttribute(plan->how, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &plan->product.y_stride,
                                           sizeof plan->product.y_stride);
    plan->adds_bias = has_bias(end);
    return s;
}

/* Sums of parts are f32 and are added up in a step of their own, in a fixed order. */
static cublasStatus_t set_preferences(cublasLtMatmulPreference_t wishes)
{
    static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const size_t most = BLAS_WORKSPACE;
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, bytes = 16;
    cublasStatus_t s = cublasLtMatmulPreferenceSetAttribute(wishes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatmulPreferenceSetAttribute(wishes, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes);
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments && s == CUBLAS_STATUS_SUCCESS; i++)
        s = cublasLtMatmulPreferenceSetAttribute(wishes, alignments[i], &bytes, sizeof bytes);
    return s;
}

/* What cuBLASLt would do. It knows no way: plain cuBLAS is asked to do it. */
static void find_ways(struct cuda_backend *b, struct cuda_plan *plan, cublasLtMatmulPreference_t wishes)
{
    cublasLtMatmulHeuristicResult_t found[PLAN_WAYS];
    int n = 0;
    plan->n_ways = 0;
    if (cublasLtMatmulAlgoGetHeuristic((cublasLtHandle_t)b->blas, plan->how, plan->b, plan->a, plan->y, plan->y, wishes, PLAN_WAYS, found,
                                       &n) != CUBLAS_STATUS_SUCCESS)
        return;
    for (int i = 0; i < n; i++)
        if (found[i].state == CUBLAS_STATUS_SUCCESS && found[i].workspaceSize <= BLAS_WORKSPACE)
            plan->ways[plan->n_ways++] = found[i];
}

static cublasStatus_t try_end(struct cuda_backend *b, struct cuda_plan *plan, enum product_end end, bool wide_bias,
                              cublasLtMatmulPreference_t wishes)
{
    cublasStatus_t s = set_epilogue(plan, end);
    if (s == CUBLAS_STATUS_SUCCESS && has_bias(end))
        s = set_bias_type(plan, wide_bias);
    if (s == CUBLAS_STATUS_SUCCESS)
        find_ways(b, plan, wishes);
    return s;
}

static cublasStatus_t fill_plan(struct cuda_backend *b, struct cuda_plan *plan)
{
    const enum product_end end = plan->product.end;
    cublasLtMatmulPreference_t wishes = NULL;
    cublasStatus_t s = describe(plan);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatmulPreferenceCreate(&wishes);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = set_preferences(wishes);
    if (s == CUBLAS_STATUS_SUCCESS && has_bias(end) && try_end(b, plan, end, true, wishes) != CUBLAS_STATUS_SUCCESS)
        plan->n_ways = 0;
    if (s == CUBLAS_STATUS_SUCCESS && end != END_TIMES && plan->n_ways == 0)
        s = try_end(b, plan, end, false, wishes);
    if (s == CUBLAS_STATUS_SUCCESS && end == END_BIAS && plan->n_ways == 0)
        s = try_end(b, plan, END_PLAIN, false, wishes);
    if (wishes)
        cublasLtMatmulPreferenceDestroy(wishes);
    return s;
}

/* ---- by the kernel for small products ---- */

static struct small_products as_small(const struct product *p, struct product_memory m)
{
    struct small_products s = {};
    s.m = (int)p->m;
    s.parts = 1;
    s.trans_a = p->trans_a, s.trans_b = p->trans_b;
    s.wide = p->result == F32;
    s.f16 = p->operands == F16;
    s.add = m.add;
    s.times = p->end == END_TIMES ? m.beside : NULL;
    s.part[0].a = m.a, s.part[0].b = m.b, s.part[0].y = m.y;
    s.part[0].n = (int)p->n, s.part[0].k = (int)p->k;
    s.part[0].a_stride = (int)p->a_stride, s.part[0].b_stride = (int)p->b_stride, s.part[0].y_stride = (int)p->y_stride;
    return s;
}

static void add_small_ways(struct cuda_backend *b, struct cuda_plan *plan)
{
    const struct product *p = &plan->product;
    const double flops = 2.0 * (double)p->m * (double)p->n * (double)p->k;
    const struct small_products s = as_small(p, {});
    if (p->batch > 1 || p->operands == F32 || (p->end != END_PLAIN && p->end != END_TIMES) || p->m > INT32_MAX || p->n > INT32_MAX || p->k > INT32_MAX)
        return;
    plan->small_ways = cuda_small_ways(b, &s, flops);
    const int way = cuda_small_by_rule(b, &s, flops);
    plan->way = way >= 0 ? plan->n_ways + way : 0;
}

/* ---- all plans of a backend ---- */

static void free_plan(struct cuda_plan *p)
{
    if (p->how)
        cublasLtMatmulDescDestroy(p->how);
    if (p->a)
        cublasLtMatrixLayoutDestroy(p->a);
    if (p->b)
        cublasLtMatrixLayoutDestroy(p->b);
    if (p->y)
        cublasLtMatrixLayoutDestroy(p->y);
    free(p);
}

void cuda_free_plans(struct cuda_backend *b)
{
    while (b->plans) {
        struct cuda_plan *p = b->plans;
        b->plans = p->next;
        free_plan(p);
    }
}

/* One that is timed is not one that is not: what was captured with a plan must not change when another program comes. */
static struct cuda_plan *find_plan(const struct cuda_backend *b, const struct product *p, bool timed)
{
    for (struct cuda_plan *plan = b->plans; plan; plan = plan->next)
        if (product_equal(&plan->product, p) && plan->timed == timed)
            return plan;
    return NULL;
}

static enum status make_plan(struct cuda_backend *b, struct cuda_plan **out, const struct product *p, bool timed, struct error *err)
{
    struct cuda_plan *plan = (struct cuda_plan *)calloc(1, sizeof *plan);
    if (!plan)
        return error_no_memory(err, "the plan of a product", sizeof *plan);
    plan->product = *p;
    plan->timed = timed;
    const cublasStatus_t s = fill_plan(b, plan);
    if (s != CUBLAS_STATUS_SUCCESS) {
        free_plan(plan);
        return error_set(err, CANNOT, "cuBLAS cannot plan a product (%lld, %lld) (%lld, %lld): %s", (long long)p->m, (long long)p->k,
                         (long long)p->k, (long long)p->n, cublasGetStatusString(s));
    }
    add_small_ways(b, plan);
    plan->next = b->plans;
    *out = b->plans = plan;
    return OK;
}

enum status cuda_plan_product(struct cuda_backend *b, struct cuda_plan **out, const struct product *p, bool timed, struct error *err)
{
    const struct product whole = filled_in(*p);
    *out = find_plan(b, &whole, timed);
    return *out ? OK : make_plan(b, out, &whole, timed, err);
}

/* ---- a product ---- */

static cublasStatus_t by_plain_cublas(const struct cuda_call *c, const struct product *p, const struct product_memory *m)
{
    const float one = 1, beta = m->add;
    const cudaDataType_t type = cuda_type(p->operands);
    if (p->batch > 1 || (p->end != END_PLAIN && p->end != END_BIAS))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return cublasGemmEx_64(c->blas, p->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N, p->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N, p->n, p->m, p->k, &one,
                           m->b, type, p->b_stride, m->a, type, p->a_stride, &beta, m->y, cuda_type(p->result), p->y_stride, compute_of(p),
                           CUBLAS_GEMM_DEFAULT);
}

static cublasStatus_t by_plan(const struct cuda_call *c, struct cuda_plan *p, const struct product_memory *m)
{
    const float one = 1, beta = m->add;
    cublasStatus_t s = CUBLAS_STATUS_SUCCESS;
    if (p->adds_bias)
        s = set_pointer(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, m->bias);
    if (s == CUBLAS_STATUS_SUCCESS && has_beside(p->product.end))
        s = set_pointer(p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, m->beside);
    if (s != CUBLAS_STATUS_SUCCESS)
        return s;
    return cublasLtMatmul((cublasLtHandle_t)c->blas, p->how, &one, m->b, p->b, m->a, p->a, &beta, m->y, p->y, m->y, p->y,
                          &p->ways[p->way].algo, c->workspace, c->workspace_bytes, c->stream);
}

void cuda_multiply(const struct cuda_call *c, struct cuda_plan *p, struct product_memory m)
{
    if (cuda_plan_is_small(p)) {
        struct small_products small = as_small(&p->product, m);
        small.pieces = 1 << (p->way - p->n_ways);
        cuda_small_launch(c, small);
        return;
    }
    if ((p->n_ways ? by_plan(c, p, &m) : by_plain_cublas(c, &p->product, &m)) != CUBLAS_STATUS_SUCCESS)
        refuse(c);
}

void cuda_multiply_batch(const struct cuda_call *c, struct cuda_plan *p, struct product_memory m, struct product_apart apart)
{
    if (set_batches(p, &apart) == CUBLAS_STATUS_SUCCESS)
        cuda_multiply(c, p, m);
    else
        refuse(c);
}
