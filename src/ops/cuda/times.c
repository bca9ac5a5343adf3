/* When ops ran. CUPTI tells of every kernel when it began and ended, also inside of a graph: then a measured step runs as others do. Where
 * CUPTI cannot be had, ops go one by one with an event behind each, and what the host needs to start them is in their times. Once
 * kernels cannot all be told apart, it is events for the rest of the process. */
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "ops/cuda/cuda_int.h"
#include "ops/cuda/cupti.h"
#include "ops/cuda/spans.h"

static bool given_up;               /* on CUPTI */
static char by_events[256];

static const char BY_KERNELS[] = "CUPTI's records of kernels";

/* ---- records of kernels ---- */

static int at_least_1(int x) { return x > 0 ? x : 1; }

static int attribute(enum cudaDeviceAttr a)
{
    int x = 0, device = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&x, a, device);
    return x;
}

/* Warps that a kernel can have on the device at once, of those that fit there. */
static double occupancy(const struct kernel_span *s)
{
    const int warps = (s->threads + 31) / 32, most_warps = attribute(cudaDevAttrMaxThreadsPerMultiProcessor) / 32;
    const int by_registers = attribute(cudaDevAttrMaxRegistersPerMultiprocessor) / at_least_1(warps * 32 * ((s->registers + 7) / 8 * 8));
    const int by_shared = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / (s->shared_bytes + 1024);
    int blocks = most_warps / at_least_1(warps);
    blocks = by_registers < blocks ? by_registers : blocks;
    blocks = at_least_1(by_shared < blocks ? by_shared : blocks);
    const double all = (double)attribute(cudaDevAttrMultiProcessorCount), there = (double)s->blocks < blocks * all ? s->blocks : blocks * all;
    const double x = there * warps / (all * at_least_1(most_warps));
    return x < 1 ? x : 1;
}

static void note_occupancy(struct prepared *p, const struct kernel_span *s, int n)
{
    if (p->occupancy || !(p->occupancy = calloc((size_t)p->n + 1, sizeof *p->occupancy)))
        return;
    double *sum = calloc((size_t)p->n + 1, sizeof *sum);
    for (int i = 0; i < n && sum; i++)
        if (s[i].is_kernel && s[i].op >= 0 && s[i].op < p->n) {
            const double ns = (double)(s[i].end_ns - s[i].start_ns);
            p->occupancy[s[i].op] += ns * occupancy(&s[i]);
            sum[s[i].op] += ns;
        }
    for (int i = 0; i < p->n && sum; i++)
        p->occupancy[i] = sum[i] > 0 ? p->occupancy[i] / sum[i] : 0;
    free(sum);
}

static bool is_of(const struct kernel_span *s, int first, int end) { return s->op >= first && s->op < end; }

/* All kernels since `start` were recorded whole, and are of ops of this range. */
static bool all_told(const struct kernel_span *s, int n, int first, int end, int64_t start)
{
    int strange = 0;
    for (int i = 0; i < n; i++)
        strange += s[i].start_ns <= 0 || s[i].end_ns < s[i].start_ns || (s[i].is_kernel && s[i].start_ns >= start && !is_of(&s[i], first, end));
    if (n && !strange)
        return true;
    snprintf(by_events, sizeof by_events, "events behind ops (of %d kernels CUPTI told of %d whose they were)", n, n - strange);
    return false;
}

/* Of those that are of ops alone: an upload on the way takes nobody's time. */
static bool lay_out(const struct kernel_span *s, int n, int first, int end, struct lane_time *times, int64_t start)
{
    const size_t most = n > 0 ? (size_t)n : 1;
    struct kernel_span *of_ops = calloc(most, sizeof *of_ops);
    double *part = calloc(most, sizeof *part);
    const bool room = of_ops && part;
    int k = 0;
    for (int i = 0; i < n && room; i++)
        if (is_of(&s[i], first, end))
            of_ops[k++] = s[i];
    if (room)
        spans_lay_out(of_ops, k, first, end, times, start, part);
    free(of_ops);
    free(part);
    return room;
}

