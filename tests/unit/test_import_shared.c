/* The real traces, where they are there: how many events of each kind they have (counted with Python's json), and facts
 * that others published of them. Damage of a real trace never crashes and never takes much memory. */
#include "unit/import_text.h"

#include <sys/stat.h>

#include "core/fs.h"
#include "core/gunzip.h"

/* The path of a shared trace; skips the test when the folder is not there. */
static const char *shared(const char *name)
{
    static char path[4096];
    const char *folder = getenv("HONE_TRACES");
    struct stat s;
    if (folder)
        snprintf(path, sizeof path, "%s", folder);
    else
        snprintf(path, sizeof path, "%s/../../shared/traces", HONE_CONFIGS);
    if (stat(path, &s) != 0) {
        print_message("skipped: the shared traces are not at %s\n", path);
        skip();
    }
    const size_t used = strlen(path);
    snprintf(path + used, sizeof path - used, "/%s", name);
    return path;
}

static struct trace *read_shared(const char *name)
{
    struct trace *t = NULL;
    struct error err = {.text = ""};
    assert_ok(import_read(&t, shared(name), NULL, NULL, &err), err);
    return t;
}

struct counts {
    const char *name;
    int64_t steps, annotations, ops, python, runtime, kernels, copies, fills, waits, counters, other;
};

static void check_counts(const struct counts *c)
{
    static const enum event_kind kinds[] = {EVENT_STEP,        EVENT_ANNOTATION, EVENT_HOST_OP, EVENT_PYTHON,
                                            EVENT_RUNTIME,     EVENT_KERNEL,     EVENT_MEMCPY,  EVENT_MEMSET,
                                            EVENT_STREAM_WAIT, EVENT_COUNTER};
    const int64_t expected[] = {c->steps,   c->annotations, c->ops,   c->python, c->runtime,
                                c->kernels, c->copies,      c->fills, c->waits,  c->counters};
    struct trace *t = read_shared(c->name);
    int64_t sum = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const int64_t n = count_kind(t, kinds[i]);
        if (n != expected[i])
            fail_msg("%s: kind %d occurs %lld times; it should %lld times", c->name, kinds[i], (long long)n,
                     (long long)expected[i]);
        sum += n;
    }
    assert_int_equal(t->n, sum);
    assert_int_equal(t->origin.events_read, sum);
    assert_int_equal(t->origin.other_events, c->other);
    assert_int_equal(t->origin.events_skipped, 0);
    assert_int_equal(t->origin.n_warnings, 0);
    assert_false(t->origin.truncated);
    trace_free(t);
}

