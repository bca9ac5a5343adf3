/* Generation sees what training saw: a model with segments gets the segments that its data would have. And it takes checkpoints of
 * versions whose passes had other names, as resuming does. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/fs.h"
#include "support/check.h"
#include "train/train_int.h"

enum { SEQ = 24, PROMPTS = 24 };

static struct config small_config(const char *tokens)
{
    char text[512];
    struct config c;
    struct error err;
    snprintf(text, sizeof text,
             "model: {arch: postln, dim: 32, layers: 1, heads: 2, seq: %d, segments: 3}\n"
             "data: {domain: formulas, chars: 20000, workers: 0, tokens: %s}\n"
             "train: {batch_size: 8, steps: 60, lr: 0.01, warmup: 5}\neval: {every: 0}\nthreads: 1\n", SEQ, tokens);
    assert_ok(config_parse(&c, "t.yaml", text, strlen(text), NULL, 0, &err), err);
    return c;
}

static void take_text(void *context, int64_t sample, const char *text, size_t length)
{
    char *all = context;
    assert_int_equal(sample, 0);
    strncat(all, text, length);
}

static void generate(const char *checkpoint, struct generate_options o, char *all)
{
    struct generate_result r;
    struct error err;
    o.on_text = take_text;
    o.context = all;
    assert_ok(generate_run(checkpoint, &o, &r, &err), err);
    generate_release(&r);
}

/* The program that predicts, with the checkpoint's weights. */
static struct exec *open_model(const struct config *c, const char *checkpoint, struct backend *b)
{
    struct checkpoint ck;
    struct program *p;
    struct exec *e = NULL;
    struct error err;
    assert_ok(checkpoint_load(&ck, checkpoint, &err), err);
    assert_ok(forward_program(&p, c, (struct model_options){.batch = 1}, NULL, &err), err);
    assert_ok(exec_new(&e, p, b, NULL, &err), err);
    assert_ok(state_load_tensors(e, &ck.weights, VALUE_PARAMETER, ck.path, &err), err);
    checkpoint_release(&ck);
    return e;
}

/* The likeliest token behind the first n of a sample, as the data gives it. */
static int32_t expected(struct exec *e, const struct config *c, const int32_t *tokens, const int32_t *segments, int64_t n)
{
    const struct program *p = exec_program(e);
    float *logits = calloc((size_t)(SEQ * c->model.vocab), sizeof *logits);
    int32_t best = 0;
    exec_write(e, p->tokens, tokens);
    exec_write(e, p->segments, segments);
    exec_run(e, PHASE_DATA, PHASE_FORWARD);
    exec_read(e, p->logits, logits);
    const float *row = logits + (n - 1) * c->model.vocab;
    for (int32_t i = 1; i < c->model.vocab; i++)
        if (row[i] > row[best])
            best = i;
    free(logits);
    return best;
}

static void check_samples(const struct config *c, const struct dataset *d, const char *checkpoint, struct exec *e)
{
    const struct tokenizer *t = dataset_tokenizer(d);
    int32_t tokens[SEQ], targets[SEQ], segments[SEQ];
    struct error err;
    int later = 0;                      /* prompts that end in another segment than the first */
    for (int i = 0; i < PROMPTS; i++) {
        char prompt[SEQ * 16 + 1] = "", all[SEQ * 16 + 32] = "", next[TOKEN_TEXT_MAX];
        const int64_t n = SEQ / 2 + i % (SEQ / 2);
        assert_ok(dataset_sample(d, SPLIT_TRAIN, i, tokens, targets, segments, &err), err);
        for (int64_t k = 0; k < n; k++) {
            char one[TOKEN_TEXT_MAX];
            strncat(prompt, one, tokenizer_decode(t, tokens[k], one));
        }
        generate(checkpoint, (struct generate_options){.prompt = prompt, .tokens = 1}, all);
        tokenizer_decode(t, expected(e, c, tokens, segments, n), next);
        assert_memory_equal(all, prompt, strlen(prompt));
        assert_string_equal(all + strlen(prompt), next);
        later += segments[n - 1] > 0;
    }
    assert_true(later > PROMPTS / 4);
}

