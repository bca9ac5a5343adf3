/* Dropout: the mask is a function of seed, stream and tick alone, whoever computes it. */
#include "support/backends.h"
#include "support/models.h"
#include "support/plain.h"
#include "support/table.h"

enum { MANY = 20011 };

/* Ones through dropout at a tick: 0 or 1 / (1 - p). */
static float *dropped(struct backend *b, float prob, int32_t tick, uint64_t stream)
{
    struct program *p = program_new("dropout");
    const value_id x = program_add_value(p, "x", VALUE_INPUT, F32, shape_of(1, (int64_t)MANY));
    const value_id t = program_add_value(p, "tick", VALUE_STATE, I32, shape_of(0));
    const struct op_attrs attrs = {.prob = prob, .seed = 5, .stream = stream};
    const value_id y = program_emit(p, OP_DROPOUT, attrs, "y", 2, x, t);
    struct plain run = plain_new(p, b);
    for (int i = 0; i < MANY; i++)
        ((float *)run.memory[x])[i] = 1;
    plain_write(&run, t, &tick);
    plain_run(&run, PHASE_FORWARD, PHASE_FORWARD);
    float *out = memcpy(plain_alloc(MANY * sizeof *out), run.memory[y], MANY * sizeof *out);
    plain_release(&run);
    program_free(p);
    return out;
}

static int differences(const float *a, const float *b)
{
    int n = 0;
    for (int i = 0; i < MANY; i++)
        n += a[i] != b[i];
    return n;
}

static void test_dropout_is_a_function_of_its_tick(void **state)
{
    (void)state;
    float *first = dropped(reference, 0.3f, 1, 1);
    const struct { struct backend *b; int32_t tick; uint64_t stream; bool same; } cases[] = {
        {reference, 1, 1, true}, {tuned, 1, 1, true}, {reference, 2, 1, false}, {tuned, 1, 2, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float *other = dropped(cases[i].b, 0.3f, cases[i].tick, cases[i].stream);
        const double share = (double)differences(first, other) / MANY;
        assert_near(share, cases[i].same ? 0 : 2 * 0.3 * 0.7, cases[i].same ? 0 : 0.02, "the share of differences");
        free(other);
    }
    for (int threads = 1; threads <= 5; threads++) {
        struct backend *b = new_backend(threads, false);
        float *other = dropped(b, 0.3f, 1, 1);
        assert_int_equal(differences(first, other), 0);
        free(other);
        b->free(b);
    }
    free(first);
}

static void test_dropout_keeps_its_share(void **state)
{
    (void)state;
    static const float probs[] = {0, 0.1f, 0.5f, 0.9f};
    for (int k = 0; k < 4; k++) {
        float *y = dropped(tuned, probs[k], 3, 1);
        int kept = 0;
        for (int i = 0; i < MANY; i++) {
            assert_true(y[i] == 0 || fabsf(y[i] - 1 / (1 - probs[k])) < 1e-6f);
            kept += y[i] != 0;
        }
        assert_near((double)kept / MANY, 1 - probs[k], 0.018, "the share that is kept");    /* 5 standard errors */
        free(y);
    }
}

/* The gradient is dropped where the activation was. */
static void test_dropout_backward_has_the_mask_of_forward(void **state)
{
    (void)state;
    struct program *p = program_new("mask");
    struct error err;
    const value_id w = add_table(p, "w", ROLE_MATRIX);
    const value_id tick = program_add_value(p, "tick", VALUE_STATE, I32, shape_of(0));
    program_emit(p, OP_ADVANCE, NONE, "tick", 1, tick);
    const struct op_attrs half = {.prob = 0.5f, .seed = 1, .stream = 1};
    const value_id y = program_emit(p, OP_DROPOUT, half, "y", 2, w, tick);
    add_loss(p, y);
    assert_ok(pass_autodiff(p, &err), err);
    struct plain run = plain_new(p, tuned);
    rng_fill_normal(run.memory[w], ROWS * WIDTH, 1, 1, 1);
    plain_write(&run, p->targets, TARGETS_OF_TABLE);
    int zeros = 0;
    for (int step = 0; step < 10; step++) {
        plain_run(&run, PHASE_FORWARD, PHASE_BACKWARD);
        const float *out = run.memory[y], *grad = run.memory[p->values[w].grad];
        for (int i = 0; i < ROWS * WIDTH; i++) {
            assert_int_equal(out[i] == 0, grad[i] == 0);
            zeros += out[i] == 0;
        }
    }
    assert_near(zeros, 100, 35, "dropped of 200");
    plain_release(&run);
    program_free(p);
}

/* Embedding, attention weights, attention and feed-forward outputs: each has random numbers of its own, from the seed. */
static void test_dropouts_of_a_model_differ(void **state)
{
    (void)state;
    struct small_model m = small_models[SMALL_GPT];
    m.config.dropout = 0.2;
    struct program *p = small_forward(m, 7);
    for (int i = 0; i < p->n_ops; i++)
        for (int j = 0; j <= i && p->ops[i].kind == OP_DROPOUT; j++) {
            assert_true(p->ops[i].attrs.seed == 7);
            assert_false(j < i && p->ops[j].kind == OP_DROPOUT && p->ops[i].attrs.stream == p->ops[j].attrs.stream);
        }
    assert_int_equal(count_ops(p, OP_DROPOUT, PHASE_FORWARD), 1 + 2 * 3);
    program_free(p);
}

/* In a model every forward has a mask of its own, and the tick alone decides which. */
static void test_dropout_of_a_model(void **state)
{
    (void)state;
    struct small_model m = small_models[SMALL_GPT];
    const struct small_batch batch = random_batch(&m, 1);
    m.config.dropout = 0.2;
    struct exec *e = new_exec(small_forward(m, 7), tuned);
    const value_id tick = program_find(exec_program(e), "tick");
    write_batch(e, &batch);
    float losses[3];
    for (int32_t i = 0; i < 3; i++) {
        const int32_t start = i == 2 ? 0 : i;       /* 0, 1, and 0 again */
        exec_write(e, tick, &start);
        exec_run(e, PHASE_DATA, PHASE_FORWARD);
        losses[i] = exec_scalar(e, exec_program(e)->loss);
    }
    assert_true(losses[0] != losses[1] && losses[0] == losses[2]);
    exec_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dropout_is_a_function_of_its_tick),
        cmocka_unit_test(test_dropout_keeps_its_share),
        cmocka_unit_test(test_dropout_backward_has_the_mask_of_forward),
        cmocka_unit_test(test_dropouts_of_a_model_differ),
        cmocka_unit_test(test_dropout_of_a_model),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
