/* The loss of a linear head, x (rows, depth) and w (vocab, depth), whose logits are made, used and overwritten a chunk of rows at a time. They
 * are of the type of the operands; their gradient takes their place. Where rows are short, logits are never stored (head_hopper.cu). */
#include "ops/cuda/head_hopper.h"
#include "ops/cuda/head_narrow.cuh"
#include "ops/cuda/products.h"

struct head {
    int64_t rows, depth, vocab;
    int64_t stride;                 /* from a row of logits to the next: each is 16-byte aligned */
    bool padded;                    /* vocab is less: products have a copy of w with rows of zeros, or they would take several times as long */
    int64_t chunk;                  /* rows whose logits there are at once */
    enum dtype operands, dx;
    bool gradients, tf32;
};

/* Large chunks make large products. */
enum { CHUNK_UNIT = 128 };
static const int64_t LOGITS_BYTES = 1 << 30;

static int64_t rows_at_once(int64_t rows, int64_t row_bytes)
{
    const int64_t fit = at_least(1, LOGITS_BYTES / row_bytes / CHUNK_UNIT) * CHUNK_UNIT;
    const int64_t even = divide_up(divide_up(rows, divide_up(rows, fit)), CHUNK_UNIT) * CHUNK_UNIT;
    return at_most(even, rows);
}

static struct head head_of(const struct program *p, const struct op *op)
{
    const struct value *x = &p->values[op->in[0]], *w = &p->values[op->in[1]];
    const int64_t size = (int64_t)dtype_size(x->dtype), pack = 16 / size;
    struct head h = {};
    h.rows = shape_rows(x->shape);
    h.depth = shape_last(x->shape);
    h.vocab = w->shape.dim[0];
    h.stride = divide_up(h.vocab, pack) * pack;
    h.padded = h.stride != h.vocab;
    h.chunk = rows_at_once(h.rows, h.stride * size);
    h.operands = x->dtype;
    h.gradients = op->attrs.parts == 4;
    h.dx = h.gradients ? p->values[op->out[2]].dtype : F32;
    h.tf32 = op->attrs.round == ROUND_TF32;
    return h;
}

/* ---- the products of a chunk, and of the shorter one at the end where there is one ---- */

enum { LOGITS, DX, DW, CHUNK_PRODUCTS };

static void chunk_products(struct product out[CHUNK_PRODUCTS], const struct head *h, int64_t rows)
{
    struct product p = {};
    p.operands = p.result = h->operands;
    p.tf32 = h->tf32;
    p.m = rows, p.n = h->stride, p.k = h->depth;
    p.trans_b = true;
    p.y_stride = h->stride;
    out[LOGITS] = p;
    p.n = h->depth, p.k = h->stride;
    p.trans_b = false;
    p.a_stride = h->stride, p.y_stride = 0;
    p.result = h->operands == F32 ? F32 : h->dx;
    out[DX] = p;
    p.m = h->vocab, p.k = rows;
    p.trans_a = true;
    p.result = F32;
    out[DW] = p;
}

int cuda_loss_products(struct product *out, const struct program *p, const struct op *op)
{
    const struct head h = head_of(p, op);
    const int64_t rest = h.rows % h.chunk;
    chunk_products(out, &h, h.chunk);
    if (rest)
        chunk_products(out + CHUNK_PRODUCTS, &h, rest);
    return rest ? 2 * CHUNK_PRODUCTS : CHUNK_PRODUCTS;
}

/* ---- the scratch of a call, cut into parts ---- */

struct head_room {
    void *w;                        /* (stride, depth), where it is padded; else NULL */
    void *logits;                   /* (chunk, stride) */
    void *x;                        /* (chunk, depth), padding as zeros */
    float *dx;                      /* (chunk, depth) in f32, where narrow ones cannot be had of the operands; else NULL */
    float *losses, *count;          /* (rows), one */
    float *shifts;                  /* (chunk): of the logits that are not stored */
    size_t bytes;
};

static void *cut(struct head_room *r, void *scratch, int64_t n, size_t size)
{
    void *at = (char *)scratch + r->bytes;
    r->bytes += aligned((size_t)n * size);
    return at;
}

