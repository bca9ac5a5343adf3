/* Peaks: the bandwidth of a working set, and a cache file that is kept, replaced, or ignored when it is damaged. */
#include "support/check.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/peaks.h"
#include "core/peaks_int.h"

static char root[64];

/* Every test has a cache folder of its own, which is not made yet. */
static int setup(void **state)
{
    (void)state;
    char cache[96];
    strcpy(root, "/tmp/hone-peaks-XXXXXX");
    if (!mkdtemp(root))
        return -1;
    snprintf(cache, sizeof cache, "%s/cache", root);
    unsetenv("HOME");
    return setenv("XDG_CACHE_HOME", cache, 1);
}

static int teardown(void **state)
{
    (void)state;
    return fs_remove_tree(root, NULL) == OK ? 0 : -1;
}

static const char *at(const char *name)
{
    static char path[160];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static struct peaks sample(const char *machine, int threads)
{
    struct peaks p = {.threads = threads, .registers_gflops = 41.7 * threads, .registers_bf16_gflops = 160.5 * threads, .product_gflops = 38.2 * threads, .near_gflops[NUMBERS_F32] = 36.5 * threads, .near_gflops[NUMBERS_BF16] = 77.25 * threads, .clock = 0.7, .gflops[NUMBERS_F32] = 41.7 * threads, .gflops[NUMBERS_BF16] = 81.3, .copy_gb_per_s = {200.5, 100.25, 0, 1.0 / 3},
                      .cache_bytes = {65536, 1 << 20, 0, 1.6e10}};
    snprintf(p.machine, sizeof p.machine, "%s", machine);
    return p;
}

static void assert_same(const struct peaks *a, const struct peaks *b)
{
    assert_int_equal(a->threads, b->threads);
    assert_true(a->registers_gflops == b->registers_gflops && a->registers_bf16_gflops == b->registers_bf16_gflops && a->product_gflops == b->product_gflops);
    assert_memory_equal(a->near_gflops, b->near_gflops, sizeof a->near_gflops);
    assert_true(a->clock == b->clock);
    assert_true(a->gflops[NUMBERS_F32] == b->gflops[NUMBERS_F32] && a->gflops[NUMBERS_BF16] == b->gflops[NUMBERS_BF16]);
    assert_memory_equal(a->copy_gb_per_s, b->copy_gb_per_s, sizeof a->copy_gb_per_s);
    assert_memory_equal(a->cache_bytes, b->cache_bytes, sizeof a->cache_bytes);
    assert_string_equal(a->machine, b->machine);
}

static void remember(const struct peaks *p)
{
    struct error err;
    assert_ok(peaks_remember(p, &err), err);
}

static void assert_recalled(const struct peaks *p)
{
    struct peaks back;
    assert_true(peaks_recall(&back, p->machine, p->threads));
    assert_same(&back, p);
}

static void test_bandwidth(void **state)
{
    (void)state;
    struct peaks p = {.threads = 4, .copy_gb_per_s = {400, 200, 100, 50}, .cache_bytes = {1e4, 1e5, 1e6, 1e9}};
    assert_true(peaks_bandwidth(&p, 0) == 400);
    assert_true(peaks_bandwidth(&p, 4e4) == 400);       /* four cores have an L1 and an L2 each */
    assert_true(peaks_bandwidth(&p, 4e4 + 1) == 200);
    assert_true(peaks_bandwidth(&p, 4e5) == 200);
    assert_true(peaks_bandwidth(&p, 4e5 + 1) == 100);
    assert_true(peaks_bandwidth(&p, 1e6) == 100);       /* and one L3 together */
    assert_true(peaks_bandwidth(&p, 1e6 + 1) == 50);
    assert_true(peaks_bandwidth(&p, 1e12) == 50);       /* more than is installed still goes at memory's speed */
    p.copy_gb_per_s[1] = 0;
    assert_true(peaks_bandwidth(&p, 4e5) == 100);       /* no such level */
    p.threads = 1;
    assert_true(peaks_bandwidth(&p, 1e4 + 1) == 100);
}

static void test_remember_and_recall(void **state)
{
    (void)state;
    const struct peaks a = sample("cpu \"A\" \xC3\xA9, 4 cores", 4), b = sample(a.machine, 1), c = sample("other", 4);
    struct peaks back = {.threads = 77};
    assert_false(peaks_recall(&back, a.machine, 4));
    assert_int_equal(back.threads, 77);
    remember(&a);
    remember(&b);
    remember(&c);
    assert_recalled(&a);
    assert_recalled(&b);
    assert_recalled(&c);
    assert_false(peaks_recall(&back, a.machine, 2));
    assert_false(peaks_recall(&back, "cpu", 4));

    struct peaks newer = b, best = b;                   /* the best that was ever seen is kept, number by number */
    newer.gflops[NUMBERS_F32] = 5;
    newer.gflops[NUMBERS_BF16] = best.gflops[NUMBERS_BF16] = 99;
    newer.copy_gb_per_s[1] = 1;
    newer.copy_gb_per_s[3] = best.copy_gb_per_s[3] = 7;
    remember(&newer);
    assert_recalled(&best);
    assert_recalled(&a);
    assert_recalled(&c);
}

/* Forgotten for every number of threads, and for no other machine. */
static void test_forget(void **state)
{
    (void)state;
    const struct peaks one = sample("m", 1), two = sample("m", 2), other = sample("n", 2);
    struct peaks back;
    struct error err;
    assert_ok(peaks_forget("m", &err), err);            /* there is nothing yet */
    assert_false(fs_exists(at("cache/hone/peaks.json")));
    remember(&one);
    remember(&two);
    remember(&other);
    assert_ok(peaks_forget("m", &err), err);
    assert_false(peaks_recall(&back, "m", 1));
    assert_false(peaks_recall(&back, "m", 2));
    assert_recalled(&other);
    struct peaks less = two;
    less.gflops[NUMBERS_F32] = 5;
    remember(&less);                                    /* and what was forgotten does not count any more */
    assert_recalled(&less);
}

/* Rounds as a busy machine shows them: the first ones too low. */
struct shown {
    const double *gflops;
    int n, at;
};

static void show(void *context, struct peaks *round)
{
    struct shown *s = context;
    round->gflops[NUMBERS_F32] = s->gflops[s->at < s->n ? s->at : s->n - 1];
    round->copy_gb_per_s[3] = 10;
    s->at++;
}

static int settle(struct peaks *p, const double *gflops, int n)
{
    struct shown s = {gflops, n, 0};
    *p = (struct peaks){.threads = 2};
    const int rounds = peaks_settle(p, show, &s);
    assert_int_equal(rounds, s.at);
    return s.at;
}

static void test_settle(void **state)
{
    (void)state;
    struct peaks p;
    const double quiet[] = {70, 70.1, 69, 70.2}, busy[] = {40, 38, 39, 55, 41, 70, 40, 69, 41}, endless[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
                                                                                                             11, 12, 13, 14};
    assert_int_equal(settle(&p, quiet, 4), 1 + PEAKS_QUIET_ROUNDS);
    assert_true(p.gflops[NUMBERS_F32] == 70.2 && p.copy_gb_per_s[3] == 10 && p.threads == 2);
    assert_int_equal(settle(&p, busy, 9), 6 + PEAKS_QUIET_ROUNDS);      /* the sixth rose last */
    assert_true(p.gflops[NUMBERS_F32] == 70);
    assert_int_equal(settle(&p, endless, 14), PEAKS_ROUNDS_MOST);
    assert_true(p.gflops[NUMBERS_F32] == PEAKS_ROUNDS_MOST);
}

/* Nothing but the cache is left in the folder. */
static void test_no_leftovers(void **state)
{
    (void)state;
    const struct peaks p = sample("m", 1);
    int files = 0;
    remember(&p);
    remember(&p);
    DIR *dir = opendir(at("cache/hone"));
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));)
        files += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(dir);
    assert_int_equal(files, 1);
}

