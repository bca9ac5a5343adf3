/* Records of kernels; see cupti.h. What CUPTI tells comes on threads of its own, a buffer at a time; all of it has come when a flush
 * returns. Nodes of graphs have numbers, also their copies in a graph that can be launched: each is told when it is made. */
#include "ops/cuda/cupti.h"

#include "core/clock.h"
#include "ops/cuda/cuda_int.h"

static int current = -1;            /* the op that is being started */

#ifdef HONE_CUPTI

#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_BYTES = 1 << 20 };

struct whose { uint64_t id; int op; };      /* a node of a graph, or a call of the host */
struct owners { struct whose *list; size_t n, room; };
struct record { struct kernel_span span; uint64_t node; uint32_t call; };

static struct {
    CUptiResult (*subscribe)(CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *);
    CUptiResult (*enable_callback)(uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain, CUpti_CallbackId);
    CUptiResult (*node_id)(CUgraphNode, uint64_t *);
    CUptiResult (*register_buffers)(CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc);
    CUptiResult (*register_clock)(CUpti_TimestampCallbackFunc);
    CUptiResult (*enable)(CUpti_ActivityKind);
    CUptiResult (*disable)(CUpti_ActivityKind);
    CUptiResult (*flush)(uint32_t);
    CUptiResult (*next)(uint8_t *, size_t, CUpti_Activity **);
    CUptiResult (*push)(CUpti_ExternalCorrelationKind, uint64_t);
    CUptiResult (*pop)(CUpti_ExternalCorrelationKind, uint64_t *);
} cupti;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char refusal[160];
static bool open, recording, tracing, by_calls, lost;   /* recording: since the first stretch; lost: there was no memory for a record */
static struct owners nodes, calls;
static struct record *records;
static size_t n_records, room;
static struct kernel_span *spans;

/* ---- what CUPTI tells ---- */

static void own(struct owners *o, uint64_t id, int op)
{
    if (o->n == o->room) {
        const size_t more = o->room ? 2 * o->room : 256;
        struct whose *list = realloc(o->list, more * sizeof *list);
        lost |= !list;
        if (!list)
            return;
        o->list = list;
        o->room = more;
    }
    o->list[o->n++] = (struct whose){id, op};
}

/* The newest first: numbers of what is gone may come again. */
static int owner(const struct owners *o, uint64_t id)
{
    for (size_t i = o->n; i-- > 0;)
        if (o->list[i].id == id)
            return o->list[i].op;
    return -1;
}

static void CUPTIAPI on_resource(void *context, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
    (void)context;
    if (domain != CUPTI_CB_DOMAIN_RESOURCE)
        return;
    const CUpti_GraphData *g = ((const CUpti_ResourceData *)data)->resourceDescriptor;
    uint64_t node, original;
    int op = -1;
    if (!g || cupti.node_id(g->node, &node) != CUPTI_SUCCESS)
        return;
    pthread_mutex_lock(&lock);
    if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED)
        op = current;
    else if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED && cupti.node_id(g->originalNode, &original) == CUPTI_SUCCESS)
        op = owner(&nodes, original);
    if (op >= 0)
        own(&nodes, node, op);
    pthread_mutex_unlock(&lock);
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *most_records)
{
    *buffer = aligned_alloc(8, BUFFER_BYTES);
    *size = *buffer ? BUFFER_BYTES : 0;
    *most_records = 0;
}

static void keep(struct record r)
{
    if (n_records == room) {
        const size_t more = room ? 2 * room : 1024;
        struct record *list = realloc(records, more * sizeof *list);
        lost |= !list;
        if (!list)
            return;
        records = list;
        room = more;
    }
    records[n_records++] = r;
}

/* Later versions of these structures have more at their ends. */
static void read_record(const CUpti_Activity *a)
{
    if (a->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || a->kind == CUPTI_ACTIVITY_KIND_KERNEL) {
        const CUpti_ActivityKernel9 *k = (const CUpti_ActivityKernel9 *)a;
        keep((struct record){{-1, (int64_t)k->start, (int64_t)k->end, true, false, k->streamId, k->gridX * k->gridY * k->gridZ, k->blockX * k->blockY * k->blockZ,
                              k->registersPerThread, k->staticSharedMemory + k->dynamicSharedMemory}, k->graphNodeId, k->correlationId});
    } else if (a->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
        const CUpti_ActivityMemcpy5 *m = (const CUpti_ActivityMemcpy5 *)a;
        keep((struct record){{-1, (int64_t)m->start, (int64_t)m->end, false, false, m->streamId, 0, 0, 0, 0}, m->graphNodeId, m->correlationId});
    } else if (a->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
        const CUpti_ActivityMemset4 *m = (const CUpti_ActivityMemset4 *)a;
        keep((struct record){{-1, (int64_t)m->start, (int64_t)m->end, false, true, m->streamId, 0, 0, 0, 0}, m->graphNodeId, m->correlationId});
    } else if (a->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
        const CUpti_ActivityExternalCorrelation *e = (const CUpti_ActivityExternalCorrelation *)a;
        own(&calls, e->correlationId, (int)e->externalId);
    }
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t used)
{
    CUpti_Activity *a = NULL;
    (void)context, (void)stream, (void)size;
    pthread_mutex_lock(&lock);
    while (used && cupti.next(buffer, used, &a) == CUPTI_SUCCESS)
        read_record(a);
    pthread_mutex_unlock(&lock);
    free(buffer);
}

