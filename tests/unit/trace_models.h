/* Training steps of a small transformer as the profiler would have recorded them, with one thing done wrong:
 *
 *     struct model m = model_new(HOST_BOUND);
 *     m.after_forward = read_the_loss;                // a function that adds what is wrong; its time is m.planted_us
 *     struct judged j = model_judge(&m, model_step_us(&m));
 *     assert_gain(&j, "host-sync", 1.2, 0.05);
 *     judged_release(&j);
 *
 * Ops carry sequence numbers and shapes; backward nodes run on a thread of their own and have the numbers of their ops;
 * nodes that hand gradients to parameters have none. */
#ifndef HONE_TESTS_TRACE_MODELS_H
#define HONE_TESTS_TRACE_MODELS_H

#include "unit/traced_text.h"

#include "analyze/diagnosis.h"

enum { MODEL_NODES = 4096, MODEL_TOKENS = 8192, MODEL_WIDTH = 512, MODEL_HEADS = 8, MODEL_SEQ = 256, MODEL_BATCH = 32 };

#define BF16 "[\"c10::BFloat16\", \"c10::BFloat16\", \"c10::BFloat16\"]"
#define F32 "[\"float\", \"float\", \"float\"]"

struct model;
typedef void model_part(struct model *m);

struct model_node {                     /* to be run backward */
    char name[40];
    int64_t number;
    double kernel_us;
    int parameters;
};

struct model {
    struct traced t;
    int steps, layers;
    double host_us, kernel_us;          /* of an op, of a kernel */
    int64_t vocab;
    const char *space, *types;          /* of the ops: "aten"; of their inputs */
    bool no_grad, adds_gradients;       /* AccumulateGrad adds to what is there */
    const char *optimizer_range;        /* of its step; NULL: AdamW's */
    /* what is different from a step with nothing wrong; NULL: as usual, or nothing */
    model_part *data, *zero_grad, *attention, *mlp, *after_forward, *backward, *after_backward, *optimizer, *end;
    double planted_us;                  /* time of the host in those, per step; set by model_train */
    bool trained;
    int64_t sequence;                   /* of the next node */
    struct model_node nodes[MODEL_NODES];
    int n_nodes;
    int step;                           /* the current one */
};

enum model_kind { HOST_BOUND, DEVICE_BOUND };

static inline struct model model_new(enum model_kind kind)
{
    return (struct model){.t = traced_new(), .steps = 4, .layers = 3, .host_us = kind == HOST_BOUND ? 30 : 10,
                          .kernel_us = kind == HOST_BOUND ? 12 : 100, .vocab = 1024, .space = "aten", .types = BF16, .sequence = 100};
}

/* ---- ops ---- */

/* Begins an op; the number of the next node goes with it unless gradients are off. */
static inline int64_t model_begin(struct model *m, const char *op, const char *dims)
{
    char name[96];
    const bool named = strstr(op, "::");            /* has a namespace of its own */
    snprintf(name, sizeof name, "%s%s%s", named ? "" : m->space, named ? "" : "::", op);
    traced_idle(&m->t, 1);
    const int64_t event = traced_begin(&m->t, EVENT_HOST_OP, name);
    traced_get(&m->t, event)->link = m->no_grad ? -1 : m->sequence;
    if (dims)
        traced_inputs(&m->t, event, dims, m->types);
    return event;
}

static inline void model_end(struct model *m) { traced_end(&m->t); }

/* The node that the op made, to be run backward. */
static inline void model_learn(struct model *m, const char *node, double kernel_us, int parameters)
{
    if (m->no_grad)
        return;
    assert(m->n_nodes < MODEL_NODES);
    struct model_node *n = &m->nodes[m->n_nodes++];
    *n = (struct model_node){.number = m->sequence++, .kernel_us = kernel_us, .parameters = parameters};
    snprintf(n->name, sizeof n->name, "%s", node);
}

/* An op with a kernel; `node` NULL: it has no gradient. */
static inline int64_t model_op(struct model *m, const char *op, const char *dims, const char *kernel, double kernel_us, const char *node)
{
    const int64_t event = model_begin(m, op, dims);
    traced_idle(&m->t, m->host_us - m->t.launch_us);
    traced_launch(&m->t, kernel, kernel_us);
    model_end(m);
    if (node)
        model_learn(m, node, 2 * kernel_us, 0);
    return event;
}

/* Looks at a tensor differently: no kernel. */
static inline void model_view(struct model *m, const char *op, const char *dims)
{
    model_begin(m, op, dims);
    traced_idle(&m->t, m->host_us / 4);
    model_end(m);
}

