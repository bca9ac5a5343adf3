/* The rules about data, batch, threads, memory and moves: each on a program made by hand whose gain can be worked out, fired and
 * not fired. */
#include "support/optimized.h"
#include "unit/rule_programs.h"

/* ---- data and evaluation ---- */

static struct profiled waiting(double wait_us)
{
    struct program *p = program_new("one");
    embedded(p);
    struct profiled x = profiled_new(p);
    x.profile.ops[0].self_us = 100 - wait_us;
    add_gap(&x, "loader wait", wait_us);
    add_up(&x);
    return x;
}

static void test_data_stall(void **state)
{
    (void)state;
    struct profiled x = waiting(40);
    x.facts.threads = 2;
    x.facts.usable_cores = 4;
    run_detect(&x);
    const struct finding *f = assert_finding(&x, "data-stall", 0.4, 100 / 80.0, 100 / 60.0, 100 / 60.0);
    assert_text(f->fix, "data.workers=2");
    x.facts.usable_cores = 2;                       /* no core is free */
    x.facts.workers = 3;
    run_detect(&x);
    f = assert_finding(&x, "data-stall", 0.4, 1, 100 / 80.0, 100 / 60.0);
    assert_text(f->fix, "threads=1");
    profiled_release(&x);
    x = waiting(0.4);
    run_detect(&x);
    assert_null(find(&x, "data-stall"));
    x.facts.data_wait_us = 100.4;                   /* a real run waits where the recorded step did not: 200 in all */
    run_detect(&x);
    assert_near(find(&x, "data-stall")->share, 100.4 / 200, 1e-9, "share");
    profiled_release(&x);
}

static void test_padding_waste(void **state)
{
    (void)state;
    struct profiled x = waiting(0);
    x.facts.padding = x.facts.padding_packed = 0.25;
    x.facts.padding_least = 0.0625;
    x.facts.bucket = 16;
    x.facts.group = 8;
    run_detect(&x);
    const struct finding *f = assert_finding(&x, "padding-waste", 0.25, 100 / 90.0, 100 / 80.0, 100 / 75.0);      /* 75 of 93.75 tokens */
    assert_text(f->cause, "25.0 %");
    assert_text(f->fix, "data.bucket=16 --set data.group=8");
    x.facts.padding_packed = 0;                             /* all of it */
    run_detect(&x);
    f = assert_finding(&x, "padding-waste", 0.25, 100 / 87.5, 100 / 75.0, 100 / 75.0);
    assert_text(f->fix, "data.pack=on");
    x.facts.packs = true;
    run_detect(&x);
    assert_text(find(&x, "padding-waste")->fix, "data.pack=off --set data.bucket=16");
    x.facts.packs = false;
    x.facts.padding = 0.0999;
    run_detect(&x);
    assert_null(find(&x, "padding-waste"));
    x.facts.padding = x.facts.padding_least = x.facts.padding_packed = 0.25;        /* nothing is known that would be better */
    run_detect(&x);
    assert_null(find(&x, "padding-waste"));
    profiled_release(&x);
}

/* Rows of model.seq tokens are measured; those of the run are shorter: 75 tokens of samples in 80 instead of 100. */
static void test_shorter_rows(void **state)
{
    (void)state;
    struct profiled x = waiting(0);
    x.facts.padding_rows = 0.25;
    x.facts.padding = x.facts.padding_least = x.facts.padding_packed = 0.0625;
    x.facts.run_steps = 1000000;
    x.facts.eval_us_per_step = 25;
    x.facts.eval_every_steps = 100;
    x.facts.eval_scale = 0.4;                       /* batches of evaluation have lengths of their own */
    run_detect(&x);
    assert_text(x.profile.warning, "Every batch was measured at model.seq: the run's batches are shorter, with 6.2 % padding instead of 25.0 %");
    assert_near(x.profile.run.rows_scale, 0.8, 1e-9, "scale");
    assert_near(x.profile.run.evaluation_scale, 0.4, 1e-9, "scale of evaluation");
    assert_near(x.profile.run.seconds, 90, 1e-9, "seconds");        /* 125 as measured */
    assert_near(x.profile.run.evaluation_s, 10, 1e-9, "evaluation");
    assert_text(find(&x, "eval-share")->cause, "11.1 % of the run");
    assert_near(find(&x, "eval-share")->saves_s, 90 * (1 - 1 / find(&x, "eval-share")->speedup), 1e-9, "saved");
    x.profile.delayed_share = 0.25;
    x.facts.threads = x.facts.usable_cores = 2;
    run_detect(&x);
    assert_text(x.profile.warning, "Other work took the cores away");
    assert_text(x.profile.warning, "Every batch was measured at model.seq");
    x.profile.delayed_share = 0;
    x.facts.packs = true;                           /* and so they were measured */
    x.facts.eval_scale = 0;
    run_detect(&x);
    assert_null(x.profile.warning);
    assert_near(x.profile.run.seconds, 125, 1e-9, "seconds");
    profiled_release(&x);
}

