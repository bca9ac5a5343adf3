/* Remembered choices: kept in the process and in a file, merged with what others wrote, and ignored where they are damaged. */
#include "support/own_cache.h"

#include <jansson.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char *const variants[] = {"rule", "own", "blas", NULL}, *const fewer[] = {"rule", "blas", NULL};

static struct choice made(const char *key, int variant, double us)
{
    return (struct choice){.key = key, .variants = variants, .variant = variant, .us = us, .first_us = variant ? 2 * us : us};
}

static void remember(struct choice c)
{
    struct error err;
    assert_ok(choices_remember(&c, 1, &err), err);
}

/* The name of what is remembered; "" for nothing. */
static const char *recalled(const char *key)
{
    struct choice c = {.key = key, .variants = variants};
    const int missing = choices_recall(&c, 1);
    assert_int_equal(missing, c.variant < 0);
    return c.variant < 0 ? "" : variants[c.variant];
}

static void write_file(const char *text)
{
    char folder[96];
    snprintf(folder, sizeof folder, "%s/hone", own_cache);
    assert_int_equal(fs_make_dirs(folder, NULL), OK);
    assert_int_equal(fs_write_synced(choices_path(), text, strlen(text), NULL), OK);
}

static void test_remember_and_recall(void **state)
{
    (void)state;
    struct choice list[] = {made("a \xC3\xA9 \"q\"", 1, 1.0 / 3), made("b", 0, 5), made("none", 0, 0), made("c", 2, 1e-3)};
    remember(list[0]);
    remember(list[1]);
    remember(list[3]);
    for (int knows = 1; knows >= 0; knows--) {              /* then from the file alone */
        struct choice back[4];
        for (int i = 0; i < 4; i++)
            back[i] = (struct choice){.key = list[i].key, .variants = variants, .variant = 77};
        assert_int_equal(choices_recall(back, 4), 1);
        assert_int_equal(back[2].variant, -1);
        for (int i = 0; i < 4; i++)
            if (i != 2)
                assert_true(back[i].variant == list[i].variant && back[i].us == list[i].us && back[i].first_us == list[i].first_us);
        choices_forget();
    }
}

/* The process goes on with what it has used, whatever happens to the file. */
static void test_process_does_not_change_its_mind(void **state)
{
    (void)state;
    remember(made("a", 1, 3));
    assert_int_equal(unlink(choices_path()), 0);
    assert_string_equal(recalled("a"), "own");
    write_file("{\"version\":1,\"choices\":{\"a\":{\"variant\":\"blas\",\"us\":1,\"first_us\":2}}}");
    assert_string_equal(recalled("a"), "own");
    struct choice again = made("a", 2, 1);
    assert_int_equal(choices_remember(&again, 1, NULL), OK);
    assert_int_equal(again.variant, 1);
    choices_forget();
    assert_string_equal(recalled("a"), "own");
}

/* The first to remember a choice has made it. */
/* What was done without a choice once is done so to the end, though the file can be read by now. */
static void test_settled_is_settled(void **state)
{
    (void)state;
    const struct choice list[] = {{.key = "settled", .variants = variants, .variant = -1}, made("known", 2, 1)};
    remember(list[1]);
    choices_settle(list, 2);
    write_file("{\"version\": 1, \"choices\": {\"settled\": {\"variant\": \"blas\", \"us\": 1, \"first_us\": 3}}}");
    assert_string_equal(recalled("settled"), "rule");
    assert_string_equal(recalled("known"), "blas");
    choices_forget();                                       /* as the next process */
    assert_string_equal(recalled("settled"), "blas");
}

static void test_another_process_was_first(void **state)
{
    (void)state;
    assert_string_equal(recalled("a"), "");
    write_file("{\"version\":1,\"choices\":{\"a\":{\"variant\":\"blas\",\"us\":1,\"first_us\":2},"
               "\"other\":{\"variant\":\"own\",\"us\":1,\"first_us\":2}}}");
    struct choice list[] = {made("a", 1, 7), made("b", 1, 9)};
    assert_int_equal(choices_remember(list, 2, NULL), OK);
    assert_int_equal(list[0].variant, 2);
    assert_true(list[0].us == 1 && list[1].us == 9);
    choices_forget();
    assert_string_equal(recalled("a"), "blas");
    assert_string_equal(recalled("b"), "own");
    assert_string_equal(recalled("other"), "own");
}

