/* Matrix products where vectors have 8 or 16 lanes (AVX2, AVX-512). A block of b, which fits in the second-level cache, is packed as panels, or read where it is if rows of a are few;
 * a tile of rows of a, which fits in the first, passes by all of them. Few rows pass by columns of b one after the other instead, and so do all rows where everything is near: one panel
 * after the other is packed into the same memory. Tiles, or columns, are pieces that other threads may take. Rows of a are read where they are: a number of a is spread
 * over a vector when it is loaded, wherever it lies. They are copied only where their lines would compete for the same places of
 * the cache. */
#include "ops/cpu/tuned/wide_tile.h"

#if defined(HONE_WIDE_TILE)

#include <assert.h>

#include "ops/cpu/room.h"
#include "ops/cpu/tuned/wide_pack.h"

/* Of the packed block: k, where rows of a lie along it and across it, and floats. And the longest rows of b that few rows of a pass by where they lie. */
#if defined(__AVX512F__)
enum { ALONG = 512, ACROSS = 256, BLOCK = 192 << 10, IN_PLACE = 1024 };
#else
enum { ALONG = 256, ACROSS = 256, BLOCK = 48 << 10, IN_PLACE = 512 };
#endif
enum { ROWS = WIDE_ROWS / WIDE_LOWER * WIDE_LOWER };    /* of a, along k, that pass by together: whole tiles */
enum { ROW_GAP = ALONG + WIDE_LINE };                   /* between copied rows */
enum { COPIED = ROWS * ROW_GAP > ACROSS * WIDE_LANES ? ROWS * ROW_GAP : ACROSS * WIDE_LANES };
enum { ALIKE = 1024 };                                  /* floats: rows that far apart compete for the same cache lines */
enum { NEAR = 8192, FAR = 1 << 16 };                    /* floats: what the first-level cache holds beside other things; what the second may not hold, and of all operands what it does */

static_assert(BLOCK * sizeof(float) <= sizeof((struct gemm_room *)0)->f32 && BLOCK * sizeof(float) <= sizeof((struct gemm_room *)0)->bf16 && COPIED * sizeof(float) <= sizeof((struct gemm_room *)0)->aside, "a block and a tile of rows have room");

/* Columns [first, first + columns) of b over [k, k + depth). */
struct part { int64_t first, columns, k, depth; };

struct block {
    const struct gemm *g;
    struct part now, next;      /* next: no columns where there is none */
    float *packed;              /* panels of b */
    int64_t tiles, each;        /* of rows; those of a piece */
    int64_t alone;              /* the first, where it packs what all of them read */
    bool b_there, a_there;      /* read where they are */
    bool a_far, b_far, c_far;   /* not in a cache nearby: lines are fetched ahead */
    bool near;                  /* a, b and c are in a cache nearby, and a is read where it is */
};

/* Rows of a tile. */
static struct span tile_rows(int64_t m, int64_t tile, int64_t tiles) { return (struct span){m * tile / tiles, m * (tile + 1) / tiles}; }

/* Rows from `row` on, where they are, over the k of a part; and where what they give in some of its columns goes. */
static struct wide_product product_of(const struct gemm *g, const struct part *now, int64_t row)
{
    return (struct wide_product){.a = g->a + row * g->a_row + now->k * g->a_col, .a_row = g->a_row, .a_step = g->a_col, .depth = now->depth, .ldc = g->ldc,
                                 .scale = g->scale, .accumulate = g->accumulate || now->k > 0};
}

static void put_at(struct wide_product *p, const struct gemm *g, const struct part *now, int64_t row, int64_t j)
{
    p->c = g->c + row * g->ldc + now->first + j;
    p->bias = g->bias && now->k == 0 ? g->bias + now->first + j : NULL;
}

/* Copied, unless they are read where they are. */
static void take_rows(const struct block *b, struct span rows, struct wide_product *p)
{
    const struct gemm *g = b->g;
    if (b->a_there)
        return;
    float *copied = (float *)gemm_room()->aside;
    if (g->a_col == 1)
        wide_copy_along(copied, ROW_GAP, p->a, g->a_row, rows.hi - rows.lo, b->now.depth);
    else
        wide_copy_across(copied, p->a, g->a_col, rows.hi - rows.lo, b->now.depth);
    p->a = copied;
    p->a_row = g->a_col == 1 ? ROW_GAP : 1;
    p->a_step = g->a_col == 1 ? 1 : WIDE_LANES;
}

