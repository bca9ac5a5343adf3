/* NCCL, where it is: loaded when ranks ask for it, by the absolute path that was found when hone was built, or
 * that HONE_NCCL has in the environment. Algorithm and protocol are
 * pinned (cuda_pin_nccl), so that as many ranks on the same machines give the same bits again. */
#ifndef HONE_OPS_CUDA_NCCL_H
#define HONE_OPS_CUDA_NCCL_H

#include <cuda_runtime.h>

#include "backend/comm.h"
#include "core/error.h"

/* 22809; CANNOT: it is not there, and why. */
enum status nccl_version(int *version, struct error *err);
/* All ranks together; `ranks` NULL: this one alone. A rank that is lost on the way ends it. */
enum status nccl_open(void **communicator, struct comm *ranks, struct error *err);
/* Puts the sum over all ranks into a stream, in place; NULL, or what NCCL said. */
const char *nccl_sum(void *communicator, float *data, int64_t n, cudaStream_t stream);
const char *nccl_sum_to(void *communicator, float *data, int64_t n, int rank, cudaStream_t stream);        /* one rank gets it alone */
const char *nccl_broadcast(void *communicator, float *data, int64_t n, int rank, cudaStream_t stream);     /* all get what it has */
const char *nccl_group(bool begins);                    /* around several of these: they run together */
bool nccl_works(void *communicator);
/* whole: all ranks close. Else what is under way ends at once, with no result. */
void nccl_close(void *communicator, bool whole);
/* What is under way ends at once, with no result, and others do the rest: NCCL stays until the last graph with sums of it is gone. */
struct nccl_leaving;
struct nccl_leaving *nccl_leave(void *communicator);
void nccl_left(struct nccl_leaving *l);                 /* when they are gone: waits, but not forever; NULL is fine */

#endif