/* Nobody's choice is lost when many write at once. */
static void test_many_processes(void **state)
{
    (void)state;
    enum { PROCESSES = 8, EACH = 5 };
    char key[32];
    for (int p = 0; p < PROCESSES; p++)
        if (fork() == 0) {
            int bad = 0;
            for (int i = 0; i < EACH; i++) {
                snprintf(key, sizeof key, "%d of %d", i, p);
                struct choice c = made(key, 1, 1);
                bad += choices_remember(&c, 1, NULL) != OK;
            }
            _exit(bad);
        }
    for (int p = 0, status; p < PROCESSES; p++)
        assert_true(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (int p = 0; p < PROCESSES; p++)
        for (int i = 0; i < EACH; i++) {
            snprintf(key, sizeof key, "%d of %d", i, p);
            assert_string_equal(recalled(key), "own");
        }
}

static void test_damaged_is_absent(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", "{", "[]", "null", "\xFF\xFE", "{\"version\":1}", "{\"version\":1,\"choices\":[]}",
        "{\"version\":1,\"choices\":{\"a\":null}}", "{\"version\":2,\"choices\":{\"a\":{\"variant\":\"own\",\"us\":1,\"first_us\":2}}}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        choices_forget();
        write_file(bad[i]);
        assert_string_equal(recalled("a"), "");
        remember(made("a", 2, 1));
        choices_forget();
        assert_string_equal(recalled("a"), "blas");
    }
}

/* One field changed at a time in a file that is otherwise right. */
static void test_hostile_fields(void **state)
{
    (void)state;
    static const char good[] = "{\"version\":1,\"choices\":{\"a\":{\"variant\":\"own\",\"us\":3.5,\"first_us\":4}}}";
    static const char *const changes[][2] = {
        {"\"own\"", "\"wide\""}, {"\"own\"", "\"\""}, {"\"own\"", "1"}, {"\"own\"", "null"}, {"3.5", "0"}, {"3.5", "-3.5"},
        {"3.5", "5"}, {"3.5", "\"3.5\""}, {":4}", ":0}"}, {":4}", ":1e999}"}, {":4}", ":null}"}, {"\"a\"", "\"b\""},
        {"\"us\":3.5", "\"us\":3.5,\"us\":3.5"}, {"\"version\":1", "\"version\":\"1\""},
    };
    struct choice c = {.key = "a", .variants = variants, .variant = -1};
    choices_parse(&c, 1, good, sizeof good - 1);
    assert_true(c.variant == 1 && c.us == 3.5 && c.first_us == 4);
    c = (struct choice){.key = "a", .variants = fewer, .variant = -1};
    choices_parse(&c, 1, good, sizeof good - 1);            /* of a kernel that has no such variant any more */
    assert_int_equal(c.variant, -1);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        char text[256];
        const char *found = strstr(good, changes[i][0]);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(found - good), good, changes[i][1], found + strlen(changes[i][0]));
        c = (struct choice){.key = "a", .variants = variants, .variant = -1};
        choices_parse(&c, 1, text, strlen(text));
        if (c.variant != -1)
            fail_msg("believed: %s", text);
    }
}

static void test_refuses_nonsense(void **state)
{
    (void)state;
    struct choice bad[] = {made("a", 1, 0), made("a", 1, NAN), made("a", 1, INFINITY), made("a", 1, -1), made("\xFF", 1, 1),
                           made("", 1, 1)};
    struct error err;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(choices_remember(&bad[i], 1, &err), BAD_INPUT);
        assert_says(&err, "not remembered", NULL);
        assert_string_equal(recalled("a"), "");
    }
    assert_false(fs_exists(choices_path()));
}

