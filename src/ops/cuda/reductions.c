/* The stream in which sums over ranks travel, and what each bucket needs for it. */
#include "ops/cuda/reductions.h"

#include <math.h>
#include <stdlib.h>

#include "backend/comm.h"
#include "core/clock.h"
#include "ops/cuda/cuda_int.h"
#include "ops/cuda/nccl.h"

static const int64_t LOOK_NS = 1000000, NAMED_NS = 30000000000;     /* at the group; and until then it knows which rank was lost */

/* A bucket on its way. */
struct cuda_reduction {
    struct cuda_backend *b;
    const struct program *program;
    const struct op *wait;          /* for those who ask where this rank is; NULL: nothing waits for it */
    value_id bucket;
    float *device, *host;           /* host: pinned, not its own; NULL with NCCL */
    int64_t n;
    const int64_t *cuts;            /* every rank gets its slice alone; NULL: all */
    int64_t first, count;           /* what comes back: all, or this rank's slice */
    int64_t run;                    /* that has started it: see struct cuda_comm */
    cudaEvent_t packed, there;
};

/* Steps of several lengths have the same buckets, and no two steps run at once. */
struct cuda_pinned {
    struct cuda_pinned *next;
    int place;                      /* of the bucket among those of its list */
    int64_t n;
    float *host;
};

static bool has_ranks(const struct cuda_backend *b) { return b->comm.nccl || (b->base.comm && b->base.comm->size > 1); }

/* ---- on a thread of CUDA, which must not call CUDA ---- */

static void CUDART_CB begin_sum(void *bucket)
{
    struct cuda_reduction *r = bucket;
    struct comm *ranks = r->b->base.comm;
    if (r->cuts)
        ranks->scatter(ranks, r->host, r->cuts);
    else
        ranks->start(ranks, r->host, r->n);
}

/* Without the other ranks there are no numbers, and so no update. */
static void CUDART_CB end_sum(void *bucket)
{
    struct cuda_reduction *r = bucket;
    struct comm *ranks = r->b->base.comm;
    atomic_store_explicit(&ranks->of, r->program, memory_order_relaxed);
    atomic_store_explicit(&ranks->at, r->wait, memory_order_release);
    const bool there = ranks->wait(ranks, r->host);
    atomic_store_explicit(&ranks->at, NULL, memory_order_release);
    for (int64_t i = 0; i < r->n && !there; i++)
        r->host[i] = NAN;
}

/* ---- at the ops ---- */

static void follow(cudaStream_t stream, cudaEvent_t event, cudaStream_t before)
{
    cudaEventRecord(event, before);
    cudaStreamWaitEvent(stream, event, 0);
}

/* Slices need not be alike, so that each is a sum of its own, for its rank. */
static const char *scatter_by_nccl(const struct cuda_reduction *r)
{
    const int ranks = r->b->base.comm->size;
    const char *why = nccl_group(true);
    for (int k = 0; k < ranks; k++) {
        const int place = slice_place(k, ranks);
        if (!why && r->cuts[place + 1] > r->cuts[place])
            why = nccl_sum_to(r->b->comm.communicator, r->device + r->cuts[place], r->cuts[place + 1] - r->cuts[place], k, r->b->comm.stream);
    }
    const char *ended = nccl_group(false);
    return why ? why : ended;
}

void cuda_reduction_start(const struct cuda_call *c)
{
    struct cuda_reduction *r = c->reduction;
    struct cuda_comm *m = r ? &r->b->comm : NULL;
    const size_t bytes = r ? (size_t)r->n * sizeof *r->device : 0;
    if (!r || m->silent)
        return;
    follow(m->stream, r->packed, c->stream);
    m->used = true;
    r->run = m->run;
    if (m->nccl) {
        const char *why = r->cuts ? scatter_by_nccl(r) : nccl_sum(m->communicator, r->device, r->n, m->stream);
        m->failed = m->failed ? m->failed : why;
        cudaEventRecord(r->there, m->stream);
    } else {
        cudaMemcpyAsync(r->host, r->device, bytes, cudaMemcpyDeviceToHost, m->stream);
        cudaLaunchHostFunc(m->stream, begin_sum, r);
    }
}

/* A sum that was started in a run before this one has come back to the main stream with the end of that. */
void cuda_reduction_wait(const struct cuda_call *c)
{
    struct cuda_reduction *r = c->reduction;
    struct cuda_comm *m = r ? &r->b->comm : NULL;
    if (!r || m->silent)
        return;
    if (!m->nccl) {
        if (r->run != m->run)
            follow(m->stream, m->forked, c->stream);
        m->used = true;
        cudaLaunchHostFunc(m->stream, end_sum, r);
        cudaMemcpyAsync(r->device + r->first, r->host + r->first, (size_t)r->count * sizeof *r->device, cudaMemcpyHostToDevice, m->stream);
        cudaEventRecord(r->there, m->stream);
    }
    if (!m->nccl || r->run == m->run)
        cudaStreamWaitEvent(c->stream, r->there, 0);
}

