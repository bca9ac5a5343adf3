/* Datasets of text, of the built-in corpus and of random tokens: what comes out and what is refused. */
#include <sys/stat.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/corpus.h"
#include "data/utf8.h"
#include "data_files.h"
#include "support/check.h"

/* Under a sanitizer: let absurd sizes fail as they do without. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

/* ---- text ---- */

static void test_text_chars(void **state)
{
    (void)state;
    const char text[] = "h\xC3\xA9llo\nw\xC3\xB6rld\nh\xC3\xA9llo\n";
    struct config c = config_of(SOURCE_TEXT, file_write("u.txt", text, strlen(text)), 6);
    struct dataset *d = open_good(&c);
    assert_int_equal(dataset_tokens(d, SPLIT_TRAIN), 18);
    assert_int_equal(dataset_vocab(d), 9);              /* newline d h l o r w, e acute and o umlaut */
    dataset_free(d);

    c.data.max_chars = 5;
    c.model.seq = 4;
    d = open_good(&c);
    int32_t tokens[4], targets[4];
    const int32_t want[] = {0, 3, 1, 1}, next[] = {3, 1, 1, 2};         /* of "hlo" and e acute */
    assert_int_equal(dataset_tokens(d, SPLIT_TRAIN), 5);
    assert_int_equal(dataset_vocab(d), 4);
    assert_int_equal(dataset_sample(d, SPLIT_TRAIN, 0, tokens, targets, NULL, NULL), OK);
    assert_memory_equal(tokens, want, sizeof want);
    assert_memory_equal(targets, next, sizeof next);
    dataset_free(d);

    c.data.tokens = TOKENS_BYTE;
    d = open_good(&c);
    assert_int_equal(dataset_vocab(d), 256);
    assert_int_equal(dataset_sample(d, SPLIT_TRAIN, 0, tokens, targets, NULL, NULL), OK);
    assert_int_equal(tokens[1], 0xC3);
    assert_int_equal(targets[3], 'l');
    dataset_free(d);
}

/* Tokens of byte pairs are of whole characters, and of as many as data.max_chars says; a byte that is not of UTF-8 is one. */
static void test_text_pairs(void **state)
{
    (void)state;
    const char text[] = "\xE6\x97\xA5\xFF\xE6\x9C\xAC\xF0\x9F\x94\xA5h\xC3\xA9llo";
    const struct { int64_t chars; size_t bytes; } cases[] = {{2, 4}, {3, 7}, {4, 11}, {6, 14}, {8, 16}, {9, 17}, {10, 17}, {0, 17}};
    struct config c = config_of(SOURCE_TEXT, file_write("pairs.txt", text, strlen(text)), 1);
    snprintf(c.data.tokenizer, sizeof c.data.tokenizer, "%s", HONE_FIXTURES "/bpe/gpt2.json");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        c.data.max_chars = cases[i].chars;
        struct dataset *d = open_good(&c);
        size_t at = 0;
        for (int64_t k = 0; k < d->stores[0].count; k++) {
            size_t n;
            int32_t id;
            struct error err;
            assert_ok(store_read(&d->stores[0], k, 1, &id, &err), err);
            const char *bytes = bpe_token(d->tokenizer.bpe, id, &n);
            assert_true(at + n <= strlen(text));
            assert_memory_equal(bytes, text + at, n);
            at += n;
        }
        assert_int_equal(at, cases[i].bytes);
        assert_int_equal(d->cut, at < strlen(text));
        dataset_free(d);
    }
}

/* More than 256 characters need two bytes each; more than 65536, four. */
static void test_text_widths(void **state)
{
    (void)state;
    const uint32_t many[] = {200, 300, 70000};
    for (int i = 0; i < 3; i++) {
        char *text = malloc(many[i] * 4 + 8), *end = text;
        for (uint32_t k = 0, point = 0x4E00; k < many[i]; k++, point++)
            end += utf8_encode(point = utf8_valid(point) ? point : 0xE000, end);
        struct config c = config_of(SOURCE_TEXT, file_write("wide.txt", text, (size_t)(end - text)), 50);
        struct dataset *d = open_good(&c);
        int32_t tokens[50], targets[50];
        assert_int_equal(dataset_vocab(d), many[i]);
        assert_int_equal(d->stores[0].width, i == 0 ? 1 : i == 1 ? 2 : 4);
        for (int64_t s = 0; s < dataset_samples(d, SPLIT_TRAIN); s++) {
            assert_int_equal(dataset_sample(d, SPLIT_TRAIN, s, tokens, targets, NULL, NULL), OK);
            for (int k = 0; k < 50; k++)
                assert_true(targets[k] == tokens[k] + 1 && tokens[k] == tokens[0] + k);
        }
        dataset_free(d);
        free(text);
    }
}

