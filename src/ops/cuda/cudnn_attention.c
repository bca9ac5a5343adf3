/* Ops of attention by cuDNN: which ones, the plans that were made for them, and how they are launched. */
#include "ops/cuda/cudnn.h"

#ifdef HONE_CUDNN

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "ops/cuda/cudnn_int.h"

/* Where it is taken. Shorter sequences and smaller heads are the own kernel's; so is what would need more memory for its work than this:
 * the gradient that gives the same bits every time keeps a number for each pair of query and key. */
enum { FEWEST_ROWS = 256, SMALLEST_HEAD = 64, LARGEST_HEAD = 128, HEAD_STEP = 8, MOST_WORKSPACE = 1 << 30 };

static bool describe(struct cudnn_attention_of *out, const struct program *p, const struct op *op)
{
    const bool backward = op->kind == OP_ATTENTION_GRAD;
    if (!backward && op->kind != OP_ATTENTION)
        return false;
    const struct value *q = &p->values[op->in[backward]];
    const int64_t heads = op->attrs.heads, size = q->shape.dim[2] / heads;
    const bool more = op->n_in > (backward ? 7 : 3);            /* dropout counts as on the CPU, and packed samples: the own kernels' */
    *out = (struct cudnn_attention_of){q->shape.dim[0], heads, op->attrs.kv_heads, q->shape.dim[1], size,
                                       q->dtype == BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF, backward};
    return dtype_is_narrow(q->dtype) && op->attrs.causal && !more && out->seq >= FEWEST_ROWS && size >= SMALLEST_HEAD &&
           size <= LARGEST_HEAD && size % HEAD_STEP == 0;
}

/* ---- plans, made once for the process ---- */

