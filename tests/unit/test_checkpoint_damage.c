/* Damaged checkpoints: any cut, flipped bit, missing file or lie is refused by name, or does no harm. */
#include "unit/checkpoint_model.h"

#include <fcntl.h>
#include <xxhash.h>

static void overwrite(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static const char *const files[] = {"weights.safetensors", "state.safetensors", "manifest.json"};
enum { N_FILES = 3 };

/* Loads what was damaged: false when refused with an error that names the file, true when equal data came back. */
static bool survives(const char *file)
{
    struct checkpoint c;
    struct error err = {.text = ""};
    const enum status st = checkpoint_load(&c, out, &err);
    if (st != OK) {
        assert_int_equal(st, BAD_INPUT);
        assert_says(&err, file);
        return false;
    }
    assert_true(c.step == 6 && is_consistent(&c));
    checkpoint_release(&c);
    return true;
}

static void test_truncated(void **state)
{
    (void)state;
    must_save(6, 32, 1);
    for (int k = 0; k < N_FILES; k++) {
        char path[1024], *data;
        size_t size;
        snprintf(path, sizeof path, "%s", at("step-00000006/%s", files[k]));
        assert_int_equal(fs_read(path, &data, &size, 0, NULL), OK);
        for (size_t n = size; n-- > 0; n -= n > 400 ? size / 200 : 0) {
            assert_int_equal(truncate(path, (off_t)n), 0);
            if (survives(files[k]))
                assert_true(data[n] == '\n' && n + 1 == size);     /* only the newline at the end can be missed */
        }
        overwrite(path, data, size);
        assert_true(survives(files[k]));
        free(data);
    }
}

static void test_bit_flips(void **state)
{
    (void)state;
    must_save(6, 32, 1);
    for (int k = 0; k < N_FILES; k++) {
        char path[1024], *data;
        size_t size;
        snprintf(path, sizeof path, "%s", at("step-00000006/%s", files[k]));
        assert_int_equal(fs_read(path, &data, &size, 0, NULL), OK);
        const bool is_json = k == 2;
        const int fd = open(path, O_WRONLY | O_CLOEXEC);
        for (size_t bit = 0; bit < size * 8; bit += is_json ? 1 : 3) {
            const char flipped = (char)(data[bit / 8] ^ 1 << bit % 8);
            assert_int_equal(pwrite(fd, &flipped, 1, (off_t)(bit / 8)), 1);
            if (survives(files[k]) && !is_json)
                fail_msg("bit %zu of %s was flipped and it loads", bit, files[k]);
            assert_int_equal(pwrite(fd, &data[bit / 8], 1, (off_t)(bit / 8)), 1);
        }
        close(fd);
        free(data);
    }
    assert_true(survives(""));
}

static void test_missing_and_longer(void **state)
{
    (void)state;
    struct error err;
    struct checkpoint c;
    must_save(6, 32, 1);
    for (int k = 0; k < N_FILES; k++) {
        char path[1024], away[1024];
        snprintf(path, sizeof path, "%s", at("step-00000006/%s", files[k]));
        snprintf(away, sizeof away, "%s", at("away"));
        assert_int_equal(rename(path, away), 0);
        assert_int_equal(checkpoint_load(&c, out, &err), BAD_INPUT);
        assert_says(&err, files[k]);
        assert_says(&err, "No such file");
        assert_int_equal(rename(away, path), 0);
    }
    char *data;
    size_t size;
    assert_int_equal(fs_read(at("step-00000006/weights.safetensors"), &data, &size, 0, NULL), OK);
    overwrite(at("step-00000006/weights.safetensors"), data, size + 1);      /* with the NUL after it */
    free(data);
    assert_int_equal(checkpoint_load(&c, out, &err), BAD_INPUT);
    assert_says(&err, "weights.safetensors' is too long: it is");
    assert_int_equal(truncate(at("step-00000006/weights.safetensors"), (off_t)size - 3), 0);
    assert_int_equal(checkpoint_load(&c, out, &err), BAD_INPUT);
    char says[128];
    snprintf(says, sizeof says, "is truncated: it is %zu bytes, the manifest says %zu", size - 3, size);
    assert_says(&err, says);
}

static void test_damage_is_named(void **state)
{
    (void)state;
    struct error err;
    struct checkpoint c;
    char *data;
    size_t size;
    must_save(6, 32, 1);
    assert_int_equal(fs_read(at("step-00000006/state.safetensors"), &data, &size, 0, NULL), OK);
    data[size - 1] ^= 1;
    overwrite(at("step-00000006/state.safetensors"), data, size);
    free(data);
    assert_int_equal(checkpoint_load(&c, out, &err), BAD_INPUT);
    assert_says(&err, "state.safetensors' is damaged: its checksum is");
    overwrite(at("step-00000006/manifest.json"), "{\n  \"step\": oops\n}", 18);
    assert_int_equal(checkpoint_load(&c, out, &err), BAD_INPUT);
    assert_says(&err, "manifest.json' is not JSON at line 2 column 14");
}

/* A file that lies, with a manifest that vouches for it: the layout is checked all the same. */
static void test_lies_with_a_true_checksum(void **state)
{
    (void)state;
    static const char *const headers[] = {
        ("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}"),
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387906],\"data_offsets\":[0,8]}}",
    };
    static const char *const says[] = {"overlaps", "belong to no tensor", "truncated or damaged", "dimension 0",
                                       "too large"};
    must_save(6, 32, 1);
    struct checkpoint c;
    assert_int_equal(checkpoint_load(&c, out, NULL), OK);
    struct checkpoint_manifest m = {.step = 6, .files = {[CHECKPOINT_STATE] = {c.state.size, c.state.checksum}}};
    checkpoint_release(&c);
    for (int i = 0; i < 5; i++) {
        struct error err;
        char file[512] = "", *text;
        const uint64_t length = strlen(headers[i]);
        memcpy(file, &length, 8);
        memcpy(file + 8, headers[i], length);
        m.files[CHECKPOINT_WEIGHTS].bytes = 8 + length + 8;
        m.files[CHECKPOINT_WEIGHTS].xxh3 = XXH3_64bits(file, 8 + length + 8);
        overwrite(at("step-00000006/weights.safetensors"), file, 8 + length + 8);
        assert_int_equal(checkpoint_manifest_print(&text, &m, NULL, NULL), OK);
        overwrite(at("step-00000006/manifest.json"), text, strlen(text));
        free(text);
        assert_int_equal(checkpoint_load(&c, out, &err), BAD_INPUT);
        assert_says(&err, says[i]);
        assert_says(&err, "weights.safetensors");
    }
}

