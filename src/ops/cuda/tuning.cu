/* Choosing among the ways in which cuBLASLt can do a product, by timing them on memory of their own. Ways round differently, so a choice
 * must not change from run to run: it is remembered by GPU, library and product (core/choices.h), and where it could not be, nothing is
 * timed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/cuda/device.cuh"
#include "ops/cuda/small.cuh"
#include "ops/cuda/timing.cuh"

struct bench {
    struct cuda_call call;
    struct stopwatch watch;
    char *memory;
    size_t bytes;
};

/* ---- on the device ---- */

/* Numbers of magnitude 1/2 to 1 in bf16, and finite ones in f16 and f32: zeros would be multiplied with less power, and so faster. */
static __global__ void fill_with_numbers(uint16_t *to, int64_t n)
{
    EACH(i, n) {
        const uint32_t x = (uint32_t)i * 2654435761u, bits = x ^ x >> 15;
        to[i] = (uint16_t)(0x3f00u | (bits & 0x7fu) | (bits & 0x8000u));
    }
}

/* ---- one way ---- */

static size_t matrix_bytes(int64_t rows, int64_t stride, enum dtype t) { return aligned((size_t)(rows * stride) * dtype_size(t)); }
static size_t a_bytes(const struct product *p) { return matrix_bytes(p->trans_a ? p->k : p->m, p->a_stride, p->operands); }
static size_t b_bytes(const struct product *p) { return matrix_bytes(p->trans_b ? p->n : p->k, p->b_stride, p->operands); }
static size_t y_bytes(const struct product *p) { return matrix_bytes(p->m, p->y_stride, p->result); }
static size_t bias_bytes(const struct product *p) { return matrix_bytes(1, p->n, F32); }
static size_t product_bytes(const struct product *p)
{
    const size_t batch = (size_t)at_least(1, p->batch);
    return batch * (a_bytes(p) + b_bytes(p) + 2 * y_bytes(p) + bias_bytes(p));
}

static void run_way(struct bench *b, struct cuda_plan *plan, int way)
{
    const struct product *p = &plan->product;
    struct product_memory m = {};
    const size_t batch = (size_t)at_least(1, p->batch);
    char *bias = b->memory, *x = bias + batch * bias_bytes(p), *w = x + batch * a_bytes(p), *y = w + batch * b_bytes(p);
    m.y = y, m.a = x, m.b = w, m.bias = bias, m.beside = y + batch * y_bytes(p);
    const struct product_apart apart = {(int64_t)(a_bytes(p) / dtype_size(p->operands)), (int64_t)(b_bytes(p) / dtype_size(p->operands)),
                                        (int64_t)(y_bytes(p) / dtype_size(p->result)), (int64_t)(bias_bytes(p) / sizeof(float))};
    plan->way = way;
    if (p->batch > 1)
        cuda_multiply_batch(&b->call, plan, m, apart);
    else
        cuda_multiply(&b->call, plan, m);
}

static const char *const way_names[PLAN_WAYS + SMALL_WAYS + 1] = {
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "small", "small by 2", "small by 4", "small by 8",
    "small by 16", "small by 32", "small by 64", NULL};
static int name_of_way(const struct cuda_plan *p, int way) { return way < p->n_ways ? way : PLAN_WAYS + way - p->n_ways; }
static int way_of_name(const struct cuda_plan *p, int name) { return name < PLAN_WAYS ? name : p->n_ways + name - PLAN_WAYS; }

static void time_plan(struct bench *b, struct cuda_plan *plan, struct choice *c)
{
    double us[PLAN_WAYS + SMALL_WAYS] = {};
    const int rule = plan->way, best = read_ways(&b->watch, us, plan->n_ways + plan->small_ways, [&](int way) { run_way(b, plan, way); });
    plan->way = rule;
    if (!isfinite(us[best]) || us[best] <= 0)
        return;
    c->variant = name_of_way(plan, best);
    c->us = us[best];
    c->first_us = isfinite(us[0]) ? us[0] : us[best];
}

/* ---- all of them ---- */

static enum status open_bench(struct bench *t, struct cuda_backend *b, struct cuda_plan *const *plans, int n)
{
    *t = {};
    t->call.stream = b->stream;
    t->call.blas = b->blas;
    t->call.workspace = b->blas_workspace;
    t->call.workspace_bytes = BLAS_WORKSPACE;
    for (int i = 0; i < n; i++)
        t->bytes = product_bytes(&plans[i]->product) > t->bytes ? product_bytes(&plans[i]->product) : t->bytes;
    if (cudaMalloc((void **)&t->memory, t->bytes) != cudaSuccess || !open_stopwatch(&t->watch, b->stream)) {
        cudaGetLastError();
        return CANNOT;
    }
    fill_with_numbers<<<blocks_for((int64_t)t->bytes / 2), THREADS, 0, b->stream>>>((uint16_t *)t->memory, (int64_t)t->bytes / 2);
    return OK;
}

