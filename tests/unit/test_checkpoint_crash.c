/* Checkpoints under fire: a crash before any system call of a save, an error from any of them, kill -9 at random
 * moments, a full disk. There is always a whole checkpoint, and a failed save leaves nothing behind. */
#include "unit/checkpoint_model.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { KILLS = 80, KILL_DELAY_MAX_US = 6000 };

/* --- system calls that can fail on demand: these stand in front of the C library's -------------------------------- */

enum { NEVER = 0, SHORT_WRITE = -1, CRASHED = 88 };

static struct {
    int at;                 /* the call to fail, counted from 1, or NEVER */
    int code;               /* errno for it; 0: the process ends there */
    int calls;
    char log[256];          /* one letter for each call */
} fault;

static bool fails_here(char letter)
{
    if (fault.calls < (int)sizeof fault.log - 1)
        fault.log[fault.calls] = letter;
    if (++fault.calls != fault.at)
        return false;
    if (fault.code == 0)
        _exit(CRASHED);
    errno = fault.code;
    return true;
}

static void fault_arm(int call, int code)
{
    memset(&fault, 0, sizeof fault);
    fault.at = call;
    fault.code = code;
}

/* The machine does not lose power in a test: there is no need to wait for the disk. */
int fsync(int fd) { return fails_here('s') ? -1 : fcntl(fd, F_GETFD) < 0 ? -1 : 0; }
int mkdir(const char *path, mode_t mode) { return fails_here('m') ? -1 : mkdirat(AT_FDCWD, path, mode); }

