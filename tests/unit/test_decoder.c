/* Generation with kept keys and values gives the logits of the whole program over the tokens that the model sees: for every architecture, with
 * prompts of any length, before and after the window is full, and for several samples at once. */
#include "support/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/rng.h"
#include "ops/cpu/cpu.h"
#include "train/decoder.h"

enum { TOKENS = 40, VOCAB = 29 };

static const char *const models[] = {
    "{arch: gpt, vocab: 29, dim: 24, layers: 2, heads: 3, seq: 10}",
    "{arch: gpt, vocab: 29, dim: 24, layers: 2, heads: 3, seq: 1}",
    "{arch: llama, vocab: 29, dim: 32, layers: 2, heads: 4, kv_heads: 2, ffn: 48, seq: 9}",
    "{arch: llama, vocab: 29, dim: 32, layers: 2, heads: 4, kv_heads: 1, ffn: 48, seq: 12, head: own}",
    "{arch: postln, vocab: 29, dim: 20, layers: 2, heads: 5, seq: 7, segments: 3}",
    "{arch: k1, vocab: 29, dim: 12, tree: [3, 2], heads: 3, seq: 6}",
};
enum { MODELS = sizeof models / sizeof *models };

static struct config config_of(const char *model, const char *passes)
{
    char text[512];
    struct config c;
    struct error err;
    snprintf(text, sizeof text, "model: %s\noptimize: {passes: %s}\n", model, passes);
    assert_ok(config_parse(&c, "t.yaml", text, strlen(text), NULL, 0, &err), err);
    return c;
}

/* A decoder, and the whole program with the same weights. */
struct pair {
    struct config config;
    struct backend *backend;
    struct exec *step, *whole;
    struct decoder decoder;
    int32_t newline;
};

/* As at initialisation most logits are near zero, weights are larger than that. */
static void fill_weights(struct exec *e)
{
    const struct program *p = exec_program(e);
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER) {
            const int64_t n = shape_count(p->values[i].shape);
            float *x = malloc((size_t)n * sizeof *x);
            rng_fill_normal(x, n, p->values[i].shape.rank > 1 ? 0.3f : 0.5f, 7, rng_stream_of(p->values[i].name));
            exec_write(e, i, x);
            free(x);
        }
}

static void pair_open(struct pair *x, const char *model, const char *passes, int threads, bool reference, int64_t samples)
{
    struct program *p;
    struct error err;
    *x = (struct pair){.config = config_of(model, passes), .newline = 3};
    assert_ok(cpu_backend_new(&x->backend, threads, reference, &err), err);
    assert_ok(decoder_program(&p, &x->config, samples, &err), err);
    assert_ok(exec_new(&x->step, p, x->backend, NULL, &err), err);
    fill_weights(x->step);
    assert_ok(forward_program(&p, &x->config, (struct model_options){.batch = 1}, NULL, &err), err);
    assert_ok(exec_new(&x->whole, p, x->backend, x->step, &err), err);
    assert_ok(decoder_init(&x->decoder, &x->config, x->backend, x->step, samples, x->newline, &err), err);
}

static void pair_close(struct pair *x)
{
    decoder_release(&x->decoder);
    exec_free(x->whole);
    exec_free(x->step);
    x->backend->free(x->backend);
}

/* The logits (VOCAB) behind the last of n tokens, by the program over all places. */
static void whole_logits(struct pair *x, const int32_t *tokens, int64_t n, float *to)
{
    const struct program *p = exec_program(x->whole);
    const int64_t seq = x->config.model.seq;
    int32_t *window = calloc((size_t)seq, sizeof *window), *segments = calloc((size_t)seq, sizeof *segments);
    float *all = malloc((size_t)(seq * VOCAB) * sizeof *all);
    memcpy(window, tokens, (size_t)n * sizeof *window);
    exec_write(x->whole, p->tokens, window);
    if (p->segments != NO_VALUE) {
        data_segments(segments, window, n, seq, x->config.model.segments, x->newline);
        exec_write(x->whole, p->segments, segments);
    }
    exec_run(x->whole, PHASE_DATA, PHASE_FORWARD);
    exec_read(x->whole, p->logits, all);
    memcpy(to, all + (n - 1) * VOCAB, VOCAB * sizeof *to);
    free(window);
    free(segments);
    free(all);
}

static void assert_logits(const float *is, const float *should, const char *model, int64_t at)
{
    float most = 0;
    for (int i = 0; i < VOCAB; i++)
        most = fmaxf(most, fabsf(should[i]));
    for (int i = 0; i < VOCAB; i++)
        if (!(fabsf(is[i] - should[i]) <= 1e-5f * most))
            fail_msg("%s, token %lld: logit %d is %.7g; without what is kept it is %.7g", model, (long long)at, i, is[i], should[i]);
}

static int32_t likeliest(const float *logits)
{
    int32_t best = 0;
    for (int32_t i = 1; i < VOCAB; i++)
        best = logits[i] > logits[best] ? i : best;
    return best;
}

