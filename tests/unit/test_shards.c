/* Shards of tokens: the windows cut from them, the formats, and what is said about files that are wrong. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "data/permute.h"
#include "data_files.h"

/* ---- permutations ---- */

static void test_permutation(void **state)
{
    (void)state;
    const uint64_t sizes[] = {1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 1000, 4097};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            bool seen[4097] = {false};
            uint64_t fixed = 0;
            for (uint64_t i = 0; i < sizes[s]; i++) {
                const uint64_t to = permute_index(9, epoch, sizes[s], i);
                assert_true(to < sizes[s] && !seen[to]);
                seen[to] = true;
                fixed += to == i;
            }
            assert_true(sizes[s] < 100 || fixed < 12);      /* a random permutation keeps one place on average */
        }
    }
    uint64_t same = 0;
    for (uint64_t i = 0; i < 1000; i++)
        same += permute_index(9, 0, 1000, i) == permute_index(9, 1, 1000, i);
    assert_true(same < 12);
    assert_true(permute_index(9, 0, (uint64_t)1 << 40, 12345) < (uint64_t)1 << 40);
}

/* ---- windows ---- */

/* Shards whose token at place k of shard s is s * 1000 + k, so that a sample shows where it is from. */
static void shards_write(int shards, const int *counts)
{
    for (int s = 0; s < shards; s++) {
        uint16_t tokens[1000];
        char name[32];
        for (int k = 0; k < counts[s]; k++)
            tokens[k] = (uint16_t)(s * 1000 + k);
        snprintf(name, sizeof name, "part-%d.bin", s);
        file_write(name, tokens, sizeof tokens[0] * (size_t)counts[s]);
    }
}

/* Reads one epoch and checks that it covers each shard with non-overlapping windows, each once, inside its split. */
static void assert_epoch(const struct dataset *d, enum split split, int64_t epoch, int32_t *first_of)
{
    const int64_t samples = dataset_samples(d, split), seq = d->seq;
    bool seen[65536] = {false};
    int32_t tokens[64], targets[64];
    for (int64_t i = 0; i < samples; i++) {
        assert_int_equal(dataset_sample(d, split, epoch * samples + i, tokens, targets, NULL, NULL), OK);
        for (int64_t k = 0; k < seq; k++) {
            assert_int_equal(tokens[k], tokens[0] + k);
            assert_int_equal(targets[k], tokens[0] + k + 1);
            assert_int_equal(targets[k] / 1000, tokens[0] / 1000);      /* of one shard */
            assert_false(seen[tokens[k]]);
            seen[tokens[k]] = true;
        }
        first_of[i] = tokens[0];
    }
}

static void test_windows_over_shards(void **state)
{
    (void)state;
    const int counts[] = {1000, 333, 21, 500};
    const int64_t seq = 20;
    shards_write(4, counts);
    struct config c = config_of(SOURCE_BIN, in_folder("part-?.bin"), seq);
    struct dataset *d = open_good(&c);
    assert_int_equal(dataset_vocab(d), 3500);
    assert_int_equal(dataset_tokens(d, SPLIT_TRAIN), 1854);
    assert_int_equal(dataset_tokens(d, SPLIT_VAL), 0);
    assert_int_equal(dataset_samples(d, SPLIT_VAL), 0);
    /* 49, 16, 1 and 24 windows fit; the long shards give one up for their phase. */
    assert_int_equal(dataset_samples(d, SPLIT_TRAIN), 48 + 15 + 1 + 23);
    assert_true(isnan(dataset_entropy(d)));
    int32_t first[3][100];
    for (int epoch = 0; epoch < 3; epoch++)
        assert_epoch(d, SPLIT_TRAIN, epoch, first[epoch]);
    assert_memory_not_equal(first[0], first[1], sizeof first[0]);
    int phases[3], rising = 0;
    for (int epoch = 0; epoch < 3; epoch++)
        for (int i = 0; i < 87; i++) {
            phases[epoch] = first[epoch][i] < 1000 ? first[epoch][i] % 20 : phases[epoch];
            rising += i > 0 && first[epoch][i] > first[epoch][i - 1];
        }
    assert_false(phases[0] == phases[1] && phases[1] == phases[2]);
    assert_true(rising > 90 && rising < 170);       /* of 258: half, in a shuffled order */
    dataset_free(d);
}

