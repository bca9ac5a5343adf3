/* What the files of the CUDA module share. */
#ifndef HONE_OPS_CUDA_CUDA_INT_H
#define HONE_OPS_CUDA_CUDA_INT_H

#include "ops/cuda/kernel.h"
#include "ops/cuda/module.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { STAGES = 8, STAGE_BYTES = 1 << 20 };

/* Pinned memory that uploads pass through: the host goes on while they are on their way, as far as there are stages. */
struct cuda_staging {
    char *memory;                   /* (STAGES, STAGE_BYTES) */
    cudaEvent_t read[STAGES];       /* the device has read the stage */
    int next;
};

struct cuda_backend {
    struct backend base;
    struct cuda_device about;
    cudaStream_t stream;            /* everything happens in it, in order */
    cublasHandle_t blas;            /* NULL until ops are prepared */
    void *blas_workspace;           /* BLAS_WORKSPACE bytes */
    struct cuda_plan *plans;        /* a list of all products that were asked for */
    const struct cuda_choices *choices;     /* where what was timed is remembered */
    struct cuda_staging staging;
    bool graphs;
    bool checks;                    /* HONE_CUDA_SYNC=1: every op is waited for, and a failure named by its op */
};

/* OK, or what CUDA said happened. */
enum status cuda_said(cudaError_t e, struct error *err, const char *what);

/* device.c: the GPU, or why there is none. */
enum status cuda_find_device(struct cuda_device *out, struct error *err);

/* memory.c */
enum status cuda_staging_new(struct cuda_staging *s, struct error *err);
void cuda_staging_free(struct cuda_staging *s);
size_t cuda_available(struct backend *b);
void *cuda_alloc(struct backend *b, size_t bytes);
void cuda_free_memory(struct backend *b, void *memory, size_t bytes);
enum status cuda_upload(struct backend *b, void *to, const void *host, size_t bytes, struct error *err);
enum status cuda_download(struct backend *b, void *host, const void *from, size_t bytes, struct error *err);

/* run.c */
const char *cuda_kernel_of(enum op_kind kind);
enum status cuda_finish(struct backend *b, struct error *err);
enum status cuda_scratch(struct backend *b, size_t *bytes, const struct program *p, const struct op *op, struct error *err);
enum status cuda_prepare(struct backend *b, struct prepared **out, const struct bound_op *ops, int n, void *scratch, size_t bytes,
                         struct error *err);
struct prepared_op cuda_about(const struct prepared *p, int i);
enum status cuda_run(struct backend *b, struct prepared *p, int first, int end, struct lane_time *times, struct error *err);
void cuda_release(struct backend *b, struct prepared *p);

/* Enough for the largest products of Hopper. */
enum { BLAS_WORKSPACE = 32 << 20 };
/* cuda.c: the handle of cuBLAS, made when it is first asked for. */
enum status cuda_open_blas(struct cuda_backend *b, struct error *err);

/* peaks.cu */
enum status cuda_peaks(struct backend *b, struct peaks *out, struct error *err);

#ifdef __cplusplus
}
#endif

#endif
