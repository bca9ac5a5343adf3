/* Selection: who is chosen, what is left as it was, and that passes change neither. */
#include "support/kernels.h"
#include "support/select.h"

enum { STEPS = 12 };

/* ---- what is not selected keeps every bit ---- */

static void check_untouched(struct program *p, struct backend *b, int k)
{
    struct exec *e = new_exec(p, b);
    uint64_t before[NODES], after[NODES];
    unsigned ever = 0;
    hash_nodes(e, before);
    for (int step = 1; step <= STEPS; step++) {
        run_step(e, step);
        const unsigned now = selected_now(e);
        hash_nodes(e, after);
        assert_int_equal(count_bits(now), k);
        assert_int_equal(count_touched(before, after, now), 0);
        for (int j = 0; j < NODES; j++)
            assert_true(!(now >> j & 1) || before[j] != after[j]);      /* and who is selected learns */
        memcpy(before, after, sizeof before);
        ever |= now;
    }
    assert_true(count_bits(ever) > k || k == NODES);                     /* the choice is not always the same */
    exec_free(e);
}

static void test_unselected_nodes_are_untouched(void **state)
{
    (void)state;
    static const pass_set sets[] = {0, PASS_SET_ALL};
    for (int sum = 0; sum < 2; sum++)
        for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
            for (int b = 0; b < KERNELS; b++) {
                const struct optimizer_settings s = select_settings(6, sum);
                check_untouched(select_training(&s, sets[i] & ~one_pass("mixed-precision"), NULL), kernels[b], 6);
            }
    struct optimizer_settings s = select_settings(1, false);
    s.accumulate = 3;
    s.select.random = true;
    check_untouched(select_training(&s, 0, NULL), kernels[2], 1);
    check_untouched(select_training(&s, PASS_SET_ALL & ~one_pass("mixed-precision"), NULL), kernels[2], 1);
}

/* Values of 16 bits: the copies of weights that are not selected stay, too, and so does all in a step that overflows. */
static void test_unselected_copies_are_untouched(void **state)
{
    (void)state;
    static const enum dtype types[] = {BF16, F16};
    for (int i = 0; i < 2; i++) {
        const struct optimizer_settings s = select_settings(4, true);
        struct program *p = training_towards(small_models[SMALL_K1], &s, PASS_SET_ALL, NULL, NULL, (struct precision_goal){.narrow = types[i]});
        const float scale = 0x1p10f;            /* less than is tried first: no step is left out */
        struct exec *e = new_exec(p, kernels[0]);
        uint64_t before[NODES], after[NODES];
        if (p->loss_scale != NO_VALUE)
            exec_write(e, p->loss_scale, &scale);
        run_step(e, 1);                         /* copies are made in front of it */
        for (int step = 2; step <= 5; step++) {
            hash_nodes(e, before);
            run_step(e, step);
            hash_nodes(e, after);
            assert_int_equal(count_bits(selected_now(e)), 4);
            assert_int_equal(count_touched(before, after, selected_now(e)), 0);
        }
        exec_free(e);
    }
}

/* The mistake that this must find: gradients of the others set to zero, under a plain AdamW. Momentum goes on, and so does decay. */
static void test_zeroed_gradients_are_found(void **state)
{
    (void)state;
    const struct optimizer_settings chosen = select_settings(4, false), plain = small_settings();
    struct exec *right = new_exec(select_training(&chosen, 0, NULL), kernels[0]), *wrong = new_exec(select_training(&plain, 0, NULL), kernels[0]);
    const struct program *p = exec_program(wrong);
    int touched = 0;
    for (int step = 1; step <= STEPS; step++) {
        uint64_t before[NODES], after[NODES];
        run_step(right, step);
        const unsigned now = selected_now(right);
        hash_nodes(wrong, before);
        run_micro_batches(wrong, (uint64_t)step);
        for (int i = 0; i < p->n_values; i++)
            if (p->values[i].kind == VALUE_PARAMETER && p->values[i].group >= 0 && !(now >> p->values[i].group & 1)) {
                void *zeros = xcalloc(1, value_bytes(&p->values[i]));
                exec_write(wrong, p->values[i].grad, zeros);
                free(zeros);
            }
        exec_run(wrong, PHASE_OPTIMIZE, PHASE_OPTIMIZE);
        hash_nodes(wrong, after);
        touched += count_touched(before, after, now);
    }
    assert_true(touched > STEPS);
    exec_free(right);
    exec_free(wrong);
}

