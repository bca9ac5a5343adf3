/* The gradient of an embedding for many ids. Every row of the table is the sum of the gradients at the places where its id is, in an order
 * that depends on the ids alone:
 * 1. Places are sorted by id, stably. A block sorts those of DIGITS ids next to each other, for which it looks at all of them.
 * 2. The sorted list is cut into windows of 32 places. A warp sums its window and writes the rows that begin and end in it; of rows that
 *    go beyond it, it keeps what it has.
 * 3. Rows that go over several windows are summed from that; rows without a place become zero. */
#include "ops/cuda/embedding.cuh"

enum { DIGITS = 256, SORT_THREADS = 1024, SORT_WARPS = SORT_THREADS / WARP, SORT_AHEAD = 8 };
enum { WINDOW = WARP, WINDOW_AHEAD = 8, ROWS_WARPS = 8, ROWS_TILE = 4 * WARP, ROWS_BLOCKS = 1024 };

/* ---- 1. sorting ---- */

struct sorting {                    /* of the ids [from, from + DIGITS) */
    const int32_t *ids;
    int32_t from, vocab, first, end;        /* the warp's ids are at [first, end) */
    int32_t (*counts)[DIGITS];      /* of the warp: how often it has each id; later, where the next place of that id goes */
};

/* The lanes below this one. */
static __device__ inline unsigned lanes_below(void) { return (1u << threadIdx.x % WARP) - 1; }

/* The lanes of `among` that have the same digit, of DIGITS: bit by bit. */
static __device__ inline unsigned lanes_with(int32_t digit, unsigned among)
{
#pragma unroll
    for (int bit = 1; bit < DIGITS; bit *= 2) {
        const unsigned set = __ballot_sync(0xffffffffu, (digit & bit) != 0);
        among &= digit & bit ? set : ~set;
    }
    return among;
}

/* Goes through the warp's ids, 32 at a time, several of these read ahead. f(place, digit, ours): `ours` are the lanes with ids of the
 * block. Returns how many ids of this lane are smaller than those. */
template <class F> static __device__ inline int32_t each_id(const struct sorting &s, const F &f)
{
    const int lane = threadIdx.x % WARP;
    int32_t before = 0;
    for (int32_t i = s.first; i < s.end; i += SORT_AHEAD * WARP) {
        int32_t ids[SORT_AHEAD];
#pragma unroll
        for (int k = 0; k < SORT_AHEAD; k++)
            ids[k] = i + k * WARP + lane < s.end ? s.ids[i + k * WARP + lane] : -1;
#pragma unroll
        for (int k = 0; k < SORT_AHEAD; k++) {
            const int32_t digit = ids[k] - s.from;
            const bool mine = digit >= 0 && digit < DIGITS && ids[k] < s.vocab;
            before += ids[k] >= 0 && digit < 0;
            const unsigned ours = __ballot_sync(0xffffffffu, mine);
            if (ours)
                f(i + k * WARP + lane, digit, ours);
        }
    }
    return before;
}

/* counts (warps, digits) become where each warp's first place of each digit goes, start where each id begins. `before`: smaller ids, of
 * this thread. Thread d has digit d; threads behind the digits only take part. */
static __device__ void count_up(int32_t (*counts)[DIGITS], int32_t *start, int32_t before, int32_t from, int32_t vocab)
{
    __shared__ int32_t sums[SORT_WARPS];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, digit = threadIdx.x;
    before = block_sum(before);
    int32_t all = 0;
    for (int w = 0; w < SORT_WARPS && digit < DIGITS; w++) {
        const int32_t has = counts[w][digit];
        counts[w][digit] = all;
        all += has;
    }
    int32_t upto = all;             /* of this warp's digits, up to this one */
    for (int d = 1; d < WARP; d *= 2) {
        const int32_t other = __shfl_up_sync(0xffffffffu, upto, d);
        upto += lane >= d ? other : 0;
    }
    if (lane == WARP - 1)
        sums[warp] = upto;
    __syncthreads();
    int32_t at = before + upto - all;
    for (int w = 0; w < warp; w++)
        at += sums[w];
    for (int w = 0; w < SORT_WARPS && digit < DIGITS; w++)
        counts[w][digit] += at;
    if (digit < DIGITS && from + digit < vocab) {
        start[from + digit] = at;
        if (from + digit == vocab - 1)
            start[vocab] = at + all;
    }
}

