/* Values of all kinds that JSON allows, forbids or leaves open, wherever a value can stand in a trace. What JSON allows must be
 * accepted without a word; of what it forbids the reader must lose no more than the table says; nothing may break it. */
#include "unit/import_text.h"

enum class {
    YES,            /* JSON: every event is there, nothing is skipped or warned of */
    KEPT,           /* not JSON, or left open by it: the events before and behind are there all the same */
    LOST,           /* not JSON, and what is behind may be lost with it: refused with a message, or what was before is there */
};

struct json_case {
    const char *name;
    enum class class;
    const char *text;
    size_t size;
};

#define CASE(class, name, text) {name, class, text, sizeof text - 1}

static const struct json_case cases[] = {
    /* numbers */
    CASE(YES, "zero", "0"),
    CASE(YES, "minus zero", "-0"),
    CASE(YES, "integer", "123"),
    CASE(YES, "negative", "-1"),
    CASE(YES, "fraction", "123.456789"),
    CASE(YES, "exponent", "1e22"),
    CASE(YES, "exponent, capital", "1E22"),
    CASE(YES, "exponent with plus", "1e+2"),
    CASE(YES, "exponent with minus", "1E-2"),
    CASE(YES, "fraction and exponent", "123.456e78"),
    CASE(YES, "zero exponent", "0e1"),
    CASE(YES, "many digits", "0.0000000000000000000000000000000000000000000000000000000000000000000000000001"),
    CASE(YES, "near the largest double", "1.7976931348623157e308"),
    CASE(KEPT, "too large for a double", "1e400"),
    CASE(KEPT, "too small for a double", "-1e-400"),
    CASE(KEPT, "too large for 64 bits", "100000000000000000000"),
    CASE(KEPT, "a huge exponent", "0.4e00669999999999999999999999999999999999999999999999999999999999999999999999999"),
    CASE(KEPT, "leading zero", "012"),
    CASE(KEPT, "leading zero, negative", "-012"),
    CASE(KEPT, "leading plus", "+1"),
    CASE(KEPT, "two signs", "--1"),
    CASE(KEPT, "minus alone", "-"),
    CASE(KEPT, "no digits before the point", ".5"),
    CASE(KEPT, "no digits behind the point", "5."),
    CASE(KEPT, "no digits in the exponent", "1e"),
    CASE(KEPT, "sign alone in the exponent", "1e+"),
    CASE(KEPT, "two points", "1.2.3"),
    CASE(KEPT, "two exponents", "1e1e1"),
    CASE(KEPT, "hexadecimal", "0x42"),
    CASE(KEPT, "with a letter behind", "1a"),
    CASE(KEPT, "with a space in it", "1 000"),
    CASE(KEPT, "NaN", "NaN"),
    CASE(KEPT, "minus NaN", "-NaN"),
    CASE(KEPT, "Infinity", "Infinity"),
    CASE(KEPT, "minus Infinity", "-Infinity"),
    CASE(KEPT, "inf", "inf"),
    CASE(KEPT, "fullwidth digit", "\xef\xbc\x91"),

    /* words */
    CASE(YES, "true", "true"),
    CASE(YES, "false", "false"),
    CASE(YES, "null", "null"),
    CASE(KEPT, "True", "True"),
    CASE(KEPT, "half a word", "tru"),
    CASE(KEPT, "a word and more", "truex"),
    CASE(KEPT, "an unquoted name", "undefined"),

    /* strings */
    CASE(YES, "empty string", "\"\""),
    CASE(YES, "all escapes", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""),
    CASE(YES, "escaped code point", "\"\\u00e9\""),
    CASE(YES, "escaped pair", "\"\\ud83d\\ude00\""),
    CASE(YES, "escaped NUL", "\"a\\u0000b\""),
    CASE(YES, "escaped line separator", "\"\\u2028\\u2029\""),
    CASE(YES, "UTF-8 of two, three and four bytes", "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\""),
    CASE(YES, "the last code point", "\"\xf4\x8f\xbf\xbf\""),
    CASE(YES, "a noncharacter", "\"\xef\xbf\xbf\""),
    CASE(YES, "DEL", "\"\x7f\""),
    CASE(YES, "brackets and commas", "\"[1,{2}:3],\""),
    CASE(YES, "looks like an event", "\"{\\\"ph\\\": \\\"X\\\"}\""),
    CASE(YES, "a backslash, escaped, at the end", "\"\\\\\""),
    CASE(KEPT, "lone first surrogate, escaped", "\"\\ud800\""),
    CASE(KEPT, "lone second surrogate, escaped", "\"\\udc00\""),
    CASE(KEPT, "surrogates the wrong way round", "\"\\udc00\\ud800\""),
    CASE(KEPT, "first surrogate and a letter", "\"\\ud800a\""),
    CASE(KEPT, "incomplete escape", "\"\\u00A\""),
    CASE(KEPT, "escape with a letter", "\"\\u00G0\""),
    CASE(KEPT, "an escape that is none", "\"\\x41\""),
    CASE(KEPT, "line break", "\"a\nb\""),
    CASE(KEPT, "tab", "\"a\tb\""),
    CASE(KEPT, "control character", "\"a\x01" "b\""),
    CASE(KEPT, "NUL", "\"a\0b\""),
    CASE(KEPT, "byte that starts nothing", "\"\x80\""),
    CASE(KEPT, "byte that is never in UTF-8", "\"\xff\""),
    CASE(KEPT, "cut UTF-8", "\"\xe2\x82\""),
    CASE(KEPT, "overlong UTF-8", "\"\xc0\xaf\""),
    CASE(KEPT, "surrogate in UTF-8", "\"\xed\xa0\x80\""),
    CASE(KEPT, "beyond Unicode", "\"\xf4\xbf\xbf\xbf\""),
    CASE(KEPT, "Latin-1", "\"\xe9\""),
    CASE(KEPT, "single quotes", "\x27" "a\x27"),
    CASE(KEPT, "an unescaped quote", "\"a \"b\" c\""),
    CASE(LOST, "no end", "\"abc"),
    CASE(LOST, "ends in a backslash", "\"abc\\\""),
    CASE(LOST, "a quote alone", "\""),

    /* arrays */
    CASE(YES, "empty array", "[]"),
    CASE(YES, "array of all kinds", "[null, 1, \"1\", {}, [], true]"),
    CASE(YES, "spaces and line breaks", "[ 1\t,\r\n 2 ]"),
    CASE(YES, "nested", "[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]"),
    CASE(KEPT, "comma behind the last", "[1,]"),
    CASE(KEPT, "comma before the first", "[,1]"),
    CASE(KEPT, "two commas", "[1,,2]"),
    CASE(KEPT, "a comma alone", "[,]"),
    CASE(KEPT, "no comma", "[1 2]"),
    CASE(KEPT, "colon instead", "[1:2]"),
    CASE(KEPT, "a star", "[*]"),
    CASE(KEPT, "form feed as space", "[\f1]"),
    CASE(LOST, "not closed", "[1"),
    CASE(LOST, "closed twice", "[1]]"),
    CASE(LOST, "closed as an object", "[1}"),
    CASE(LOST, "open ones without end", "[[[[[[[[[["),

    /* objects */
    CASE(YES, "empty object", "{}"),
    CASE(YES, "members", "{\"a\": 1, \"b\": [2]}"),
    CASE(YES, "empty key", "{\"\": 0}"),
    CASE(YES, "the same key twice", "{\"a\": 1, \"a\": 2}"),
    CASE(YES, "a key with escapes", "{\"\\u0066\\\"o\\n\": 1}"),
    CASE(YES, "keys of a trace, inside", "{\"traceEvents\": [{\"ph\": \"X\"}], \"ph\": 1}"),
    CASE(KEPT, "comma behind the last member", "{\"a\": 1,}"),
    CASE(KEPT, "two commas between members", "{\"a\": 1,,\"b\": 2}"),
    CASE(KEPT, "no value", "{\"a\":}"),
    CASE(KEPT, "no colon", "{\"a\" 1}"),
    CASE(KEPT, "two colons", "{\"a\":: 1}"),
    CASE(KEPT, "a key without quotes", "{a: 1}"),
    CASE(KEPT, "a number as key", "{1: 1}"),
    CASE(KEPT, "a key alone", "{\"a\"}"),
    CASE(KEPT, "emoji as key", "{\xf0\x9f\x98\x80: 1}"),
    CASE(LOST, "object not closed", "{\"a\": 1"),
    CASE(LOST, "object closed as an array", "{\"a\": 1]"),
    CASE(LOST, "object closed twice", "{\"a\": 1}}"),

    /* around */
    CASE(KEPT, "nothing", ""),
    CASE(KEPT, "a comment", "1 /* one */"),
    CASE(KEPT, "a comment to the end of the line", "1 // one\n"),
    CASE(KEPT, "two values", "1 2"),
    CASE(KEPT, "a byte order mark", "\xef\xbb\xbf" "1"),
    CASE(KEPT, "a NUL behind", "1\0"),
    CASE(KEPT, "no-break space", "\xc2\xa0" "1"),
};