/* The panel that begins at column j of the block; packed now where this is the first tile of rows. */
static void take_panel(const struct block *b, int64_t j, float *packed, bool first, struct wide_product *p)
{
    const struct gemm *g = b->g;
    const int64_t left = b->now.columns - j, width = wide_panel(left), column = b->now.first + j;
    const float *from = g->b + (g->b_transposed ? column * g->ldb + b->now.k : b->now.k * g->ldb + column);
    p->columns = least(left, WIDE_COLUMNS);
    if (b->b_there && left >= width) {
        p->b = from;
        p->b_step = g->ldb;
        return;
    }
    p->b = packed;
    p->b_step = width;
    if (first)
        wide_pack_panel(packed, from, g->ldb, g->b_transposed, left, b->now.depth);
}

/* The rows that come next. Where they lie side by side those before have fetched the lines that they begin in. */
static struct wide_lines want_rows(const struct gemm *g, const struct part *of, struct span rows)
{
    const bool along = g->a_col == 1;
    const int64_t n = rows.hi - rows.lo, lines = (of->depth + WIDE_LINE - 1) / WIDE_LINE;
    const float *a = g->a + rows.lo * g->a_row + of->k * g->a_col;
    if (!along)
        return (struct wide_lines){.at = (const char *)(a + n - 1), .n = of->depth, .gap = 4 * g->a_col, .left = of->depth};
    return (struct wide_lines){.at = (const char *)a, .n = lines * n, .gap = 4 * g->a_row, .in_row = n, .wrap = 4 * WIDE_LINE - 4 * n * g->a_row, .left = n};
}

/* Of a block of b what tile t has to ask for. */
static struct wide_lines want_part(const struct gemm *g, const struct part *p, int64_t t, int64_t tiles)
{
    const int64_t rows = g->b_transposed ? p->columns : p->depth, in_row = ((g->b_transposed ? p->depth : p->columns) + WIDE_LINE - 1) / WIDE_LINE;
    const struct span mine = team_span(rows * in_row, 1, (int)t, (int)tiles);
    const float *from = g->b + (g->b_transposed ? p->first * g->ldb + p->k : p->k * g->ldb + p->first);
    const int64_t row = mine.lo / in_row, line = mine.lo - row * in_row;
    return (struct wide_lines){.at = (const char *)(from + row * g->ldb + line * WIDE_LINE), .n = mine.hi - mine.lo, .gap = 4 * WIDE_LINE, .in_row = in_row,
                               .wrap = 4 * g->ldb - 4 * WIDE_LINE * in_row, .left = in_row - line};
}

/* What is to be fetched while tile t passes by so many panels: the rows that come next, and what follows the block. */
static void want_ahead(const struct block *b, int64_t t, int64_t panels, struct wide_lines ahead[WIDE_LISTS])
{
    const struct gemm *g = b->g;
    const bool last = t + 1 == b->tiles;
    ahead[0] = ahead[1] = (struct wide_lines){0};
    if (b->a_far && (!last || b->next.columns))
        ahead[0] = want_rows(g, last ? &b->next : &b->now, tile_rows(g->m, last ? 0 : t + 1, b->tiles));
    if (b->b_far && b->next.columns)
        ahead[1] = want_part(g, &b->next, t, b->tiles);
    for (int i = 0; i < WIDE_LISTS; i++)
        ahead[i].share = (ahead[i].n + panels - 1) / panels;
}

