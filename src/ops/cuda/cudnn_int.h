/* What the files around cuDNN share: the library, and graphs of operations that it makes one plan of.
 *
 * cuDNN is loaded when attention first asks for it, by the absolute path that was found when hone was built; without it nothing changes. */
#ifndef HONE_OPS_CUDA_CUDNN_INT_H
#define HONE_OPS_CUDA_CUDNN_INT_H

#include <cudnn_graph.h>

#include "ops/cuda/cudnn.h"

/* The functions of the library that are called; each is loaded by its name. */
#define CUDNN_FUNCTIONS(each)                                                                                                             \
    each(cudnnGetVersion) each(cudnnCreate) each(cudnnSetStream) each(cudnnBackendCreateDescriptor)                    \
    each(cudnnBackendDestroyDescriptor) each(cudnnBackendSetAttribute) each(cudnnBackendGetAttribute) each(cudnnBackendFinalize)          \
    each(cudnnBackendExecute)

struct cudnn {
#define CUDNN_FIELD(name) __typeof__(name) *name;
    CUDNN_FUNCTIONS(CUDNN_FIELD)
#undef CUDNN_FIELD
    cudnnHandle_t handle;
};

bool cudnn_load(struct cudnn *out);             /* all but the handle, which needs a GPU */
const struct cudnn *cudnn_open(void);           /* NULL: there is none that can be used */

/* ---- graphs ----
 * Tensors have four dimensions, and are named by the order in which they were made. After the first failure nothing more is done: who
 * builds a graph asks once, for its plan. */

enum { CUDNN_TENSORS = 48, CUDNN_OPS = 32, CUDNN_DESCRIPTORS = 192 };

struct cudnn_shape { int64_t dim[4], stride[4]; };

struct cudnn_graph {
    const struct cudnn *lib;
    cudnnStatus_t status;                                   /* of the first step that failed */
    cudnnBackendDescriptor_t made[CUDNN_DESCRIPTORS];       /* all of them, in order */
    cudnnBackendDescriptor_t tensors[CUDNN_TENSORS], ops[CUDNN_OPS];
    int n_made, n_tensors, n_ops;
};

struct cudnn_plan {
    cudnnBackendDescriptor_t plan;
    size_t workspace;                                       /* bytes */
};

/* A value with memory of its own, one that is never stored, and one f32 that the host gives with each run. */
int cudnn_given(struct cudnn_graph *g, struct cudnn_shape s, cudnnDataType_t type);
int cudnn_inner(struct cudnn_graph *g, struct cudnn_shape s, cudnnDataType_t type);
int cudnn_number(struct cudnn_graph *g);
/* Each is one operation that makes y of the others; NO_TENSOR where it has fewer. */
enum { NO_TENSOR = -1 };
void cudnn_pointwise(struct cudnn_graph *g, cudnnPointwiseMode_t mode, cudnnDataType_t math, int y, int x, int b, int t);
void cudnn_index(struct cudnn_graph *g, int axis, int y, int x);        /* y: where each element of x is on that axis */
void cudnn_product(struct cudnn_graph *g, int y, int a, int b);
void cudnn_reduce(struct cudnn_graph *g, cudnnReduceTensorOp_t op, int y, int x);
void cudnn_reshape(struct cudnn_graph *g, int y, int x);

/* A plan of the whole graph, by the nth of cuDNN's proposals that give the same bits every time, best first. It lives as long as the
 * graph. */
bool cudnn_plan_of(struct cudnn_graph *g, int nth, struct cudnn_plan *out);
void cudnn_graph_free(struct cudnn_graph *g);
/* Puts it into the stream. `memory` (n) is in the order in which given tensors and numbers were made, before all others. */
bool cudnn_run(const struct cudnn *lib, const struct cudnn_plan *p, void **memory, int n, void *workspace, cudaStream_t stream);

/* ---- attention: cudnn_sdpa.c ---- */

struct cudnn_attention_of {                     /* all that a plan depends on; it is causal */
    int64_t batch, heads, kv_heads, seq, size;  /* size: D of one head */
    cudnnDataType_t type;
    bool backward;
};

/* What the graphs are given, in this order; numbers come last. */
enum { FORWARD_Q, FORWARD_K, FORWARD_V, FORWARD_Y, FORWARD_STATS, FORWARD_SCALE, FORWARD_MASKED, FORWARD_GIVEN };
enum { BACKWARD_Q, BACKWARD_K, BACKWARD_V, BACKWARD_Y, BACKWARD_DY, BACKWARD_STATS, BACKWARD_DOTS, BACKWARD_DQ, BACKWARD_DK, BACKWARD_DV,
       BACKWARD_SCALE, BACKWARD_MASKED, BACKWARD_ONE, BACKWARD_GIVEN };

void cudnn_build_attention(struct cudnn_graph *g, const struct cudnn_attention_of *a);

#endif