/* Queues are numbered in the order in which their first kernels come. */
static int queue_of(uint32_t stream, uint32_t *streams, int *n)
{
    int q = 0;
    while (q < *n && streams[q] != stream)
        q++;
    if (q == *n && q < LANES_MOST)
        streams[(*n)++] = stream;
    return q < LANES_MOST ? q : LANES_MOST - 1;
}

/* Where there is no room for them, they are not told. */
static void tell_events(struct cuda_backend *b, const struct prepared *p, const struct kernel_span *s, int n, int first, int end)
{
    const int launches = b->n_launches;
    uint32_t streams[LANES_MOST];
    int queues = 0;
    b->base.n_events = 0;
    struct device_event *list = realloc(b->events, ((size_t)n + (size_t)launches + 1) * sizeof *list);
    if (!list)
        return;
    b->base.events = b->events = list;
    for (int i = 0; i < launches; i++)
        list[b->base.n_events++] = b->launches[i];
    for (int i = 0; i < n; i++) {
        const bool own = is_of(&s[i], first, end);
        if (own || !s[i].is_kernel)
            list[b->base.n_events++] = (struct device_event){
                s[i].is_kernel ? DEVICE_KERNEL : s[i].is_fill ? DEVICE_FILL : DEVICE_COPY,
                s[i].is_kernel ? queue_of(s[i].stream, streams, &queues) : 0, own ? p->ops[s[i].op].op : NULL, s[i].start_ns, s[i].end_ns};
    }
}

void cuda_note_launch(struct cuda_backend *b, const struct op *op, int64_t start)
{
    if (!b->noting || b->n_launches == b->room)
        return;
    b->launches[b->n_launches++] = (struct device_event){DEVICE_LAUNCH, 0, op, start, clock_ns()};
}

/* Launches are told from now on: one for each op, or one of a graph. */
static void note_launches(struct cuda_backend *b, int ops)
{
    if (ops + 1 > b->room) {
        struct device_event *list = realloc(b->launches, ((size_t)ops + 1) * sizeof *list);
        b->launches = list ? list : b->launches;
        b->room = list ? ops + 1 : b->room;
    }
    b->n_launches = 0;
    b->noting = true;
}

/* ---- events ---- */

static void free_events(struct prepared *p)
{
    for (int i = 0; p->events && i <= p->n; i++)
        if (p->events[i])
            cudaEventDestroy(p->events[i]);
    free(p->events);
    p->events = NULL;
}

void cuda_release_times(struct prepared *p)
{
    free_events(p);
    free(p->occupancy);
    p->occupancy = NULL;
}

static enum status make_events(struct prepared *p, struct error *err)
{
    if (p->events)
        return OK;
    p->events = calloc((size_t)p->n + 1, sizeof *p->events);
    if (!p->events)
        return error_no_memory(err, "events around ops", (size_t)p->n * sizeof *p->events);
    enum status st = OK;
    for (int i = 0; i <= p->n && st == OK; i++)
        st = cuda_said(cudaEventCreate(&p->events[i]), err, "an event");
    if (st != OK)
        free_events(p);
    return st;
}

static enum status run_between_events(struct cuda_backend *b, struct prepared *p, int first, int end, struct error *err)
{
    enum status st = cuda_said(cudaEventRecord(p->events[0], b->stream), err, "an event");
    for (int i = first; i < end && st == OK; i++) {
        st = cuda_start_ops(b, p, i, i + 1, err);
        if (st == OK)
            st = cuda_said(cudaEventRecord(p->events[i - first + 1], b->stream), err, "an event");
    }
    return st;
}

/* The device's clock is laid onto the host's at the first event, while the device has nothing else to do: no op seems to begin before the
 * host asked for it, or to end after the host has seen it end. An op lasts from the end of the one before it. */
static enum status run_with_events(struct cuda_backend *b, struct prepared *p, int first, int end, struct lane_time *times, struct error *err)
{
    enum status st = make_events(p, err);
    if (st == OK)
        st = cuda_finish(&b->base, err);
    const int64_t start = clock_ns();
    if (st == OK)
        st = run_between_events(b, p, first, end, err);
    if (st == OK)
        st = cuda_finish(&b->base, err);
    const int64_t stop = clock_ns();
    int64_t before = start;
    for (int i = 0; i < end - first && st == OK; i++) {
        float ms = 0;
        st = cuda_said(cudaEventElapsedTime(&ms, p->events[0], p->events[i + 1]), err, "the time of an op");
        int64_t now = start + (int64_t)((double)ms * 1e6);
        now = now > stop ? stop : now < before ? before : now;
        times[i] = (struct lane_time){.start_ns = before, .end_ns = now};
        before = now;
    }
    return st;
}

