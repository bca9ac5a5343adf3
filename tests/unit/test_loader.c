/* The loader: the same batches in the same order for any number of workers, from any start, and errors where they
 * belong. */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "data/data_int.h"

enum { SEQ = 16, SIZE = 3, BATCHES = 60 };

/* Under a sanitizer: let absurd sizes fail as they do without. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

static struct dataset *corpus_open(enum data_samples samples)
{
    const struct config c = {
        .model = {.seq = SEQ, .segments = 2},
        .data = {.source = SOURCE_CORPUS, .domain = DOMAIN_CODE, .chars = 2000, .samples = samples,
                 .val_fraction = 0.2},
        .train = {.seed = 3},
    };
    struct dataset *d = NULL;
    struct error err;
    if (dataset_open(&d, &c, &err) != OK)
        fail_msg("%s", err.text);
    return d;
}

static struct loader *loader_start(const struct dataset *d, enum split split, int64_t first, int workers, int prefetch)
{
    struct loader *l = NULL;
    struct error err;
    if (loader_new(&l, d, split, SIZE, first, workers, prefetch, &err) != OK)
        fail_msg("%s", err.text);
    return l;
}

static const struct batch *next(struct loader *l)
{
    struct error err;
    const struct batch *b = loader_next(l, &err);
    if (!b)
        fail_msg("%s", err.text);
    return b;
}

/* The batch holds exactly the samples that its number says. */
static void assert_batch(const struct dataset *d, enum split split, const struct batch *b, int64_t index)
{
    int64_t real = 0;
    assert_int_equal(b->index, index);
    assert_int_equal(b->size, SIZE);
    assert_int_equal(b->seq, SEQ);
    for (int64_t i = 0; i < SIZE; i++) {
        int32_t tokens[SEQ], targets[SEQ], segments[SEQ];
        assert_int_equal(dataset_sample(d, split, index * SIZE + i, tokens, targets, segments, NULL), OK);
        assert_memory_equal(b->tokens + i * SEQ, tokens, sizeof tokens);
        assert_memory_equal(b->targets + i * SEQ, targets, sizeof targets);
        assert_memory_equal(b->segments + i * SEQ, segments, sizeof segments);
        for (int k = 0; k < SEQ; k++)
            real += targets[k] >= 0;
    }
    assert_int_equal(b->real_tokens, real);
}

static void test_same_for_any_workers(void **state)
{
    (void)state;
    static const int workers[] = {0, 1, 2, 4, 7}, prefetch[] = {0, 1, 2, 5};
    for (int samples = 0; samples < 2; samples++) {
        struct dataset *d = corpus_open(samples ? SAMPLES_LINES : SAMPLES_WINDOWS);
        for (int w = 0; w < 5; w++) {
            for (int p = 0; p < 4; p++) {
                struct loader *l = loader_start(d, SPLIT_TRAIN, 0, workers[w], prefetch[p]);
                for (int64_t i = 0; i < BATCHES; i++)       /* more than one epoch */
                    assert_batch(d, SPLIT_TRAIN, next(l), i);
                assert_true(loader_wait_ns(l) > 0);
                loader_free(l);
            }
        }
        assert_true(BATCHES * SIZE > dataset_samples(d, SPLIT_TRAIN));
        dataset_free(d);
    }
}

/* As many as are to be ready come to be so, and no more; nothing is ready where nobody works ahead. */
static void test_ahead(void **state)
{
    (void)state;
    struct dataset *d = corpus_open(SAMPLES_WINDOWS);
    struct loader *l = loader_start(d, SPLIT_TRAIN, 0, 2, 3);
    while (loader_ahead(l) < 6)
        sched_yield();
    for (int i = 0; i < 20; i++) {
        assert_batch(d, SPLIT_TRAIN, next(l), i);
        assert_in_range(loader_ahead(l), 0, 6);
    }
    loader_free(l);
    l = loader_start(d, SPLIT_TRAIN, 0, 0, 3);
    assert_batch(d, SPLIT_TRAIN, next(l), 0);
    assert_int_equal(loader_ahead(l), 0);
    loader_free(l);
    dataset_free(d);
}

/* Nothing is begun while it rests; reading ends that, and the batches are those they would have been. */
static void test_rest(void **state)
{
    (void)state;
    enum { AHEAD = 20000, MS = 1000000, READ = 5 };
    struct dataset *d = corpus_open(SAMPLES_WINDOWS);
    struct loader *l = loader_start(d, SPLIT_TRAIN, 0, 2, AHEAD / 2);
    assert_in_range(loader_rest(l), 0, 2);
    const int64_t rested = loader_ahead(l);
    nanosleep(&(struct timespec){.tv_nsec = 20 * MS}, NULL);
    assert_true(rested < AHEAD);
    assert_int_equal(loader_ahead(l), rested);
    for (int i = 0; i < READ; i++)
        assert_batch(d, SPLIT_TRAIN, next(l), i);
    while (loader_ahead(l) < AHEAD - READ)
        sched_yield();
    assert_int_equal(loader_rest(l), 0);                    /* all are ready: nothing is under way */
    loader_free(l);
    dataset_free(d);
}

