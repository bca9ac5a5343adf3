/* UTF-8 and the three vocabularies: both ways, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "data/tokenizer.h"
#include "data/utf8.h"

static void test_utf8(void **state)
{
    (void)state;
    static const char *const bad[] = {"\x80", "\xC0\x80", "\xC1\xBF", "\xC3", "\xC3(", "\xE0\x80\x80", "\xED\xA0\x80",
                                      "\xE2\x82", "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"};
    uint32_t c;
    char text[5];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(utf8_decode(bad[i], strlen(bad[i]), &c), 0);
    assert_int_equal(utf8_decode("", 0, &c), 0);
    for (uint32_t point = 0; point < UTF8_CODE_POINTS; point++) {
        if (!utf8_valid(point))
            continue;
        const size_t n = utf8_encode(point, text);
        assert_int_equal(n, point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4);
        assert_int_equal(utf8_decode(text, n, &c), n);
        assert_int_equal(c, point);
        assert_int_equal(utf8_decode(text, n - 1, &c), 0);
    }
}

static void test_tokenizer_chars(void **state)
{
    (void)state;
    const uint32_t points[] = {'\n', 'a', 'b', 0xE9, 0x20AC, 0x1F600};
    const char text[] = "ab\xC3\xA9\n\xE2\x82\xAC\xF0\x9F\x98\x80";
    const int32_t want[] = {1, 2, 3, 0, 4, 5};
    struct tokenizer t;
    struct error err;
    int32_t ids[sizeof text];
    size_t n;
    char back[sizeof text] = "", one[TOKEN_TEXT_MAX];
    assert_int_equal(tokenizer_init(&t, TOKENIZER_CHAR, points, 6, &err), OK);
    assert_int_equal(tokenizer_encode(&t, text, strlen(text), ids, &n, &err), OK);
    assert_int_equal(n, 6);
    assert_memory_equal(ids, want, sizeof want);
    for (size_t i = 0; i < n; i++) {
        const size_t length = tokenizer_decode(&t, ids[i], one);
        assert_int_equal(length, strlen(one));
        strcat(back, one);
    }
    assert_string_equal(back, text);
    assert_int_equal(tokenizer_decode(&t, 6, one), 3);
    assert_string_equal(one, "\xEF\xBF\xBD");
    assert_int_equal(tokenizer_encode(&t, "ab\xC3\xBC", 4, ids, &n, &err), BAD_INPUT);
    assert_string_equal(err.text,
                        "character '\xC3\xBC' (U+00FC) at byte 2 is not among the 6 characters of the vocabulary");
    assert_int_equal(tokenizer_encode(&t, "a\xFF", 2, ids, &n, &err), BAD_INPUT);
    assert_string_equal(err.text, "byte 1 of the text, 0xFF, is not valid UTF-8");
    tokenizer_release(&t);
    const uint32_t falling[] = {'b', 'a'}, surrogate[] = {0xD800};
    assert_int_equal(tokenizer_init(&t, TOKENIZER_CHAR, falling, 2, &err), BAD_INPUT);
    assert_int_equal(tokenizer_init(&t, TOKENIZER_CHAR, surrogate, 1, &err), BAD_INPUT);
    assert_int_equal(tokenizer_init(&t, TOKENIZER_CHAR, NULL, 0, &err), BAD_INPUT);
}

static void test_tokenizer_bytes_and_ids(void **state)
{
    (void)state;
    struct tokenizer t;
    struct error err;
    int32_t ids[16];
    size_t n;
    char one[TOKEN_TEXT_MAX];
    assert_int_equal(tokenizer_init(&t, TOKENIZER_BYTE, NULL, 0, &err), OK);
    assert_int_equal(t.n, 256);
    assert_int_equal(tokenizer_encode(&t, "a\xFF", 2, ids, &n, &err), OK);
    assert_int_equal(n, 2);
    assert_int_equal(ids[1], 255);
    assert_int_equal(tokenizer_decode(&t, 255, one), 1);
    assert_string_equal(one, "\xFF");
    tokenizer_release(&t);

    assert_int_equal(tokenizer_init(&t, TOKENIZER_NONE, NULL, 500, &err), OK);
    assert_int_equal(tokenizer_encode(&t, " 15\n499 0", 9, ids, &n, &err), OK);
    assert_int_equal(n, 3);
    assert_int_equal(ids[0], 15);
    assert_int_equal(ids[1], 499);
    assert_int_equal(ids[2], 0);
    assert_int_equal(tokenizer_decode(&t, 499, one), 4);
    assert_string_equal(one, "499 ");
    assert_int_equal(tokenizer_encode(&t, "1 500", 5, ids, &n, &err), BAD_INPUT);
    assert_string_equal(err.text, "token id '500' is outside the vocabulary; ids are 0 to 499");
    assert_int_equal(tokenizer_encode(&t, "99999999999999999999", 20, ids, &n, &err), BAD_INPUT);
    assert_int_equal(tokenizer_encode(&t, "1 two", 5, ids, &n, &err), BAD_INPUT);
    assert_int_equal(tokenizer_encode(&t, "12x", 3, ids, &n, &err), BAD_INPUT);
    assert_int_equal(tokenizer_encode(&t, "-3", 2, ids, &n, &err), BAD_INPUT);
}

/* Of two vocabularies: the first id that is another text in one than in the other. */
static void test_tokenizers_that_differ(void **state)
{
    (void)state;
    const uint32_t abc[] = {'a', 'b', 'c'}, abd[] = {'a', 'b', 'd'}, ab[] = {'a', 'b'};
    struct tokenizer a, b, less, bytes, ids;
    struct error err;
    assert_int_equal(tokenizer_init(&a, TOKENIZER_CHAR, abc, 3, &err), OK);
    assert_int_equal(tokenizer_init(&b, TOKENIZER_CHAR, abd, 3, &err), OK);
    assert_int_equal(tokenizer_init(&less, TOKENIZER_CHAR, ab, 2, &err), OK);
    assert_int_equal(tokenizer_init(&bytes, TOKENIZER_BYTE, NULL, 0, &err), OK);
    assert_int_equal(tokenizer_init(&ids, TOKENIZER_NONE, NULL, 3, &err), OK);
    assert_int_equal(tokenizer_differ(&a, &a), -1);
    assert_int_equal(tokenizer_differ(&a, &b), 2);
    assert_int_equal(tokenizer_differ(&a, &less), -1);
    assert_int_equal(tokenizer_differ(&bytes, &a), 0);
    assert_int_equal(tokenizer_differ(&ids, &a), -1);
    tokenizer_release(&a);
    tokenizer_release(&b);
    tokenizer_release(&less);
    tokenizer_release(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_tokenizer_chars),
        cmocka_unit_test(test_tokenizer_bytes_and_ids),
        cmocka_unit_test(test_tokenizers_that_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
