/* Folders of reports: what is not a report's own stays, whatever it is, and a kill at any moment leaves the old report or the
 * new one. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/owned.h"
#include "report/folder.h"
#include "support/check.h"

enum { KILLS = 40, KILL_DELAY_MAX_US = 3000, CRASHED = 88 };

static char root[64], out[128];     /* a fresh folder for each test, and --out in it */

/* ---- calls that can fail on demand: these stand in front of the C library's ---- */

static struct {
    int at, code, calls;            /* the call to fail, counted from 1; errno for it, 0: the process ends there */
} fault;

static bool fails_here(void)
{
    if (++fault.calls != fault.at)
        return false;
    if (!fault.code)
        _exit(CRASHED);
    errno = fault.code;
    return true;
}

int fsync(int fd) { return fails_here() ? -1 : fcntl(fd, F_GETFD) < 0 ? -1 : 0; }

static char no_folder[PATH_MAX];    /* the disk has no room for it */

int mkdir(const char *path, mode_t mode)
{
    if (!strcmp(path, no_folder)) {
        errno = ENOSPC;
        return -1;
    }
    return fails_here() ? -1 : mkdirat(AT_FDCWD, path, mode);
}

int unlink(const char *path) { return fails_here() ? -1 : unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return fails_here() ? -1 : unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int rename(const char *from, const char *to)
{
    return fails_here() ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int remove(const char *path)
{
    if (fails_here())
        return -1;
    return unlinkat(AT_FDCWD, path, 0) == 0 || errno != EISDIR ? 0 : unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

ssize_t write(int fd, const void *data, size_t size)
{
    if (fault.calls + 1 == fault.at)
        syscall(SYS_write, fd, data, size / 2);         /* half of it gets out */
    return fails_here() ? -1 : syscall(SYS_write, fd, data, size);
}

/* ---- a small report whose every file tells its version ---- */

static const char *at(const char *name)
{
    static char paths[8][PATH_MAX];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, PATH_MAX, "%s/%s", out, name);
    return path;
}

static void put(const char *name, const char *text) { assert_int_equal(fs_write_synced(at(name), text, strlen(text), NULL), OK); }

static char *get(const char *name)
{
    char *text;
    size_t size;
    return fs_read(at(name), &text, &size, 0, NULL) == OK ? text : NULL;
}

static void assert_holds(const char *name, const char *text)
{
    char *is = get(name);
    if (!is || strcmp(is, text))
        fail_msg("%s holds '%s'; it should hold '%s'", name, is ? is : "(nothing)", text);
    free(is);
}

static bool is_there(const char *name)
{
    struct stat s;
    return lstat(at(name), &s) == 0;
}

/* Odd versions have a file of their own, as a report with a comparison has. */
static enum status write_version(const void *what, const char *folder, struct error *err)
{
    const int version = *(const int *)what;
    char text[32], name[64];
    snprintf(text, sizeof text, "version %d", version);
    enum status st = OK;
    for (int i = 0; i < 3 && st == OK; i++)
        st = report_folder_add(folder, (const char *const[]){"report.html", "report.md", "report.json"}[i], text, err);
    if (st == OK && version % 2)
        st = report_folder_add(folder, "diff.md", text, err);
    snprintf(name, sizeof name, "%s/tensorboard", folder);
    if (st == OK)
        st = fs_make_dirs(name, err);
    snprintf(name, sizeof name, "tensorboard/events.%d", version);
    return st == OK ? report_folder_add(folder, name, text, err) : st;
}

static enum status publish(enum report_kind kind, int version, struct error *err)
{
    return report_folder_publish(out, kind, write_version, &version, err);
}

static void must_publish(enum report_kind kind, int version)
{
    struct error err;
    if (report_folder_check(out, kind, &err) != OK || publish(kind, version, &err) != OK)
        fail_msg("version %d: %s", version, err.text);
}

static void refused(enum report_kind kind, const char *why)
{
    struct error err = {.text = ""};
    assert_int_equal(report_folder_check(out, kind, &err), BAD_INPUT);
    assert_says(&err, why, NULL);
    err.text[0] = 0;
    assert_int_equal(publish(kind, 99, &err), BAD_INPUT);       /* also where it came up while the report was made */
    assert_says(&err, why, NULL);
}

/* Names in the folder that begin with a dot, but for the two that stay. */
static int count_leftovers(void)
{
    int n = 0;
    DIR *dir = opendir(out);
    for (struct dirent *e; dir && (e = readdir(dir));)
        n += e->d_name[0] == '.' && strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && strcmp(e->d_name, ".lock") &&
             strcmp(e->d_name, OWNED_LIST);
    if (dir)
        closedir(dir);
    return n;
}

static void assert_is_version(int version)
{
    char text[32], name[64];
    snprintf(text, sizeof text, "version %d", version);
    for (int i = 0; i < 3; i++)
        assert_holds((const char *const[]){"report.html", "report.md", "report.json"}[i], text);
    assert_int_equal(is_there("diff.md"), version % 2);
    for (int v = 1; v < 8; v++) {
        snprintf(name, sizeof name, "tensorboard/events.%d", v);
        assert_int_equal(is_there(name), v == version);
    }
    assert_int_equal(count_leftovers(), 0);
}

static int make_root(void **state)
{
    (void)state;
    fault.at = 0;
    const bool memory = access("/dev/shm", W_OK | X_OK) == 0;   /* a disk is slow at thousands of renames */
    strcpy(root, memory ? "/dev/shm/hone-report-XXXXXX" : "/tmp/hone-report-XXXXXX");
    snprintf(out, sizeof out, "%s/r", mkdtemp(root) ? root : "");
    return *out == '/' ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    fault.at = 0;
    return fs_remove_tree(root, NULL) == OK ? 0 : -1;
}

/* ---- what stays ---- */

static void test_again_and_again(void **state)
{
    (void)state;
    for (int v = 1; v <= 4; v++) {
        must_publish(REPORT_TRACE, v);
        assert_is_version(v);
    }
}

/* Nothing is moved before all folders are there. */
static void test_no_folder(void **state)
{
    (void)state;
    struct error err;
    must_publish(REPORT_TRACE, 1);
    snprintf(no_folder, sizeof no_folder, "%s", at("tensorboard"));
    const enum status st = publish(REPORT_TRACE, 2, &err);
    *no_folder = 0;
    assert_int_equal(st, CANNOT);
    assert_is_version(1);
}

static void test_files_of_others(void **state)
{
    (void)state;
    assert_int_equal(fs_make_dirs(at("tensorboard"), NULL), OK);
    assert_int_equal(fs_make_dirs(at("checkpoints/step-00000500"), NULL), OK);
    put("thesis.tex", "mine");
    put("tensorboard/events.mine", "mine");
    put(".hone-new-x", "mine");
    put(".hone-new-01", "mine");
    for (int v = 1; v <= 3; v++)
        must_publish(REPORT_TRACE, v);
    assert_holds("thesis.tex", "mine");
    assert_holds("tensorboard/events.mine", "mine");
    assert_holds(".hone-new-x", "mine");
    assert_holds(".hone-new-01", "mine");
    assert_true(is_there("checkpoints/step-00000500"));
}

static void test_a_report_of_nobody(void **state)
{
    (void)state;
    assert_int_equal(fs_make_dirs(out, NULL), OK);
    put("report.json", "{}");
    put("thesis.tex", "mine");
    refused(REPORT_TRACE, "report.json' is there, and no report that is known here wrote it; move it away, or give another --out");
    assert_holds("report.json", "{}");
    assert_holds("thesis.tex", "mine");
    assert_false(is_there("report.md"));
    assert_int_equal(count_leftovers(), 0);
}

static void test_edited_by_its_user(void **state)
{
    (void)state;
    must_publish(REPORT_TRACE, 1);
    put("report.md", "version 1, and what I think of it");
    refused(REPORT_TRACE, "report.md' was changed since hone analyze wrote it; move it away, or give another --out");
    assert_holds("report.json", "version 1");
    assert_int_equal(unlink(at("report.md")), 0);
    put("diff.md", "mine now");                 /* no file of the next one: it stays */
    must_publish(REPORT_TRACE, 2);
    assert_holds("report.md", "version 2");
    assert_holds("diff.md", "mine now");
    struct error err = {.text = ""};
    assert_int_equal(publish(REPORT_TRACE, 3, &err), BAD_INPUT);
    assert_says(&err, "diff.md' is there, and no report", NULL);
}

static void test_links(void **state)
{
    (void)state;
    must_publish(REPORT_TRACE, 1);
    put("precious", "mine");
    assert_int_equal(unlink(at("report.md")), 0);
    assert_int_equal(symlink("precious", at("report.md")), 0);
    refused(REPORT_TRACE, "report.md' was changed since");
    assert_int_equal(unlink(at("report.md")), 0);
    assert_int_equal(fs_remove_tree(at("tensorboard"), NULL), OK);
    assert_int_equal(fs_make_dirs(at("elsewhere"), NULL), OK);
    assert_int_equal(symlink("elsewhere", at("tensorboard")), 0);
    struct error err = {.text = ""};
    assert_int_equal(publish(REPORT_TRACE, 2, &err), BAD_INPUT);
    assert_says(&err, "tensorboard/events.2", NULL);
    assert_holds("precious", "mine");
    assert_false(is_there("elsewhere/events.2"));
}

static void test_other_kinds(void **state)
{
    (void)state;
    must_publish(REPORT_TUNE, 2);
    refused(REPORT_PROFILE, "' is of a report of hone tune; give another --out");
    assert_is_version(2);
}

/* ---- folders that cannot be had ---- */

static void test_names(void **state)
{
    (void)state;
    struct error err;
    char folder[REPORT_FOLDER_MAX], file[256], link[256];
    assert_int_equal(report_folder_name(folder, "a//", &err), OK);
    assert_string_equal(folder, "a");
    assert_int_equal(report_folder_name(folder, "/", &err), OK);
    assert_string_equal(folder, "/");
    assert_int_equal(report_folder_name(folder, "", &err), BAD_INPUT);
    snprintf(file, sizeof file, "%s/file", root);
    snprintf(link, sizeof link, "%s/link", root);
    assert_int_equal(fs_write_synced(file, "mine", 4, NULL), OK);
    assert_int_equal(report_folder_check(file, REPORT_TRACE, &err), BAD_INPUT);
    assert_says(&err, "is a file, and a report is a folder", NULL);
    snprintf(folder, sizeof folder, "%s/below", file);
    assert_int_equal(report_folder_check(folder, REPORT_TRACE, &err), BAD_INPUT);
    assert_says(&err, "Not a directory", NULL);
    assert_int_equal(symlink("nowhere", link), 0);
    assert_int_equal(report_folder_check(link, REPORT_TRACE, &err), BAD_INPUT);
    assert_says(&err, "is a link to a folder that is not there", NULL);
    assert_int_equal(report_folder_check(out, REPORT_TRACE, &err), OK);
    assert_int_equal(report_folder_check("/proc/nothing/here", REPORT_TRACE, &err), geteuid() ? BAD_INPUT : OK);
    assert_false(fs_exists(out));               /* asking makes nothing */
}

/* An --out that is a link to a folder is that folder, and stays a link. */
static void test_a_link_to_a_folder(void **state)
{
    (void)state;
    char folder[256];
    struct stat s;
    snprintf(folder, sizeof folder, "%s/real", root);
    assert_int_equal(fs_make_dirs(folder, NULL), OK);
    assert_int_equal(symlink("real", out), 0);
    must_publish(REPORT_TRACE, 1);
    must_publish(REPORT_TRACE, 2);
    assert_is_version(2);
    assert_true(lstat(out, &s) == 0 && S_ISLNK(s.st_mode));
}

static void test_locked(void **state)
{
    (void)state;
    int lock;
    must_publish(REPORT_TRACE, 1);
    assert_int_equal(fs_lock(&lock, out, NULL), OK);
    refused(REPORT_TRACE, "another hone is writing into");
    close(lock);
    assert_is_version(1);
}

/* A list may come with a folder from anywhere: it must not name what is outside, and damage is no licence. */
static void test_hostile_lists(void **state)
{
    (void)state;
    static const char *const lists[] = {
        "", "[]", "{\"format\": \"hone-report\", \"version\": 2, \"files\": []}",
#define WITH(name) "{\"format\": \"hone-report\", \"version\": 1, \"files\": [{\"report\": \"analyze\", \"name\": \"" name \
                   "\", \"bytes\": 4, \"xxh3\": \"0000000000000000\"}]}"
        WITH("../precious"), WITH("/precious"), WITH("a/../../precious"), WITH("a/b/c"), WITH(".lock"), WITH(""), WITH("a\\nb"),
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        assert_int_equal(fs_make_dirs(out, NULL), OK);
        put(OWNED_LIST, lists[i]);
        refused(REPORT_TRACE, OWNED_LIST "' is damaged");
    }
    assert_false(owned_name_is_good("a/") || owned_name_is_good("..") || owned_name_is_good("a/.b"));
    assert_true(owned_name_is_good("report.html") && owned_name_is_good("tensorboard/events.out.tfevents.17.host-1"));
}

/* ---- failures and kills ---- */

static enum status write_nothing(const void *what, const char *folder, struct error *err)
{
    (void)what;
    const enum status st = report_folder_add(folder, "report.md", "half", err);
    return st == OK ? error_set(err, CANNOT, "no memory") : st;
}

static void test_a_report_that_fails(void **state)
{
    (void)state;
    struct error err;
    assert_int_equal(report_folder_publish(out, REPORT_TRACE, write_nothing, NULL, &err), CANNOT);
    assert_false(fs_exists(out));               /* it was made for nothing, and is gone */
    assert_int_equal(fs_make_dirs(out, NULL), OK);
    assert_int_equal(report_folder_publish(out, REPORT_TRACE, write_nothing, NULL, &err), CANNOT);
    assert_true(fs_exists(out));                /* one that was there stays, also when it is empty */
    must_publish(REPORT_TRACE, 1);
    assert_int_equal(report_folder_publish(out, REPORT_TRACE, write_nothing, NULL, &err), CANNOT);
    assert_is_version(1);
}

/* Every file is one of the two versions, whole. */
static void assert_old_or_new(int old, int fresh)
{
    static const char *const names[] = {"report.html", "report.md", "report.json"};
    char a[32], b[32];
    snprintf(a, sizeof a, "version %d", old);
    snprintf(b, sizeof b, "version %d", fresh);
    for (int i = 0; i < 3; i++) {
        char *text = get(names[i]);
        if (!text || (strcmp(text, a) && strcmp(text, b)))
            fail_msg("%s is '%s' and neither the old one nor the new one", names[i], text ? text : "(gone)");
        free(text);
    }
    assert_holds("thesis.tex", "mine");
}

static bool crash_at(int call, int version)
{
    int rc;
    const pid_t pid = fork();
    if (pid == 0) {
        fault.calls = 0;
        fault.at = call;
        fault.code = 0;
        _exit(publish(REPORT_TRACE, version, NULL) == OK ? 0 : 1);
    }
    waitpid(pid, &rc, 0);
    assert_true(WIFEXITED(rc) && (WEXITSTATUS(rc) == CRASHED || WEXITSTATUS(rc) == 0));
    return WEXITSTATUS(rc) == CRASHED;
}

static void start_over(void)
{
    assert_int_equal(fs_remove_tree(out, NULL), OK);
    must_publish(REPORT_TRACE, 1);
    put("thesis.tex", "mine");
}

static void test_a_kill_anywhere(void **state)
{
    (void)state;
    int call = 1;
    start_over();
    for (; crash_at(call, 2); call++) {
        assert_old_or_new(1, 2);
        must_publish(REPORT_TRACE, 3);          /* nobody is blamed for what a kill left, and it is swept */
        assert_is_version(3);
        assert_holds("thesis.tex", "mine");
        start_over();
    }
    assert_true(call > 30);                     /* the calls are really counted */
}

static void test_errors_anywhere(void **state)
{
    (void)state;
    int failed = 0;
    for (int call = 1;; call++) {
        start_over();
        fault.calls = 0;
        fault.at = call;
        fault.code = EIO;
        const enum status st = publish(REPORT_TRACE, 2, NULL);
        const bool reached = fault.calls >= call;
        fault.at = 0;
        if (!reached)
            break;
        failed += st != OK;
        assert_old_or_new(1, 2);
        must_publish(REPORT_TRACE, 3);
        assert_is_version(3);
    }
    assert_true(failed > 10);
}

static void publish_forever(int ready)
{
    for (int v = 2;; v = v == 3 ? 2 : 3) {
        if (publish(REPORT_TRACE, v, NULL) != OK || (ready >= 0 && syscall(SYS_write, ready, "r", 1) != 1))
            _exit(1);
        ready = -1;
    }
}

static void test_kills(void **state)
{
    (void)state;
    uint32_t random = 1;
    int caught = 0;
    must_publish(REPORT_TRACE, 2);
    put("thesis.tex", "mine");
    for (int i = 0; i < KILLS; i++) {
        int ready[2], rc;
        char byte;
        random = random * 1664525u + 1013904223u;
        assert_int_equal(pipe(ready), 0);
        const pid_t pid = fork();
        if (pid == 0)
            publish_forever(ready[1]);
        close(ready[1]);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        close(ready[0]);
        usleep((random >> 8) % KILL_DELAY_MAX_US);
        kill(pid, SIGKILL);
        waitpid(pid, &rc, 0);
        assert_true(WIFSIGNALED(rc));
        caught += count_leftovers() > 0;
        assert_old_or_new(2, 3);
    }
    assert_true(caught > 0);
    must_publish(REPORT_TRACE, 4);
    assert_is_version(4);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_root, remove_root)
    const struct CMUnitTest tests[] = {
        TEST(test_again_and_again), TEST(test_files_of_others), TEST(test_a_report_of_nobody), TEST(test_edited_by_its_user),
        TEST(test_links), TEST(test_other_kinds), TEST(test_names), TEST(test_a_link_to_a_folder), TEST(test_locked),
        TEST(test_hostile_lists), TEST(test_a_report_that_fails), TEST(test_a_kill_anywhere), TEST(test_errors_anywhere),
        TEST(test_kills), TEST(test_no_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
