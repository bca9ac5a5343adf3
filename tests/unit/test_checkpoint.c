/* Checkpoints: what is saved comes back equal, the right ones are kept, and what must not be saved is refused. */
#include "unit/checkpoint_model.h"

#include <math.h>

/* --- saving and loading ------------------------------------------------------------------------------------------ */

static void test_round_trip(void **state)
{
    (void)state;
    struct checkpoint c;
    char path[CONFIG_PATH_MAX];
    must_save(500, 64, 3);
    assert_int_equal(checkpoint_newest(path, out, NULL), OK);
    assert_string_equal(path, at("step-00000500"));
    assert_int_equal(loaded_step(path), 500);
    assert_int_equal(loaded_step(out), 500);
    assert_int_equal(loaded_step(at(".")), 500);
    assert_int_equal(loaded_step(at("step-00000500//")), 500);

    assert_int_equal(checkpoint_load(&c, out, NULL), OK);
    assert_string_equal(c.path, path);
    assert_string_equal(json_string_value(json_object_get(c.manifest, "format")), "hone-checkpoint");
    assert_int_equal(json_integer_value(json_object_get(c.manifest, "version")), 1);
    checkpoint_release(&c);
    assert_null(c.manifest);
}

static void test_returned_path_and_no_extra(void **state)
{
    (void)state;
    char path[CONFIG_PATH_MAX];
    struct checkpoint c;
    struct model m = model_at(123456789, 8);
    assert_int_equal(checkpoint_save(path, out, 123456789, m.weights, 2, NULL, 0, NULL, 1, NULL), OK);
    assert_string_equal(path, at("step-123456789"));
    assert_int_equal(checkpoint_load(&c, path, NULL), OK);
    assert_int_equal(c.state.n, 0);
    checkpoint_release(&c);
}

/* The caller's fields may not take the place of ours. */
static void test_reserved_fields(void **state)
{
    (void)state;
    char path[CONFIG_PATH_MAX];
    struct checkpoint c;
    struct model m = model_at(3, 8);
    json_t *extra = json_pack("{s:i, s:s, s:s, s:i}", "step", 77, "xxh3", "x", "format", "y", "mine", 5);
    assert_int_equal(checkpoint_save(path, out, 3, m.weights, 2, m.state, 2, extra, 1, NULL), OK);
    assert_int_equal(checkpoint_load(&c, out, NULL), OK);
    assert_int_equal(c.step, 3);
    assert_int_equal(json_integer_value(json_object_get(c.manifest, "mine")), 5);
    assert_int_equal(json_object_size(extra), 4);
    checkpoint_release(&c);
    json_decref(extra);
}

static void test_keep(void **state)
{
    (void)state;
    for (int64_t step = 1; step <= 6; step++)
        must_save(step * 10, 8, 3);
    assert_int_equal(count_entries("step-"), 3);
    assert_int_equal(count_entries(".tmp"), 0);
    for (int64_t step = 4; step <= 6; step++)
        assert_int_equal(loaded_step(at("step-%08" PRId64, step * 10)), step * 10);
    must_save(100000000, 8, 2);                 /* nine digits: newer by number, not by spelling */
    assert_int_equal(count_entries("step-"), 2);
    assert_int_equal(loaded_step(out), 100000000);
    for (int64_t step = 200; step < 205; step++)
        must_save(step, 8, 0);
    assert_int_equal(count_entries("step-"), 7);
}

static void test_set_back_run_keeps_what_it_saves(void **state)
{
    (void)state;
    must_save(900, 8, 1);
    must_save(300, 8, 1);
    assert_int_equal(loaded_step(at("step-00000300")), 300);
    assert_int_equal(loaded_step(at("step-00000900")), 900);
    must_save(400, 8, 1);
    assert_false(fs_exists(at("step-00000300")));
    assert_int_equal(count_entries("step-"), 2);
}

static void test_keep_spares_the_users_folders(void **state)
{
    (void)state;
    static const char *const theirs[] = {"step-00000001.bak", "step-1",       "step-",
                                         "step-0000001x",     "step--0000001", "best"};
    const int n = sizeof theirs / sizeof *theirs;
    for (int i = 0; i < n; i++)
        assert_int_equal(fs_make_dirs(at("%s/weights", theirs[i]), NULL), OK);
    for (int64_t step = 2; step < 6; step++)
        must_save(step, 8, 1);
    for (int i = 0; i < n; i++)
        assert_true(fs_exists(at("%s/weights", theirs[i])));
    assert_int_equal(loaded_step(out), 5);
}

