/* Prepares lists of ops, and runs them: one by one here, as a graph in graph.c. */
#include <stdlib.h>

#include "core/clock.h"
#include "ops/cuda/cuda_int.h"
#include "ops/cuda/cudnn.h"
#include "ops/cuda/cupti.h"
#include "ops/cuda/products.h"

static const struct cuda_kernel *const lists[] = {cuda_elementwise, cuda_sums, cuda_positions, cuda_rows, cuda_norms, cuda_norm_grads,
                                                  cuda_matrix, cuda_attention, cuda_embedding, cuda_loss, cuda_head, cuda_squares, cuda_clip, cuda_select,
                                                  cuda_optimizer, cuda_ranks, cuda_cache};

static const struct cuda_kernel *find_kernel(enum op_kind kind)
{
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const struct cuda_kernel *k = lists[i]; k->launch; k++)
            if (k->op == kind)
                return k;
    return NULL;
}

const struct cuda_pieces *cuda_pieces_of(enum op_kind kind)
{
    static const struct cuda_pieces *const all[] = {&cuda_squares_pieces, &cuda_embed_grad_pieces, &cuda_layernorm_grad_pieces,
                                                   &cuda_rmsnorm_grad_pieces, &cuda_linear_loss_pieces};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->op == kind)
            return all[i];
    return NULL;
}

const char *cuda_kernel_of(enum op_kind kind)
{
    const struct cuda_kernel *k = find_kernel(kind);
    return k ? k->name : NULL;
}

enum status cuda_scratch(struct backend *b, size_t *bytes, const struct program *p, const struct op *op, struct error *err)
{
    const struct cuda_kernel *k = find_kernel(op->kind);
    (void)b;
    if (!k)
        return error_set(err, CANNOT, "the cuda backend has no kernel for op %s", op_info(op->kind)->name);
    *bytes = k->scratch ? k->scratch(p, op) : 0;
    return OK;
}

/* ---- a list of calls ---- */

enum status cuda_prepare(struct backend *base, struct prepared **out, const struct bound_op *ops, int n, void *scratch, size_t bytes,
                         struct error *err)
{
    struct cuda_backend *b = (struct cuda_backend *)base;
    (void)bytes;
    enum status st = cuda_open_blas(b, err);
    if (st != OK)
        return st;
    struct prepared *p = calloc(1, sizeof *p);
    if (!p)
        return error_no_memory(err, "a list of ops", sizeof *p);
    p->n = n;
    p->ops = ops;
    p->calls = calloc((size_t)n + 1, sizeof *p->calls);
    p->kernels = calloc((size_t)n + 1, sizeof *p->kernels);
    if (!p->calls || !p->kernels) {
        cuda_release(base, p);
        return error_no_memory(err, "a list of ops", (size_t)n * sizeof *p->calls);
    }
    for (int i = 0; i < n; i++) {
        p->kernels[i] = find_kernel(ops[i].op->kind);
        p->calls[i] = (struct cuda_call){.program = ops[i].program, .op = ops[i].op, .in = ops[i].in, .out = ops[i].out, .leave = ops[i].leave,
                                         .scratch = scratch, .stream = b->stream, .blas = b->blas,
                                         .workspace = b->blas_workspace, .workspace_bytes = BLAS_WORKSPACE};
    }
    st = cuda_plan_calls(b, p, err);
    if (st == OK)
        st = cuda_reductions_make(b, p, err);
    if (st == OK)
        st = cuda_gathers_make(b, p, err);
    if (st == OK)
        *out = p;
    else
        cuda_release(base, p);
    return st;
}

struct prepared_op cuda_about(const struct prepared *p, int i)
{
    const struct cuda_call *c = &p->calls[i];
    const char *name = c->merged ? "merged" : c->at_once ? "together" : c->width ? "hopper" : cuda_is_small(c) ? "small" : cudnn_takes(c->program, c->op) ? "cudnn" : p->kernels[i]->name;
    return (struct prepared_op){name, cuda_saves_us(c), p->occupancy ? p->occupancy[i] : 0};
}