/* linear, with the product inside as it is called on the device. */
static inline void model_linear(struct model *m, int64_t in, int64_t out, const char *kernel, double kernel_us)
{
    char dims[96];
    snprintf(dims, sizeof dims, "[[%d, %d, %lld], [%lld, %lld], [%lld]]", MODEL_BATCH, MODEL_SEQ, (long long)in, (long long)out,
             (long long)in, (long long)out);
    model_begin(m, "linear", dims);
    traced_idle(&m->t, m->host_us / 4);
    snprintf(dims, sizeof dims, "[[%lld], [%d, %lld], [%lld, %lld]]", (long long)out, MODEL_TOKENS, (long long)in, (long long)in,
             (long long)out);
    model_begin(m, "addmm", dims);
    traced_idle(&m->t, m->host_us / 2);
    traced_launch(&m->t, kernel, kernel_us);
    model_end(m);
    model_end(m);
    model_learn(m, "AddmmBackward0", 2 * kernel_us, 2);
}

#define MODEL_X "[[32, 256, 512], [32, 256, 512]]"

/* The host reads a number of the device, and waits for it. */
static inline void model_read(struct model *m, const char *sync)
{
    model_begin(m, "item", "[[]]");
    model_begin(m, "_local_scalar_dense", "[[]]");
    traced_idle(&m->t, 5);
    traced_copy(&m->t, "Memcpy DtoH (Device -> Pageable)", 4, 2);
    traced_wait(&m->t, sync);
    model_end(m);
    model_end(m);
}

static inline void model_norm(struct model *m)
{
    model_begin(m, "layer_norm", MODEL_X);
    model_op(m, "native_layer_norm", MODEL_X, "vectorized_layer_norm_kernel", m->kernel_us / 4, NULL);
    model_end(m);
    model_learn(m, "NativeLayerNormBackward0", m->kernel_us / 2, 2);
}

static inline void model_projections(struct model *m)
{
    model_linear(m, MODEL_WIDTH, 3 * MODEL_WIDTH, "nvjet_gemm", m->kernel_us);
    model_view(m, "split", "[[32, 256, 1536]]");
    model_view(m, "view", "[[32, 256, 512]]");
    model_view(m, "transpose", "[[32, 256, 8, 64]]");
}

static inline void model_attention(struct model *m)
{
    model_projections(m);
    model_begin(m, "scaled_dot_product_attention", "[[32, 8, 256, 64], [32, 8, 256, 64], [32, 8, 256, 64]]");
    model_op(m, "_scaled_dot_product_flash_attention", "[[32, 8, 256, 64], [32, 8, 256, 64], [32, 8, 256, 64]]", "pytorch_flash::flash_fwd_kernel",
             m->kernel_us, NULL);
    model_end(m);
    model_learn(m, "ScaledDotProductFlashAttentionBackward0", 2 * m->kernel_us, 0);
    model_view(m, "transpose", "[[32, 8, 256, 64]]");
    model_linear(m, MODEL_WIDTH, MODEL_WIDTH, "nvjet_gemm", m->kernel_us);
}

static inline void model_mlp(struct model *m)
{
    model_linear(m, MODEL_WIDTH, 4 * MODEL_WIDTH, "nvjet_gemm", m->kernel_us);
    model_op(m, "gelu", "[[32, 256, 2048]]", "vectorized_elementwise_kernel<GeluCUDAKernelImpl>", m->kernel_us / 4, "GeluBackward0");
    model_linear(m, 4 * MODEL_WIDTH, MODEL_WIDTH, "nvjet_gemm", m->kernel_us);
}

/* ---- a step ---- */

static inline void model_run(struct model *m, model_part *part, model_part *usual)
{
    const double from = m->t.now_us;
    if (part || usual)
        (part ? part : usual)(m);
    if (part)
        m->planted_us += (m->t.now_us - from) / m->steps;
}

static inline void model_forward(struct model *m)
{
    model_op(m, "embedding", "[[1024, 512], [32, 256]]", "vectorized_gather_kernel", m->kernel_us / 4, "EmbeddingBackward0");
    for (int i = 0; i < m->layers; i++) {
        model_norm(m);
        model_run(m, m->attention, model_attention);
        model_op(m, "add", MODEL_X, "vectorized_elementwise_kernel<add>", m->kernel_us / 4, "AddBackward0");
        model_norm(m);
        model_run(m, m->mlp, model_mlp);
        model_op(m, "add", MODEL_X, "vectorized_elementwise_kernel<add>", m->kernel_us / 4, "AddBackward0");
    }
    model_norm(m);
    model_linear(m, MODEL_WIDTH, m->vocab, "nvjet_gemm", m->kernel_us);
    model_begin(m, "cross_entropy_loss", "[[8192, 1024], [8192]]");
    model_op(m, "_log_softmax", "[[8192, 1024]]", "cunn_SoftMaxForward", m->kernel_us / 4, "LogSoftmaxBackward0");
    model_op(m, "nll_loss_forward", "[[8192, 1024], [8192]]", "nll_loss_forward_reduce_cuda_kernel", m->kernel_us / 4, "NllLossBackward0");
    model_end(m);
}