static void test_counts(void **state)
{
    (void)state;
    static const struct counts cases[] = {
        {"planted/h200-gpt-clean.json.gz", 4, 8, 11028, 0, 1973, 1444, 8, 208, 0, 0, 5688},
        {"planted/h200-gpt-host-python.json.gz", 4, 8, 11028, 10891, 1973, 1444, 8, 208, 0, 0, 5688},
        {"public/hta_nccl_data.json.gz", 3, 39, 14346, 0, 8740, 2700, 960, 114, 0, 0, 13671},
        {"public/hta_amd_mi250_minitoy_train.json.gz", 2, 1, 70, 0, 21, 14, 2, 0, 0, 0, 110},
        {"public/hta_cpu_only_rank34.json.gz", 1, 10, 4, 0, 0, 0, 0, 0, 0, 0, 15},
        {"public/hta_critpath_simple_add.json.gz", 0, 8, 359, 0, 331, 79, 16, 3, 41, 0, 511},
        {"public/kineto_tb_resnet50_workers0_1623143089861.json.gz", 6, 0, 23640, 0, 11923, 8772, 12, 312, 0, 12838,
         18215},
        {"public/tracelens_h100_bert_small.json.gz", 1, 0, 479, 1385, 132, 60, 1, 0, 0, 236, 257},
        {"public/tracelens_mi210_gpu_only.json.gz", 0, 0, 0, 0, 631, 562, 0, 0, 0, 0, 1250},
        {"public/tracelens_vllm_decode_cudagraph.json.gz", 0, 1, 100, 984, 20, 425, 9, 0, 0, 0, 454},
        {"public/tracelens_torch_compile_triton.json.gz", 0, 1, 41, 0, 59, 12, 0, 0, 0, 0, 133},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_counts(&cases[i]);
}

static void test_nccl(void **state)
{
    (void)state;
    struct trace *t = read_shared("public/hta_nccl_data.json.gz");
    int kernels = 0, allreduces = 0;
    for (int64_t i = 0; i < t->n; i++) {
        if (t->events[i].kind != EVENT_KERNEL || !strcasestr(name_of(t, i), "nccl"))
            continue;
        kernels++;
        const struct event_args *a = args_of(t, i);
        allreduces += a->elements == 2049000 && a->collective >= 0 && !strcmp(t->names[a->collective], "allreduce");
    }
    assert_int_equal(kernels, 21);
    assert_int_equal(allreduces, 3);
    assert_int_equal(t->origin.world_size, 2);
    assert_string_equal(text_at(t, t->origin.backend), "nccl");
    trace_free(t);
}

static void test_steps(void **state)
{
    (void)state;
    struct trace *t = read_shared("public/hta_trace_compare_base.json.gz");
    bool found = false;
    for (int64_t i = 0; i < t->n; i++)
        found |= t->events[i].kind == EVENT_STEP && t->events[i].step == 1010 && t->events[i].duration_ns == 122149000;
    assert_true(found);
    assert_int_equal(t->origin.rank, 1);
    trace_free(t);
}

/* Every device event's launch that the trace holds is found by its link; times are exact to the nanosecond. */
static void test_exact_times(void **state)
{
    (void)state;
    struct trace *t = read_shared("public/hta_ns_resolution_ddp_rank0.json.gz");
    int64_t odd = 0;
    for (int64_t i = 0; i < t->n; i++)
        odd += t->events[i].start_ns % 2;
    assert_in_range(odd * 100 / t->n, 40, 60); /* a double would have cut the last digits */
    assert_int_equal(t->events[0].start_ns, INT64_C(1712195495519689047));
    trace_free(t);
}

/* The text of a compressed trace. The caller frees. */
static char *inflate_shared(const char *name, size_t room, size_t *size)
{
    char *packed = NULL, *text = malloc(room);
    size_t packed_size = 0, taken;
    struct error err;
    struct gunzip *g = gunzip_new();
    assert_ok(fs_read(shared(name), &packed, &packed_size, 0, &err), err);
    *size = gunzip_write(g, packed, packed_size, &taken, text, room);
    assert_true(gunzip_whole(g) && *size < room);
    gunzip_free(g);
    free(packed);
    return text;
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Cuts and changed bytes in a real trace, at seeded places: few events are lost, and none is made up. */
static void test_damage(void **state)
{
    (void)state;
    enum { ROUNDS = 400, CHANGES = 4 };
    static const char name[] = "public/hta_amd_mi250_minitoy_train.json.gz";
    struct trace *whole = read_shared(name);
    size_t size;
    char *text = inflate_shared(name, 1 << 20, &size), *copy = malloc(size);
    uint32_t seed = 7;
    int64_t lost = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct trace *t = NULL;
        struct error err;
        memcpy(copy, text, size);
        for (int i = 0; i < CHANGES; i++)
            copy[next_random(&seed) % size] = (char)next_random(&seed);
        const size_t cut = round % 2 ? size : next_random(&seed) % size;
        if (import_read_memory(&t, "damaged", copy, cut, &err) == OK) {
            assert_true(t->n <= whole->n + CHANGES);
            lost += cut == size ? whole->n - t->n : 0;
        } else {
            assert_true(cut < size);
        }
        trace_free(t);
    }
    if (lost > ROUNDS / 2 * CHANGES)
        fail_msg("%lld events were lost by %d changed bytes", (long long)lost, ROUNDS / 2 * CHANGES);
    free(copy);
    free(text);
    trace_free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),      cmocka_unit_test(test_nccl),   cmocka_unit_test(test_steps),
        cmocka_unit_test(test_exact_times), cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
