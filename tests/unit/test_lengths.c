/* Batches of different lengths: what the loader makes of samples, and that a run over them is the run over rows of seq tokens. */
#include "core/arena.h"
#include "data/data_int.h"
#include "support/check.h"
#include "train/train_int.h"

static struct config lines_config(const char *const *sets, int n)
{
    static const char text[] = "model: {arch: gpt, dim: 16, layers: 1, heads: 2, seq: 40, segments: 2}\n"
                               "data: {domain: code, samples: lines, chars: 20000, workers: 0, bucket: 8, group: 4}\n"
                               "train: {batch_size: 6, steps: 20, warmup: 2, lr: 0.01, schedule: constant}\n"
                               "eval: {every: 10, batches: 3}\nthreads: 1\n";
    struct config c;
    struct error err;
    assert_ok(config_parse(&c, "t.yaml", text, sizeof text - 1, sets, n, &err), err);
    return c;
}

static struct dataset *open_data(const struct config *c)
{
    struct dataset *d;
    struct error err;
    assert_ok(dataset_open(&d, c, &err), err);
    return d;
}

static const struct batch *next(struct loader *l)
{
    struct error err;
    const struct batch *b = loader_next(l, &err);
    if (!b)
        fail_msg("%s", err.text);
    return b;
}

/* Whose sample a row is: a hash of its tokens and targets, padding left out. */
static uint64_t row_hash(const int32_t *tokens, const int32_t *targets, int64_t seq)
{
    uint64_t h = 1;
    for (int64_t i = 0; i < seq && targets[i] >= 0; i++)
        h = (h * 1000003 + (uint64_t)tokens[i]) * 1000003 + (uint64_t)targets[i];
    return h;
}

static void check_batch(const struct batch *b, int64_t seq, int64_t bucket, uint64_t *hashes)
{
    int64_t longest = 0, filled = 0;
    for (int64_t i = 0; i < b->size; i++) {
        const int32_t *targets = b->targets + i * b->seq;
        int64_t n = 0;
        while (n < b->seq && targets[n] >= 0)
            n++;
        for (int64_t k = 0; k < b->seq; k++) {
            assert_int_equal(b->positions[i * b->seq + k], k);
            assert_true(k < n || (targets[k] < 0 && b->segments[i * b->seq + k] == 0));
        }
        filled += n;
        longest = n > longest ? n : longest;
        hashes[i] = row_hash(b->tokens + i * b->seq, targets, b->seq);
    }
    assert_int_equal(b->filled, filled);
    const int64_t up = (longest + bucket - 1) / bucket * bucket;
    assert_int_equal(b->seq, up < seq ? up : seq);
}

