/* A save while there is no memory: whatever small allocation fails, the checkpoint is whole and holds everything, or there is
 * none, the one before it is still there, and the error says why. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/json_memory.h"
#include "support/check.h"
#include "train/train_int.h"

/* Where sanitizers make it slow, a sample. */
#ifdef HONE_SANITIZED
enum { EVERY = 7 };
#else
enum { EVERY = 1 };
#endif

static int calls, fail_at;          /* allocations of jansson, counted from 1; 0: none fails; -1: all */

static void *allocate(size_t size) { return ++calls == fail_at || fail_at < 0 ? NULL : malloc(size); }

/* The machine does not lose power in a test: there is no need to wait for the disk. */
int fsync(int fd) { return fcntl(fd, F_GETFD) < 0 ? -1 : 0; }

static char out[64];
static struct model_run run;

static int open_run(void **state)
{
    (void)state;
    static const char text[] = "model: {arch: gpt, dim: 8, layers: 1, heads: 1, seq: 8}\ndata: {chars: 5000, workers: 0}\n"
                               "train: {batch_size: 1, steps: 9}\nthreads: 1\nbackend: {kernels: reference}\neval: {every: 0}\n";
    struct config c;
    struct error err;
    struct dataset *d;
    const bool memory = access("/dev/shm", W_OK | X_OK) == 0;   /* a disk is slow at a thousand saves */
    strcpy(out, memory ? "/dev/shm/hone-save-XXXXXX" : "/tmp/hone-save-XXXXXX");
    if (!mkdtemp(out) || config_parse(&c, "t.yaml", text, sizeof text - 1, NULL, 0, &err) != OK ||
        dataset_open(&d, &c, &err) != OK || model_run_open(&run, &c, d, &err) != OK)
        return -1;
    json_memory_watch(allocate, NULL);
    return 0;
}

static int close_run(void **state)
{
    (void)state;
    model_run_close(&run);
    return fs_remove_tree(out, NULL) == OK ? 0 : -1;
}

static const struct carried carried = {.since_log = {1.0 / 3, 4, 3}, .since_epoch = {2.0 / 3, 9, 8}, .skipped = 1, .owes = true};

/* Loads for generation and for a resume, with all that was carried. */
static void assert_whole(int64_t step)
{
    struct error err = {.text = ""};
    struct carried back = {0};
    char path[CONFIG_PATH_MAX];
    int64_t is;
    if (state_resume(&run, out, &is, &back, path, &err) != OK)
        fail_msg("step %lld: %s", (long long)step, err.text);
    assert_int_equal(is, step);
    assert_memory_equal(&back, &carried, sizeof back);
}

static int count_temporaries(void)
{
    char path[96];
    int n = 0;
    snprintf(path, sizeof path, "%s/checkpoints", out);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));)
        n += e->d_name[0] == '.' && e->d_name[1] == 't';
    closedir(dir);
    return n;
}

static void test_every_allocation(void **state)
{
    (void)state;
    char path[CONFIG_PATH_MAX];
    struct error err;
    int failed = 0;
    int64_t newest = 1;
    run.config.checkpoint.keep = 1;
    assert_ok(state_save(&run, out, newest, &carried, path, &err), err);
    for (int n = 1;; n += EVERY) {
        calls = 0;
        fail_at = n;
        const enum status st = state_save(&run, out, newest + 1, &carried, path, &err);
        const bool reached = calls >= n;
        fail_at = 0;
        if (st == OK)
            newest++;
        else if (st != CANNOT)
            fail_msg("allocation %d: status %d: %s", n, st, err.text);
        else
            assert_says(&err, "memory", NULL);
        failed += st != OK;
        assert_int_equal(count_temporaries(), 0);
        assert_whole(newest);
        if (!reached)
            break;
    }
    print_message("%d allocations failed a save\n", failed);
    assert_true(failed * EVERY > 100);          /* the calls are really counted */
}

/* Reading has a reserve; what fails beyond it is said to be memory, and never damage. */
static enum status load_short(int fail, int *most)
{
    struct checkpoint c;
    struct error err = {.text = ""};
    calls = 0;
    fail_at = fail;
    const enum status st = checkpoint_load(&c, out, &err);
    *most = calls;
    fail_at = 0;
    if (st == OK) {
        assert_true(json_is_string(json_object_get(c.manifest, "config")) && c.weights.n > 5 && c.state.n > 5);
        checkpoint_release(&c);
    } else {
        assert_int_equal(st, CANNOT);
        assert_says(&err, "out of memory", NULL);
    }
    return st;
}

static void test_every_allocation_of_a_load(void **state)
{
    (void)state;
    int most, loaded = 0, n = 1;
    do
        loaded += load_short(n, &most) == OK;
    while ((n += EVERY) <= most + 1);
    assert_true(most > 100 && loaded * EVERY > 100);
    assert_int_equal(load_short(-1, &most), CANNOT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation), cmocka_unit_test(test_every_allocation_of_a_load)};
    return cmocka_run_group_tests(tests, open_run, close_run);
}
