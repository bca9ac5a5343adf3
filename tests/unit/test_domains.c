/* Data of several domains: one vocabulary, stages by the index of a sample, the loader over their borders; and data in a vocabulary
 * that is given. */
#include <sys/stat.h>
#include <math.h>

#include "data/corpus.h"
#include "data_files.h"

enum { SEQ = 16, SIZE = 2, STEPS = 3, ACCUMULATE = 2, STAGE = SIZE * STEPS * ACCUMULATE };

/* A config by hand, with the names up to a NULL as domains. */
static struct config config_with(const char *const *names)
{
    struct config c = config_of(SOURCE_CORPUS, NULL, SEQ);
    char *to = c.data.domains.text;
    for (; *names; names++, c.data.domains.n++)
        to = stpcpy(to, *names) + 1;
    c.model.segments = 2;
    c.data.chars = 3000;
    c.data.val_fraction = 0.2;
    c.train.steps = STEPS;
    c.train.batch_size = SIZE;
    c.train.accumulate = ACCUMULATE;
    return c;
}
#define CONFIG(...) config_with((const char *const[]){__VA_ARGS__, NULL})

/* The text of a sample and the character behind it. */
static void sample_text(const struct dataset *d, enum split split, int64_t i, char out[8 * SEQ])
{
    int32_t tokens[SEQ], targets[SEQ], segments[SEQ];
    struct error err = {.text = ""};
    char piece[TOKEN_TEXT_MAX];
    *out = '\0';
    if (dataset_sample(d, split, i, tokens, targets, segments, &err) != OK)
        fail_msg("%s", err.text);
    for (int k = 0; k <= SEQ; k++) {
        tokenizer_decode(dataset_tokenizer(d), k < SEQ ? tokens[k] : targets[SEQ - 1], piece);
        strcat(out, piece);
        assert_true(k == 0 || k == SEQ || tokens[k] == targets[k - 1]);
    }
}

static void assert_same_text(const struct dataset *a, int64_t i, const struct dataset *b, int64_t k, enum split split)
{
    char x[8 * SEQ], y[8 * SEQ];
    sample_text(a, split, i, x);
    sample_text(b, split, k, y);
    assert_string_equal(x, y);
}

static const char *const WORDS_OF[] = {"prose", "code", "formulas"};

/* Every sample of a stage is, character by character, that of the domain alone; the last stage has no end. */
static void test_stages(void **state)
{
    (void)state;
    struct config c = CONFIG("formulas", "prose", "code");
    struct dataset *all = open_good(&c), *alone[3];
    assert_int_equal(dataset_domains(all), 3);
    int64_t samples = 0;
    for (int i = 0; i < 3; i++) {
        struct config one = config_with((const char *const[]){NULL});
        assert_true(config_domain(config_name(&c.data.domains, i), &one.data.domain));
        alone[i] = open_good(&one);
        const struct dataset *domain = dataset_domain(all, i);
        assert_string_equal(dataset_name(domain), config_name(&c.data.domains, i));
        assert_true(dataset_entropy(domain) == corpus_entropy(one.data.domain));
        assert_int_equal(dataset_samples(domain, SPLIT_VAL), dataset_samples(alone[i], SPLIT_VAL));
        for (int64_t k = 0; k < dataset_samples(domain, SPLIT_VAL); k++, samples++) {
            assert_same_text(domain, k, alone[i], k, SPLIT_VAL);
            assert_same_text(all, samples, alone[i], k, SPLIT_VAL);
        }
        for (int64_t k = 0; k < (i < 2 ? STAGE : 5 * STAGE); k++)
            assert_same_text(all, i * STAGE + k, alone[i], k, SPLIT_TRAIN);
    }
    assert_int_equal(samples, dataset_samples(all, SPLIT_VAL));
    assert_true(isnan(dataset_entropy(all)) && !dataset_name(all));
    assert_int_equal(dataset_domains(alone[0]), 1);
    assert_ptr_equal(dataset_domain(alone[0], 0), alone[0]);
    for (int i = 0; i < 3; i++)
        dataset_free(alone[i]);
    dataset_free(all);
}

static int count(const bool used[128])
{
    int n = 0;
    for (int i = 0; i < 128; i++)
        n += used[i];
    return n;
}