static void test_where(void **state)
{
    (void)state;
    const struct peaks p = sample("m", 1);
    struct peaks back;
    struct error err;
    remember(&p);
    assert_true(fs_exists(at("cache/hone/peaks.json")));

    unsetenv("XDG_CACHE_HOME");
    assert_false(peaks_recall(&back, "m", 1));
    assert_int_equal(peaks_remember(&p, &err), BAD_INPUT);
    assert_says(&err, "HOME", "XDG_CACHE_HOME", NULL);

    setenv("XDG_CACHE_HOME", "relative", 1);            /* does not count */
    setenv("HOME", root, 1);
    remember(&p);
    assert_true(fs_exists(at(".cache/hone/peaks.json")));
    assert_false(fs_exists("relative"));
    assert_recalled(&p);
    setenv("XDG_CACHE_HOME", "", 1);
    assert_recalled(&p);
    setenv("HOME", "", 1);
    assert_false(peaks_recall(&back, "m", 1));

    char *deep = malloc(5001);
    memset(deep, 'x', 5000);
    deep[0] = '/';
    deep[5000] = '\0';
    setenv("XDG_CACHE_HOME", deep, 1);
    assert_false(peaks_recall(&back, "m", 1));
    assert_int_equal(peaks_remember(&p, &err), BAD_INPUT);
    free(deep);
}