/* A tile of rows past all panels. */
static void run_tile(const struct block *b, int64_t t)
{
    const struct gemm *g = b->g;
    const int64_t panels = (b->now.columns + WIDE_COLUMNS - 1) / WIDE_COLUMNS;
    const struct span rows = tile_rows(g->m, t, b->tiles);
    struct wide_lines ahead[WIDE_LISTS];
    struct wide_product p = product_of(g, &b->now, rows.lo);
    if (b->c_far || b->a_far || b->b_far) {
        want_ahead(b, t, panels, ahead);
        p.ahead = ahead;
        p.c_far = b->c_far;
    }
    take_rows(b, rows, &p);
    for (int64_t j = 0; j < panels; j++) {
        take_panel(b, j * WIDE_COLUMNS, b->packed + j * WIDE_COLUMNS * b->now.depth, t == 0, &p);
        put_at(&p, g, &b->now, rows.lo, j * WIDE_COLUMNS);
        TUNED(wide_tile)(rows.hi - rows.lo, &p);
    }
}

/* All rows past one panel after the other, each of which is packed into the same memory: where all there is is near. */
static void run_near(const struct block *b)
{
    const struct gemm *g = b->g;
    struct wide_product p = product_of(g, &b->now, 0);
    for (int64_t j = 0; j < b->now.columns; j += WIDE_COLUMNS) {
        take_panel(b, j, b->packed, true, &p);
        put_at(&p, g, &b->now, 0, j);
        TUNED(wide_tile)(g->m, &p);
    }
}

static void run_piece(void *argument, int piece, int helper)
{
    (void)helper;
    const struct block *b = argument;
    for (int64_t t = b->alone + piece * b->each; t < least(b->alone + (piece + 1) * b->each, b->tiles); t++)
        run_tile(b, t);
}

static void run_block(struct block *b)
{
    const struct gemm *g = b->g;
    const int64_t height = g->n <= 2 * WIDE_LANES ? WIDE_TALLEST : g->a_col == 1 ? ROWS : WIDE_ROWS;
    b->tiles = (g->m + height - 1) / height;
    b->each = piece_units(b->tiles, height * b->now.columns * b->now.depth);
    if (b->near && b->each >= b->tiles) {
        run_near(b);
        return;
    }
    b->alone = b->b_there && b->now.columns % WIDE_LANES == 0 ? 0 : 1;
    if (b->alone && b->tiles > 0)
        run_tile(b, 0);
    team_pieces(run_piece, b, piece_count(b->tiles - b->alone, b->each));
}

/* n in equal parts of at most `most`, in whole units. */
static int64_t equal_part(int64_t n, int64_t most, int64_t unit)
{
    const int64_t parts = (n + most - 1) / most;
    return parts > 1 ? up_to((n + parts - 1) / parts, unit) : n;
}

/* The part behind p: deeper, or else the next columns. */
static struct part next_part(const struct gemm *g, const struct part *p, int64_t columns, int64_t deep)
{
    const bool deeper = p->k + p->depth < g->k;
    const int64_t first = deeper ? p->first : p->first + p->columns, k = deeper ? p->k + p->depth : 0;
    return (struct part){first, least(columns, g->n - first), k, least(deep, g->k - k)};
}

/* ---- few rows ---- */

/* Of a thread that has so few rows that packing all of b would cost it a good part of its time: panels come one after the other, and all rows pass by. Each is packed by whoever
 * does a piece of it, once, or read where it lies; what helpers need of b they have near, since they have multiplied it as well. */
enum { FEW_ROWS = 128, GROUP_COLUMNS = 64, GROUP_ROWS = 32 };

struct by_columns {
    const struct gemm *g;
    int64_t deep;               /* k of a part */
    bool b_there;               /* read where it is */
    int64_t groups;             /* of rows; a piece is one of them and GROUP_COLUMNS columns */
    uint64_t number;            /* of this product */
};

/* The columns from `first` on, packed, over all of k; kept until this thread packs others. Who helps leaves alone what it may keep for itself in f32. */
static const float *take_columns(const struct by_columns *w, int64_t first, int64_t columns, bool helps)
{
    const struct gemm *g = w->g;
    struct gemm_room *room = gemm_room();
    float *to = (float *)(helps ? room->bf16 : room->f32);
    if (room->columns.product == w->number && room->columns.first == first)
        return to;
    room->columns = (struct packed_columns){w->number, first};
    for (int64_t k = 0; k < g->k; k += w->deep) {
        const int64_t depth = least(w->deep, g->k - k);
        for (int64_t j = 0; j < columns; j += WIDE_COLUMNS)
            wide_pack_panel(to + k * up_to(columns, WIDE_LANES) + j * depth, g->b + (g->b_transposed ? (first + j) * g->ldb + k : k * g->ldb + first + j), g->ldb,
                            g->b_transposed, columns - j, depth);
    }
    return to;
}