/* order (n): places, sorted by id; start (vocab + 1): where each id begins in it. */
static __global__ void __launch_bounds__(SORT_THREADS)
sort_places(int32_t *order, int32_t *start, const int32_t *ids, int32_t n, int32_t vocab)
{
    __shared__ int32_t counts[SORT_WARPS][DIGITS];
    const int warp = threadIdx.x / WARP;
    const int32_t from = (int32_t)blockIdx.x * DIGITS, share = (n + SORT_WARPS - 1) / SORT_WARPS;
    const struct sorting s = {ids, from, vocab, warp * share, min(n, (warp + 1) * share), &counts[warp]};
    for (int i = threadIdx.x; i < SORT_WARPS * DIGITS; i += SORT_THREADS)
        counts[i / DIGITS][i % DIGITS] = 0;
    __syncthreads();
    const int32_t before = each_id(s, [&](int32_t, int32_t digit, unsigned ours) {
        if (ours >> threadIdx.x % WARP & 1)
            atomicAdd(&(*s.counts)[digit], 1);
    });
    __syncthreads();
    count_up(counts, start, before, from, vocab);
    __syncthreads();
    each_id(s, [&](int32_t place, int32_t digit, unsigned ours) {
        const unsigned same = lanes_with(digit, ours), earlier = same & lanes_below();
        const bool mine = ours >> threadIdx.x % WARP & 1;
        const int32_t next = mine ? (*s.counts)[digit] : 0;
        if (mine)
            order[next + __popc(earlier)] = place;
        __syncwarp();               /* all have read where to go on */
        if (mine && earlier == 0)
            (*s.counts)[digit] = next + __popc(same);
        __syncwarp();
    });
}

/* ---- 2. windows ---- */

struct windows {
    float *d_table;                 /* (vocab, width) */
    float *heads, *tails;           /* (windows, width): of the row that began before the window, and of the one that goes on after it */
    const int32_t *order, *start, *ids;
    int32_t vocab;
    int64_t width;
};

/* Where the sum of a window's part of a row goes. */
static __device__ inline float *part_of(const struct windows &a, int32_t id, int32_t window)
{
    const int32_t begins = a.start[id], ends = a.start[id + 1], first = window * WINDOW;
    if (begins >= first && ends <= first + WINDOW)
        return a.d_table + id * a.width;
    return (begins < first ? a.heads : a.tails) + window * a.width;
}

/* Warp: window blockIdx.x * (warps of a block) + its number; columns in tiles of P numbers for each lane. */
template <typename T> static __global__ void __launch_bounds__(128) sum_windows(const struct windows a, const T *dy)
{
    constexpr int P = packed<T>;
    const int lane = threadIdx.x % WARP;
    const int32_t window = blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
    const int32_t first = window * WINDOW, n = min((int32_t)WINDOW, a.start[a.vocab] - first);
    const int64_t col = ((int64_t)blockIdx.y * WARP + lane) * P;
    const bool whole = a.width % P == 0, inside = col < a.width;
    const int some = (int)min((long long)P, (long long)(a.width - col));
    const int32_t place = lane < n ? a.order[first + lane] : 0, id = lane < n ? a.ids[place] : -1;
    float sum[P] = {0};
    for (int i = 0; i < n; i += WINDOW_AHEAD) {         /* the same for all lanes */
        uint4 ahead[WINDOW_AHEAD];
#pragma unroll
        for (int k = 0; k < WINDOW_AHEAD; k++) {
            const int32_t at = __shfl_sync(0xffffffffu, place, i + k);
            ahead[k] = i + k < n && inside ? load_some(dy + at * a.width + col, some, whole) : no_words();
        }
#pragma unroll
        for (int k = 0; k < WINDOW_AHEAD; k++) {
            const int32_t mine = __shfl_sync(0xffffffffu, id, i + k), next = __shfl_sync(0xffffffffu, id, (i + k + 1) % WINDOW);
#pragma unroll
            for (int p = 0; p < P; p++)
                sum[p] += number_at<T>(ahead[k], p);
            if (i + k < n && (i + k + 1 == n || next != mine)) {
                if (inside)
                    store_some<P>(part_of(a, mine, window) + col, sum, some, whole);
#pragma unroll
                for (int p = 0; p < P; p++)
                    sum[p] = 0;
            }
        }
    }
}

