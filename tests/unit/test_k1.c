/* K-1 as a model: the tree, its gradients by finite differences, and training with a selection against PyTorch. */
#include "support/kernels.h"
#include "support/select.h"
#include "support/torch.h"

/* ---- the tree ---- */

static const struct small_model thirteen = {
    "tree", 2, {.arch = ARCH_K1, .vocab = 11, .dim = 6, .layers = 13, .tree = {2, {3, 3}}, .heads = 2, .kv_heads = 2, .ffn = 10,
                .seq = 4, .rope_base = 10000, .norm_eps = 1e-5}};

/* Node i reads what node (i - 1) / 3 gives; what comes out are means of three, and the mean of these. */
static void test_nodes_read_their_parents(void **state)
{
    (void)state;
    struct program *p = small_forward(thirteen, 1);
    value_id out[13];
    for (int i = 0; i < 13; i++) {
        char name[48];
        snprintf(name, sizeof name, "blocks.%d.n2", i);
        out[i] = program_find(p, name);
        snprintf(name, sizeof name, "blocks.%d.attn.q", i);
        const value_id q = program_find(p, name);
        assert_true(out[i] != NO_VALUE && q != NO_VALUE);
        for (int k = 0; k < p->n_ops; k++)
            if (p->ops[k].out[0] == q) {
                assert_int_equal(p->ops[k].layer, i);
                assert_int_equal(p->ops[k].in[0], i ? out[(i - 1) / 3] : program_find(p, "emb.pos"));
            }
    }
    int means = 0;
    for (int k = 0; k < p->n_ops; k++)
        if (p->ops[k].kind == OP_MEAN) {
            assert_true(p->ops[k].n_in == 3 && p->ops[k].layer == NO_LAYER);
            means++;
        }
    assert_int_equal(means, 4);
    assert_int_equal(program_parameters(p), 2 * 11 * 6 + 4 * 6 + 2 * 6 + 13 * (4 * (36 + 6) + 2 * 60 + 10 + 6 + 4 * 6));
    program_free(p);
}

static double loss_of(struct exec *e)
{
    exec_run(e, PHASE_DATA, PHASE_FORWARD);
    return exec_scalar(e, exec_program(e)->loss);
}

/* Moves all parameters by `distance` along the direction, which is of length 1. */
static double loss_at(struct exec *e, float *const *at, float *const *direction, double distance)
{
    const struct program *p = exec_program(e);
    for (int i = 0; i < p->n_values; i++) {
        if (p->values[i].kind != VALUE_PARAMETER)
            continue;
        const int64_t n = shape_count(p->values[i].shape);
        float *moved = xcalloc((size_t)n, sizeof *moved);
        for (int64_t k = 0; k < n; k++)
            moved[k] = (float)(at[i][k] + distance * direction[i][k]);
        exec_write(e, i, moved);
        free(moved);
    }
    return loss_of(e);
}

/* Central differences of fourth order, as in test_ops.c. */
static double difference(struct exec *e, float *const *at, float *const *direction)
{
    const double h = 0.02;
    const double near = loss_at(e, at, direction, h) - loss_at(e, at, direction, -h);
    const double far = loss_at(e, at, direction, 2 * h) - loss_at(e, at, direction, -2 * h);
    loss_at(e, at, direction, 0);
    return (8 * near - far) / (12 * h);
}

/* Of parameters of one node, or all others (NO_LAYER): along their gradient, and along a random direction. */
static void check_group(struct exec *e, float *const *at, float *const *grad, int group)
{
    const struct program *p = exec_program(e);
    float **d = xcalloc((size_t)p->n_values, sizeof *d);
    for (int kind = 0; kind < 2; kind++) {
        double length = 0, is = 0, norm = 0;
        for (int i = 0; i < p->n_values; i++) {
            if (p->values[i].kind != VALUE_PARAMETER)
                continue;
            const int64_t n = shape_count(p->values[i].shape);
            d[i] = xcalloc((size_t)n, sizeof **d);
            if (p->values[i].group == group && kind)
                rng_fill_normal(d[i], n, 1, 9, (uint64_t)i);
            else if (p->values[i].group == group)
                memcpy(d[i], grad[i], (size_t)n * sizeof **d);
            for (int64_t k = 0; k < n; k++) {
                length += (double)d[i][k] * d[i][k];
                norm += p->values[i].group == group ? (double)grad[i][k] * grad[i][k] : 0;
            }
        }
        for (int i = 0; i < p->n_values; i++)
            for (int64_t k = 0; d[i] && k < shape_count(p->values[i].shape); k++) {
                d[i][k] = (float)(d[i][k] / sqrt(length));
                is += (double)d[i][k] * grad[i][k];
            }
        const double should = difference(e, at, d);
        if (!(fabs(is - should) <= 4e-5 + 2e-3 * sqrt(norm)))
            fail_msg("node %d: the derivative is %.7g; finite differences give %.7g", group, is, should);
        for (int i = 0; i < p->n_values; i++) {
            free(d[i]);
            d[i] = NULL;
        }
    }
    free(d);
}

