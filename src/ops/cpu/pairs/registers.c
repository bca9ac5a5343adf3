/* Products of tiles that stay where they are: no product of bf16 can be faster. */
#include "ops/cpu/pairs/pairs.h"
#include "ops/cpu/pairs/tiles.h"

#if defined(HONE_AMX)

double cpu_registers_tiles(int64_t rounds)
{
    static const _Alignas(64) uint16_t zeros[TILE_NUMBERS];
    amx_begin();
    amx_start(true, true, NULL, 0);
    _tile_loadd(4, zeros, 64);
    _tile_loadd(5, zeros, 64);
    _tile_loadd(6, zeros, 64);
    _tile_loadd(7, zeros, 64);
    for (int64_t r = 0; r < rounds; r++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    amx_end();
    return (double)rounds * 4 * 2 * TILE * TILE * TILE_DEPTH;
}

#endif