static void test_eval_share(void **state)
{
    (void)state;
    struct profiled x = waiting(0);
    x.facts.eval_us_per_step = 25;                  /* 20 % of the run */
    x.facts.eval_every_steps = 100;
    x.facts.eval_batches = 7;
    run_detect(&x);
    const double kept = 100 * 0.02 / 0.98;          /* 2 % */
    const struct finding *f = assert_finding(&x, "eval-share", 0.2, 125 / 112.5, 125 / (100 + kept), 1.25);
    assert_true(f->with_evaluation);
    assert_text(f->fix, "eval.every=1225");         /* 100 * 25 / kept */
    assert_text(f->cause, "7 validation batches every 100 steps cost 20.0 %");
    x.facts.eval_every_steps = x.facts.eval_batches = 1;
    run_detect(&x);
    f = find(&x, "eval-share");
    assert_text(f->where, "evaluation every step");
    assert_text(f->cause, "1 validation batch every step costs 20.0 %");
    x.facts.eval_us_per_step = 2;
    run_detect(&x);
    assert_null(find(&x, "eval-share"));
    profiled_release(&x);
}

/* Of a short run: the evaluation at its end, and at that of each stage, is there in any case. */
static void test_eval_share_of_a_short_run(void **state)
{
    (void)state;
    struct profiled x = waiting(0);
    x.facts.eval_us_per_step = 100;                 /* two evaluations of half of the run */
    x.facts.eval_every_steps = 50;
    x.facts.eval_batches = 700;
    x.facts.run_steps = 100;
    run_detect(&x);
    const struct finding *f = assert_finding(&x, "eval-share", 0.5, 200.0 / 150, 200.0 / 150, 200.0 / 150);
    assert_text(f->fix, "--set eval.every=100 brings it to 33.3 %");
    assert_near(f->saves_s, 100 * 50e-6, 1e-12, "saved");
    x.facts.eval_every_steps = 200;                 /* once, at the end */
    run_detect(&x);
    assert_null(find(&x, "eval-share"));
    x.facts.eval_every_steps = 0;                   /* at the end of each stage */
    x.facts.stage_steps = 50;
    run_detect(&x);
    assert_null(find(&x, "eval-share"));
    assert_near(x.profile.run.evaluation_s, 100 * 100e-6, 1e-12, "evaluation");
    profiled_release(&x);
}

/* ---- batch ---- */

/* Batch (1, 2): product reads x (1, 2, 4) = 32 bytes and w (4, 4) = 64, writes 32: half of its bytes are weights. */
static struct program *tiny_batch(void)
{
    struct program *p = program_new("tiny");
    const value_id e = program_emit(p, OP_EMBED, NONE, "emb", 2, matrix(p, "table", 5, 4), input(p, 1, 2));
    product(p, "y", e, matrix(p, "w", 4, 4));
    return p;
}

