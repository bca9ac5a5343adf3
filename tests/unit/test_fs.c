/* File helpers: folders, whole files, durable writes, removal that stays inside its tree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/fs.h"
#include "core/fs_int.h"

static char root[64];

static int make_root(void **state)
{
    (void)state;
    strcpy(root, "/tmp/hone-fs-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    return fs_remove_tree(root, NULL) == OK && !fs_exists(root) ? 0 : -1;
}

/* A path under the root; good until the eighth call after it. */
static const char *at(const char *name)
{
    static char paths[8][PATH_MAX];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, PATH_MAX, "%s/%s", root, name);
    return path;
}

static void assert_says(const struct error *err, const char *words)
{
    if (!strstr(err->text, words))
        fail_msg("the error '%s' does not say '%s'", err->text, words);
}

static void test_make_dirs(void **state)
{
    (void)state;
    struct error err;
    assert_int_equal(fs_make_dirs(at("a/b//c/"), &err), OK);
    assert_true(fs_exists(at("a/b/c")));
    assert_int_equal(fs_make_dirs(at("a/b/c"), &err), OK);
    assert_int_equal(fs_make_dirs("/", &err), OK);
    assert_int_equal(fs_make_dirs("", &err), BAD_INPUT);

    assert_int_equal(fs_write_synced(at("a/file"), "x", 1, &err), OK);
    assert_int_equal(fs_make_dirs(at("a/file"), &err), BAD_INPUT);
    assert_says(&err, "a file of that name is there");
    assert_int_equal(fs_make_dirs(at("a/file/below"), &err), BAD_INPUT);
    assert_says(&err, "a/file'");
}

static void test_make_dirs_relative(void **state)
{
    (void)state;
    char *before = getcwd(NULL, 0);
    assert_int_equal(chdir(root), 0);
    assert_int_equal(fs_make_dirs("one/two", NULL), OK);
    assert_int_equal(chdir(before), 0);
    assert_true(fs_exists(at("one/two")));
    free(before);
}

static void test_write_and_read(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 4095, (1 << 20) - 1, 1 << 20, (3 << 20) + 17};     /* around the buffer */
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        char *data = malloc(sizes[k] + 1), *back;
        size_t size;
        for (size_t i = 0; i < sizes[k]; i++)
            data[i] = (char)(i * 2654435761u >> 13);
        assert_int_equal(fs_write_synced(at("file"), data, sizes[k], NULL), OK);
        assert_int_equal(fs_read(at("file"), &back, &size, 0, NULL), OK);
        assert_int_equal(size, sizes[k]);
        assert_memory_equal(back, data, size);
        assert_int_equal(back[size], '\0');
        free(back);
        free(data);
    }
}

static void test_writer_checksum(void **state)
{
    (void)state;
    struct fs_writer w;
    uint64_t checksum, count = 0;
    char *back;
    size_t size;
    assert_int_equal(fs_writer_open(&w, at("file"), NULL), OK);
    for (int i = 0; i < 300000; i++, count += 7)
        assert_int_equal(fs_writer_put(&w, "seven!\n", 7, NULL), OK);
    assert_int_equal(fs_writer_close(&w, &checksum, NULL), OK);
    assert_int_equal(fs_read(at("file"), &back, &size, 0, NULL), OK);
    assert_int_equal(size, count);
    assert_true(XXH3_64bits(back, size) == checksum);
    free(back);
}

static void test_read_refuses(void **state)
{
    (void)state;
    struct error err;
    char *data = NULL;
    size_t size;
    assert_int_equal(fs_read(at("missing"), &data, &size, 0, &err), BAD_INPUT);
    assert_says(&err, "missing': No such file");
    assert_int_equal(fs_read(root, &data, &size, 0, &err), BAD_INPUT);
    assert_says(&err, "is a folder");
    assert_int_equal(mkfifo(at("pipe"), 0600), 0);
    assert_int_equal(fs_read(at("pipe"), &data, &size, 0, &err), BAD_INPUT);
    assert_says(&err, "not a regular file");
    assert_int_equal(fs_write_synced(at("five"), "12345", 5, &err), OK);
    assert_int_equal(fs_read(at("five"), &data, &size, 4, &err), BAD_INPUT);
    assert_says(&err, "is 5 bytes; at most 4");
    assert_null(data);
    assert_int_equal(fs_read(at("five"), &data, &size, 5, &err), OK);
    free(data);
}

static void test_full_disk(void **state)
{
    (void)state;
    struct error err;
    char *big = calloc(1, 3 << 20);
    if (!fs_exists("/dev/full"))
        skip();
    assert_int_equal(fs_write_synced("/dev/full", "x", 1, &err), CANNOT);
    assert_says(&err, "No space left");
    assert_int_equal(fs_write_synced("/dev/full", big, 3 << 20, &err), CANNOT);
    assert_true(fs_exists("/dev/full"));        /* a failed write removes only regular files */
    free(big);
}

static void test_write_refuses(void **state)
{
    (void)state;
    struct error err;
    assert_int_equal(fs_write_synced(at("no/such/folder"), "x", 1, &err), BAD_INPUT);
    assert_says(&err, "no/such/folder': No such file");
    assert_int_equal(fs_write_synced(root, "x", 1, &err), BAD_INPUT);
    assert_int_equal(fs_sync_dir(at("none"), &err), BAD_INPUT);
    assert_says(&err, "none'");
}