void cuda_release(struct backend *base, struct prepared *p)
{
    struct cuda_backend *b = (struct cuda_backend *)base;
    if (!p)
        return;
    cuda_wait(b);
    cuda_release_replays(b, p);
    cuda_release_times(p);
    cuda_reductions_release(p);
    cuda_gathers_release(p);
    cuda_release_biases(b, p);
    cuda_release_parts(b, p);
    free(p->kernels);
    free(p->calls);
    free(p);
}

/* ---- one by one ---- */

static enum status op_failed(const struct prepared *p, int i, cudaError_t e, bool sure, struct error *err)
{
    const struct op *op = p->calls[i].op;
    return error_set(err, CANNOT, "the GPU failed at op %s of %s%s, kernel %s: %s (%s)", op_info(op->kind)->name,
                     p->calls[i].program->values[op->out[0]].name, sure ? "" : ", or before it", p->kernels[i]->name,
                     cudaGetErrorString(e), cudaGetErrorName(e));
}

enum status cuda_start_op(struct cuda_backend *b, const struct prepared *p, int i, int piece, const struct cuda_call *call, struct error *err)
{
    cuda_name_op(b, call);
    cupti_mark(i);
    const int64_t start = b->noting ? clock_ns() : 0;
    if (piece >= 0)
        cuda_pieces_of(call->op->kind)->launch(call, piece);
    else if (!call->merged)
        p->kernels[i]->launch(call);
    cuda_note_launch(b, call->op, start);
    cupti_mark(-1);
    cuda_name_end(b);
    cudaError_t e = cudaGetLastError();
    if (e == cudaSuccess && b->checks)
        e = cuda_wait(b);
    return e == cudaSuccess ? OK : op_failed(p, i, e, b->checks, err);
}

/* Starts op i of [first, end) and says its phase, which begins or ends with it. */
static enum status start_in_phase(struct cuda_backend *b, const struct prepared *p, int first, int end, int i, struct error *err)
{
    const enum phase ph = p->ops[i].op->phase;
    if (i == first || p->ops[i - 1].op->phase != ph)
        cuda_name_phase(b, ph);
    const enum status st = cuda_start_op(b, p, i, -1, &p->calls[i], err);
    if (st != OK || i + 1 == end || p->ops[i + 1].op->phase != ph)
        cuda_name_end(b);
    return st;
}

enum status cuda_start_ops(struct cuda_backend *b, const struct prepared *p, int first, int end, struct error *err)
{
    enum status st = OK;
    cuda_comm_begin(b);
    for (int i = first; i < end && st == OK; i++)
        st = start_in_phase(b, p, first, end, i, err);
    return st == OK ? cuda_comm_end(b, err) : st;
}

/* ---- */

enum status cuda_finish(struct backend *base, struct error *err)
{
    struct cuda_backend *b = (struct cuda_backend *)base;
    const enum status st = cuda_place_uploads(b, err);
    return st != OK ? st : cuda_said(cuda_wait(b), err,
                                     "something that was run (HONE_CUDA_SYNC=1 in the environment finds out which op)");
}

enum status cuda_run(struct backend *base, struct prepared *p, int first, int end, struct lane_time *times, struct error *err)
{
    struct cuda_backend *b = (struct cuda_backend *)base;
    enum status st = cuda_comm_wait_turn(b, err);
    if (st == OK)
        st = cuda_place_uploads(b, err);
    if (st == OK)
        st = cuda_comm_open(b, p, first, end, err);
    if (st != OK)
        return st;
    if (times)
        return cuda_run_measured(b, p, first, end, times, err);
    cupti_stop();
    st = cuda_captures(b, p, first, end) ? cuda_replay(b, p, first, end, err) : cuda_start_ops(b, p, first, end, err);
    cuda_comm_note_run(b);
    return st;
}