static void test_cannot_write(void **state)
{
    (void)state;
    struct choice c = made("a", 1, 1);
    struct error err;
    assert_int_equal(choices_remember(NULL, 0, &err), OK);
    char file[96];
    snprintf(file, sizeof file, "%s/file", own_cache);
    assert_int_equal(fs_write_synced(file, "x", 1, NULL), OK);          /* where the folder should be */
    setenv("XDG_CACHE_HOME", file, 1);
    assert_int_equal(choices_remember(NULL, 0, &err), BAD_INPUT);
    assert_int_equal(choices_remember(&c, 1, &err), BAD_INPUT);
    assert_string_equal(recalled("a"), "");
    unsetenv("XDG_CACHE_HOME");
    assert_int_equal(choices_remember(&c, 1, &err), BAD_INPUT);
    assert_says(&err, "HOME", "XDG_CACHE_HOME", NULL);
    assert_string_equal(recalled("a"), "");
}

/* ---- a full file ---- */

enum { MANY = 2000, KEPT = 1000, AT_ONCE = 100 };
static char keys[MANY][400];

/* Adds keys[from .. to) to the file, and forgets that it did. */
static void add_keys(int from, int to)
{
    struct choice list[AT_ONCE];
    for (int i = from; i < to; i++) {
        memset(keys[i], 'k', sizeof keys[i] - 1);
        snprintf(keys[i], sizeof keys[i], "%d", i);
        keys[i][strlen(keys[i])] = ' ';
        list[i % AT_ONCE] = made(keys[i], 1, 1);
        if (i % AT_ONCE == AT_ONCE - 1)
            assert_int_equal(choices_remember(list, AT_ONCE, NULL), OK);
    }
    choices_forget();
}

/* Whether the file is another one after a process that has just begun recalls this. */
static bool recall_rewrites(const char *key)
{
    struct stat before, after;
    choices_forget();
    assert_int_equal(stat(choices_path(), &before), 0);
    assert_string_equal(recalled(key), "own");
    assert_int_equal(stat(choices_path(), &after), 0);
    choices_forget();
    return before.st_ino != after.st_ino || before.st_mtim.tv_sec != after.st_mtim.tv_sec ||
           before.st_mtim.tv_nsec != after.st_mtim.tv_nsec;
}

/* The file does not grow without end: the oldest fall out. */
static void test_bounded(void **state)
{
    (void)state;
    add_keys(0, KEPT + AT_ONCE);
    assert_string_equal(recalled(keys[KEPT + AT_ONCE - 1]), "own");
    assert_string_equal(recalled(keys[AT_ONCE]), "own");
    assert_string_equal(recalled(keys[0]), "");
}

/* What is recalled now and then outlives what is not, and the file is written for that where it matters, not at every recall. */
static void test_use_keeps(void **state)
{
    (void)state;
    add_keys(0, KEPT);
    assert_false(recall_rewrites(keys[KEPT - 1]));
    assert_false(recall_rewrites(keys[KEPT / 2 + AT_ONCE - 1]));
    assert_true(recall_rewrites(keys[KEPT / 2 - AT_ONCE]));             /* the first of the older half */
    assert_true(recall_rewrites(keys[3]));
    assert_false(recall_rewrites(keys[3]));
    add_keys(KEPT, KEPT + KEPT / 2);
    assert_true(recall_rewrites(keys[3]));
    add_keys(KEPT + KEPT / 2, MANY);
    assert_string_equal(recalled(keys[3]), "own");
    assert_string_equal(recalled(keys[2]), "");
    assert_string_equal(recalled(keys[KEPT + AT_ONCE - 1]), "");        /* newer, and not used */
    assert_string_equal(recalled(keys[KEPT + AT_ONCE - 2]), "own");
}