static void test_small_batch(void **state)
{
    (void)state;
    struct profiled x = profiled_new(tiny_batch());
    x.profile.ops[0] = (struct profile_op){.name = "emb", .self_us = 10, .floor_us = 10, .memory_bound = true};
    x.profile.ops[1] = (struct profile_op){.name = "y", .self_us = 80, .floor_us = 40, .memory_bound = true};
    add_gap(&x, "dispatch", 10);
    add_up(&x);                                     /* 100; fixed: 10 of dispatch, 40 of weights */
    run_detect(&x);
    const struct finding *f = assert_finding(&x, "small-batch", 0.5, 100 / 95.0, 100 / 75.0, 100 / 75.0);
    assert_text(f->fix, "train.batch_size=2");
    assert_true(f->per_sample && f->saves_s == 0);
    x.facts.run_steps = 1000000;                    /* as many steps, each with twice the samples */
    run_detect(&x);
    assert_true(find(&x, "small-batch")->saves_s == 0);
    x.facts.by_epochs = true;                       /* half as many */
    run_detect(&x);
    assert_near(find(&x, "small-batch")->saves_s, 25, 1e-9, "saved");
    x.profile.ops[1].memory_bound = false; /* arithmetic grows with the batch: 10 fixed; 40 beyond the roofline */
    run_detect(&x);
    assert_finding(&x, "small-batch", 0.1, 100 / 95.0, 100 / 95.0, 100 / 90.0);
    x.profile.gaps[0].us = 4;                       /* 4 % fixed */
    run_detect(&x);
    assert_null(find(&x, "small-batch"));
    profiled_release(&x);
}

static void test_small_batch_needs_memory(void **state)
{
    (void)state;
    struct profiled x = profiled_new(tiny_batch());
    struct profile_memory_point points[2] = {{.activations = 10}, {.parameters = 70, .inputs = 30, .activations = 50}};
    x.profile.ops[1] = (struct profile_op){.name = "y", .self_us = 80, .memory_bound = true};
    x.profile.memory = points;
    x.profile.peak_op = 1;
    x.profile.peak_bytes = 150;
    x.facts.available_bytes = 199;                  /* activations doubled: 200 */
    add_up(&x);
    run_detect(&x);
    assert_null(find(&x, "small-batch"));
    x.facts.available_bytes = 200;
    run_detect(&x);
    assert_non_null(find(&x, "small-batch"));
    profiled_release(&x);
}

/* The optimizer sees nothing of the batch; gradients of weights are computed from it. */
static void test_small_batch_in_training(void **state)
{
    (void)state;
    struct optimizer_settings s = small_settings();
    struct program *p = small_training(small_models[SMALL_LLAMA], &s);
    struct profiled x = profiled_new(p);
    set_us(&x, OP_ADAMW, 1);
    set_us(&x, OP_SUM_SQUARES, 1);
    set_us(&x, OP_CAUSAL_MASK, 1);
    double fixed = 0;
    for (int i = 0; i < p->n_ops; i++)
        fixed += x.profile.ops[i].self_us;
    set_us(&x, OP_MATMUL, 10);                      /* forward, and both gradients */
    set_us(&x, OP_EMBED_GRAD, 10);
    set_us(&x, OP_RMSNORM_GRAD, 10);
    set_us(&x, OP_NLL_GRAD, 10);
    add_up(&x);
    run_detect(&x);
    assert_near(find(&x, "small-batch")->share, fixed / x.profile.step_us, 1e-9, "share");
    profiled_release(&x);
}

/* The same with every pass on: the loss makes the gradient of its weight in the forward, and that is as large as the weight. What
 * reads it, and nothing of the batch, does not grow: a norm for it, the sum with the other gradient of a tied table, the update. */
static void test_small_batch_in_optimized_training(void **state)
{
    (void)state;
    struct optimizer_settings s = small_settings();
    for (int model = 0; model < SMALL_MODELS; model++) {
        struct program *p = optimized_training(small_models[model], &s, PASS_SET_ALL & ~one_pass("recompute"), NULL, NULL);
        struct profiled x = profiled_new(p);
        const int loss = op_of_kind(p, OP_LINEAR_LOSS, 0);
        assert_int_equal(p->ops[loss].n_out, 4);
        set_us(&x, OP_LINEAR_LOSS, 50);
        set_us(&x, OP_ATTENTION, 10);
        set_us(&x, OP_ADAMW_ALL, 3);
        set_us(&x, OP_SUM_SQUARES, 2);
        double fixed = 0;
        for (int i = 0; i < p->n_ops; i++) {
            const struct op *op = &p->ops[i];
            for (int k = 0; k < op->n_in && op->kind == OP_ADD; k++)
                if (op->in[k] == p->ops[loss].out[3])
                    x.profile.ops[i].self_us = 7;           /* the sum of a tied table's gradients, the other one from the embedding */
            const bool is_fixed = op->kind == OP_ADAMW_ALL || op->kind == OP_SUM_SQUARES || x.profile.ops[i].self_us == 7;
            fixed += is_fixed ? x.profile.ops[i].self_us : 0;
        }
        add_up(&x);
        run_detect(&x);
        assert_non_null(find(&x, "small-batch"));
        assert_near(find(&x, "small-batch")->share, fixed / x.profile.step_us, 1e-9, "share");
        profiled_release(&x);
    }
}