static enum status run_by_events(struct cuda_backend *b, struct prepared *p, int first, int end, struct lane_time *times, struct error *err)
{
    if (!by_events[0])
        snprintf(by_events, sizeof by_events, "events behind ops, which count what it takes to start them%s%s%s",
                 *cupti_refusal() ? " (" : "", cupti_refusal(), *cupti_refusal() ? ")" : "");
    b->base.timed_by = by_events;
    b->base.times_kernels = false;
    b->base.ran_from_ns = b->base.ran_to_ns = 0;
    b->base.n_events = 0;
    return run_with_events(b, p, first, end, times, err);
}

/* ---- by CUPTI, or by events ---- */

static enum status run_traced(struct cuda_backend *b, struct prepared *p, int first, int end, struct lane_time *times, struct error *err)
{
    const bool graph = cuda_captures(b, p, first, end);
    int n = 0;
    enum status st = cuda_finish(&b->base, err);
    if (st == OK && graph)
        cuda_name_nodes(b, p, first, end);
    if (st == OK && !cupti_begin(!graph || !cuda_has_graph(p, first, end))) {
        given_up = true;
        cupti_stop();
        return run_by_events(b, p, first, end, times, err);
    }
    note_launches(b, end - first);
    const int64_t start = clock_ns();
    if (st == OK)
        st = graph ? cuda_replay(b, p, first, end, err) : cuda_start_ops(b, p, first, end, err);
    b->noting = false;
    if (st == OK)
        st = cuda_finish(&b->base, err);
    const int64_t stop = clock_ns();
    b->base.ran_from_ns = start;
    b->base.ran_to_ns = stop;
    const struct kernel_span *s = cupti_end(&n);
    if (st == OK && all_told(s, n, first, end, start) && lay_out(s, n, first, end, times, start)) {
        note_occupancy(p, s, n);
        tell_events(b, p, s, n, first, end);
        b->base.timed_by = BY_KERNELS;
        b->base.times_kernels = true;
    } else if (st == OK) {
        given_up = true;            /* this run is over: its time is spread, and those to come have events */
        b->base.n_events = 0;
        cupti_stop();
        spans_spread(times, end - first, start, stop);
    }
    return st;
}

enum status cuda_run_measured(struct cuda_backend *b, struct prepared *p, int first, int end, struct lane_time *times, struct error *err)
{
    const bool traces = b->base.traces && !given_up && cupti_open();
    return traces ? run_traced(b, p, first, end, times, err) : run_by_events(b, p, first, end, times, err);
}

/* ---- how many kernels ---- */

/* Into a graph that is thrown away: nothing is run. */
int cuda_kernels(struct backend *base, struct prepared *p, int first, int end)
{
    struct cuda_backend *b = (struct cuda_backend *)base;
    cudaGraph_t graph = NULL;
    cudaGraphNode_t *list = NULL;
    size_t n = 0;
    int kernels = -1;
    if (cudaStreamBeginCapture(b->stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess)
        return -1;
    const bool checks = b->checks;
    b->checks = false;              /* one cannot wait in a capture */
    b->comm.silent = true;
    const enum status st = cuda_start_ops(b, p, first, end, NULL);
    b->checks = checks;
    b->comm.silent = false;
    const bool made = cudaStreamEndCapture(b->stream, &graph) == cudaSuccess && st == OK;
    if (made && cudaGraphGetNodes(graph, NULL, &n) == cudaSuccess && (list = calloc(n + 1, sizeof *list)) &&
        cudaGraphGetNodes(graph, list, &n) == cudaSuccess) {
        kernels = 0;
        for (size_t i = 0; i < n; i++) {
            enum cudaGraphNodeType type;
            kernels += cudaGraphNodeGetType(list[i], &type) == cudaSuccess && type == cudaGraphNodeTypeKernel;
        }
    }
    free(list);
    if (graph)
        cudaGraphDestroy(graph);
    cudaGetLastError();
    return kernels;
}
