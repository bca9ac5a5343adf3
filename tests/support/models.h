/* Small models that several tests run: one per architecture, of odd sizes. scripts/make-fixtures.py knows the same. */
#ifndef HONE_TESTS_MODELS_H
#define HONE_TESTS_MODELS_H

#include <stdlib.h>

#include "core/rng.h"
#include "exec/exec.h"
#include "model/model.h"
#include "ops/cpu/cpu.h"
#include "passes/passes.h"
#include "support/check.h"

struct small_model {
    const char *name;
    int64_t batch;
    struct config_model config;
};

static const struct small_model small_models[] = {
    {"gpt", 3, {.arch = ARCH_GPT, .vocab = 37, .dim = 24, .layers = 2, .heads = 3, .kv_heads = 3, .ffn = 56, .seq = 10,
                .rope_base = 10000, .norm_eps = 1e-5}},
    {"llama", 2, {.arch = ARCH_LLAMA, .vocab = 41, .dim = 32, .layers = 2, .heads = 4, .kv_heads = 2, .ffn = 48,
                  .seq = 9, .rope_base = 10000, .norm_eps = 1e-6}},
    {"postln", 4, {.arch = ARCH_POSTLN, .vocab = 29, .dim = 20, .layers = 2, .heads = 5, .kv_heads = 5, .ffn = 36,
                   .seq = 7, .segments = 3, .rope_base = 10000, .norm_eps = 1e-5}},
    {"k1", 3, {.arch = ARCH_K1, .vocab = 23, .dim = 12, .layers = 10, .tree = {2, {3, 2}}, .heads = 3, .kv_heads = 3, .ffn = 20,
               .seq = 6, .rope_base = 10000, .norm_eps = 1e-5}},
    {"untied", 3, {.arch = ARCH_LLAMA, .vocab = 31, .dim = 16, .layers = 2, .heads = 4, .kv_heads = 2, .ffn = 24, .seq = 5,
                   .head = HEAD_OWN, .rope_base = 10000, .norm_eps = 1e-6}},
};
enum { SMALL_GPT, SMALL_LLAMA, SMALL_POSTLN, SMALL_K1, SMALL_MODELS, SMALL_UNTIED = SMALL_MODELS };      /* one of each architecture, then others */

static inline struct optimizer_settings small_settings(void)
{
    return (struct optimizer_settings){.lr = 3e-3f, .min_lr = 3e-4f, .weight_decay = 0.1f, .beta1 = 0.9f, .beta2 = 0.95f,
                                       .eps = 1e-8f, .warmup = 8, .total_steps = 50, .max_norm = 1, .accumulate = 1};
}

static inline struct program *small_forward(struct small_model m, uint64_t seed)
{
    struct program *p = NULL;
    struct error err;
    const struct model_options options = {.batch = m.batch, .loss = true, .dropout = true, .seed = seed};
    assert_ok(model_build(&p, &m.config, options, &err), err);
    return p;
}

static inline struct program *small_training(struct small_model m, const struct optimizer_settings *s)
{
    struct program *p = small_forward(m, 7);
    struct error err;
    assert_ok(pass_training_step(p, s, &err), err);
    return p;
}

static inline struct backend *new_backend(int threads, bool reference)
{
    struct backend *b = NULL;
    struct error err;
    assert_ok(cpu_backend_new(&b, threads, reference, &err), err);
    return b;
}

static inline struct exec *new_exec(struct program *p, struct backend *b)
{
    struct exec *e = NULL;
    struct error err;
    assert_ok(exec_new(&e, p, b, NULL, &err), err);
    assert_ok(exec_init_parameters(e, 3, &err), err);
    return e;
}

/* Token ids (rows, seq) below n; with padding about every fourth is -1. */
static inline void random_ids(int32_t *ids, int64_t count, int64_t n, bool padding, uint64_t stream)
{
    for (int64_t i = 0; i < count; i++) {
        ids[i] = (int32_t)rng_below(21, stream, (uint64_t)i, (uint64_t)n);
        if (padding && rng_below(22, stream, (uint64_t)i, 4) == 0)
            ids[i] = -1;
    }
}

/* The same random batch for the same stream, written by `write` of an executor or a plain run. */
struct small_batch {
    int32_t tokens[512], targets[512], segments[512];
};

static inline struct small_batch random_batch(const struct small_model *m, uint64_t stream)
{
    struct small_batch b = {0};
    const int64_t n = m->batch * m->config.seq;
    assert_true(n <= 512);
    random_ids(b.tokens, n, m->config.vocab, false, 3 * stream);
    random_ids(b.targets, n, m->config.vocab, true, 3 * stream + 1);
    random_ids(b.segments, n, m->config.segments ? m->config.segments : 1, false, 3 * stream + 2);
    return b;
}

static inline void write_batch(struct exec *e, const struct small_batch *b)
{
    const struct program *p = exec_program(e);
    exec_write(e, p->tokens, b->tokens);
    exec_write(e, p->targets, b->targets);
    if (p->segments != NO_VALUE)
        exec_write(e, p->segments, b->segments);
}

/* An evaluation that shares the weights of a training program sees every update: its loss is that of the step that follows. */
static inline void assert_evaluation_follows(struct exec *train, struct exec *eval, const struct small_model *m)
{
    const struct small_batch batch = random_batch(m, 1);
    write_batch(train, &batch);
    for (int step = 0; step < 3; step++) {
        write_batch(eval, &batch);
        exec_run(eval, PHASE_DATA, PHASE_FORWARD);
        const float loss = exec_scalar(eval, exec_program(eval)->loss);
        exec_run(train, PHASE_DATA, PHASE_OPTIMIZE);
        assert_true(exec_scalar(train, exec_program(train)->loss) == loss);
    }
}

/* A copy of the value; the caller frees it. */
static inline void *read_value(struct exec *e, value_id v)
{
    void *host = xcalloc(1, value_bytes(&exec_program(e)->values[v]));
    exec_read(e, v, host);
    return host;
}

static inline float read_named(struct exec *e, const char *name)
{
    const value_id v = program_find(exec_program(e), name);
    if (v == NO_VALUE)
        fail_msg("the program has no value '%s'", name);
    return exec_scalar(e, v);
}

#endif