/* Where a value is put: the text before and behind it. ' stands for ", as in import_text.h. */
static const struct place { const char *name, *before, *behind; } places[] = {
    {"in args", "{'traceEvents': [" OP("first") ", {'ph': 'X', 'cat': 'cpu_op', 'name': 'middle', " COMMON ", 'args': {'v': ",
     "}}, " OP("last") "]}"},
    {"in an event", "{'traceEvents': [" OP("first") ", {'ph': 'X', 'cat': 'cpu_op', 'name': 'middle', " COMMON ", 'v': ",
     "}, " OP("last") "]}"},
    {"before the events", "{'v': ", ", 'traceEvents': [" OP("first") ", " OP("middle") ", " OP("last") "]}"},
    {"behind the events", "{'traceEvents': [" OP("first") ", " OP("middle") ", " OP("last") "], 'v': ", "}"},
};

static char *join(const struct place *p, const struct json_case *c, size_t *size)
{
    const size_t before = strlen(p->before), behind = strlen(p->behind);
    char *head = with_quotes(p->before, before), *tail = with_quotes(p->behind, behind), *text = malloc(before + c->size + behind);
    *size = before + c->size + behind;
    memcpy(text, head, before);
    memcpy(text + before, c->text, c->size);
    memcpy(text + before + c->size, tail, behind);
    free(head);
    free(tail);
    return text;
}

