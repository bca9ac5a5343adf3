/* Tuned: the parts of attention that are not products: copies, transposes, and what dropout keeps. */
#include "core/rng.h"
#include "ops/cpu/bf16.h"
#include "ops/cpu/tuned/flash.h"
#include "ops/cpu/tuned/wide_pack.h"

enum { NEAR = 8192 };           /* floats: half of a first-level cache holds the queries, or keys, of all heads of a sequence */

/* HONE_AMX: this is the variant for CPUs that may have it. */
#if defined(HONE_AMX)
static bool by_tiles(const struct op *op) { return op->attrs.round == ROUND_BF16 && cpu_bf16_way() == BF16_AMX; }
#else
static bool by_tiles(const struct op *op) { return (void)op, false; }
#endif

struct flash TUNED(flash_of)(const struct program *p, const struct op *op, void *const *in)
{
    const int first = op->kind == OP_ATTENTION_GRAD, tick = op_attention_tick(op), starts = op_attention_starts(op);
    const struct op_attrs *a = &op->attrs;
    const struct shape q = p->values[op->in[first]].shape;
    struct flash f = {.batch = q.dim[0], .heads = a->heads, .kv_heads = a->kv_heads, .group = a->heads / a->kv_heads,
                      .seq = q.dim[1], .size = q.dim[2] / a->heads, .causal = a->causal, .scale = a->scale};
    f.width = up_to(f.size, LANES);
    f.rows = up_to(f.seq, TILE);
    f.in_place = f.width == f.size && f.seq % PANEL == 0 && f.seq * f.heads * f.size <= NEAR;
    f.direct = f.in_place && f.seq <= KEYS;
    f.tiles = by_tiles(op);
    if (!in)
        return f;
    f.q = in[first];
    f.k = in[first + 1];
    f.v = in[first + 2];
    f.starts = starts >= 0 ? in[starts] : NULL;
    if (tick >= 0) {
        f.prob = a->prob;
        f.seed = a->seed;
        f.first = a->first;
        f.stream = a->stream << 32 | (uint32_t)*(const int32_t *)in[tick];
    }
    return f;
}

/* Rows are short: a loop of our own, for memcpy costs more to call than to do. */
static inline void copy_row(float *to, int64_t width, const float *from, int64_t size)
{
    int64_t e = 0;
    for (; e + LANES <= size; e += LANES)
        store(to + e, load(from + e));
    for (; e < size; e++)
        to[e] = from[e];
    for (; e < width; e++)
        to[e] = 0;
}