/* The last shard of many may be shorter than a window: it is left out, and said. A file that was asked for by its name is not. */
static void test_short_shards_of_a_pattern(void **state)
{
    (void)state;
    shards_write(4, (const int[]){100, 15, 333, 20});
    struct config c = config_of(SOURCE_BIN, in_folder("part-?.bin"), 20);
    struct dataset *d = open_good(&c);
    assert_int_equal(d->n_stores, 2);
    assert_int_equal(dataset_tokens(d, SPLIT_TRAIN), 433);
    assert_non_null(strstr(dataset_warning(d, 0), "part-3.bin' has 20 tokens, and model.seq 20 needs at least 21: it and 1 more of '"));
    assert_null(dataset_warning(d, 1));
    dataset_free(d);
    shards_write(2, (const int[]){100, 100});
    d = open_good(&c);
    assert_int_equal(d->n_stores, 3);
    assert_non_null(strstr(dataset_warning(d, 0), "part-3.bin' has 20 tokens, and model.seq 20 needs at least 21: the shard is left out"));
    dataset_free(d);
    snprintf(c.data.path, sizeof c.data.path, "%s", in_folder("part-[2].bin"));
    snprintf(c.data.val_path, sizeof c.data.val_path, "%s", in_folder("part-[13].bin"));
    d = open_good(&c);
    assert_int_equal(dataset_tokens(d, SPLIT_VAL), 100);
    assert_non_null(strstr(dataset_warning(d, 0), "part-3.bin"));
    dataset_free(d);
    snprintf(c.data.val_path, sizeof c.data.val_path, "%s", in_folder("part-3.bin"));
    assert_refused(&c, "part-3.bin", "has 20 tokens", "leave the shard out", NULL);
    c = config_of(SOURCE_BIN, in_folder("part-[13].bin"), 200);
    assert_refused(&c, "no shard of '", "part-[13].bin' has the 201 tokens", "part-1.bin', has 100: set model.seq to 99 or less", NULL);
}

