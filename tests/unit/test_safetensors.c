/* safetensors: what is written comes back, Python's files are understood, and no lie in a file gets through. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/fs.h"
#include "core/safetensors.h"

static char root[64];
static char path[PATH_MAX];         /* a file in it */

static int make_root(void **state)
{
    (void)state;
    strcpy(root, "/tmp/hone-safetensors-XXXXXX");
    if (!mkdtemp(root))
        return -1;
    snprintf(path, sizeof path, "%s/file.safetensors", root);
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

/* --- writing and reading back ----------------------------------------------------------------------------------- */

static void assert_tensor_equal(const struct tensor *a, const struct tensor *b)
{
    assert_non_null(a);
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->rank, b->rank);
    for (int i = 0; i < a->rank; i++)
        assert_int_equal(a->dim[i], b->dim[i]);
    if (tensor_bytes(a))
        assert_memory_equal(a->data, b->data, tensor_bytes(a));
}

static void test_round_trip(void **state)
{
    (void)state;
    static float f[24] = {1.5f, -0.0f, 3e38f, 1e-45f};
    static uint16_t h[3] = {0x3f80, 0xc000, 0x4049};
    static int32_t i[4] = {INT32_MIN, -1, 0, INT32_MAX};
    static const char *const metadata[] = {"format", "pt", "quote \"\\\n", "\xc3\xa4", NULL};
    const struct tensor tensors[] = {
        {"half", TENSOR_BF16, 1, {3}, h},       /* 6 bytes: what follows in the file would not be aligned to 4 */
        {"matrix", TENSOR_F32, 2, {4, 6}, f},
        {"ids", TENSOR_I32, 2, {2, 2}, i},
        {"scalar", TENSOR_F32, 0, {0}, f + 2},
        {"empty", TENSOR_F32, 2, {0, 7}, NULL},
        {"rank8", TENSOR_F32, 8, {1, 2, 1, 3, 1, 1, 2, 2}, f},
        {"odd \"name\" \xc3\xbc", TENSOR_BF16, 1, {2}, h},
    };
    const int n = sizeof tensors / sizeof *tensors;
    uint64_t checksum;
    struct safetensors s;
    assert_int_equal(safetensors_write(path, tensors, n, metadata, &checksum, NULL), OK);
    assert_int_equal(safetensors_read(&s, path, NULL), OK);
    assert_int_equal(s.n, n);
    assert_true(s.checksum == checksum);
    assert_true(XXH3_64bits(s.bytes, s.size) == checksum);
    for (int k = 0; k < n; k++) {
        const struct tensor *t = safetensors_find(&s, tensors[k].name);
        assert_tensor_equal(t, &tensors[k]);
        assert_int_equal((uintptr_t)t->data % (t->type == TENSOR_BF16 ? 2 : 4), 0);
        if (tensor_bytes(t))                    /* our own files need no copies */
            assert_true((char *)t->data > (char *)s.bytes && (char *)t->data < (char *)s.bytes + s.size);
    }
    assert_null(safetensors_find(&s, "absent"));
    uint64_t header;
    memcpy(&header, s.bytes, 8);
    assert_int_equal((8 + header) % 64, 0);
    safetensors_release(&s);
    assert_null(s.bytes);
}

static void test_no_tensors(void **state)
{
    (void)state;
    struct safetensors s;
    assert_int_equal(safetensors_write(path, NULL, 0, NULL, NULL, NULL), OK);
    assert_int_equal(safetensors_read(&s, path, NULL), OK);
    assert_int_equal(s.n, 0);
    safetensors_release(&s);
}