static void test_text_val_file(void **state)
{
    (void)state;
    struct config c = config_of(SOURCE_TEXT, file_write("train.txt", "abababababab", 12), 3);
    snprintf(c.data.val_path, sizeof c.data.val_path, "%s", file_write("val.txt", "bcbcbcbc", 8));
    c.data.val_fraction = 0.5;          /* not used beside val_path */
    struct dataset *d = open_good(&c);
    int32_t tokens[3], targets[3];
    assert_int_equal(dataset_tokens(d, SPLIT_TRAIN), 12);
    assert_int_equal(dataset_tokens(d, SPLIT_VAL), 8);
    assert_int_equal(dataset_vocab(d), 3);      /* c is in the validation file only */
    assert_int_equal(dataset_sample(d, SPLIT_VAL, 0, tokens, targets, NULL, NULL), OK);
    assert_int_equal(tokens[0], 1);
    assert_int_equal(tokens[1], 2);
    dataset_free(d);
}

static void test_bad_text(void **state)
{
    (void)state;
    struct config c = config_of(SOURCE_TEXT, file_write("latin.txt", "caf\xE9 au lait", 12), 4);
    assert_refused(&c, "latin.txt", "not UTF-8", "byte 3", "0xE9", "data.tokens: byte", NULL);
    c.data.tokens = TOKENS_BYTE;
    dataset_free(open_good(&c));
    c = config_of(SOURCE_TEXT, file_write("empty.txt", "", 0), 4);
    assert_refused(&c, "empty.txt", "is empty", NULL);
    c = config_of(SOURCE_TEXT, in_folder("missing.txt"), 4);
    assert_refused(&c, "missing.txt", "No such file", NULL);
    assert_int_equal(mkdir(in_folder("none"), 0700), 0);
    c = config_of(SOURCE_TEXT, in_folder("none"), 4);
    assert_refused(&c, folder, "the folder", "holds no files", NULL);
    c = config_of(SOURCE_TEXT, file_write("short.txt", "abcd", 4), 4);
    assert_refused(&c, "short.txt", "4 tokens for training", "model.seq 4 needs 5", NULL);
    c = config_of(SOURCE_TEXT, file_write("long.txt", "abcdefghijklmnopqrst", 20), 4);
    c.data.val_fraction = 0.1;
    assert_refused(&c, "long.txt", "2 tokens for validation", "data.val_fraction", NULL);
    c.data.val_fraction = 0;
    c.model.vocab = 19;
    assert_refused(&c, "vocabulary of 20 characters", "model.vocab is 19", NULL);
    c.model.vocab = 20;
    dataset_free(open_good(&c));
    c = config_of(SOURCE_TEXT, file_write("blank.txt", "\n\n\n\n\n\n", 6), 2);
    c.data.samples = SAMPLES_LINES;
    assert_refused(&c, "blank.txt", "no line of text", NULL);
}

/* ---- lines and segments ---- */

static void assert_line(const struct dataset *d, enum split split, int64_t i, const char *in, const char *out)
{
    int32_t tokens[6], targets[6], segments[6];
    assert_int_equal(dataset_sample(d, split, i, tokens, targets, segments, NULL), OK);
    const size_t n = strlen(out);       /* a '$' stands for no target */
    for (size_t k = 0; k < 6; k++) {
        assert_int_equal(tokens[k], k < strlen(in) ? in[k] : 0);
        assert_int_equal(targets[k], k < n && out[k] != '$' ? out[k] : -1);
        assert_int_equal(segments[k], 0);
    }
}

