/* flash-attention: the op against its reference over every class of sizes, extreme scores, where the pass applies, that loss
 * and gradients of whole models stay what they were, dropout included, and the memory that it saves. */
#include "passes/optimize.h"
#include "program/rewrite.h"
#include "support/all_backends.h"
#include "support/attention.h"
#include "support/models.h"
#include "support/table.h"

static const double FORWARD = 2e-6, BACKWARD = 5e-6;    /* tuned against reference: share of the largest number */
static const double GRADIENTS = 2e-5, LOSS = 2e-6;      /* pass against naive: share of the largest number */
static const double EXPLODING = 1e-4;                   /* the same; rows of gradients that sum to 0 are multiplied by 160 */

/* --- the op ------------------------------------------------------------------------------------------------------ */

static struct plain run_packed(struct program *p, struct backend *b, struct sizes s, int64_t mean)
{
    struct plain x = plain_new(p, b);
    for (int i = 0; i < TICK; i++)
        rng_fill_normal(x.memory[i], shape_count(p->values[i].shape), 1, 17, (uint64_t)i);
    plain_write(&x, TICK, &(int32_t){9});
    write_starts(&x, s, mean);
    plain_run(&x, PHASE_FORWARD, PHASE_BACKWARD);
    return x;
}

static struct plain run_attention(struct program *p, struct backend *b, float spread)
{
    struct plain x = plain_new(p, b);
    for (int i = 0; i < TICK; i++)
        rng_fill_normal(x.memory[i], shape_count(p->values[i].shape), i < V ? spread : 1, 17, (uint64_t)i);
    plain_write(&x, TICK, &(int32_t){9});
    plain_run(&x, PHASE_FORWARD, PHASE_BACKWARD);
    return x;
}

/* `floor`: what is smaller is measured by it, for gradients that are nothing but rounding. */
static void assert_close(const char *what, const float *is, const float *should, int64_t n, double share, double floor)
{
    double largest = floor;
    for (int64_t i = 0; i < n; i++)
        largest = fabs(should[i]) > largest ? fabs(should[i]) : largest;
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)is[i] - should[i]) <= share * largest))
            fail_msg("%s[%lld] is %.9g; it should be %.9g (largest %.3g)", what, (long long)i, is[i], should[i], largest);
}

static void compare_runs(const struct plain *is, const struct plain *should, const char *name)
{
    const struct program *p = is->program;
    for (int i = 0; i < p->n_ops; i++)
        for (int k = 0; k < p->ops[i].n_out; k++) {
            char what[256];
            const value_id v = p->ops[i].out[k];
            snprintf(what, sizeof what, "%s on %d threads: %s", name, is->backend->lanes, p->values[v].name);
            assert_close(what, is->memory[v], should->memory[v], shape_count(p->values[v].shape), i ? BACKWARD : FORWARD, 1);
        }
}

/* `threads` takes a turn with the cases, so that every number of threads meets every class of sizes. */
static void check_sizes(struct sizes s, bool causal, float prob, int threads)
{
    char name[96];
    snprintf(name, sizeof name, "B %lld T %lld H %lld K %lld D %lld causal %d prob %.1f", (long long)s.batch, (long long)s.seq,
             (long long)s.heads, (long long)s.kv_heads, (long long)s.size, causal, prob);
    struct program *p = attention_program(s, causal, prob);
    struct plain should = run_attention(p, backends[0], 1), is = run_attention(p, backends[threads], 1);
    compare_runs(&is, &should, name);
    plain_release(&should);
    plain_release(&is);
    program_free(p);
}

static void test_tuned_equals_reference_over_sizes(void **state)
{
    (void)state;
    static const int64_t seqs[] = {1, 5, 63, 64, 65, 130, 200}, sizes[] = {8, 16, 33, 64}, kv_heads[] = {4, 2, 1};
    int n = 0;
    for (int t = 0; t < 7; t++)
        for (int d = 0; d < 4; d++)
            for (int k = 0; k < 3; k++, n++) {
                const struct sizes s = {1, seqs[t], 4, kv_heads[k], sizes[d]};
                check_sizes(s, true, 0, 1 + n % 3);
                if (t < 5 || n % 4 == 0)
                    check_sizes(s, false, n % 2 ? 0 : 0.2f, 1 + (n + 1) % 3);
                if (t < 6)
                    check_sizes(s, true, 0.1f, 1 + (n + 2) % 3);
            }
    check_sizes((struct sizes){3, 33, 2, 1, 128}, true, 0, 3);
    check_sizes((struct sizes){5, 40, 3, 3, 20}, true, 0, 2);
}

