/* The CUDA backend, as the rest of hone sees it: a module that is loaded when it is asked for. Where there is none, or no driver, or no
 * GPU that it can use, every function refuses with CANNOT and says why. */
#ifndef HONE_OPS_CUDA_CUDA_H
#define HONE_OPS_CUDA_CUDA_H

#include "ops/cuda/module.h"

/* On the first GPU, for one rank; graphs: whatever programs say, all is captured, or nothing. */
enum status cuda_backend_new(struct backend **out, bool graphs, struct error *err);
enum status cuda_backend_new_for(struct backend **out, const struct cuda_wish *wish, struct error *err);
/* The name of the kernel that an op has there, NULL: none. Needs the module, but no GPU. */
enum status cuda_kernel_name(const char **out, enum op_kind kind, struct error *err);
int cuda_devices(void);             /* that can be seen; 0: none, or no module */
enum status cuda_device_read(struct cuda_device *out, struct error *err);       /* the first */
enum status cuda_device_read_at(struct cuda_device *out, int index, struct error *err);
/* Of NCCL, which sums between GPUs: 22809. CANNOT: it is not there. */
enum status cuda_nccl_version(int *version, struct error *err);
/* Fixes how NCCL sums, unless the environment does: call it before there are threads. */
void cuda_pin_nccl(void);
/* Who the GPU is, for what is remembered of it: "NVIDIA H200, sm_90, CUDA 13.0". */
void cuda_fingerprint(const struct cuda_device *d, char out[160]);
/* What it reaches: large products, copies in its L2 cache and in its memory. Takes a part of a second. */
enum status cuda_measure_peaks(struct backend *b, struct peaks *out, struct error *err);

#endif
