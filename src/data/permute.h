/* A pseudo-random permutation of [0, n) without memory: where index i goes is a pure function of key, epoch and n. */
#ifndef HONE_DATA_PERMUTE_H
#define HONE_DATA_PERMUTE_H

#include <stdint.h>

/* key and epoch choose the permutation; i < n. */
uint64_t permute_index(uint64_t key, uint64_t epoch, uint64_t n, uint64_t i);

#endif