/* ---- threads, memory, moves ---- */

static void test_cpu_oversubscribed(void **state)
{
    (void)state;
    struct program *p = program_new("one");
    embedded(p);
    struct profiled x = profiled_new(p);
    x.profile.ops[0] = (struct profile_op){.name = "emb", .self_us = 70, .imbalance_us = 20};
    add_gap(&x, "thread imbalance", 20);
    add_gap(&x, "dispatch", 10);
    add_up(&x);
    x.facts.threads = 4;
    x.facts.usable_cores = 2;
    run_detect(&x);
    const struct finding *f = assert_finding(&x, "cpu-oversubscribed", 0.3, 100 / 90.0, 100 / 80.0, 100 / 70.0);
    assert_text(f->fix, "threads=2");
    x.facts.usable_cores = 4;                       /* enough cores, and still 20 % of imbalance */
    run_detect(&x);
    assert_finding(&x, "cpu-oversubscribed", 0.2, 1, 100 / 90.0, 100 / 80.0);
    x.profile.ops[0] = (struct profile_op){.name = "emb", .self_us = 81, .imbalance_us = 9};
    x.profile.gaps[0].us = 9;
    run_detect(&x);
    assert_null(find(&x, "cpu-oversubscribed"));
    x.facts.threads = 5;                            /* a fault that costs little is listed, as low */
    x.profile.ops[0].imbalance_us = x.profile.gaps[0].us = 0;
    run_detect(&x);
    assert_int_equal(find(&x, "cpu-oversubscribed")->severity, SEVERITY_LOW);
    profiled_release(&x);
}

/* No op takes 500 µs to start: a thread had no core. Nothing of that is fixed cost or dispatch that a fix removes. */
static void test_stalls_are_not_dispatch(void **state)
{
    (void)state;
    struct program *p = program_new("two");
    embedded(p);
    program_emit(p, OP_CAUSAL_MASK, (struct op_attrs){.rows = 4}, "mask", 0);
    struct profiled x = profiled_new(p);
    set_us(&x, OP_EMBED, 9000);
    add_gap(&x, "dispatch", 1000);                  /* 40 for two ops at most, 960 of waiting */
    add_up(&x);
    x.facts.threads = x.facts.usable_cores = 2;
    run_detect(&x);
    assert_null(find(&x, "host-bound"));
    assert_null(find(&x, "small-batch"));
    assert_null(find(&x, "cpu-oversubscribed"));    /* 9.6 % */
    assert_finding(&x, "constant-rebuilt", 0.002, 1, 10000 / 9980.0, 10000 / 9980.0);
    x.profile.gaps[0].us = 2040;
    x.profile.ops[0].self_us = 7960;
    run_detect(&x);
    assert_finding(&x, "cpu-oversubscribed", 0.2, 1, 10000 / 9000.0, 1.25);
    x.facts.threads = 1;                            /* one thread waits for nobody */
    run_detect(&x);
    assert_non_null(find(&x, "host-bound"));
    assert_null(find(&x, "cpu-oversubscribed"));
    profiled_release(&x);
}

static void test_memory_limit(void **state)
{
    (void)state;
    struct program *p = program_new("one");
    embedded(p);
    struct profiled x = profiled_new(p);
    x.facts.available_bytes = 100e6;
    x.facts.batch = 9;
    x.profile.peak_bytes = 70e6;
    x.profile.planned_bytes = 75e6;
    x.profile.rss_peak_bytes = 79e6;
    x.profile.peak_op = 0;
    run_detect(&x);
    assert_null(find(&x, "memory-limit"));
    x.profile.rss_peak_bytes = 95e6;
    run_detect(&x);
    const struct finding *f = assert_finding(&x, "memory-limit", 0, 1, 1, 1);
    assert_string_equal(f->where, "emb");
    assert_text(f->cause, "95 %");
    assert_text(f->evidence, "75.0 MB planned, values 70.0 MB of it at their peak; 95.0 MB resident, 100 MB available");
    assert_text(f->fix, "train.batch_size=3 --set train.accumulate=3");     /* 9 samples stay 9 */
    x.facts.batch = 1;
    run_detect(&x);
    assert_text(find(&x, "memory-limit")->fix, "model.seq");
    profiled_release(&x);
}