/* Without gradients; the host reads its loss. */
static inline void model_evaluate(struct model *m)
{
    m->no_grad = true;
    model_forward(m);
    model_read(m, "cudaStreamSynchronize");
    m->no_grad = false;
}

/* What a parameter's gradient is put into. */
static inline void model_accumulate(struct model *m)
{
    traced_idle(&m->t, 1);
    traced_begin(&m->t, EVENT_HOST_OP, "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad");
    traced_begin(&m->t, EVENT_HOST_OP, "torch::autograd::AccumulateGrad");
    traced_idle(&m->t, m->host_us / 4);
    if (m->adds_gradients)
        traced_run(&m->t, "aten::add_", m->host_us, "vectorized_elementwise_kernel<add>", m->kernel_us / 4);
    traced_end(&m->t);
    traced_end(&m->t);
}

/* Begins the node's evaluation and its function; two ends. */
static inline void model_begin_node(struct model *m, const struct model_node *n)
{
    char name[128];
    traced_idle(&m->t, 1);
    snprintf(name, sizeof name, "autograd::engine::evaluate_function: %s", n->name);
    traced_get(&m->t, traced_begin(&m->t, EVENT_HOST_OP, name))->link = n->number;
    traced_get(&m->t, traced_begin(&m->t, EVENT_HOST_OP, n->name))->link = n->number;
}

static inline void model_run_node(struct model *m, const struct model_node *n)
{
    model_begin_node(m, n);
    const int64_t op = traced_run(&m->t, n->parameters ? "aten::mm" : "aten::mul", m->host_us,
                                  n->parameters ? "nvjet_gemm" : "vectorized_elementwise_kernel", n->kernel_us);
    traced_inputs(&m->t, op, NULL, m->types);
    traced_end(&m->t);
    traced_end(&m->t);
    for (int k = 0; k < n->parameters; k++)
        model_accumulate(m);
}

static inline void model_backward(struct model *m)
{
    traced_on_thread(&m->t, 2);
    while (m->n_nodes > 0)
        model_run_node(m, &m->nodes[--m->n_nodes]);
    traced_on_thread(&m->t, 1);
}

static inline void model_fused(struct model *m)
{
    model_op(m, "_fused_adamw_", "[[[512, 512]]]", "multi_tensor_apply_kernel", m->kernel_us, NULL);
}

static inline void model_norm_of_gradients(struct model *m)
{
    model_op(m, "_foreach_norm", "[[[512, 512]]]", "multi_tensor_apply_kernel", m->kernel_us / 4, NULL);
    model_op(m, "_foreach_mul_", "[[[512, 512]], []]", "multi_tensor_apply_kernel", m->kernel_us / 4, NULL);
}

static inline void model_optimize(struct model *m)
{
    const bool no_grad = m->no_grad;
    m->no_grad = true;
    model_run(m, m->after_backward, model_norm_of_gradients);
    traced_begin(&m->t, EVENT_ANNOTATION, m->optimizer_range ? m->optimizer_range : "Optimizer.step#AdamW.step");
    model_run(m, m->optimizer, model_fused);
    traced_end(&m->t);
    traced_begin(&m->t, EVENT_ANNOTATION, "Optimizer.zero_grad#AdamW.zero_grad");
    traced_idle(&m->t, 2);
    model_run(m, m->zero_grad, NULL);
    traced_end(&m->t);
    m->no_grad = no_grad;
}

static inline void model_train(struct model *m)
{
    for (m->step = 0; m->step < m->steps; m->step++) {
        traced_step_begin(&m->t, m->step);
        model_run(m, m->data, NULL);
        model_forward(m);
        model_run(m, m->after_forward, NULL);
        model_run(m, m->backward, model_backward);
        model_optimize(m);
        model_run(m, m->end, NULL);
        traced_step_end(&m->t);
    }
    m->trained = true;
}

/* The time of a step of the host as recorded. */
static inline double model_step_us(struct model *m)
{
    if (!m->trained)
        model_train(m);
    return m->t.now_us / m->steps;
}

/* What is won when what was planted costs nothing, in a step bound by the host. */
static inline double model_gain(struct model *m)
{
    const double step = model_step_us(m);
    return step / (step - m->planted_us);
}

/* ---- the diagnosis ---- */

struct judged {
    struct trace *trace;
    struct diagnosis d;
};

/* step_us: as if given with --step-ms; 0: not. With the recorded time the profiler costs nothing, and gains are exact. */
static inline struct judged trace_judge(struct trace *t, double step_us)
{
    struct judged j = {.trace = t};
    struct error err;
    const struct diagnose_options options = {.step_us = step_us};
    assert_ok(diagnose(&j.d, &j.trace, 1, &options, &err), err);
    return j;
}

