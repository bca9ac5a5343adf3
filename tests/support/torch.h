/* The models against PyTorch, on a backend: scripts/make-fixtures.py made the numbers, in double precision. */
#ifndef HONE_TESTS_TORCH_H
#define HONE_TESTS_TORCH_H

#include "core/safetensors.h"
#include "support/models.h"

/* The largest difference, as a share of the largest number of the tensor, or of FLOOR where all are smaller: some
 * gradients are zero but for rounding. */
static const double LOGITS = 2e-6, LOSS = 5e-7, GRADIENT = 1e-5, FLOOR = 0.01;
/* After training: rounding has been amplified by the optimizer, which divides by the gradient's size. */
static const double CURVE = 2e-5, FINAL = 2e-3;
/* Of bf16 beside PyTorch under autocast, whose losses are up to 0.01 of the first from those in double precision, and so may ours be. */
static const double AUTOCAST_CURVE = 0.02;

/* As in scripts/make-fixtures.py; sizes and rates are in support/models.h. */
enum { STEPS = 50, BATCHES = 5 };

static inline struct safetensors read_fixture(const char *kind, const char *name)
{
    char path[4096];
    struct safetensors s;
    struct error err;
    snprintf(path, sizeof path, "%s/%s_%s.safetensors", HONE_FIXTURES, kind, name);
    assert_ok(safetensors_read(&s, path, &err), err);
    return s;
}

static inline const struct tensor *tensor(const struct safetensors *s, const char *prefix, const char *name)
{
    char full[256];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const struct tensor *t = safetensors_find(s, full);
    if (!t)
        fail_msg("the fixture has no tensor '%s'", full);
    return t;
}

static inline void assert_fits(const struct value *v, const struct tensor *t)
{
    if (tensor_bytes(t) != value_bytes(v) || t->rank != v->shape.rank ||
        memcmp(t->dim, v->shape.dim, (size_t)t->rank * sizeof *t->dim))
        fail_msg("value %s and tensor %s differ in shape", v->name, t->name);
}

static inline void write_tensor(struct exec *e, value_id v, const struct tensor *t)
{
    assert_fits(&exec_program(e)->values[v], t);
    exec_write(e, v, t->data);
}

static inline void compare(struct exec *e, value_id v, const struct tensor *t, double tolerance)
{
    assert_fits(&exec_program(e)->values[v], t);
    const float *should = t->data;
    float *is = read_value(e, v);
    double largest = FLOOR;
    const int64_t n = (int64_t)(tensor_bytes(t) / sizeof *is);
    for (int64_t i = 0; i < n; i++)
        largest = fabs(should[i]) > largest ? fabs(should[i]) : largest;
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)is[i] - should[i]) <= tolerance * largest))
            fail_msg("%s[%lld] is %.9g; PyTorch has %.9g (largest %.3g)", t->name, (long long)i, is[i], should[i],
                     largest);
    free(is);
}

static inline int write_parameters(struct exec *e, const struct safetensors *s)
{
    const struct program *p = exec_program(e);
    int n = 0;
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER) {
            write_tensor(e, i, tensor(s, "param.", p->values[i].name));
            n++;
        }
    return n;
}

static inline int count_prefix(const struct safetensors *s, const char *prefix)
{
    int n = 0;
    for (int i = 0; i < s->n; i++)
        n += !strncmp(s->tensors[i].name, prefix, strlen(prefix));
    return n;
}

/* --- one step ---------------------------------------------------------------------------------------------------- */

/* Without targets a model ends at its logits; an executor shares the parameters of another by name. */
static inline void check_logits(const struct small_model *m, struct backend *b, struct exec *trained, const struct safetensors *s)
{
    struct program *p = NULL;
    struct exec *e = NULL;
    struct error err;
    assert_ok(model_build(&p, &m->config, (struct model_options){.batch = m->batch}, &err), err);
    assert_true(p->loss == NO_VALUE && p->targets == NO_VALUE && p->logits != NO_VALUE);
    assert_ok(exec_new(&e, p, b, trained, &err), err);
    assert_int_equal(exec_memory(e).parameters, 0);
    write_tensor(e, p->tokens, tensor(s, "", "tokens"));
    if (m->config.segments)
        write_tensor(e, p->segments, tensor(s, "", "segments"));
    exec_run(e, PHASE_DATA, PHASE_FORWARD);
    compare(e, p->logits, tensor(s, "", "logits"), LOGITS);
    exec_free(e);
}