/* Whole panels near to each other, which are read and written where they lie: one block of keys and several, several batches,
 * kv heads that are one task and that are split. */
static void test_sizes_without_copies(void **state)
{
    (void)state;
    static const struct sizes sizes[] = {{4, 32, 4, 4, 16}, {2, 32, 4, 2, 32}, {1, 64, 4, 1, 16}, {3, 64, 2, 2, 32},
                                         {1, 96, 2, 2, 32}, {2, 128, 2, 1, 32}, {1, 32, 1, 1, 64}, {2, 48, 3, 1, 16}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int threads = 1; threads <= 3; threads++) {
            check_sizes(sizes[i], true, 0, threads);
            check_sizes(sizes[i], false, 0, threads);
            check_sizes(sizes[i], threads % 2, 0.1f, threads);
        }
}

/* ---- several samples in a row ---- */

static void test_packed_tuned_equals_reference(void **state)
{
    (void)state;
    static const struct sizes sizes[] = {{2, 5, 4, 2, 8}, {3, 64, 2, 2, 32}, {1, 65, 4, 1, 16}, {2, 96, 2, 2, 32}, {2, 200, 2, 1, 33},
                                         {1, 330, 2, 2, 16}};
    static const int64_t means[] = {1, 7, 40, 120};
    int n = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t m = 0; m < sizeof means / sizeof *means; m++, n++) {
            struct program *p = packed_program(sizes[i], n % 3 ? 0 : 0.1f);
            struct plain should = run_packed(p, backends[0], sizes[i], means[m]), is = run_packed(p, backends[1 + n % 3], sizes[i], means[m]);
            compare_runs(&is, &should, "packed");
            plain_release(&should);
            plain_release(&is);
            program_free(p);
        }
}

/* Rows [first, first + n) of a value of (1, T, width). */
static const float *rows_of(const struct plain *x, value_id v, int64_t first) { return (const float *)x->memory[v] + first * shape_last(x->program->values[v].shape); }

/* A sample in a row with others is what it is in a row of its own: results and all three gradients. */
static void test_packed_samples_are_apart(void **state)
{
    (void)state;
    const struct sizes s = {1, 70, 2, 1, 16};
    struct program *p = packed_program(s, 0);
    struct plain all = run_packed(p, backends[0], s, 12);
    const int32_t *starts = all.memory[program_find(p, "starts")];
    int samples = 0;
    for (int64_t first = 0, n; first < s.seq; first += n, samples++) {
        for (n = 1; first + n < s.seq && starts[first + n] == first;)
            n++;
        struct program *alone = attention_program((struct sizes){1, n, s.heads, s.kv_heads, s.size}, true, 0);
        struct plain x = plain_new(alone, backends[0]);
        for (int i = 0; i < TICK; i++)
            plain_write(&x, i, rows_of(&all, i, first));
        plain_run(&x, PHASE_FORWARD, PHASE_BACKWARD);
        const value_id of[] = {alone->ops[0].out[0], alone->ops[1].out[0], alone->ops[1].out[1], alone->ops[1].out[2]};
        const value_id in[] = {p->ops[0].out[0], p->ops[1].out[0], p->ops[1].out[1], p->ops[1].out[2]};
        for (int k = 0; k < 4; k++)
            assert_close("of a sample", rows_of(&all, in[k], first), x.memory[of[k]], shape_count(alone->values[of[k]].shape), 1e-7, 1);
        plain_release(&x);
        program_free(alone);
    }
    assert_true(samples > 3);
    plain_release(&all);
    program_free(p);
}

static void check_large_scores(struct backend *b, float spread, enum rounding round)
{
    struct program *p = attention_program((struct sizes){1, 70, 2, 2, 16}, true, 0);
    p->ops[0].attrs.round = p->ops[1].attrs.round = round;
    struct plain x = run_attention(p, b, spread);
    for (int i = 0; i < p->n_ops; i++)
        for (int k = 0; k < p->ops[i].n_out; k++)
            for (int64_t j = 0; j < shape_count(p->values[p->ops[i].out[k]].shape); j++)
                if (!isfinite(((float *)x.memory[p->ops[i].out[k]])[j]))
                    fail_msg("%s, inputs of about %g: %s[%lld] is %g", b->name, spread, p->values[p->ops[i].out[k]].name, (long long)j,
                             ((float *)x.memory[p->ops[i].out[k]])[j]);
    plain_release(&x);
    program_free(p);
}