/* ---- all nodes are plain AdamW ---- */

static void test_all_nodes_are_plain_adamw(void **state)
{
    (void)state;
    for (int b = 0; b < KERNELS; b++)
        for (int fused = 0; fused < 2; fused++) {
            const struct optimizer_settings all = select_settings(NODES, true), plain = small_settings();
            const pass_set set = fused ? one_pass("fused-optimizer") : 0;
            struct trained x = train_small(select_training(&plain, set, NULL), &small_models[SMALL_K1], kernels[b], STEPS);
            struct trained y = train_small(select_training(&all, set, NULL), &small_models[SMALL_K1], kernels[b], STEPS);
            assert_same_weights(x.exec, y.exec, 0, "all nodes");
            assert_memory_equal(x.metrics, y.metrics, STEPS * sizeof *x.metrics);
            exec_free(x.exec);
            exec_free(y.exec);
        }
}

/* ---- the same with every pass ---- */

static void read_scores(struct exec *e, int step, float scores[NODES])
{
    const struct program *p = exec_program(e);
    const value_id ring = program_find(p, NODES_RING), all = program_find(p, SCORES_READ);
    float *x = ring != NO_VALUE ? read_value(e, ring) : all != NO_VALUE ? read_value(e, all) : NULL;
    for (int j = 0; j < NODES; j++) {
        char name[32];
        snprintf(name, sizeof name, SCORE_READ, j);
        scores[j] = ring != NO_VALUE ? x[step % METRICS_KEPT * 2 * NODES + j] : x ? x[j] : read_named(e, name);
        if (ring != NO_VALUE)
            assert_true((x[step % METRICS_KEPT * 2 * NODES + NODES + j] != 0) == (selected_now(e) >> j & 1));
    }
    free(x);
}

static void check_same(const struct optimizer_settings *s, pass_set set, const int *order, struct backend *b)
{
    struct exec *plain = new_exec(select_training(s, 0, NULL), b), *e = new_exec(select_training(s, set, order), b);
    for (int step = 1; step <= STEPS; step++) {
        float x[NODES], y[NODES];
        run_step(plain, step);
        run_step(e, step);
        read_scores(plain, step, x);
        read_scores(e, step, y);
        assert_memory_equal(x, y, sizeof x);
        assert_int_equal(selected_now(plain), selected_now(e));
    }
    assert_same_weights(plain, e, 0, "with passes");
    exec_free(plain);
    exec_free(e);
}

static void test_passes_change_no_bit(void **state)
{
    (void)state;
    const pass_set fused = one_pass("fused-optimizer"), async = one_pass("async-metrics"), zero = one_pass("no-zero-fill"),
                   again = one_pass("recompute"), meet = one_pass("fewer-meetings");
    const int turned[] = {pass_find("async-metrics"), pass_find("fused-optimizer"), -1};
    for (int every = 1; every < 4; every += 2) {
        struct optimizer_settings s = select_settings(3, every > 1);
        s.select.every = every;
        check_same(&s, fused, NULL, kernels[2]);
        check_same(&s, async, NULL, kernels[2]);
        check_same(&s, fused | async, NULL, kernels[0]);
        check_same(&s, fused | async, turned, kernels[2]);
        s.accumulate = 2;
        check_same(&s, fused | async | zero | again | meet, NULL, kernels[2]);
    }
}

static int count_kind(const struct program *p, enum op_kind kind)
{
    int n = 0;
    for (int i = 0; i < p->n_ops; i++)
        n += p->ops[i].kind == kind;
    return n;
}

