/* The rules about ops: each on a program made by hand whose gain can be worked out, fired and not fired. */
#include "unit/rule_programs.h"

/* ---- repeated work ---- */

static void test_constant_rebuilt(void **state)
{
    (void)state;
    struct program *p = program_new("constants");
    embedded(p);
    program_emit(p, OP_CAUSAL_MASK, (struct op_attrs){.rows = 3}, "mask.0", 0);
    program_emit(p, OP_CAUSAL_MASK, (struct op_attrs){.rows = 3}, "mask.1", 0);
    program_add_op(p, OP_ROPE_TABLE, (struct op_attrs){.rows = 3, .cols = 2, .base = 100}, "rope", 0, NULL);
    struct profiled x = profiled_new(p);
    set_us(&x, OP_EMBED, 50);
    set_us(&x, OP_CAUSAL_MASK, 10);
    set_us(&x, OP_ROPE_TABLE, 10);
    x.profile.ops[1].imbalance_us = 4;
    add_gap(&x, "thread imbalance", 4);
    add_gap(&x, "dispatch", 16);                    /* 4 per op */
    add_up(&x);                                     /* 100 */
    run_detect(&x);
    const struct finding *f = assert_finding(&x, "constant-rebuilt", 0.46, 100 / 66.0, 100 / 54.0, 100 / 54.0);
    assert_text(f->cause, "3 ops read nothing that changes");
    assert_text(f->cause, "2 distinct values would do");
    assert_int_equal(f->severity, SEVERITY_HIGH);
    assert_null(find(&x, "recompute"));             /* constants are not counted twice */
    profiled_release(&x);
}

static void test_recompute(void **state)
{
    (void)state;
    struct program *p = program_new("twice");
    const value_id e = embedded(p), w = matrix(p, "w", 4, 4);
    const value_id a = product(p, "a", e, w), b = product(p, "b", e, w);
    const value_id c = program_emit(p, OP_MATMUL, NONE, "c", 2, e, w);      /* not transposed: other work */
    program_emit(p, OP_ADD, NONE, "sum", 2, program_emit(p, OP_ADD, NONE, "ab", 2, a, b), c);
    struct profiled x = profiled_new(p);
    set_us(&x, OP_MATMUL, 20);
    set_us(&x, OP_EMBED, 40);
    add_up(&x);                                     /* 100 */
    run_detect(&x);
    const struct finding *f = assert_finding(&x, "recompute", 0.2, 1.25, 1.25, 1.25);
    assert_string_equal(f->where, "b");
    assert_text(f->cause, "b has kind, attributes and inputs of a");
    profiled_release(&x);
}

/* The pass that trades time for memory does it on purpose. */
static void test_the_pass_recompute_is_no_recompute(void **state)
{
    (void)state;
    struct program *p = program_new("again");
    const value_id e = embedded(p), w = matrix(p, "w", 4, 4);
    product(p, "a", e, w);
    p->made_by = "recompute";
    product(p, "again.a", e, w);
    struct profiled x = profiled_new(p);
    set_us(&x, OP_MATMUL, 50);
    add_up(&x);
    run_detect(&x);
    assert_null(find(&x, "recompute"));
    profiled_release(&x);
}

/* The tick moves on between the two: other random numbers, other work. */
static void test_updated_input_is_not_recompute(void **state)
{
    (void)state;
    struct program *p = program_new("ticks");
    const struct op_attrs drop = {.prob = 0.5f, .seed = 1, .stream = 1};
    const value_id e = embedded(p), tick = program_add_value(p, "tick", VALUE_STATE, I32, shape_of(0));
    program_emit(p, OP_ADVANCE, NONE, "tick", 1, tick);
    program_emit(p, OP_DROPOUT, drop, "a", 2, e, tick);
    program_emit(p, OP_ADVANCE, NONE, "tick", 1, tick);
    program_emit(p, OP_DROPOUT, drop, "b", 2, e, tick);
    struct profiled x = profiled_new(p);
    set_us(&x, OP_DROPOUT, 50);
    add_up(&x);
    run_detect(&x);
    assert_null(find(&x, "recompute"));
    profiled_release(&x);
}

/* ---- optimizer ---- */

/* Parameters of 100, 50 and 50 numbers with a gradient each. One AdamW moves 28 bytes per number and 12 for the
 * scalars: 2812, 1412 and 1412 bytes; one norm 4 bytes per number and 4: 404, 204, 204. */
