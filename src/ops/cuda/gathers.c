/* Slices of weights that ranks send each other when they have updated them, as OP_GATHER_START and OP_GATHER_WAIT ask for it.
 *
 * Without NCCL they go through pinned memory, which has a place for all weights of a bucket: this rank's slice is copied there, the group brings
 * those of the others, and a kernel takes these to the device (ranks.cu). What one list of ops has begun another one may wait for, in a later run, so that
 * memory belongs to the weights and not to a list. With NCCL what was begun is done with its run. */
#include <stdlib.h>

#include "backend/comm.h"
#include "ops/cuda/cuda_int.h"
#include "ops/cuda/nccl.h"
#include "ops/cuda/reductions.h"

/* Pinned memory of the weights of a bucket. */
struct cuda_landing {
    struct cuda_landing *next;
    const void *first;              /* on the device: by this it is found, and by how many there are */
    int64_t n;
    float *host;                    /* (n) */
    int32_t *arrived;               /* on the host, pinned: 1 where the slices of others are to be taken from there, else 0 */
    bool under_way;                 /* of the thread of CUDA that runs what is below */
};

/* An op of a list. */
struct cuda_gather {
    struct cuda_backend *b;
    const struct program *program;
    const struct op *op;
    struct cuda_landing *at;
    void **places;                  /* (parts) of its values, in host memory */
};

/* ---- on a thread of CUDA, which must not call CUDA ---- */

static void CUDART_CB begin_gather(void *argument)
{
    const struct cuda_gather *g = argument;
    struct comm *ranks = g->b->base.comm;
    g->at->under_way = true;
    ranks->gather(ranks, g->program, g->op, g->places);
}

/* Where the group has failed nothing comes. */
static void CUDART_CB end_gather(void *argument)
{
    const struct cuda_gather *g = argument;
    struct comm *ranks = g->b->base.comm;
    if (g->at->under_way) {
        atomic_store_explicit(&ranks->of, g->program, memory_order_relaxed);
        atomic_store_explicit(&ranks->at, g->op, memory_order_release);
        *g->at->arrived = ranks->gathered(ranks, g->places[0]);
        atomic_store_explicit(&ranks->at, NULL, memory_order_release);
    } else {
        *g->at->arrived = 0;
    }
    g->at->under_way = false;
}

/* ---- at the ops ---- */

static struct slice slice_of_value(const struct cuda_call *c, int i, int64_t start, int rank)
{
    const struct op_attrs *a = &c->op->attrs;
    const int place = slice_place(rank, a->n_cuts - 1);
    const int64_t n = shape_count(cuda_in(c, i)->shape), end = start + n;
    const int64_t lo = a->cuts[place] > start ? a->cuts[place] : start, hi = a->cuts[place + 1] < end ? a->cuts[place + 1] : end;
    return hi > lo ? (struct slice){lo - start, hi - lo} : (struct slice){0, 0};
}

static void send_by_nccl(const struct cuda_call *c, struct cuda_comm *m, int ranks)
{
    const char *why = nccl_group(true);
    for (int r = 0; r < ranks; r++) {
        int64_t start = 0;
        for (int i = 0; i < c->op->attrs.parts; start += shape_count(cuda_in(c, i)->shape), i++) {
            const struct slice s = slice_of_value(c, i, start, r);
            if (s.n && !why)
                why = nccl_broadcast(m->communicator, (float *)c->in[i] + s.first, s.n, r, m->stream);
        }
    }
    const char *ended = nccl_group(false);
    m->failed = m->failed ? m->failed : why ? why : ended;
}

static void send_by_host(const struct cuda_call *c, struct cuda_comm *m)
{
    struct cuda_gather *g = c->gather;
    int64_t start = 0;
    for (int i = 0; i < c->op->attrs.parts; start += shape_count(cuda_in(c, i)->shape), i++) {
        const struct slice s = slice_of_value(c, i, start, g->b->base.comm->rank);
        if (s.n)
            cudaMemcpyAsync((float *)g->places[i] + s.first, (const float *)c->in[i] + s.first, (size_t)s.n * sizeof(float), cudaMemcpyDeviceToHost,
                            m->stream);
    }
    cudaLaunchHostFunc(m->stream, begin_gather, g);
}

void cuda_gather_start(const struct cuda_call *c)
{
    struct cuda_gather *g = c->gather;
    struct cuda_comm *m = g ? &g->b->comm : NULL;
    if (!g || m->silent)
        return;
    cudaEventRecord(m->forked, c->stream);
    cudaStreamWaitEvent(m->stream, m->forked, 0);
    m->used = true;
    if (m->nccl)
        send_by_nccl(c, m, g->b->base.comm->size);
    else
        send_by_host(c, m);
}