static void test_layout_copies(void **state)
{
    (void)state;
    struct program *p = program_new("moves");
    const value_id e = embedded(p), tick = program_add_value(p, "tick", VALUE_STATE, I32, shape_of(0));
    program_emit(p, OP_SUM_LEADING, NONE, "copy", 2, e, e);                         /* a sum over nothing */
    program_emit(p, OP_DROPOUT, NONE, "keep", 2, e, tick);                          /* drops nothing */
    program_emit(p, OP_DROPOUT, (struct op_attrs){.prob = 0.5f}, "drop", 2, e, tick);
    program_emit(p, OP_SILU, NONE, "silu", 1, e);
    struct profiled x = profiled_new(p);
    for (int i = 0; i < p->n_ops; i++)
        x.profile.ops[i].self_us = 20;
    add_up(&x);
    run_detect(&x);
    const struct finding *f = assert_finding(&x, "layout-copies", 0.4, 1.25, 100 / 60.0, 100 / 60.0);
    assert_string_equal(f->where, "copy and 1 more op");
    for (int i = 0; i < p->n_ops; i++)              /* once before the first step: it costs none */
        p->ops[i].phase = p->ops[i].kind == OP_SUM_LEADING || p->ops[i].kind == OP_DROPOUT ? PHASE_SETUP : p->ops[i].phase;
    run_detect(&x);
    assert_null(find(&x, "layout-copies"));
    profiled_release(&x);
    p = program_new("read");
    program_emit(p, OP_HOST_READ, NONE, "host.all", 1, embedded(p));                /* what the host reads is no copy of the step */
    x = profiled_new(p);
    for (int i = 0; i < p->n_ops; i++)
        x.profile.ops[i].self_us = 20;
    add_up(&x);
    run_detect(&x);
    assert_null(find(&x, "layout-copies"));
    profiled_release(&x);
}

/* Micro-batches run forward and backward four times: of 4 * 2 + 2 calls the zero op has one. */
static void test_zero_grad_fills(void **state)
{
    (void)state;
    struct program *p = program_new("zeros");
    const value_id e = embedded(p), acc = program_add_value(p, "acc", VALUE_STATE, F32, p->values[e].shape);
    const value_id count = program_add_value(p, "count", VALUE_STATE, F32, shape_of(0));
    p->micro_batches = 4;
    program_emit(p, OP_ACCUMULATE, NONE, "acc", 2, acc, e);
    p->phase = PHASE_OPTIMIZE;
    program_emit(p, OP_ZERO, NONE, "acc", 1, acc);
    program_emit(p, OP_ZERO, NONE, "count", 1, count);          /* one number is not worth a word */
    struct profiled x = profiled_new(p);
    x.profile.ops[0].self_us = 80;
    x.profile.ops[2].self_us = 10;
    add_gap(&x, "dispatch", 10);
    add_up(&x);
    run_detect(&x);
    const struct finding *f = assert_finding(&x, "zero-grad-fills", 0.11, 100 / 90.0, 100 / 89.0, 100 / 89.0);
    assert_string_equal(f->where, "acc");
    profiled_release(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_stall),
        cmocka_unit_test(test_padding_waste),
        cmocka_unit_test(test_shorter_rows),
        cmocka_unit_test(test_eval_share),
        cmocka_unit_test(test_eval_share_of_a_short_run),
        cmocka_unit_test(test_small_batch),
        cmocka_unit_test(test_small_batch_needs_memory),
        cmocka_unit_test(test_small_batch_in_training),
        cmocka_unit_test(test_small_batch_in_optimized_training),
        cmocka_unit_test(test_cpu_oversubscribed),
        cmocka_unit_test(test_stalls_are_not_dispatch),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_layout_copies),
        cmocka_unit_test(test_zero_grad_fills),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
