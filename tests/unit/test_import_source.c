/* How the bytes come in: in blocks of any size, compressed, cut off, damaged, from files, pipes and folders. */
#include "unit/import_text.h"

#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"

static char root[64];

static int make_root(void **state)
{
    (void)state;
    strcpy(root, "/tmp/hone-import-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    return fs_remove_tree(root, NULL) == OK ? 0 : -1;
}

/* A path under the root; good until the next call but three. */
static const char *at(const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", root, name);
    return path;
}

/* A trace with one of everything, odd names among them. */
static const char mixed[] =
    "\n{\n  'schemaVersion': 1,\n  'deviceProperties': [{'id': 0, 'name': 'NVIDIA H200', 'numSms': 132}],\n  "
    "'traceEvents': [\n  "
    OP("aten::mm") ",\n  "
    WITH_ARGS("cpu_op", "aten::add", "'External id': 5, 'Input Dims': [[32, 256], []], 'Input type': ['float', '']") ",\n  "
    WITH_ARGS("cuda_runtime", "cudaLaunchKernel", "'cbid': 211, 'correlation': 9") ",\n  "
    "{\n    'ph': 'f', 'id': 9, 'pid': 0, 'tid': 7, 'ts': 4.125,\n    'cat': 'ac2g', 'name': 'ac2g'\n  },\n  "
    WITH_ARGS("kernel", "void k<128, {lambda(int)#1}>(float*, \\'x\\')", "'device': 0, 'stream': 7, 'correlation': 9, "
              "'grid': [50, 1, 1], 'block': [128, 1, 1]") ",\n  "
    WITH_ARGS("cpu_op", "say 'hello' now", "'Sequence number': 77") ",\n  {'ph': ! malformed},\n  "
    EVENT("user_annotation", "ProfilerStep#4") ",\n  "
    "{'ph': 'M', 'name': 'thread_name', 'pid': 10, 'tid': 11, 'args': {'name': 'main \\u00e9'}},\n  "
    OP("C:\\path\\") "\n  ],\n  'distributedInfo': {'rank': 2, 'world_size': 4}\n}\n";

static struct trace *read_in_blocks(const void *data, size_t size, size_t block, bool threaded)
{
    const struct source_from from = {
        .data = data, .size = size, .total = (int64_t)size, .block = block, .threaded = threaded};
    struct trace *t = NULL;
    struct error err = {.text = ""};
    assert_ok(kineto_read(&t, "text", &from, NULL, NULL, &err), err);
    return t;
}

/* Wherever a block ends, the trace is the same. */
static void test_blocks(void **state)
{
    (void)state;
    const size_t size = strlen(mixed);
    char *text = with_quotes(mixed, size);
    struct trace *whole = read_in_blocks(text, size, 1 << 20, false);
    assert_int_equal(whole->n, 7);
    assert_int_equal(whole->origin.events_skipped, 1);
    assert_int_equal(whole->origin.rank, 2);
    assert_false(whole->origin.truncated);
    for (size_t block = 64; block <= 4096; block += block < 256 ? 1 : block < 1024 ? 7 : 61) {
        struct trace *t = read_in_blocks(text, size, block, block % 8 == 0);
        assert_same_trace(t, whole);
        trace_free(t);
    }
    free(text);
    trace_free(whole);
}

/* One member of gzip. The caller frees. */
static uint8_t *compress(const char *text, size_t size, size_t *compressed)
{
    struct isal_zstream z;
    const size_t room = size + size / 8 + 1024;
    uint8_t *out = malloc(room);
    isal_deflate_init(&z);
    z.gzip_flag = IGZIP_GZIP;
    z.next_in = (uint8_t *)(uintptr_t)text;
    z.avail_in = (uint32_t)size;
    z.end_of_stream = 1;
    z.next_out = out;
    z.avail_out = (uint32_t)room;
    assert_int_equal(isal_deflate(&z), COMP_OK);
    *compressed = room - z.avail_out;
    return out;
}

/* A longer text, so that gzip has more than one block to fill. */
static char *long_text(int events)
{
    const size_t room = (size_t)events * 200 + 64;
    char *text = malloc(room), *p = text;
    p += sprintf(p, "{\"traceEvents\": [");
    for (int i = 0; i < events; i++)
        p += sprintf(p, "%s\n{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"op %d\", \"tid\": %d, \"ts\": %d.%03d}",
                     i ? "," : "", i % 97, i % 5, i * 31, i * 7 % 1000);
    sprintf(p, "]}");
    return text;
}

static void test_gzip(void **state)
{
    (void)state;
    char *text = long_text(3000);
    size_t size;
    uint8_t *gz = compress(text, strlen(text), &size);
    struct trace *plain = read_text(text);
    assert_int_equal(plain->n, 3000);
    for (size_t block = 100; block <= 1 << 20; block = block * 7 + 1) {
        struct trace *t = read_in_blocks(gz, size, block, true);
        assert_same_trace(t, plain);
        assert_int_equal(t->origin.file_bytes, size);
        assert_int_equal(t->origin.json_bytes, strlen(text));
        trace_free(t);
    }
    trace_free(plain);
    free(gz);
    free(text);
}

/* cat a.gz b.gz, with zeros behind as some tools leave them. */
static void test_gzip_members(void **state)
{
    (void)state;
    char *text = long_text(500);
    const size_t all = strlen(text), half = all / 2;
    size_t first, second;
    uint8_t *a = compress(text, half, &first), *b = compress(text + half, all - half, &second);
    uint8_t *both = calloc(first + second + 512, 1);
    memcpy(both, a, first);
    memcpy(both + first, b, second);
    struct trace *plain = read_text(text);
    for (int padding = 0; padding <= 512; padding += 256) {
        struct trace *t = read_in_blocks(both, first + second + (size_t)padding, 4096, false);
        assert_same_trace(t, plain);
        assert_int_equal(t->origin.n_warnings, 0);
        trace_free(t);
    }
    trace_free(plain);
    free(a);
    free(b);
    free(both);
    free(text);
}

/* Cut anywhere, or with a byte changed: what comes before is read, and the warning has the position. */
static void test_gzip_damage(void **state)
{
    (void)state;
    char *text = long_text(3000);
    size_t size;
    uint8_t *gz = compress(text, strlen(text), &size);
    int64_t before = 0;
    for (size_t cut = size / 4; cut < size; cut += size / 11) {
        struct trace *t = read_in_blocks(gz, cut, 1 << 16, cut % 2);
        assert_true(t->origin.truncated);
        assert_in_range(t->n, before + 1, 2999);
        before = t->n;
        assert_warned(t, "the compressed file ends too early or is damaged: the end is missing at its byte");
        trace_free(t);
    }
    struct trace *t = read_in_blocks(gz, size - 3, 1 << 16, false); /* all but the checksum */
    assert_int_equal(t->n, 3000);
    assert_true(t->origin.truncated);
    trace_free(t);
    gz[size - 6] ^= 1;
    t = read_in_blocks(gz, size, 1 << 16, false);
    assert_int_equal(t->n, 3000);
    assert_warned(t, "its checksum is wrong");
    trace_free(t);
    free(gz);
    free(text);
}

/* The events of `mixed` that are complete in its first `size` bytes: found by their ends. */
static int complete_events(size_t size, const size_t *ends, int n)
{
    int complete = 0;
    while (complete < n && ends[complete] <= size)
        complete++;
    return complete;
}

static void test_truncation(void **state)
{
    (void)state;
    static const char *const parts[] = {"{'a': [1], 'traceEvents': [", OP("one"),
                                        ", " WITH_ARGS("kernel", "two", "'stream': 7, 'x': [[1, 2], []]"),
                                        ", " OP("three"), "], 'traceName': 'x'}"};
    char text[2048] = "";
    size_t ends[3];
    for (int i = 0; i < 5; i++) {
        char *part = with_quotes(parts[i], strlen(parts[i]) + 1);
        strcat(text, part);
        free(part);
        if (i >= 1 && i <= 3)
            ends[i - 1] = strlen(text);
    }
    for (size_t size = 0; size < strlen(text); size++) {
        const int expected = complete_events(size, ends, 3);
        struct trace *t = NULL;
        struct error err = {.text = ""};
        const enum status st = import_read_memory(&t, "text", text, size, &err);
        if ((st == OK) != (expected > 0))
            fail_msg("cut at %zu: status %d (%s), %d events expected", size, st, err.text, expected);
        if (st == OK) {
            char position[32];
            if (t->n != expected || !t->origin.truncated || t->origin.events_skipped)
                fail_msg("cut at %zu: %lld events, %lld skipped; expected %d", size, (long long)t->n,
                         (long long)t->origin.events_skipped, expected);
            snprintf(position, sizeof position, "ends at byte %zu", size);
            assert_warned(t, position);
        }
        trace_free(t);
    }
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Damage of a few bytes never crashes, and costs a few events at most. */
static void test_flips(void **state)
{
    (void)state;
    enum { EVENTS = 40, ROUNDS = 2000 };
    char *text = long_text(EVENTS);
    const size_t size = strlen(text);
    char *copy = malloc(size);
    uint32_t seed = 12345;
    int64_t lost = 0;
    for (int round = 0; round < ROUNDS; round++) {
        memcpy(copy, text, size);
        for (int i = 0; i < 3; i++)
            copy[next_random(&seed) % size] = (char)next_random(&seed);
        struct trace *t = NULL;
        struct error err;
        if (import_read_memory(&t, "text", copy, size, &err) == OK) {
            assert_true(t->n <= EVENTS);
            lost += EVENTS - t->n;
        } else {
            lost += EVENTS;
        }
        trace_free(t);
    }
    if (lost > 2 * 3 * ROUNDS)
        fail_msg("%lld events were lost by %d changed bytes", (long long)lost, 3 * ROUNDS);
    free(copy);
    free(text);
}

struct progress {
    int calls;
    int64_t done, total;
};

static void note_progress(void *context, int64_t done, int64_t total)
{
    struct progress *p = context;
    assert_true(done >= p->done);
    *p = (struct progress){p->calls + 1, done, total};
}

static void test_file(void **state)
{
    (void)state;
    struct error err;
    struct progress p = {0};
    struct trace *t = NULL;
    char *text = long_text(20000);
    const size_t size = strlen(text);
    assert_ok(fs_write_synced(at("trace_rank6.json"), text, size, &err), err);
    assert_ok(import_read(&t, at("trace_rank6.json"), note_progress, &p, &err), err);
    assert_int_equal(t->n, 20000);
    assert_int_equal(t->origin.rank, 6);
    assert_int_equal(t->origin.file_bytes, size);
    assert_string_equal(t->origin.path, at("trace_rank6.json"));
    assert_true(p.calls >= 2);
    assert_int_equal(p.done, size);
    assert_int_equal(p.total, size);
    trace_free(t);
    t = NULL;
    assert_int_equal(import_read(&t, at("absent.json"), NULL, NULL, &err), BAD_INPUT);
    assert_says(&err, "absent.json", NULL);
    assert_int_equal(import_read(&t, root, NULL, NULL, &err), BAD_INPUT);
    assert_says(&err, "is a folder", NULL);
    assert_ok(fs_write_synced(at("empty.json"), "", 0, &err), err);
    assert_int_equal(import_read(&t, at("empty.json"), NULL, NULL, &err), BAD_INPUT);
    assert_says(&err, "is empty", NULL);
    assert_null(t);
    free(text);
}

/* Standard input is a pipe that gives its bytes one by one. */
static void test_standard_input(void **state)
{
    (void)state;
    static const char text[] = "[" OP("a") ", " OP("b") "]";
    struct progress p = {0};
    struct error err;
    struct trace *t = NULL;
    int ends[2];
    const int saved = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    char *quoted = with_quotes(text, sizeof text - 1);
    for (size_t i = 0; i < sizeof text - 1; i++)
        assert_int_equal(write(ends[1], quoted + i, 1), 1);
    free(quoted);
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    assert_ok(import_read(&t, "-", note_progress, &p, &err), err);
    dup2(saved, STDIN_FILENO);
    close(saved);
    assert_int_equal(t->n, 2);
    assert_string_equal(t->origin.path, "-");
    assert_int_equal(p.total, -1);
    trace_free(t);
}

static void test_find(void **state)
{
    (void)state;
    struct error err;
    char **paths = NULL;
    int n = 0;
    static const char *const files[] = {"d/b.json",       "d/a.json.gz",  "d/c.txt",
                                        "d/.hidden.json", "d/sub/e.json", "d/.json"};
    assert_ok(fs_make_dirs(at("d/sub"), &err), err);
    assert_ok(fs_make_dirs(at("d/folder.json"), &err), err);
    assert_ok(fs_make_dirs(at("none"), &err), err);
    for (int i = 0; i < 6; i++)
        assert_ok(fs_write_synced(at(files[i]), "x", 1, &err), err);
    assert_ok(import_find(&paths, &n, at("d"), &err), err);
    assert_int_equal(n, 2);
    assert_string_equal(paths[0], at("d/a.json.gz"));
    assert_string_equal(paths[1], at("d/b.json"));
    for (int i = 0; i < n; i++)
        free(paths[i]);
    free(paths);
    assert_ok(import_find(&paths, &n, at("d/c.txt"), &err), err); /* a file that is named is taken */
    assert_int_equal(n, 1);
    free(paths[0]);
    free(paths);
    assert_ok(import_find(&paths, &n, "-", &err), err);
    assert_string_equal(paths[0], "-");
    free(paths[0]);
    free(paths);
    assert_int_equal(import_find(&paths, &n, at("none"), &err), BAD_INPUT);
    assert_says(&err, "no trace", ".json.gz", NULL);
    assert_int_equal(import_find(&paths, &n, at("absent"), &err), BAD_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),      cmocka_unit_test(test_gzip),           cmocka_unit_test(test_gzip_members),
        cmocka_unit_test(test_gzip_damage), cmocka_unit_test(test_truncation),     cmocka_unit_test(test_flips),
        cmocka_unit_test(test_file),        cmocka_unit_test(test_standard_input), cmocka_unit_test(test_find),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