static struct program *optimizer_program(float max_norm)
{
    struct program *p = program_new("optimizer");
    struct error err;
    value_id w[3], sum = NO_VALUE;
    const int64_t n[] = {100, 50, 50};
    for (int i = 0; i < 3; i++)
        w[i] =
            program_add_parameter(p, (const char *[]){"a", "b", "c"}[i], shape_of(1, n[i]), ROLE_BIAS, INIT_ZEROS, 0);
    p->phase = PHASE_BACKWARD;
    for (int i = 0; i < 3; i++)
        p->values[w[i]].grad = program_emit(p, OP_FILL, (struct op_attrs){.value = 1}, "d.w", 1, w[i]);
    p->loss = program_emit(p, OP_SUM_SQUARES, NONE, "loss", 1, w[0]);
    const struct optimizer_settings s = {.lr = 1, .beta1 = 0.9f, .beta2 = 0.99f, .eps = 1, .total_steps = 1};
    assert_ok(pass_clip(p, max_norm, &sum, &err), err);
    assert_ok(pass_adamw(p, &s, sum, NULL, &err), err);
    assert_valid(p);
    return p;
}

static void test_unfused_optimizer(void **state)
{
    (void)state;
    struct program *p = optimizer_program(1);
    struct profiled x = profiled_new(p);
    const int first = op_of_kind(p, OP_ADAMW, 0), norm = op_of_kind(p, OP_SUM_SQUARES, 1);  /* 0 is the loss */
    set_us(&x, OP_ADAMW, 10);
    x.profile.ops[first].self_us = 14.06;           /* 200 bytes per µs */
    set_us(&x, OP_SUM_SQUARES, 3);
    x.profile.ops[norm].self_us = 4.04;             /* 100 bytes per µs */
    x.profile.ops[op_of_kind(p, OP_SUM_SQUARES, 0)].self_us = 0;
    set_us(&x, OP_FILL, 3);                         /* the rest of the step */
    add_gap(&x, "dispatch", p->n_ops);              /* 1 per op */
    add_up(&x);
    run_detect(&x);
    const double step = x.profile.step_us, involved = 14.06 + 20 + 4.04 + 6 + 6;
    assert_near(step, 44.1 + 9 + p->n_ops, 1e-9, "step");
    /* At the rates of the largest: 5636 / 200 + 812 / 100 = 36.3; bandwidth: 6448 bytes in 6.448 µs; 4 of 6 calls go.
     */
    assert_finding(&x, "unfused-optimizer", involved / step, step / (step - 4), step / (step - (44.1 - 36.3 + 4)),
                   step / (step - (involved - 6.448)));
    assert_null(find(&x, "no-clipping"));
    profiled_release(&x);
}

static void test_one_update_is_fused(void **state)
{
    (void)state;
    struct program *p = program_new("one update");
    const value_id w = program_add_parameter(p, "w", shape_of(1, (int64_t)8), ROLE_BIAS, INIT_ZEROS, 0);
    const value_id m = program_add_value(p, "m", VALUE_STATE, F32, shape_of(1, (int64_t)8));
    const value_id v = program_add_value(p, "v", VALUE_STATE, F32, shape_of(1, (int64_t)8));
    const value_id step = program_add_value(p, "step", VALUE_STATE, I32, shape_of(0));
    p->phase = PHASE_OPTIMIZE;
    const value_id one = program_emit(p, OP_LR, (struct op_attrs){.lr = 1, .total = 1}, "lr", 1, step);
    const value_id in[] = {w, m, v, w, one, step, one};
    program_add_op(p, OP_ADAMW, NONE, "w", 7, in);
    struct profiled x = profiled_new(p);
    set_us(&x, OP_ADAMW, 50);
    add_up(&x);
    run_detect(&x);
    assert_null(find(&x, "unfused-optimizer"));
    profiled_release(&x);
}

static void test_no_clipping(void **state)
{
    (void)state;
    struct profiled x = profiled_new(optimizer_program(0));
    x.facts.clip = 0;
    set_us(&x, OP_ADAMW, 10);
    add_up(&x);
    run_detect(&x);
    const struct finding *f = assert_finding(&x, "no-clipping", 0, 1, 1, 1);
    assert_string_equal(f->fix, "--set train.clip=1.0");
    assert_text(f->evidence, "clipping costs no time");
    profiled_release(&x);
    struct program *p = program_new("forward");     /* nothing is updated: nothing to clip */
    embedded(p);
    x = profiled_new(p);
    x.facts.clip = 0;
    run_detect(&x);
    assert_null(find(&x, "no-clipping"));
    profiled_release(&x);
}

