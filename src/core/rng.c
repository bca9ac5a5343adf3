/* Draws built on the Philox block; see rng.h. */
#include "core/rng.h"

#include <math.h>

uint64_t rng_u64(uint64_t key, uint64_t stream, uint64_t index)
{
    const struct rng_block b = rng_block(key, stream, index);
    return (uint64_t)b.x[1] << 32 | b.x[0];
}

double rng_double(uint64_t key, uint64_t stream, uint64_t index)
{
    return (double)(rng_u64(key, stream, index) >> 11) * 0x1p-53;
}

uint64_t rng_below(uint64_t key, uint64_t stream, uint64_t index, uint64_t n)
{
    return (uint64_t)(((unsigned __int128)rng_u64(key, stream, index) * n) >> 64);
}

void rng_fill_normal_part(float *out, int64_t lo, int64_t hi, float std, uint64_t key, uint64_t stream)
{
    for (int64_t i = lo; i < hi; i += 2) {      /* Box-Muller gives two values per block */
        const struct rng_block b = rng_block(key, stream, (uint64_t)i);
        const double u = ((double)b.x[0] + 1.0) * 0x1p-32, angle = 6.283185307179586 * (double)b.x[1] * 0x1p-32;
        const double radius = sqrt(-2.0 * log(u)) * std;
        out[i] = (float)(radius * cos(angle));
        if (i + 1 < hi)
            out[i + 1] = (float)(radius * sin(angle));
    }
}

void rng_fill_normal(float *out, int64_t n, float std, uint64_t key, uint64_t stream) { rng_fill_normal_part(out, 0, n, std, key, stream); }

uint64_t rng_stream_of(const char *name)
{
    uint64_t h = 0xcbf29ce484222325u;           /* FNV-1a */
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    return h;
}
