/* The executor: binds values to memory and ops to kernels, then runs them. */
#include "exec/exec.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/bf16.h"
#include "core/rng.h"
#include "core/setup.h"
#include "exec/exec_int.h"
#include "passes/passes.h"

enum { ALIGN = 64 };

struct exec {
    struct program *program;
    struct backend *backend;
    void **memory;                  /* per value */
    struct kernel_call *calls;      /* per op, in order of phases */
    const char **names;             /* of their kernels, in the program's arena where a variant was chosen */
    int phase_start[PHASES + 1];    /* calls of phase i: [phase_start[i], phase_start[i + 1]) */
    void *persistent, *workspace, *scratch;
    bool borrows_workspace;         /* of the executor that values are shared with */
    size_t persistent_bytes;
    struct exec_memory sizes;
    int *call_of;                   /* per op: its place in `calls` */
    struct kernel_time *times;      /* (calls, threads); NULL: not measured */
};

static size_t aligned(size_t n) { return (n + ALIGN - 1) / ALIGN * ALIGN; }

static void *shared_memory(struct exec *shared, const struct value *v)
{
    const value_id id = shared && v->kind != VALUE_INPUT && v->kind != VALUE_HOST
                            ? program_find(shared->program, v->name) : NO_VALUE;
    if (id == NO_VALUE || shared->program->values[id].kind != v->kind ||
        shared->program->values[id].dtype != v->dtype || !shape_equal(shared->program->values[id].shape, v->shape))
        return NULL;
    return shared->memory[id];
}

/* Values that persist get memory one after the other, in two sweeps: sizes, then addresses. */
static enum status bind_persistent(struct exec *e, struct exec *shared, struct error *err)
{
    const struct program *p = e->program;
    size_t total = 0;
    for (int i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        if (!value_is_persistent(v))
            continue;
        e->memory[i] = shared_memory(shared, v);
        if (e->memory[i])
            continue;
        exec_count_value(&e->sizes, v);
        total += aligned(value_bytes(v));
    }
    e->persistent_bytes = total;
    e->persistent = e->backend->alloc(e->backend, total);
    if (!e->persistent)
        return error_no_memory(err, "parameters and optimizer state", total);
    char *at = e->persistent;
    for (int i = 0; i < p->n_values; i++)
        if (value_is_persistent(&p->values[i]) && !e->memory[i]) {
            e->memory[i] = at;
            at += aligned(value_bytes(&p->values[i]));
        }
    return OK;
}

static enum status bind_workspace(struct exec *e, struct exec *shared, struct error *err)
{
    const struct program *p = e->program;
    struct memory_plan plan;
    pass_memory_plan(p, &plan);
    exec_count_workspace(&e->sizes, p, &plan);
    e->borrows_workspace = shared && shared->sizes.workspace >= plan.workspace_bytes;
    e->workspace = e->borrows_workspace ? shared->workspace : e->backend->alloc(e->backend, plan.workspace_bytes);
    for (int i = 0; i < p->n_values && e->workspace; i++)
        if (plan.offset[i] != SIZE_MAX)
            e->memory[i] = (char *)e->workspace + plan.offset[i];
    memory_plan_release(&plan);
    return e->workspace ? OK : error_no_memory(err, "the workspace of activations and gradients", e->sizes.workspace);
}

static void **addresses(struct exec *e, const value_id *ids, int n)
{
    void **list = arena_alloc(&e->program->arena, (size_t)n * sizeof *list);
    for (int i = 0; i < n; i++)
        list[i] = e->memory[ids[i]];
    return list;
}

static enum status bind_op(struct exec *e, struct op *op, struct kernel_call *call, struct error *err)
{
    const struct kernel *k;
    const enum status st = exec_count_op(&e->sizes, &k, e->program, op, e->backend, err);
    if (st != OK)
        return st;
    *call = (struct kernel_call){.kernel = k, .program = e->program, .op = op, .in = addresses(e, op->in, op->n_in),
                                 .out = addresses(e, op->out, op->n_out)};
    return OK;
}

static void name_kernels(struct exec *e, int n)
{
    for (int i = 0; i < n; i++) {
        const struct kernel *k = e->calls[i].kernel;
        const int variant = e->calls[i].variant;
        e->names[i] = variant ? arena_printf(&e->program->arena, "%s/%s", k->name, k->variants[variant]) : k->name;
    }
}

static enum status bind_ops(struct exec *e, struct error *err)
{
    struct program *p = e->program;
    int n = 0;
    for (enum phase ph = 0; ph < PHASES; ph++) {
        e->phase_start[ph] = n;
        for (int i = 0; i < p->n_ops; i++)
            if (p->ops[i].phase == ph) {
                e->call_of[i] = n;
                const enum status st = bind_op(e, &p->ops[i], &e->calls[n++], err);
                if (st != OK)
                    return st;
            }
    }
    e->phase_start[PHASES] = n;
    e->scratch = e->backend->alloc(e->backend, e->sizes.scratch);
    if (!e->scratch)
        return error_no_memory(err, "kernel scratch", e->sizes.scratch);
    for (int i = 0; i < n; i++)
        e->calls[i].scratch = e->scratch;
    exec_find_waits(e->calls, n, e->sizes.scratch);
    if (e->backend->tune)
        e->backend->tune(e->backend, e->calls, n);
    name_kernels(e, n);
    return setup_check("kernels", err);
}

