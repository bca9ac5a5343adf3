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
    if (h->gradients)
        cuda_head_second(c, &s);
}

/* Rows [first, first + rows), all but the gradient of w: T is the type of the operands. */
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
}

static void dw_launch(const struct cuda_call *c, const struct head *h, const struct head_room *r, int64_t first, int64_t rows)
{
    if (h->gradients)
        cuda_multiply(c, c->plans[DW + (rows < h->chunk ? CHUNK_PRODUCTS : 0)], {c->out[3], r->logits, r->x, NULL, NULL, first > 0});
}

/* What a call works with. */
struct head_work {
    struct head h;
    struct head_room r;
    bool swept;
};

static struct head_work head_work(const struct cuda_call *c)
{
    struct head_work w = {};
    w.h = head_of(c->program, c->op);
    w.r = head_room(&w.h, c->own ? c->own : c->scratch);
    w.swept = sweeps(c, &w.h, &w.r);
    return w;
}

/* What comes before all chunks. */
static void begin_launch(const struct cuda_call *c, const struct head_work *k)
{
    const struct head *h = &k->h;
    with_type(h->operands, [&](auto zero) {
        using T = decltype(zero);
        float *count = h->rows > COUNTED_ROWS || k->swept ? k->r.count : NULL;
        T *w = k->swept ? (T *)NULL : (T *)k->r.w;
        if (count || w)
            prepare_head<<<1 + (w ? blocks_for(h->stride * h->depth) : 0), SUM_THREADS, 0, c->stream>>>(
                count, (const int32_t *)c->in[2], h->rows, w, (const T *)c->in[1], h->vocab * h->depth, h->stride * h->depth);
    });
}

static void rows_launch(const struct cuda_call *c, const struct head_work *k, int64_t first, int64_t rows)
{
    if (k->swept)
        sweep_launch(c, &k->h, &k->r, first, rows);
    else
        with_type(k->h.operands, [&](auto zero) { chunk_launch<decltype(zero)>(c, &k->h, &k->r, first, rows); });
}

static void mean_launch(const struct cuda_call *c, const struct head_work *k)
{
    unsigned threads = 0;
    with_type(k->h.operands, [&](auto zero) { threads = loss_threads<decltype(zero)>(&k->h); });
    if (k->swept || !last_block_sums(&k->h, threads))
        mean_loss<<<1, SUM_THREADS, 0, c->stream>>>(out_floats(c, 0), out_floats(c, 1), k->r.losses, (const int32_t *)c->in[2], k->h.rows);
}

static void linear_loss_launch(const struct cuda_call *c)
{
    const struct head_work k = head_work(c);
    begin_launch(c, &k);
    for (int64_t first = 0; first < k.h.rows; first += k.h.chunk) {
        rows_launch(c, &k, first, at_most(k.h.chunk, k.h.rows - first));
        dw_launch(c, &k.h, &k.r, first, at_most(k.h.chunk, k.h.rows - first));
    }
    mean_launch(c, &k);
}

/* ---- in pieces, where there is one chunk: the gradient of w, and the mean, nobody waits for but the optimizer ---- */

static const size_t KEPT_BYTES = (size_t)512 << 20;     /* that are kept for the second piece, at most */

static int linear_loss_pieces(const struct program *p, const struct op *op)
{
    const struct head h = head_of(p, op);
    return h.gradients && h.rows == h.chunk && head_room(&h, NULL).bytes <= KEPT_BYTES ? 2 : 1;
}

static void linear_loss_piece_launch(const struct cuda_call *c, int piece)
{
    const struct head_work k = head_work(c);
    if (piece == 0) {
        begin_launch(c, &k);
        rows_launch(c, &k, 0, k.h.rows);
    } else {
        dw_launch(c, &k.h, &k.r, 0, k.h.rows);
        mean_launch(c, &k);
    }
}

static int linear_loss_touches(const struct cuda_call *c, int piece, struct lane_touch *out)
{
    int n = 0;
    out[n++] = {c->own, linear_loss_scratch(c->program, c->op), piece == 0};
    for (int i = piece == 0 ? 0 : 2; i < (piece == 0 ? c->op->n_in : 3); i++)      /* the second one: targets */
        out[n++] = cuda_touch_in(c, i);
    for (int i = 0; i < c->op->n_out; i++)
        if (i < 2 || i == 2 + piece)
            out[n++] = {c->out[i], value_bytes(cuda_out(c, i)), true};
    return n;
}

static size_t no_scratch(const struct program *, const struct op *, int) { return 0; }

const struct cuda_pieces cuda_linear_loss_pieces = {OP_LINEAR_LOSS, linear_loss_pieces, linear_loss_piece_launch, linear_loss_touches,
                                                    linear_loss_scratch, no_scratch};

const struct cuda_kernel cuda_head[] = {
    {OP_LINEAR_LOSS, "chunks", linear_loss_launch, linear_loss_scratch},
    {OP_KINDS, NULL, NULL, NULL},
};