void cuda_comm_begin(struct cuda_backend *b)
{
    b->comm.run++;
    b->comm.used = false;
}

enum status cuda_comm_end(struct cuda_backend *b, struct error *err)
{
    struct cuda_comm *m = &b->comm;
    if (!m->used)
        return OK;
    m->used = false;
    follow(b->stream, m->joined, m->stream);
    if (m->failed)
        return error_set(err, CANNOT, "NCCL failed at a sum over ranks: %s", m->failed);
    return cuda_said(cudaGetLastError(), err, "sums over ranks");
}

/* ---- opening ---- */

enum status cuda_comm_stream(struct cuda_backend *b, struct error *err)
{
    struct cuda_comm *m = &b->comm;
    int least = 0, greatest = 0;
    if (m->stream)
        return OK;
    enum status st = cuda_said(cudaDeviceGetStreamPriorityRange(&least, &greatest), err, "priorities of streams");
    if (st == OK)
        st = cuda_said(cudaStreamCreateWithPriority(&m->stream, cudaStreamNonBlocking, greatest), err, "a stream for sums over ranks");
    if (st == OK)
        st = cuda_said(cudaEventCreateWithFlags(&m->forked, cudaEventDisableTiming), err, "an event");
    if (st == OK)
        st = cuda_said(cudaEventCreateWithFlags(&m->joined, cudaEventDisableTiming), err, "an event");
    return st;
}

enum status cuda_comm_open(struct cuda_backend *b, const struct prepared *p, int first, int end, struct error *err)
{
    struct cuda_comm *m = &b->comm;
    if (!p->n_reductions || p->first_reduction < first || p->first_reduction >= end || !m->nccl || m->communicator)
        return OK;
    if (m->lost)
        return error_set(err, CANNOT, "a rank was lost, and NCCL sums no more");
    return nccl_open(&m->communicator, b->base.comm, err);
}

static void free_pinned(struct cuda_comm *m)
{
    for (struct cuda_pinned *next, *p = m->pinned; p; p = next) {
        next = p->next;
        cudaFreeHost(p->host);
        free(p);
    }
    m->pinned = NULL;
}

void cuda_comm_close(struct cuda_backend *b)
{
    struct cuda_comm *m = &b->comm;
    nccl_close(m->communicator, !b->base.comm || b->base.comm->status(b->base.comm, NULL) == OK);
    nccl_left(m->leaving);
    cuda_landings_free(b);
    free_pinned(m);
    for (int i = 0; i < RUNS_AHEAD; i++)
        if (m->ran[i])
            cudaEventDestroy(m->ran[i]);
    if (m->forked)
        cudaEventDestroy(m->forked);
    if (m->joined)
        cudaEventDestroy(m->joined);
    if (m->stream)
        cudaStreamDestroy(m->stream);
}

/* ---- waiting ---- */

static cudaError_t synchronize(const struct cuda_backend *b, cudaEvent_t event)
{
    return event ? cudaEventSynchronize(event) : cudaStreamSynchronize(b->stream);
}

static cudaError_t query(const struct cuda_backend *b, cudaEvent_t event) { return event ? cudaEventQuery(event) : cudaStreamQuery(b->stream); }

/* Graphs that were captured have NCCL's sums in them, and it waits for the last of these before it is closed. */
static cudaError_t give_up(struct cuda_backend *b, cudaEvent_t event)
{
    b->comm.leaving = nccl_leave(b->comm.communicator);
    b->comm.communicator = NULL;
    b->comm.lost = true;
    return synchronize(b, event);
}

/* A sum of NCCL that a rank is missing from never ends: the group says so, and it is given up. */
cudaError_t cuda_wait_for(struct cuda_backend *b, cudaEvent_t event)
{
    struct comm *ranks = b->base.comm;
    int64_t look = clock_ns() + LOOK_NS, broken = 0;
    cudaError_t e;
    if (!b->comm.communicator || !ranks || ranks->size == 1)
        return synchronize(b, event);
    while ((e = query(b, event)) == cudaErrorNotReady) {
        const int64_t now = clock_ns();
        if (now < look)
            continue;
        look = now + LOOK_NS;
        if (!broken && !nccl_works(b->comm.communicator))
            broken = now;
        if (ranks->status(ranks, NULL) != OK)
            return give_up(b, event);
        if (broken && now - broken > NAMED_NS) {
            give_up(b, event);
            return cudaErrorUnknown;
        }
    }
    return e;
}

