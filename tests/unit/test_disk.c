/* Timed reads: all of a file is read, past the cache where that can be; nothing is left behind; what cannot be read says so. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/disk.h"
#include "support/check.h"

static char folder[] = "/tmp/hone-test-disk-XXXXXX", path[sizeof folder + 16];

static int make_folder(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void write_bytes(size_t n)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (size_t i = 0; i < n; i++)
        fputc((int)(i * 7 & 255), f);
    assert_int_equal(fclose(f), 0);
}

static void check_read(size_t bytes)
{
    struct disk_speed s;
    struct error err;
    write_bytes(bytes);
    assert_ok(disk_read_file(&s, path, 10, &err), err);
    assert_true(s.bytes == (double)bytes);
    assert_true(s.seconds > 0 && (bytes == 0 || disk_bytes_per_s(&s) > 0));
    assert_true(s.way <= DISK_MEMORY && *disk_way_words(s.way));
}

/* Also where the end is no multiple of a page, or of a block. */
static void reads_all_of_a_file(void **state)
{
    (void)state;
    check_read(0);
    check_read(1);
    check_read(4097);
    check_read((4 << 20) + 1234);
}

/* Time is up after the first block. */
static void stops_in_time(void **state)
{
    struct disk_speed s;
    struct error err;
    (void)state;
    write_bytes((8 << 20) + 5);
    assert_ok(disk_read_file(&s, path, 0, &err), err);
    assert_true(s.bytes == 4 << 20);
}

static int files_in(const char *where)
{
    DIR *d = opendir(where);
    int n = 0;
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static void a_folder_stays_as_it_was(void **state)
{
    struct disk_speed s;
    struct error err;
    (void)state;
    unlink(path);
    assert_ok(disk_read_folder(&s, folder, 10, &err), err);
    assert_true(s.bytes == 32 << 20);
    assert_int_equal(files_in(folder), 0);
}

static void what_cannot_be_read_says_so(void **state)
{
    struct disk_speed s;
    struct error err;
    (void)state;
    assert_int_not_equal(disk_read_file(&s, "/nonexistent/file", 1, &err), OK);
    assert_says(&err, "cannot open '/nonexistent/file'", NULL);
    assert_int_equal(disk_read_file(&s, folder, 1, &err), BAD_INPUT);
    assert_says(&err, "is no regular file", NULL);
    assert_int_not_equal(disk_read_folder(&s, "/nonexistent", 1, &err), OK);
    assert_says(&err, "cannot make a file in '/nonexistent'", NULL);
    const struct disk_speed nothing = {0};
    assert_true(disk_bytes_per_s(&nothing) == 0);
}

static void memory_is_no_disk(void **state)
{
    struct disk_speed s;
    struct error err;
    (void)state;
    if (access("/dev/shm", W_OK) || disk_read_folder(&s, "/dev/shm", 1, &err) != OK)
        skip();
    assert_int_equal(s.way, DISK_MEMORY);
}

/* Pages of windows a second; nothing where it all stays in memory. */
static void what_a_loader_needs(void **state)
{
    (void)state;
    assert_true(disk_need(100, 2050, 8e9, 10e9) == 100 * (2050 + 4096));
    assert_true(disk_need(100, 2050, 4e9, 10e9) == 0);
    assert_true(disk_need(100, 2050, 1, 0) > 0);            /* what is free is not known */
}

static void slow_is_what_is_known_to_be(void **state)
{
    (void)state;
    const struct disk_speed s = {.bytes = 1e8, .seconds = 1, .way = DISK_DIRECT}, little = {.bytes = 1e5, .seconds = 1, .way = DISK_DIRECT},
                            cached = {.bytes = 1e8, .seconds = 1, .way = DISK_CACHED}, dropped = {.bytes = 1e8, .seconds = 1, .way = DISK_DROPPED};
    assert_true(disk_is_slow(&s, 1.01e8) && disk_is_slow(&dropped, 1.01e8));
    assert_false(disk_is_slow(&s, 0.99e8));
    assert_false(disk_is_slow(&s, 0));
    assert_false(disk_is_slow(&little, 1e9));
    assert_false(disk_is_slow(&cached, 1e9));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_all_of_a_file), cmocka_unit_test(stops_in_time), cmocka_unit_test(a_folder_stays_as_it_was),
        cmocka_unit_test(what_cannot_be_read_says_so), cmocka_unit_test(memory_is_no_disk), cmocka_unit_test(what_a_loader_needs), cmocka_unit_test(slow_is_what_is_known_to_be),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