/* Weights that are all but 0 and 1, scores in the thousands and, of a run that runs away, in the billions: no overflow, and rows that
 * still sum to one. */
static void test_large_scores(void **state)
{
    (void)state;
    static const float spreads[] = {40, 3e4f, 1e6f};
    for (int i = 0; i < 3; i++) {
        check_large_scores(backends[0], spreads[i], ROUND_NO);
        check_large_scores(backends[2], spreads[i], ROUND_NO);
        check_large_scores(backends[2], spreads[i], ROUND_BF16);
    }
}

/* The same as ops on whole weights, on the inputs of attention_program: y, then dq, dk and dv. */
static struct program *naive_program(struct sizes s, value_id out[4])
{
    struct program *p = attention_program(s, true, 0);
    const struct op_attrs scaled = p->ops[0].attrs, plain = {.heads = scaled.heads, .kv_heads = scaled.kv_heads, .scale = 1};
    p->n_ops = 0;
    p->phase = PHASE_FORWARD;
    const value_id mask = program_emit(p, OP_CAUSAL_MASK, (struct op_attrs){.rows = s.seq}, "mask", 0);
    const value_id scores = program_emit(p, OP_ATTN_SCORES, scaled, "scores", 2, Q, K);
    const value_id seen = program_emit(p, OP_ADD, NONE, "seen", 2, scores, mask);
    const value_id weights = program_emit(p, OP_SOFTMAX, NONE, "weights", 1, seen);
    out[0] = program_emit(p, OP_ATTN_MIX, plain, "mix", 2, weights, V);
    p->phase = PHASE_BACKWARD;
    const value_id dw = program_emit(p, OP_ATTN_SCORES, plain, "dw", 2, DY, V);
    const value_id ds = program_emit(p, OP_SOFTMAX_GRAD, NONE, "ds", 2, weights, dw);
    out[1] = program_emit(p, OP_ATTN_MIX, scaled, "dq", 2, ds, K);
    out[2] = program_emit(p, OP_ATTN_MIX_T, scaled, "dk", 2, ds, Q);
    out[3] = program_emit(p, OP_ATTN_MIX_T, plain, "dv", 2, weights, DY);
    return p;
}

/* Scores of about 600 * size, by quarters: the products that make them are exact in any order, and keys differ by little, so
 * that no weight is 0 or 1. */
static struct plain run_close_scores(struct program *p, struct sizes s, float size)
{
    struct plain x = plain_new(p, backends[2]);
    float *q = x.memory[Q], *k = x.memory[K];
    for (int64_t i = 0; i < s.seq; i++)
        for (int64_t e = 0; e < s.size; e++) {
            q[i * s.size + e] = e ? size : (float)(i % 3 + 1);
            k[i * s.size + e] = e ? 160 : (float)(i % 5 - 2);
        }
    rng_fill_normal(x.memory[V], s.seq * s.size, 1, 17, 2);
    rng_fill_normal(x.memory[DY], s.seq * s.size, 1, 17, 3);
    plain_run(&x, PHASE_FORWARD, PHASE_BACKWARD);
    return x;
}

/* Scores that explode: where a float's last digit is a thousandth (1e4) to a sixteenth (1e6) of what scores differ by, the
 * gradients are still as good as those of ops on whole weights. */
static void test_exploding_scores(void **state)
{
    (void)state;
    const struct sizes s = {1, 100, 1, 1, 16};
    value_id should_be[4];
    struct program *flash_p = attention_program(s, true, 0), *naive_p = naive_program(s, should_be);
    for (float size = 16; size < 2000; size *= 10) {
        struct plain is = run_close_scores(flash_p, s, size), should = run_close_scores(naive_p, s, size);
        assert_true(((float *)is.memory[flash_p->ops[0].out[1]])[99] > 590 * size);
        for (int i = 0; i < 4; i++) {
            const value_id v = i ? flash_p->ops[1].out[i - 1] : flash_p->ops[0].out[0];
            char what[64];
            snprintf(what, sizeof what, "size %.0f: %s", size, i ? flash_p->values[v].name : "y");
            assert_close(what, is.memory[v], should.memory[should_be[i]], s.seq * s.size, EXPLODING, 0);
        }
        plain_release(&is);
        plain_release(&should);
    }
    program_free(flash_p);
    program_free(naive_p);
}