static void test_python_fixture(void **state)
{
    (void)state;
    static const uint16_t half[] = {0x3f80, 0xc000, 0x4049, 0, 0x477f};
    static const int32_t ids[] = {-1, 0, INT32_MAX, INT32_MIN, 7, 42};
    struct safetensors s;
    struct error err = {.text = ""};
    if (safetensors_read(&s, HONE_FIXTURES "/from_python.safetensors", &err) != OK)
        fail_msg("%s", err.text);
    assert_int_equal(s.n, 5);
    const struct tensor *w = safetensors_find(&s, "weight");
    assert_int_equal(w->type, TENSOR_F32);
    assert_int_equal(w->rank, 2);
    assert_int_equal(w->dim[0], 3);
    assert_int_equal(w->dim[1], 4);
    for (int i = 0; i < 12; i++)
        assert_true(((float *)w->data)[i] == (float)i / 8 - 0.5f);
    const struct tensor *b = safetensors_find(&s, "half");
    assert_int_equal(b->type, TENSOR_BF16);
    assert_int_equal(tensor_bytes(b), sizeof half);
    assert_memory_equal(b->data, half, sizeof half);
    const struct tensor *t = safetensors_find(&s, "ids");
    assert_int_equal(t->type, TENSOR_I32);
    assert_int_equal(tensor_bytes(t), sizeof ids);
    assert_memory_equal(t->data, ids, sizeof ids);
    assert_int_equal(safetensors_find(&s, "scalar")->rank, 0);
    assert_true(*(float *)safetensors_find(&s, "scalar")->data == 2.5f);
    assert_int_equal(tensor_bytes(safetensors_find(&s, "empty")), 0);
    safetensors_release(&s);
}

/* --- files made by hand ------------------------------------------------------------------------------------------ */

struct made {
    char *bytes;
    size_t size;
};

/* A file of this header (its true length before it) and `data_bytes` bytes of data: 0, 1, 2, … */
static struct made make_file(const char *header, size_t data_bytes)
{
    const uint64_t length = strlen(header);
    struct made m = {.size = 8 + length + data_bytes};
    m.bytes = malloc(m.size);
    memcpy(m.bytes, &length, 8);
    memcpy(m.bytes + 8, header, length);
    for (size_t i = 0; i < data_bytes; i++)
        m.bytes[8 + length + i] = (char)i;
    return m;
}

#define ENTRY(name, type, shape, begin, end) \
    "\"" name "\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

/* Data at any byte offset in the file and a file at any address: pointers are aligned and the numbers right. */
static void test_unaligned(void **state)
{
    (void)state;
    static const char header[] = "{" ENTRY("h", "BF16", "[1]", "0", "2") "," ENTRY("f", "F32", "[2]", "2", "10") "}";
    static const unsigned char want[] = {2, 3, 4, 5, 6, 7, 8, 9};
    for (int pad = 0; pad < 8; pad++)
        for (int shift = 0; shift < 8; shift++) {
            char text[256];
            struct safetensors s;
            snprintf(text, sizeof text, "%s%*s", header, pad, "");
            struct made m = make_file(text, 10);
            char *moved = malloc(m.size + 8);
            memcpy(moved + shift, m.bytes, m.size);
            assert_int_equal(safetensors_parse(&s, "moved", moved + shift, m.size, NULL), OK);
            const struct tensor *f = safetensors_find(&s, "f"), *h = safetensors_find(&s, "h");
            assert_int_equal((uintptr_t)f->data % 4, 0);
            assert_int_equal((uintptr_t)h->data % 2, 0);
            assert_memory_equal(f->data, want, 8);
            assert_memory_equal(h->data, "\0\1", 2);
            safetensors_release(&s);
            free(moved);
            free(m.bytes);
        }
}

static void test_order_and_unknown_fields(void **state)
{
    (void)state;
    struct safetensors s;
    struct made m = make_file("{" ENTRY("b", "I32", "[1]", "4", "8") "," ENTRY("e", "F32", "[0]", "4", "4")
                              ",\"a\":{\"later\":[1],\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}  ", 8);
    assert_int_equal(safetensors_parse(&s, "m", m.bytes, m.size, NULL), OK);
    assert_string_equal(s.tensors[0].name, "a");
    assert_string_equal(s.tensors[1].name, "e");
    assert_string_equal(s.tensors[2].name, "b");
    safetensors_release(&s);
    free(m.bytes);
}