enum status exec_new(struct exec **out, struct program *p, struct backend *b, struct exec *shared, struct error *err)
{
    struct exec *e = xcalloc(1, sizeof *e);
    e->program = p;
    e->backend = b;
    e->memory = xcalloc((size_t)p->n_values, sizeof *e->memory);
    e->calls = xcalloc((size_t)p->n_ops, sizeof *e->calls);
    e->names = xcalloc((size_t)p->n_ops, sizeof *e->names);
    e->call_of = xcalloc((size_t)p->n_ops, sizeof *e->call_of);
    enum status st = program_validate(p, err);
    if (st == OK)
        st = bind_persistent(e, shared, err);
    if (st == OK)
        st = setup_check("memory plan", err);
    if (st == OK)
        st = bind_workspace(e, shared, err);
    if (st == OK)
        st = setup_check("kernels", err);
    if (st == OK)
        st = bind_ops(e, err);
    setup_done();
    if (st == OK) {
        exec_run(e, PHASE_SETUP, PHASE_SETUP);
        *out = e;
        return OK;
    }
    e->program = NULL;              /* stays with the caller */
    exec_free(e);
    return st;
}

void exec_free(struct exec *e)
{
    if (!e)
        return;
    e->backend->free_memory(e->backend, e->persistent, e->persistent_bytes);
    if (!e->borrows_workspace)
        e->backend->free_memory(e->backend, e->workspace, e->sizes.workspace);
    e->backend->free_memory(e->backend, e->scratch, e->sizes.scratch);
    program_free(e->program);
    free(e->memory);
    free(e->calls);
    free(e->names);
    free(e->call_of);
    free(e->times);
    free(e);
}

const struct program *exec_program(const struct exec *e) { return e->program; }
struct exec_memory exec_memory(const struct exec *e) { return e->sizes; }
int exec_threads(const struct exec *e) { return e->backend->threads; }
const char *exec_kernel_name(const struct exec *e, int op) { return e->names[e->call_of[op]]; }

double exec_choice_gain_us(const struct exec *e)
{
    double us = 0;
    for (int i = 0; i < e->phase_start[PHASES]; i++)
        us += e->calls[i].saves_us * op_runs_per_step(e->program, e->calls[i].op);
    return us;
}

void exec_measure(struct exec *e, bool on)
{
    free(e->times);
    e->times = on ? xcalloc((size_t)e->program->n_ops * (size_t)e->backend->threads, sizeof *e->times) : NULL;
}

const struct kernel_time *exec_times(const struct exec *e, int op)
{
    return e->times ? e->times + e->call_of[op] * e->backend->threads : NULL;
}

/* An op lasts as long as the thread that takes longest: they need not begin together, and may be in two ops at once. */
static void count_times(struct exec *e, int from, int to)
{
    const int threads = e->backend->threads;
    for (int i = from; i < to; i++) {
        const struct kernel_time *t = e->times + i * threads;
        int64_t longest = 0;
        for (int k = 0; k < threads; k++)
            longest = t[k].end_ns - t[k].start_ns > longest ? t[k].end_ns - t[k].start_ns : longest;
        e->calls[i].op->profile.calls++;
        e->calls[i].op->profile.total_ns += longest;
    }
}

void exec_run(struct exec *e, enum phase first, enum phase last)
{
    const int from = e->phase_start[first], to = e->phase_start[last + 1];
    if (to == from)
        return;
    e->backend->run(e->backend, e->calls + from, to - from,
                    e->times ? e->times + from * e->backend->threads : NULL);
    if (e->times)
        count_times(e, from, to);
}

void exec_write(struct exec *e, value_id v, const void *host)
{
    e->backend->upload(e->backend, e->memory[v], host, value_bytes(&e->program->values[v]));
}

void exec_read(struct exec *e, value_id v, void *host)
{
    e->backend->download(e->backend, host, e->memory[v], value_bytes(&e->program->values[v]));
}

float exec_scalar(struct exec *e, value_id v)
{
    float x = 0;
    exec_read(e, v, &x);
    return x;
}

/* The first values of a parameter, in f32. */
static void draw_initial(const struct value *v, float *host, uint64_t seed)
{
    const int64_t n = shape_count(v->shape);
    if (v->init == INIT_NORMAL)
        rng_fill_normal(host, n, v->init_std, seed, rng_stream_of(v->name));
    else
        for (int64_t i = 0; i < n; i++)
            host[i] = 1;
}

/* `host` has room for the value in f32; a smaller type is made of that in place, from the front. Zero has the same bits in all. */
static void fill_initial(const struct value *v, void *host, uint64_t seed)
{
    memset(host, 0, value_bytes(v));
    if (v->kind != VALUE_PARAMETER || v->init == INIT_ZEROS)
        return;
    draw_initial(v, host, seed);
    for (int64_t i = 0; v->dtype == BF16 && i < shape_count(v->shape); i++) {
        const uint16_t bits = bf16_bits(((const float *)host)[i]);
        memcpy((char *)host + i * (int64_t)sizeof bits, &bits, sizeof bits);
    }
}

enum status exec_init_parameters(struct exec *e, uint64_t seed, struct error *err)
{
    for (int i = 0; i < e->program->n_values; i++) {
        const struct value *v = &e->program->values[i];
        if (v->kind != VALUE_PARAMETER && v->kind != VALUE_STATE)
            continue;
        if (setup_check("weights", err) != OK)
            return err->status;
        void *host = malloc((size_t)shape_count(v->shape) * sizeof(float));
        if (!host)
            return error_no_memory(err, arena_printf(&e->program->arena, "the first values of %s", v->name),
                                   (unsigned long long)shape_count(v->shape) * sizeof(float));
        fill_initial(v, host, seed);
        exec_write(e, i, host);
        free(host);
    }
    return OK;
}