static void test_restart(void **state)
{
    (void)state;
    struct dataset *d = corpus_open(SAMPLES_WINDOWS);
    for (int workers = 0; workers < 3; workers++) {
        struct loader *l = loader_start(d, SPLIT_TRAIN, 1000003, workers, 2);
        for (int64_t i = 0; i < 10; i++)
            assert_batch(d, SPLIT_TRAIN, next(l), 1000003 + i);
        loader_free(l);
        l = loader_start(d, SPLIT_VAL, 5, workers, 2);
        for (int64_t i = 0; i < 10; i++)
            assert_batch(d, SPLIT_VAL, next(l), 5 + i);
        loader_free(l);
    }
    dataset_free(d);
}

static void test_padding_is_counted(void **state)
{
    (void)state;
    struct dataset *d = corpus_open(SAMPLES_LINES);
    struct loader *l = loader_start(d, SPLIT_TRAIN, 0, 2, 2);
    bool padded = false;
    for (int i = 0; i < BATCHES; i++) {
        const struct batch *b = next(l);
        assert_true(b->real_tokens > 0 && b->real_tokens <= SIZE * SEQ);
        padded |= b->real_tokens < SIZE * SEQ;
    }
    assert_true(padded);
    loader_free(l);
    dataset_free(d);
}

/* A batch stays as it is until the next call, however long the reader takes and however eager the workers are. */
static void test_batch_is_stable(void **state)
{
    (void)state;
    struct dataset *d = corpus_open(SAMPLES_WINDOWS);
    struct loader *l = loader_start(d, SPLIT_TRAIN, 0, 4, 1);
    for (int64_t i = 0; i < 10; i++) {
        const struct batch *b = next(l);
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        assert_batch(d, SPLIT_TRAIN, b, i);
    }
    loader_free(l);
    dataset_free(d);
}

static void test_stop_at_any_time(void **state)
{
    (void)state;
    struct dataset *d = corpus_open(SAMPLES_WINDOWS);
    for (int round = 0; round < 40; round++) {
        struct loader *l = loader_start(d, SPLIT_TRAIN, round, round % 5, 1 + round % 3);
        for (int i = 0; i < round % 7; i++)
            next(l);
        loader_free(l);
    }
    loader_free(NULL);
    dataset_free(d);
}

/* Validation takes its samples in order, so the first batch that needs a token beyond the cut is known. */
static void test_error_at_its_batch(void **state)
{
    (void)state;
    enum { TOKENS = 40000, LEFT_BYTES = 16384 };
    static uint16_t tokens[TOKENS];
    const int64_t page = sysconf(_SC_PAGESIZE), left = (LEFT_BYTES + page - 1) / page * page / 2;
    struct config c = {.model = {.seq = SEQ}, .data = {.source = SOURCE_BIN}};
    char path[] = "/tmp/hone-test-loader-XXXXXX";
    const int fd = mkstemp(path);
    assert_int_equal(write(fd, tokens, sizeof tokens), sizeof tokens);
    strcpy(c.data.path, path);
    strcpy(c.data.val_path, path);
    struct dataset *d = NULL;
    assert_int_equal(dataset_open(&d, &c, NULL), OK);
    assert_int_equal(ftruncate(fd, LEFT_BYTES), 0);
    for (int workers = 0; workers < 5; workers++) {
        const int64_t good_batches = (left - 1) / SEQ / SIZE;
        struct loader *l = loader_start(d, SPLIT_VAL, 0, workers, 3);
        struct error err = {.text = ""};
        for (int64_t i = 0; i < good_batches; i++)
            assert_int_equal(next(l)->index, i);
        for (int again = 0; again < 3; again++) {
            assert_null(loader_next(l, &err));
            assert_int_equal(err.status, BAD_INPUT);
            assert_non_null(strstr(err.text, path));
        }
        loader_free(l);
    }
    dataset_free(d);
    close(fd);
    unlink(path);
}

static void test_refuses(void **state)
{
    (void)state;
    struct dataset *d = corpus_open(SAMPLES_WINDOWS);
    struct loader *l = NULL;
    struct error err;
    assert_int_equal(loader_new(&l, d, SPLIT_TRAIN, INT64_MAX / 8, 0, 2, 2, &err), CANNOT);
    assert_non_null(strstr(err.text, "out of memory: the batches that are prepared ahead needs "));
    assert_non_null(strstr(err.text, "; try a smaller batch_size, data.workers or data.prefetch"));
    assert_int_equal(loader_new(&l, d, SPLIT_TRAIN, (int64_t)1 << 50, 0, 0, 0, &err), CANNOT);
    assert_null(l);
    dataset_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_for_any_workers), cmocka_unit_test(test_ahead), cmocka_unit_test(test_rest), cmocka_unit_test(test_restart),
        cmocka_unit_test(test_padding_is_counted),   cmocka_unit_test(test_batch_is_stable),
        cmocka_unit_test(test_stop_at_any_time),     cmocka_unit_test(test_error_at_its_batch),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