static const struct {
    const char *header;
    size_t data_bytes;
    const char *says;
} lies[] = {
    {"", 8, "does not begin with '{'"},
    {"[]", 0, "does not begin with '{'"},
    {" {}", 0, "does not begin with '{'"},
    {"{", 0, "not right at line 1"},
    {"{}x", 0, "not right at line 1"},
    {"{\"a\"", 0, "not right"},
    {"{\"a\":\"\x1b[2J\"}", 0, "not right"},
    {"{\"a\":\"\xff\"}", 0, "not right"},
    {"{\"a\\u0000b\":1}", 0, "not right"},
    {"{\"a\":1}", 0, "'a' is not an object"},
    {"{\"a\":{}}", 0, "'a' has no dtype"},
    {"{\"a\":{\"dtype\":7}}", 0, "'a' has no dtype"},
    {"{" ENTRY("w", "F8_E4M3", "[4]", "0", "4") "}", 4, "tensor 'w' has dtype F8_E4M3; supported are F32, F16, BF16 and F64: convert it before saving"},
    {"{" ENTRY("w", "F64", "[2]", "0", "8") "}", 8, "'w' has 8 bytes of data, and its shape needs 16"},
    {"{" ENTRY("w", "f32", "[1]", "0", "4") "}", 4, "dtype f32"},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "'a' needs a shape"},
    {"{" ENTRY("a", "F32", "4", "0", "4") "}", 4, "'a' needs a shape"},
    {"{" ENTRY("a", "F32", "[1,1,1,1,1,1,1,1,1]", "0", "4") "}", 4, "shape of 0 to 8 numbers"},
    {"{" ENTRY("a", "F32", "[-1]", "0", "4") "}", 4, "dimension 0 of tensor 'a'"},
    {"{" ENTRY("a", "F32", "[1,1.0]", "0", "4") "}", 4, "dimension 1 of tensor 'a'"},
    {"{" ENTRY("a", "F32", "[null]", "0", "4") "}", 4, "dimension 0"},
    {"{" ENTRY("a", "F32", "[99999999999999999999]", "0", "4") "}", 4, "not right"},
    {"{" ENTRY("a", "F32", "[4611686018427387904]", "0", "0") "}", 0, "too large"},     /* times 4 is 0 in 64 bits */
    {"{" ENTRY("a", "F32", "[4294967296,4294967296]", "0", "0") "}", 0, "too large"},
    {"{" ENTRY("a", "F32", "[0,4294967296,4294967296]", "0", "0") "}", 0, "too large"},
    {"{" ENTRY("a", "F32", "[4611686018427387905]", "0", "4") "}", 4, "too large"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}}", 4, "data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4.0]}}", 4, "data_offsets"},
    {"{" ENTRY("a", "F32", "[1]", "-4", "0") "}", 4, "bytes -4 to 0 of 4"},
    {"{" ENTRY("a", "F32", "[1]", "4", "0") "}", 4, "bytes 4 to 0 of 4"},
    {"{" ENTRY("a", "F32", "[2]", "0", "8") "}", 4, "bytes 0 to 8 of 4: truncated"},
    {"{" ENTRY("a", "F32", "[1]", "9223372036854775803", "9223372036854775807") "}", 4, "truncated"},
    {"{" ENTRY("a", "F32", "[2]", "0", "4") "}", 4, "4 bytes of data, and its shape needs 8"},
    {"{" ENTRY("a", "F32", "[1]", "0", "8") "}", 8, "8 bytes of data, and its shape needs 4"},
    {"{" ENTRY("a", "F32", "[2]", "0", "8") "," ENTRY("b", "F32", "[1]", "4", "8") "}", 8, "'b' overlaps"},
    {"{" ENTRY("a", "F32", "[1]", "0", "4") "," ENTRY("b", "F32", "[1]", "0", "4") "}", 4, "'b' overlaps"},
    {"{" ENTRY("a", "F32", "[2]", "0", "8") "," ENTRY("e", "F32", "[0]", "4", "4") "}", 8, "'e' overlaps"},
    {"{" ENTRY("a", "F32", "[1]", "4", "8") "}", 8, "bytes 0 to 4 before tensor 'a' belong to no tensor"},
    {"{" ENTRY("a", "F32", "[1]", "0", "4") "," ENTRY("b", "F32", "[1]", "8", "12") "}", 12, "bytes 4 to 8 before"},
    {"{" ENTRY("a", "F32", "[1]", "0", "4") "}", 5, "the last 1 bytes belong to no tensor"},
    {"{}", 3, "the last 3 bytes"},
    {"{" ENTRY("a", "F32", "[1]", "0", "4") "," ENTRY("a", "F32", "[1]", "4", "8") "}", 8, "duplicate"},
    {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, "duplicate"},
    {"{" ENTRY("", "F32", "[1]", "0", "4") "}", 4, "name is 0 bytes long"},
    {"{\"__metadata__\":[]}", 0, "__metadata__ is not an object"},
    {"{\"__metadata__\":{\"k\":1}}", 0, "'k' in __metadata__ is not a string"},
};

