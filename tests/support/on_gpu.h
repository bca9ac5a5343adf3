/* Ops of small programs on a GPU. Every value has memory of its own, of exactly its size, but for those that share it; scratch, one for all
 * ops, holds no zeros that a kernel could lean on. */
#ifndef HONE_TESTS_ON_GPU_H
#define HONE_TESTS_ON_GPU_H

#include "support/gpu.h"
#include "support/op_compare.h"

enum { BOUND_VALUES = 96, BOUND_OPS = 4 };

struct bound {
    struct backend *backend;
    struct program *program;
    void *own[BOUND_VALUES], *memory[BOUND_VALUES], *in[BOUND_OPS][BOUND_VALUES], *out[BOUND_OPS][BOUND_VALUES], *scratch;
    struct bound_op ops[BOUND_OPS];
    size_t scratch_bytes;
};

static inline void *gpu_alloc(struct backend *b, size_t bytes)
{
    void *memory = b->alloc(b, bytes);
    assert_non_null(memory);
    return memory;
}

static inline void gpu_write(struct backend *b, void *to, const void *host, size_t bytes)
{
    struct error err;
    assert_ok(b->upload(b, to, host, bytes, &err), err);
}

static inline void gpu_read(struct backend *b, void *host, const void *from, size_t bytes)
{
    struct error err;
    assert_ok(b->download(b, host, from, bytes, &err), err);
}

static inline void gpu_run(struct backend *b, struct prepared *p, int ops)
{
    struct error err;
    assert_ok(b->run(b, p, 0, ops, NULL, &err), err);
}

static inline void take_scratch(struct bound *b)
{
    struct error err;
    for (int i = 0; i < b->program->n_ops; i++) {
        size_t bytes = 0;
        assert_ok(b->backend->scratch(b->backend, &bytes, b->program, &b->program->ops[i], &err), err);
        b->scratch_bytes = bytes > b->scratch_bytes ? bytes : b->scratch_bytes;
    }
    b->scratch = gpu_alloc(b->backend, b->scratch_bytes);
    void *junk = plain_alloc(b->scratch_bytes);
    memset(junk, 0xff, b->scratch_bytes);
    gpu_write(b->backend, b->scratch, junk, b->scratch_bytes);
    free(junk);
}

static inline void bind(struct bound *b, struct backend *backend, struct program *p)
{
    *b = (struct bound){.backend = backend, .program = p};
    assert_true(p->n_values <= BOUND_VALUES && p->n_ops <= BOUND_OPS);
    for (int i = 0; i < p->n_values; i++)
        b->own[i] = b->memory[i] = gpu_alloc(backend, value_bytes(&p->values[i]));
    take_scratch(b);
}

/* Prepares the ops [first, end). */
static inline struct prepared *prepare(struct bound *b, int first, int end)
{
    struct prepared *prepared = NULL;
    struct error err;
    for (int i = first; i < end; i++) {
        struct op *op = &b->program->ops[i];
        for (int j = 0; j < op->n_in; j++)
            b->in[i][j] = b->memory[op->in[j]];
        for (int j = 0; j < op->n_out; j++)
            b->out[i][j] = b->memory[op->out[j]];
        b->ops[i] = (struct bound_op){.program = b->program, .op = op, .in = b->in[i], .out = b->out[i]};
    }
    assert_ok(b->backend->prepare(b->backend, &prepared, b->ops + first, end - first, b->scratch, b->scratch_bytes, &err), err);
    return prepared;
}

static inline void unbind(struct bound *b)
{
    for (int i = 0; i < b->program->n_values; i++)
        b->backend->free_memory(b->backend, b->own[i], value_bytes(&b->program->values[i]));
    b->backend->free_memory(b->backend, b->scratch, b->scratch_bytes);
}

/* ---- cases of one op ---- */

static struct backend *reference;

static inline int open_all(void **state)
{
    reference = new_backend(1, true);
    return open_gpu(state);
}

static inline int close_all(void **state)
{
    reference->free(reference);
    return close_gpu(state);
}

static inline struct plain filled(struct program *p, const struct op_case *c, struct variant v)
{
    struct plain x = plain_new(p, reference);
    for (int i = 0; i < case_inputs(c); i++)
        fill_input(&x, i, c, i);
    for (int i = 0; i < case_inputs(c) && v.nan; i++)
        if (p->values[i].dtype == F32) {
            *(float *)x.memory[i] = NAN;
            break;
        }
    if (v.alias >= 0)
        plain_alias(&x, p->ops[0].out[0], p->ops[0].in[v.alias]);
    return x;
}

static inline struct plain on_reference(struct program *p, const struct op_case *c, bool nan)
{
    struct plain x = filled(p, c, (struct variant){reference, -1, nan});
    plain_run_op(&x, &p->ops[0]);
    return x;
}

static inline void write_all(const struct bound *b, const struct plain *x)
{
    for (int i = 0; i < b->program->n_values; i++)
        if (x->memory[i] == x->own[i])                  /* what is shared is written once */
            gpu_write(b->backend, b->memory[i], x->own[i], value_bytes(&b->program->values[i]));
}

/* Runs the case so many times on the GPU, each time with the same inputs; the result is that of the last. kernel: the name that the op's
 * must have; NULL: any. */
static inline struct plain run_on_gpu(struct program *p, const struct op_case *c, struct variant v, int times, const char *kernel)
{
    struct plain x = filled(p, c, v);
    const struct op *op = &p->ops[0];
    struct bound b;
    bind(&b, v.backend, p);
    if (v.alias >= 0)
        b.memory[op->out[0]] = b.memory[op->in[v.alias]];
    struct prepared *prepared = prepare(&b, 0, 1);
    if (kernel)
        assert_string_equal(v.backend->about(prepared, 0).kernel, kernel);
    for (int i = 0; i < times; i++) {
        write_all(&b, &x);
        gpu_run(v.backend, prepared, 1);
    }
    for (int i = 0; i < op->n_out; i++)
        gpu_read(v.backend, x.memory[op->out[i]], b.memory[op->out[i]], value_bytes(&p->values[op->out[i]]));
    v.backend->release(v.backend, prepared);
    unbind(&b);
    return x;
}

#endif
