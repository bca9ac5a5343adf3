/* Runs lists of ops as graphs. The first time every kernel is started by itself, so that all of them are loaded and one that cannot start
 * is named; the second time they are captured into a graph, which is replayed from then on. Where the program lets ops go beside each
 * other (fewer_meetings), the graph has a few lanes (lanes.c), each with a stream, scratch and memory for cuBLAS of its own; where one of
 * these cannot be had, it has one. Either way the bits are the same: an op does the same wherever it runs. */
#include <stdlib.h>

#include "ops/cuda/cuda_int.h"

static struct replay *find_replay(struct prepared *p, int first, int end)
{
    for (int i = 0; i < p->n_replays; i++)
        if (p->replays[i].first == first && p->replays[i].end == end)
            return &p->replays[i];
    return NULL;
}

static enum status remember_run(struct prepared *p, int first, int end, struct error *err)
{
    struct replay *more = realloc(p->replays, ((size_t)p->n_replays + 1) * sizeof *more);
    if (!more)
        return error_no_memory(err, "a list of graphs", sizeof *more);
    p->replays = more;
    p->replays[p->n_replays++] = (struct replay){.first = first, .end = end};
    return OK;
}

static void free_scratch(struct cuda_backend *b, struct replay *r)
{
    for (int l = 0; l < LANES_MOST; l++) {
        if (r->scratch[l])
            cuda_free_memory(&b->base, r->scratch[l], 0);
        r->scratch[l] = NULL;
    }
}

void cuda_release_replays(struct cuda_backend *b, struct prepared *p)
{
    for (int i = 0; i < p->n_replays; i++) {
        if (p->replays[i].graph)
            cudaGraphExecDestroy(p->replays[i].graph);
        free_scratch(b, &p->replays[i]);
    }
    free(p->replays);
}

void cuda_name_nodes(struct cuda_backend *b, struct prepared *p, int first, int end)
{
    struct replay *r = find_replay(p, first, end);
    if (!r || r->named)
        return;
    if (r->graph)
        cudaGraphExecDestroy(r->graph);
    free_scratch(b, r);
    r->graph = NULL;
    r->named = true;
}

bool cuda_has_graph(struct prepared *p, int first, int end) { return find_replay(p, first, end) != NULL; }

/* ---- several lanes ---- */

/* What a capture needs: the plan of its ops, counted from the first of the replay, and events between lanes. */
struct capture {
    struct cuda_backend *b;
    const struct prepared *p;
    struct replay *r;
    struct lane_plan plan;
    cudaEvent_t *done;              /* (n + LANES_MOST): of the ops that are awaited; of all lanes: where the first begins, the others end */
};

static void capture_release(struct capture *c)
{
    for (int i = 0; c->done && i < c->plan.n + LANES_MOST; i++)
        if (c->done[i])
            cudaEventDestroy(c->done[i]);
    free(c->done);
    lanes_release(&c->plan);
}

static bool make_plan(struct capture *c)
{
    const int n = c->r->end - c->r->first;
    size_t *scratch = calloc((size_t)n + 1, sizeof *scratch);
    for (int i = 0; i < n && scratch; i++) {
        const struct cuda_kernel *k = c->p->kernels[c->r->first + i];
        const struct bound_op *op = &c->p->ops[c->r->first + i];
        scratch[i] = k->scratch ? k->scratch(op->program, op->op) : 0;
    }
    const bool made = scratch && lanes_plan(&c->plan, c->p->ops + c->r->first, scratch, n, c->b->lanes);
    free(scratch);
    return made;
}

static bool make_events(struct capture *c)
{
    c->done = calloc((size_t)c->plan.n + LANES_MOST, sizeof *c->done);
    bool made = c->done;
    for (int i = 0; i < c->plan.n + LANES_MOST && made; i++)
        if (i >= c->plan.n || c->plan.ops[i].awaited)
            made = cudaEventCreateWithFlags(&c->done[i], cudaEventDisableTiming) == cudaSuccess;
    return made;
}

static bool open_lanes(struct capture *c)
{
    bool open = true;
    for (int l = 1; l < LANES_MOST && open; l++) {
        if (!c->plan.used[l])
            continue;
        open = cuda_open_side(c->b, l);
        if (open && c->plan.scratch[l])
            open = (c->r->scratch[l] = cuda_alloc(&c->b->base, c->plan.scratch[l])) != NULL;
    }
    return open;
}

/* False: there is to be one lane, because the ops want no more, or because there is no memory for more. */
static bool plan_lanes(struct capture *c)
{
    const struct bound_op *ops = c->p->ops + c->r->first;
    bool beside = c->b->lanes > 1;
    for (int i = 0; i < c->r->end - c->r->first; i++)
        beside &= ops[i].program->fewer_meetings;
    if (!beside)
        return false;
    if (make_plan(c) && make_events(c) && open_lanes(c))
        return true;
    cudaGetLastError();             /* it was no failure of what is run */
    free_scratch(c->b, c->r);
    capture_release(c);
    return false;
}