static void test_lies(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct error err = {.text = ""};
        struct safetensors s = {.n = -7};
        struct made m = make_file(lies[i].header, lies[i].data_bytes);
        if (safetensors_parse(&s, "the file", m.bytes, m.size, &err) != BAD_INPUT)
            fail_msg("accepted: %s", lies[i].header);
        assert_says(&err, lies[i].says);
        assert_says(&err, "'the file'");
        assert_null(strchr(err.text, '\x1b'));
        assert_int_equal(s.n, -7);              /* untouched */
        assert_int_equal(safetensors_parse(&s, "the file", m.bytes, m.size, NULL), BAD_INPUT);
        free(m.bytes);
    }
}

static void test_long_names(void **state)
{
    (void)state;
    char name[514], header[1024];
    for (size_t length = 512; length <= 513; length++) {
        struct error err;
        struct safetensors s;
        memset(name, 'n', length);
        name[length] = '\0';
        snprintf(header, sizeof header, "{\"%s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", name);
        struct made m = make_file(header, 4);
        assert_int_equal(safetensors_parse(&s, "m", m.bytes, m.size, &err), length == 512 ? OK : BAD_INPUT);
        if (length == 512)
            safetensors_release(&s);
        else
            assert_says(&err, "513 bytes long, expected 1 to 512");
        free(m.bytes);
    }
}

static void test_header_lengths(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {0, 1, 82, 84, 87, 88, 1000, 100000001, UINT32_MAX, INT64_MAX, UINT64_MAX,
                                       UINT64_MAX - 7};
    struct made m = make_file("{" ENTRY("a", "F32", "[1]", "0", "4") "}", 4);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct safetensors s;
        if (lengths[i] == m.size - 12)
            continue;
        memcpy(m.bytes, &lengths[i], 8);
        assert_int_equal(safetensors_parse(&s, "m", m.bytes, m.size, NULL), BAD_INPUT);
    }
    free(m.bytes);
}

static struct made sample(void)
{
    return make_file("{\"__metadata__\":{\"k\":\"v\"}," ENTRY("a", "F32", "[2,1]", "0", "8") ","
                     ENTRY("b", "BF16", "[3]", "8", "14") "}   ", 14);
}

static enum status parse_exact(struct safetensors *s, const char *bytes, size_t size)
{
    return safetensors_parse(s, "m", bytes, size, NULL);
}

static void test_truncation(void **state)
{
    (void)state;
    struct made m = sample();
    struct safetensors s;
    assert_int_equal(parse_exact(&s, m.bytes, m.size), OK);
    safetensors_release(&s);
    for (size_t size = 0; size < m.size; size++) {
        char *copy = malloc(size ? size : 1);   /* of this size exactly, so that a sanitizer sees a read past it */
        memcpy(copy, m.bytes, size);
        assert_int_equal(parse_exact(&s, copy, size), BAD_INPUT);
        free(copy);
    }
    free(m.bytes);
}