static inline void check_model(const struct small_model *m, struct backend *b)
{
    struct safetensors s = read_fixture("model", m->name);
    const struct optimizer_settings settings = small_settings();
    struct exec *e = new_exec(small_training(*m, &settings), b);
    const struct program *p = exec_program(e);
    assert_int_equal(write_parameters(e, &s), count_prefix(&s, "param."));
    write_tensor(e, p->tokens, tensor(&s, "", "tokens"));
    write_tensor(e, p->targets, tensor(&s, "", "targets"));
    if (m->config.segments)
        write_tensor(e, p->segments, tensor(&s, "", "segments"));
    check_logits(m, b, e, &s);
    exec_run(e, PHASE_DATA, PHASE_BACKWARD);
    const double loss = *(const float *)tensor(&s, "", "loss")->data;
    assert_near(exec_scalar(e, p->loss), loss, LOSS * loss, "the loss");
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER)
            compare(e, p->values[i].grad, tensor(&s, "grad.", p->values[i].name), GRADIENT);
    exec_free(e);
    safetensors_release(&s);
}

/* --- training ---------------------------------------------------------------------------------------------------- */

static inline const int32_t *batch_of(const struct tensor *t, int step)
{
    assert_int_equal(t->dim[0], BATCHES);
    return (const int32_t *)t->data + (step - 1) % BATCHES * t->dim[1] * t->dim[2];
}

/* Adding a constant to every key changes no attention weight, so the gradient of a key's bias is nothing but rounding,
 * which Adam turns into steps of any direction. */
static inline bool is_key_bias(const char *name)
{
    const size_t n = strlen(name);
    return n > 6 && !strcmp(name + n - 6, "k.bias");
}

static inline void check_final(struct exec *e, const struct safetensors *s)
{
    const struct program *p = exec_program(e);
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER && !is_key_bias(p->values[i].name))
            compare(e, i, tensor(s, "final.", p->values[i].name), FINAL);
}

/* Trains the program, a step of the model, on the batches of s, and holds its losses against PyTorch's, those of `curve`: within this share
 * of the first. */
static inline struct exec *check_curve_of(struct program *p, const struct safetensors *s, const struct safetensors *curve, struct backend *b,
                                          double share)
{
    const struct tensor *tokens = tensor(s, "", "tokens"), *targets = tensor(s, "", "targets");
    const float *losses = tensor(curve, "", "losses")->data;
    assert_int_equal(tensor(curve, "", "losses")->dim[0], STEPS);
    struct exec *e = new_exec(p, b);
    write_parameters(e, s);
    const float scale = 0x1p10f;        /* less than is tried first: no step is left out */
    if (p->loss_scale != NO_VALUE)
        exec_write(e, p->loss_scale, &scale);
    for (int step = 1; step <= STEPS; step++) {
        exec_write(e, exec_program(e)->tokens, batch_of(tokens, step));
        exec_write(e, exec_program(e)->targets, batch_of(targets, step));
        exec_run(e, PHASE_DATA, PHASE_OPTIMIZE);
        char what[64];
        snprintf(what, sizeof what, "the loss of step %d", step);
        assert_near(read_named(e, "host.loss"), losses[step - 1], share * losses[0], what);
    }
    return e;
}

static inline struct exec *check_curve(struct program *p, const struct safetensors *s, struct backend *b, double share)
{
    return check_curve_of(p, s, s, b, share);
}

static inline void check_training(const struct small_model *m, struct backend *b)
{
    struct safetensors s = read_fixture("train", m->name);
    const struct optimizer_settings settings = small_settings();
    assert_int_equal(settings.total_steps, STEPS);
    struct exec *e = check_curve(small_training(*m, &settings), &s, b, CURVE);
    check_final(e, &s);
    exec_free(e);
    safetensors_release(&s);
}

#endif
