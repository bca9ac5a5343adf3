/* TensorBoard's event files, read back: frames, checksums by a bitwise CRC that shares nothing with ours, messages.
 * With HONE_KEEP_EVENTS=FOLDER a sample is left there for scripts/check-tensorboard.py. */
#include "support/check.h"

#include <dirent.h>
#include <endian.h>
#include <events.pb-c.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/fs.h"
#include "trace/trace.h"
#include "trace/trace_int.h"

static char root[64];

static int make_root(void **state)
{
    (void)state;
    strcpy(root, "/tmp/hone-events-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    return fs_remove_tree(root, NULL) == OK ? 0 : -1;
}

static uint32_t bitwise_crc(const uint8_t *data, size_t size)
{
    uint32_t crc = 0xFFFFFFFF;
    for (size_t i = 0; i < size * 8; i++) {
        const uint32_t bit = (crc ^ data[i / 8] >> i % 8) & 1;
        crc = crc >> 1 ^ (bit ? 0x82F63B78 : 0);
    }
    return crc ^ 0xFFFFFFFF;
}

static bool crc_matches(const char *stored, const char *data, size_t size)
{
    uint32_t word;
    memcpy(&word, stored, 4);
    const uint32_t rotated = le32toh(word) - 0xA282EAD8u;
    return (rotated >> 17 | rotated << 15) == bitwise_crc((const uint8_t *)data, size);
}

/* How many event files the folder has; the path of the last by name. */
static int event_files(const char *folder, char path[512])
{
    struct dirent **found;
    const int n = scandir(folder, &found, NULL, alphasort);
    int files = 0;
    for (int i = 0; i < n; i++) {
        if (found[i]->d_name[0] != '.') {
            files++;
            assert_true(strncmp(found[i]->d_name, "events.out.tfevents.", 20) == 0);
            snprintf(path, 512, "%s/%s", folder, found[i]->d_name);
        }
        free(found[i]);
    }
    free(found);
    return files;
}

/* Reads every event of the folder's only file; each is freed by the caller. Whatever is wrong with a frame fails. */
static int read_events(const char *folder, Tensorboard__Event *events[], int most)
{
    char path[512], *data;
    size_t size;
    struct error err;
    int n = 0;
    assert_int_equal(event_files(folder, path), 1);
    assert_ok(fs_read(path, &data, &size, 0, &err), err);
    for (size_t at = 0; at < size; n++) {
        uint64_t length;
        assert_true(n < most && size - at >= 16);
        memcpy(&length, data + at, 8);
        length = le64toh(length);
        assert_true(crc_matches(data + at + 8, data + at, 8));
        assert_true(length <= size - at - 16);
        assert_true(crc_matches(data + at + 12 + length, data + at + 12, length));
        events[n] = tensorboard__event__unpack(NULL, length, (const uint8_t *)data + at + 12);
        assert_non_null(events[n]);
        at += 16 + length;
    }
    free(data);
    return n;
}

static void free_events(Tensorboard__Event *events[], int n)
{
    for (int i = 0; i < n; i++)
        tensorboard__event__free_unpacked(events[i], NULL);
}

/* The one value of an event. */
static const Tensorboard__Summary__Value *value_of(const Tensorboard__Event *e)
{
    assert_int_equal(e->what_case, TENSORBOARD__EVENT__WHAT_SUMMARY);
    assert_int_equal(e->summary->n_value, 1);
    return e->summary->value[0];
}

static struct tensorboard *opened(char folder[96], const char *name)
{
    struct tensorboard *t = NULL;
    struct error err;
    snprintf(folder, 96, "%s/%s", root, name);
    assert_ok(tensorboard_open(&t, folder, &err), err);
    return t;
}

static void test_crc(void **state)
{
    (void)state;
    uint8_t data[300];
    assert_int_equal(crc32c("123456789", 9), 0xE3069283);
    assert_int_equal(crc32c("", 0), 0);
    memset(data, 0, 32);
    assert_int_equal(crc32c(data, 32), 0x8A9136AA);             /* RFC 3720 B.4 */
    for (int i = 0; i < 300; i++)
        data[i] = (uint8_t)(i * i * 7 + 13);
    for (size_t n = 0; n <= 300; n++)
        assert_int_equal(crc32c(data, n), bitwise_crc(data, n));
}

static void test_scalars(void **state)
{
    (void)state;
    char folder[96];
    struct error err;
    static const double values[] = {0.0, 2.5, -1e-30, 3e9, NAN, INFINITY};
    static const int64_t steps[] = {0, 1, 50, INT64_MAX, 7, 8};
    struct tensorboard *t = opened(folder, "a/scalars");
    for (int i = 0; i < 6; i++)
        tensorboard_scalar(t, "train/loss", steps[i], values[i]);
    assert_ok(tensorboard_close(t, &err), err);

    Tensorboard__Event *events[8];
    assert_int_equal(read_events(folder, events, 8), 7);
    assert_int_equal(events[0]->what_case, TENSORBOARD__EVENT__WHAT_FILE_VERSION);
    assert_string_equal(events[0]->file_version, "brain.Event:2");
    for (int i = 0; i < 6; i++) {
        const Tensorboard__Summary__Value *v = value_of(events[i + 1]);
        assert_string_equal(v->tag, "train/loss");
        assert_true(events[i + 1]->step == steps[i]);
        assert_near(events[i + 1]->wall_time, (double)time(NULL), 60, "the wall time");
        assert_int_equal(v->value_case, TENSORBOARD__SUMMARY__VALUE__VALUE_SIMPLE_VALUE);
        assert_true(isnan(values[i]) ? isnan(v->simple_value) : v->simple_value == (float)values[i]);
    }
    free_events(events, 7);
}

static void test_text(void **state)
{
    (void)state;
    char folder[96];
    struct error err;
    struct tensorboard *t = opened(folder, "text");
    tensorboard_text(t, "report", 12, "# H\xC3\xB6he\n\n| a | b |\n|---|---|\n");
    tensorboard_text(t, "empty", 0, "");
    tensorboard_close(t, &err);

    Tensorboard__Event *events[4];
    assert_int_equal(read_events(folder, events, 4), 3);
    const Tensorboard__Summary__Value *v = value_of(events[1]), *empty = value_of(events[2]);
    assert_true(events[1]->step == 12);
    assert_string_equal(v->tag, "report");
    assert_string_equal(v->metadata->plugin_data->plugin_name, "text");
    assert_int_equal(v->value_case, TENSORBOARD__SUMMARY__VALUE__VALUE_TENSOR);
    assert_int_equal(v->tensor->dtype, TENSORBOARD__DATA_TYPE__DT_STRING);
    assert_int_equal(v->tensor->shape->n_dim, 0);
    assert_int_equal(v->tensor->n_string_val, 1);
    assert_int_equal(v->tensor->string_val[0].len, 29);
    assert_memory_equal(v->tensor->string_val[0].data, "# H\xC3\xB6he\n\n| a | b |\n|---|---|\n", 29);
    assert_int_equal(empty->tensor->n_string_val, 1);
    assert_int_equal(empty->tensor->string_val[0].len, 0);
    free_events(events, 3);
}

/* A reader written in Python refuses a whole file for one string that is not UTF-8. */
static void test_hostile_tags(void **state)
{
    (void)state;
    char folder[96];
    struct tensorboard *t = opened(folder, "hostile");
    tensorboard_scalar(t, "a\xFF<b>", 1, 1);
    tensorboard_text(t, "\xC0", 1, "cut \xE2\x82");
    assert_int_equal(tensorboard_close(t, NULL), OK);

    Tensorboard__Event *events[4];
    assert_int_equal(read_events(folder, events, 4), 3);
    assert_string_equal(value_of(events[1])->tag, "a\xEF\xBF\xBD<b>");
    assert_string_equal(value_of(events[2])->tag, "\xEF\xBF\xBD");
    assert_int_equal(value_of(events[2])->tensor->string_val[0].len, 4 + 6);
    free_events(events, 3);
}

/* What is written can be read before the file is closed. */
static void test_flushed(void **state)
{
    (void)state;
    char folder[96];
    Tensorboard__Event *events[4];
    struct tensorboard *t = opened(folder, "flushed");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(read_events(folder, events, 4), i + 1);
        free_events(events, i + 1);
        tensorboard_scalar(t, "x", i, i);
    }
    assert_int_equal(tensorboard_close(t, NULL), OK);
}

