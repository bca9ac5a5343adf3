/* Byte pairs: the ids that Hugging Face's tokenizers give (scripts/check-tokenizers.py made the files), on any number of threads and in any parts; what a
 * tokenizer.json may not be; and tokenizers that are made here. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "data/bpe_train.h"
#include "data/unicode.h"
#include "support/bpe.h"

static void check_decoding(const struct bpe *b, const struct id_list *ids, const char *text, size_t size, size_t at)
{
    for (size_t i = 0; i < ids->n; i++) {
        size_t n;
        const char *bytes = bpe_token(b, ids->ids[i], &n);
        assert_non_null(bytes);
        if (i == 0 && at == 1)          /* the space before it */
            bytes++, n--;
        assert_true(size >= n && !memcmp(text, bytes, n));
        text += n;
        size -= n;
    }
    assert_int_equal(size, 0);
}

static void test_ids(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt2", "llama3", "digits", "prefix", "overlap"};
    size_t size;
    char *text = read_text(BPE "text.txt", &size);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct id_list got = {0};
        struct error err;
        struct bpe *b = open_bpe(names[i]);
        struct id_list want = ids_of(names[i]);
        assert_ok(bpe_encode_threads(b, text, size, true, 2, &got, &err), err);
        assert_same_ids(&got, &want, names[i]);
        if (i < 3)
            check_decoding(b, &got, text, size, 0);
        id_list_release(&got);
        id_list_release(&want);
        bpe_free(b);
    }
    free(text);
}

/* Long text, cut anywhere that bpe_cut allows: the same ids. */
static void test_parts(void **state)
{
    (void)state;
    size_t size;
    char *text = read_text(BPE "text.txt", &size), *many = malloc(200 * size);
    struct error err;
    for (int i = 0; i < 200; i++)
        memcpy(many + (size_t)i * size, text, size);
    struct bpe *b = open_bpe("llama3");
    struct id_list one = {0}, two = {0}, parts = {0};
    struct bpe_coder *c = bpe_coder_new(b);
    bpe_encode(c, many, 200 * size, true, &one);
    assert_ok(bpe_encode_threads(b, many, 200 * size, true, 3, &two, &err), err);
    assert_same_ids(&two, &one, "threads");
    for (size_t at = 0, step = 1000; at < 200 * size; step = step * 7 % 60000 + 100) {
        const size_t left = 200 * size - at, take = left > step ? bpe_cut(b, many + at, step) : left;
        bpe_encode(c, many + at, take, at == 0, &parts);
        at += take;
        if (!take)
            step += 5000;
    }
    assert_same_ids(&parts, &one, "parts");
    bpe_coder_free(c);
    id_list_release(&one);
    id_list_release(&two);
    id_list_release(&parts);
    bpe_free(b);
    free(many);
    free(text);
}

/* Any bytes have ids and come back; a long run takes no more than n log n. */
static void test_any_bytes(void **state)
{
    (void)state;
    struct bpe *b = open_bpe("gpt2");
    struct bpe_coder *c = bpe_coder_new(b);
    struct id_list ids = {0};
    char all[512];
    for (int i = 0; i < 512; i++)
        all[i] = (char)(i * 37 ^ i >> 3);
    bpe_encode(c, all, sizeof all, true, &ids);
    check_decoding(b, &ids, all, sizeof all, 0);
    enum { LONG = 2000000 };
    char *run = malloc(LONG);
    memset(run, 'a', LONG);
    ids.n = 0;
    bpe_encode(c, run, LONG, true, &ids);
    check_decoding(b, &ids, run, LONG, 0);
    bpe_encode(c, "", 0, true, &ids);
    free(run);
    id_list_release(&ids);
    bpe_coder_free(c);
    bpe_free(b);
}

/* ---- pieces ---- */