static cudaStream_t stream_of(const struct capture *c, int lane) { return lane ? c->b->sides[lane].stream : c->b->stream; }

/* The call as it runs in a lane. */
static struct cuda_call call_in(const struct capture *c, int i, int lane)
{
    struct cuda_call call = c->p->calls[c->r->first + i];
    if (lane) {
        call.stream = c->b->sides[lane].stream;
        call.workspace = c->b->sides[lane].workspace;
        call.scratch = c->r->scratch[lane];
    }
    return call;
}

/* Lane `to` goes on when the event of `from` has come; before a capture's first op it becomes a part of it so. */
static cudaError_t hand_over(const struct capture *c, int event, int from, int to)
{
    const cudaError_t e = cudaEventRecord(c->done[event], stream_of(c, from));
    return e == cudaSuccess ? cudaStreamWaitEvent(stream_of(c, to), c->done[event], 0) : e;
}

static enum status start_in_lane(const struct capture *c, int i, struct error *err)
{
    const struct lane_op *op = &c->plan.ops[i];
    const cudaStream_t stream = stream_of(c, op->lane);
    const struct cuda_call call = call_in(c, i, op->lane);
    cudaError_t e = cudaSuccess;
    for (int l = 0; l < LANES_MOST && e == cudaSuccess; l++)
        if (op->after[l] >= 0)
            e = cudaStreamWaitEvent(stream, c->done[op->after[l]], 0);
    enum status st = cuda_said(e, err, "a wait between two ops");
    if (st == OK)
        st = cuda_use_blas(c->b, op->lane, err);
    if (st == OK)
        st = cuda_start_op(c->b, c->p, c->r->first + i, &call, err);
    if (st == OK && op->awaited)
        st = cuda_said(cudaEventRecord(c->done[i], stream), err, "an event behind an op");
    return st;
}

static enum status start_in_lanes(const struct capture *c, struct error *err)
{
    const int n = c->plan.n;
    enum status st = OK;
    for (int l = 1; l < LANES_MOST && st == OK; l++)
        if (c->plan.used[l])
            st = cuda_said(hand_over(c, n, 0, l), err, "the start of a lane");
    for (int k = 0; k < n && st == OK; k++)
        st = start_in_lane(c, c->plan.order[k], err);
    for (int l = 1; l < LANES_MOST && st == OK; l++)
        if (c->plan.used[l])
            st = cuda_said(hand_over(c, n + l, l, 0), err, "the end of a lane");
    return st;
}

/* ---- */

static enum status capture(struct cuda_backend *b, struct prepared *p, struct replay *r, struct error *err)
{
    struct capture c = {.b = b, .p = p, .r = r};
    cudaGraph_t graph = NULL;
    struct error unended;
    const bool lanes = plan_lanes(&c);
    enum status st = cuda_said(cudaStreamBeginCapture(b->stream, cudaStreamCaptureModeThreadLocal), err, "the start of a capture");
    if (st == OK) {
        st = lanes ? start_in_lanes(&c, err) : cuda_start_ops(b, p, r->first, r->end, err);
        const enum status back = cuda_use_blas(b, 0, st == OK ? err : &unended);
        st = st == OK ? back : st;
        const enum status ended = cuda_said(cudaStreamEndCapture(b->stream, &graph), st == OK ? err : &unended, "the capture of a step");
        st = st == OK ? ended : st;
    }
    if (st == OK)
        st = cuda_said(cudaGraphInstantiate(&r->graph, graph, cudaGraphInstantiateFlagUseNodePriority), err, "making a graph of a step");
    if (graph)
        cudaGraphDestroy(graph);
    capture_release(&c);
    return st;
}

static enum status launch(struct cuda_backend *b, const struct prepared *p, const struct replay *r, struct error *err)
{
    cuda_name_graph(b, &p->ops[r->first], &p->ops[r->end - 1]);
    const cudaError_t e = cudaGraphLaunch(r->graph, b->stream);
    cuda_name_end(b);
    return cuda_said(e, err, "a step, or what was before it");
}

enum status cuda_replay(struct cuda_backend *b, struct prepared *p, int first, int end, struct error *err)
{
    struct replay *r = find_replay(p, first, end);
    if (!r) {
        const enum status st = cuda_start_ops(b, p, first, end, err);
        return st == OK ? remember_run(p, first, end, err) : st;
    }
    const enum status st = r->graph ? OK : capture(b, p, r, err);
    return st == OK ? launch(b, p, r, err) : st;
}