/* Keys whose scores are -inf weigh nothing, wherever they stand; a query that sees no other has no weights. */
static void check_infinite(struct backend *b, enum rounding round)
{
    enum { SEQ = 150, SIZE = 4 };
    struct program *p = attention_program((struct sizes){1, SEQ, 1, 1, SIZE}, true, 0);
    p->ops[0].attrs.round = round;
    struct plain x = plain_new(p, b);
    float *q = x.memory[Q], *k = x.memory[K], *v = x.memory[V];
    for (int i = 0; i < SEQ * SIZE; i++) {
        q[i] = 1;
        k[i] = i / SIZE < 90 ? -INFINITY : 0;
        v[i] = (float)(i / SIZE);
    }
    plain_run(&x, PHASE_FORWARD, PHASE_FORWARD);
    const float *y = x.memory[p->ops[0].out[0]], *largest = x.memory[p->ops[0].out[1]];
    const float *sums = x.memory[p->ops[0].out[2]];
    for (int i = 0; i < SEQ; i++) {
        assert_near(largest[i], 0, 0, "the largest score, or 0 where there is none");
        assert_near(sums[i], i < 90 ? 0 : i - 89, 1e-5, "how many are seen");
        if (i < 90)
            assert_true(isnan(y[i * SIZE]));
        else
            assert_near(y[i * SIZE], (90 + i) / 2.0, 1e-4, "the mean of the values seen");
    }
    plain_release(&x);
    program_free(p);
}

static void test_infinite_scores(void **state)
{
    (void)state;
    check_infinite(backends[0], ROUND_NO);
    check_infinite(backends[1], ROUND_NO);
    check_infinite(backends[1], ROUND_BF16);
}

/* A NaN in any input of a head reaches that head's results. */
static void check_nan(enum rounding round)
{
    struct program *p = attention_program((struct sizes){1, 80, 1, 1, 8}, true, 0);
    p->ops[0].attrs.round = p->ops[1].attrs.round = round;
    for (int i = Q; i <= DY; i++) {
        struct plain x = plain_new(p, backends[2]);
        for (int k = Q; k <= DY; k++)
            rng_fill_normal(x.memory[k], 80 * 8, 1, 17, (uint64_t)k);
        ((float *)x.memory[i])[70 * 8 + 3] = NAN;
        plain_run(&x, PHASE_FORWARD, PHASE_BACKWARD);
        if (i != DY)
            assert_true(isnan(((float *)x.memory[p->ops[0].out[0]])[75 * 8 + 3]) == (i != Q) &&
                        isnan(((float *)x.memory[p->ops[0].out[0]])[70 * 8 + 3]));
        assert_true(isnan(((float *)x.memory[p->ops[1].out[0]])[70 * 8 + 3]));      /* dq */
        assert_true(isnan(((float *)x.memory[p->ops[1].out[1]])[3 * 8]));           /* dk of an earlier key */
        plain_release(&x);
    }
    program_free(p);
}

static void test_nan_reaches_the_results(void **state)
{
    (void)state;
    check_nan(ROUND_NO);
    check_nan(ROUND_BF16);
}

/* --- the pass on models ------------------------------------------------------------------------------------------ */

static int flash(struct program *p)
{
    const int only = pass_find("flash-attention"), order[] = {only, -1};
    int places[PASSES_MAX] = {0};
    struct error err;
    assert_ok(pass_optimize(p, STAGE_FORWARD, PASS_SET_ALL, order, places, &err), err);
    return places[only];
}

static struct program *training(struct small_model m, int accumulate, bool with_pass)
{
    struct optimizer_settings s = small_settings();
    struct error err;
    s.accumulate = accumulate;
    struct program *p = small_forward(m, 7);
    if (with_pass)
        assert_int_equal(flash(p), m.config.layers);
    assert_ok(pass_training_step(p, &s, &err), err);
    return p;
}

/* Two steps of so many micro-batches each; the gradients are then those of the second. */
static struct exec *train(struct small_model m, int accumulate, bool with_pass, struct backend *b)
{
    struct exec *e = new_exec(training(m, accumulate, with_pass), b);
    for (int i = 0; i < 2 * accumulate; i++) {
        const struct small_batch batch = random_batch(&m, (uint64_t)i);
        write_batch(e, &batch);
        exec_run(e, PHASE_DATA, PHASE_BACKWARD);
        if (i % accumulate == accumulate - 1)
            exec_run(e, PHASE_OPTIMIZE, PHASE_OPTIMIZE);
    }
    return e;
}