static void test_damaged_is_absent(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", "{", "[]", "null", "{\"version\":7}", "{\"version\":7,\"entries\":{}}",
        "{\"version\":7,\"entries\":[1,null,[]]}",
        "{\"version\":7,\"entries\":[{\"machine\":\"m\",\"threads\":1}]}", "\xFF\xFE",
    };
    const struct peaks p = sample("m", 1);
    struct peaks back;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        remember(&p);
        assert_int_equal(fs_write_synced(at("cache/hone/peaks.json"), bad[i], strlen(bad[i]), NULL), OK);
        assert_false(peaks_recall(&back, "m", 1));
        remember(&p);
        assert_recalled(&p);
    }
}

/* One field changed at a time in a cache that is otherwise right. */
static void test_hostile_fields(void **state)
{
    (void)state;
    static const char good[] = "{\"version\":7,\"entries\":[{\"machine\":\"m\",\"threads\":2,\"gemm_gflops\":3.5,\"bf16_gflops\":7.5,"
                               "\"copy_gb_per_s\":[1,2,3,4],\"cache_bytes\":[5,6,7,8]}]}";
    static const char *const changes[][2] = {
        {"\"version\":7", "\"version\":1"}, {"\"version\":7", "\"version\":\"7\""},
        {"\"version\":7", "\"version\":7.0"},
        {"\"m\"", "5"}, {"\"m\"", "\"\""}, {"threads\":2,", "threads\":0,"}, {"threads\":2,", "threads\":-2,"}, {"threads\":2,", "threads\":4294967298,"}, {"threads\":2,", "threads\":\"2\","},
        {"3.5", "0"}, {"3.5", "-1"}, {"3.5", "1e999"}, {"3.5", "null"}, {"7.5", "-1"}, {"7.5", "null"}, {"7.5", "\"7.5\""}, {"7.5", "1e999"}, {"7.5", "7.5,\"near_gflops\":-1"}, {"7.5", "7.5,\"clock\":\"1\""}, {"[1,2,3,4]", "[1,2,3]"},
        {"[1,2,3,4]", "[1,2,3,4,5]"}, {"[1,2,3,4]", "[1,2,3,0]"}, {"[1,2,3,4]", "[1,-2,3,4]"},
        {"[1,2,3,4]", "[1,\"2\",3,4]"}, {"[5,6,7,8]", "{}"}, {"[5,6,7,8]", "[5,6,-7,8]"},
        {"\"threads\":2", "\"threads\":2,\"threads\":2"},
    };
    struct peaks back;
    assert_true(peaks_parse(&back, good, sizeof good - 1, "m", 2));
    assert_true(back.gflops[NUMBERS_F32] == 3.5 && back.gflops[NUMBERS_BF16] == 7.5 && back.copy_gb_per_s[3] == 4 && back.cache_bytes[0] == 5);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        char text[320];
        const char *found = strstr(good, changes[i][0]);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(found - good), good, changes[i][1],
                 found + strlen(changes[i][0]));
        if (peaks_parse(&back, text, strlen(text), "m", 2))
            fail_msg("believed: %s", text);
    }
}

