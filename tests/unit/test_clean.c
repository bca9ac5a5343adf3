/* What may reach a terminal: nothing that steers it, from any text, in one piece or many, as JSON and in errors. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/clean.h"
#include "core/error.h"
#include "support/check.h"

#define BAD "\uFFFD"

/* text, cleaned, as JSON */
static const char *const cases[][3] = {
    {"plain", "plain", "\"plain\""},
    {"\u00e9 \u4e2d \U0001F600 a\u0301", "\u00e9 \u4e2d \U0001F600 a\u0301", "\"\u00e9 \u4e2d \U0001F600 a\u0301\""},
    {"\033[31mred", BAD "[31mred", "\"\\u001B[31mred\""},
    {"a\177b", "a" BAD "b", "\"a\\u007Fb\""},
    {"a\302\23331m", "a" BAD "31m", "\"a\\u009B31m\""},
    {"a\302\200\302\237\u00a0", "a" BAD BAD "\u00a0", "\"a\\u0080\\u009F\u00a0\""},
    {"fi\u202egpj.exe", "fi" BAD "gpj.exe", "\"fi\\u202Egpj.exe\""},
    {"\u202a\u202b\u202c\u202d", BAD BAD BAD BAD, "\"\\u202A\\u202B\\u202C\\u202D\""},
    {"\u2066x\u2069", BAD "x" BAD, "\"\\u2066x\\u2069\""},
    {"a\u2028b\u2029", "a" BAD "b" BAD, "\"a\\u2028b\\u2029\""},
    {"\u2027\u202f\u2065\u206a", "\u2027\u202f\u2065\u206a", "\"\u2027\u202f\u2065\u206a\""},
    {"a\nb\tc\rd", "a b c d", "\"a\\nb\\tc\\rd\""},
};

static void test_one_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *t = text_clean(cases[i][0]), *again = text_clean(t);
        assert_string_equal(t, cases[i][1]);
        assert_string_equal(again, t);
        free(t);
        free(again);
    }
    char *none = text_clean(NULL);
    assert_string_equal(none, "");
    free(none);
}

/* Cut off, overlong, surrogates, beyond the last, lone bytes. */
static void test_not_utf8(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"\xC3", BAD}, {"\xC0\xAF", BAD BAD}, {"\xED\xA0\x80", BAD BAD BAD}, {"\xF4\x90\x80\x80", BAD BAD BAD BAD},
        {"\xE2\x82z", BAD BAD "z"}, {"\x9Bx", BAD "x"}, {"\xFF", BAD},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *t = text_clean(texts[i][0]), *utf8 = text_utf8(texts[i][0]);
        assert_string_equal(t, texts[i][1]);
        assert_string_equal(utf8, texts[i][1]);
        assert_false(text_is_utf8(texts[i][0]));
        assert_true(text_is_utf8(t));
        free(t);
        free(utf8);
    }
}

static void test_json(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = NULL;
        size_t size;
        FILE *to = open_memstream(&text, &size);
        json_t *j = json_string(cases[i][0]);
        assert_int_equal(text_put_json(to, j, JSON_ENCODE_ANY), 0);
        fclose(to);
        assert_string_equal(text, cases[i][2]);
        json_t *back = json_loads(text, JSON_DECODE_ANY, NULL);     /* and nothing of it is lost */
        assert_true(json_equal(back, j));
        json_decref(back);
        json_decref(j);
        free(text);
    }
}

/* In pieces of every size, line feeds and tabs stay and all else is as in one piece. */
static char *streamed(const char *text, size_t piece)
{
    char *out = NULL;
    size_t size, length = strlen(text);
    struct text_stream s = {.to = open_memstream(&out, &size)};
    for (size_t at = 0; at < length; at += piece)
        text_stream_put(&s, text + at, length - at < piece ? length - at : piece);
    text_stream_end(&s);
    fclose(s.to);
    return out;
}

static void test_stream(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"a\nb\tc\r", "a\nb\tc" BAD},
        {"\u00e9\u4e2d\U0001F600\302\233\u202e!", "\u00e9\u4e2d\U0001F600" BAD BAD "!"},
        {"\xE4\xB8z", BAD BAD "z"},
        {"\xE4\xB8\033[m", BAD BAD BAD "[m"},
        {"\xF0\x9F\xC3\xA9", BAD BAD "\u00e9"},
        {"\xE4\xB8", BAD BAD},
        {"\xC0\x80\xFFx", BAD BAD BAD "x"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t piece = 1; piece <= 8; piece++) {
            char *out = streamed(texts[i][0], piece);
            assert_string_equal(out, texts[i][1]);
            free(out);
        }
}

static void test_errors(void **state)
{
    (void)state;
    struct error err;
    char full[1100];
    memset(full, 0x1b, sizeof full - 1);
    full[sizeof full - 1] = 0;
    error_set(&err, BAD_INPUT, "cannot open '%s'", "\033]0;x\a\302\233\u202e\n");
    assert_string_equal(err.text, "cannot open '" BAD "]0;x" BAD BAD BAD " '");
    error_set(&err, BAD_INPUT, "%s", full);             /* three bytes for each of one: what has no room is left out */
    assert_true(text_is_utf8(err.text) && strlen(err.text) == 1023);
    errno = ENOENT;
    error_errno(&err, "cannot open '\033%s'", "x");
    assert_string_equal(err.text, "cannot open '" BAD "x': No such file or directory");
    assert_int_equal(err.code, ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_line), cmocka_unit_test(test_not_utf8), cmocka_unit_test(test_json),
        cmocka_unit_test(test_stream),   cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