static void assert_same_gradients(struct exec *is, struct exec *should)
{
    const struct program *p = exec_program(should), *q = exec_program(is);
    for (value_id v = 0; v < p->n_values; v++) {
        if (p->values[v].kind != VALUE_PARAMETER || strstr(p->values[v].name, ".k.bias"))   /* theirs is rounding alone */
            continue;
        float *a = read_value(is, q->values[program_find(q, p->values[v].name)].grad), *b = read_value(should, p->values[v].grad);
        assert_close(p->values[v].name, a, b, shape_count(p->values[v].shape), GRADIENTS, 0);
        free(a);
        free(b);
    }
}

static void check_model(struct small_model m, int accumulate, struct backend *b)
{
    struct exec *naive = train(m, accumulate, false, b), *fast = train(m, accumulate, true, b);
    const double should = read_named(naive, "host.loss");
    assert_near(read_named(fast, "host.loss"), should, LOSS * should, "the loss");
    assert_same_gradients(fast, naive);
    exec_free(naive);
    exec_free(fast);
}

/* The models as they are, and longer than a block of keys. */
static void test_models_train_the_same(void **state)
{
    (void)state;
    for (int i = 0; i < SMALL_MODELS; i++)
        for (int variant = 0; variant < 4; variant++) {
            struct small_model m = small_models[i];
            m.config.dropout = variant % 2 ? 0.1 : 0;
            if (variant >= 2) {
                m.config.seq = 70;
                m.batch = 2;
            }
            check_model(m, 1, backends[1 + variant % 3]);
            check_model(m, 2, backends[2]);
        }
    check_model(small_models[SMALL_LLAMA], 1, backends[0]);
}

static void test_runs_are_equal_to_the_bit(void **state)
{
    (void)state;
    struct small_model m = small_models[SMALL_LLAMA];
    m.config.dropout = 0.1;
    m.config.seq = 70;
    for (int t = 1; t < BACKENDS; t++) {
        struct exec *a = train(m, 2, true, backends[t]), *b = train(m, 2, true, backends[t]);
        for (value_id v = 0; v < exec_program(a)->n_values; v++) {
            const struct value *value = &exec_program(a)->values[v];
            if (value->kind != VALUE_PARAMETER)
                continue;
            float *x = read_value(a, value->grad), *y = read_value(b, value->grad);
            assert_memory_equal(x, y, value_bytes(value));
            free(x);
            free(y);
        }
        exec_free(a);
        exec_free(b);
    }
}

/* A value that an op still writes with the shape of the weights. */
static bool has_weights(const struct program *p, int64_t seq)
{
    for (int i = 0; i < p->n_ops; i++)
        for (int k = 0; k < p->ops[i].n_out; k++) {
            const struct shape s = p->values[p->ops[i].out[k]].shape;
            if (s.rank >= 2 && s.dim[s.rank - 1] == seq && s.dim[s.rank - 2] == seq)
                return true;
        }
    return false;
}

static double workspace_at(int model, int64_t seq, bool with_pass)
{
    struct small_model m = small_models[model];
    struct memory_plan plan;
    m.config.seq = seq;
    struct program *p = training(m, 1, with_pass);
    assert_int_equal(has_weights(p, seq), !with_pass);
    pass_memory_plan(p, &plan);
    const size_t bytes = plan.workspace_bytes;
    memory_plan_release(&plan);
    program_free(p);
    return (double)bytes;
}

/* Memory that grows with the square of the length without the pass, and with the length itself with it. */
static void test_memory(void **state)
{
    (void)state;
    for (int i = 0; i < SMALL_MODELS; i++) {
        const double naive = workspace_at(i, 512, false), fast = workspace_at(i, 512, true);
        assert_true(3 * fast < naive);
        assert_true(workspace_at(i, 1024, false) > 3 * naive);
        assert_true(workspace_at(i, 1024, true) < 2.1 * fast);
    }
}

/* --- where the pass applies -------------------------------------------------------------------------------------- */

struct pieces {
    float mix_scale, prob;
    bool masked, read_twice;
};