/* ---- 3. rows ---- */

/* Row `id`, which goes over windows [first, last]: each warp sums some of them in their order, then what the warps have is summed. Four
 * columns for each lane. */
static __device__ void sum_parts(const struct windows &a, int32_t id, int32_t first, int32_t last)
{
    __shared__ float shared[ROWS_WARPS][ROWS_TILE];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int32_t share = (last - first + ROWS_WARPS) / ROWS_WARPS, from = first + warp * share, to = min(last + 1, from + share);
    for (int64_t tile = (int64_t)blockIdx.y * ROWS_TILE; tile < a.width; tile += (int64_t)gridDim.y * ROWS_TILE) {
        const int64_t col = tile + 4 * lane;
        const int some = (int)min(4ll, (long long)(a.width - col));
        float sum[4] = {0, 0, 0, 0};
#pragma unroll 4
        for (int32_t w = from; w < to && some > 0; w++) {
            const uint4 part = load_some((w == first ? a.tails : a.heads) + w * a.width + col, some, a.width % 4 == 0);
#pragma unroll
            for (int k = 0; k < 4; k++)
                sum[k] += number_at<float>(part, k);
        }
#pragma unroll
        for (int k = 0; k < 4; k++)
            shared[warp][4 * lane + k] = sum[k];
        __syncthreads();
        const int64_t mine = tile + threadIdx.x;
        if (threadIdx.x < ROWS_TILE && mine < a.width) {
            float all = 0;
            for (int w = 0; w < ROWS_WARPS; w++)
                all += shared[w][threadIdx.x];
            a.d_table[id * a.width + mine] = all;
        }
        __syncthreads();            /* before the sums of the next columns */
    }
}

static __device__ void write_zeros(float *to, int64_t width)        /* by a warp */
{
    const int lane = threadIdx.x % WARP;
    const int64_t fours = width % 4 == 0 ? width / 4 : 0;
    for (int64_t i = lane; i < fours; i += WARP)
        ((float4 *)to)[i] = make_float4(0, 0, 0, 0);
    for (int64_t i = 4 * fours + lane; i < width; i += WARP)
        to[i] = 0;
}

/* Ids of a block are far from each other, at most one for each warp: what is found often is often next to each other. */
static __global__ void __launch_bounds__(ROWS_WARPS * WARP) finish_rows(const struct windows a)
{
    const int32_t mine = blockIdx.x + (int32_t)(threadIdx.x / WARP) * gridDim.x;
    if (blockIdx.y == 0 && mine < a.vocab && a.start[mine] == a.start[mine + 1])
        write_zeros(a.d_table + mine * a.width, a.width);
    for (int64_t id = blockIdx.x; id < a.vocab; id += gridDim.x) {      /* the same for all threads */
        const int32_t begins = a.start[id], last = a.start[id + 1] - 1;
        if (last > begins && last / WINDOW > begins / WINDOW)
            sum_parts(a, (int32_t)id, begins / WINDOW, last / WINDOW);
    }
}

/* ---- */

struct sorted_sizes { size_t order, start, parts; };        /* bytes of scratch, one after the other; two of parts */

static struct sorted_sizes sorted_sizes(int64_t n, int64_t vocab, int64_t width)
{
    return {aligned((size_t)n * sizeof(int32_t)), aligned((size_t)(vocab + 1) * sizeof(int32_t)),
            aligned((size_t)(divide_up(n, WINDOW) * width) * sizeof(float))};
}

