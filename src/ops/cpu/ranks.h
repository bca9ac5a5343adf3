/* Kernels of sums over shards and ranks; all threads take part in most. */
#ifndef HONE_OPS_CPU_RANKS_H
#define HONE_OPS_CPU_RANKS_H

#include "ops/cpu/cpu_int.h"

kernel_fn ranks_sum_shards;
kernel_fn ranks_reduce_start;
kernel_fn ranks_reduce_wait;
kernel_fn ranks_sum_blocks;         /* by one thread, and the two below */
kernel_fn ranks_gather_start;
kernel_fn ranks_gather_wait;

#endif
