/* The trace and its Chrome file: interning, growth, and a document that parses, nests and has every event. */
#include "support/check.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/fs.h"
#include "trace/trace.h"
#include "trace/trace_int.h"

static char root[64];

static int make_root(void **state)
{
    (void)state;
    strcpy(root, "/tmp/hone-trace-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    return fs_remove_tree(root, NULL) == OK ? 0 : -1;
}

/* Writes the trace, parses it with a parser that is not ours and returns the document; for json_decref. */
static json_t *written(const struct trace *t, const char *process)
{
    char path[96];
    struct error err;
    json_error_t where;
    snprintf(path, sizeof path, "%s/trace.json", root);
    assert_ok(trace_write_chrome(t, path, process, &err), err);
    json_t *doc = json_load_file(path, JSON_REJECT_DUPLICATES, &where);
    if (!doc)
        fail_msg("line %d: %s", where.line, where.text);
    return doc;
}

/* The i-th event with this ph; NULL when there are fewer. */
static json_t *nth(json_t *doc, const char *ph, int i)
{
    size_t at;
    json_t *e;
    json_array_foreach(json_object_get(doc, "traceEvents"), at, e)
        if (strcmp(json_string_value(json_object_get(e, "ph")), ph) == 0 && i-- == 0)
            return e;
    return NULL;
}

static int count(json_t *doc, const char *ph)
{
    int n = 0;
    while (nth(doc, ph, n))
        n++;
    return n;
}

static const char *text(json_t *e, const char *key) { return json_string_value(json_object_get(e, key)); }
static long long whole(json_t *e, const char *key) { return json_integer_value(json_object_get(e, key)); }
static long long ns(json_t *e, const char *key) { return llround(json_real_value(json_object_get(e, key)) * 1e3); }

static void test_names(void **state)
{
    (void)state;
    struct trace *t = trace_new();
    char name[32];
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "layer %d", i);
        assert_int_equal(trace_name(t, name), i);
    }
    for (int i = 4999; i >= 0; i--) {
        snprintf(name, sizeof name, "layer %d", i);
        assert_int_equal(trace_name(t, name), i);
        assert_string_equal(t->names[i], name);
    }
    assert_int_equal(trace_name(t, ""), 5000);
    assert_int_equal(trace_name(t, ""), 5000);
    assert_int_equal(t->n_names, 5001);
    trace_free(t);
    trace_free(NULL);
}

static void test_grows(void **state)
{
    (void)state;
    enum { N = 300000 };
    struct trace *t = trace_new();
    const int32_t name = trace_name(t, "op");
    for (int i = 0; i < N; i++)
        trace_add(t, EVENT_OP, TRACK_THREADS, name, i / 100, i % 100, t->origin_ns + 10 * i, t->origin_ns + 10 * i + 7);
    assert_int_equal(t->n, N);
    for (int i = 0; i < N; i++)
        if (t->events[i].start_ns != 10 * i || t->events[i].duration_ns != 7 || t->events[i].step != i / 100 ||
            t->events[i].op != i % 100)
            fail_msg("event %d is lost", i);
    trace_free(t);
}

static void test_reserve(void **state)
{
    (void)state;
    struct trace *t = trace_new();
    const int32_t name = trace_name(t, "op");
    trace_add(t, EVENT_OP, 1, name, 0, 0, 0, 1);
    trace_reserve(t, 1000);
    const struct event *before = t->events;
    for (int i = 0; i < 1000; i++)
        trace_add(t, EVENT_OP, 1, name, 0, 0, i, i + 1);
    assert_ptr_equal(t->events, before);        /* reserved room is not moved within a step */
    assert_int_equal(t->n, 1001);
    trace_reserve(t, 0);
    trace_add(t, EVENT_OP, 1, name, 0, 0, 5, 4);
    assert_int_equal(t->events[1001].duration_ns, 0);
    trace_free(t);
}

static void test_empty(void **state)
{
    (void)state;
    struct trace *t = trace_new();
    json_t *doc = written(t, "nothing");
    assert_int_equal(count(doc, "M"), 1);
    assert_int_equal(json_array_size(json_object_get(doc, "traceEvents")), 1);
    assert_string_equal(text(json_object_get(nth(doc, "M", 0), "args"), "name"), "nothing");
    json_decref(doc);
    trace_free(t);
}

/* Steps with phases with ops on the host and two threads, recorded out of order: inner events first, as a recorder
 * that writes an event at its end does. */