size_t sorted_embed_grad_scratch(const struct program *p, const struct op *op)
{
    const struct shape table = p->values[op->in[0]].shape;
    const int64_t n = shape_count(p->values[op->in[1]].shape);
    const struct sorted_sizes s = sorted_sizes(n, table.dim[0], table.dim[1]);
    return are_many_ids(n, table.dim[0]) ? s.order + s.start + 2 * s.parts : 0;
}

/* Where everything is. What is sorted lies in memory of the op's own where it has some: then it may have been sorted long before. */
static struct windows windows_of(const struct cuda_call *c, int32_t **order, int32_t **start)
{
    const struct shape table = cuda_in(c, 0)->shape;
    const struct sorted_sizes s = sorted_sizes(in_count(c, 1), table.dim[0], table.dim[1]);
    char *sorted = (char *)(c->own ? c->own : c->scratch), *parts = c->own ? (char *)c->scratch : sorted + s.order + s.start;
    *order = (int32_t *)sorted;
    *start = (int32_t *)(sorted + s.order);
    return {out_floats(c, 0), (float *)parts, (float *)(parts + s.parts), *order, *start, (const int32_t *)c->in[1], (int32_t)table.dim[0],
            table.dim[1]};
}

static void sort_launch(const struct cuda_call *c)
{
    int32_t *order, *start;
    const struct windows a = windows_of(c, &order, &start);
    sort_places<<<(unsigned)divide_up(a.vocab, DIGITS), SORT_THREADS, 0, c->stream>>>(order, start, a.ids, (int32_t)in_count(c, 1), a.vocab);
}

static void sum_launch(const struct cuda_call *c)
{
    int32_t *order, *start;
    const struct windows a = windows_of(c, &order, &start);
    const int64_t windows = divide_up(in_count(c, 1), WINDOW);
    with_type(cuda_in(c, 2)->dtype, [&](auto zero) {
        using T = decltype(zero);
        const dim3 blocks((unsigned)divide_up(windows, 4), (unsigned)divide_up(a.width, (int64_t)WARP * packed<T>));
        sum_windows<T><<<blocks, 4 * WARP, 0, c->stream>>>(a, (const T *)c->in[2]);
    });
    const int64_t vocab = a.vocab, rows = at_least(divide_up(vocab, ROWS_WARPS), at_most(vocab, ROWS_BLOCKS));
    const dim3 blocks((unsigned)rows, vocab <= ROWS_BLOCKS ? (unsigned)divide_up(a.width, ROWS_TILE) : 1);
    finish_rows<<<blocks, ROWS_WARPS * WARP, 0, c->stream>>>(a);
}

void launch_sorted_embed_grad(const struct cuda_call *c)
{
    sort_launch(c);
    sum_launch(c);
}

/* ---- in two pieces: the ids are there when a step begins ---- */

static int grad_pieces(const struct program *p, const struct op *op)
{
    return are_many_ids(shape_count(p->values[op->in[1]].shape), p->values[op->in[0]].shape.dim[0]) ? 2 : 1;
}

static void grad_piece_launch(const struct cuda_call *c, int piece)
{
    if (piece == 0)
        sort_launch(c);
    else
        sum_launch(c);
}

static size_t grad_own(const struct program *p, const struct op *op)
{
    const struct shape table = p->values[op->in[0]].shape;
    const struct sorted_sizes s = sorted_sizes(shape_count(p->values[op->in[1]].shape), table.dim[0], table.dim[1]);
    return s.order + s.start;
}

static int grad_touches(const struct cuda_call *c, int piece, struct lane_touch *out)
{
    out[0] = {c->own, grad_own(c->program, c->op), piece == 0};
    out[1] = cuda_touch_in(c, 1);
    if (piece == 0)
        return 2;
    out[2] = cuda_touch_in(c, 2);
    out[3] = {c->out[0], value_bytes(cuda_out(c, 0)), true};
    return 4;
}

const struct cuda_pieces cuda_embed_grad_pieces = {OP_EMBED_GRAD, grad_pieces, grad_piece_launch, grad_touches, grad_own, NULL};