static void test_lines(void **state)
{
    (void)state;
    const char text[] = "\nabc\n\nx\nabcdef\nabcdefgh\nlast";
    struct config c = config_of(SOURCE_TEXT, file_write("lines.txt", text, strlen(text)), 6);
    c.data.samples = SAMPLES_LINES;
    c.data.tokens = TOKENS_BYTE;
    c.model.segments = 2;
    snprintf(c.data.val_path, sizeof c.data.val_path, "%s", c.data.path);
    struct dataset *d = open_good(&c);
    assert_int_equal(dataset_samples(d, SPLIT_TRAIN), 5);
    assert_int_equal(dataset_samples(d, SPLIT_VAL), 5);
    assert_line(d, SPLIT_VAL, 0, "abc", "bc\n");
    assert_line(d, SPLIT_VAL, 1, "x", "\n");
    assert_line(d, SPLIT_VAL, 2, "abcdef", "bcdef\n");
    assert_line(d, SPLIT_VAL, 3, "abcdef", "bcdefg");
    assert_line(d, SPLIT_VAL, 4, "last", "ast$");
    assert_line(d, SPLIT_VAL, 5 + 1, "x", "\n");
    assert_true(isnan(dataset_entropy(d)));
    int seen[6] = {0};          /* training: each line once, by its length up to 6 */
    for (int64_t i = 0; i < 5; i++) {
        int32_t tokens[6], targets[6];
        int n = 0;
        assert_int_equal(dataset_sample(d, SPLIT_TRAIN, 10 + i, tokens, targets, NULL, NULL), OK);
        while (n < 6 && tokens[n])
            n++;
        seen[n - 1]++;
    }
    const int want[6] = {1, 0, 1, 1, 0, 2};
    assert_memory_equal(seen, want, sizeof want);
    dataset_free(d);
}

/* Lines are counted that are longer than a sample, and what of them is in no sample; those that just fit are not. */
static void test_cut_lines(void **state)
{
    (void)state;
    struct config c = config_of(SOURCE_TEXT, file_write("long.txt", "abcdef\nabcdefg\n\nabcdefghij", 26), 6);
    c.data.samples = SAMPLES_LINES;
    struct dataset *d = open_good(&c);
    assert_string_equal(dataset_warning(d, 0), "2 of 3 lines are longer than model.seq 6 and are cut: 15 % of the tokens are never seen; raise model.seq, or set data.samples: windows");
    assert_null(dataset_warning(d, 1));
    dataset_free(d);
    c.model.seq = 9;
    d = open_good(&c);
    assert_null(dataset_warning(d, 0));
    dataset_free(d);
    c.model.seq = 8;
    d = open_good(&c);
    assert_non_null(strstr(dataset_warning(d, 0), "1 of 3 lines is longer than model.seq 8 and is cut: 4 % of"));
    dataset_free(d);
}

/* The cut between training and validation does not go through a line. */
static void test_lines_split(void **state)
{
    (void)state;
    struct config c = config_of(SOURCE_TEXT, file_write("cut.txt", "aaaa\nbbbb\ncccc\ndddd\n", 20), 6);
    c.data.samples = SAMPLES_LINES;
    c.data.tokens = TOKENS_BYTE;
    c.data.val_fraction = 0.4;
    struct dataset *d = open_good(&c);
    assert_int_equal(dataset_samples(d, SPLIT_TRAIN), 2);
    assert_int_equal(dataset_samples(d, SPLIT_VAL), 2);
    assert_line(d, SPLIT_VAL, 0, "cccc", "ccc\n");
    assert_line(d, SPLIT_VAL, 1, "dddd", "ddd\n");
    dataset_free(d);
}

static void test_segments(void **state)
{
    (void)state;
    struct config c = config_of(SOURCE_TEXT, file_write("seg.txt", "a\nb\n\nc", 6), 5);
    int32_t tokens[5], targets[5], segments[5];
    c.model.segments = 3;
    struct dataset *d = open_good(&c);
    assert_int_equal(dataset_sample(d, SPLIT_TRAIN, 0, tokens, targets, segments, NULL), OK);
    assert_memory_equal(segments, ((int32_t[]){0, 0, 1, 1, 2}), sizeof segments);
    dataset_free(d);
    c.model.segments = 2;
    d = open_good(&c);
    assert_int_equal(dataset_sample(d, SPLIT_TRAIN, 0, tokens, targets, segments, NULL), OK);
    assert_memory_equal(segments, ((int32_t[]){0, 0, 1, 1, 0}), sizeof segments);
    dataset_free(d);
    const uint16_t ids[] = {1, 2, 3, 10, 5, 6};
    c = config_of(SOURCE_BIN, file_write("seg.bin", ids, sizeof ids), 5);
    for (c.model.segments = 0; c.model.segments < 3; c.model.segments++) {
        d = open_good(&c);
        assert_int_equal(dataset_sample(d, SPLIT_TRAIN, 0, tokens, targets, segments, NULL), OK);
        for (int i = 0; i < 5; i++)
            assert_int_equal(segments[i], c.model.segments == 2 && i >= 3);
        dataset_free(d);
    }
}