/* A pattern that takes the file for validation, too: said, but where both keys name the same, which is meant. */
static void test_trained_and_validated(void **state)
{
    (void)state;
    shards_write(3, (const int[]){100, 100, 100});
    const struct { const char *train, *val; bool told; } cases[] = {
        {"part-?.bin", "part-2.bin", true}, {"part-[01].bin", "part-[12].bin", true}, {"part-[01].bin", "part-2.bin", false}, {"part-1.bin", "part-1.bin", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config c = config_of(SOURCE_BIN, in_folder(cases[i].train), 20);
        snprintf(c.data.val_path, sizeof c.data.val_path, "%s", in_folder(cases[i].val));
        struct dataset *d = open_good(&c);
        const char *said = NULL;
        for (int w = 0; dataset_warning(d, w) && !said; w++)
            said = strstr(dataset_warning(d, w), "the validation loss is of text that was trained on");
        assert_true(!said == !cases[i].told);
        dataset_free(d);
    }
}

static void test_phases_cover_the_text(void **state)
{
    (void)state;
    const int counts[] = {1000};
    shards_write(1, counts);
    struct config c = config_of(SOURCE_BIN, in_folder("part-0.bin"), 20);
    struct dataset *d = open_good(&c);
    bool phase_seen[20] = {false};
    int32_t tokens[20], targets[20];
    int phases = 0;
    for (int64_t epoch = 0; epoch < 400; epoch++) {
        const int64_t first = epoch * dataset_samples(d, SPLIT_TRAIN);
        assert_int_equal(dataset_sample(d, SPLIT_TRAIN, first, tokens, targets, NULL, NULL), OK);
        phases += !phase_seen[tokens[0] % 20];
        phase_seen[tokens[0] % 20] = true;
    }
    assert_int_equal(phases, 20);
    dataset_free(d);
}

/* A short stretch gives no window up: its phases are what is spare, and none leads beyond its end. */
static void test_phases_of_a_short_file(void **state)
{
    (void)state;
    const int counts[] = {45};
    int32_t first[3];
    bool phase_seen[4] = {false};
    shards_write(1, counts);
    struct config c = config_of(SOURCE_BIN, in_folder("part-0.bin"), 10);
    c.data.val_fraction = 0.25;         /* 11 of 45, which leaves 34: three windows and 3 tokens to spare */
    struct dataset *d = open_good(&c);
    assert_int_equal(dataset_samples(d, SPLIT_TRAIN), 3);
    for (int64_t epoch = 0; epoch < 200; epoch++) {
        assert_epoch(d, SPLIT_TRAIN, epoch, first);
        for (int i = 0; i < 3; i++) {
            assert_true(first[i] + 10 < 34);
            phase_seen[first[i] % 10] = true;
        }
    }
    for (int i = 0; i < 4; i++)
        assert_true(phase_seen[i]);
    dataset_free(d);
}

static void test_split_by_fraction(void **state)
{
    (void)state;
    const int counts[] = {1000, 1000};
    int32_t first[200];
    shards_write(2, counts);
    unlink(in_folder("part-2.bin"));
    unlink(in_folder("part-3.bin"));
    struct config c = config_of(SOURCE_BIN, in_folder("part-*.bin"), 10);
    c.data.val_fraction = 0.25;
    struct dataset *d = open_good(&c);
    assert_int_equal(dataset_tokens(d, SPLIT_TRAIN), 1500);
    assert_int_equal(dataset_tokens(d, SPLIT_VAL), 500);
    assert_epoch(d, SPLIT_VAL, 0, first);
    for (int i = 0; i < dataset_samples(d, SPLIT_VAL); i++)
        assert_int_equal(first[i], 1500 + 10 * i);      /* phase 0, in order */
    assert_int_equal(dataset_samples(d, SPLIT_VAL), 49);
    assert_epoch(d, SPLIT_VAL, 1, first);
    assert_int_equal(first[48], 1980);
    assert_epoch(d, SPLIT_TRAIN, 5, first);
    for (int i = 0; i < dataset_samples(d, SPLIT_TRAIN); i++)
        assert_true(first[i] + 10 < 1500);
    dataset_free(d);

    snprintf(c.data.path, sizeof c.data.path, "%s", in_folder("part-0.bin"));
    snprintf(c.data.val_path, sizeof c.data.val_path, "%s", in_folder("part-1.bin"));
    d = open_good(&c);
    assert_int_equal(dataset_tokens(d, SPLIT_TRAIN), 1000);
    assert_int_equal(dataset_tokens(d, SPLIT_VAL), 1000);
    assert_epoch(d, SPLIT_VAL, 0, first);
    assert_int_equal(first[0], 1000);
    dataset_free(d);
}

static void test_order_follows_the_seed(void **state)
{
    (void)state;
    const int counts[] = {1000};
    int32_t a[100], b[100];
    shards_write(1, counts);
    struct config c = config_of(SOURCE_BIN, in_folder("part-0.bin"), 20);
    struct dataset *d = open_good(&c);
    assert_epoch(d, SPLIT_TRAIN, 0, a);
    dataset_free(d);
    d = open_good(&c);
    assert_epoch(d, SPLIT_TRAIN, 0, b);
    assert_memory_equal(a, b, sizeof a[0] * 48);
    dataset_free(d);
    c.train.seed = 43;
    d = open_good(&c);
    assert_epoch(d, SPLIT_TRAIN, 0, b);
    assert_memory_not_equal(a, b, sizeof a[0] * 48);
    dataset_free(d);
}

/* ---- shard files ---- */

static const char *llmc_write(const char *name, int32_t magic, int32_t version, int32_t says, const void *tokens,
                              size_t bytes)
{
    static unsigned char file[65536];
    int32_t header[256] = {magic, version, says};
    memcpy(file, header, sizeof header);
    memcpy(file + sizeof header, tokens, bytes);
    return file_write(name, file, sizeof header + bytes);
}

static void test_shard_formats(void **state)
{
    (void)state;
    const uint16_t narrow[] = {5, 6, 7, 50256, 9};
    const uint32_t wide[] = {5, 6, 7, 128000, 9};
    const struct { const char *path; int64_t vocab; } cases[] = {
        {file_write("raw.bin", narrow, sizeof narrow), 50257},
        {llmc_write("gpt2.bin", 20240520, 1, 5, narrow, sizeof narrow), 50257},
        {llmc_write("llama.bin", 20240801, 7, 5, wide, sizeof wide), 128001},
    };
    for (int i = 0; i < 3; i++) {
        struct config c = config_of(SOURCE_BIN, cases[i].path, 4);
        struct dataset *d = open_good(&c);
        int32_t tokens[4], targets[4], segments[4];
        assert_int_equal(dataset_vocab(d), cases[i].vocab);
        assert_int_equal(dataset_samples(d, SPLIT_TRAIN), 1);
        assert_int_equal(dataset_tokenizer(d)->kind, TOKENIZER_NONE);
        assert_int_equal(dataset_sample(d, SPLIT_TRAIN, 3, tokens, targets, segments, NULL), OK);
        assert_int_equal(tokens[0], 5);
        assert_int_equal(tokens[3], cases[i].vocab - 1);
        assert_int_equal(targets[2], cases[i].vocab - 1);
        assert_int_equal(targets[3], 9);
        dataset_free(d);
    }
}

static void test_bad_shards(void **state)
{
    (void)state;
    const uint16_t tokens[] = {5, 6, 7, 300, 9};
    const uint32_t huge[] = {1, 2, 3, 0xFFFFFFFF, 5};
    struct config c = config_of(SOURCE_BIN, llmc_write("lies.bin", 20240520, 1, 6, tokens, sizeof tokens), 4);
    assert_refused(&c, "lies.bin", "6 tokens", "1036 bytes", "1034", NULL);
    c = config_of(SOURCE_BIN, llmc_write("lies2.bin", 20240520, 1, 4, tokens, sizeof tokens), 4);
    assert_refused(&c, "lies2.bin", "4 tokens", "1032", "1034", NULL);
    c = config_of(SOURCE_BIN, llmc_write("minus.bin", 20240520, 1, -1, tokens, sizeof tokens), 4);
    assert_refused(&c, "minus.bin", "-1 tokens", NULL);
    c = config_of(SOURCE_BIN, llmc_write("most.bin", 20240801, 7, INT32_MAX, tokens, sizeof tokens), 4);
    assert_refused(&c, "most.bin", "2147483647 tokens", NULL);
    c = config_of(SOURCE_BIN, llmc_write("version.bin", 20240520, 3, 5, tokens, sizeof tokens), 4);
    assert_refused(&c, "version.bin", "version 3", "version 1", NULL);
    c = config_of(SOURCE_BIN, file_write("head.bin", (int32_t[]){20240520, 1, 5}, 12), 4);
    assert_refused(&c, "head.bin", "12 bytes", "1024", "cut off", NULL);
    c = config_of(SOURCE_BIN, file_write("odd.bin", "abcdefghijk", 11), 4);
    assert_refused(&c, "odd.bin", "11 bytes", "odd", NULL);
    c = config_of(SOURCE_BIN, file_write("empty.bin", "", 0), 4);
    assert_refused(&c, "empty.bin", "is empty", NULL);
    c = config_of(SOURCE_BIN, in_folder("missing.bin"), 4);
    assert_refused(&c, "missing.bin", "No such file", NULL);
    c = config_of(SOURCE_BIN, in_folder("missing-*.bin"), 4);
    assert_refused(&c, "no file matches", "missing-*.bin", "data.path", NULL);
    c = config_of(SOURCE_BIN, folder, 4);
    assert_refused(&c, folder, "folder", NULL);
    c = config_of(SOURCE_BIN, file_write("short.bin", tokens, sizeof tokens), 5);
    assert_refused(&c, "short.bin", "5 tokens", "needs at least 6", "model.seq to 4", NULL);
    c = config_of(SOURCE_BIN, file_write("vocab.bin", tokens, sizeof tokens), 4);
    c.model.vocab = 300;
    assert_refused(&c, "vocab.bin", "token 300", "place 3", "model.vocab is 300", "301 or more", NULL);
    c = config_of(SOURCE_BIN, llmc_write("huge.bin", 20240801, 7, 5, huge, sizeof huge), 4);
    assert_refused(&c, "huge.bin", "token 4294967295", NULL);
    c = config_of(SOURCE_BIN, in_folder("vocab.bin"), 4);
    c.data.samples = SAMPLES_LINES;
    assert_refused(&c, "data.samples", "windows", NULL);
    c.data.samples = SAMPLES_WINDOWS;
    c.data.val_fraction = 0.5;
    assert_refused(&c, "vocab.bin", "3 tokens for training", "needs 5", NULL);
    c.model.seq = INT64_MAX - 1;
    assert_refused(&c, "vocab.bin", "5 tokens", NULL);
}

/* A shard that is cut, or overwritten with ids it did not have, while it is being trained on. */
static void test_shard_changes_while_open(void **state)
{
    (void)state;
    uint16_t tokens[20000];
    for (int i = 0; i < 20000; i++)
        tokens[i] = (uint16_t)(i % 100);
    const char *path = file_write("live.bin", tokens, sizeof tokens);
    struct config c = config_of(SOURCE_BIN, path, 10);
    struct dataset *d = open_good(&c);
    int32_t in[10], out[10];
    struct error err;
    const uint16_t stranger = 100;
    const int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, &stranger, 2, 20000), 2);
    int refused = 0, good = 0;
    for (int64_t i = 0; i < dataset_samples(d, SPLIT_TRAIN); i++) {
        if (dataset_sample(d, SPLIT_TRAIN, i, in, out, NULL, &err) == OK)
            good++;
        else if (strstr(err.text, "live.bin") && strstr(err.text, "outside the vocabulary of 100"))
            refused++;
    }
    assert_true(refused >= 1 && refused <= 2);
    assert_int_equal(good + refused, dataset_samples(d, SPLIT_TRAIN));
    assert_int_equal(ftruncate(fd, 4096), 0);
    close(fd);
    for (int64_t i = refused = 0; i < dataset_samples(d, SPLIT_TRAIN); i++) {
        const enum status st = dataset_sample(d, SPLIT_TRAIN, i, in, out, NULL, &err);
        refused += st == BAD_INPUT && strstr(err.text, "has been cut since");
    }
    assert_true(refused > 100);
    dataset_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_permutation),
        cmocka_unit_test(test_windows_over_shards),
        cmocka_unit_test(test_short_shards_of_a_pattern),
        cmocka_unit_test(test_trained_and_validated), cmocka_unit_test(test_phases_cover_the_text),
        cmocka_unit_test(test_phases_of_a_short_file),
        cmocka_unit_test(test_split_by_fraction),
        cmocka_unit_test(test_order_follows_the_seed),
        cmocka_unit_test(test_shard_formats),
        cmocka_unit_test(test_bad_shards),
        cmocka_unit_test(test_shard_changes_while_open),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
