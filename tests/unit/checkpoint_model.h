/* Shared by the checkpoint tests: a fresh folder for each test, and a small model whose every number tells the step it
 * was saved at. Included once by each test program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/fs.h"
#include "train/checkpoint.h"
#include "train/checkpoint_int.h"

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_root, remove_root)

static char root[64];               /* a fresh folder for each test */
static char out[128];               /* OUT: a run's folder in it, not made yet */

static int make_root(void **state)
{
    (void)state;
    strcpy(root, "/tmp/hone-checkpoint-XXXXXX");
    if (!mkdtemp(root))
        return -1;
    snprintf(out, sizeof out, "%s/run", root);
    return 0;
}

static int remove_root(void **state)
{
    (void)state;
    return fs_remove_tree(root, NULL) == OK ? 0 : -1;
}

static void assert_says(const struct error *err, const char *words)
{
    if (!strstr(err->text, words))
        fail_msg("the error '%s' does not say '%s'", err->text, words);
}

/* A path under OUT/checkpoints; good until the eighth call after it. */
static const char *at(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *at(const char *format, ...)
{
    static char paths[8][1024];
    static int next;
    char *path = paths[next++ % 8];
    const int n = snprintf(path, 1024, "%s/checkpoints/", out);
    va_list args;
    va_start(args, format);
    vsnprintf(path + n, 1024 - (size_t)n, format, args);
    va_end(args);
    return path;
}

enum { MOST = 1 << 16 };
static float numbers[MOST], moments[MOST];
static int32_t counter[1];

struct model {
    struct tensor weights[2], state[2];
};

static struct model model_at(int64_t step, int64_t size)
{
    for (int64_t i = 0; i < size; i++) {
        numbers[i] = (float)(step * 100 + i % 100);
        moments[i] = -(float)(step * 100 + i % 100);
    }
    counter[0] = (int32_t)step;
    return (struct model){
        .weights = {{"wte", TENSOR_F32, 2, {size / 2, 2}, numbers}, {"bias", TENSOR_F32, 1, {1}, numbers}},
        .state = {{"wte.m", TENSOR_F32, 1, {size}, moments}, {"step", TENSOR_I32, 0, {0}, counter}},
    };
}

static enum status save(int64_t step, int64_t size, int keep, struct error *err)
{
    char path[CONFIG_PATH_MAX];
    struct model m = model_at(step, size);
    json_t *extra = json_pack("{s:{s:f, s:i, s:s}}", "config", "lr", 0.1 + (double)step, "dim", 64, "name", "a \"b\"");
    const enum status st = checkpoint_save(path, out, step, m.weights, 2, m.state, 2, extra, keep, err);
    json_decref(extra);
    return st;
}

__attribute__((unused)) static void must_save(int64_t step, int64_t size, int keep)
{
    struct error err;
    if (save(step, size, keep, &err) != OK)
        fail_msg("%s", err.text);
}

static bool tensor_holds(const struct tensor *t, double base, double sign)
{
    if (!t || t->type != TENSOR_F32)
        return false;
    const float *x = t->data;
    for (size_t i = 0; i < tensor_bytes(t) / 4; i++)
        if (x[i] != (float)(sign * (base + (double)(i % 100))))
            return false;
    return true;
}

/* Whether every number, also those of the manifest, belongs to the step it claims. */
static bool is_consistent(const struct checkpoint *c)
{
    const double base = (double)c->step * 100;
    const struct tensor *step = safetensors_find(&c->state, "step");
    const json_t *config = json_object_get(c->manifest, "config");
    return c->weights.n == 2 && c->state.n == 2 && tensor_holds(safetensors_find(&c->weights, "wte"), base, 1) &&
           tensor_holds(safetensors_find(&c->weights, "bias"), base, 1) &&
           tensor_holds(safetensors_find(&c->state, "wte.m"), base, -1) && step && *(int32_t *)step->data == c->step &&
           json_integer_value(json_object_get(c->manifest, "step")) == c->step &&
           json_real_value(json_object_get(config, "lr")) == 0.1 + (double)c->step &&
           json_integer_value(json_object_get(config, "dim")) == 64 &&
           strcmp(json_string_value(json_object_get(config, "name")), "a \"b\"") == 0;
}

/* The step of what loads from the path; fails the test when it does not load or is not what was saved. */
__attribute__((unused)) static int64_t loaded_step(const char *path)
{
    struct checkpoint c;
    struct error err;
    if (checkpoint_load(&c, path, &err) != OK)
        fail_msg("%s", err.text);
    assert_true(is_consistent(&c));
    const int64_t step = c.step;
    checkpoint_release(&c);
    return step;
}

__attribute__((unused)) static int count_entries(const char *prefix)
{
    int n = 0;
    DIR *dir = opendir(at("."));
    for (struct dirent *e; dir && (e = readdir(dir));)
        n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    if (dir)
        closedir(dir);
    return n;
}

/* Runs `body` in a child, so that what it does to its process and mounts ends with it. Returns what it returns. */
__attribute__((unused)) static int in_child(int (*body)(void))
{
    int rc = -1;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0)
        _exit(body());
    waitpid(pid, &rc, 0);
    return WIFEXITED(rc) ? WEXITSTATUS(rc) : 1000 + rc;
}

enum { CHILD_OK = 0, CHILD_SKIP = 77 };