static uint64_t CUPTIAPI host_clock(void) { return (uint64_t)clock_ns(); }

/* ---- the library ---- */

static bool find_functions(void *library)
{
    const struct { const char *name; void *to; } functions[] = {
        {"cuptiSubscribe", &cupti.subscribe}, {"cuptiEnableCallback", &cupti.enable_callback},
        {"cuptiGetGraphNodeId", &cupti.node_id}, {"cuptiActivityRegisterCallbacks", &cupti.register_buffers},
        {"cuptiActivityRegisterTimestampCallback", &cupti.register_clock}, {"cuptiActivityEnable", &cupti.enable},
        {"cuptiActivityDisable", &cupti.disable}, {"cuptiActivityFlushAll", &cupti.flush}, {"cuptiActivityGetNextRecord", &cupti.next},
        {"cuptiActivityPushExternalCorrelationId", &cupti.push}, {"cuptiActivityPopExternalCorrelationId", &cupti.pop}};
    bool all = true;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *f = dlsym(library, functions[i].name);
        memcpy(functions[i].to, &f, sizeof f);
        all &= f != NULL;
    }
    return all;
}

static void load(void)
{
    CUpti_SubscriberHandle us;
    void *library = dlopen(HONE_CUPTI, RTLD_NOW | RTLD_LOCAL);
    if (!library || !find_functions(library)) {
        snprintf(refusal, sizeof refusal, "CUPTI is not there");
        return;
    }
    CUptiResult r = cupti.subscribe(&us, on_resource, NULL);
    if (r == CUPTI_SUCCESS)
        r = cupti.enable_callback(1, us, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
    if (r == CUPTI_SUCCESS)
        r = cupti.enable_callback(1, us, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
    if (r == CUPTI_SUCCESS)
        r = cupti.register_clock(host_clock);
    if (r == CUPTI_SUCCESS)
        r = cupti.register_buffers(give_buffer, take_buffer);
    if (r != CUPTI_SUCCESS)
        snprintf(refusal, sizeof refusal, "CUPTI cannot be used (%d)", (int)r);
    open = r == CUPTI_SUCCESS;
}

bool cupti_open(void)
{
    const char *events = getenv("HONE_CUDA_EVENTS");
    if (events && *events && strcmp(events, "0")) {
        snprintf(refusal, sizeof refusal, "HONE_CUDA_EVENTS is set");
        return false;
    }
    pthread_once(&once, load);
    return open;
}

const char *cupti_refusal(void) { return refusal; }

/* ---- a stretch of work ---- */

void cupti_mark(int op)
{
    uint64_t last;
    if (tracing && by_calls && current >= 0)
        cupti.pop(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
    if (tracing && by_calls && op >= 0)
        cupti.push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, (uint64_t)op);
    current = op;
}

static const CUpti_ActivityKind kinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
    /* and for kernels that the host starts: its calls, and whose they are */
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER};
enum { KINDS_OF_DEVICE = 3, KINDS = sizeof kinds / sizeof *kinds };

/* What happens on the device is recorded from the first time on, also between two stretches: uploads are there. */
bool cupti_begin(bool one_by_one)
{
    bool all = open;
    by_calls = one_by_one;
    calls.n = 0;
    lost = false;
    for (int i = 0; i < (one_by_one ? KINDS : KINDS_OF_DEVICE) && all; i++)
        all = cupti.enable(kinds[i]) == CUPTI_SUCCESS;
    recording = tracing = true;
    if (!all)
        cupti_stop();
    return all;
}

void cupti_stop(void)
{
    if (!recording)
        return;
    cupti_end(&(int){0});
    for (int i = 0; i < KINDS_OF_DEVICE; i++)
        cupti.disable(kinds[i]);
    recording = false;
}

static int earlier(const void *a, const void *b)
{
    const int64_t x = ((const struct record *)a)->span.start_ns, y = ((const struct record *)b)->span.start_ns;
    return x < y ? -1 : x > y;
}

const struct kernel_span *cupti_end(int *n)
{
    for (int i = KINDS_OF_DEVICE; i < KINDS && by_calls; i++)
        cupti.disable(kinds[i]);
    cupti.flush(1);
    tracing = false;
    pthread_mutex_lock(&lock);
    qsort(records, n_records, sizeof *records, earlier);
    free(spans);
    spans = malloc((n_records + 1) * sizeof *spans);
    for (size_t i = 0; i < n_records && spans; i++) {
        spans[i] = records[i].span;
        spans[i].op = records[i].node ? owner(&nodes, records[i].node) : owner(&calls, records[i].call);
    }
    *n = spans && !lost ? (int)n_records : 0;
    n_records = 0;
    pthread_mutex_unlock(&lock);
    return spans;
}

#else

bool cupti_open(void) { return false; }
const char *cupti_refusal(void) { return "CUPTI was not there when this was built"; }
void cupti_mark(int op) { current = op; }
bool cupti_begin(bool one_by_one) { return one_by_one && current > INT32_MAX - 1; }

const struct kernel_span *cupti_end(int *n)
{
    *n = 0;
    return NULL;
}

void cupti_stop(void) {}

#endif
