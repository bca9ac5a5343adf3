/* Folders that are filled as a whole. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fresh.h"
#include "core/fs.h"
#include "support/check.h"

static char root[64];

static const char *at(const char *name)
{
    static char path[4][256];
    static int i;
    snprintf(path[i = (i + 1) % 4], sizeof path[0], "%s/%s", root, name);
    return path[i];
}

static int set_up(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/hone-fresh-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return fs_remove_tree(root, NULL) == OK ? 0 : -1;
}

static void put(const struct fresh *f, const char *name)
{
    char path[FRESH_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", f->part, name);
    assert_int_equal(fs_write_synced(path, name, strlen(name), NULL), OK);
}

static void test_all_of_it(void **state)
{
    (void)state;
    struct fresh f;
    assert_int_equal(fresh_begin(&f, at("a/b"), NULL), OK);
    put(&f, "config.json");
    put(&f, "weights");
    assert_false(fs_exists(at("a/b/weights")));
    assert_int_equal(fresh_publish(&f, NULL), OK);
    fresh_end(&f);
    assert_true(fs_exists(at("a/b/weights")) && fs_exists(at("a/b/config.json")));
    assert_false(fs_exists(at("a/b/.hone-new")) || fs_exists(at("a/b/.lock")));
}

static void test_or_nothing(void **state)
{
    (void)state;
    struct fresh f;
    struct error err;
    assert_int_equal(fresh_begin(&f, at("new"), NULL), OK);
    put(&f, "weights");
    fresh_end(&f);
    assert_false(fs_exists(at("new")));
    assert_int_equal(mkdir(at("empty"), 0777), 0);                      /* somebody's, and stays */
    assert_int_equal(fresh_begin(&f, at("empty"), NULL), OK);
    put(&f, "weights");
    put(&f, "config.json");
    assert_int_equal(fs_make_dirs(at("empty/config.json/in the way"), NULL), OK);       /* comes last */
    assert_int_not_equal(fresh_publish(&f, &err), OK);
    assert_false(fs_exists(at("empty/weights")));
    fresh_end(&f);
    assert_true(fs_exists(at("empty/config.json/in the way")));
    assert_false(fs_exists(at("empty/.hone-new")) || fs_exists(at("empty/.lock")));
}

static void test_what_is_there(void **state)
{
    (void)state;
    struct fresh f, g;
    struct error err;
    assert_int_equal(fs_make_dirs(at("used"), NULL), OK);
    assert_int_equal(fs_write_synced(at("used/mine"), "x", 1, NULL), OK);
    assert_int_equal(fresh_begin(&f, at("used"), &err), BAD_INPUT);
    assert_says(&err, "holds 'mine' already", NULL);
    assert_false(fs_exists(at("used/.lock")));
    assert_int_equal(fresh_begin(&f, at("used/mine"), &err), BAD_INPUT);
    assert_says(&err, "a file of that name is there", NULL);
    assert_int_equal(symlink("nowhere", at("link")), 0);
    assert_int_equal(fresh_begin(&f, at("link"), &err), BAD_INPUT);
    assert_false(fs_exists(at("nowhere")));

    assert_int_equal(fs_make_dirs(at("killed/.hone-new"), NULL), OK);
    assert_int_equal(fs_write_synced(at("killed/.hone-new/half"), "x", 1, NULL), OK);
    assert_int_equal(fs_write_synced(at("killed/.lock"), "", 0, NULL), OK);
    assert_int_equal(fresh_begin(&f, at("killed"), &err), OK);
    assert_false(fs_exists(at("killed/.hone-new/half")));
    assert_int_equal(fresh_begin(&g, at("killed"), &err), BAD_INPUT);
    assert_says(&err, "another hone is writing", NULL);
    fresh_end(&g);
    assert_true(fs_exists(at("killed/.hone-new")));
    fresh_end(&f);
}

static void test_paths_have_an_end(void **state)
{
    (void)state;
    struct fresh f;
    struct error err;
    char path[FRESH_PATH_MAX];
    memset(path, 'x', sizeof path);
    path[FRESH_PATH_MAX - FRESH_NAME_ROOM + 1] = '\0';
    assert_int_equal(fresh_begin(&f, path, &err), BAD_INPUT);
    assert_says(&err, "--out has 961 bytes; expected 1 to 960", NULL);
    assert_int_equal(fresh_begin(&f, "", &err), BAD_INPUT);
    fresh_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_of_it, set_up, tear_down), cmocka_unit_test_setup_teardown(test_or_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_there, set_up, tear_down), cmocka_unit_test(test_paths_have_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