const int32_t *cuda_gather_wait(const struct cuda_call *c)
{
    struct cuda_gather *g = c->gather;
    struct cuda_comm *m = g ? &g->b->comm : NULL;
    if (!g || m->silent || m->nccl)
        return NULL;
    cudaEventRecord(m->forked, c->stream);
    cudaStreamWaitEvent(m->stream, m->forked, 0);
    m->used = true;
    cudaLaunchHostFunc(m->stream, end_gather, g);
    cudaEventRecord(m->joined, m->stream);
    cudaStreamWaitEvent(c->stream, m->joined, 0);
    return g->at->arrived;
}

struct cuda_arrival cuda_arrival_of(const struct cuda_call *c, int i)
{
    const struct cuda_gather *g = c->gather;
    int64_t start = 0;
    if (!g || g->b->comm.nccl)
        return (struct cuda_arrival){NULL, {0, 0}};
    for (int k = 0; k < i; k++)
        start += shape_count(cuda_in(c, k)->shape);
    return (struct cuda_arrival){g->places[i], slice_of_value(c, i, start, g->b->base.comm->rank)};
}

/* ---- the ops of a list ---- */

static enum status new_landing(struct cuda_landing **out, const void *first, int64_t n, struct error *err)
{
    void *host = NULL, *arrived = NULL;
    struct cuda_landing *l = calloc(1, sizeof *l);
    if (!l)
        return error_no_memory(err, "slices of weights", sizeof *l);
    enum status st = cuda_said(cudaHostAlloc(&host, (size_t)n * sizeof(float), cudaHostAllocDefault), err, "pinned memory for slices of weights");
    if (st == OK)
        st = cuda_said(cudaHostAlloc(&arrived, sizeof(int32_t), cudaHostAllocDefault), err, "pinned memory");
    *l = (struct cuda_landing){.first = first, .n = n, .host = host, .arrived = arrived};
    if (st == OK) {
        *l->arrived = 0;
        *out = l;
        return OK;
    }
    if (host)
        cudaFreeHost(host);
    free(l);
    return st;
}

static enum status find_landing(struct cuda_landing **out, struct cuda_backend *b, const void *first, int64_t n, struct error *err)
{
    for (*out = b->comm.landings; *out && ((*out)->first != first || (*out)->n != n);)
        *out = (*out)->next;
    if (*out)
        return OK;
    const enum status st = new_landing(out, first, n, err);
    if (st == OK) {
        (*out)->next = b->comm.landings;
        b->comm.landings = *out;
    }
    return st;
}

static enum status make_one(struct cuda_backend *b, struct cuda_gather *g, const struct cuda_call *c, struct error *err)
{
    const struct op_attrs *a = &c->op->attrs;
    *g = (struct cuda_gather){.b = b, .program = c->program, .op = c->op};
    if (b->comm.nccl)
        return OK;
    enum status st = find_landing(&g->at, b, c->in[0], a->cuts[a->n_cuts - 1], err);
    if (st == OK && !(g->places = calloc((size_t)a->parts, sizeof *g->places)))
        st = error_no_memory(err, "slices of weights", (size_t)a->parts * sizeof *g->places);
    int64_t at = 0;
    for (int i = 0; i < a->parts && st == OK; at += shape_count(cuda_in(c, i)->shape), i++)
        g->places[i] = g->at->host + at;
    return st;
}

static bool is_gather(const struct cuda_call *c) { return c->op->kind == OP_GATHER_START || c->op->kind == OP_GATHER_WAIT; }

enum status cuda_gathers_make(struct cuda_backend *b, struct prepared *p, struct error *err)
{
    int n = 0;
    for (int i = 0; i < p->n; i++)
        n += is_gather(&p->calls[i]);
    if (!n || !b->base.comm || b->base.comm->size == 1)
        return OK;
    p->gathers = calloc((size_t)n, sizeof *p->gathers);
    if (!p->gathers)
        return error_no_memory(err, "slices of weights", (size_t)n * sizeof *p->gathers);
    enum status st = cuda_comm_stream(b, err);
    for (int i = 0; i < p->n && st == OK; i++)
        if (is_gather(&p->calls[i])) {
            p->calls[i].gather = &p->gathers[p->n_gathers++];
            st = make_one(b, p->calls[i].gather, &p->calls[i], err);
        }
    return st;
}

void cuda_gathers_release(struct prepared *p)
{
    for (int i = 0; i < p->n_gathers; i++)
        free(p->gathers[i].places);
    free(p->gathers);
}

void cuda_landings_free(struct cuda_backend *b)
{
    for (struct cuda_landing *l = b->comm.landings, *next; l; l = next) {
        next = l->next;
        cudaFreeHost(l->host);
        cudaFreeHost(l->arrived);
        free(l);
    }
    b->comm.landings = NULL;
}