static void expect_pieces(const struct cutting *c, const char *text, const char *wanted)
{
    char got[512] = "";
    size_t digit = 0, used = 0;
    for (size_t at = 0, end; at < strlen(text); at = end) {
        end = piece_end(c, text, at, strlen(text), &digit);
        assert_true(end > at && end <= strlen(text));
        used += (size_t)snprintf(got + used, sizeof got - used, "%s%.*s", at ? "|" : "", (int)(end - at), text + at);
    }
    assert_string_equal(got, wanted);
}

static void test_pieces(void **state)
{
    (void)state;
    const struct cutting gpt2 = {.digits = 0}, llama3 = {.words_with_marks = true, .digits = 3}, digits = {.each_digit = true}, none = {.none = true};
    expect_pieces(&gpt2, "Don't  stop 1234!\n\n x", "Don|'t| | stop| 1234|!|\n\n| x");
    expect_pieces(&gpt2, "DON'T\t\tx   ", "DON|'|T|\t|\t|x|   ");
    expect_pieces(&llama3, "DON'T  stop 1234!\n\n x", "DON|'T| | stop| |123|4|!\n\n| x");
    expect_pieces(&llama3, "(a) \n  b\tc\r\n", "(a|)| \n| | b|\tc|\r\n");
    expect_pieces(&digits, "ab12 3", "ab|1|2| |3");
    expect_pieces(&none, "a b", "a b");
    expect_pieces(&gpt2, "\xC3\xBC\xE4\xBD\xA0 \xFF\xFE", "\xC3\xBC\xE4\xBD\xA0| \xFF\xFE");
    assert_int_equal(unicode_kind_of(0x4F60), UNICODE_LETTER);
    assert_int_equal(unicode_kind_of(0x0661), UNICODE_NUMBER);
    assert_int_equal(unicode_kind_of(0x3000), UNICODE_SPACE);
    assert_int_equal(unicode_kind_of(0x1F600), UNICODE_OTHER);
    assert_int_equal(unicode_kind_of(0x10FFFF), UNICODE_OTHER);
}

static void test_bytes_as_characters(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++)
        assert_int_equal(bpe_byte_of(bpe_shown_of((unsigned char)c)), c);
    assert_int_equal(bpe_shown_of(' '), 0x120);
    assert_int_equal(bpe_shown_of('\n'), 0x10A);
    assert_int_equal(bpe_byte_of(0x144), -1);
    assert_int_equal(bpe_byte_of(0x2581), -1);
}

/* ---- what is wrong ---- */

/* A tokenizer of all bytes with this in places of its document. */
static char *document(const char *more_vocab, const char *merges, const char *pre, const char *added, const char *model)
{
    char *text = NULL, shown[8];
    size_t size;
    FILE *to = open_memstream(&text, &size);
    fprintf(to, "{\"added_tokens\":%s,\"normalizer\":null,\"pre_tokenizer\":%s,\"model\":{%s\"vocab\":{", added, pre, model);
    for (int c = 0; c < 256; c++) {
        const char byte = (char)c;
        bpe_show(&byte, 1, shown);
        fprintf(to, "%s\"%s%s\":%d", c ? "," : "", c == '"' || c == '\\' ? "\\" : "", shown, c);
    }
    fprintf(to, "%s},\"merges\":%s}}", more_vocab, merges);
    fclose(to);
    return text;
}

#define LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"