/* ---- projections ---- */

/* Three products of one input, 8, 4 and 4 wide, their gradients, and the two sums of input gradients. */
static struct program *projections(void)
{
    struct program *p = program_new("qkv");
    const value_id e = embedded(p);
    const value_id q = product(p, "q", e, matrix(p, "wq", 8, 4));
    const value_id k = product(p, "k", e, matrix(p, "wk", 4, 4));
    const value_id v = product(p, "v", e, matrix(p, "wv", 4, 4));
    const value_id o = product(p, "o", q, matrix(p, "wo", 4, 8));
    with_loss(p, program_emit(p, OP_ADD, NONE, "okv", 2, o, program_emit(p, OP_MUL, NONE, "kv", 2, k, v)));
    backward(p);
    return p;
}

static void test_unfused_projections(void **state)
{
    (void)state;
    struct program *p = projections();
    struct profiled x = profiled_new(p);
    /* 12 products; those of q have twice the FLOPs of k and v and take as long: 10 µs. Those of o stand apart. */
    set_us(&x, OP_MATMUL, 10);
    set_us(&x, OP_EMBED_GRAD, 60);
    int sums = 0;
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_ADD && p->ops[i].phase == PHASE_BACKWARD) {
            x.profile.ops[i].self_us = 5;
            sums++;
        }
    assert_int_equal(sums, 2);
    add_gap(&x, "dispatch", p->n_ops);              /* 1 per op */
    add_up(&x);
    run_detect(&x);
    const double step = x.profile.step_us, involved = 9 * 10 + 2 * 5 + 11;
    /* Each of three groups: 30 µs for 16 parts of work, at the rate of q (8 in 10 µs) 20; both sums; 6 + 2 calls. The
     * product with o does as much in the same time: no optimism beyond. */
    const struct finding *f = assert_finding(&x, "unfused-projections", involved / step, step / (step - 8),
                                             step / (step - (30 + 10 + 8)), step / (step - (30 + 10 + 8)));
    assert_text(f->evidence, "9 products");
    assert_text(f->cause, "1 input is multiplied");
    assert_string_equal(f->where, "q and 10 more ops");
    profiled_release(&x);
}

static void test_products_of_different_inputs(void **state)
{
    (void)state;
    struct program *p = program_new("chain");
    with_loss(p, product(p, "b", product(p, "a", embedded(p), matrix(p, "wa", 8, 4)), matrix(p, "wb", 4, 8)));
    backward(p);
    struct profiled x = profiled_new(p);
    set_us(&x, OP_MATMUL, 10);
    add_up(&x);
    run_detect(&x);
    assert_null(find(&x, "unfused-projections"));
    profiled_release(&x);
}

/* ---- attention ---- */

/* (1, T, 4) of one head: scores, mask if causal, softmax, mix. */
static struct program *attention(int64_t seq, bool causal)
{
    struct program *p = program_new("attention");
    const struct op_attrs heads = {.heads = 1, .kv_heads = 1, .scale = 1};
    const value_id e = program_emit(p, OP_EMBED, NONE, "emb", 2, matrix(p, "table", 5, 4), input(p, 1, seq));
    value_id w = program_emit(p, OP_ATTN_SCORES, heads, "scores", 2, e, e);
    if (causal) {
        const value_id mask = program_emit(p, OP_CAUSAL_MASK, (struct op_attrs){.rows = seq}, "mask", 0);
        w = program_emit(p, OP_ADD, NONE, "masked", 2, w, mask);
    }
    w = program_emit(p, OP_SOFTMAX, NONE, "weights", 1, w);
    program_emit(p, OP_ATTN_MIX, heads, "mix", 2, w, e);
    return p;
}

static void test_no_flash_attention(void **state)
{
    (void)state;
    struct profiled x = profiled_new(attention(3, true));       /* of 9 pairs the mask leaves 6: (3 + 1) / (2 * 3) */
    set_us(&x, OP_ATTN_SCORES, 30);
    set_us(&x, OP_ATTN_MIX, 30);
    set_us(&x, OP_SOFTMAX, 15);
    set_us(&x, OP_ADD, 15);
    set_us(&x, OP_EMBED, 10);
    add_up(&x);                                     /* 100; the mask takes nothing and is not of the finding */
    run_detect(&x);
    /* Kept: 2/3 of products and softmax = 50. No block skipped: 75. Floor: 144 FLOPs * 2/3 at 1000 per µs, 0.096 µs;
     * queries, keys, values, result: 4 times 48 bytes, and the mask, 36: 0.228 µs. */
    const struct finding *f = assert_finding(&x, "no-flash-attention", 0.90, 100 / 85.0, 100 / 60.0,
                                             100 / (100 - 90 + 0.228));
    assert_text(f->cause, "3 × 3 pairs");
    assert_text(f->fix, "blocks above the diagonal skipped");
    assert_int_equal(f->severity, SEVERITY_HIGH);
    profiled_release(&x);
}