static void check_model(const char *tokens)
{
    struct config c = small_config(tokens);
    char folder[] = "/tmp/hone-generate-XXXXXX", out[64];
    const struct train_observer watch = {.context = NULL};
    struct train_options o = {.out = out};
    struct train_result result;
    struct dataset *d;
    struct backend *b = NULL;
    struct error err;
    assert_non_null(mkdtemp(folder));
    snprintf(out, sizeof out, "%s/run", folder);
    assert_ok(train_run(&c, &o, &watch, &result, &err), err);
    assert_ok(dataset_open(&d, &c, &err), err);
    c.model.vocab = dataset_vocab(d);
    assert_ok(train_open_backend(&b, &c, &err), err);
    struct exec *e = open_model(&c, result.checkpoint, b);
    check_samples(&c, d, result.checkpoint, e);
    exec_free(e);
    b->free(b);
    dataset_free(d);
    assert_ok(fs_remove_tree(folder, &err), err);
}

static void test_segments_of_characters(void **state)
{
    (void)state;
    check_model("char");
}

static void test_segments_of_bytes(void **state)
{
    (void)state;
    check_model("byte");
}

/* The run's checkpoint again, as a version would have written it that named a pass otherwise; returns its folder. */
static void save_as_older(char path[CONFIG_PATH_MAX], const char *out, const char *newest)
{
    struct checkpoint ck;
    struct error err;
    assert_ok(checkpoint_load(&ck, newest, &err), err);
    const char *text = json_string_value(json_object_get(ck.manifest, "config"));
    const char *at = strstr(text, "fewer-meetings: auto");
    assert_non_null(at);
    json_t *config = json_sprintf("%.*sno-meetings: auto%s", (int)(at - text), text, at + strlen("fewer-meetings: auto"));
    json_t *extra = json_pack("{s:O, s:o, s:O, s:O}", "name", json_object_get(ck.manifest, "name"), "config", config, "tokenizer",
                              json_object_get(ck.manifest, "tokenizer"), "train_samples",
                              json_object_get(ck.manifest, "train_samples"));
    assert_non_null(extra);
    assert_ok(checkpoint_save(path, out, ck.step, ck.weights.tensors, ck.weights.n, ck.state.tensors, ck.state.n, extra, 3, &err), err);
    json_decref(extra);
    checkpoint_release(&ck);
}

static void test_of_an_older_version(void **state)
{
    (void)state;
    struct config c = small_config("char");
    char folder[] = "/tmp/hone-generate-XXXXXX", out[64], older[64], path[CONFIG_PATH_MAX], now[64] = "", then[64] = "";
    const struct train_observer watch = {.context = NULL};
    struct train_result result;
    struct error err;
    assert_non_null(mkdtemp(folder));
    snprintf(out, sizeof out, "%s/run", folder);
    snprintf(older, sizeof older, "%s/older", folder);
    c.train.steps = 10;
    assert_ok(train_run(&c, &(struct train_options){.out = out}, &watch, &result, &err), err);
    save_as_older(path, older, result.checkpoint);
    const struct generate_options o = {.prompt = "x", .tokens = 20};
    generate(result.checkpoint, o, now);
    generate(path, o, then);
    assert_string_equal(then, now);
    c.train.steps = 12;
    assert_ok(train_run(&c, &(struct train_options){.out = older, .resume = true}, &watch, &result, &err), err);
    assert_int_equal(result.steps, 12);
    assert_ok(fs_remove_tree(folder, &err), err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_segments_of_characters),
        cmocka_unit_test(test_segments_of_bytes),
        cmocka_unit_test(test_of_an_older_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