/* Runs that begin in the same second have files of their own. */
static void test_same_folder(void **state)
{
    (void)state;
    char folder[96], path[512];
    struct tensorboard *t[5];
    for (int i = 0; i < 5; i++)
        t[i] = opened(folder, "same");
    assert_int_equal(event_files(folder, path), 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(tensorboard_close(t[i], NULL), OK);
}

static void limit_files(rlim_t bytes)
{
    const struct rlimit limit = {bytes, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_full_disk(void **state)
{
    (void)state;
    char folder[96], path[512];
    struct error err;
    struct tensorboard *t = opened(folder, "full"), *none = NULL;
    limit_files(200);
    for (int i = 0; i < 20; i++)
        tensorboard_scalar(t, "loss", i, i);            /* cannot fail here; is remembered */
    const enum status st = tensorboard_close(t, &err);
    limit_files(10);
    struct error open_err;
    char unopened[96];
    snprintf(unopened, sizeof unopened, "%s/unopened", root);
    const enum status open_st = tensorboard_open(&none, unopened, &open_err);
    limit_files(RLIM_INFINITY);

    assert_int_equal(st, CANNOT);
    assert_says(&err, "cannot write '", "events.out.tfevents.", "too large", NULL);
    assert_int_equal(open_st, CANNOT);
    assert_says(&open_err, "cannot write '", "unopened", NULL);
    assert_null(none);
    assert_int_equal(event_files(unopened, path), 0);
}

static void test_bad_folder(void **state)
{
    (void)state;
    struct tensorboard *t = NULL;
    struct error err;
    assert_int_equal(tensorboard_open(&t, "/dev/null/events", &err), BAD_INPUT);
    assert_says(&err, "/dev/null", NULL);
    assert_null(t);
    assert_int_equal(tensorboard_close(NULL, &err), OK);
}

static void test_sample(void **state)
{
    (void)state;
    struct tensorboard *t = NULL;
    const char *folder = getenv("HONE_KEEP_EVENTS");
    if (!folder)
        skip();
    assert_int_equal(tensorboard_open(&t, folder, NULL), OK);
    for (int i = 0; i <= 100; i += 10)
        tensorboard_scalar(t, "train/loss", i, 4.0 / (1 + i));
    tensorboard_scalar(t, "train/zero", 5, 0.0);
    tensorboard_scalar(t, "train/nan", 5, NAN);
    tensorboard_scalar(t, "bad\xFFtag", 5, 1);
    tensorboard_text(t, "report", 100, "# R\xC3\xA9sum\xC3\xA9\n\n| op | ms |\n|---|---|\n| matmul | 3 |\n");
    assert_int_equal(tensorboard_close(t, NULL), OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc),
        cmocka_unit_test(test_scalars),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_hostile_tags),
        cmocka_unit_test(test_flushed),
        cmocka_unit_test(test_same_folder),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_bad_folder),
        cmocka_unit_test(test_sample),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