static int compare_hashes(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* A window has the samples that it would have without lengths, each once, in shorter rows; whoever makes the batches. */
static void test_windows_keep_their_samples(void **state)
{
    (void)state;
    const struct config c = lines_config(NULL, 0);
    enum { SIZE = 6, GROUP = 4, WINDOWS = 5, N = SIZE * GROUP };
    struct dataset *d = open_data(&c);
    struct error err;
    for (int workers = 0; workers < 3; workers++) {
        struct loader *l;
        double positions = 0;
        assert_ok(loader_new_divided(&l, d, SPLIT_TRAIN, SIZE, (struct batch_division){.shards = 1, .here = 1, .accumulate = 1, .group = GROUP}, 0, workers, 2, &err), err);
        for (int w = 0; w < WINDOWS; w++) {
            uint64_t is[N], should[N];
            int32_t tokens[40], targets[40];
            for (int k = 0; k < GROUP; k++) {
                const struct batch *b = next(l);
                check_batch(b, 40, 8, is + k * SIZE);
                positions += (double)(b->size * b->seq);
            }
            for (int64_t i = 0; i < N; i++) {
                assert_ok(dataset_sample(d, SPLIT_TRAIN, w * N + i, tokens, targets, NULL, &err), err);
                should[i] = row_hash(tokens, targets, 40);
            }
            qsort(is, N, sizeof *is, compare_hashes);
            qsort(should, N, sizeof *should, compare_hashes);
            assert_memory_equal(is, should, sizeof is);
        }
        assert_true(positions < 0.9 * WINDOWS * N * 40);
        loader_free(l);
    }
    assert_true(dataset_padding(d, SIZE, 8, GROUP) < dataset_padding(d, SIZE, 8, 1));
    assert_true(dataset_padding(d, SIZE, 8, 1) < dataset_padding(d, SIZE, 0, 1));
    dataset_free(d);
}

/* A batch has the same samples in any number of parts. */
static void test_parts_of_a_batch(void **state)
{
    (void)state;
    const struct config c = lines_config(NULL, 0);
    enum { BATCH = 12, GROUP = 4, BATCHES = 10 };
    static const int64_t parts[] = {1, 2, 3, 12};
    uint64_t first[BATCHES][BATCH], is[BATCHES][BATCH];
    struct dataset *d = open_data(&c);
    struct error err;
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        const int64_t n = parts[p], size = BATCH / n;
        for (int64_t rank = 0; rank < n; rank++) {
            struct loader *l;
            assert_ok(loader_new_divided(&l, d, SPLIT_TRAIN, size, (struct batch_division){.shards = n, .first = rank, .here = 1, .accumulate = 1, .group = GROUP}, 0, 0, 2, &err), err);
            for (int k = 0; k < BATCHES; k++)
                check_batch(next(l), 40, 8, is[k] + rank * size);
            loader_free(l);
        }
        for (int k = 0; k < BATCHES; k++)
            qsort(is[k], BATCH, sizeof **is, compare_hashes);
        if (p == 0)
            memcpy(first, is, sizeof is);
        assert_memory_equal(is, first, sizeof is);
    }
    dataset_free(d);
}

/* What evaluation costs in a run is scaled by the rows that its own batches have, which are not those of training. */
static void test_rows_of_evaluation(void **state)
{
    (void)state;
    enum { SIZE = 1, BATCHES = 9 };
    const char *sets[] = {"eval.batch_size=1", "eval.batches=9"};
    const struct config c = lines_config(sets, 2);
    struct dataset *d = open_data(&c);
    struct loader *l;
    struct measured m;
    struct error err;
    double tokens = 0;
    assert_ok(loader_new(&l, d, SPLIT_VAL, SIZE, 0, 0, 1, &err), err);
    for (int k = 0; k < BATCHES; k++)
        tokens += (double)next(l)->seq;
    loader_free(l);
    const double scale = tokens / (BATCHES * 40);
    assert_true(scale < 0.9);
    assert_near(dataset_validation_rows(d, SIZE, BATCHES, 8), scale, 1e-12, "rows of validation batches");
    assert_near(dataset_validation_rows(d, SIZE, BATCHES, 0), 1, 0, "whole rows");
    dataset_free(d);
    assert_ok(measure_steps(&m, &c, 2, NULL, NULL, NULL, &err), err);
    assert_near(m.evaluation_scale, scale, 1e-12, "the scale of a measurement");
    assert_near(measured_evaluation_us(&m), m.evaluation_us * scale / 10, 1e-9 * m.evaluation_us, "evaluation per step");
    measured_release(&m);
}

/* Losses of some steps, and of an evaluation behind them. */
static void run(const struct config *c, double *losses, int steps, double *padding)
{
    struct model_run r;
    struct loader *l;
    struct error err;
    assert_ok(model_run_open(&r, c, open_data(c), &err), err);
    assert_ok(model_run_loader(&l, &r, 0, 0, 1, &err), err);
    for (int i = 0; i < steps; i++) {
        bool whole;
        assert_ok(model_run_step(&r, l, NULL, &whole, &err), err);
        losses[i] = model_run_host(&r, "host.loss");
    }
    assert_ok(model_run_evaluate(&r, NULL, losses + steps, &err), err);
    *padding = fill_padding(&r.fill);
    loader_free(l);
    model_run_close(&r);
}

