/* A Feistel network permutes the smallest power of four that holds n; an index that lands outside [0, n) is sent
 * through again until it lands inside ("cycle walking"), which keeps the map one to one. That takes fewer
 * than 4 turns on average. */
#include "data/permute.h"

#include <assert.h>

#include "core/rng.h"

enum { ROUNDS = 4 };

static uint64_t feistel(uint64_t key, uint64_t epoch, int half_bits, uint64_t i)
{
    const uint64_t mask = ((uint64_t)1 << half_bits) - 1;
    uint64_t left = i >> half_bits, right = i & mask;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const uint64_t mixed = left ^ (rng_block(key, epoch, round << 32 | right).x[0] & mask);
        left = right;
        right = mixed;
    }
    return left << half_bits | right;
}

uint64_t permute_index(uint64_t key, uint64_t epoch, uint64_t n, uint64_t i)
{
    int half_bits = 1;
    assert(i < n && n <= (uint64_t)1 << 62);
    while ((uint64_t)1 << (2 * half_bits) < n)
        half_bits++;
    do
        i = feistel(key, epoch, half_bits, i);
    while (i >= n);
    return i;
}