/* A cache from before there were peaks of bf16 is still good; and the larger of two is kept. */
static void test_without_bf16(void **state)
{
    (void)state;
    static const char old[] = "{\"version\":7,\"entries\":[{\"machine\":\"m\",\"threads\":2,\"gemm_gflops\":3.5,"
                              "\"copy_gb_per_s\":[1,2,3,4],\"cache_bytes\":[5,6,7,8]}]}";
    struct peaks back = {.gflops[NUMBERS_BF16] = 9};
    assert_true(peaks_parse(&back, old, sizeof old - 1, "m", 2));
    assert_true(back.gflops[NUMBERS_F32] == 3.5 && back.gflops[NUMBERS_BF16] == 0);
    peaks_keep_best(&back, &(struct peaks){.gflops[NUMBERS_F32] = 3, .gflops[NUMBERS_BF16] = 6});
    assert_true(back.gflops[NUMBERS_F32] == 3.5 && back.gflops[NUMBERS_BF16] == 6);
    peaks_keep_best(&back, &(struct peaks){.gflops[NUMBERS_F32] = 4, .gflops[NUMBERS_BF16] = 5});
    assert_true(back.gflops[NUMBERS_F32] == 4 && back.gflops[NUMBERS_BF16] == 6);
}

/* A copy in the last cache is no slower than one from memory, whatever a round says; a device without that level has none. */
static void test_the_last_cache_is_no_slower_than_memory(void **state)
{
    (void)state;
    struct peaks p = {.copy_gb_per_s = {100, 50, 21.8, 20}};
    peaks_keep_best(&p, &(struct peaks){.copy_gb_per_s = {90, 60, 21, 21.9}});
    assert_true(p.copy_gb_per_s[0] == 100 && p.copy_gb_per_s[1] == 60 && p.copy_gb_per_s[2] == 21.9 && p.copy_gb_per_s[3] == 21.9);
    p = (struct peaks){.copy_gb_per_s = {0, 0, 0, 3000}};
    peaks_keep_best(&p, &(struct peaks){.copy_gb_per_s = {0, 0, 0, 3100}});
    assert_true(p.copy_gb_per_s[2] == 0 && p.copy_gb_per_s[3] == 3100);
}

/* A GPU has products of more kinds, and prices of launches, of which the smaller is the better. */
static void test_of_a_gpu(void **state)
{
    (void)state;
    struct peaks p = sample("a GPU", 1), less, back;
    p.gflops[NUMBERS_TF32] = 400;
    p.gflops[NUMBERS_F16] = 700;
    p.gpu.replayed_us = 0.75;
    p.gpu.launched_us = 2.5;
    p.gpu.pinned_gb_per_s = 50;
    p.gpu.pageable_gb_per_s = 10;
    less = p;
    less.gflops[NUMBERS_F16] = 1;
    less.gpu.replayed_us = 0.5;
    less.gpu.launched_us = 0;               /* not measured */
    less.gpu.pinned_gb_per_s = 1;
    assert_int_equal(peaks_remember(&p, NULL), OK);
    assert_int_equal(peaks_remember(&less, NULL), OK);
    assert_true(peaks_recall(&back, "a GPU", 1));
    assert_same(&back, &p);
    assert_true(back.gflops[NUMBERS_TF32] == 400 && back.gflops[NUMBERS_F16] == 700 && back.gpu.replayed_us == 0.5);
    assert_true(back.gpu.launched_us == 2.5 && back.gpu.pinned_gb_per_s == 50 && back.gpu.pageable_gb_per_s == 10);
    for (enum numbers n = 0; n < NUMBERS; n++)
        assert_true(peaks_products(&back, n).numbers == n && peaks_products(&back, n).gflops == back.gflops[n]);
    p.gpu.launched_us = -1;
    assert_int_equal(peaks_remember(&p, NULL), BAD_INPUT);
}

