/* A weight's update has the same bits whoever makes it: with a narrow copy beside it or without, in a slice that ranks have of it, among many tensors, and
 * from a gradient that lies anywhere. On CPUs, and on a GPU where there is one. */
#include "support/on_gpu.h"

enum { N = 5003, MANY = 16, GRADIENT = 3, ROLES = 4 };

/* One way to update numbers [first, first + n) of the same parameter. */
struct form {
    enum dtype copy;                /* F32: it has none */
    int tensors;                    /* all alike; 1: OP_ADAMW */
    int64_t first, n;
    int off;                        /* of the gradient, in numbers: where it is not as aligned as memory is */
};

static value_id add(struct program *p, const char *name, enum value_kind kind, int tensor, enum dtype t, int64_t n)
{
    return program_add_value(p, arena_printf(&p->arena, "%s%d", name, tensor), kind, t, shape_of(1, n));
}

/* Inputs by role, as the op wants them. */
static struct program *update_program(struct form f)
{
    struct program *p = program_new("update");
    const struct value_slice *slices[MANY] = {0};
    const int copies = f.copy == F32 ? 0 : f.tensors;
    value_id in[MANY * (ROLES + 1) + 3];
    int n = 0;
    for (int i = 0; i < f.tensors; i++) {
        in[n++] = add(p, "w", VALUE_PARAMETER, i, F32, N);
        const struct value_slice of = {in[i], f.first};
        slices[i] = f.n == N ? NULL : arena_copy(&p->arena, &of, sizeof of);
    }
    for (int i = 0; i < 2 * f.tensors; i++) {
        in[n] = add(p, "m", VALUE_STATE, i, F32, f.n);
        p->values[in[n++]].slice = slices[i % f.tensors];
    }
    for (int i = 0; i < copies; i++)
        in[n++] = add(p, "copy", VALUE_TABLE, i, f.copy, N);
    for (int i = 0; i < f.tensors; i++)
        in[n++] = add(p, "g", VALUE_INPUT, i, F32, f.n);
    in[n++] = program_add_value(p, "lr", VALUE_INPUT, F32, shape_of(0));
    in[n++] = program_add_value(p, "step", VALUE_INPUT, I32, shape_of(0));
    in[n++] = program_add_value(p, "factor", VALUE_INPUT, F32, shape_of(0));
    p->phase = PHASE_OPTIMIZE;
    const struct op_attrs attrs = {.beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f, .weight_decay = 0.1f, .parts = f.tensors > 1 ? f.tensors : 0, .copies = copies};
    assert_int_equal(program_add_op(p, f.tensors > 1 ? OP_ADAMW_ALL : OP_ADAMW, attrs, "update", n, in), 0);
    return p;
}

/* Number i of a role, the same for every form. */
static float number(int role, int64_t i)
{
    uint32_t x = (uint32_t)(i * ROLES + role) * 2654435761u;
    x = (x ^ x >> 15) * 2246822519u;
    const float y = ((float)(x >> 8) * 0x1p-23f - 1) * 0.1f;
    return role == 2 ? y * y : y;
}

static void write_role(const struct bound *b, value_id v, int role, int64_t first)
{
    const struct value *value = &b->program->values[v];
    float *host = plain_alloc(N * sizeof *host);
    for (int64_t i = 0; i < shape_count(value->shape); i++)
        host[i] = number(role, first + i);
    gpu_write(b->backend, b->memory[v], host, value_bytes(value));
    free(host);
}

static void write_inputs(const struct bound *b, struct form f)
{
    const struct op *op = &b->program->ops[0];
    const float lr = 1e-3f, factor = 0.7f;
    const int32_t step = 3;
    const int grads = 3 * f.tensors + op->attrs.copies;
    for (int i = 0; i < f.tensors; i++) {
        write_role(b, op->in[i], 0, 0);
        write_role(b, op->in[f.tensors + i], 1, f.first);
        write_role(b, op->in[2 * f.tensors + i], 2, f.first);
        write_role(b, op->in[grads + i], GRADIENT, f.first);
    }
    gpu_write(b->backend, b->memory[op->in[op->n_in - 3]], &lr, sizeof lr);
    gpu_write(b->backend, b->memory[op->in[op->n_in - 2]], &step, sizeof step);
    gpu_write(b->backend, b->memory[op->in[op->n_in - 1]], &factor, sizeof factor);
}