/* A flip in a name or in the metadata cannot be seen without a checksum; whatever is accepted must be sound. */
static void test_bit_flips(void **state)
{
    (void)state;
    struct made m = sample();
    int accepted = 0, refused = 0;
    for (size_t bit = 0; bit < (m.size - 14) * 8; bit++) {
        struct safetensors s;
        m.bytes[bit / 8] ^= (char)(1 << bit % 8);
        if (parse_exact(&s, m.bytes, m.size) == OK) {
            assert_int_equal(s.n, 2);
            assert_int_equal(tensor_bytes(&s.tensors[0]) + tensor_bytes(&s.tensors[1]), 14);
            safetensors_release(&s);
            accepted++;
        } else {
            refused++;
        }
        m.bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
    assert_true(refused > 5 * accepted);
    free(m.bytes);
}

/* --- writing that must fail -------------------------------------------------------------------------------------- */

static void refuse_write(const struct tensor *tensors, int n, const char *says)
{
    struct error err = {.text = ""};
    assert_int_equal(safetensors_write(path, tensors, n, NULL, NULL, &err), BAD_INPUT);
    assert_says(&err, says);
    assert_false(fs_exists(path));
}

static void test_write_refuses(void **state)
{
    (void)state;
    char longest[600];
    float f[4] = {0};
    memset(longest, 'x', sizeof longest);
    longest[513] = '\0';
    refuse_write((struct tensor[]){{"a", TENSOR_F32, 1, {4}, f}, {"a", TENSOR_F32, 1, {4}, f}}, 2, "two tensors");
    refuse_write(&(struct tensor){"", TENSOR_F32, 1, {4}, f}, 1, "0 bytes long");
    refuse_write(&(struct tensor){longest, TENSOR_F32, 1, {4}, f}, 1, "513 bytes long");
    refuse_write(&(struct tensor){"__metadata__", TENSOR_F32, 1, {4}, f}, 1, "__metadata__");
    refuse_write(&(struct tensor){"\xff", TENSOR_F32, 1, {4}, f}, 1, "not UTF-8");
    refuse_write(&(struct tensor){"neg", TENSOR_F32, 1, {-4}, f}, 1, "'neg' is out of range");
    refuse_write(&(struct tensor){"big", TENSOR_F32, 2, {INT64_MAX, 8}, f}, 1, "'big' is out of range");
    refuse_write(&(struct tensor){"deep", TENSOR_F32, 9, {1}, f}, 1, "'deep' is out of range");
}

static void test_write_fails(void **state)
{
    (void)state;
    struct error err;
    static float f[1 << 19];
    const struct tensor t = {"a", TENSOR_F32, 1, {1 << 19}, f};
    char below[PATH_MAX];
    assert_int_equal(safetensors_write(root, &t, 1, NULL, NULL, &err), BAD_INPUT);
    assert_says(&err, "cannot create");
    snprintf(below, sizeof below, "%.80s/none/file", root);
    assert_int_equal(safetensors_write(below, &t, 1, NULL, NULL, &err), BAD_INPUT);
    assert_says(&err, "none/file': No such file");
    if (fs_exists("/dev/full")) {
        assert_int_equal(safetensors_write("/dev/full", &t, 1, NULL, NULL, &err), CANNOT);
        assert_says(&err, "No space left");
        assert_true(fs_exists("/dev/full"));
    }
}

static void test_read_fails(void **state)
{
    (void)state;
    struct error err;
    struct safetensors s;
    assert_int_equal(safetensors_read(&s, path, &err), BAD_INPUT);
    assert_says(&err, "file.safetensors': No such file");
    assert_int_equal(safetensors_read(&s, root, &err), BAD_INPUT);
    assert_int_equal(fs_write_synced(path, "", 0, NULL), OK);
    assert_int_equal(safetensors_read(&s, path, &err), BAD_INPUT);
    assert_says(&err, "is 0 bytes: too short");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_root, remove_root)
    const struct CMUnitTest tests[] = {
        TEST(test_round_trip),     TEST(test_no_tensors),     TEST(test_python_fixture),
        TEST(test_unaligned),      TEST(test_order_and_unknown_fields),
        TEST(test_lies),           TEST(test_long_names),     TEST(test_header_lengths),
        TEST(test_truncation),     TEST(test_bit_flips),      TEST(test_write_refuses),
        TEST(test_write_fails),    TEST(test_read_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