/* LANES rows, columns by fours: rows of LANES, times scale. */
#if defined(HONE_WIDE_TILE)
INLINE void turn_rows(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t columns, float scale)
{
    for (int64_t e = 0; e + 4 <= columns; e += 4)
        wide_transpose(to + e * to_row, to_row, from + e, from_row, scale);
}
#else
/* Four rows of four become four columns of four. */
static inline void transpose_quad(float *to, int64_t to_row, quad a, quad b, quad c, quad d)
{
    const quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const quad cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(quad *)to = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
    *(quad *)(to + to_row) = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
    *(quad *)(to + 2 * to_row) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    *(quad *)(to + 3 * to_row) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

INLINE void turn_rows(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t columns, float scale)
{
    for (int64_t e = 0; e + 4 <= columns; e += 4)
        transpose_quad(to + e * to_row, to_row, *(const quad *)(from + e) * scale, *(const quad *)(from + from_row + e) * scale,
                       *(const quad *)(from + 2 * from_row + e) * scale, *(const quad *)(from + 3 * from_row + e) * scale);
}
#endif

/* `copy` is NULL in calls that want the transpose alone, so that this inlines into two loops. */
INLINE void transpose(float *to, int64_t to_row, float *copy, int64_t width, const float *from, int64_t from_row, int64_t rows,
                      int64_t columns, float scale)
{
    const int64_t whole_rows = rows / LANES * LANES, whole_columns = columns / 4 * 4;
    for (int64_t i = 0; i < whole_rows; i += LANES) {
        expect_rows(from + (i + AHEAD) * from_row, from_row, LANES, columns);
        turn_rows(to + i, to_row, from + i * from_row, from_row, columns, scale);
    }
    for (int64_t i = whole_columns < columns ? 0 : whole_rows; i < rows; i++)
        for (int64_t e = i < whole_rows ? whole_columns : 0; e < columns; e++)
            to[e * to_row + i] = from[i * from_row + e] * scale;
    for (int64_t i = 0; copy && i < rows; i++)
        copy_row(copy + i * width, width, from + i * from_row, columns);
}

void TUNED(flash_transpose)(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows, int64_t columns,
                            float scale)
{
    transpose(to, to_row, NULL, 0, from, from_row, rows, columns, scale);
}

void TUNED(flash_take)(float *to, int64_t to_row, float *copy, int64_t width, const float *from, int64_t from_row, int64_t rows,
                       int64_t columns, float scale)
{
    transpose(to, to_row, copy, width, from, from_row, rows, columns, scale);
}

void TUNED(flash_copy)(float *to, int64_t width, int64_t padded, const float *from, int64_t from_row, int64_t rows,
                       int64_t size)
{
    for (int64_t i = 0; i < rows; i++) {
        expect_rows(from + (i + AHEAD) * from_row, from_row, 1, size);
        copy_row(to + i * width, width, from + i * from_row, size);
    }
    memset(to + rows * width, 0, (size_t)((padded - rows) * width) * sizeof *to);
}

/* Blocks first, first + 1, ... of a random stream, as rng_block gives them one by one. */
enum { BATCH = 8 };
static void random_blocks(uint32_t *words, uint64_t key, uint64_t stream, uint64_t first)
{
    uint32_t c0[BATCH], c1[BATCH], c2[BATCH], c3[BATCH], k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int n = 0; n < BATCH; n++) {
        c0[n] = (uint32_t)(first + (uint64_t)n);
        c1[n] = (uint32_t)((first + (uint64_t)n) >> 32);
        c2[n] = (uint32_t)stream;
        c3[n] = (uint32_t)(stream >> 32);
    }
    for (int round = 0; round < 10; round++) {
#pragma omp simd
        for (int n = 0; n < BATCH; n++) {
            const uint64_t p0 = (uint64_t)0xD2511F53u * c0[n], p1 = (uint64_t)0xCD9E8D57u * c2[n];
            c0[n] = (uint32_t)(p1 >> 32) ^ c1[n] ^ k0;
            c1[n] = (uint32_t)p1;
            c2[n] = (uint32_t)(p0 >> 32) ^ c3[n] ^ k1;
            c3[n] = (uint32_t)p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int n = 0; n < BATCH; n++) {
        words[4 * n] = c0[n];
        words[4 * n + 1] = c1[n];
        words[4 * n + 2] = c2[n];
        words[4 * n + 3] = c3[n];
    }
}

/* One query's factors for keys [key, key + n): a row of the weights (B, H, T, T) begins at row * T. */
static void keep_row(float *keep, const struct flash *f, int64_t row, int64_t key, int64_t n)
{
    const uint64_t at = (uint64_t)(f->first + row * f->seq + key), skip = at % 4;
    const float scale = 1 / (1 - f->prob);
    uint32_t words[KEYS + 4 + 4 * BATCH];
    for (int64_t k = 0; k < (int64_t)skip + n; k += 4 * BATCH)
        random_blocks(words + k, f->seed, f->stream, at / 4 + (uint64_t)k / 4);
    for (int64_t j = 0; j < n; j++)
        keep[j] = rng_unit(words[skip + (uint64_t)j]) < f->prob ? 0 : scale;
}

void TUNED(flash_keep)(float *keep, const struct flash *f, const struct sight *g)
{
    float row[KEYS];
    memset(keep, 0, (size_t)(up_to(g->keys, TILE) * PANEL) * sizeof *keep);
    for (int64_t i = g->query; i < least(g->query + PANEL, f->seq); i++) {
        const int64_t n = f->causal ? least(g->keys, i + 1 - g->key) : g->keys;
        if (n <= 0)
            continue;
        keep_row(row, f, g->head * f->seq + i, g->key, n);
        for (int64_t j = 0; j < n; j++)
            keep[j * PANEL + (i - g->query)] = row[j];
    }
}