/* Rows of seq tokens, or as long as they need to be: the same samples, so the same losses but for rounding. */
static void compare_lengths(const char *const *more, int n)
{
    enum { STEPS = 16 };
    const char *whole[8] = {"data.bucket=40"}, *shorter[8] = {"data.bucket=8"};     /* groups are the same */
    double a[STEPS + 1], b[STEPS + 1], padded, less;
    for (int i = 0; i < n; i++)
        whole[1 + i] = shorter[1 + i] = more[i];
    const struct config rows = lines_config(whole, 1 + n), lengths = lines_config(shorter, 1 + n);
    run(&rows, a, STEPS, &padded);
    run(&lengths, b, STEPS, &less);
    for (int i = 0; i <= STEPS; i++)
        assert_near(b[i], a[i], 1e-4 * a[0], "the loss of a step");
    assert_true(a[STEPS] < a[0] && less < 0.7 * padded);
}

static void test_same_run(void **state)
{
    (void)state;
    compare_lengths(NULL, 0);
}

static void test_same_run_without_passes(void **state)
{
    (void)state;
    compare_lengths((const char *[]){"optimize.passes=none"}, 1);
}

/* Micro-batches of one step have different lengths, and weigh by their targets. */
static void test_same_run_accumulated(void **state)
{
    (void)state;
    compare_lengths((const char *[]){"train.accumulate=3"}, 1);
    compare_lengths((const char *[]){"dist.shards=2", "train.accumulate=2"}, 2);
}

static void test_same_run_rotary(void **state)
{
    (void)state;
    compare_lengths((const char *[]){"model.arch=llama"}, 1);
}

/* ---- copies of weights in bf16 ---- */

static struct program *step_of(const struct program *like, struct config c, int64_t length, int64_t rows)
{
    struct program *p;
    struct error err;
    c.model.vocab = 50;
    c.model.length = length;
    c.model.rows = rows;
    assert_ok(step_program_for(&p, &c, 20, &(struct step_for){.like = like}, NULL, &err), err);
    return p;
}

static bool updates(const struct program *p, const char *name)
{
    for (int i = 0; i < p->n_ops; i++)
        for (int k = 0; k < p->ops[i].n_out && p->ops[i].phase == PHASE_OPTIMIZE; k++)
            if (!strcmp(p->values[p->ops[i].out[k]].name, name))
                return true;
    return false;
}

static int count_copies(const struct program *p)
{
    int n = 0;
    for (int v = 0; v < p->n_values; v++)
        n += p->values[v].kind == VALUE_TABLE && p->values[v].dtype == BF16;
    return n;
}

/* A step of another shape has room for more or fewer of them; but what one step reads all must write. */
static void test_all_lengths_write_the_same_copies(void **state)
{
    (void)state;
    const struct config c = lines_config((const char *[]){"optimize.precision=bf16", "model.dim=64", "model.seq=64", "train.batch_size=1"}, 4);
    const struct { int64_t length, rows; } shapes[] = {{8, 0}, {0, 16}};
    struct program *first = step_of(NULL, c, 0, 0);
    for (int i = 0; i < 2; i++) {
        struct program *alone = step_of(NULL, c, shapes[i].length, shapes[i].rows), *p = step_of(first, c, shapes[i].length, shapes[i].rows);
        assert_int_not_equal(count_copies(alone), count_copies(first));
        assert_int_equal(count_copies(p), count_copies(first));
        for (int v = 0; v < first->n_values; v++)
            if (first->values[v].kind == VALUE_TABLE && first->values[v].dtype == BF16)
                assert_true(program_find(p, first->values[v].name) != NO_VALUE && updates(p, first->values[v].name));
        program_free(alone);
        program_free(p);
    }
    program_free(first);
}

/* ---- samples that share rows ---- */

/* Every sample is somewhere, whole, with positions and a start of its own; the rest is padding. */
static void check_packed(const struct batch *b, uint64_t *hashes, int *found)
{
    int64_t filled = 0;
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t at = 0; at < b->seq;) {
            const int64_t first = r * b->seq + at;
            int64_t n = 0;
            while (at + n < b->seq && b->starts[first + n] == at && b->positions[first + n] == n)
                n++;
            assert_true(n > 0);
            int64_t real = 0;
            while (real < n && b->targets[first + real] >= 0)
                real++;
            assert_true(real == n || real == 0);                    /* padding is by itself */
            if (real) {
                hashes[(*found)++] = row_hash(b->tokens + first, b->targets + first, n);
                filled += n;
            }
            at += n;
        }
    assert_int_equal(b->filled, filled);
}