/* What products are held against: the peak of their numbers, or of f32 where the machine has no such products. */
static void test_peak_of_products(void **state)
{
    (void)state;
    struct peaks p = {.gflops[NUMBERS_F32] = 100, .gflops[NUMBERS_BF16] = 300};
    const struct products_peak f32 = peaks_products(&p, NUMBERS_F32), bf16 = peaks_products(&p, NUMBERS_BF16);
    assert_true(f32.gflops == 100 && f32.numbers == NUMBERS_F32 && bf16.gflops == 300 && bf16.numbers == NUMBERS_BF16);
    assert_string_equal(numbers_name(f32.numbers), "f32");
    assert_string_equal(numbers_name(bf16.numbers), "bf16");
    assert_near(products_peak_percent(f32, 2e6, 40), 50, 1e-12, "2 MFLOP in 40 us of 100 GFLOP/s");
    assert_near(products_peak_percent(bf16, 2e6, 40), 50.0 / 3, 1e-12, "the same of 300");
    struct products_peak beaten = f32, unknown = {0};
    products_peak_raise(&beaten, 2e6, 40);              /* 50 GFLOP/s */
    assert_true(beaten.gflops == 100);
    products_peak_raise(&beaten, 2e6, 16);
    assert_near(beaten.gflops, 125, 1e-9, "what was reached");
    assert_near(products_peak_percent(beaten, 2e6, 16), 100, 1e-9, "and no more");
    products_peak_raise(&beaten, 2e6, 0);
    products_peak_raise(&unknown, 2e6, 16);
    assert_true(beaten.gflops < 126 && unknown.gflops == 0);
    p.gflops[NUMBERS_BF16] = 50;                                 /* slower than f32, and still what such products can do */
    assert_true(peaks_products(&p, NUMBERS_BF16).gflops == 50);
    p.gflops[NUMBERS_BF16] = 0;
    assert_true(peaks_products(&p, NUMBERS_BF16).gflops == 100 && peaks_products(&p, NUMBERS_BF16).numbers == NUMBERS_F32);
    assert_true(products_peak_percent((struct products_peak){0}, 1, 1) == 0 && products_peak_percent(f32, 1, 0) == 0);
}

/* Which of registers and products the peak of f32 is; what a step reached is neither's to claim. */
static void test_whose_peak(void **state)
{
    (void)state;
    struct peaks p = {.gflops[NUMBERS_F32] = 100, .gflops[NUMBERS_BF16] = 300, .registers_gflops = 100, .product_gflops = 90};
    struct products_peak f32 = peaks_products(&p, NUMBERS_F32);
    assert_true(f32.registers && f32.gflops == 100 && !peaks_products(&p, NUMBERS_BF16).registers);
    assert_string_equal(products_peak_word(f32), "registers");
    products_peak_raise(&f32, 110e3, 1);
    assert_true(!f32.registers && f32.gflops == 110);
    p.gflops[NUMBERS_F32] = p.product_gflops = 105;             /* registers were disturbed whenever they were measured */
    f32 = peaks_products(&p, NUMBERS_F32);
    assert_true(!f32.registers && f32.gflops == 105);
    assert_string_equal(products_peak_word(f32), "product");
    p.registers_gflops = p.product_gflops = 0;                  /* a GPU */
    assert_false(peaks_products(&p, NUMBERS_F32).registers);
}

static void test_long_machine(void **state)
{
    (void)state;
    char text[512], name[200];
    struct peaks back;
    for (int length = 159; length <= 160; length++) {
        memset(name, 'm', sizeof name);
        name[length] = '\0';
        snprintf(text, sizeof text, "{\"version\":7,\"entries\":[{\"machine\":\"%s\",\"threads\":2,\"gemm_gflops\":3,"
                 "\"copy_gb_per_s\":[1,2,3,4],\"cache_bytes\":[5,6,7,8]}]}", name);
        assert_int_equal(peaks_parse(&back, text, strlen(text), name, 2), length == 159);
    }
}

