/* Tuned: tiles of every height and width, with rows of a along k and across it; see wide_tile.h. Each is a function of its own: inlined, it would compete for
 * registers with what is around it. */
#include "ops/cpu/tuned/wide_tile.h"

#if defined(HONE_WIDE_TILE)

typedef void tile_fn(const struct wide_product *g, const struct wide_part *part);

#define TILE(rows, vectors)                                                                                                                       \
    static void across_##rows##_##vectors(const struct wide_product *g, const struct wide_part *part) { wide_runs(rows, vectors, false, g, part); } \
    static void along_##rows##_##vectors(const struct wide_product *g, const struct wide_part *part) { wide_runs(rows, vectors, true, g, part); }
#define BOTH(rows, vectors) {across_##rows##_##vectors, along_##rows##_##vectors}
#define LOW_TILES(v) TILE(1, v) TILE(2, v) TILE(3, v) TILE(4, v) TILE(5, v) TILE(6, v)
#define TALL_TILES(v) TILE(7, v) TILE(8, v) TILE(9, v) TILE(10, v) TILE(11, v) TILE(12, v) TILE(13, v) TILE(14, v)
#define LOW(v) BOTH(1, v), BOTH(2, v), BOTH(3, v), BOTH(4, v), BOTH(5, v), BOTH(6, v)
#define TALL(v) BOTH(7, v), BOTH(8, v), BOTH(9, v), BOTH(10, v), BOTH(11, v), BOTH(12, v), BOTH(13, v), BOTH(14, v)

LOW_TILES(1) LOW_TILES(2)
#if defined(__AVX512F__)
LOW_TILES(3) LOW_TILES(4) TALL_TILES(1) TALL_TILES(2)
static tile_fn *const tiles[WIDE_VECTORS][WIDE_TALLEST][2] = {{LOW(1), TALL(1)}, {LOW(2), TALL(2)}, {LOW(3)}, {LOW(4)}};
#else
static tile_fn *const tiles[WIDE_VECTORS][WIDE_TALLEST][2] = {{LOW(1)}, {LOW(2)}};
#endif

/* Tiles of one height are one call, or a call each where they ask for lines. */
static void run_alike(tile_fn *of, int rows, int n, const struct wide_product *g, struct wide_part *part)
{
    part->tiles = g->ahead ? 1 : n;
    for (int i = 0; i < n; i += (int)part->tiles) {
        of(g, part);
        part->a += part->tiles * rows * g->a_row;
        part->c += part->tiles * rows * g->ldc;
    }
}

/* Those that are higher by one come first. */
void TUNED(wide_tile)(int64_t rows, const struct wide_product *g)
{
    const int n = (int)rows, parts = g->columns > 2 * WIDE_LANES ? (n + WIDE_LOWER - 1) / WIDE_LOWER : (n + WIDE_TALLEST - 1) / WIDE_TALLEST;
    tile_fn *const(*of)[2] = tiles[(g->columns + WIDE_LANES - 1) / WIDE_LANES - 1];
    struct wide_part part = {.a = g->a, .c = g->c};
    if (rows <= 0)
        return;
    for (int i = 0; g->ahead && i < WIDE_LISTS; i++)
        part.share[i] = (g->ahead[i].share + parts - 1) / parts;
    const int low = n / parts, higher = n - low * parts, along = g->a_step == 1;
    if (higher)
        run_alike(of[low][along], low + 1, higher, g, &part);
    run_alike(of[low - 1][along], low, parts - higher, g, &part);
}

#else
typedef int no_wide_tile;
#endif