static void test_replace(void **state)
{
    (void)state;
    struct checkpoint c;
    char path[CONFIG_PATH_MAX];
    must_save(7, 64, 3);
    struct model m = model_at(8, 16);           /* other numbers, other size, same step */
    assert_int_equal(checkpoint_save(path, out, 7, m.weights, 2, m.state, 2, NULL, 3, NULL), OK);
    assert_int_equal(count_entries("step-"), 1);
    assert_int_equal(count_entries(".tmp"), 0);
    assert_int_equal(checkpoint_load(&c, out, NULL), OK);
    assert_true(tensor_holds(safetensors_find(&c.weights, "wte"), 800, 1));
    checkpoint_release(&c);
}

static void test_replace_without_exchange(void **state)
{
    (void)state;
    struct error err;
    char from[1024], to[1024], aside[1024];
    struct checkpoint c;
    must_save(2, 16, 0);
    snprintf(from, sizeof from, "%s", at("new"));
    snprintf(to, sizeof to, "%s", at("step-00000002"));
    assert_int_equal(rename(to, from), 0);
    must_save(2, 8, 0);
    snprintf(aside, sizeof aside, "%s", at(".tmp-step-00000002-0"));
    assert_int_equal(checkpoint_replace_aside(at("missing"), to, aside, &err), BAD_INPUT);
    assert_int_equal(loaded_step(to), 2);       /* put back */
    assert_int_equal(checkpoint_replace_aside(from, to, aside, &err), OK);
    assert_int_equal(loaded_step(to), 2);
    assert_int_equal(checkpoint_load(&c, to, NULL), OK);
    assert_int_equal(c.weights.tensors[0].dim[0], 8);   /* the new one */
    checkpoint_release(&c);
    assert_int_equal(loaded_step(aside), 2);
    must_save(3, 8, 0);
    assert_false(fs_exists(aside));             /* swept */
}

static int64_t dead_pid(void)
{
    const pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
    return pid;
}

static void test_stale_temporaries(void **state)
{
    (void)state;
    char stale[1024], own[1024], alive[1024];
    snprintf(stale, sizeof stale, "%s", at(".tmp-step-00000009-%" PRId64, dead_pid()));
    snprintf(own, sizeof own, "%s", at(".tmp-step-00000008-%d", (int)getpid()));
    snprintf(alive, sizeof alive, "%s", at(".tmp-step-00000009-%d", (int)getppid()));
    const char *const all[] = {stale, own, alive, at(".tmp-other"), at(".tmp-step-9-1")};
    for (int i = 0; i < 5; i++)
        assert_int_equal(fs_make_dirs(all[i], NULL), OK);
    assert_int_equal(fs_write_synced(at(".tmp-step-00000008-%d/weights.safetensors", (int)getpid()), "x", 1, NULL), OK);
    struct model m = model_at(1, 8);
    numbers[3] = NAN;
    char path[CONFIG_PATH_MAX];
    assert_int_equal(checkpoint_save(path, out, 1, m.weights, 2, m.state, 2, NULL, 1, NULL), BAD_INPUT);
    assert_true(fs_exists(stale));              /* swept only when a save succeeds */
    must_save(1, 8, 1);
    assert_false(fs_exists(stale));
    assert_false(fs_exists(own));
    assert_true(fs_exists(alive));
    assert_true(fs_exists(at(".tmp-other")));
    assert_true(fs_exists(at(".tmp-step-9-1")));
    assert_int_equal(loaded_step(out), 1);
}

/* --- saves that must fail ---------------------------------------------------------------------------------------- */

static void test_not_finite(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY, -NAN};
    char path[CONFIG_PATH_MAX];
    struct error err;
    uint16_t half[3] = {0x3f80, 0xff80, 0};
    for (int i = 0; i < 4; i++) {
        struct model m = model_at(5, 64);
        numbers[63] = bad[i];
        assert_int_equal(checkpoint_save(path, out, 5, m.weights, 2, m.state, 2, NULL, 1, &err), BAD_INPUT);
        assert_says(&err, "tensor 'wte' of the weights is NaN or infinite at element 63");
        m = model_at(5, 64);
        moments[0] = bad[i];
        assert_int_equal(checkpoint_save(path, out, 5, m.weights, 2, m.state, 2, NULL, 1, &err), BAD_INPUT);
        assert_says(&err, "tensor 'wte.m' of the state");
    }
    const struct tensor t = {"half", TENSOR_BF16, 1, {3}, half};
    assert_int_equal(checkpoint_save(path, out, 5, &t, 1, NULL, 0, NULL, 1, &err), BAD_INPUT);
    assert_says(&err, "'half' of the weights is NaN or infinite at element 1");
    assert_false(fs_exists(out));
}

