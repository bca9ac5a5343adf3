/* Tuned: tiles of every height, one and two vectors wide; see wide_tile.h. Each is a function of its own: inlined, it would compete for
 * registers with what is around it. */
#include "ops/cpu/tuned/wide_tile.h"

#if defined(HONE_WIDE_TILE)

typedef void tile_fn(const struct wide_product *g);

#define TILE(rows)                                                                      \
    static void narrow_##rows(const struct wide_product *g) { wide_run(rows, 1, g); }   \
    static void full_##rows(const struct wide_product *g) { wide_run(rows, 2, g); }
#define PAIR(rows) {narrow_##rows, full_##rows}

TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6)
#if defined(__AVX512F__)
TILE(7) TILE(8) TILE(9) TILE(10) TILE(11) TILE(12) TILE(13) TILE(14)
#endif

static tile_fn *const tiles[WIDE_ROWS][2] = {
    PAIR(1), PAIR(2), PAIR(3), PAIR(4), PAIR(5), PAIR(6),
#if defined(__AVX512F__)
    PAIR(7), PAIR(8), PAIR(9), PAIR(10), PAIR(11), PAIR(12), PAIR(13), PAIR(14),
#endif
};

void TUNED(wide_tile)(int rows, const struct wide_product *g) { tiles[rows - 1][g->columns > WIDE_LANES](g); }

#else
typedef int no_wide_tile;
#endif
