/* Byte pairs of SentencePiece's kind: the ids that Hugging Face's tokenizers give (scripts/check-tokenizers.py made the files), on any number of threads and
 * in any parts; any bytes; and what a tokenizer.json of that kind may not be. */
#include <stdio.h>
#include <stdlib.h>

#include "support/bpe.h"

static const char *const names[] = {"llama2", "mistral", "always", "never", "across"};
enum { NAMES = sizeof names / sizeof *names };

static void test_ids(void **state)
{
    (void)state;
    size_t size;
    char *text = read_text(BPE "spaced.txt", &size);
    for (int i = 0; i < NAMES; i++) {
        struct id_list got = {0}, want = ids_of(names[i]);
        struct error err;
        struct bpe *b = open_bpe(names[i]);
        assert_true(b->by_characters);
        assert_int_equal(b->cutting.none, i == 4);          /* merges that go over words leave a text in one piece */
        assert_int_equal(b->cutting.lines, i != 2 && i != 4);
        assert_ok(bpe_encode_threads(b, text, size, true, 2, &got, &err), err);
        assert_same_ids(&got, &want, names[i]);
        id_list_release(&got);
        id_list_release(&want);
        bpe_free(b);
    }
    free(text);
}

/* A text many times over: in one, on threads, and in parts of any size. */
static void test_parts(void **state)
{
    (void)state;
    enum { TIMES = 100 };
    size_t size;
    char *text = read_text(BPE "spaced.txt", &size), *many = malloc(TIMES * size);
    struct error err;
    for (size_t i = 0; i < TIMES; i++)
        memcpy(many + i * size, text, size);
    for (int i = 0; i < NAMES; i++) {
        struct bpe *b = open_bpe(names[i]);
        struct id_list one = {0}, two = {0}, parts = {0};
        struct bpe_coder *c = bpe_coder_new(b);
        bpe_encode(c, many, TIMES * size, true, &one);
        assert_ok(bpe_encode_threads(b, many, TIMES * size, true, 3, &two, &err), err);
        assert_same_ids(&two, &one, names[i]);
        for (size_t at = 0, step = 7; at < TIMES * size; step = step * 7 % 9000 + 50) {
            const size_t left = TIMES * size - at, take = left > step && !b->cutting.none ? bpe_cut(b, many + at, step) : left;
            bpe_encode(c, many + at, take, at == 0, &parts);
            at += take;
        }
        assert_same_ids(&parts, &one, names[i]);
        bpe_coder_free(c);
        id_list_release(&one);
        id_list_release(&two);
        id_list_release(&parts);
        bpe_free(b);
    }
    free(many);
    free(text);
}

/* The text of tokens, with the bytes that were put before it left out. */
static void check_decoding(const struct bpe *b, const struct id_list *ids, const char *text, size_t size)
{
    for (size_t i = 0; i < ids->n; i++) {
        size_t n;
        const char *bytes = bpe_token(b, ids->ids[i], &n);
        assert_non_null(bytes);
        if (i == 0)
            bytes++, n--;
        assert_true(size >= n && !memcmp(text, bytes, n));
        text += n;
        size -= n;
    }
    assert_int_equal(size, 0);
}

/* What is no UTF-8 becomes tokens of its bytes, and comes back. */
static void test_any_bytes(void **state)
{
    (void)state;
    struct bpe *b = open_bpe("llama2");
    struct bpe_coder *c = bpe_coder_new(b);
    struct id_list ids = {0};
    char all[512];
    for (int i = 0; i < 512; i++)
        all[i] = (char)(i * 37 ^ i >> 3);
    assert_null(memmem(all, sizeof all, SPACE_MARK, SPACE_MARK_BYTES));
    bpe_encode(c, all, sizeof all, true, &ids);
    check_decoding(b, &ids, all, sizeof all);
    ids.n = 0;
    bpe_encode(c, "\xFF\xC3", 2, false, &ids);
    assert_int_equal(ids.n, 2);
    assert_true(ids.ids[0] == b->byte_ids[0xFF] && ids.ids[1] == b->byte_ids[0xC3]);
    bpe_coder_free(c);
    id_list_release(&ids);
    bpe_free(b);
}

