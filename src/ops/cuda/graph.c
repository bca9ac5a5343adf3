/* Runs lists of ops as graphs. The first time every kernel is started by itself, so that all of them are loaded and one that cannot start
 * is named; the second time they are captured into a graph, which is replayed from then on. Where the program lets ops go beside each
 * other (fewer_meetings), the graph has a few lanes (lanes.c), in which some ops run piece by piece, each with a stream, scratch and memory for cuBLAS of its own; where one of
 * these cannot be had, it has one. Either way the bits are the same: an op does the same wherever it runs. */
#include <stdlib.h>

#include "ops/cuda/products.h"

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

/* ---- several lanes ---- */

struct piece { int op, piece; };    /* op: of the list that is prepared; piece -1: all of it */

/* What a capture needs: its ops and pieces of ops, the plan of their lanes, and events between these. */
struct capture {
    struct cuda_backend *b;
    const struct prepared *p;
    struct replay *r;
    struct cuda_call *calls;        /* (ops), as they are but for what is their own */
    struct piece *pieces;           /* (n) */
    struct lane_item *items;        /* (n) */
    struct lane_touch *touches;
    int n;
    struct lane_plan plan;
    cudaEvent_t *done;              /* (n + LANES_MOST): of those that are awaited; of all lanes: where the first begins, the others end */
};

static void capture_release(struct capture *c)
{
    for (int i = 0; c->done && i < c->n + LANES_MOST; i++)
        if (c->done[i])
            cudaEventDestroy(c->done[i]);
    free(c->done);
    free(c->calls);
    free(c->pieces);
    free(c->items);
    free(c->touches);
    lanes_release(&c->plan);
}

static const struct cuda_pieces *pieces_of(const struct capture *c, int op) { return cuda_pieces_of(c->p->ops[op].op->kind); }

static int count_pieces(const struct capture *c, int op)
{
    const struct cuda_pieces *s = pieces_of(c, op);
    return s ? s->count(c->p->ops[op].program, c->p->ops[op].op) : 1;
}

static size_t own_bytes(const struct capture *c, int op)
{
    const struct cuda_pieces *s = pieces_of(c, op);
    const size_t bytes = s && s->own && count_pieces(c, op) > 1 ? s->own(c->p->ops[op].program, c->p->ops[op].op) : 0;
    return (bytes + 255) / 256 * 256;
}

/* Calls with what is their own, in one memory for all. */
static bool make_calls(struct capture *c)
{
    const int first = c->r->first, n = c->r->end - first;
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += own_bytes(c, first + i);
    c->calls = calloc((size_t)n + 1, sizeof *c->calls);
    c->r->own = bytes ? cuda_alloc(&c->b->base, bytes) : NULL;
    if (!c->calls || (bytes && !c->r->own))
        return false;
    char *at = c->r->own;
    for (int i = 0; i < n; i++) {
        const size_t own = own_bytes(c, first + i);
        c->calls[i] = c->p->calls[first + i];
        c->calls[i].own = own ? at : NULL;
        at += own;
    }
    return true;
}

static bool make_room(struct capture *c)
{
    size_t pieces = 0, touches = 0;
    for (int i = c->r->first; i < c->r->end; i++) {
        const struct op *op = c->p->ops[i].op;
        const size_t n = (size_t)count_pieces(c, i);
        pieces += n;
        touches += n * ((size_t)op->n_in + (size_t)op->n_out + 2);
    }
    c->pieces = calloc(pieces + 1, sizeof *c->pieces);
    c->items = calloc(pieces + 1, sizeof *c->items);
    c->touches = calloc(touches + 1, sizeof *c->touches);
    return c->pieces && c->items && c->touches;
}

/* Of a product that does a part of another op's work, that too: where it writes the other's result, its list of outputs has it already. */
static int touches_of_op(const struct capture *c, int op, struct lane_touch *out)
{
    const struct bound_op *b = &c->p->ops[op];
    const struct cuda_call *call = &c->p->calls[op];
    const struct value *values = b->program->values;
    int n = 0;
    for (int i = 0; i < b->op->n_in; i++)
        out[n++] = (struct lane_touch){b->in[i], value_bytes(&values[b->op->in[i]]), false};
    for (int i = 0; i < b->op->n_out; i++)
        out[n++] = (struct lane_touch){b->out[i], value_bytes(&values[b->op->out[i]]), true};
    if (call->beside && call->plans[0]->product.end != END_BIAS_GRAD)
        out[n++] = (struct lane_touch){call->beside, value_bytes(&values[b->op->out[0]]), false};
    return n;
}

/* Ops whose work others do are not among them. */
static void list_items(struct capture *c)
{
    struct lane_touch *at = c->touches;
    for (int i = c->r->first; i < c->r->end; i++) {
        const struct bound_op *b = &c->p->ops[i];
        const struct cuda_kernel *k = c->p->kernels[i];
        const int n = c->p->calls[i].merged ? 0 : count_pieces(c, i);
        for (int j = 0; j < n; j++, c->n++) {
            const int touched = n > 1 ? pieces_of(c, i)->touches(&c->calls[i - c->r->first], j, at) : touches_of_op(c, i, at);
            c->pieces[c->n] = (struct piece){i, n > 1 ? j : -1};
            c->items[c->n] = (struct lane_item){at, touched, k->scratch ? k->scratch(b->program, b->op) : 0,
                                                lanes_guess_us(b->program, b->op) / n};
            at += touched;
        }
    }
}

static bool make_plan(struct capture *c)
{
    if (!make_calls(c) || !make_room(c))
        return false;
    list_items(c);
    return lanes_plan(&c->plan, c->items, c->n, c->b->lanes);
}

static bool make_events(struct capture *c)
{
    c->done = calloc((size_t)c->n + LANES_MOST, sizeof *c->done);
    bool made = c->done;
    for (int i = 0; i < c->n + LANES_MOST && made; i++)
        if (i >= c->n || c->plan.places[i].awaited)
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
    struct cuda_call call = c->calls[op - c->r->first];
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
    const struct piece what = c->pieces[i];
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
    for (int l = 1; l < LANES_MOST && st == OK; l++)
        if (c->plan.used[l])
            st = cuda_said(hand_over(c, c->n, 0, l), err, "the start of a lane");
    for (int k = 0; k < c->n && st == OK; k++)
        st = start_in_lane(c, c->plan.order[k], err);
    for (int l = 1; l < LANES_MOST && st == OK; l++)
        if (c->plan.used[l])
            st = cuda_said(hand_over(c, c->n + l, l, 0), err, "the end of a lane");
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
