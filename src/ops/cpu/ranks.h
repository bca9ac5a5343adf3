/* Kernels of sums over shards and ranks; all threads take part in each. */
#ifndef HONE_OPS_CPU_RANKS_H
#define HONE_OPS_CPU_RANKS_H

#include "ops/cpu/cpu_int.h"

kernel_fn ranks_sum_shards;
kernel_fn ranks_reduce_start;
kernel_fn ranks_reduce_wait;

#endif