/* Nothing is skipped without a mask; backward makes the scores again: 7 products for 6, softmax twice. */
static void test_no_flash_attention_backward(void **state)
{
    (void)state;
    struct program *p = program_new("attention");
    const struct op_attrs heads = {.heads = 1, .kv_heads = 1, .scale = 1};
    const value_id e = embedded(p);
    value_id w = program_emit(p, OP_ATTN_SCORES, heads, "scores", 2, e, e);
    w = program_emit(p, OP_SOFTMAX, NONE, "weights", 1, w);
    with_loss(p, program_emit(p, OP_ATTN_MIX, heads, "mix", 2, w, e));
    backward(p);
    struct profiled x = profiled_new(p);
    set_us(&x, OP_ATTN_SCORES, 12);                 /* 2 of each of the three kinds: 72 */
    set_us(&x, OP_ATTN_MIX, 12);
    set_us(&x, OP_ATTN_MIX_T, 12);
    set_us(&x, OP_SOFTMAX, 10);
    set_us(&x, OP_SOFTMAX_GRAD, 40);
    set_us(&x, OP_EMBED, 78);
    add_up(&x);                                     /* 200 */
    run_detect(&x);
    const struct finding *f = find(&x, "no-flash-attention");
    assert_non_null(f);
    assert_near(f->share, 122 / 200.0, 1e-9, "share");
    assert_near(f->speedup, 200 / (200 - (122 - 84 - 20.0)), 1e-9, "speedup");
    assert_near(f->speedup_low, f->speedup, 1e-9, "speedup_low");
    profiled_release(&x);
}

static void test_softmax_alone_is_no_attention(void **state)
{
    (void)state;
    struct program *p = program_new("classifier");
    program_emit(p, OP_SOFTMAX, NONE, "p", 1, product(p, "y", embedded(p), matrix(p, "w", 4, 4)));
    struct profiled x = profiled_new(p);
    set_us(&x, OP_SOFTMAX, 50);
    add_up(&x);
    run_detect(&x);
    assert_null(find(&x, "no-flash-attention"));
    profiled_release(&x);
}

/* What takes the place of many attention ops has a dispatch of its own, and threads as uneven as before. */
static void test_flash_attention_keeps_a_call(void **state)
{
    (void)state;
    struct profiled x = profiled_new(attention(3, false));      /* emb, scores, softmax, mix */
    set_us(&x, OP_ATTN_SCORES, 20);
    set_us(&x, OP_SOFTMAX, 20);
    set_us(&x, OP_ATTN_MIX, 20);
    for (int i = 1; i < 4; i++)
        x.profile.ops[i].imbalance_us = 2;
    add_gap(&x, "thread imbalance", 6);
    add_gap(&x, "dispatch", 16);                    /* 4 per op */
    set_us(&x, OP_EMBED, 18);
    add_up(&x);
    run_detect(&x);                                 /* 78 of 100; products and softmax stay with their 6, and a call */
    assert_near(find(&x, "no-flash-attention")->share, 0.78, 1e-9, "share");
    assert_near(find(&x, "no-flash-attention")->speedup, 100 / (100 - (78 - 66 - 4.0)), 1e-9, "speedup");
    profiled_release(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant_rebuilt),
        cmocka_unit_test(test_recompute),
        cmocka_unit_test(test_the_pass_recompute_is_no_recompute),
        cmocka_unit_test(test_updated_input_is_not_recompute),
        cmocka_unit_test(test_unfused_optimizer),
        cmocka_unit_test(test_one_update_is_fused),
        cmocka_unit_test(test_no_clipping),
        cmocka_unit_test(test_unfused_projections),
        cmocka_unit_test(test_products_of_different_inputs),
        cmocka_unit_test(test_no_flash_attention),
        cmocka_unit_test(test_no_flash_attention_backward),
        cmocka_unit_test(test_softmax_alone_is_no_attention),
        cmocka_unit_test(test_flash_attention_keeps_a_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