/* Where a space is put: before a text, and behind a special. */
static void test_prefix(void **state)
{
    (void)state;
    static const struct { const char *name, *text, *says; } cases[] = {
        {"llama2", "a", " a"},      {"llama2", " a", "  a"},          {"llama2", "<s>a", "<s> a"},         {"llama2", "a</s> b", " a</s>  b"}, {"llama2", "<s>", "<s>"},
        {"mistral", "a", " a"},     {"mistral", " a", " a"},          {"mistral", "<s>a", "<s>a"},         {"mistral", "\xE2\x96\x81" "a", " a"},
        {"always", "a<s>a", " a<s> a"}, {"always", "a<s> a", " a<s> a"}, {"never", "a<s>a", "a<s>a"},      {"never", " a\xE2\x96\x81\xE2\x96\x81", " a  "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bpe *b = open_bpe(cases[i].name);
        struct bpe_coder *c = bpe_coder_new(b);
        struct id_list ids = {0};
        char got[64] = "";
        bpe_encode(c, cases[i].text, strlen(cases[i].text), true, &ids);
        for (size_t k = 0; k < ids.n; k++) {
            size_t n;
            const char *bytes = bpe_token(b, ids.ids[k], &n);
            strncat(got, bytes, n);
        }
        assert_string_equal(got, cases[i].says);
        bpe_coder_free(c);
        id_list_release(&ids);
        bpe_free(b);
    }
}

/* ---- what is refused ---- */

#define MARKS "{\"type\":\"Metaspace\",\"replacement\":\"" SPACE_MARK "\",\"prepend_scheme\":\"first\",\"split\":false}"
#define REPLACE "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" SPACE_MARK "\"}"
#define PREPEND "{\"type\":\"Prepend\",\"prepend\":\"" SPACE_MARK "\"}"

static char *document(const char *tokens, const char *merges, const char *normalizer, const char *pre, const char *added, const char *model)
{
    char *text = malloc(64 << 10);
    int n = sprintf(text, "{\"normalizer\":%s,\"pre_tokenizer\":%s,\"added_tokens\":%s,\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,%s\"vocab\":{\"a\":256,\"b\":257", normalizer,
                    pre, added, model);
    for (int i = 0; i < 256; i++)
        n += sprintf(text + n, ",\"<0x%02X>\":%d", i, i);
    sprintf(text + n, "%s},\"merges\":%s}}", tokens, merges);
    return text;
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct { const char *tokens, *merges, *normalizer, *pre, *added, *model, *says; } cases[] = {
        {"", "[]", "null", MARKS, "[]", "", NULL},
        {",\"" SPACE_MARK "\":258,\"" SPACE_MARK "a\":259", "[\"" SPACE_MARK " a\"]", "null", MARKS, "[]", "\"unk_token\":\"a\",\"fuse_unk\":true,", NULL},
        {"", "[]", "{\"type\":\"Sequence\",\"normalizers\":[" PREPEND "," REPLACE "]}", "null", "[]", "", NULL},
        {"", "[]", REPLACE, "null", "[{\"id\":258,\"content\":\"<s>\",\"normalized\":false}]", "", NULL},
        {"", "[]", REPLACE, "null", "[{\"id\":258,\"content\":\"<s>\",\"normalized\":true}]", "",
         "'t': added token '<s>' is normalized, which cannot be read so far; set its normalized to false"},
        {"", "[]", REPLACE, MARKS, "[]", "", "'t' has a normalizer and the pre-tokenizer 'Metaspace'; with byte_fallback hone reads one of them"},
        {"", "[]", "{\"type\":\"NFKC\"}", "null", "[]", "",
         "'t': the normalizer is of type 'NFKC'; with byte_fallback hone reads Prepend and Replace, which make '" SPACE_MARK "' of spaces"},
        {"", "[]", "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"}," REPLACE "]}", "null", "[]", "",
         "'t': the normalizer is of type 'NFC'; with byte_fallback hone reads Prepend and Replace, which make '" SPACE_MARK "' of spaces"},
        {"", "[]", "null", "null", "[]", "",
         "'t': the pre-tokenizer is of type 'none'; with byte_fallback hone reads Metaspace, or a normalizer that makes '" SPACE_MARK "' of spaces"},
        {"", "[]", "null", "{\"type\":\"Metaspace\",\"replacement\":\"_\",\"split\":false}", "[]", "",
         "'t': the pre-tokenizer Metaspace has another replacement than '" SPACE_MARK "'"},
        {"", "[]", "null", "{\"type\":\"Metaspace\",\"replacement\":\"" SPACE_MARK "\"}", "[]", "",
         "'t': the pre-tokenizer Metaspace splits; hone reads one whose split is false, as those of Llama and Mistral"},
        {"", "[]", "null", "{\"type\":\"Metaspace\",\"replacement\":\"" SPACE_MARK "\",\"split\":false,\"prepend_scheme\":\"last\"}", "[]", "",
         "'t': prepend_scheme is 'last'; expected never, first or always"},
        {",\"a b\":258", "[]", "null", MARKS, "[]", "",
         "'t': token 'a b' has a space, or is too long; a vocabulary of SentencePiece has '" SPACE_MARK "' for spaces"},
        {"", "[]", "null", MARKS, "[]", "\"ignore_merges\":true,", "'t': the model has ignore_merges and byte_fallback, which cannot be read so far"},
        {"", "[]", "null", MARKS, "[]", "\"end_of_word_suffix\":\"</w>\",", "'t': the model has end_of_word_suffix, which cannot be read so far"},
        {"", "[\"a b\"]", "null", MARKS, "[]", "", "'t': merge 0 makes 'ab', which is not in the vocabulary"},
        {"", "[\"a <0x41>\"]", "null", MARKS, "[]", "", "'t': merge 0 has the token '<0x41>', which is not in the vocabulary"},
        {"", "[\"ab\"]", "null", MARKS, "[]", "", "'t': merge 0 is not two tokens, as \"a b\" or [\"a\", \"b\"]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bpe *b = NULL;
        struct error err = {.text = ""};
        char *text = document(cases[i].tokens, cases[i].merges, cases[i].normalizer, cases[i].pre, cases[i].added, cases[i].model);
        const enum status st = bpe_parse(&b, "t", text, strlen(text), &err);
        assert_string_equal(err.text, cases[i].says ? cases[i].says : "");
        assert_int_equal(st, cases[i].says ? BAD_INPUT : OK);
        bpe_free(b);
        free(text);
    }
    struct bpe *b = NULL;
    struct error err;
    char *text = document("", "[]", "null", MARKS, "[]", "");
    memcpy(strstr(text, "<0x7F>"), "<0x7f>", 6);
    assert_int_equal(bpe_parse(&b, "t", text, strlen(text), &err), BAD_INPUT);
    assert_string_equal(err.text, "'t': the vocabulary has no token <0x7F>; with byte_fallback it has all 256");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids), cmocka_unit_test(test_parts), cmocka_unit_test(test_any_bytes), cmocka_unit_test(test_prefix), cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