static struct head_room head_room(const struct head *h, void *scratch)
{
    const size_t size = dtype_size(h->operands);
    struct head_room r = {};
    r.w = h->padded ? cut(&r, scratch, h->stride * h->depth, size) : NULL;
    r.logits = cut(&r, scratch, h->chunk * h->stride, size);
    r.x = cut(&r, scratch, h->gradients ? h->chunk * h->depth : 0, size);
    r.dx = h->operands == F32 && h->dx != F32 ? (float *)cut(&r, scratch, h->chunk * h->depth, sizeof(float)) : NULL;
    r.losses = (float *)cut(&r, scratch, h->rows, sizeof(float));
    r.count = (float *)cut(&r, scratch, 1, sizeof(float));
    r.shifts = (float *)cut(&r, scratch, h->chunk, sizeof(float));
    return r;
}

static size_t linear_loss_scratch(const struct program *p, const struct op *op)
{
    const struct head h = head_of(p, op);
    return head_room(&h, NULL).bytes;
}

/* ---- launches ---- */

/* Shared memory that a row takes, where as much can be had: two rows at once fill that of an H100. */
template <typename T> static size_t held_bytes(int64_t stride)
{
    enum { PLAIN = 48 << 10, MOST = 110 << 10 };
    const size_t bytes = (size_t)stride * sizeof(T);
    if (bytes > MOST)
        return 0;
    if (bytes > PLAIN && cudaFuncSetAttribute(loss_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, MOST) != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    return bytes;
}

static unsigned row_threads(int64_t packs)
{
    return (unsigned)at_most(divide_up(packs > 512 ? divide_up(packs, 4) : packs, WARP) * WARP, 1024);
}

enum { SUMMED_ROWS = 16 };          /* each thread of the last block may add up so many rows; else a block of its own does, with more threads */

static bool last_block_sums(const struct head *h, unsigned threads) { return h->rows <= (int64_t)threads * SUMMED_ROWS; }

template <typename T> static bool is_narrow(const struct head *h) { return h->stride / pack_size<T>() <= WARP; }

template <typename T> static unsigned loss_threads(const struct head *h)
{
    return is_narrow<T>(h) ? (unsigned)NARROW_THREADS : row_threads(h->stride / pack_size<T>());
}

template <typename T> static void loss_launch(const struct cuda_call *c, const struct head *h, const struct head_room *r, int64_t first,
                                              int64_t rows)
{
    const size_t bytes = held_bytes<T>(h->stride);
    const unsigned threads = loss_threads<T>(h);
    chunk<T> k = {};
    k.z = (T *)r->logits;
    k.kept = h->gradients ? (T *)r->x : (T *)NULL;
    k.x = (const T *)c->in[0] + first * h->depth;
    k.losses = r->losses + first;
    k.all_targets = (const int32_t *)c->in[2];
    k.targets = k.all_targets + first;
    k.count = h->rows > COUNTED_ROWS ? r->count : NULL;
    k.scale = c->op->n_in > 3 ? in_floats(c, 3) : NULL;
    k.rows = rows, k.vocab = h->vocab, k.stride = h->stride, k.depth = h->depth, k.all_rows = h->rows;
    k.held = bytes > 0;
    k.counter = first + rows == h->rows && last_block_sums(h, threads) ? cuda_counter(c) : NULL;
    k.mean = out_floats(c, 0), k.known = out_floats(c, 1), k.all_losses = r->losses;
    if (is_narrow<T>(h))
        narrow_loss_kernel<T><<<blocks_at_once(rows, NARROW_ROWS), threads, 0, c->stream>>>(k);
    else
        loss_kernel<T><<<blocks_of(rows), threads, bytes, c->stream>>>(k);
}

/* Rows [first, first + rows), where logits are not stored. */
static struct head_sweep sweep_of(const struct cuda_call *c, const struct head *h, const struct head_room *r, int64_t first, int64_t rows)
{
    struct head_sweep s = {};
    s.x = (const char *)c->in[0] + (size_t)(first * h->depth) * dtype_size(h->operands);
    s.w = c->in[1];
    s.targets = (const int32_t *)c->in[2] + first;
    s.count = r->count;
    s.scale = c->op->n_in > 3 ? in_floats(c, 3) : NULL;
    s.losses = r->losses + first, s.shifts = r->shifts;
    s.kept = h->gradients ? r->x : NULL;
    s.dz = r->logits;
    s.dx = h->gradients ? (char *)c->out[2] + (size_t)(first * h->depth) * dtype_size(h->dx) : NULL;
    s.rows = rows, s.vocab = h->vocab, s.depth = h->depth, s.stride = h->stride;
    s.f16 = h->operands == F16;
    s.wide_dx = h->dx == F32;
    return s;
}

static bool sweeps(const struct cuda_call *c, const struct head *h, const struct head_room *r)
{
    const struct head_sweep s = sweep_of(c, h, r, 0, h->chunk);
    return dtype_is_narrow(h->operands) && h->rows % h->chunk == 0 && cuda_head_sweeps(&s);
}

static void sweep_launch(const struct cuda_call *c, const struct head *h, const struct head_room *r, int64_t first, int64_t rows)
{
    const struct head_sweep s = sweep_of(c, h, r, first, rows);
    cuda_head_first(c, &s);
    if (!h->gradients)
        return;
    cuda_head_second(c, &s);
    cuda_multiply(c, c->plans[DW], {c->out[3], s.dz, s.kept, NULL, NULL, first > 0});
}

/* Rows [first, first + rows): T is the type of the operands. */
template <typename T> static void chunk_launch(const struct cuda_call *c, const struct head *h, const struct head_room *r, int64_t first,
                                               int64_t rows)
{
    struct cuda_plan *const *plans = c->plans + (rows < h->chunk ? CHUNK_PRODUCTS : 0);
    const T *x = (const T *)c->in[0] + first * h->depth;
    const void *w = r->w ? r->w : c->in[1];
    cuda_multiply(c, plans[LOGITS], {r->logits, x, w, NULL, NULL, false});
    loss_launch<T>(c, h, r, first, rows);
    if (!h->gradients)
        return;
    char *dx = (char *)c->out[2] + (size_t)(first * h->depth) * dtype_size(h->dx);
    cuda_multiply(c, plans[DX], {r->dx ? (void *)r->dx : dx, r->logits, w, NULL, NULL, false});
    if (r->dx)
        with_type(h->dx, [&](auto zero) {
            narrow<<<blocks_for(rows * h->depth), THREADS, 0, c->stream>>>((decltype(zero) *)dx, r->dx, rows * h->depth);
        });
    cuda_multiply(c, plans[DW], {c->out[3], r->logits, r->x, NULL, NULL, first > 0});
}

static void linear_loss_launch(const struct cuda_call *c)
{
    const struct head h = head_of(c->program, c->op);
    const struct head_room r = head_room(&h, c->scratch);
    const int32_t *targets = (const int32_t *)c->in[2];
    const bool swept = sweeps(c, &h, &r);
    with_type(h.operands, [&](auto zero) {
        using T = decltype(zero);
        float *count = h.rows > COUNTED_ROWS || swept ? r.count : NULL;
        T *w = swept ? (T *)NULL : (T *)r.w;
        if (count || w)
            prepare_head<<<1 + (w ? blocks_for(h.stride * h.depth) : 0), SUM_THREADS, 0, c->stream>>>(
                count, targets, h.rows, w, (const T *)c->in[1], h.vocab * h.depth, h.stride * h.depth);
        for (int64_t first = 0; first < h.rows; first += h.chunk)
            if (swept)
                sweep_launch(c, &h, &r, first, h.chunk);
            else
                chunk_launch<T>(c, &h, &r, first, at_most(h.chunk, h.rows - first));
        if (swept || !last_block_sums(&h, loss_threads<T>(&h)))
            mean_loss<<<1, SUM_THREADS, 0, c->stream>>>(out_floats(c, 0), out_floats(c, 1), r.losses, targets, h.rows);
    });
}

const struct cuda_kernel cuda_head[] = {
    {OP_LINEAR_LOSS, "chunks", linear_loss_launch, linear_loss_scratch},
    {OP_KINDS, NULL, NULL, NULL},
};
