/* Runs a program the plainest way: every value has memory of its own, of exactly its size, so that nothing is shared
 * that the test does not share and a sanitizer sees every step outside. What the executor does is compared with this. */
#ifndef HONE_TESTS_PLAIN_H
#define HONE_TESTS_PLAIN_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/cpu/kernel.h"
#include "program/program.h"
#include "support/check.h"

struct plain {
    struct program *program;        /* borrowed */
    struct backend *backend;        /* borrowed */
    void **own;                     /* per value */
    void **memory;                  /* per value: own, or another's after plain_alias */
    int variant;                    /* of kernels that have any */
};

static inline void *plain_alloc(size_t bytes)
{
    void *p = NULL;
    if (posix_memalign(&p, 64, bytes ? bytes : 1))
        fail_msg("no memory for %zu bytes", bytes);
    return p;
}

/* Persistent values start at zero, all others as NaN. */
static inline struct plain plain_new(struct program *p, struct backend *b)
{
    struct plain x = {p, b, xcalloc((size_t)p->n_values, sizeof(void *)), xcalloc((size_t)p->n_values, sizeof(void *)), 0};
    for (int i = 0; i < p->n_values; i++) {
        const size_t bytes = value_bytes(&p->values[i]);
        x.own[i] = x.memory[i] = plain_alloc(bytes);
        memset(x.own[i], value_is_persistent(&p->values[i]) ? 0 : 0xff, bytes);
    }
    return x;
}

static inline void plain_release(struct plain *x)
{
    for (int i = 0; i < x->program->n_values; i++)
        free(x->own[i]);
    free(x->own);
    free(x->memory);
}

static inline void plain_alias(struct plain *x, value_id v, value_id of) { x->memory[v] = x->memory[of]; }

static inline void plain_write(struct plain *x, value_id v, const void *host)
{
    memcpy(x->memory[v], host, value_bytes(&x->program->values[v]));
}

static inline void plain_run_op(struct plain *x, struct op *op)
{
    void *in[1024], *out[1024];
    assert_true(op->n_in <= 1024 && op->n_out <= 1024);
    for (int i = 0; i < op->n_in; i++)
        in[i] = x->memory[op->in[i]];
    for (int i = 0; i < op->n_out; i++)
        out[i] = x->memory[op->out[i]];
    const struct kernel *k = cpu_choose(x->backend, x->program, op);
    assert_non_null(k);
    const size_t bytes = k->scratch ? k->scratch(x->program, op, x->backend->lanes) : 0;
    void *scratch = plain_alloc(bytes);
    memset(scratch, 0xff, bytes);
    struct kernel_call call = {.kernel = k, .program = x->program, .op = op, .in = in, .out = out, .scratch = scratch, .scratch_bytes = bytes,
                               .variant = x->variant, .blocks = cpu_blocks(k, x->program, op, x->backend->lanes),
                               .sums = cpu_sums(k, x->program, op, x->backend->lanes) ? SUMS_LATER : WHOLE};
    cpu_run_calls(x->backend, &call, 1);
    free(scratch);
}

static inline void plain_run(struct plain *x, enum phase first, enum phase last)
{
    for (enum phase ph = first; ph <= last; ph++)
        for (int i = 0; i < x->program->n_ops; i++)
            if (x->program->ops[i].phase == ph)
                plain_run_op(x, &x->program->ops[i]);
}

/* How far output o of the first op is from what it should be, of that one's length; 0: they are equal. */
static inline double plain_apart(const struct plain *is, const struct plain *should, int o)
{
    const value_id v = is->program->ops[0].out[o];
    const float *x = is->memory[v], *y = should->memory[v];
    double apart = 0, length = 0;
    for (int64_t i = 0; i < shape_count(is->program->values[v].shape); i++) {
        apart += pow((double)x[i] - y[i], 2);
        length += (double)y[i] * y[i];
    }
    return apart == 0 ? 0 : sqrt(apart / length);
}

#endif