/* The vocabulary is that of all, whatever their order and length. */
static void test_union(void **state)
{
    (void)state;
    bool all[128] = {false};
    for (int i = 0; i < 3; i++) {
        bool used[128];
        corpus_alphabet((enum data_domain)i, used);
        for (int k = 0; k < 128; k++)
            all[k] |= used[k];
    }
    struct config c = CONFIG("code", "formulas", "prose");
    c.data.chars = 400;
    struct dataset *d = open_good(&c);
    assert_int_equal(dataset_vocab(d), count(all));
    for (int i = 0; i < 3; i++) {
        const struct tokenizer *t = dataset_tokenizer(dataset_domain(d, i));
        assert_int_equal(t->n, count(all));
        assert_memory_equal(t->code_points, dataset_tokenizer(d)->code_points, sizeof *t->code_points * (size_t)t->n);
    }
    dataset_free(d);
    c.data.tokens = TOKENS_BYTE;
    d = open_good(&c);
    assert_int_equal(dataset_vocab(d), 256);
    assert_int_equal(dataset_tokenizer(dataset_domain(d, 2))->kind, TOKENIZER_BYTE);
    dataset_free(d);
}

/* Files stand beside words. */
static void test_files(void **state)
{
    (void)state;
    char text[4096] = "";
    for (int i = 0; i < 100; i++)
        strcat(text, "Stra\xC3\x9F" "e \xE2\x82\xAC 7\n");
    char path[128];
    snprintf(path, sizeof path, "%s", file_write("euro.txt", text, strlen(text)));
    struct config c = CONFIG(path, "prose"), one = config_of(SOURCE_TEXT, path, SEQ);
    one.data.val_fraction = c.data.val_fraction;
    struct dataset *d = open_good(&c), *alone = open_good(&one);
    bool used[128];
    corpus_alphabet(DOMAIN_PROSE, used);
    for (const char *s = "Strae 7\n"; *s; s++)
        used[(int)*s] = true;
    assert_int_equal(dataset_vocab(d), count(used) + 2);
    assert_string_equal(dataset_name(dataset_domain(d, 0)), path);
    assert_true(isnan(dataset_entropy(dataset_domain(d, 0))));
    assert_true(dataset_entropy(dataset_domain(d, 1)) == corpus_entropy(DOMAIN_PROSE));
    for (int64_t i = 0; i < STAGE; i++)
        assert_same_text(d, i, alone, i, SPLIT_TRAIN);
    assert_non_null(strstr(dataset_describe(d), "euro.txt', then prose: "));
    dataset_free(d);
    dataset_free(alone);
    c.data.samples = SAMPLES_LINES;
    d = open_good(&c);
    assert_true(isnan(dataset_entropy(dataset_domain(d, 1))));
    dataset_free(d);
}

/* Batches over the borders, for any number of workers and from any start. */
static void test_loader(void **state)
{
    (void)state;
    struct config c = CONFIG("prose", "formulas", "code");
    struct dataset *d = open_good(&c);
    for (int64_t first = 0; first < 4 * STAGE / SIZE; first++)
        for (int workers = 0; workers < 4; workers++) {
            struct loader *l = NULL;
            struct error err = {.text = ""};
            assert_int_equal(loader_new(&l, d, SPLIT_TRAIN, SIZE, first, workers, 2, &err), OK);
            for (int64_t i = first; i < first + STAGE / SIZE + 3; i++) {
                const struct batch *b = loader_next(l, &err);
                assert_non_null(b);
                for (int k = 0; k < SIZE; k++) {
                    int32_t tokens[SEQ], targets[SEQ], segments[SEQ];
                    assert_int_equal(dataset_sample(d, SPLIT_TRAIN, i * SIZE + k, tokens, targets, segments, &err), OK);
                    assert_memory_equal(b->tokens + k * SEQ, tokens, sizeof tokens);
                    assert_memory_equal(b->targets + k * SEQ, targets, sizeof targets);
                    assert_memory_equal(b->segments + k * SEQ, segments, sizeof segments);
                }
            }
            loader_free(l);
        }
    dataset_free(d);
}

/* Stages of more samples than can be counted: the first one has no end. */
static void test_endless_stage(void **state)
{
    (void)state;
    struct config c = CONFIG("prose", "code");
    c.train.steps = INT32_MAX;
    c.train.batch_size = c.train.accumulate = 1 << 20;
    struct dataset *d = open_good(&c);
    assert_same_text(d, INT64_MAX - 1, dataset_domain(d, 0), INT64_MAX - 1, SPLIT_TRAIN);
    dataset_free(d);
}