/* ---- the corpus and random tokens as datasets ---- */

static void test_corpus_dataset(void **state)
{
    (void)state;
    struct config c = config_of(SOURCE_CORPUS, NULL, 64);
    c.data.domain = DOMAIN_CODE;
    c.data.chars = 20000;
    c.data.val_fraction = 0.1;
    struct dataset *d = open_good(&c);
    bool used[128];
    int32_t n = 0, tokens[64], targets[64];
    corpus_alphabet(DOMAIN_CODE, used);
    for (int i = 0; i < 128; i++)
        n += used[i];
    assert_int_equal(dataset_vocab(d), n);
    assert_int_equal(dataset_tokens(d, SPLIT_TRAIN), 18000);
    assert_true(dataset_entropy(d) == corpus_entropy(DOMAIN_CODE));
    assert_int_equal(dataset_sample(d, SPLIT_VAL, 0, tokens, targets, NULL, NULL), OK);
    char text[64 * 4 + 1] = "", one[TOKEN_TEXT_MAX];
    for (int i = 0; i < 64; i++) {
        tokenizer_decode(dataset_tokenizer(d), tokens[i], one);
        strcat(text, one);
    }
    char *all = corpus_generate(DOMAIN_CODE, 20260101, 20000);
    assert_memory_equal(text, all + 18000, 64);
    assert_string_equal(dataset_describe(d),
                        "built-in code: 18000 training and 2000 validation tokens, vocabulary of 49 characters");
    free(all);
    dataset_free(d);
    c.data.chars = 40;
    c.data.val_fraction = 0;
    assert_refused(&c, "40 tokens", "needs 65", "data.chars", NULL);
    c.data.chars = 0;
    assert_refused(&c, "data.chars is 0", NULL);
    c.data.chars = INT64_MAX;
    struct error err;
    assert_int_equal(dataset_open(&d, &c, &err), CANNOT);
    assert_non_null(strstr(err.text, "data.chars 9223372036854775807"));
}

static void test_random_dataset(void **state)
{
    (void)state;
    struct dataset *d;
    struct error err;
    int32_t a[33], b[33], targets[33], segments[33], count[7] = {0};
    assert_int_equal(dataset_open_random(&d, 7, 33, 2, 5, &err), OK);
    assert_true(fabs(dataset_entropy(d) - log(7)) < 1e-12);
    for (int64_t i = 0; i < 1000; i++) {
        assert_int_equal(dataset_sample(d, SPLIT_TRAIN, i, a, targets, segments, NULL), OK);
        assert_memory_equal(a + 1, targets, sizeof a - sizeof a[0]);
        for (int k = 0; k < 33; k++)
            count[a[k]]++;
    }
    for (int k = 0; k < 7; k++)
        assert_true(abs(count[k] - 33000 / 7) < 350);       /* 5 standard errors */
    assert_int_equal(dataset_sample(d, SPLIT_TRAIN, 999, b, targets, segments, NULL), OK);
    assert_memory_equal(a, b, sizeof a);
    assert_int_equal(dataset_sample(d, SPLIT_VAL, 999, b, targets, segments, NULL), OK);
    assert_memory_not_equal(a, b, sizeof a);
    dataset_free(d);
    assert_int_equal(dataset_open_random(&d, 0, 8, 0, 5, &err), BAD_INPUT);
    assert_int_equal(dataset_open_random(&d, (int64_t)1 << 31, 8, 0, 5, &err), BAD_INPUT);
}

static void test_no_validation(void **state)
{
    (void)state;
    struct config c = config_of(SOURCE_TEXT, file_write("noval.txt", "abcdefgh", 8), 4);
    struct dataset *d = open_good(&c);
    int32_t tokens[4], targets[4];
    struct error err;
    assert_int_equal(dataset_sample(d, SPLIT_VAL, 0, tokens, targets, NULL, &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "no validation data"));
    dataset_free(d);
    dataset_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_chars),
        cmocka_unit_test(test_text_pairs),
        cmocka_unit_test(test_text_widths),
        cmocka_unit_test(test_text_val_file),
        cmocka_unit_test(test_bad_text),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_cut_lines),
        cmocka_unit_test(test_lines_split),
        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_corpus_dataset),
        cmocka_unit_test(test_random_dataset),
        cmocka_unit_test(test_no_validation),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