/* Two builds in turns, each of which knows 100 choices, while 30 others come and go: both keep theirs, and the file is no larger than ever. */
static void test_builds_in_turns(void **state)
{
    (void)state;
    enum { BUILDS = 30, EACH = AT_ONCE };
    char names[EACH][48];
    struct choice list[EACH];
    for (int build = 0; build < BUILDS; build++)
        for (int turn = 0; turn < 3; turn++) {
            for (int i = 0; i < EACH; i++) {
                snprintf(names[i], sizeof names[i], "kernels %d: %d", turn < 2 ? turn : 100 + build, i);
                list[i] = made(names[i], 1, 1);
            }
            assert_int_equal(choices_recall(list, EACH), build == 0 || turn == 2 ? EACH : 0);
            if (build == 0 || turn == 2)
                for (int i = 0; i < EACH; i++)
                    list[i] = made(names[i], 1, 1);
            if (build == 0 || turn == 2)
                assert_int_equal(choices_remember(list, EACH, NULL), OK);
            choices_forget();
        }
    json_t *root = json_load_file(choices_path(), 0, NULL);
    assert_int_equal(json_object_size(json_object_get(root, "choices")), KEPT);
    json_decref(root);
}

/* Where the file is written anyway, all that this process has used comes to the front. */
static void test_use_is_noted_with_the_next_choice(void **state)
{
    (void)state;
    add_keys(0, AT_ONCE);
    assert_string_equal(recalled(keys[5]), "own");
    remember(made("new", 1, 1));
    choices_forget();
    json_t *root = json_load_file(choices_path(), 0, NULL), *all = json_object_get(root, "choices");
    void *at = json_object_iter(all);
    assert_string_equal(json_object_iter_key(at), "new");
    assert_string_equal(json_object_iter_key(at = json_object_iter_next(all, at)), keys[5]);
    assert_string_equal(json_object_iter_key(json_object_iter_next(all, at)), keys[0]);
    assert_int_equal(json_object_size(all), AT_ONCE + 1);
    json_decref(root);
}

/* A recall that notes use does not undo what others write meanwhile. */
static void test_recall_among_writers(void **state)
{
    (void)state;
    enum { PROCESSES = 6, EACH = 4, OLD = 6 * AT_ONCE };
    char key[32];
    add_keys(0, OLD);
    for (int p = 0; p < PROCESSES; p++)
        if (fork() == 0) {
            int bad = 0;
            for (int i = 0; i < EACH; i++) {
                snprintf(key, sizeof key, "%d of %d", i, p);
                struct choice c = made(p % 2 ? key : keys[p * EACH + i], 2, 1);
                bad += p % 2 ? choices_remember(&c, 1, NULL) != OK : choices_recall(&c, 1);
                choices_forget();
            }
            _exit(bad);
        }
    for (int p = 0, status; p < PROCESSES; p++)
        assert_true(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    struct choice old[OLD];
    for (int i = 0; i < OLD; i++)
        old[i] = made(keys[i], 0, 1);
    assert_int_equal(choices_recall(old, OLD), 0);
    for (int p = 1; p < PROCESSES; p += 2)
        for (int i = 0; i < EACH; i++) {
            snprintf(key, sizeof key, "%d of %d", i, p);
            assert_string_equal(recalled(key), "blas");
        }
}

/* A file that cannot be written is read all the same. */
static void test_use_cannot_be_noted(void **state)
{
    (void)state;
    char in_the_way[96];
    add_keys(0, KEPT);
    snprintf(in_the_way, sizeof in_the_way, "%s/hone/.choices.json.new", own_cache);
    assert_int_equal(fs_make_dirs(in_the_way, NULL), OK);
    assert_false(recall_rewrites(keys[0]));
    assert_int_equal(rmdir(in_the_way), 0);
    assert_true(recall_rewrites(keys[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_WITH_CACHE(test_remember_and_recall), TEST_WITH_CACHE(test_process_does_not_change_its_mind),
        TEST_WITH_CACHE(test_settled_is_settled), TEST_WITH_CACHE(test_another_process_was_first), TEST_WITH_CACHE(test_many_processes),
        TEST_WITH_CACHE(test_damaged_is_absent), TEST_WITH_CACHE(test_hostile_fields), TEST_WITH_CACHE(test_refuses_nonsense),
        TEST_WITH_CACHE(test_cannot_write), TEST_WITH_CACHE(test_bounded), TEST_WITH_CACHE(test_use_keeps), TEST_WITH_CACHE(test_builds_in_turns),
        TEST_WITH_CACHE(test_use_is_noted_with_the_next_choice), TEST_WITH_CACHE(test_recall_among_writers),
        TEST_WITH_CACHE(test_use_cannot_be_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