static void test_refusals(void **state)
{
    (void)state;
    static const struct { const char *vocab, *merges, *pre, *added, *model, *says; } cases[] = {
        {"", "[]", LEVEL, "[]", "", NULL},
        {",\"ab\":256", "[\"a b\"]", LEVEL, "[]", "\"type\":\"BPE\",", NULL},
        {",\"ab\":256", "[[\"a\",\"b\"]]", LEVEL, "[]", "\"type\":\"BPE\",\"continuing_subword_prefix\":\"\",", NULL},
        {",\"ab\":256", "[\"a b\",[\"a\",\"b\"]]", LEVEL, "[]", "", "'t': merge 1, which makes 'ab', is there twice"},
        {"", "[\"a b\"]", LEVEL, "[]", "", "'t': merge 0 makes 'ab', which is not in the vocabulary"},
        {",\"ab\":256", "[\"ab c\"]", LEVEL, "[]", "", "'t': merge 0 makes 'abc', which is not in the vocabulary"},
        {",\"aab\":256", "[\"aa b\"]", LEVEL, "[]", "", "'t': merge 0 has the token 'aa', which is not in the vocabulary"},
        {"", "[\" a\"]", LEVEL, "[]", "", "'t': merge 0 is not two tokens of the byte-level alphabet, as \"a b\" or [\"a\", \"b\"]"},
        {"", "[[\"\",\"a\"]]", LEVEL, "[]", "", "'t': merge 0 is not two tokens of the byte-level alphabet, as \"a b\" or [\"a\", \"b\"]"},
        {"", "[7]", LEVEL, "[]", "", "'t': merge 0 is not two tokens of the byte-level alphabet, as \"a b\" or [\"a\", \"b\"]"},
        {",\"\":256", "[]", LEVEL, "[]", "", "'t': token '' is not of a byte-level vocabulary, whose characters stand for bytes; hone reads BPE with the pre-tokenizer ByteLevel"},
        {",\"\xE2\x96\x81the\":256", "[]", LEVEL, "[]", "",
         "'t': token '\xE2\x96\x81the' is not of a byte-level vocabulary, whose characters stand for bytes; hone reads BPE with the pre-tokenizer ByteLevel"},
        {",\"ab\":9", "[]", LEVEL, "[]", "", "'t': two tokens have the id 9"},
        {",\"ab\":-1", "[]", LEVEL, "[]", "", "'t': the id of token 'ab' is not a whole number from 0 to 16777215"},
        {",\"ab\":99999999999", "[]", LEVEL, "[]", "", "'t': the id of token 'ab' is not a whole number from 0 to 16777215"},
        {"", "[]", LEVEL, "[]", "\"type\":\"Unigram\",", "'t': the model is of type 'Unigram'; hone reads BPE"},
        {"", "[]", "{\"type\":\"BertPreTokenizer\"}", "[]", "\"type\":\"WordPiece\",", "'t': the model is of type 'WordPiece'; hone reads BPE"},
        {"", "[]", LEVEL, "[]", "\"unk_token\":\"<unk>\",", "'t': the model has unk_token, which cannot be read so far"},
        {"", "{}", LEVEL, "[]", "", "'t' has no model with a vocab and merges, as BPE has"},
        {"", "[]", "{\"type\":\"Metaspace\"}", "[]", "", "'t': the pre-tokenizer is of type 'Metaspace'; hone reads ByteLevel, and Split or Digits before it"},
        {"", "[]", "null", "[]", "", "'t': the pre-tokenizer is of type 'none'; hone reads ByteLevel, and Split or Digits before it"},
        {"", "[]", "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"x\"},\"behavior\":\"Isolated\"}", "[]", "",
         "'t': the pre-tokenizer Split has the regular expression 'x'; hone knows those of GPT-2, cl100k, Llama 3 and Qwen 2"},
        {"", "[]", "{\"type\":\"Sequence\",\"pretokenizers\":[]}", "[]", "", "'t': the pre-tokenizer has no ByteLevel; hone reads byte-level BPE"},
        {"", "[]", "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\"}]}", "[]", "",
         "'t': the pre-tokenizer Digits without individual_digits cannot be read so far"},
        {"", "[]", LEVEL, "[{\"id\":256,\"content\":\"<s>\",\"lstrip\":true}]", "", "'t': added token '<s>' has lstrip, which cannot be read so far"},
        {"", "[]", LEVEL, "[{\"id\":256,\"content\":\"<s>\"},{\"id\":256,\"content\":\"<t>\"}]", "", "'t': two added tokens have the id 256"},
        {"", "[]", LEVEL, "[{\"id\":65,\"content\":\"<s>\"}]", "", "'t': two tokens have the id 65"},
        {"", "[]", LEVEL, "[{\"id\":256}]", "", "'t': added token 0 has no content"},
        {"", "[]", LEVEL, "[{\"content\":\"<s>\"}]", "", "'t': the id of token '<s>' is not a whole number from 0 to 16777215"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bpe *b = NULL;
        struct error err = {.text = ""};
        char *text = document(cases[i].vocab, cases[i].merges, cases[i].pre, cases[i].added, cases[i].model);
        const enum status st = bpe_parse(&b, "t", text, strlen(text), &err);
        if (cases[i].says)
            assert_string_equal(err.text, cases[i].says);
        assert_int_equal(st, cases[i].says ? BAD_INPUT : OK);
        bpe_free(b);
        free(text);
    }
    struct bpe *b = NULL;
    struct error err;
    assert_int_equal(bpe_parse(&b, "t", "{\"model\":", 9, &err), BAD_INPUT);
    assert_int_equal(bpe_parse(&b, "t", "[]", 2, &err), BAD_INPUT);
    assert_string_equal(err.text, "'t' is not a JSON object");
    char *text = document("", "[]", LEVEL, "[]", "");
    memcpy(strstr(text, "\"b\":98"), "\"b\":65", 6);
    assert_int_equal(bpe_parse(&b, "t", text, strlen(text), &err), BAD_INPUT);
    assert_string_equal(err.text, "'t': two tokens have the id 65");
    free(text);
}

/* ---- training ---- */

static struct bpe *trained_on(const char *text, int vocab, int64_t least, int threads)
{
    static const char *const specials[] = {"<|endoftext|>"};
    const struct bpe_training how = {.vocab = vocab, .least = least, .specials = specials, .n_specials = 1};
    struct bpe_trainer *t = bpe_trainer_new(&how, threads);
    struct bpe *b = NULL;
    struct error err;
    assert_ok(bpe_trainer_add(t, text, strlen(text), &err), err);
    assert_ok(bpe_trainer_finish(t, &b, &err), err);
    bpe_trainer_free(t);
    return b;
}

static void assert_token(const struct bpe *b, int32_t id, const char *want)
{
    size_t n;
    const char *bytes = bpe_token(b, id, &n);
    assert_non_null(bytes);
    assert_int_equal(n, strlen(want));
    assert_memory_equal(bytes, want, n);
}

/* By hand: "ab" comes four times, then " ab" three times as "abc" does, and a space has the lower id, then " abc" twice; "aaaa" has three pairs of a. */
static void test_training(void **state)
{
    (void)state;
    struct bpe *b = trained_on("abc abc abc abd", 260, 2, 1);
    assert_int_equal(bpe_size(b), 260);
    assert_token(b, 0, "<|endoftext|>");
    assert_token(b, 1, "!");
    assert_token(b, 257, "ab");
    assert_token(b, 258, " ab");
    assert_token(b, 259, " abc");
    bpe_free(b);
    b = trained_on("aaaa aaaa", 300, 2, 1);
    assert_token(b, 257, "aa");
    assert_token(b, 258, "aaaa");
    assert_int_equal(bpe_size(b), 259);             /* " aaaa" comes once */
    bpe_free(b);
}

static void test_training_is_the_same(void **state)
{
    (void)state;
    size_t size, n[2];
    char *text = read_text(BPE "text.txt", &size), *many = calloc(1, 400 * size + 1);
    for (size_t i = 0, at = 0; i < 400; i++)        /* without its zeros, which end a text here */
        for (size_t k = 0; k < size; k++)
            if (text[k])
                many[at++] = text[k];
    struct bpe *a = trained_on(many, 600, 2, 1), *b = trained_on(many, 600, 2, 3);
    const char *x = bpe_json(a, &n[0]), *y = bpe_json(b, &n[1]);
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(x, y, n[0]);
    bpe_free(a);
    bpe_free(b);
    free(many);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),      cmocka_unit_test(test_parts),    cmocka_unit_test(test_any_bytes),           cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_bytes_as_characters), cmocka_unit_test(test_refusals), cmocka_unit_test(test_training), cmocka_unit_test(test_training_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