static void test_packed_rows(void **state)
{
    (void)state;
    const struct config c = lines_config((const char *[]){"data.group=1", "data.pack=on", "model.seq=96"}, 3);
    enum { SIZE = 24, BATCHES = 12 };
    struct dataset *d = open_data(&c);
    const int64_t usual = dataset_rows(d, SIZE);
    struct error err;
    double positions = 0, filled = 0;
    assert_true(usual < SIZE);
    for (int workers = 0; workers < 2; workers++) {
        struct loader *l;
        assert_ok(loader_new_divided(&l, d, SPLIT_TRAIN, SIZE, (struct batch_division){.shards = 1, .here = 1, .accumulate = 1, .pack = true}, 0,
                                     workers, 2, &err), err);
        for (int64_t k = 0; k < BATCHES; k++) {
            const struct batch *b = next(l);
            uint64_t is[SIZE * 96], should[SIZE];
            int32_t tokens[96], targets[96];
            int found = 0;
            assert_true(b->rows == usual || b->rows == SIZE);
            check_packed(b, is, &found);
            assert_int_equal(found, SIZE);
            for (int64_t i = 0; i < SIZE; i++) {
                assert_ok(dataset_sample(d, SPLIT_TRAIN, k * SIZE + i, tokens, targets, NULL, &err), err);
                should[i] = row_hash(tokens, targets, 96);
            }
            qsort(is, SIZE, sizeof *is, compare_hashes);
            qsort(should, SIZE, sizeof *should, compare_hashes);
            assert_memory_equal(is, should, sizeof should);
            positions += (double)(b->rows * b->seq);
            filled += (double)b->filled;
        }
        loader_free(l);
    }
    if (filled < 0.7 * positions)
        fail_msg("%.1f %% of the rows are filled", 100 * filled / positions);
    dataset_free(d);
}

/* Samples in rows of their own, or together in fewer: the same losses but for rounding. */
static void compare_packed(const char *const *more, int n)
{
    enum { STEPS = 12 };
    const char *apart[8] = {"data.group=1", "data.bucket=0"}, *together[8] = {"data.group=1", "data.bucket=0"};
    double a[STEPS + 1], b[STEPS + 1], padded, less;
    for (int i = 0; i < n; i++)
        apart[2 + i] = together[2 + i] = more[i];
    together[2 + n] = "data.pack=on";
    const struct config rows = lines_config(apart, 2 + n), packed = lines_config(together, 3 + n);
    run(&rows, a, STEPS, &padded);
    run(&packed, b, STEPS, &less);
    for (int i = 0; i <= STEPS; i++)
        assert_near(b[i], a[i], 1e-4 * a[0], "the loss of a step");
    assert_true(a[STEPS] < a[0] && less < padded);
}

static void test_packed_run(void **state)
{
    (void)state;
    compare_packed((const char *[]){"model.seq=96"}, 1);
    compare_packed((const char *[]){"model.seq=96", "optimize.passes=none"}, 2);
    compare_packed((const char *[]){"model.seq=160", "train.accumulate=2", "model.arch=llama"}, 3);
    compare_packed((const char *[]){"model.seq=96", "backend.kernels=reference", "dist.shards=2"}, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows_keep_their_samples), cmocka_unit_test(test_parts_of_a_batch), cmocka_unit_test(test_same_run), cmocka_unit_test(test_same_run_without_passes),
        cmocka_unit_test(test_rows_of_evaluation),
        cmocka_unit_test(test_same_run_accumulated),       cmocka_unit_test(test_same_run_rotary),
        cmocka_unit_test(test_all_lengths_write_the_same_copies),
        cmocka_unit_test(test_packed_rows),                cmocka_unit_test(test_packed_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