static struct program *pieces_program(struct pieces x)
{
    struct program *p = program_new("pieces");
    const struct shape s = shape_of(3, (int64_t)2, (int64_t)6, (int64_t)8);
    const value_id q = program_add_parameter(p, "q", s, ROLE_MATRIX, INIT_NORMAL, 1);
    const value_id tick = program_add_value(p, "tick", VALUE_STATE, I32, shape_of(0));
    struct op_attrs heads = {.heads = 2, .kv_heads = 2, .scale = 0.5f};
    p->phase = PHASE_FORWARD;
    value_id w = program_emit(p, OP_ATTN_SCORES, heads, "scores", 2, q, q);
    if (x.masked)
        w = program_emit(p, OP_ADD, NONE, "masked", 2, w, program_emit(p, OP_CAUSAL_MASK, (struct op_attrs){.rows = 6}, "mask", 0));
    else
        w = program_emit(p, OP_ADD, NONE, "masked", 2, w, program_add_parameter(p, "bias", shape_of(2, (int64_t)6, (int64_t)6),
                                                                                ROLE_BIAS, INIT_ZEROS, 0));
    w = program_emit(p, OP_SOFTMAX, NONE, "weights", 1, w);
    if (x.read_twice)
        program_emit(p, OP_MUL, NONE, "square", 2, w, w);
    if (x.prob > 0)
        w = program_emit(p, OP_DROPOUT, (struct op_attrs){.prob = x.prob, .seed = 3, .stream = 8}, "dropped", 2, w, tick);
    heads.scale = x.mix_scale;
    program_emit(p, OP_ATTN_MIX, heads, "mix", 2, w, q);
    return p;
}

static int places_in(struct pieces x)
{
    struct program *p = pieces_program(x);
    const int n = flash(p);
    assert_int_equal(count_ops(p, OP_ATTENTION, PHASE_FORWARD), n);
    assert_int_equal(count_ops(p, OP_ATTN_SCORES, PHASE_FORWARD), 1 - n);
    program_free(p);
    return n;
}

static void test_where_it_applies(void **state)
{
    (void)state;
    assert_int_equal(places_in((struct pieces){.mix_scale = 1, .masked = true}), 1);
    assert_int_equal(places_in((struct pieces){.mix_scale = 1, .masked = true, .prob = 0.5f}), 1);
    assert_int_equal(places_in((struct pieces){.mix_scale = 0.5f, .masked = true}), 0);
    assert_int_equal(places_in((struct pieces){.mix_scale = 1, .masked = false}), 0);
    assert_int_equal(places_in((struct pieces){.mix_scale = 1, .masked = true, .read_twice = true}), 0);
}

/* What it puts in: one op with the attributes of all, and no mask left. */
static void test_what_it_makes(void **state)
{
    (void)state;
    struct program *p = pieces_program((struct pieces){.mix_scale = 1, .masked = true, .prob = 0.25f});
    assert_int_equal(flash(p), 1);
    assert_int_equal(p->n_ops, 1);
    const struct op *op = &p->ops[0];
    assert_int_equal(op->kind, OP_ATTENTION);
    assert_string_equal(op->made_by, "flash-attention");
    assert_int_equal(op->n_in, 4);
    assert_int_equal(op->in[3], program_find(p, "tick"));
    assert_true(op->attrs.causal && op->attrs.heads == 2 && op->attrs.scale == 0.5f && op->attrs.prob == 0.25f);
    assert_true(op->attrs.seed == 3 && op->attrs.stream == 8);
    assert_int_equal(flash(p), 0);
    program_free(p);
}

/* A mask that another reads stays. */
static void test_shared_mask_stays(void **state)
{
    (void)state;
    struct program *p = pieces_program((struct pieces){.mix_scale = 1, .masked = true});
    program_emit(p, OP_SOFTMAX, NONE, "other", 1, program_find(p, "mask"));
    assert_int_equal(flash(p), 1);
    assert_int_equal(count_ops(p, OP_CAUSAL_MASK, PHASE_FORWARD), 1);
    program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tuned_equals_reference_over_sizes),
        cmocka_unit_test(test_sizes_without_copies),
        cmocka_unit_test(test_packed_tuned_equals_reference),
        cmocka_unit_test(test_packed_samples_are_apart),
        cmocka_unit_test(test_large_scores),
        cmocka_unit_test(test_exploding_scores),
        cmocka_unit_test(test_infinite_scores),
        cmocka_unit_test(test_nan_reaches_the_results),
        cmocka_unit_test(test_models_train_the_same),
        cmocka_unit_test(test_runs_are_equal_to_the_bit),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_where_it_applies),
        cmocka_unit_test(test_what_it_makes),
        cmocka_unit_test(test_shared_mask_stays),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