static void test_extremes_are_finite(void **state)
{
    (void)state;
    char path[CONFIG_PATH_MAX];
    float f[4] = {3.4028235e38f, -3.4028235e38f, 1e-45f, -0.0f};
    int32_t i[2] = {0x7f800000, -1};            /* bits of an infinity, but whole numbers */
    const struct tensor t[] = {{"f", TENSOR_F32, 1, {4}, f}, {"i", TENSOR_I32, 1, {2}, i}};
    assert_int_equal(checkpoint_save(path, out, 5, t, 2, NULL, 0, NULL, 1, NULL), OK);
}

static void test_bad_tensors_leave_nothing(void **state)
{
    (void)state;
    char path[CONFIG_PATH_MAX];
    struct error err;
    must_save(4, 8, 1);
    struct model m = model_at(5, 8);
    m.state[1].name = m.state[0].name;
    assert_int_equal(checkpoint_save(path, out, 5, m.weights, 2, m.state, 2, NULL, 1, &err), BAD_INPUT);
    assert_says(&err, "state.safetensors': two tensors are named 'wte.m'");
    assert_int_equal(count_entries(".tmp"), 0);
    assert_int_equal(loaded_step(out), 4);
}

static void test_blocked_paths(void **state)
{
    (void)state;
    struct error err;
    char path[CONFIG_PATH_MAX], longest[1100];
    struct model m = model_at(1, 8);
    assert_int_equal(fs_write_synced(out, "a file", 6, NULL), OK);
    assert_int_equal(save(1, 8, 1, &err), BAD_INPUT);
    assert_says(&err, "run");
    assert_int_equal(remove(out), 0);

    assert_int_equal(fs_make_dirs(at("."), NULL), OK);
    assert_int_equal(fs_write_synced(at("step-00000001"), "a file", 6, NULL), OK);
    assert_int_equal(save(1, 8, 1, &err), BAD_INPUT);
    assert_says(&err, "step-00000001");
    assert_int_equal(count_entries(".tmp"), 0);
    assert_true(fs_exists(at("step-00000001")));

    for (size_t length = 900; length < sizeof longest; length += 10) {
        memset(longest, 'd', length);
        longest[length] = '\0';
        assert_int_equal(checkpoint_save(path, longest, 1, m.weights, 2, m.state, 2, NULL, 1, &err), BAD_INPUT);
        assert_int_equal(checkpoint_load(&(struct checkpoint){0}, longest, &err), BAD_INPUT);
    }
}

static int save_without_permission(void)
{
    struct error err = {.text = ""};
    if (geteuid() == 0 && seteuid(65534) < 0)
        return CHILD_SKIP;
    if (save(2, 8, 1, &err) != BAD_INPUT)
        return 1;
    return strstr(err.text, "Permission denied") && strstr(err.text, "checkpoints") ? CHILD_OK : 2;
}

static void test_unwritable_folder(void **state)
{
    (void)state;
    must_save(1, 8, 1);
    assert_int_equal(chmod(at("."), 0555), 0);
    assert_int_equal(chmod(out, 0755), 0);
    assert_int_equal(chmod(root, 0755), 0);
    const int rc = in_child(save_without_permission);
    assert_int_equal(chmod(at("."), 0755), 0);
    if (rc == CHILD_SKIP)
        skip();
    assert_int_equal(rc, CHILD_OK);
    assert_int_equal(count_entries(".tmp"), 0);
    assert_int_equal(loaded_step(out), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_round_trip),
        TEST(test_returned_path_and_no_extra),
        TEST(test_reserved_fields),
        TEST(test_keep),
        TEST(test_set_back_run_keeps_what_it_saves),
        TEST(test_keep_spares_the_users_folders),
        TEST(test_replace),
        TEST(test_replace_without_exchange),
        TEST(test_stale_temporaries),
        TEST(test_not_finite),
        TEST(test_extremes_are_finite),
        TEST(test_bad_tensors_leave_nothing),
        TEST(test_blocked_paths),
        TEST(test_unwritable_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
