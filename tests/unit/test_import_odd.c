/* Text that is not quite JSON, as other programs write it: what can be read is read, the rest is counted. */
#include "unit/import_text.h"

/* The op between two others that must come through whatever the middle holds. */
static struct trace *read_middle(const char *middle)
{
    char text[4096];
    snprintf(text, sizeof text, TRACE("\n  " OP("first") ",\n  %s,\n  " OP("last") "\n"), middle);
    struct trace *t = read_text(text);
    assert_true(t->n >= 2);
    assert_string_equal(name_of(t, 0), "first");
    assert_string_equal(name_of(t, t->n - 1), "last");
    assert_false(t->origin.truncated);
    return t;
}

struct name_case {
    const char *written, *name;
};

static void test_names(void **state)
{
    (void)state;
    static const struct name_case cases[] = {
        {"a\\\"b\\\\c\\/d\\b\\f\\n\\r\\t", "a\"b\\c/d\b\f\n\r\t"},
        {"\\u00e9\\u20AC\\ud83d\\ude00", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\\ud83d x \\udc00", "\xef\xbf\xbd x \xef\xbf\xbd"},
        {"\\u12 \\uzzzz \\u", "\\u12 \\uzzzz \\u"},
        {"a\\u0000b", "ab"},
        {"C:\\windows\\data\\model.py", "C:\\windows\\data\\model.py"}, /* \w, \d and \m are no escapes */
        {"line\nbreak\tand\x01 control", "line\nbreak\tand\x01 control"},
        {"bad \xff\xc3 utf8 \xed\xa0\x80", "bad \xff\xc3 utf8 \xed\xa0\x80"},
        {"say \"hello\" twice", "say \"hello\" twice"},
        {"print(\"a\", \"b\")", "print(\"a\", \"b\")"},
        {"operator\"\" _x", "operator\"\" _x"},
        {"f(\"x\"), g", "f(\"x\"), g"},
        {"{\"a\": 1}", "{\"a\": 1}"},
        {"ends with a backslash\\", "ends with a backslash\\"},
        {"C:\\dir\\", "C:\\dir\\"},
        {"quote at the end\"", "quote at the end\""},
        {"{lambda()#3}::operator()() const", "{lambda()#3}::operator()() const"},
        {"brackets ]} in it", "brackets ]} in it"},
        {"", "(unnamed)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char middle[512];
        snprintf(middle, sizeof middle, "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"%s\", " COMMON "}",
                 cases[i].written);
        struct trace *t = read_middle(middle);
        if (t->n != 3 || strcmp(name_of(t, 1), cases[i].name) != 0)
            fail_msg("name '%s' became '%s' (%lld events)", cases[i].written, name_of(t, 1), (long long)t->n);
        assert_int_equal(t->origin.events_skipped, 0);
        assert_int_equal(t->events[1].start_ns, 1500);
        trace_free(t);
    }
}

static void test_odd_args(void **state)
{
    (void)state;
    static const char *const args[] = {
        "\"a\": NaN, \"b\": Infinity, \"c\": -Infinity, \"d\": nan, \"e\": -nan(ind), \"correlation\": 5",
        "\"stack\": \"File \"C:\\x\\y.py\", line 3\", \"correlation\": 5",
        "\"list\": [1, 2, [3, {\"x\": [\"]\", \"}\"]}],], \"correlation\": 5,",
        "\"text\": \"\\\"\", \"correlation\": 5",
        "\"Process Group Ranks\": \"[0, 1, ...]\" , \"correlation\" : 5 ",
        "\"correlation\": 4, \"correlation\": 5",
        "\"correlation\": \"5\"",
        "\"correlation\": 5.0",
        "\"x\": \"raw\ttab and\nline\", \"correlation\": 5",
        "\"odd \"key\": 1, \"correlation\": 5",
        "\"Concrete Inputs\": [\"\", \"say \"x\" now\", \"\"], \"correlation\": 5",
        "\"huge\": 123456789012345678901234567890, \"correlation\": 5",
        "\"none\": None, \"true\": True, \"correlation\": 5",
    };
    for (size_t i = 0; i < sizeof args / sizeof *args; i++) {
        char middle[512];
        const bool nan_call = strstr(args[i], "nan(ind)");
        snprintf(middle, sizeof middle, WITH_ARGS("cuda_runtime", "r", "%s"), args[i]);
        struct trace *t = read_middle(middle);
        if (nan_call) { /* no number in any dialect: the event is skipped, no more */
            assert_int_equal(t->origin.events_skipped, 1);
        } else if (t->n != 3 || t->events[1].link != 5 || t->origin.events_skipped) {
            fail_msg("args {%s}: %lld events, %lld skipped", args[i], (long long)t->n,
                     (long long)t->origin.events_skipped);
        }
        trace_free(t);
    }
}

static void test_numbers_for_strings(void **state)
{
    (void)state;
    struct trace *t = read_middle("{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": 123, \"ts\": \"5\", \"args\": "
                                  "\"none\", \"tid\": [1], \"pid\": null}");
    assert_int_equal(t->n, 3);
    assert_string_equal(name_of(t, 1), "123");
    assert_int_equal(t->events[1].start_ns, 5000);
    trace_free(t);
    t = read_middle("{\"ph\": 1, \"cat\": 2, \"name\": {\"a\": []}, \"ts\": {}}");
    assert_int_equal(t->n, 2);
    assert_int_equal(t->origin.other_events, 1);
    trace_free(t);
}

static void test_nul_bytes(void **state)
{
    (void)state;
    static const char text[] =
        "[{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"a\0b\", \"ts\": 1, \"args\": {\"Input Dims\": [[1\0, 2]], "
        "\"dtype\": \"\0\"}}, " OP("c") "]";
    struct trace *t = read_bytes(text, sizeof text - 1);
    assert_int_equal(t->n, 2);
    assert_string_equal(name_of(t, 0), "ab");
    assert_string_equal(text_at(t, args_of(t, 0)->dims), "[[1, 2]]");
    assert_string_equal(text_at(t, args_of(t, 0)->dtype), "");
    trace_free(t);
}

struct garbage_case {
    const char *middle;
    int skipped;
};

/* Text between events that is none: the next event is found. */
static void test_garbage(void **state)
{
    (void)state;
    static const struct garbage_case cases[] = {
        {",,,", 0},
        {"null", 1},
        {"%%%% garbage %%%%", 1},
        {"{\"ph\": \"X\", \"cat\" \"cpu_op\"}", 1},
        {"{\"ph\": \"X\", \"cat\": }", 1},
        {"{\"ph\": \"X\", \"name\": \"cut in the mid", 1},
        {"{\"ph\": \"X\", \"name\": \"cut\", \"args\": {\"x\": [1, 2", 1},
        {"{\"ph\": \"X\", \"name\": \"cut\", \"args\": {\"name\": ", 1},
        {"{{{{{{", 1},
        {"}}}}", 1},
        {"\"", 1},
        {"\xff\xfe\x01", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct trace *t = read_middle(cases[i].middle);
        if (t->n != 2 || t->origin.events_skipped < cases[i].skipped || t->origin.events_skipped > cases[i].skipped + 5)
            fail_msg("'%s': %lld events, %lld skipped", cases[i].middle, (long long)t->n,
                     (long long)t->origin.events_skipped);
        if (cases[i].skipped)
            assert_warned(t, "skipped, the first at byte");
        trace_free(t);
    }
}

static void test_position_of_the_first(void **state)
{
    (void)state;
    struct trace *t = read_text("[" OP("a") ", {\"ph\": oops!}, " OP("b") "]");
    char words[64];
    snprintf(words, sizeof words, "1 malformed event was skipped, the first at byte %zu", strlen("[" OP("a") ", "));
    assert_warned(t, words);
    trace_free(t);
}

/* What follows the events is still read when the last event makes no sense. */
static void test_garbage_before_metadata(void **state)
{
    (void)state;
    struct trace *t = read_text(
        "{\"traceEvents\": [" OP("a") ", {\"ph\": oops! \"x\": [[1]], \"y\": 2}], \"distributedInfo\": {\"rank\": 6}}");
    assert_int_equal(t->n, 1);
    assert_int_equal(t->origin.rank, 6);
    assert_false(t->origin.truncated);
    trace_free(t);
}

static void test_shapes_of_the_whole(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[" OP("a") "]",
        "\n\t [\n" OP("a") ",\n]\n",
        "\xef\xbb\xbf{\"traceEvents\": [" OP("a") "]}",
        "{\"traceEvents\":[" OP("a") "]}\n\n trailing text",
        "{\"traceEvents\" : [ " OP("a") " ] , }",
        "{\"a\": {\"b\": [[[\"]}\"]]]}, \"traceEvents\": [" OP("a") "], \"c\": \"\\\"\"}",
        "{\"traceEvents\": 5, \"traceEvents\": [" OP("a") "]}",
        "{\"bad\": \"C:\\\", \"traceEvents\": [" OP("a") "]}",
        "["
        "{\"args\": {}, \"ts\": 1, \"name\": \"a\", \"cat\": \"cpu_op\", \"ph\": \"X\"}"
        "]",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct trace *t = read_text(texts[i]);
        assert_int_equal(t->n, 1);
        assert_string_equal(name_of(t, 0), "a");
        if (t->origin.truncated)
            fail_msg("'%s' was taken for cut off", texts[i]);
        trace_free(t);
    }
}

static void test_not_a_trace(void **state)
{
    (void)state;
    assert_refused("", 0, "is empty");
    assert_refused("   \n", 4, "traceEvents");
    assert_refused("{}", 2, "JSON without events");
    assert_refused("{\"name\": \"x\", \"version\": 2}", 27, "'name', 'version'");
    assert_refused("{\"traceEvents\": []}", 19, "JSON without events");
    assert_refused("hello", 5, "no JSON");
    assert_refused("<html>", 6, "HTML");
    assert_refused("PK\3\4zipped", 10, "zip archive");
    assert_refused("\x28\xb5\x2f\xfd....", 8, "zstd");
    assert_refused("[{\"ph\": \"M\", \"name\": \"x\"}]", 26, "1 event, but no operator");
    assert_refused("[{\"ph\": !oops}, {\"ph\": !oops}]", 30, "no event that can be read");
    assert_refused("\x1f\x8b", 2, "the end is missing at its byte 2");
}

/* Brackets a million deep are walked without a stack. */
static void test_deep(void **state)
{
    (void)state;
    enum { DEEP = 1000000 };
    char *text = malloc(2 * DEEP + 1024), *p = text;
    p += sprintf(
        p, "[" OP("a") ", {\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"deep\", \"ts\": 1, \"args\": {\"x\": ");
    memset(p, '[', DEEP);
    memset(p + DEEP, ']', DEEP);
    p += 2 * DEEP;
    p += sprintf(p, "}}, " OP("b") "]");
    struct trace *t = read_text(text);
    assert_int_equal(t->n, 3);
    assert_int_equal(t->origin.events_skipped, 0);
    trace_free(t);
    free(text);
}

/* An event of more than 8 MiB is skipped; the memory for it stays bounded. */
static void test_too_long(void **state)
{
    (void)state;
    enum { LONG = 20 << 20 };
    char *text = malloc(LONG + 1024), *p = text;
    p += sprintf(p, "[" OP("a") ", {\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"");
    memset(p, 'x', LONG);
    p += LONG;
    sprintf(p, "\", \"ts\": 1}, " OP("b") "]");
    struct trace *t = read_text(text);
    assert_int_equal(t->n, 2);
    assert_string_equal(name_of(t, 1), "b");
    assert_int_equal(t->origin.events_skipped, 1);
    assert_false(t->origin.truncated);
    assert_warned(t, "longer than 8 MiB");
    trace_free(t);
    free(text);
}

/* Starts of events that never end cost time in proportion to the text, not to its square. */
static void test_unclosed(void **state)
{
    (void)state;
    static const char *const starts[] = {"{\"ph\":[", "{\"ph\":\"", "{\"ph\":{\"ph\":"};
    for (size_t s = 0; s < sizeof starts / sizeof *starts; s++) {
        enum { BYTES = 3 << 20 };
        char *text = malloc(BYTES + 1024), *p = text;
        p += sprintf(p, "[" OP("a") ",");
        while (p - text < BYTES)
            p += sprintf(p, "%s", starts[s]);
        struct trace *t = read_text(text);
        assert_int_equal(t->n, 1);
        assert_true(t->origin.truncated);
        trace_free(t);
        free(text);
    }
}

/* Names that are all different stop being kept at some point; those known by then still are. */
static void test_too_many_names(void **state)
{
    (void)state;
    enum { NAMES = 10000, LENGTH = 4000 };
    char *text = malloc((size_t)NAMES * (LENGTH + 100)), *p = text;
    p += sprintf(p, "[" OP("known"));
    for (int i = 0; i < NAMES; i++)
        p += sprintf(p, ",{\"ph\":\"X\",\"cat\":\"cpu_op\",\"ts\":1,\"name\":\"%0*d\"}", LENGTH, i);
    sprintf(p, "," OP("known") "]");
    struct trace *t = read_text(text);
    assert_int_equal(t->n, NAMES + 2);
    assert_string_equal(name_of(t, NAMES), "(other)");
    assert_string_equal(name_of(t, NAMES + 1), "known");
    assert_in_range(t->n_names, 8000, NAMES - 500);
    assert_warned(t, "too many different names");
    trace_free(t);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_odd_args),
        cmocka_unit_test(test_numbers_for_strings),
        cmocka_unit_test(test_nul_bytes),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_position_of_the_first),
        cmocka_unit_test(test_garbage_before_metadata),
        cmocka_unit_test(test_shapes_of_the_whole),
        cmocka_unit_test(test_not_a_trace),
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_unclosed),
        cmocka_unit_test(test_too_many_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