static void test_abort_leaves_nothing(void **state)
{
    (void)state;
    struct fs_writer w;
    assert_int_equal(fs_writer_open(&w, at("half"), NULL), OK);
    assert_int_equal(fs_writer_put(&w, "abc", 3, NULL), OK);
    fs_writer_abort(&w);
    assert_false(fs_exists(at("half")));
}

static void test_remove_tree(void **state)
{
    (void)state;
    assert_int_equal(fs_make_dirs(at("outside"), NULL), OK);
    assert_int_equal(fs_write_synced(at("outside/precious"), "x", 1, NULL), OK);
    assert_int_equal(fs_make_dirs(at("tree/a/b"), NULL), OK);
    assert_int_equal(fs_write_synced(at("tree/a/b/.hidden"), "x", 1, NULL), OK);
    assert_int_equal(symlink(at("outside"), at("tree/a/link")), 0);
    assert_int_equal(fs_remove_tree(at("tree"), NULL), OK);
    assert_false(fs_exists(at("tree")));
    assert_true(fs_exists(at("outside/precious")));
    assert_int_equal(fs_remove_tree(at("tree"), NULL), OK);
}

/* ---- folders that others use, too ---- */

static int lock_code;               /* errno of the next flock; 0: it is the system's */

int flock(int fd, int operation)
{
    if (lock_code) {
        errno = lock_code;
        return -1;
    }
    return (int)syscall(SYS_flock, fd, operation);
}

static void test_there(void **state)
{
    (void)state;
    bool there;
    struct error err;
    assert_int_equal(fs_there(at("nothing"), &there, &err), OK);
    assert_false(there);
    assert_int_equal(symlink("nowhere", at("link")), 0);
    assert_int_equal(fs_there(at("link"), &there, &err), OK);
    assert_true(there);                         /* a link to nothing is something */
    assert_int_equal(symlink("loop", at("loop")), 0);
    assert_int_equal(fs_there(at("loop/below"), &there, &err), BAD_INPUT);
    assert_says(&err, "Too many levels");
    assert_int_equal(err.code, ELOOP);
}

static void test_replace(void **state)
{
    (void)state;
    char *text;
    size_t size;
    assert_int_equal(fs_write_synced(at("precious"), "mine", 4, NULL), OK);
    assert_int_equal(symlink(at("precious"), at(".file.hone-tmp")), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fs_replace(at("file"), "ours", 4, NULL), OK);
        assert_false(fs_exists(at(".file.hone-tmp")));
        assert_int_equal(fs_read(at("file"), &text, &size, 0, NULL), OK);
        assert_string_equal(text, "ours");
        free(text);
    }
    assert_int_equal(fs_read(at("precious"), &text, &size, 0, NULL), OK);
    assert_string_equal(text, "mine");
    free(text);
    assert_int_equal(fs_make_dirs(at("folder/in"), NULL), OK);
    assert_int_equal(fs_replace(at("folder"), "x", 1, NULL), BAD_INPUT);
    assert_false(fs_exists(at(".folder.hone-tmp")));
}

static void test_hash(void **state)
{
    (void)state;
    uint64_t bytes, hash;
    struct error err;
    assert_int_equal(fs_write_synced(at("file"), "hello", 5, NULL), OK);
    assert_int_equal(fs_hash(at("file"), &bytes, &hash, &err), OK);
    assert_true(bytes == 5 && hash == XXH3_64bits("hello", 5));
    assert_int_equal(symlink("file", at("link")), 0);
    assert_int_equal(fs_hash(at("link"), &bytes, &hash, &err), BAD_INPUT);
    assert_int_equal(fs_hash(root, &bytes, &hash, &err), BAD_INPUT);
}

static void test_lock(void **state)
{
    (void)state;
    int first, second;
    struct error err;
    assert_false(fs_is_locked(root));
    assert_false(fs_exists(at(".lock")));               /* looking makes nothing */
    assert_int_equal(fs_lock(&first, root, &err), OK);
    assert_int_equal(fs_lock(&second, root, &err), BAD_INPUT);
    assert_says(&err, "another hone is writing into");
    assert_true(fs_is_locked(root));
    close(first);
    assert_false(fs_is_locked(root));
    assert_int_equal(fs_lock(&second, root, &err), OK);
    close(second);
    lock_code = ENOLCK;
    assert_int_equal(fs_lock(&first, root, &err), CANNOT);
    lock_code = 0;
    assert_says(&err, "No locks available");
    assert_null(strstr(err.text, "another hone"));
    unlink(at(".lock"));
    assert_int_equal(symlink("elsewhere", at(".lock")), 0);
    assert_int_equal(fs_lock(&first, root, &err), BAD_INPUT);
    assert_false(fs_exists(at("elsewhere")));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_root, remove_root)
    const struct CMUnitTest tests[] = {
        TEST(test_make_dirs),      TEST(test_make_dirs_relative), TEST(test_write_and_read),
        TEST(test_writer_checksum), TEST(test_read_refuses),      TEST(test_full_disk),
        TEST(test_write_refuses),  TEST(test_abort_leaves_nothing), TEST(test_remove_tree),
        TEST(test_there),          TEST(test_replace),            TEST(test_hash),
        TEST(test_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
