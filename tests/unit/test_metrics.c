/* What a log says of GPUs: that of one rank in fields of its own, those of several in a list and as curves of each. */
#include "support/check.h"

#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "core/fs.h"
#include "train/train_int.h"

static char root[64];

static int make_root(void **state)
{
    (void)state;
    strcpy(root, "/tmp/hone-metrics-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    return fs_remove_tree(root, NULL) == OK ? 0 : -1;
}

static json_t *logged(const struct gpu_state *gpus, int n)
{
    char path[128];
    struct metrics *m;
    struct error err;
    const struct train_log log = {.step = 7, .loss = 2, .steps_per_s = 1, .seconds = 7, .ranks = n ? n : 1, .gpus = gpus, .n_gpus = n};
    assert_ok(metrics_open(&m, root, -1, false, true, &err), err);
    metrics_log(m, &log);
    assert_ok(metrics_close(m, &err), err);
    snprintf(path, sizeof path, "%s/metrics.jsonl", root);
    json_t *line = json_load_file(path, 0, NULL);
    assert_non_null(line);
    return line;
}

/* The bytes of the event files: names of curves stand in them as they are. */
static bool has_curve(const char *name)
{
    char folder[96], path[400], *text;
    size_t size;
    bool found = false;
    snprintf(folder, sizeof folder, "%s/tensorboard", root);
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (*e->d_name == '.' || fs_read(path, &text, &size, 0, NULL) != OK)
            continue;
        found |= memmem(text, size, name, strlen(name)) != NULL;
        free(text);
    }
    closedir(dir);
    return found;
}

static void test_no_gpu(void **state)
{
    (void)state;
    json_t *line = logged(NULL, 0);
    assert_null(json_object_get(line, "gpu_busy_percent"));
    assert_null(json_object_get(line, "gpus"));
    assert_false(has_curve("gpu/"));
    json_decref(line);
}

static void test_one_gpu(void **state)
{
    (void)state;
    struct gpu_state gpu = gpu_unknown();
    gpu.busy_percent = 91;
    json_t *line = logged(&gpu, 1);
    assert_true(json_number_value(json_object_get(line, "gpu_busy_percent")) == 91);
    assert_true(json_is_null(json_object_get(line, "gpu_memory_mb")));          /* it does not tell */
    assert_null(json_object_get(line, "gpus"));
    assert_true(has_curve("gpu/busy_percent") && !has_curve("gpu/busy_percent/rank") && !has_curve("gpu/memory_mb"));
    json_decref(line);
}

static void test_a_gpu_of_each_rank(void **state)
{
    (void)state;
    struct gpu_state gpus[3] = {gpu_unknown(), gpu_unknown(), gpu_unknown()};   /* of rank 1 nothing is known */
    gpus[0].busy_percent = 91;
    gpus[2].busy_percent = 12;
    gpus[2].used_bytes = 3e9;
    json_t *line = logged(gpus, 3), *list = json_object_get(line, "gpus");
    assert_true(json_number_value(json_object_get(line, "gpu_busy_percent")) == 91);
    assert_int_equal(json_array_size(list), 3);
    assert_true(json_number_value(json_object_get(json_array_get(list, 0), "gpu_busy_percent")) == 91);
    assert_true(json_is_null(json_object_get(json_array_get(list, 1), "gpu_busy_percent")));
    assert_true(json_number_value(json_object_get(json_array_get(list, 2), "gpu_busy_percent")) == 12);
    assert_true(json_number_value(json_object_get(json_array_get(list, 2), "gpu_memory_mb")) == 3000);
    assert_true(has_curve("gpu/busy_percent/rank0") && has_curve("gpu/busy_percent/rank2") && has_curve("gpu/memory_mb/rank2"));
    assert_false(has_curve("/rank1"));
    json_decref(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_no_gpu, make_root, remove_root), cmocka_unit_test_setup_teardown(test_one_gpu, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_a_gpu_of_each_rank, make_root, remove_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
