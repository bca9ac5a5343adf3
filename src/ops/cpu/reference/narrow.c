/* Reference: ops with values of 16 bits. That is what such an op means: its values are widened to f32, the plain kernel computes, and
 * what it gives is rounded once, when it is stored. A norm of a sum is of the sum as it is stored (add_norm.c). */
#include "core/bf16.h"
#include "core/f16.h"
#include "ops/cpu/reference/reference.h"

enum { ALIGN = 64 };

bool op_has_narrow_values(const struct program *p, const struct op *op)
{
    for (int i = 0; i < op->n_in; i++)
        if (dtype_is_narrow(p->values[op->in[i]].dtype))
            return true;
    for (int i = 0; i < op->n_out; i++)
        if (dtype_is_narrow(p->values[op->out[i]].dtype))
            return true;
    return false;
}

static const struct kernel *plain_kernel(enum op_kind kind)
{
    const struct kernel *k = cpu_reference_kernels;
    while (k->run && k->op != kind)
        k++;
    return k;
}

static void widen(float *to, const uint16_t *from, int64_t n, enum dtype type)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = type == BF16 ? bf16_value(from[i]) : f16_value(from[i]);
}

static void narrow(uint16_t *to, const float *from, int64_t n, enum dtype type)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = type == BF16 ? bf16_bits(from[i]) : f16_bits(from[i]);
}

/* Scratch memory as it is cut; without a base it is only counted. */
struct cutting {
    char *base;
    size_t used;
};

static void *cut(struct cutting *from, size_t bytes)
{
    void *at = from->base ? from->base + from->used : NULL;
    from->used += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return at;
}

static float *room(struct cutting *from, const struct value *v) { return cut(from, (size_t)shape_count(v->shape) * sizeof(float)); }

static size_t narrow_scratch(const struct program *p, const struct op *op, int threads)
{
    const struct kernel *plain = plain_kernel(op->kind);
    struct cutting all = {0};
    cut(&all, (size_t)(op->n_in + op->n_out) * sizeof(void *));
    for (int i = 0; i < op->n_in; i++)
        if (dtype_is_narrow(p->values[op->in[i]].dtype))
            room(&all, &p->values[op->in[i]]);
    for (int i = op_updated(op->kind, &op->attrs); i < op->n_out; i++)
        if (dtype_is_narrow(p->values[op->out[i]].dtype))
            room(&all, &p->values[op->out[i]]);
    return all.used + (plain->scratch ? plain->scratch(p, op, threads) : 0);
}

/* All inputs are read before an output is written: it may be in the memory of one of them. */
static void narrow_run(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct op *op = c->op;
    struct kernel_call wide = *c;
    struct cutting all = {c->scratch, 0};
    wide.kernel = plain_kernel(op->kind);
    wide.in = cut(&all, (size_t)(op->n_in + op->n_out) * sizeof(void *));
    wide.out = wide.in + op->n_in;
    for (int i = 0; i < op->n_in; i++) {
        const struct value *v = call_in(c, i);
        wide.in[i] = dtype_is_narrow(v->dtype) ? room(&all, v) : c->in[i];
        if (wide.in[i] != c->in[i])
            widen(wide.in[i], c->in[i], in_count(c, i), v->dtype);
    }
    for (int i = 0; i < op->n_out; i++) {
        const bool updated = i < op_updated(op->kind, &op->attrs), is_narrow = dtype_is_narrow(call_out(c, i)->dtype);
        wide.out[i] = updated ? wide.in[i] : is_narrow ? room(&all, call_out(c, i)) : c->out[i];
    }
    wide.scratch = all.base + all.used;
    wide.kernel->run(&wide, t);
    for (int i = 0; i < op->n_out; i++)
        if (dtype_is_narrow(call_out(c, i)->dtype))
            narrow(c->out[i], wide.out[i], out_count(c, i), call_out(c, i)->dtype);
}

const struct kernel cpu_narrow_kernel = {.name = "reference", .run = narrow_run, .serial = true, .scratch = narrow_scratch};
