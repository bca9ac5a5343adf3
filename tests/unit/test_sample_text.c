/* The text of a sample: stop texts and characters that go over the borders of tokens. */
#include "support/check.h"

#include "train/sample_text.h"

static const struct stop_texts no_stops = {NULL, 0};

/* Pieces one after the other, up to a stop; what is told on the way is put together in `told`. */
static bool grow(const char *const *pieces, const struct stop_texts *stops, char told[64], char ends[64])
{
    struct sample_text t = {0};
    size_t done = 0, calls = 0;
    bool stopped = false;
    *told = *ends = '\0';
    for (; *pieces && !stopped; pieces++) {
        stopped = sample_text_add(&t, *pieces, strlen(*pieces), stops);
        const size_t sure = stopped ? t.length : sample_text_sure(&t, stops);
        assert_true(sure >= done || stopped);
        assert_true(done <= t.length);                      /* nothing was told that does not count */
        if (sure > done)
            strncat(told, t.bytes + done, sure - done);
        done = sure > done ? sure : done;
        ends[calls++] = (char)('0' + done);
        ends[calls] = '\0';
    }
    if (!stopped)
        strncat(told, t.bytes + done, t.length - done);
    sample_text_release(&t);
    return stopped;
}

static void check(const char *const *pieces, const char *const *stops, int n, const char *text, const char *ends, bool stops_there)
{
    char told[64], came[64];
    const bool stopped = grow(pieces, &(struct stop_texts){stops, n}, told, came);
    assert_string_equal(told, text);
    assert_string_equal(came, ends);
    assert_int_equal(stopped, stops_there);
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_stops(void **state)
{
    (void)state;
    check(LIST("ab", "cd", "ef"), LIST("x"), 1, "abcdef", "246", false);
    check(LIST("ab", "cd", "ef"), LIST("cd"), 1, "ab", "22", true);
    check(LIST("ab", "cd", "ef"), LIST("bcde"), 1, "a", "111", true);            /* over three tokens */
    check(LIST("ab", "cx", "ef"), LIST("bcd"), 1, "abcxef", "146", false);       /* a beginning that was none is told later */
    check(LIST("aab", "x"), LIST("aabaab"), 1, "aabx", "04", false);
    check(LIST("aabaa", "b", "aab"), LIST("aabaaab"), 1, "aabaabaab", "036", false);
    check(LIST("xaa", "ab"), LIST("aab"), 1, "xa", "12", true);
    check(LIST("one two", " three"), LIST("two", "ne"), 2, "o", "1", true);      /* the first in the text */
    check(LIST("one", "two"), LIST("etw", "wo"), 2, "on", "22", true);
    check(LIST("stop"), LIST("stop"), 1, "", "0", true);
    check(LIST("a\nb"), LIST("\n"), 1, "a", "1", true);
}

static void test_characters(void **state)
{
    (void)state;
    check(LIST("gr\303", "\266", "\303\237er"), NULL, 0, "gr\303\266\303\237er", "248", false);
    check(LIST("\360", "\237", "\230", "\200"), NULL, 0, "\360\237\230\200", "0004", false);
    check(LIST("\342\202", "\254x"), NULL, 0, "\342\202\254x", "04", false);
    check(LIST("a\303", "b"), NULL, 0, "a\303" "b", "13", false);                /* no character after all */
    check(LIST("a\200", "\200\200\200\200"), NULL, 0, "a\200\200\200\200\200", "26", false);
    check(LIST("a\303"), NULL, 0, "a\303", "1", false);                          /* the end of it */
    check(LIST("x\303", "\266y"), LIST("\303\266"), 1, "x", "11", true);
}

static void test_any_bytes(void **state)
{
    (void)state;
    struct sample_text t = {0};
    assert_false(sample_text_add(&t, "a\0b", 3, &no_stops));
    assert_true(t.size == 3 && t.length == 3 && sample_text_sure(&t, &no_stops) == 3 && t.bytes[3] == '\0');
    assert_true(sample_text_add(&t, "cd", 2, &(struct stop_texts){LIST("bc"), 1}));
    assert_true(t.size == 5 && t.length == 2);
    sample_text_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_characters),
        cmocka_unit_test(test_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