/* The name that a folder has and the manifest in it must agree; a folder that its user named otherwise has none to compare. */
static void test_step_and_name(void **state)
{
    (void)state;
    struct checkpoint c;
    struct error err;
    char other[1024], mine[1024];
    must_save(6, 32, 1);
    snprintf(other, sizeof other, "%s", at("step-00000007"));
    snprintf(mine, sizeof mine, "%s", at("best"));
    assert_int_equal(rename(at("step-00000006"), other), 0);
    assert_int_equal(checkpoint_load(&c, other, &err), BAD_INPUT);
    assert_says(&err, "step-00000007': the manifest is of step 6, and the folder's name says 7");
    assert_int_equal(checkpoint_load(&c, out, &err), BAD_INPUT);
    assert_int_equal(rename(other, mine), 0);
    assert_int_equal(loaded_step(mine), 6);
}

/* What cannot be looked at is not "no checkpoint". */
static void test_cannot_look(void **state)
{
    (void)state;
    struct checkpoint c;
    struct error err;
    char path[CONFIG_PATH_MAX];
    must_save(6, 32, 1);
    assert_int_equal(fs_make_dirs(at("best"), NULL), OK);
    assert_int_equal(symlink("manifest.json", at("best/manifest.json")), 0);
    assert_int_equal(checkpoint_load(&c, at("best"), &err), BAD_INPUT);
    assert_says(&err, "cannot look at");
    assert_says(&err, "Too many levels of symbolic links");
    assert_int_equal(symlink("step-00000009", at("step-00000009")), 0);
    assert_int_equal(checkpoint_newest(path, out, &err), BAD_INPUT);
    assert_says(&err, "step-00000009': Too many levels of symbolic links");
    assert_int_equal(unlink(at("step-00000009")), 0);
    assert_int_equal(loaded_step(out), 6);
}

#define FILE_OK "{\"bytes\": 1, \"xxh3\": \"0000000000000000\"}"
#define BEGIN   "{\"format\": \"hone-checkpoint\", \"version\": 1, \"step\": 4"

