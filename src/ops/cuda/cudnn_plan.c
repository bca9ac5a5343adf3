/* From a graph to something that runs: which of cuDNN's engines does it, and how. */
#ifdef HONE_CUDNN

#include "ops/cuda/cudnn_int.h"

enum { PROPOSALS = 16, NOTES = CUDNN_NUMERICAL_NOTE_TYPE_COUNT };

static bool done(cudnnStatus_t s) { return s == CUDNN_STATUS_SUCCESS; }

/* A descriptor that lives as long as the graph, whatever becomes of it. */
static cudnnBackendDescriptor_t make(struct cudnn_graph *g, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t d = NULL;
    if (g->n_made == CUDNN_DESCRIPTORS || !done(g->lib->cudnnBackendCreateDescriptor(type, &d)))
        return NULL;
    g->made[g->n_made++] = d;
    return d;
}

static bool set(const struct cudnn *lib, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                int64_t n, const void *values)
{
    return done(lib->cudnnBackendSetAttribute(d, name, type, n, values));
}

static cudnnBackendDescriptor_t whole_graph(struct cudnn_graph *g)
{
    const struct cudnn *lib = g->lib;
    cudnnBackendDescriptor_t d = make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    const bool ok = d && set(lib, d, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->n_ops, g->ops) &&
                    set(lib, d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &lib->handle) &&
                    done(lib->cudnnBackendFinalize(d));
    return ok ? d : NULL;
}

/* What cuDNN would take, best first; how many. */
static int64_t proposals(struct cudnn_graph *g, cudnnBackendDescriptor_t graph, cudnnBackendDescriptor_t *out)
{
    const struct cudnn *lib = g->lib;
    const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    cudnnBackendDescriptor_t d = make(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    bool ok = d && set(lib, d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph) &&
              set(lib, d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode) && done(lib->cudnnBackendFinalize(d));
    for (int i = 0; i < PROPOSALS && ok; i++)
        ok = (out[i] = make(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)) != NULL;
    int64_t n = 0;
    ok = ok && done(lib->cudnnBackendGetAttribute(d, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, PROPOSALS, &n, out));
    return ok ? n : 0;
}

/* Two runs give the same bits. */
static bool repeats(struct cudnn_graph *g, cudnnBackendDescriptor_t config)
{
    const struct cudnn *lib = g->lib;
    cudnnBackendDescriptor_t engine = make(g, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendNumericalNote_t notes[NOTES];
    int64_t n = 0;
    if (!engine || !done(lib->cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine)) ||
        !done(lib->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, NOTES, &n, notes)))
        return false;
    for (int64_t i = 0; i < n; i++)
        if (notes[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)
            return false;
    return true;
}

static bool make_plan(struct cudnn_graph *g, cudnnBackendDescriptor_t config, struct cudnn_plan *out)
{
    const struct cudnn *lib = g->lib;
    cudnnBackendDescriptor_t d = make(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    int64_t bytes = 0, n = 0;
    if (!d || !set(lib, d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &lib->handle) ||
        !set(lib, d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config) ||
        !done(lib->cudnnBackendFinalize(d)) ||
        !done(lib->cudnnBackendGetAttribute(d, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, &bytes)))
        return false;
    *out = (struct cudnn_plan){d, (size_t)bytes};
    return true;
}

bool cudnn_plan_of(struct cudnn_graph *g, int nth, struct cudnn_plan *out)
{
    cudnnBackendDescriptor_t configs[PROPOSALS], graph = done(g->status) ? whole_graph(g) : NULL;
    const int64_t n = graph ? proposals(g, graph, configs) : 0;
    for (int64_t i = 0; i < n; i++)
        if (repeats(g, configs[i]) && nth-- == 0)
            return make_plan(g, configs[i], out);
    return false;
}

bool cudnn_run(const struct cudnn *lib, const struct cudnn_plan *p, void **memory, int n, void *workspace, cudaStream_t stream)
{
    int64_t ids[CUDNN_TENSORS];
    cudnnBackendDescriptor_t pack = NULL;
    for (int i = 0; i < n; i++)
        ids[i] = i + 1;
    if (!done(lib->cudnnSetStream(lib->handle, stream)) ||
        !done(lib->cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack)))
        return false;
    const bool ok = set(lib, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, memory) &&
                    set(lib, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, ids) &&
                    set(lib, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace) &&
                    done(lib->cudnnBackendFinalize(pack)) && done(lib->cudnnBackendExecute(lib->handle, p->plan, pack));
    lib->cudnnBackendDestroyDescriptor(pack);
    return ok;
}

#endif