static void test_gradients_of_a_tree(void **state)
{
    (void)state;
    const struct optimizer_settings s = small_settings();
    struct exec *e = new_exec(small_training(thirteen, &s), kernels[0]);
    const struct program *p = exec_program(e);
    const struct small_batch batch = random_batch(&thirteen, 1);
    float **at = xcalloc((size_t)p->n_values, sizeof *at), **grad = xcalloc((size_t)p->n_values, sizeof *grad);
    write_batch(e, &batch);
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER) {
            at[i] = read_value(e, i);
            for (int64_t k = 0; k < shape_count(p->values[i].shape) && p->values[i].role != ROLE_NORM; k++)
                at[i][k] *= 12;             /* so that every part of the tree matters */
            exec_write(e, i, at[i]);
        }
    exec_run(e, PHASE_DATA, PHASE_BACKWARD);
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER)
            grad[i] = read_value(e, p->values[i].grad);
    for (int group = NO_LAYER; group < 13; group++)
        check_group(e, at, grad, group);
    for (int i = 0; i < p->n_values; i++) {
        free(at[i]);
        free(grad[i]);
    }
    free(at);
    free(grad);
    exec_free(e);
}

/* ---- against PyTorch, whose AdamW leaves tensors without a gradient as they are ---- */

static void check_final_of(struct exec *e, const struct safetensors *s, const char *prefix)
{
    const struct program *p = exec_program(e);
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER && !is_key_bias(p->values[i].name))
            compare(e, i, tensor(s, prefix, p->values[i].name), FINAL);
}

static void check_selection(const struct safetensors *s, const char *kind, struct program *p, struct backend *b)
{
    char prefix[32];
    snprintf(prefix, sizeof prefix, "%s.", kind);
    const struct tensor *tokens = tensor(s, "", "tokens"), *targets = tensor(s, "", "targets");
    const float *losses = tensor(s, prefix, "losses")->data;
    const int32_t *selected = tensor(s, prefix, "selected")->data;
    assert_int_equal(tensor(s, prefix, "selected")->dim[1], NODES);
    struct exec *e = new_exec(p, b);
    int32_t n[NODES] = {0};
    write_parameters(e, s);
    for (int step = 1; step <= STEPS; step++) {
        float metrics[METRICS];
        unsigned should = 0;
        exec_write(e, p->tokens, batch_of(tokens, step));
        exec_write(e, p->targets, batch_of(targets, step));
        exec_run(e, PHASE_DATA, PHASE_OPTIMIZE);
        read_metrics(e, step, metrics);
        assert_near(metrics[METRIC_LOSS], losses[step - 1], CURVE * losses[0], "the loss");
        for (int j = 0; j < NODES; j++) {
            should |= (unsigned)selected[(step - 1) * NODES + j] << j;
            n[j] += selected[(step - 1) * NODES + j];
        }
        assert_int_equal(selected_now(e), should);
    }
    int32_t *counts = read_value(e, program_find(p, K1_COUNTS));
    assert_memory_equal(counts, n, sizeof n);
    free(counts);
    snprintf(prefix, sizeof prefix, "%s.final.", kind);
    check_final_of(e, s, prefix);
    exec_free(e);
}

static void test_training_with_a_selection(void **state)
{
    (void)state;
    struct safetensors s = read_fixture("train", "k1");
    for (int sum = 0; sum < 2; sum++)
        for (int b = 0; b < KERNELS; b++) {
            const struct optimizer_settings settings = select_settings(5, sum);
            const char *kind = sum ? "sum" : "l2";
            check_selection(&s, kind, select_training(&settings, 0, NULL), kernels[b]);
            check_selection(&s, kind, select_training(&settings, PASS_SET_ALL & ~one_pass("mixed-precision"), NULL), kernels[b]);
        }
    safetensors_release(&s);
}

/* ---- evaluation and generation see the tree ---- */

static void test_evaluation_follows(void **state)
{
    (void)state;
    const struct optimizer_settings s = select_settings(4, false);
    struct error err;
    struct exec *train = new_exec(select_training(&s, 0, NULL), kernels[1]), *eval = NULL;
    assert_ok(exec_new(&eval, small_forward(small_models[SMALL_K1], 7), kernels[1], train, &err), err);
    assert_evaluation_follows(train, eval, &small_models[SMALL_K1]);
    exec_free(eval);
    exec_free(train);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes_read_their_parents),
        cmocka_unit_test(test_gradients_of_a_tree),
        cmocka_unit_test(test_training_with_a_selection),
        cmocka_unit_test(test_evaluation_follows),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