static void test_manifest_fields(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"", "is not JSON at line 1"},
        {"[1]", "format is not \"hone-checkpoint\""},
        {"{}", "format is not"},
        {"{\"format\": \"other\"}", "format is not"},
        {"{\"format\": \"hone-checkpoint\"}", "version is"},
        {"{\"format\": \"hone-checkpoint\", \"version\": 2}", "version is 2; this hone reads version 1"},
        {"{\"format\": \"hone-checkpoint\", \"version\": 1}", "step is not"},
        {"{\"format\": \"hone-checkpoint\", \"version\": 1, \"step\": -1}", "step is not"},
        {"{\"format\": \"hone-checkpoint\", \"version\": 1, \"step\": 1.5}", "step is not"},
        {"{\"format\": \"hone-checkpoint\", \"version\": 1, \"step\": 99999999999999999999}", "is not JSON"},
        {"{\"format\": \"hone-checkpoint\", \"version\": 1, \"step\": 9223372036854775807}",
         "step is 9223372036854775807; at most 2147483647 steps can be counted"},
        {"{\"format\": \"hone-checkpoint\", \"format\": \"x\"}", "duplicate"},
        {BEGIN "}", "does not list 'weights.safetensors'"},
        {BEGIN ", \"files\": 3}", "does not list 'weights.safetensors'"},
        {BEGIN ", \"files\": {\"weights.safetensors\": {}}}", "bytes of 'weights.safetensors'"},
        {BEGIN ", \"files\": {\"weights.safetensors\": {\"bytes\": -1}}}", "bytes of 'weights.safetensors'"},
        {BEGIN ", \"files\": {\"weights.safetensors\": {\"bytes\": 1}}}", "xxh3 of 'weights.safetensors'"},
        {BEGIN ", \"files\": {\"weights.safetensors\": {\"bytes\": 1, \"xxh3\": \"00000000000000AB\"}}}", "xxh3 of"},
        {BEGIN ", \"files\": {\"weights.safetensors\": {\"bytes\": 1, \"xxh3\": \"0x00000000000000\"}}}", "xxh3 of"},
        {BEGIN ", \"files\": {\"weights.safetensors\": " FILE_OK "}}", "does not list 'state.safetensors'"},
        {BEGIN ", \"files\": {\"weights.safetensors\": " FILE_OK ", \"state.safetensors\": " FILE_OK "}}",
         "xxh3 is not 16"},
        {BEGIN ", \"files\": {\"weights.safetensors\": " FILE_OK ", \"state.safetensors\": " FILE_OK
               "}, \"xxh3\": \"0000000000000000\"}", "checksum mismatch"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct error err = {.text = ""};
        struct checkpoint_manifest m = {.step = -9};
        assert_int_equal(checkpoint_manifest_parse(&m, "m.json", texts[i][0], strlen(texts[i][0]), &err), BAD_INPUT);
        assert_says(&err, texts[i][1]);
        assert_says(&err, "'m.json'");
        assert_int_equal(m.step, -9);
    }
}

static void test_nothing_to_load(void **state)
{
    (void)state;
    struct error err;
    struct checkpoint c;
    char path[CONFIG_PATH_MAX];
    assert_int_equal(checkpoint_load(&c, out, &err), BAD_INPUT);
    assert_says(&err, "no checkpoint at");
    assert_int_equal(checkpoint_newest(path, out, &err), BAD_INPUT);
    assert_says(&err, "no checkpoint");
    assert_int_equal(fs_make_dirs(at(".tmp-step-00000001-1"), NULL), OK);
    assert_int_equal(checkpoint_load(&c, out, &err), BAD_INPUT);
    assert_says(&err, "no checkpoint in");
    assert_int_equal(checkpoint_newest(path, out, &err), BAD_INPUT);
    assert_int_equal(fs_write_synced(at("step-00000004"), "a file", 6, NULL), OK);
    assert_int_equal(checkpoint_newest(path, out, &err), BAD_INPUT);
    assert_int_equal(checkpoint_load(&c, at("step-00000004"), &err), BAD_INPUT);
    assert_says(&err, "is a file; expected");
    assert_int_equal(fs_make_dirs(at("step-00000003"), NULL), OK);
    assert_int_equal(checkpoint_load(&c, at("step-00000003"), &err), BAD_INPUT);
    assert_says(&err, "step-00000003/manifest.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_truncated),
        TEST(test_bit_flips),
        TEST(test_missing_and_longer),
        TEST(test_damage_is_named),
        TEST(test_lies_with_a_true_checksum),
        TEST(test_step_and_name),
        TEST(test_cannot_look),
        TEST(test_manifest_fields),
        TEST(test_nothing_to_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