static void test_refuses_nonsense(void **state)
{
    (void)state;
    const struct peaks good = sample("m", 1);
    struct peaks bad[8] = {good, good, good, good, good, good, good, good};
    struct error err;
    bad[0].gflops[NUMBERS_F32] = NAN;
    bad[1].copy_gb_per_s[3] = INFINITY;
    bad[2].copy_gb_per_s[3] = 0;
    bad[3].threads = 0;
    strcpy(bad[4].machine, "\xFF");
    bad[5].cache_bytes[1] = -1;
    bad[6].gflops[NUMBERS_BF16] = -1;
    bad[7].gflops[NUMBERS_BF16] = NAN;
    for (int i = 0; i < 8; i++) {
        assert_int_equal(peaks_remember(&bad[i], &err), BAD_INPUT);
        assert_says(&err, "not remembered", NULL);
    }
    assert_false(fs_exists(at("cache/hone/peaks.json")));
}

/* The cache does not grow without end: the oldest fall out. */
static void test_bounded(void **state)
{
    (void)state;
    char *text = NULL;
    struct peaks back;
    for (int threads = 1; threads <= 100; threads++) {
        const struct peaks p = sample("m", threads);
        char *next = peaks_print(&p, text ? text : "", text ? strlen(text) : 0);
        assert_non_null(next);
        free(text);
        text = next;
    }
    assert_true(peaks_parse(&back, text, strlen(text), "m", 100));
    assert_true(peaks_parse(&back, text, strlen(text), "m", 37));
    assert_false(peaks_parse(&back, text, strlen(text), "m", 36));
    free(text);
}

static void test_cannot_write(void **state)
{
    (void)state;
    const struct peaks p = sample("m", 1);
    struct peaks back;
    struct error err;
    assert_int_equal(fs_write_synced(at("cache"), "x", 1, NULL), OK);   /* a file where the folder should be */
    assert_int_equal(peaks_remember(&p, &err), BAD_INPUT);
    assert_says(&err, "cache", NULL);
    assert_int_equal(unlink(at("cache")), 0);
    assert_int_equal(fs_make_dirs(at("cache/hone/peaks.json/x"), NULL), OK);
    assert_false(peaks_recall(&back, "m", 1));
    assert_int_equal(peaks_remember(&p, &err), BAD_INPUT);
    assert_says(&err, "cannot replace", "peaks.json", NULL);
}

/* Whatever library products were measured with: the best of them. */
static void hardware_is_known_by_the_beginning_of_its_name(void **state)
{
    (void)state;
    struct peaks slow = sample("a CPU, 2 cores, avx512, own kernels", 2), fast = sample("a CPU, 2 cores, avx512, openblas", 2), other = sample("a CPU, 2 cores, avx512+amx, openblas", 2), out;
    struct error err;
    fast.gflops[NUMBERS_F32] *= 2;
    other.gflops[NUMBERS_F32] *= 8;
    assert_false(peaks_recall_hardware(&out, "a CPU, 2 cores, avx512", 2));
    assert_true(peaks_remember(&fast, &err) == OK && peaks_remember(&slow, &err) == OK && peaks_remember(&other, &err) == OK);
    assert_true(peaks_recall_hardware(&out, "a CPU, 2 cores, avx512", 2));
    assert_true(out.gflops[NUMBERS_F32] == fast.gflops[NUMBERS_F32]);
    assert_false(peaks_recall_hardware(&out, "a CPU, 2 cores, avx", 2));
    assert_false(peaks_recall_hardware(&out, "a CPU, 2 cores, avx512", 1));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(hardware_is_known_by_the_beginning_of_its_name),
        TEST(test_bandwidth), TEST(test_remember_and_recall), TEST(test_forget), TEST(test_settle), TEST(test_no_leftovers), TEST(test_where),
        TEST(test_damaged_is_absent), TEST(test_hostile_fields), TEST(test_without_bf16), TEST(test_whose_peak), TEST(test_long_machine),
        TEST(test_of_a_gpu), TEST(test_the_last_cache_is_no_slower_than_memory), TEST(test_peak_of_products), TEST(test_refuses_nonsense), TEST(test_bounded), TEST(test_cannot_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