static void test_refusals(void **state)
{
    (void)state;
    char bad[128], empty[128], little[128];
    snprintf(bad, sizeof bad, "%s", file_write("latin.txt", "caf\xE9 au lait and so on, and on", 30));
    snprintf(empty, sizeof empty, "%s", file_write("empty.txt", "", 0));
    snprintf(little, sizeof little, "%s", file_write("little.txt", "too little text", 15));
    struct config c = CONFIG("prose", bad);
    assert_refused(&c, "latin.txt", "not UTF-8", "byte 3", NULL);
    c = CONFIG("prose", empty);
    assert_refused(&c, "empty.txt", "is empty", NULL);
    c = CONFIG("prose", little, "code");
    assert_refused(&c, "little.txt", "tokens for training", "give more data", NULL);
    c = CONFIG("prose", "code");
    c.data.chars = 50;
    assert_refused(&c, "'prose' leaves", "tokens for validation", NULL);
    c.data.val_fraction = 0.5;
    c.data.chars = 30;
    assert_refused(&c, "'prose' leaves 15 tokens for training", "set a larger data.chars", NULL);
    c = CONFIG("prose", in_folder("missing.txt"));
    assert_refused(&c, "missing.txt", "No such file", NULL);
    assert_int_equal(mkdir(in_folder("none"), 0700), 0);
    c = CONFIG(in_folder("none"));
    assert_refused(&c, folder, "the folder", "holds no files", NULL);
    c = CONFIG("prose", "code", "formulas");
    c.model.vocab = 50;
    snprintf(c.file, sizeof c.file, "%s", file_write("v.yaml", "model:\n  arch: gpt\n  vocab: 50\n", 31));
    assert_refused(&c, "v.yaml' line 3: model.vocab is 50, and data.domains have", "characters; set it to", NULL);
    c.model.vocab = 51;
    assert_refused(&c, "--set model.vocab=51: model.vocab is 51, and", NULL);
}

/* ---- a vocabulary that is given ---- */

static enum status open_for(struct dataset **out, const struct config *c, const struct dataset *model, struct error *err)
{
    *out = NULL;
    *err = (struct error){.text = ""};
    return dataset_open_for(out, c, dataset_tokenizer(model), err);
}

/* A text of few characters, in the ids of a model that has more. */
static void test_given(void **state)
{
    (void)state;
    struct config c = CONFIG("prose", "code", "formulas");
    struct dataset *model = open_good(&c), *d, *own;
    struct error err;
    for (int i = 0; i < 3; i++) {
        struct config one = config_with((const char *const[]){NULL});
        assert_true(config_domain(WORDS_OF[i], &one.data.domain));
        assert_int_equal(open_for(&d, &one, model, &err), OK);
        own = open_good(&one);
        assert_int_equal(dataset_vocab(d), dataset_vocab(model));
        assert_true(dataset_entropy(d) == dataset_entropy(own));
        for (int64_t k = 0; k < dataset_samples(d, SPLIT_VAL); k++)
            assert_same_text(d, k, own, k, SPLIT_VAL);
        dataset_free(d);
        dataset_free(own);
    }
    struct config text = config_of(SOURCE_TEXT, file_write("few.txt", "aaaabbbbaaaabbbbaaaabbbb", 24), SEQ);
    assert_int_equal(open_for(&d, &text, model, &err), OK);
    assert_int_equal(dataset_vocab(d), dataset_vocab(model));
    dataset_free(d);
    text = config_of(SOURCE_TEXT, file_write("many.txt", "a \xE2\x82\xAC and a \xC3\x9F, and then the rest", 33), SEQ);
    assert_int_equal(open_for(&d, &text, model, &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "many.txt' holds 2 characters that the vocabulary of "));
    assert_non_null(strstr(err.text, "does not have: '\xC3\x9F' (U+00DF), '\xE2\x82\xAC' (U+20AC)"));
    c = CONFIG("code", text.data.path);
    assert_int_equal(open_for(&d, &c, model, &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "many.txt' holds 2 characters"));
    text.data.source = SOURCE_BIN;
    assert_int_equal(open_for(&d, &text, model, &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "many.txt' has ids without a text"));
    dataset_free(model);
}

/* Bytes are bytes, whatever data.tokens says; ids are no text. */
static void test_given_bytes_and_ids(void **state)
{
    (void)state;
    struct config c = CONFIG("prose");
    c.data.tokens = TOKENS_BYTE;
    struct dataset *model = open_good(&c), *d;
    struct error err;
    c.data.tokens = TOKENS_CHAR;
    struct config text = config_of(SOURCE_TEXT, file_write("euro.txt", "\xE2\x82\xAC costs more than nothing", 27), SEQ);
    assert_int_equal(open_for(&d, &text, model, &err), OK);
    assert_int_equal(dataset_vocab(d), 256);
    assert_int_equal(dataset_tokens(d, SPLIT_TRAIN), 27);
    dataset_free(d);
    dataset_free(model);
    assert_int_equal(dataset_open_random(&model, 300, SEQ, 0, 1, &err), OK);
    assert_int_equal(open_for(&d, &text, model, &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "tokens are ids without a text, and data.source text '"));
    dataset_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stages),
        cmocka_unit_test(test_union),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_loader),
        cmocka_unit_test(test_endless_stage),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_given),
        cmocka_unit_test(test_given_bytes_and_ids),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