static struct trace *two_steps(void)
{
    struct trace *t = trace_new();
    const int32_t step = trace_name(t, "step"), forward = trace_name(t, "forward"), op = trace_name(t, "matmul");
    const int32_t batch = trace_name(t, "batch"), wait = trace_name(t, "wait"), memory = trace_name(t, "memory");
    for (int i = 0; i < 2; i++) {
        const int64_t at = t->origin_ns + 1000001LL * i;
        for (int k = 0; k < 3; k++)
            for (int thread = 0; thread < 2; thread++)
                trace_add(t, EVENT_OP, TRACK_THREADS + thread, op, i, k, at + 1000 * k, at + 1000 * k + 999);
        trace_add(t, EVENT_WAIT, TRACK_HOST, wait, i, -1, at + 400, at + 500);
        trace_add(t, EVENT_PHASE, TRACK_HOST, forward, i, -1, at, at + 9000);
        trace_add(t, EVENT_STEP, TRACK_HOST, step, i, -1, at, at + 9000);       /* same times: kind decides */
        trace_add(t, EVENT_LOADER, TRACK_LOADER + 3, batch, -1, -1, at + 123456, at + 123457);
        trace_counter(t, memory, i, at + 77, 1.5e9 + i);
    }
    return t;
}

/* Complete events of a track are in order and either follow or lie in each other. */
static void assert_nests(json_t *doc, int tid)
{
    long long ends[16], last = 0;
    int depth = 0, n = 0;
    for (json_t *e; (e = nth(doc, "X", n)); n++) {
        if (whole(e, "tid") != tid)
            continue;
        const long long start = ns(e, "ts"), end = start + ns(e, "dur");
        assert_true(start >= last && ns(e, "dur") >= 0);
        while (depth && ends[depth - 1] <= start)
            depth--;
        assert_true(depth == 0 || end <= ends[depth - 1]);
        assert_in_range(depth, 0, 15);
        ends[depth++] = end;
        last = start;
    }
}

static void test_events(void **state)
{
    (void)state;
    struct trace *t = two_steps();
    json_t *doc = written(t, "hone");
    assert_int_equal(count(doc, "X"), 20);
    assert_int_equal(count(doc, "X") + count(doc, "C"), t->n);
    for (int tid = 0; tid < 3; tid++)
        assert_nests(doc, tid);
    assert_nests(doc, TRACK_LOADER + 3);

    json_t *step = nth(doc, "X", 0), *phase = nth(doc, "X", 1), *op = nth(doc, "X", 2);
    assert_string_equal(text(step, "name"), "step 0");
    assert_string_equal(text(step, "cat"), "step");
    assert_string_equal(text(phase, "name"), "forward");
    assert_int_equal(ns(step, "ts"), 0);
    assert_int_equal(ns(step, "dur"), 9000);
    assert_string_equal(text(op, "name"), "matmul");
    assert_int_equal(ns(op, "dur"), 999);
    assert_int_equal(whole(json_object_get(op, "args"), "step"), 0);
    assert_int_equal(whole(json_object_get(op, "args"), "op"), 0);
    assert_null(json_object_get(json_object_get(phase, "args"), "op"));
    json_t *second = nth(doc, "X", 10);
    assert_string_equal(text(second, "name"), "step 1");
    assert_int_equal(ns(second, "ts"), 1000001);
    json_decref(doc);
    trace_free(t);
}

static void test_tracks_and_counters(void **state)
{
    (void)state;
    struct trace *t = two_steps();
    json_t *doc = written(t, "hone");
    const char *const expected[] = {"hone", "host", "thread 0", "thread 1", "loader worker 3"};
    const int tids[] = {0, 0, 1, 2, TRACK_LOADER + 3};
    int named = 0;
    for (int i = 0; i < count(doc, "M"); i++) {
        json_t *e = nth(doc, "M", i);
        if (strcmp(text(e, "name"), "thread_sort_index") == 0)
            continue;
        assert_in_range(named, 0, 4);
        assert_string_equal(text(json_object_get(e, "args"), "name"), expected[named]);
        assert_int_equal(whole(e, "tid"), tids[named++]);
    }
    assert_int_equal(named, 5);
    assert_string_equal(text(nth(doc, "C", 1), "name"), "memory");
    assert_int_equal(ns(nth(doc, "C", 1), "ts"), 1000078);
    assert_true(json_number_value(json_object_get(json_object_get(nth(doc, "C", 1), "args"), "value")) == 1.5e9 + 1);
    json_decref(doc);
    trace_free(t);
}

/* Threads of a large machine are no workers of the loader. */
static void test_many_threads(void **state)
{
    (void)state;
    struct trace *t = trace_new();
    const int32_t op = trace_name(t, "op");
    const int tracks[] = {TRACK_THREADS + 998, TRACK_THREADS + 999, TRACK_THREADS + 4095, TRACK_LOADER, TRACK_LOADER + 255};
    const char *const expected[] = {"thread 998", "thread 999", "thread 4095", "loader worker 0", "loader worker 255"};
    for (int i = 0; i < 5; i++)
        trace_add(t, EVENT_OP, tracks[i], op, -1, -1, t->origin_ns + i, t->origin_ns + i + 1);
    json_t *doc = written(t, "hone");
    int named = -1;                     /* the first name is the process's */
    for (int i = 0; i < count(doc, "M"); i++) {
        json_t *e = nth(doc, "M", i);
        if (strcmp(text(e, "name"), "thread_sort_index") == 0)
            continue;
        if (named >= 0) {
            assert_in_range(named, 0, 4);
            assert_string_equal(text(json_object_get(e, "args"), "name"), expected[named]);
            assert_int_equal(whole(e, "tid"), tracks[named]);
        }
        named++;
    }
    assert_int_equal(named, 5);
    json_decref(doc);
    trace_free(t);
}

