/* Counter-based random numbers (Philox 4x32-10): the value is a pure function of key and counter, so any thread can
 * draw any number in any order and resuming needs no generator state. */
#ifndef HONE_CORE_RNG_H
#define HONE_CORE_RNG_H

#include <stdint.h>

struct rng_block { uint32_t x[4]; };

static inline struct rng_block rng_block(uint64_t key, uint64_t hi, uint64_t lo)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    struct rng_block c = {{(uint32_t)lo, (uint32_t)(lo >> 32), (uint32_t)hi, (uint32_t)(hi >> 32)}};
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c.x[0], p1 = (uint64_t)0xCD9E8D57u * c.x[2];
        c = (struct rng_block){{(uint32_t)(p1 >> 32) ^ c.x[1] ^ k0, (uint32_t)p1,
                                (uint32_t)(p0 >> 32) ^ c.x[3] ^ k1, (uint32_t)p0}};
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

/* Uniform in [0, 1) with 24 bits. */
static inline float rng_unit(uint32_t bits) { return (float)(bits >> 8) * 0x1p-24f; }

uint64_t rng_u64(uint64_t key, uint64_t stream, uint64_t index);
double rng_double(uint64_t key, uint64_t stream, uint64_t index);              /* uniform in [0, 1) */
uint64_t rng_below(uint64_t key, uint64_t stream, uint64_t index, uint64_t n); /* uniform in [0, n) */
void rng_fill_normal(float *out, int64_t n, float std, uint64_t key, uint64_t stream);
/* Fills out[lo .. hi) as that would; lo is even. */
void rng_fill_normal_part(float *out, int64_t lo, int64_t hi, float std, uint64_t key, uint64_t stream);

/* A stable 64-bit hash of a name, to give each parameter a stream of its own. */
uint64_t rng_stream_of(const char *name);

#endif