static inline struct judged model_judge(struct model *m, double step_us)
{
    if (!m->trained)
        model_train(m);
    return trace_judge(m->t.trace, step_us);
}

static inline void judged_release(struct judged *j)
{
    diagnosis_release(&j->d);
    trace_free(j->trace);
}

static inline const struct finding *judged_find(const struct judged *j, const char *rule)
{
    for (int i = 0; i < j->d.n_findings; i++)
        if (!strcmp(j->d.findings[i].rule, rule))
            return &j->d.findings[i];
    return NULL;
}

static inline const struct finding *assert_found(const struct judged *j, const char *rule)
{
    const struct finding *f = judged_find(j, rule);
    if (!f)
        fail_msg("%s was not found", rule);
    assert_non_null(f->where);
    assert_non_null(f->cause);
    assert_non_null(f->fix);
    assert_non_null(f->evidence);
    if (!(f->speedup_low <= f->speedup && f->speedup <= f->speedup_high))
        fail_msg("%s: %g is not between %g and %g", rule, f->speedup, f->speedup_low, f->speedup_high);
    if (!(f->share >= 0 && f->share <= 1))
        fail_msg("%s: its share is %g", rule, f->share);
    return f;
}

/* Found, with this gain; the tolerance is of the time won. */
static inline const struct finding *assert_gain(const struct judged *j, const char *rule, double speedup, double tolerance)
{
    const struct finding *f = assert_found(j, rule);
    const double won = 1 - 1 / speedup, is = 1 - 1 / f->speedup;
    if (!(fabs(is - won) <= tolerance * fabs(won) + 1e-4))
        fail_msg("%s: expected %.4f, and it says %.4f (%s)", rule, speedup, f->speedup, f->evidence);
    return f;
}

static inline void assert_not_found(const struct judged *j, const char *rule)
{
    const struct finding *f = judged_find(j, rule);
    if (f)
        fail_msg("%s was found: %s; %s", rule, f->where, f->evidence);
}

static inline bool warns(const struct diagnosis *d, const char *words)
{
    for (int i = 0; i < d->n_warnings; i++)
        if (strstr(d->warnings[i], words))
            return true;
    return false;
}

/* ---- as text ---- */

/* The profiler's names of today and of its first versions. */
static inline const char *model_category(const struct event *e, bool old)
{
    switch (e->kind) {
    case EVENT_STEP:
    case EVENT_ANNOTATION: return old ? "Operator" : "user_annotation";
    case EVENT_HOST_OP:    return old ? "Operator" : "cpu_op";
    case EVENT_PYTHON:     return "python_function";
    case EVENT_RUNTIME:    return old ? "Runtime" : "cuda_runtime";
    case EVENT_KERNEL:     return old ? "Kernel" : "kernel";
    case EVENT_MEMCPY:     return old ? "Memcpy" : "gpu_memcpy";
    default:               return old ? "Memset" : "gpu_memset";
    }
}

static inline void model_write_args(FILE *out, const struct trace *t, const struct event *e)
{
    const struct event_args *a = e->args >= 0 ? &t->args[e->args] : NULL;
    fprintf(out, "\"x\": 0");
    if (e->link >= 0)
        fprintf(out, ", \"%s\": %lld", e->kind == EVENT_HOST_OP ? "Sequence number" : "correlation", (long long)e->link);
    if (traced_on_device((enum event_kind)e->kind))
        fprintf(out, ", \"device\": %lld, \"stream\": %lld", (long long)t->tracks[e->track].pid, (long long)t->tracks[e->track].tid);
    if (a && a->bytes >= 0)
        fprintf(out, ", \"bytes\": %lld", (long long)a->bytes);
    if (a && a->dims >= 0)
        fprintf(out, ", \"Input Dims\": %s", t->names[a->dims]);
    if (a && a->types >= 0)
        fprintf(out, ", \"Input type\": %s", t->names[a->types]);
}

/* The trace written as the profiler's text and read again. */
static inline struct trace *model_as_text(const struct trace *t, bool old)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "{\"schemaVersion\": 1, \"traceEvents\": [\n");
    for (int64_t i = 0; i < t->n; i++) {
        const struct event *e = &t->events[i];
        fprintf(out, "%s{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %lld, \"tid\": \"%lld\", \"ts\": %.3f, \"dur\": %.3f, \"args\": {",
                i ? ",\n" : "", model_category(e, old), t->names[e->name], (long long)t->tracks[e->track].pid,
                (long long)t->tracks[e->track].tid, (double)e->start_ns / 1e3 + 1e6, (double)e->duration_ns / 1e3);
        model_write_args(out, t, e);
        fprintf(out, "}}");
    }
    fprintf(out, "]}\n");
    fclose(out);
    struct trace *again = traced_json(text);
    free(text);
    return again;
}

#endif