static bool has(const struct trace *t, const char *name)
{
    for (int64_t i = 0; i < t->n; i++)
        if (!strcmp(name_of(t, i), name))
            return t->events[i].start_ns == 1500 && t->events[i].duration_ns == 2250;
    return false;
}

/* What is wrong, or NULL. */
static const char *judge(const struct json_case *c, const struct place *p, const struct trace *t, const struct error *err)
{
    const bool behind = p == &places[3] || p == &places[2];
    if (!t)
        return c->class != LOST ? "refused" : err->text[0] ? NULL : "refused without a word";
    if (c->class == LOST)
        return p == &places[2] || has(t, "first") ? NULL : "what was before it is lost";
    if (!has(t, "first") || !has(t, "last"))
        return "an event beside it is lost";
    if (c->class == YES && (!has(t, "middle") || t->n != 3 || t->origin.events_skipped || t->origin.n_warnings || t->origin.truncated))
        return "JSON, and not taken as it is";
    return behind && !has(t, "middle") ? "an event beside it is lost" : NULL;
}

static void test_values(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t j = 0; j < sizeof places / sizeof *places; j++) {
            size_t size;
            struct trace *t = NULL;
            struct error err = {.text = ""};
            char *text = join(&places[j], &cases[i], &size);
            const enum status st = import_read_memory(&t, "text", text, size, &err);
            assert_true(st == (t ? OK : BAD_INPUT));
            const char *why = judge(&cases[i], &places[j], t, &err);
            if (why)
                print_error("%s, %s: %s (%s)\n", cases[i].name, places[j].name, why, err.text);
            wrong += why != NULL;
            trace_free(t);
            free(text);
        }
    assert_int_equal(wrong, 0);
}

/* As a document of its own no case is a trace: refused with a message, or an empty one is not made up. */
static void test_documents(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct trace *t = NULL;
        struct error err = {.text = ""};
        const enum status st = import_read_memory(&t, "text", cases[i].text, cases[i].size, &err);
        if (st != BAD_INPUT || t || !err.text[0])
            fail_msg("%s: status %d, '%s'", cases[i].name, st, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