/* What was recorded before the trace began moves time 0, and distances stay. */
static void test_no_negative_times(void **state)
{
    (void)state;
    struct trace *t = trace_new();
    const int32_t early = trace_name(t, "early"), late = trace_name(t, "late");
    trace_add(t, EVENT_OP, 1, late, -1, -1, t->origin_ns + 50, t->origin_ns + 60);
    trace_add(t, EVENT_OP, 1, early, -1, -1, t->origin_ns - 1000000, t->origin_ns - 999000);
    json_t *doc = written(t, "");
    assert_int_equal(ns(nth(doc, "X", 0), "ts"), 0);
    assert_int_equal(ns(nth(doc, "X", 1), "ts"), 1000050);
    assert_string_equal(text(nth(doc, "X", 0), "name"), "early");
    assert_int_equal(json_object_size(json_object_get(nth(doc, "X", 0), "args")), 0);
    json_decref(doc);
    trace_free(t);
}

static void test_hostile_names(void **state)
{
    (void)state;
    static const struct { const char *name, *read; } cases[] = {
        {"a\"b\\c/d", "a\"b\\c/d"},
        {"</script><script>alert(1)</script>", "</script><script>alert(1)</script>"},
        {"tab\tnew\nline\x01\x1f\x7f", "tab\tnew\nline\x01\x1f\x7f"},
        {"%s%n%d", "%s%n%d"},
        {"\xC3\xB6\xC3\x9F \xE2\x82\xAC \xF0\x9F\x94\xA5", "\xC3\xB6\xC3\x9F \xE2\x82\xAC \xF0\x9F\x94\xA5"},
        {"bad \xFF\xFE.", "bad \xEF\xBF\xBD\xEF\xBF\xBD."},
        {"cut \xE2\x82", "cut \xEF\xBF\xBD\xEF\xBF\xBD"},
        {"overlong \xC0\xAF", "overlong \xEF\xBF\xBD\xEF\xBF\xBD"},
        {"surrogate \xED\xA0\x80!\xC3\xA4", "surrogate \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD!\xC3\xA4"},
        {"", ""},
    };
    enum { N = sizeof cases / sizeof cases[0] };
    struct trace *t = trace_new();
    for (int i = 0; i < N; i++)
        trace_add(t, EVENT_OP, 1, trace_name(t, cases[i].name), -1, -1, t->origin_ns + i, t->origin_ns + i + 1);
    json_t *doc = written(t, "p\"\xFF");
    for (int i = 0; i < N; i++)
        assert_string_equal(text(nth(doc, "X", i), "name"), cases[i].read);
    assert_string_equal(text(json_object_get(nth(doc, "M", 0), "args"), "name"), "p\"\xEF\xBF\xBD");
    json_decref(doc);
    trace_free(t);
}

static void test_values_that_are_not_finite(void **state)
{
    (void)state;
    struct trace *t = trace_new();
    const double values[] = {NAN, INFINITY, -INFINITY, -0.1, 5e-324};
    for (int i = 0; i < 5; i++)
        trace_counter(t, trace_name(t, "x"), 0, t->origin_ns + i, values[i]);
    json_t *doc = written(t, "hone");
    assert_int_equal(count(doc, "C"), 5);
    for (int i = 0; i < 5; i++) {
        const json_t *value = json_object_get(json_object_get(nth(doc, "C", i), "args"), "value");
        assert_true(isfinite(values[i]) ? json_number_value(value) == values[i] : json_is_null(value));
    }
    json_decref(doc);
    trace_free(t);
}

static void test_write_errors(void **state)
{
    (void)state;
    struct trace *t = two_steps();
    struct error err;
    char path[96];
    assert_int_equal(trace_write_chrome(t, "/dev/full", "hone", &err), CANNOT);
    assert_says(&err, "/dev/full", "No space left", NULL);
    assert_true(fs_exists("/dev/full"));
    snprintf(path, sizeof path, "%s/no/such/folder", root);
    assert_int_equal(trace_write_chrome(t, path, "hone", &err), BAD_INPUT);
    assert_says(&err, "cannot create", "no/such/folder", NULL);

    const struct rlimit small = {100, RLIM_INFINITY};
    struct rlimit before;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    setrlimit(RLIMIT_FSIZE, &small);
    snprintf(path, sizeof path, "%s/short.json", root);
    const enum status st = trace_write_chrome(t, path, "hone", &err);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(st, CANNOT);
    assert_says(&err, "short.json", NULL);
    assert_false(fs_exists(path));              /* no half file stays */
    trace_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_grows),
        cmocka_unit_test(test_reserve),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_tracks_and_counters),
        cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_no_negative_times),
        cmocka_unit_test(test_hostile_names),
        cmocka_unit_test(test_values_that_are_not_finite),
        cmocka_unit_test(test_write_errors),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