/* As people write it first: a score and a read per node. Fused: one of each; in the background: no read at all. */
static void test_what_passes_take_away(void **state)
{
    (void)state;
    static const struct { const char *passes[2]; int scores, reads; } cases[] = {
        {{NULL}, NODES, NODES + 3}, {{"fused-optimizer"}, 1, 1 + 3}, {{"async-metrics"}, NODES, 0}, {{"fused-optimizer", "async-metrics"}, 1, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct optimizer_settings s = select_settings(4, false);
        pass_set set = 0;
        for (int k = 0; k < 2 && cases[i].passes[k]; k++)
            set |= one_pass(cases[i].passes[k]);
        struct program *p = select_training(&s, set, NULL);
        assert_int_equal(count_kind(p, OP_GROUP_SCORES), cases[i].scores);
        assert_int_equal(count_kind(p, OP_HOST_READ), cases[i].reads);
        assert_int_equal(count_kind(p, OP_TOP_K), 1);
        assert_int_equal(count_kind(p, OP_ADAMW_ALL), set & one_pass("fused-optimizer") ? 2 : 0);      /* with decay and without */
        program_free(p);
    }
}

/* ---- ties ---- */

/* Nodes of one level become the same: they read the same, so that they give the same, and have the same gradients. */
static void make_levels_alike(struct exec *e)
{
    const struct program *p = exec_program(e);
    for (int i = 0; i < p->n_values; i++) {
        const int node = node_of(p->values[i].name), first = node < 1 ? node : node < 4 ? 1 : 4;
        if (p->values[i].kind != VALUE_PARAMETER || node == first)
            continue;
        char name[64];
        snprintf(name, sizeof name, "blocks.%d%s", first, strchr(p->values[i].name + strlen("blocks."), '.'));
        void *numbers = read_value(e, program_find(p, name));
        exec_write(e, i, numbers);
        free(numbers);
    }
}

/* The k highest, of equal ones the lower index; *cut: a node that is not among them has the score of one that is. */
static unsigned highest(const float scores[NODES], int k, bool *cut)
{
    unsigned set = 0;
    float least = INFINITY;
    *cut = false;
    for (; k > 0; k--) {
        int best = -1;
        for (int j = 0; j < NODES; j++)
            if (!(set >> j & 1) && (best < 0 || scores[j] > scores[best]))
                best = j;
        set |= 1u << best;
        least = scores[best];
    }
    for (int j = 0; j < NODES; j++)
        *cut |= !(set >> j & 1) && scores[j] == least;
    return set;
}

static int count_ties(struct program *p, struct backend *b, int k)
{
    struct exec *e = new_exec(p, b);
    uint64_t before[NODES], after[NODES];
    int ties = 0;
    make_levels_alike(e);
    for (int step = 1; step <= 4; step++) {
        float scores[NODES];
        bool cut;
        hash_nodes(e, before);
        run_step(e, step);
        hash_nodes(e, after);
        read_scores(e, step, scores);
        assert_int_equal(selected_now(e), highest(scores, k, &cut));
        assert_int_equal(count_touched(before, after, selected_now(e)), 0);
        ties += cut;
    }
    exec_free(e);
    return ties;
}

/* A run in which nodes have the same score to the last bit: whatever the passes, the kernels and the threads, the lower index learns. */
static void test_ties_in_a_run(void **state)
{
    (void)state;
    static const pass_set sets[] = {0, PASS_SET_ALL};
    for (int sum = 0; sum < 2; sum++)
        for (int i = 0; i < 2; i++)
            for (int b = 0; b < KERNELS; b++) {
                int ties = 0;
                for (int k = b == 0 ? 2 : 1; k < NODES; k += b == 0 ? 3 : 1) {
                    const struct optimizer_settings s = select_settings(k, sum);
                    ties += count_ties(select_training(&s, sets[i] & ~one_pass("mixed-precision"), NULL), kernels[b], k);
                }
                assert_true(ties >= (b == 0 ? 3 : 7));          /* of the first steps alone: k is 1 or 4 between two levels, which is no tie */
            }
}

/* ---- steps that do not count, and kept selections ---- */

/* A batch whose loss is not finite changes nothing, and nothing is counted; the next step selects as if it had not been. */
static void test_a_broken_step_is_not_counted(void **state)
{
    (void)state;
    for (int b = 0; b < KERNELS; b++) {
        const struct optimizer_settings s = select_settings(4, true);
        struct exec *e = new_exec(select_training(&s, one_pass("fused-optimizer"), NULL), kernels[b]);
        const struct program *p = exec_program(e);
        const value_id table = program_find(p, "emb.weight"), n = program_find(p, K1_COUNTS), last = program_find(p, K1_LAST);
        uint64_t before[NODES], after[NODES];
        run_step(e, 1);
        float *weights = read_value(e, table), *broken = read_value(e, table);
        int32_t *counts = read_value(e, n), *lasts = read_value(e, last);
        hash_nodes(e, before);
        for (int64_t i = 0; i < shape_count(p->values[table].shape); i++)
            broken[i] = NAN;
        exec_write(e, table, broken);
        run_step(e, 2);
        assert_true(isnan(read_named(e, "host.norm")) || isnan(read_named(e, "host.loss")));
        int32_t *counts_now = read_value(e, n), *lasts_now = read_value(e, last);
        hash_nodes(e, after);
        assert_memory_equal(before, after, sizeof before);
        assert_memory_equal(counts, counts_now, NODES * sizeof *counts);
        assert_memory_equal(lasts, lasts_now, NODES * sizeof *lasts);
        exec_write(e, table, weights);
        run_step(e, 3);
        assert_int_equal(count_bits(selected_now(e)), 4);
        free(weights);
        free(broken);
        free(counts);
        free(lasts);
        free(counts_now);
        free(lasts_now);
        exec_free(e);
    }
}

/* With every = 3 the sets of steps 1 to 3, 4 to 6, ... are the same; the norm of kept ones leaves the other nodes out. */
static void test_a_selection_is_kept(void **state)
{
    (void)state;
    struct optimizer_settings s = select_settings(3, false), each = s;
    s.select.every = 3;
    struct exec *e = new_exec(select_training(&s, 0, NULL), kernels[1]), *other = new_exec(select_training(&each, 0, NULL), kernels[1]);
    unsigned held = 0, sets = 0;
    int differ = 0;
    for (int step = 1; step <= STEPS; step++) {
        run_step(e, step);
        run_step(other, step);
        const unsigned now = selected_now(e);
        assert_int_equal(count_bits(now), 3);
        assert_true(step % 3 == 1 || now == held);
        sets += step % 3 == 1 && now != held;
        differ += now != selected_now(other);
        held = now;
        const double norm = read_named(e, "host.norm");
        double squares = 0;
        for (int j = 0; j < NODES; j++) {
            char name[32];
            snprintf(name, sizeof name, SCORE_READ, j);
            assert_true((read_named(e, name) == 0) == (step % 3 != 1 && !(now >> j & 1)));
            squares += pow(read_named(e, name), 2);
        }
        assert_true(squares <= norm * norm * (1 + 1e-6));
    }
    assert_true(sets > 1 && differ > 0);
    exec_free(e);
    exec_free(other);
}

/* Gradients of weights that a kept selection leaves out are not computed, and nothing that is saved depends on it. */
static void test_left_out_gradients_change_nothing(void **state)
{
    (void)state;
    for (int accumulate = 1; accumulate < 3; accumulate++)
        for (int fused = 0; fused < 2; fused++) {
            struct optimizer_settings s = select_settings(3, true);
            const pass_set set = fused ? PASS_SET_ALL & ~one_pass("mixed-precision") & ~one_pass("autotune") : 0;
            s.select.every = 3;
            s.accumulate = accumulate;
            struct program *p = select_training(&s, set, NULL), *q = select_training(&s, set, NULL);
            int marked = 0;
            for (int i = 0; i < q->n_ops; i++) {
                marked += q->ops[i].leave != NULL;
                q->ops[i].leave = NULL;
            }
            /* of 16 tensors of a node all but the four of its norms; and the two ops that sum each up */
            assert_int_equal(marked, NODES * (accumulate > 1 ? 3 * 12 + 2 * 4 : 12));
            struct trained x = train_small(p, &small_models[SMALL_K1], kernels[2], STEPS), y = train_small(q, &small_models[SMALL_K1], kernels[2], STEPS);
            assert_same_weights(x.exec, y.exec, 0, "gradients left out");
            assert_memory_equal(x.metrics, y.metrics, STEPS * sizeof *x.metrics);
            exec_free(x.exec);
            exec_free(y.exec);
        }
}

/* An op that may be left out is, and is not where it is needed. */
static void test_ops_are_left_out(void **state)
{
    (void)state;
    for (int b = 0; b < KERNELS; b++) {
        struct program *p = program_new("left out");
        struct error err;
        const value_id last = program_add_value(p, "last", VALUE_STATE, I32, shape_of(1, (int64_t)2));
        const value_id x = program_add_value(p, "x", VALUE_INPUT, F32, shape_of(2, (int64_t)3, (int64_t)2));
        p->step = program_add_value(p, "step", VALUE_STATE, I32, shape_of(0));
        const value_id held = program_emit(p, OP_HELD, (struct op_attrs){.every = 2}, "held", 2, last, p->step);
        const value_id y = program_emit(p, OP_MATMUL, (struct op_attrs){.trans_a = true}, "y", 2, x, x);
        p->ops[1].leave = arena_copy(&p->arena, &(struct op_leave){held, 1, 0.5}, sizeof(struct op_leave));
        p->loss = y;                /* what is read after a step keeps its memory */
        struct exec *e = NULL;
        assert_ok(exec_new(&e, p, kernels[b], NULL, &err), err);
        for (int32_t step = 0; step < 2; step++) {          /* the second keeps what group 0 alone was selected in */
            const float ones[6] = {1, 1, 1, 1, 1, 1}, twos[6] = {2, 2, 2, 2, 2, 2};
            const int32_t lasts[2] = {step, 0};
            exec_write(e, p->step, &step);
            exec_write(e, last, lasts);
            exec_write(e, x, step ? twos : ones);
            exec_run(e, PHASE_DATA, PHASE_FORWARD);
            float *is = read_value(e, y);
            assert_true(is[0] == 3 && is[3] == 3);
            free(is);
        }
        exec_free(e);
    }
}

/* By chance: a function of the seed and the step alone, and every node has its turn. */
static void test_random_selection(void **state)
{
    (void)state;
    unsigned sets[2][40], ever = 0;
    int equal = 0;
    for (int run = 0; run < 3; run++) {
        struct optimizer_settings s = select_settings(3, false);
        s.select.random = true;
        s.select.seed = run == 2 ? 43 : 42;
        s.lr *= (float)(run + 1);               /* other weights, the same nodes */
        struct exec *e = new_exec(select_training(&s, 0, NULL), kernels[1]);
        for (int step = 1; step <= 40; step++) {
            run_step(e, step);
            const unsigned now = selected_now(e);
            assert_int_equal(count_bits(now), 3);
            assert_true(run != 1 || now == sets[0][step - 1]);
            equal += run == 2 && now == sets[0][step - 1];
            sets[run % 2][step - 1] = now;
            ever |= now;
        }
        exec_free(e);
    }
    assert_int_equal(ever, (1u << NODES) - 1);
    assert_true(equal < 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unselected_nodes_are_untouched),
        cmocka_unit_test(test_unselected_copies_are_untouched),
        cmocka_unit_test(test_zeroed_gradients_are_found),
        cmocka_unit_test(test_all_nodes_are_plain_adamw),
        cmocka_unit_test(test_passes_change_no_bit),
        cmocka_unit_test(test_what_passes_take_away),
        cmocka_unit_test(test_ties_in_a_run),
        cmocka_unit_test(test_a_broken_step_is_not_counted),
        cmocka_unit_test(test_a_selection_is_kept),
        cmocka_unit_test(test_left_out_gradients_change_nothing),
        cmocka_unit_test(test_ops_are_left_out),
        cmocka_unit_test(test_random_selection),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
