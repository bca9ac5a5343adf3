/* The executor binds values of every type: first values, and what two programs share; and a device that fails ends everything. */
#include "core/bf16.h"
#include "support/models.h"
#include "support/optimized.h"

static value_id parameter(struct program *p, const char *name, enum dtype type, enum param_init init, int64_t n)
{
    const value_id v = program_add_parameter(p, name, shape_of(1, n), ROLE_MATRIX, init, 0.5f);
    p->values[v].dtype = type;
    return v;
}

/* Numbers of two bytes get the same draw as those of four, rounded, and nothing beside them is written. */
static void test_first_values_of_bf16(void **state)
{
    (void)state;
    enum { N = 1000 };
    struct program *p = program_new("types");
    const value_id half = parameter(p, "w", BF16, INIT_NORMAL, N), ones = parameter(p, "one", BF16, INIT_ONES, N),
                   zeros = parameter(p, "zero", BF16, INIT_ZEROS, N), wide = parameter(p, "wide", F32, INIT_ONES, N);
    struct backend *b = new_backend(1, true);
    struct exec *e = new_exec(p, b);
    uint16_t is[N];
    float drawn[N];
    rng_fill_normal(drawn, N, 0.5f, 3, rng_stream_of("w"));
    exec_read(e, half, is);
    for (int i = 0; i < N; i++)
        assert_int_equal(is[i], bf16_bits(drawn[i]));
    exec_read(e, ones, is);
    for (int i = 0; i < N; i++)
        assert_int_equal(is[i], 0x3f80);
    exec_read(e, zeros, is);
    for (int i = 0; i < N; i++)
        assert_int_equal(is[i], 0);
    exec_read(e, wide, drawn);
    for (int i = 0; i < N; i++)
        assert_true(drawn[i] == 1);
    exec_free(e);
    b->free(b);
}

/* Many weights are drawn by several threads: the numbers are those of one. What was written since is what it was at first again. */
static void test_first_values_of_many(void **state)
{
    (void)state;
    enum { N = (1 << 20) + 3 };
    struct program *p = program_new("many");
    const value_id w = parameter(p, "w", F32, INIT_NORMAL, N);
    const value_id m = program_add_value(p, "m", VALUE_STATE, F32, shape_of(1, (int64_t)N));
    struct backend *b = new_backend(3, true);
    struct exec *e = new_exec(p, b);
    struct error err;
    float *drawn = xcalloc(N, sizeof *drawn), *zeros = xcalloc(N, sizeof *zeros);
    rng_fill_normal(drawn, N, 0.5f, 3, rng_stream_of("w"));
    for (int round = 0; round < 2; round++) {
        float *is = read_value(e, w), *state_is = read_value(e, m);
        assert_memory_equal(is, drawn, N * sizeof *is);
        assert_memory_equal(state_is, zeros, N * sizeof *is);
        exec_write(e, m, drawn);
        exec_write(e, w, zeros);
        assert_ok(exec_init_parameters(e, 3, &err), err);
        free(is);
        free(state_is);
    }
    free(drawn);
    free(zeros);
    exec_free(e);
    b->free(b);
}

/* A value that another program has under the same name and shape, but in another type, is another value. */
static void test_shared_values_have_one_type(void **state)
{
    (void)state;
    enum { N = 64 };
    struct backend *b = new_backend(1, true);
    struct program *p = program_new("first"), *q = program_new("second");
    const value_id w = parameter(p, "w", F32, INIT_ONES, N), same = parameter(p, "same", F32, INIT_ONES, N);
    const value_id w16 = parameter(q, "w", BF16, INIT_ONES, N), also = parameter(q, "same", F32, INIT_ONES, N);
    struct exec *first = new_exec(p, b), *second = NULL;
    struct error err;
    float seven[N], is[N];
    uint16_t zeros[N] = {0};
    for (int i = 0; i < N; i++)
        seven[i] = 7;
    exec_write(first, w, seven);
    exec_write(first, same, seven);
    assert_ok(exec_new(&second, q, b, first, &err), err);
    exec_write(second, w16, zeros);
    exec_read(first, w, is);
    assert_memory_equal(is, seven, sizeof seven);
    exec_read(second, also, is);
    assert_memory_equal(is, seven, sizeof seven);
    exec_free(second);
    exec_free(first);
    b->free(b);
}

static void *(*real_alloc)(struct backend *, size_t);
static size_t taken;

static void *counting_alloc(struct backend *b, size_t bytes)
{
    taken += bytes;
    return real_alloc(b, bytes);
}

/* Steps of other lengths, or an evaluation, work where the first program works: beside it they take what is their own. */
static void test_programs_share_where_they_work(void **state)
{
    (void)state;
    struct backend *b = new_backend(2, false);
    const struct optimizer_settings settings = small_settings();
    const struct small_model *m = &small_models[SMALL_GPT];
    struct program *p[2];
    for (int i = 0; i < 2; i++)
        p[i] = optimized_training(*m, &settings, PASS_SET_ALL, NULL, NULL);
    struct exec *first = new_exec(p[0], b), *second = NULL;
    struct error err;
    assert_true(exec_memory(first).scratch > 0);
    real_alloc = b->alloc;
    b->alloc = counting_alloc;
    taken = 0;
    assert_ok(exec_new(&second, p[1], b, first, &err), err);
    assert_true(taken < exec_memory(second).scratch && taken < exec_memory(second).workspace);
    exec_free(second);
    exec_free(first);
    b->free(b);
}

/* ---- a device that fails ---- */

static enum status (*real_run)(struct backend *, struct prepared *, int, int, struct lane_time *, struct error *);
static int runs;

static enum status failing_run(struct backend *b, struct prepared *p, int first, int end, struct lane_time *times, struct error *err)
{
    if (++runs == 3)
        return error_set(err, CANNOT, "the device was lost in op %s", b->about(p, first).kernel);
    return real_run(b, p, first, end, times, err);
}

/* The failure stays, with its words; nothing runs after it, and what is read is no number. */
static void test_a_failure_stays(void **state)
{
    (void)state;
    struct backend *b = new_backend(2, false);
    struct program *p = program_new("counts");
    const value_id tick = program_add_value(p, "tick", VALUE_STATE, I32, shape_of(1, (int64_t)1)), w = parameter(p, "w", F32, INIT_ONES, 1);
    p->phase = PHASE_DATA;
    program_emit(p, OP_ADVANCE, (struct op_attrs){0}, "tick", 1, tick);
    struct exec *e = new_exec(p, b);
    struct error err;
    int32_t is;
    real_run = b->run;
    b->run = failing_run;
    runs = 0;
    for (int i = 0; i < 5; i++)
        exec_run(e, PHASE_DATA, PHASE_OPTIMIZE);
    assert_int_equal(runs, 3);
    assert_int_equal(exec_status(e, &err), CANNOT);
    assert_non_null(strstr(err.text, "the device was lost in op "));
    assert_true(isnan(exec_scalar(e, w)));
    exec_read(e, tick, &is);
    assert_int_equal(is, -1);
    exec_free(e);
    b->free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_values_of_bf16),
        cmocka_unit_test(test_first_values_of_many),
        cmocka_unit_test(test_shared_values_have_one_type),
        cmocka_unit_test(test_programs_share_where_they_work),
        cmocka_unit_test(test_a_failure_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
