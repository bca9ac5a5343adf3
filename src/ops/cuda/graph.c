/* Runs lists of ops as graphs. The first time every kernel is started by itself, so that all of them are loaded and one that cannot start
 * is named; the second time they are captured into a graph, which is replayed from then on, unless there is no memory for it. Where the program lets ops go beside each
 * other (fewer_meetings), the graph has a few lanes (lanes.c), in which some ops run piece by piece, each with a stream, scratch and memory for cuBLAS of its own; where one of
 * these cannot be had, it has one. Either way the bits are the same: an op does the same wherever it runs. */
#include <stdlib.h>

#include "core/clock.h"
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

static void free_memory_of(struct cuda_backend *b, struct replay *r)
{
    for (int l = 0; l < LANES_MOST; l++) {
        if (r->scratch[l])
            cuda_free_memory(&b->base, r->scratch[l], 0);
        r->scratch[l] = NULL;
    }
    if (r->own)
        cuda_free_memory(&b->base, r->own, 0);
    r->own = NULL;
}

void cuda_release_replays(struct cuda_backend *b, struct prepared *p)
{
    for (int i = 0; i < p->n_replays; i++) {
        if (p->replays[i].graph)
            cudaGraphExecDestroy(p->replays[i].graph);
        free_memory_of(b, &p->replays[i]);
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
    free_memory_of(b, r);
    r->graph = NULL;
    r->none = false;
    r->named = true;
}

bool cuda_captures_program(const struct cuda_backend *b, const struct program *p)
{
    return !b->checks && (b->graphs == GRAPHS_ALWAYS || (b->graphs == GRAPHS_BY_PROGRAM && p->captured));
}

bool cuda_captures(const struct cuda_backend *b, const struct prepared *p, int first, int end)
{
    return first < end && cuda_captures_program(b, p->ops[first].program);
}

bool cuda_has_graph(struct prepared *p, int first, int end)
{
    const struct replay *r = find_replay(p, first, end);
    return r && !r->none;
}

/* ---- several lanes ---- */

/* What a capture needs: its ops and pieces of ops, the plan of their lanes, and events between these. */
struct capture {
    struct cuda_backend *b;
    const struct prepared *p;
    struct replay *r;
    struct cuda_items items;
    struct lane_plan plan;
    cudaEvent_t *done;              /* (n + LANES_MOST): of those that are awaited; of all lanes: where the first begins, the others end */
};

static void capture_release(struct capture *c)
{
    for (int i = 0; c->done && i < c->items.n + LANES_MOST; i++)
        if (c->done[i])
            cudaEventDestroy(c->done[i]);
    free(c->done);
    cuda_items_release(&c->items);
    lanes_release(&c->plan);
}

static bool make_plan(struct capture *c)
{
    return cuda_items_make(&c->items, c->b, c->p, c->r) && lanes_plan(&c->plan, c->items.list, c->items.n, c->b->lanes);
}

static bool make_events(struct capture *c)
{
    c->done = calloc((size_t)c->items.n + LANES_MOST, sizeof *c->done);
    bool made = c->done;
    for (int i = 0; i < c->items.n + LANES_MOST && made; i++)
        if (i >= c->items.n || c->plan.places[i].awaited)
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
    free_memory_of(c->b, c->r);
    return false;
}

static cudaStream_t stream_of(const struct capture *c, int lane) { return lane ? c->b->sides[lane].stream : c->b->stream; }

/* The call as it runs in a lane. */
static struct cuda_call call_in(const struct capture *c, int op, int lane)
{
    struct cuda_call call = c->items.calls[op - c->r->first];
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
    const struct lane_place *at = &c->plan.places[i];
    const struct cuda_piece what = c->items.pieces[i];
    const cudaStream_t stream = stream_of(c, at->lane);
    const struct cuda_call call = call_in(c, what.op, at->lane);
    cudaError_t e = cudaSuccess;
    for (int l = 0; l < LANES_MOST && e == cudaSuccess; l++)
        if (at->after[l] >= 0)
            e = cudaStreamWaitEvent(stream, c->done[at->after[l]], 0);
    enum status st = cuda_said(e, err, "a wait between two ops");
    if (st == OK)
        st = cuda_use_blas(c->b, at->lane, err);
    if (st == OK)
        st = cuda_start_op(c->b, c->p, what.op, what.piece, &call, err);
    if (st == OK && at->awaited)
        st = cuda_said(cudaEventRecord(c->done[i], stream), err, "an event behind an op");
    return st;
}

static enum status start_in_lanes(const struct capture *c, struct error *err)
{
    enum status st = OK;
    cuda_comm_begin(c->b);
    for (int l = 1; l < LANES_MOST && st == OK; l++)
        if (c->plan.used[l])
            st = cuda_said(hand_over(c, c->items.n, 0, l), err, "the start of a lane");
    for (int k = 0; k < c->items.n && st == OK; k++)
        st = start_in_lane(c, c->plan.order[k], err);
    for (int l = 1; l < LANES_MOST && st == OK; l++)
        if (c->plan.used[l])
            st = cuda_said(hand_over(c, c->items.n + l, l, 0), err, "the end of a lane");
    return st == OK ? cuda_comm_end(c->b, err) : st;
}

/* ---- */

/* *lanes: whether there may be several; then, whether there are. */
static enum status capture_with(struct cuda_backend *b, struct prepared *p, struct replay *r, bool *lanes, struct error *err)
{
    struct capture c = {.b = b, .p = p, .r = r};
    cudaGraph_t graph = NULL;
    struct error unended;
    const bool noting = b->noting;
    *lanes = *lanes && plan_lanes(&c);
    b->noting = false;              /* nothing is started */
    enum status st = cuda_said(cudaStreamBeginCapture(b->stream, cudaStreamCaptureModeThreadLocal), err, "the start of a capture");
    if (st == OK) {
        st = *lanes ? start_in_lanes(&c, err) : cuda_start_ops(b, p, r->first, r->end, err);
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
    b->noting = noting;
    return st;
}

/* Lanes are made while there is memory for them: where the graph itself then finds none, it has theirs. Where that is too little, too, there is none. */
static enum status capture(struct cuda_backend *b, struct prepared *p, struct replay *r, struct error *err)
{
    struct error why = {.status = OK};
    enum status st = CANNOT;
    for (bool lanes = true, again = true; st != OK && again; lanes = false) {
        why = (struct error){.status = OK};
        st = capture_with(b, p, r, &lanes, &why);
        again = st != OK && lanes && why.no_memory;
        if (st != OK)
            free_memory_of(b, r);
    }
    if (st == OK)
        return OK;
    cudaGetLastError();
    r->none = why.no_memory;
    if (err)
        *err = why;
    return r->none ? OK : st;
}

static enum status launch(struct cuda_backend *b, const struct prepared *p, const struct replay *r, struct error *err)
{
    cuda_name_graph(b, &p->ops[r->first], &p->ops[r->end - 1]);
    const int64_t start = b->noting ? clock_ns() : 0;
    const cudaError_t e = cudaGraphLaunch(r->graph, b->stream);
    cuda_note_launch(b, NULL, start);
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
    const enum status st = r->graph || r->none ? OK : capture(b, p, r, err);
    if (st != OK)
        return st;
    return r->none ? cuda_start_ops(b, p, first, end, err) : launch(b, p, r, err);
}