/* Rows of a past the columns of a part. */
static void run_columns(const struct gemm *g, struct span rows, const struct part *now, const float *packed)
{
    struct wide_product p = product_of(g, now, rows.lo);
    for (int64_t j = 0; j < now->columns; j += WIDE_COLUMNS) {
        const int64_t left = now->columns - j;
        p.columns = least(left, WIDE_COLUMNS);
        p.b = packed ? packed + j * now->depth : g->b + now->k * g->ldb + now->first + j;
        p.b_step = packed ? wide_panel(left) : g->ldb;
        put_at(&p, g, now, rows.lo, j);
        TUNED(wide_tile)(rows.hi - rows.lo, &p);
    }
}

static void columns_piece(void *argument, int piece, int helper)
{
    const struct by_columns *w = argument;
    const struct gemm *g = w->g;
    const int64_t first = piece / w->groups * GROUP_COLUMNS, columns = least(GROUP_COLUMNS, g->n - first);
    const bool there = w->b_there && columns % WIDE_LANES == 0;
    const float *packed = there ? NULL : take_columns(w, first, columns, helper >= 0);
    const struct span rows = tile_rows(g->m, piece % w->groups, w->groups);
    for (int64_t k = 0; k == 0 || k < g->k; k += w->deep) {
        const struct part now = {first, columns, k, least(w->deep, g->k - k)};
        run_columns(g, rows, &now, packed ? packed + k * up_to(columns, WIDE_LANES) : NULL);
    }
}

static bool by_columns(const struct gemm *g)
{
    if (g->m > FEW_ROWS || g->n <= GROUP_COLUMNS || g->a_col != 1 || g->a_row % ALIKE == 0 || g->k > BLOCK / GROUP_COLUMNS || g->m * g->n * g->k < SHARED_ADDS)
        return false;
    struct gemm_room *room = gemm_room();
    const int64_t tallest = PIECE_ADDS / (GROUP_COLUMNS * (g->k + 1)), each = tallest < GROUP_ROWS ? GROUP_ROWS : tallest;
    struct by_columns w = {.g = g, .deep = equal_part(g->k, ALONG, 4), .groups = g->m / each > 1 ? g->m / each : 1, .number = ++room->product};
    w.b_there = !g->b_transposed && (g->ldb <= IN_PLACE || g->m <= WIDE_ROWS);
    team_pieces(columns_piece, &w, (int)w.groups * piece_count(g->n, GROUP_COLUMNS));
    return true;
}

/* ---- all of them ---- */

void TUNED(gemm_own)(const struct gemm *g)
{
    if (by_columns(g))
        return;
    const int64_t deep = equal_part(g->k, g->a_col == 1 ? ALONG : ACROSS, 4), columns = equal_part(g->n, BLOCK / (deep ? deep : 1) / WIDE_COLUMNS * WIDE_COLUMNS, WIDE_COLUMNS);
    const bool near = g->m * g->k + g->n * g->k + g->m * g->n <= FAR;
    struct block b = {.g = g, .packed = (float *)gemm_room()->f32, .a_far = g->m * g->k > FAR, .b_far = g->n * g->k > FAR, .c_far = !near && g->m * g->ldc > NEAR};
    b.a_there = g->a_col == 1 ? g->a_row % ALIKE || g->n <= WIDE_COLUMNS : deep * g->a_col <= NEAR || g->n <= WIDE_COLUMNS;
    b.b_there = !g->b_transposed && (deep * g->ldb <= NEAR || g->m <= WIDE_ROWS || (g->m <= FEW_ROWS && g->ldb <= IN_PLACE));
    b.near = near && b.a_there;
    b.next = (struct part){0, least(columns, g->n), 0, least(deep, g->k)};
    while (b.next.columns > 0) {
        b.now = b.next;
        b.next = next_part(g, &b.now, columns, deep);
        run_block(&b);
    }
}

#else
typedef int gemm_is_not_wide;
#endif