/* The likeliest token each time, from n that are drawn, with the window as decoder.h says it. */
static void check_greedy(struct pair *x, const char *model, int64_t n)
{
    const int64_t seq = x->config.model.seq;
    int32_t tokens[2 * TOKENS];
    int64_t first = n > seq ? n - seq : 0;          /* the window is [first, n) */
    float should[VOCAB];
    struct error err;
    for (int64_t i = 0; i < n; i++)
        tokens[i] = (int32_t)rng_below(5, (uint64_t)n, (uint64_t)i, VOCAB);
    assert_ok(decoder_begin(&x->decoder, tokens, n, &err), err);
    for (; n < TOKENS; n++) {
        whole_logits(x, tokens + first, n - first, should);
        assert_logits(x->decoder.logits, should, model, n);
        assert_int_equal(likeliest(x->decoder.logits), likeliest(should));
        tokens[n] = n % 3 ? likeliest(should) : (int32_t)rng_below(6, 1, (uint64_t)n, VOCAB);       /* the likeliest alone soon go in circles */
        if (n - first == seq)
            first = n - seq / 2;
        assert_ok(decoder_push(&x->decoder, tokens + n, &err), err);
    }
}

static void check_model(const char *model, const char *passes, int threads, bool reference)
{
    struct pair x;
    pair_open(&x, model, passes, threads, reference, 1);
    const int64_t seq = x.config.model.seq, lengths[] = {1, 2, seq / 2 + 1, seq, seq + 1, 2 * seq + 3};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        check_greedy(&x, model, lengths[i]);
    pair_close(&x);
}

static void test_equals_the_whole_program(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) {
        check_model(models[i], "all", 2, false);
        check_model(models[i], "none", 1, false);
        check_model(models[i], "all", 1, true);
    }
}

/* A sample's logits are those that it would have alone, whatever the others are and whether they are done: bit by bit, until what is kept is made
 * anew for all of them at once, by products of more rows. */
static void check_samples(const char *model, int64_t samples)
{
    struct pair all, one;
    struct error err;
    const int32_t prompt[] = {1, 5, 3, 7};
    pair_open(&all, model, "all", 2, false, samples);
    pair_open(&one, model, "all", 2, false, 1);
    for (int64_t s = 0; s < samples; s++) {
        assert_ok(decoder_begin(&all.decoder, prompt, 4, &err), err);
        assert_ok(decoder_begin(&one.decoder, prompt, 4, &err), err);
        for (int64_t n = 0; n < 3 * all.config.model.seq; n++) {
            int32_t tokens[16];
            if (4 + n <= all.config.model.seq)
                assert_memory_equal(all.decoder.logits + s * VOCAB, one.decoder.logits, VOCAB * sizeof(float));
            assert_logits(all.decoder.logits + s * VOCAB, one.decoder.logits, model, n);
            for (int64_t i = 0; i < samples; i++)
                tokens[i] = i != s && n > 2 + i ? -1 : (int32_t)rng_below(9, (uint64_t)i, (uint64_t)n, VOCAB);
            assert_ok(decoder_push(&all.decoder, tokens, &err), err);
            assert_ok(decoder_push(&one.decoder, tokens + s, &err), err);
        }
    }
    pair_close(&all);
    pair_close(&one);
}

static void test_samples_know_nothing_of_each_other(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++)
        check_samples(models[i], i % 2 ? 8 : 3);
}

/* What is kept is a table: it persists, is shared by the two programs, and is in no checkpoint. */
static void test_programs(void **state)
{
    (void)state;
    const struct config c = config_of(models[2], "all");
    struct program *p;
    struct error err;
    assert_ok(decoder_program(&p, &c, 4, &err), err);
    const value_id keys = program_find(p, "blocks.1.attn.keys");
    assert_true(keys != NO_VALUE && p->values[keys].kind == VALUE_TABLE);
    assert_true(shape_equal(p->values[keys].shape, shape_of(3, (int64_t)4, (int64_t)9, (int64_t)16)));
    assert_true(shape_equal(p->values[p->logits].shape, shape_of(3, (int64_t)4, (int64_t)1, (int64_t)29)));
    int stores = 0, attends = 0, projects = 0;
    for (int i = 0; i < p->n_ops; i++) {
        stores += p->ops[i].kind == OP_STORE_KV;
        attends += p->ops[i].kind == OP_ATTEND_KV;
        projects += p->ops[i].kind == OP_PROJECT;
    }
    assert_true(stores == 2 && attends == 2 && projects == 4);      /* q, k, v of a layer as one, and gate and up */
    program_free(p);
    assert_ok(generation_program(&p, &c, (struct model_options){.batch = 1, .samples = 4, .begins = true}, 5, &err), err);
    assert_true(p->logits == NO_VALUE && program_find(p, "head.weight") == NO_VALUE);
    program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_the_whole_program),
        cmocka_unit_test(test_samples_know_nothing_of_each_other),
        cmocka_unit_test(test_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