/* What the last of its tensors has become: weights and both moments, of [first, first + n). */
struct updated { float w[N], m[N], v[N]; };

static void update(struct backend *backend, struct form f, struct updated *out)
{
    struct program *p = update_program(f);
    const int last = f.tensors - 1;
    const value_id grad = p->ops[0].in[p->ops[0].n_in - 4];
    struct bound b;
    bind(&b, backend, p);
    float *room = gpu_alloc(backend, (size_t)(f.n + f.off) * sizeof(float));
    b.memory[grad] = room + f.off;
    write_inputs(&b, f);
    struct prepared *prepared = prepare(&b, 0, 1);
    gpu_run(backend, prepared, 1);
    gpu_read(backend, out->w, (float *)b.memory[p->ops[0].in[last]] + f.first, (size_t)f.n * sizeof(float));
    gpu_read(backend, out->m, b.memory[p->ops[0].in[f.tensors + last]], (size_t)f.n * sizeof(float));
    gpu_read(backend, out->v, b.memory[p->ops[0].in[2 * f.tensors + last]], (size_t)f.n * sizeof(float));
    backend->release(backend, prepared);
    backend->free_memory(backend, room, (size_t)(f.n + f.off) * sizeof(float));
    unbind(&b);
    program_free(p);
}

static void assert_same(const char *what, const float *is, const float *should, struct form f)
{
    for (int64_t i = 0; i < f.n; i++)
        if (memcmp(&is[i], &should[f.first + i], sizeof *is))
            fail_msg("%s %lld is %.9g and not %.9g: %d of numbers %lld to %lld, a copy in %s, the gradient off by %d", what, (long long)(f.first + i), is[i],
                     should[f.first + i], f.tensors, (long long)f.first, (long long)(f.first + f.n), dtype_name(f.copy), f.off);
}

/* narrow: it has kernels for values of 16 bits. */
static void check_forms(struct backend *backend, bool narrow)
{
    static const struct form forms[] = {
        {F32, 1, 0, N, 1},
        {F32, 1, 0, N, 3},
        {F32, 1, 0, SLICE_BLOCK, 0},
        {F32, 1, SLICE_BLOCK, 2 * SLICE_BLOCK, 0},
        {F32, 1, 3 * SLICE_BLOCK, N - 3 * SLICE_BLOCK, 1},
        {F32, MANY, 0, N, 0},
        {F32, MANY, SLICE_BLOCK, N - SLICE_BLOCK, 2},
        {BF16, 1, 0, N, 0},
        {BF16, 1, 0, N, 1},
        {F16, 1, 0, N, 0},
        {BF16, MANY, 0, N, 0},
        {F16, MANY, 0, N, 3},
    };
    static struct updated whole, one;
    update(backend, (struct form){F32, 1, 0, N, 0}, &whole);
    assert_true(whole.w[0] != number(0, 0) && whole.m[N - 1] != number(1, N - 1));
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (forms[i].copy != F32 && !narrow)
            continue;
        update(backend, forms[i], &one);
        assert_same("weight", one.w, whole.w, forms[i]);
        assert_same("first moment", one.m, whole.m, forms[i]);
        assert_same("second moment", one.v, whole.v, forms[i]);
    }
}

static void test_on_cpus(void **state)
{
    (void)state;
    struct backend *tuned = new_backend(2, false);
    check_forms(reference, true);
    check_forms(tuned, false);
    tuned->free(tuned);
}

static void test_on_a_gpu(void **state)
{
    (void)state;
    NEEDS_GPU;
    check_forms(gpu, true);
    check_forms(gpu_plain, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_on_cpus), cmocka_unit_test(test_on_a_gpu)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}