struct entry {
    struct cudnn_attention_of what;
    struct cudnn_graph *graph;
    struct cudnn_plan plan;
    bool usable;
    struct entry *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries;

static bool same(const struct cudnn_attention_of *a, const struct cudnn_attention_of *b)
{
    return a->batch == b->batch && a->heads == b->heads && a->kv_heads == b->kv_heads && a->seq == b->seq && a->size == b->size &&
           a->type == b->type && a->backward == b->backward;
}

static struct entry *find(const struct cudnn_attention_of *what)
{
    struct entry *e = entries;
    while (e && !same(&e->what, what))
        e = e->next;
    return e;
}

static struct entry *add(const struct cudnn *lib, const struct cudnn_attention_of *what)
{
    struct entry *e = calloc(1, sizeof *e);
    struct cudnn_graph *g = calloc(1, sizeof *g);
    if (!e || !g) {
        free(e);
        free(g);
        return NULL;
    }
    g->lib = lib;
    cudnn_build_attention(g, what);
    *e = (struct entry){.what = *what, .graph = g, .next = entries};
    e->usable = cudnn_plan_of(g, 0, &e->plan) && e->plan.workspace <= MOST_WORKSPACE;
    if (!e->usable)
        cudnn_graph_free(g);
    return entries = e;
}

/* The plan of an op, if there is one; it is made where `lib` is given. */
static const struct cudnn_plan *plan_of(const struct cudnn_attention_of *what, const struct cudnn *lib)
{
    pthread_mutex_lock(&lock);
    struct entry *e = find(what);
    if (!e && lib)
        e = add(lib, what);
    pthread_mutex_unlock(&lock);
    return e && e->usable ? &e->plan : NULL;
}

/* ---- scratch: statistics as cuDNN wants them, what it keeps for each row, and its workspace ---- */

enum { ALIGNMENT = 256 };

struct parts { char *stats, *dots, *workspace; size_t bytes; };

static struct parts parts_of(const struct cudnn_attention_of *what, const struct cudnn_plan *plan, char *scratch)
{
    const size_t rows = (size_t)(what->batch * what->heads * what->seq) * sizeof(float);
    const size_t each = what->backward ? (rows + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : 0;
    char *start = scratch + (ALIGNMENT - (uintptr_t)scratch % ALIGNMENT) % ALIGNMENT;
    return (struct parts){start, start + each, start + 2 * each, ALIGNMENT + 2 * each + plan->workspace};
}

size_t cudnn_attention_scratch(const struct program *p, const struct op *op)
{
    struct cudnn_attention_of what;
    const struct cudnn *lib = describe(&what, p, op) ? cudnn_open() : NULL;
    const struct cudnn_plan *plan = lib ? plan_of(&what, lib) : NULL;
    return plan ? parts_of(&what, plan, NULL).bytes : 0;
}

bool cudnn_takes(const struct program *p, const struct op *op)
{
    struct cudnn_attention_of what;
    return describe(&what, p, op) && plan_of(&what, NULL);
}

/* ---- statistics ---- */

static bool reads(const struct op *op, value_id v)
{
    for (int i = 0; i < op->n_in; i++)
        if (op->in[i] == v)
            return true;
    return false;
}

/* Whether the statistics of a forward op are for nobody but cuDNN: then one is enough. */
static bool only_cudnn_reads(const struct program *p, const struct op *op)
{
    bool read = false;
    for (int i = 0; i < p->n_ops; i++) {
        if (!reads(&p->ops[i], op->out[1]) && !reads(&p->ops[i], op->out[2]))
            continue;
        if (!cudnn_takes(p, &p->ops[i]))
            return false;
        read = true;
    }
    return read;
}

/* Whether what a gradient reads was made by cuDNN, for cuDNN. */
static bool has_one_statistic(const struct program *p, const struct op *op)
{
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_ATTENTION && p->ops[i].out[1] == op->in[5])
            return cudnn_takes(p, &p->ops[i]) && only_cudnn_reads(p, &p->ops[i]);
    return false;
}

/* ---- launches ---- */

static bool forward(const struct cuda_call *c, const struct cudnn_attention_of *what, const struct cudnn_plan *plan)
{
    const struct parts parts = parts_of(what, plan, c->scratch);
    float scale = c->op->attrs.scale, masked = -INFINITY;
    void *memory[FORWARD_GIVEN] = {
        [FORWARD_Q] = c->in[0], [FORWARD_K] = c->in[1], [FORWARD_V] = c->in[2], [FORWARD_Y] = c->out[0], [FORWARD_STATS] = c->out[1],
        [FORWARD_SCALE] = &scale, [FORWARD_MASKED] = &masked};
    if (!cudnn_run(cudnn_open(), plan, memory, FORWARD_GIVEN, parts.workspace, c->stream))
        return false;
    if (!only_cudnn_reads(c->program, c->op))
        cudnn_fill_ones(c->out[2], what->batch * what->heads * what->seq, c->stream);
    return true;
}

static bool backward(const struct cuda_call *c, const struct cudnn_attention_of *what, const struct cudnn_plan *plan)
{
    const struct parts parts = parts_of(what, plan, c->scratch);
    const bool one_statistic = has_one_statistic(c->program, c->op);
    float scale = c->op->attrs.scale, masked = -INFINITY, one = 1;
    void *memory[BACKWARD_GIVEN] = {
        [BACKWARD_Q] = c->in[1], [BACKWARD_K] = c->in[2], [BACKWARD_V] = c->in[3], [BACKWARD_Y] = c->in[4], [BACKWARD_DY] = c->in[0],
        [BACKWARD_STATS] = one_statistic ? c->in[5] : parts.stats, [BACKWARD_DOTS] = parts.dots, [BACKWARD_DQ] = c->out[0], [BACKWARD_DK] = c->out[1],
        [BACKWARD_DV] = c->out[2], [BACKWARD_SCALE] = &scale, [BACKWARD_MASKED] = &masked, [BACKWARD_ONE] = &one};
    if (!one_statistic)
        cudnn_log_sums((float *)parts.stats, c->in[5], c->in[6], what->batch * what->heads * what->seq, c->stream);
    return cudnn_run(cudnn_open(), plan, memory, BACKWARD_GIVEN, parts.workspace, c->stream);
}

bool cudnn_attention(const struct cuda_call *c)
{
    struct cudnn_attention_of what;
    const struct cudnn_plan *plan = describe(&what, c->program, c->op) ? plan_of(&what, NULL) : NULL;
    if (plan && !(what.backward ? backward : forward)(c, &what, plan))
        cudaLaunchKernel(NULL, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, c->stream);      /* refused: who asks CUDA hears of it */
    return plan;
}

#else

size_t cudnn_attention_scratch(const struct program *p, const struct op *op)
{
    (void)p;
    (void)op;
    return 0;
}

bool cudnn_takes(const struct program *p, const struct op *op)
{
    (void)p;
    (void)op;
    return false;
}

bool cudnn_attention(const struct cuda_call *c)
{
    (void)c;
    return false;
}

#endif
