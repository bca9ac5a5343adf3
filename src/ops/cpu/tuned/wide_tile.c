/* Tuned: tiles of every height, one and two vectors wide, with rows of a along k and across it; see wide_tile.h. Each is a function of its own: inlined, it would compete for
 * registers with what is around it. */
#include "ops/cpu/tuned/wide_tile.h"

#if defined(HONE_WIDE_TILE)

typedef void tile_fn(const struct wide_product *g);

#define TILE(rows)                                                                              \
    static void narrow_along_##rows(const struct wide_product *g) { wide_run(rows, 1, true, g); }   \
    static void full_along_##rows(const struct wide_product *g) { wide_run(rows, 2, true, g); }     \
    static void narrow_across_##rows(const struct wide_product *g) { wide_run(rows, 1, false, g); } \
    static void full_across_##rows(const struct wide_product *g) { wide_run(rows, 2, false, g); }
#define FOUR(rows) {{narrow_across_##rows, full_across_##rows}, {narrow_along_##rows, full_along_##rows}}

TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6)
#if defined(__AVX512F__)
TILE(7) TILE(8) TILE(9) TILE(10) TILE(11) TILE(12) TILE(13) TILE(14)
#endif

static tile_fn *const tiles[WIDE_ROWS][2][2] = {
    FOUR(1), FOUR(2), FOUR(3), FOUR(4), FOUR(5), FOUR(6),
#if defined(__AVX512F__)
    FOUR(7), FOUR(8), FOUR(9), FOUR(10), FOUR(11), FOUR(12), FOUR(13), FOUR(14),
#endif
};

void TUNED(wide_tile)(int rows, const struct wide_product *g) { tiles[rows - 1][g->a_step == 1][g->columns > WIDE_LANES](g); }

#else
typedef int no_wide_tile;
#endif