static void close_bench(struct bench *t)
{
    close_stopwatch(&t->watch);
    if (t->memory)
        cudaFree(t->memory);
}

/* "NVIDIA H200, sm_90, cuBLAS 130100, kernels 0123456789abcdef: " */
int cuda_write_machine(const struct cuda_backend *b, char key[CHOICE_KEY_MOST])
{
    return snprintf(key, CHOICE_KEY_MOST, "%s, sm_%d%d, cuBLAS %zu, kernels %s: ", b->about.name, b->about.major, b->about.minor,
                    cublasLtGetVersion(), cuda_kernels_id);
}

static const char *const ends[] = {"", " + bias", " + bias, gelu", ", gelu gradient", ", times"};

/* "product NT bf16 -> f32 + bias (1024, 256, 512), 256 256 512": m, n, k, and the strides. */
static void write_key(const struct cuda_backend *b, const struct product *p, char key[CHOICE_KEY_MOST])
{
    const int n = cuda_write_machine(b, key);
    snprintf(key + n, (size_t)(CHOICE_KEY_MOST - n), "product %c%c %s%s -> %s%s (%lld, %lld, %lld), %lld %lld %lld", p->trans_a ? 'T' : 'N',
             p->trans_b ? 'T' : 'N', dtype_name(p->operands), p->tf32 ? " as tf32" : "", dtype_name(p->result), ends[p->end],
             (long long)p->m, (long long)p->n, (long long)p->k, (long long)p->a_stride, (long long)p->b_stride, (long long)p->y_stride);
    if (p->batch > 1)
        snprintf(key + strlen(key), CHOICE_KEY_MOST - strlen(key), ", %d of them", (int)p->batch);
}

static void time_missing(struct cuda_backend *b, struct cuda_plan *const *plans, struct choice *choices, int n)
{
    struct bench t;
    if (b->choices->remember(NULL, 0, NULL) != OK)
        return;
    int known = 0;
    if (open_bench(&t, b, plans, n) == OK)
        for (int i = 0; i < n; i++) {
            if (choices[i].variant < 0)
                time_plan(&t, plans[i], &choices[i]);
            known += choices[i].variant >= 0;
        }
    close_bench(&t);
    if (known < n || b->choices->remember(choices, n, NULL) != OK)
        b->choices->recall(choices, n);         /* without the new ones */
}

static void settle(struct cuda_backend *b, struct cuda_plan *const *plans, struct choice *choices, int n)
{
    if (b->choices->recall(choices, n) > 0)
        time_missing(b, plans, choices, n);
    for (int i = 0; i < n; i++) {
        const struct choice *c = &choices[i];
        const int way = c->variant < 0 ? -1 : way_of_name(plans[i], c->variant);
        if (way >= 0 && way < plans[i]->n_ways + plans[i]->small_ways) {
            plans[i]->way = way;
            plans[i]->saves_us = c->first_us - c->us;
        }
    }
}

static int unsettled(struct cuda_backend *b, struct cuda_plan **out)
{
    int n = 0;
    for (struct cuda_plan *p = b->plans; p; p = p->next)
        if (p->timed && !p->settled && p->n_ways + p->small_ways > 1) {
            if (out)
                out[n] = p;
            n++;
        }
    return n;
}

void cuda_tune_plans(struct cuda_backend *b)
{
    const int n = b->choices ? unsettled(b, NULL) : 0;
    if (n == 0)
        return;
    struct cuda_plan **plans = (struct cuda_plan **)calloc((size_t)n, sizeof *plans);
    struct choice *choices = (struct choice *)calloc((size_t)n, sizeof *choices);
    char (*keys)[CHOICE_KEY_MOST] = (char (*)[CHOICE_KEY_MOST])calloc((size_t)n, sizeof *keys);
    if (plans && choices && keys) {
        unsettled(b, plans);
        for (int i = 0; i < n; i++) {
            write_key(b, &plans[i]->product, keys[i]);
            choices[i].key = keys[i];
            choices[i].variants = way_names;
            plans[i]->settled = true;
        }
        settle(b, plans, choices, n);
    }
    free(plans);
    free(choices);
    free(keys);
}