cudaError_t cuda_wait(struct cuda_backend *b) { return cuda_wait_for(b, NULL); }

/* A launch for which there is no room waits in CUDA until something ends, and there nobody looks at the group. */
enum status cuda_comm_wait_turn(struct cuda_backend *b, struct error *err)
{
    struct cuda_comm *m = &b->comm;
    const cudaEvent_t oldest = m->ran[m->next_ran];
    return m->communicator && oldest ? cuda_said(cuda_wait_for(b, oldest), err, "something that was run") : OK;
}

void cuda_comm_note_run(struct cuda_backend *b)
{
    struct cuda_comm *m = &b->comm;
    cudaEvent_t *at = &m->ran[m->next_ran];
    if (!m->communicator || (!*at && cudaEventCreateWithFlags(at, cudaEventDisableTiming) != cudaSuccess))
        return;
    cudaEventRecord(*at, b->stream);
    m->next_ran = (m->next_ran + 1) % RUNS_AHEAD;
}

/* ---- the buckets of a list ---- */

static enum status find_pinned(float **out, struct cuda_comm *m, int place, int64_t n, struct error *err)
{
    void *host = NULL;
    struct cuda_pinned *p = m->pinned;
    while (p && (p->place != place || p->n != n))
        p = p->next;
    if (!p) {
        const enum status st = cuda_said(cudaHostAlloc(&host, (size_t)n * sizeof **out, cudaHostAllocDefault), err, "pinned memory for sums over ranks");
        if (st != OK)
            return st;
        p = calloc(1, sizeof *p);
        if (!p) {
            cudaFreeHost(host);
            return error_no_memory(err, "sums over ranks", sizeof *p);
        }
        *p = (struct cuda_pinned){m->pinned, place, n, host};
        m->pinned = p;
    }
    *out = p->host;
    return OK;
}

static enum status make_one(struct cuda_backend *b, struct cuda_reduction *r, int place_in_list, const struct cuda_call *c, struct error *err)
{
    const struct op_attrs *a = &c->op->attrs;
    *r = (struct cuda_reduction){.b = b, .program = c->program, .bucket = c->op->out[0], .device = c->out[0],
                                 .n = shape_count(cuda_out(c, 0)->shape), .cuts = a->n_cuts ? a->cuts : NULL};
    const int place = a->n_cuts ? slice_place(b->base.comm->rank, b->base.comm->size) : 0;
    r->first = a->n_cuts ? a->cuts[place] : 0;
    r->count = a->n_cuts ? a->cuts[place + 1] - r->first : r->n;
    enum status st = cuda_said(cudaEventCreateWithFlags(&r->packed, cudaEventDisableTiming), err, "an event");
    if (st == OK)
        st = cuda_said(cudaEventCreateWithFlags(&r->there, cudaEventDisableTiming), err, "an event");
    return st == OK && !b->comm.nccl ? find_pinned(&r->host, &b->comm, place_in_list, r->n, err) : st;
}

static struct cuda_reduction *find(const struct prepared *p, value_id bucket)
{
    for (int i = 0; i < p->n_reductions; i++)
        if (p->reductions[i].bucket == bucket)
            return &p->reductions[i];
    return NULL;
}

enum status cuda_reductions_make(struct cuda_backend *b, struct prepared *p, struct error *err)
{
    int n = 0;
    for (int i = p->n - 1; i >= 0; i--)
        if (p->calls[i].op->kind == OP_REDUCE_START) {
            n++;
            p->first_reduction = i;
        }
    if (!n || !has_ranks(b))
        return OK;
    p->reductions = calloc((size_t)n, sizeof *p->reductions);
    if (!p->reductions)
        return error_no_memory(err, "sums over ranks", (size_t)n * sizeof *p->reductions);
    enum status st = cuda_comm_stream(b, err);
    for (int i = 0; i < p->n && st == OK; i++) {
        struct cuda_call *c = &p->calls[i];
        if (c->op->kind == OP_REDUCE_START) {
            c->reduction = &p->reductions[p->n_reductions++];
            st = make_one(b, c->reduction, p->n_reductions - 1, c, err);
        } else if (c->op->kind == OP_REDUCE_WAIT && (c->reduction = find(p, c->op->in[0]))) {
            c->reduction->wait = c->op;
        }
    }
    return st;
}

void cuda_reductions_release(struct prepared *p)
{
    for (int i = 0; i < p->n_reductions; i++) {
        struct cuda_reduction *r = &p->reductions[i];
        if (r->packed)
            cudaEventDestroy(r->packed);
        if (r->there)
            cudaEventDestroy(r->there);
    }
    free(p->reductions);
}