int rename(const char *from, const char *to)
{
    return fails_here('r') ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    return fails_here('x') ? -1 : (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

/* Of a folder, only that it is removed as one: who does not know what it is tries it as a file first. */
int unlinkat(int folder, const char *path, int flags)
{
    struct stat s;
    const bool removes = fstatat(folder, path, &s, AT_SYMLINK_NOFOLLOW) == 0 && (flags || !S_ISDIR(s.st_mode));
    return removes && fails_here('d') ? -1 : (int)syscall(SYS_unlinkat, folder, path, flags);
}

/* A write that crashes or fails has written half; a short one says so; an interrupted one has written nothing. */
ssize_t write(int fd, const void *data, size_t size)
{
    ssize_t half = 0;
    if (fault.calls + 1 == fault.at && fault.code != EINTR)
        half = syscall(SYS_write, fd, data, size / 2);
    if (fails_here('w'))
        return fault.code == SHORT_WRITE ? half : -1;
    return syscall(SYS_write, fd, data, size);
}

/* --- every moment of a save -------------------------------------------------------------------------------------- */

/* Every folder that has a checkpoint's name is one. */
static void assert_all_whole(void)
{
    DIR *dir = opendir(at("."));
    for (struct dirent *e; (e = readdir(dir));)
        if (checkpoint_step_of(e->d_name) >= 0)
            assert_int_equal(loaded_step(at("%s", e->d_name)), checkpoint_step_of(e->d_name));
    closedir(dir);
}

/* One checkpoint there, of step 5; what is tried next saves a later step (and removes 5) or step 5 again. */
static void start_over(void)
{
    fault_arm(NEVER, 0);
    assert_int_equal(fs_remove_tree(out, NULL), OK);
    must_save(5, 64, 1);
}

/* Crashes before the nth call of a save; false when the save has fewer calls. */
static bool crash_at(int call, int64_t step)
{
    int rc;
    const pid_t pid = fork();
    if (pid == 0) {
        fault_arm(call, 0);
        _exit(save(step, 32, 1, NULL) == OK ? 0 : 1);
    }
    waitpid(pid, &rc, 0);
    assert_true(WIFEXITED(rc) && (WEXITSTATUS(rc) == CRASHED || WEXITSTATUS(rc) == 0));
    return WEXITSTATUS(rc) == CRASHED;
}

static void crash_everywhere(int64_t step)
{
    int call = 1;
    start_over();
    for (; crash_at(call, step); call++) {
        const int64_t newest = loaded_step(out);
        assert_true(newest == 5 || newest == step);
        assert_all_whole();
        if (call % 2) {                         /* a run that is done saves no more: it sweeps */
            checkpoint_sweep(out);
            assert_int_equal(count_entries(".tmp"), 0);
            assert_int_equal(loaded_step(out), newest);
        }
        must_save(7, 16, 1);                    /* the next save works, and tidies up */
        assert_int_equal(loaded_step(out), 7);
        assert_int_equal(count_entries(".tmp"), 0);
        assert_int_equal(count_entries("step-"), 1);
        start_over();
    }
    assert_true(call > 15);                     /* the calls are really counted */
}

static void test_crash_anywhere_in_a_save(void **state)
{
    (void)state;
    crash_everywhere(6);
}

static void test_crash_anywhere_in_a_replacement(void **state)
{
    (void)state;
    crash_everywhere(5);
}

/* Whether the failed call came after the folder had got its name. */
static bool was_published(void)
{
    const char *named = strrchr(fault.log, fault.log[strcspn(fault.log, "x")] ? 'x' : 'r');
    return named && named - fault.log + 1 < fault.at;
}

static void fail_everywhere(int64_t step, int code)
{
    int failed = 0;
    for (int call = 1;; call++) {
        struct error err = {.text = ""};
        start_over();
        fault_arm(call, code);
        const enum status st = save(step, 32, 1, &err);
        const bool reached = fault.calls >= call, published = was_published();
        fault.at = NEVER;
        if (!reached)
            break;
        assert_all_whole();
        if (st == OK) {
            assert_int_equal(loaded_step(out), step);
        } else if (!published) {
            assert_says(&err, strerror(code));
            assert_int_equal(loaded_step(out), 5);
            assert_int_equal(count_entries("step-"), 1);
            assert_int_equal(count_entries(".tmp"), 0);
        }
        failed += st != OK;
    }
    assert_true(failed >= 9);                   /* one mkdir, three writes, five syncs at least */
}

static void test_errors_anywhere_in_a_save(void **state)
{
    (void)state;
    fail_everywhere(6, EIO);
    fail_everywhere(6, ENOSPC);
    fail_everywhere(5, EIO);
}

/* Files before the manifest, all of it before the name, the name before anything older goes. */
static void test_order_of_durability(void **state)
{
    (void)state;
    start_over();
    fault_arm(NEVER, 0);
    must_save(6, 32, 1);
    assert_string_equal(fault.log + strspn(fault.log, "m"), "wswswssrsrdddd");
    fault_arm(NEVER, 0);
    must_save(6, 16, 1);
    assert_string_equal(fault.log + strspn(fault.log, "m"), "wswswssrxsdddd");
}

static void test_file_system_without_exchange(void **state)
{
    (void)state;
    start_over();
    fault_arm(NEVER, 0);
    must_save(5, 32, 1);
    const int exchange = (int)(strchr(fault.log, 'x') - fault.log) + 1;
    fault_arm(exchange, EINVAL);
    must_save(5, 16, 1);
    assert_int_equal(fault.log[exchange], 'r');
    fault_arm(NEVER, 0);
    struct checkpoint c;
    assert_int_equal(checkpoint_load(&c, out, NULL), OK);
    assert_true(is_consistent(&c));
    assert_int_equal(c.weights.tensors[0].dim[0], 8);       /* the new one */
    checkpoint_release(&c);
    assert_int_equal(count_entries(".tmp"), 0);
}

/* Signals and short writes are no errors. */
static void test_interrupted_calls(void **state)
{
    (void)state;
    start_over();
    fault_arm(NEVER, 0);
    must_save(6, 32, 1);
    const int calls = fault.calls;
    for (int call = 1; call <= calls; call++)
        for (int code = SHORT_WRITE; code <= EINTR; code += EINTR - SHORT_WRITE) {
            start_over();
            fault_arm(call, code);
            const enum status st = save(6, 32, 1, NULL);
            fault.at = NEVER;
            if (fault.log[call - 1] == 'w' || (fault.log[call - 1] == 's' && code == EINTR)) {
                assert_int_equal(st, OK);
                assert_int_equal(loaded_step(out), 6);
            }
            assert_all_whole();
        }
}

/* --- full disks -------------------------------------------------------------------------------------------------- */

/* A small save fits, a large one does not: it must say so, clean up and leave the small one as it was. Then a small
 * one fits again. */
static int fill_and_fail(const char *why)
{
    struct error err = {.text = ""};
    struct checkpoint c;
    if (save(1, 64, 1, &err) != OK)
        return 1;
    if (save(2, MOST, 1, &err) != CANNOT)
        return 2;
    if (!strstr(err.text, why) || !strstr(err.text, "weights.safetensors"))
        return 3;
    if (count_entries(".tmp") != 0 || count_entries("step-") != 1)
        return 4;
    if (checkpoint_load(&c, out, &err) != OK || c.step != 1 || !is_consistent(&c))
        return 5;
    checkpoint_release(&c);
    return save(3, 64, 1, &err) == OK ? CHILD_OK : 6;
}

static int on_tiny_disk(void)
{
    if (mkdir(out, 0777) < 0 || unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", out, "tmpfs", 0, "size=64k") < 0)
        return CHILD_SKIP;
    return fill_and_fail("No space left");
}

static int with_file_limit(void)
{
    const struct rlimit limit = {64 << 10, 64 << 10};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
        return CHILD_SKIP;
    return fill_and_fail("File too large");
}

static void test_full_disk(void **state)
{
    (void)state;
    const int rc = in_child(on_tiny_disk);
    if (rc == CHILD_SKIP)
        skip();                                 /* needs the right to mount; the file limit is tested anyway */
    assert_int_equal(rc, CHILD_OK);
}

static void test_file_limit(void **state)
{
    (void)state;
    assert_int_equal(in_child(with_file_limit), CHILD_OK);
}

/* --- kill -9 ----------------------------------------------------------------------------------------------------- */

/* Saves forever: new steps, now and then the same step again. Says once that it has begun. */
static void save_forever(int64_t step, int ready)
{
    for (;; step++) {
        if (save(step, 4096, 2, NULL) != OK || (step % 3 == 0 && save(step, 2048, 2, NULL) != OK))
            _exit(1);
        if (ready >= 0 && write(ready, "r", 1) != 1)
            _exit(1);
        ready = -1;
    }
}

/* Starts a saver, kills it after a delay, and returns whether it was caught in the middle of a save. */
static bool kill_a_saver(int64_t first_step, unsigned delay_us)
{
    int ready[2], rc;
    char byte;
    assert_int_equal(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0)
        save_forever(first_step, ready[1]);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    usleep(delay_us);
    kill(pid, SIGKILL);
    waitpid(pid, &rc, 0);
    assert_true(WIFSIGNALED(rc));
    return count_entries(".tmp") > 0;
}

static void test_kill(void **state)
{
    (void)state;
    int64_t newest = 0;
    uint32_t random = 1;
    int caught = 0;
    for (int i = 0; i < KILLS; i++) {
        random = random * 1664525u + 1013904223u;
        caught += kill_a_saver(newest + 1, (random >> 8) % KILL_DELAY_MAX_US);
        const int64_t step = loaded_step(out);
        assert_true(step > newest);
        newest = step;
        assert_all_whole();
    }
    print_message("%d of %d kills hit a save, %" PRId64 " steps\n", caught, KILLS, newest);
    assert_true(caught > 0);
    must_save(newest + 1, 8, 1);
    assert_int_equal(count_entries(".tmp"), 0);
    assert_int_equal(count_entries("step-"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_crash_anywhere_in_a_save),
        TEST(test_crash_anywhere_in_a_replacement),
        TEST(test_errors_anywhere_in_a_save),
        TEST(test_order_of_durability),
        TEST(test_file_system_without_exchange),
        TEST(test_interrupted_calls),
        TEST(test_full_disk),
        TEST(test_file_limit),
        TEST(test_kill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
