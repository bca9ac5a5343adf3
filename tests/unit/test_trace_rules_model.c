/* Rules on traces about the model, its precision and its optimizer: each on a step that has the fault, with the gain that
 * the planted time promises, and on near misses that must stay quiet. */
#include "unit/trace_models.h"

static double device_gain(const struct judged *j, double won_us)
{
    return j->d.corrected.step_us / (j->d.corrected.step_us - won_us);
}

/* Whether the rule fires on this model, with one part of it different. Takes the model's trace. */
static bool fires(struct model *m, const char *rule)
{
    struct judged j = model_judge(m, 0);
    const bool found = judged_find(&j, rule) != NULL;
    judged_release(&j);
    return found;
}

/* ---- unfused-optimizer ---- */

enum { TENSORS = 24 };

static void loop_adam(struct model *m)
{
    static const char *const ops[] = {"mul_", "lerp_", "mul_", "addcmul_", "sqrt", "div", "add_", "addcdiv_"};
    for (int i = 0; i < TENSORS; i++)
        for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
            model_op(m, ops[k], "[[512, 512], [512, 512]]", "vectorized_elementwise_kernel", m->kernel_us / 10, NULL);
}

static void loop_sgd(struct model *m)
{
    for (int i = 0; i < TENSORS; i++) {
        model_op(m, "mul_", "[[512, 512], []]", "vectorized_elementwise_kernel", m->kernel_us / 10, NULL);
        model_op(m, "add_", "[[512, 512], [512, 512]]", "vectorized_elementwise_kernel", m->kernel_us / 10, NULL);
        model_op(m, "add_", "[[512, 512], [512, 512]]", "vectorized_elementwise_kernel", m->kernel_us / 10, NULL);
    }
}

static void loop_of_another_namespace(struct model *m)
{
    const char *space = m->space;
    m->space = "npu";
    loop_adam(m);
    m->space = space;
}

static void foreach_adam(struct model *m)
{
    static const char *const ops[] = {"_foreach_add_", "_foreach_lerp_", "_foreach_mul_", "_foreach_addcmul_", "_foreach_sqrt",
                                      "_foreach_div_", "_foreach_add_", "_foreach_addcdiv_"};
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        model_op(m, ops[k], "[[[512, 512]], [[512, 512]]]", "multi_tensor_apply_kernel", m->kernel_us, NULL);
}

static void a_loop_over_tensors_costs_nearly_all_its_host_time(void **state)
{
    (void)state;
    model_part *const parts[] = {loop_adam, loop_sgd, loop_of_another_namespace};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct model m = model_new(HOST_BOUND);
        m.optimizer = parts[i];
        const double step = model_step_us(&m);
        struct judged j = model_judge(&m, step);
        const double left = TENSORS * step / (double)j.d.mean.host_ops;     /* a fused step costs about an op for each tensor */
        assert_gain(&j, "unfused-optimizer", step / (step - m.planted_us + left), 0.1);
        judged_release(&j);
    }
}

static void a_sweep_for_each_arithmetic_operation_costs_the_devices_time(void **state)
{
    (void)state;
    struct model m = model_new(DEVICE_BOUND);
    m.optimizer = foreach_adam;
    struct judged j = model_judge(&m, 0);
    assert_gain(&j, "unfused-optimizer", device_gain(&j, 0.4 * 8 * 100), 0.1);
    judged_release(&j);
}

/* Sweeps are the best that these have on a device; a loop of those that have no other form stays one. */
static void an_optimizer_in_its_best_form_is_well(void **state)
{
    (void)state;
    static const char *const sweep[] = {"Optimizer.step#RMSprop.step", "Optimizer.step#NAdam.step", "Optimizer.step#Adagrad.step",
                                        "Optimizer.step#Adafactor.step", "Optimizer.step#Lion.step"};
    static const char *const loop[] = {"Optimizer.step#LBFGS.step", "Optimizer.step#SparseAdam.step", "Optimizer.step#Muon.step"};
    for (size_t i = 0; i < sizeof sweep / sizeof *sweep; i++) {
        struct model m = model_new(DEVICE_BOUND);
        m.optimizer = foreach_adam;
        m.optimizer_range = sweep[i];
        assert_false(fires(&m, "unfused-optimizer"));
    }
    for (size_t i = 0; i < sizeof loop / sizeof *loop; i++) {
        struct model m = model_new(HOST_BOUND);
        m.optimizer = loop_adam;
        m.optimizer_range = loop[i];
        assert_false(fires(&m, "unfused-optimizer"));
    }
}

static void sweeps_are_not_counted_in_tensors(void **state)
{
    (void)state;
    struct model m = model_new(DEVICE_BOUND);
    m.optimizer = foreach_adam;
    struct judged j = model_judge(&m, 0);
    assert_null(strstr(assert_found(&j, "unfused-optimizer")->evidence, "about"));
    judged_release(&j);
}

static void updates_outside_of_an_optimizer(struct model *m)
{
    for (int i = 0; i < 8; i++)
        model_op(m, "lerp_", "[[512, 512], [512, 512]]", "vectorized_elementwise_kernel", 3, NULL);
}

static void a_fused_optimizer_and_averages_of_weights_are_well(void **state)
{
    (void)state;
    struct model fused = model_new(HOST_BOUND), average = model_new(HOST_BOUND);
    average.end = updates_outside_of_an_optimizer;
    assert_false(fires(&fused, "unfused-optimizer"));
    assert_false(fires(&average, "unfused-optimizer"));
}

/* In old traces a range is an operator like the others. */
static void ranges_of_old_traces_are_seen(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.optimizer = loop_adam;
    const double step = model_step_us(&m);
    struct judged old = trace_judge(model_as_text(m.t.trace, true), step), made = model_judge(&m, step);
    const double gain = assert_found(&made, "unfused-optimizer")->speedup;
    assert_near(assert_found(&old, "unfused-optimizer")->speedup, gain, 0.1 * gain, "speed-up");
    assert_not_found(&old, "no-clipping");
    judged_release(&old);
    judged_release(&made);
}

/* ---- zero-grad-fills ---- */

static void fill_gradients(struct model *m)
{
    for (int i = 0; i < TENSORS; i++)
        model_op(m, "zero_", "[[512, 512]]", "vectorized_elementwise_kernel<FillFunctor>", m->kernel_us / 10, NULL);
}

static void filling_gradients_costs_fills_and_additions(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.zero_grad = fill_gradients;
    m.adds_gradients = true;
    const double step = model_step_us(&m);
    struct model clean = model_new(HOST_BOUND);
    const double without = model_step_us(&clean);
    struct judged j = model_judge(&m, step);
    assert_gain(&j, "zero-grad-fills", step / without, 0.15);
    judged_release(&j);
    trace_free(clean.t.trace);
}

/* Several passes of backward add their gradients: only the first one's additions could be spared. */
static void backward_in_pieces(struct model *m)
{
    m->adds_gradients = m->zero_grad != NULL;
    model_backward(m);
    m->adds_gradients = true;
    for (int i = 0; i < 3; i++) {
        model_forward(m);
        model_backward(m);
    }
}

static void accumulated_gradients_are_meant_to_be_added(void **state)
{
    (void)state;
    struct model kept = model_new(HOST_BOUND);
    kept.backward = backward_in_pieces;
    assert_false(fires(&kept, "zero-grad-fills"));

    struct model filled = model_new(HOST_BOUND), clean = model_new(HOST_BOUND);
    filled.backward = clean.backward = backward_in_pieces;
    filled.zero_grad = fill_gradients;
    const double step = model_step_us(&filled), without = model_step_us(&clean);
    struct judged j = model_judge(&filled, step);
    assert_gain(&j, "zero-grad-fills", step / without, 0.2);
    judged_release(&j);
    trace_free(clean.t.trace);
}

/* ---- no-clipping ---- */

static void nothing(struct model *m) { (void)m; }

static void clipping_is_missed(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.after_backward = nothing;
    struct judged j = model_judge(&m, 0);
    const struct finding *f = assert_found(&j, "no-clipping");
    assert_int_equal(f->severity, SEVERITY_LOW);
    assert_near(f->speedup, 1, 0, "speed-up");
    judged_release(&j);
}

static void norm_one_by_one(struct model *m)
{
    model_op(m, "linalg_vector_norm", "[[512, 512]]", "reduce_kernel<norm>", 3, NULL);
}

static void clipping_is_seen(void **state)
{
    (void)state;
    struct model together = model_new(HOST_BOUND), single = model_new(HOST_BOUND);
    single.after_backward = norm_one_by_one;
    assert_false(fires(&together, "no-clipping"));
    assert_false(fires(&single, "no-clipping"));
}

/* ---- no-mixed-precision, misaligned-dims ---- */

static struct model in_f32(enum model_kind kind)
{
    struct model m = model_new(kind);
    m.types = F32;
    return m;
}

static void products_in_f32_could_be_faster(void **state)
{
    (void)state;
    struct model m = in_f32(DEVICE_BOUND);
    struct judged j = model_judge(&m, 0);
    const struct finding *f = assert_found(&j, "no-mixed-precision");
    assert_true(f->speedup > 2 && f->speedup < 8);          /* most of the step is products */
    judged_release(&j);
}

static void f32_in_a_step_bound_by_the_host_wins_nothing(void **state)
{
    (void)state;
    struct model m = in_f32(HOST_BOUND);
    struct judged j = model_judge(&m, model_step_us(&m));
    const struct finding *f = assert_found(&j, "no-mixed-precision");
    assert_true(f->speedup < 1.02);
    assert_int_equal(f->severity, SEVERITY_LOW);
    judged_release(&j);
}

static void use_card(struct trace *t, const char *name, int major)
{
    t->devices = xrealloc(NULL, sizeof *t->devices);
    t->n_devices = 1;
    t->devices[0] = (struct trace_device){.name = trace_name(t, name), .major = major, .multiprocessors = 56};
}

static void use_an_old_card(struct trace *t) { use_card(t, "Tesla P100", 6); }

/* Products whose ops say nothing of their types, by kernels of this name. */
static struct judged judge_kernel(const char *kernel, const char *card, int major)
{
    struct model m = model_new(DEVICE_BOUND);
    m.types = NULL;
    model_train(&m);
    struct trace *t = m.t.trace;
    for (int64_t i = 0; i < t->n; i++)
        if (t->events[i].kind == EVENT_KERNEL && strstr(t->names[t->events[i].name], "gemm"))
            t->events[i].name = trace_name(t, kernel);
    use_card(t, card, major);
    return model_judge(&m, 0);
}

static void a_kernels_name_says_its_precision(void **state)
{
    (void)state;
    static const struct { const char *kernel, *said; } cases[] = {
        {"cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4>", "in TF32"},
        {"sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32", "in TF32"},
        {"ampere_sgemm_128x64_tn", "in f32"},
        {"cudnn_ampere_scudnn_128x64_relu_xregs_large_nn_v1", "in f32"},
        {"void cudnn::cnn::dgrad_engine<float, 512, 6, 5, 3, 3, 3, true>", "in f32"},
        {"void gemv2T_kernel_val<int, int, float, float, float>(gemm)<float>", "in f32"},
        {"turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_nn", NULL},
        {"cutlass::Kernel<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_nn_align8>", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct judged j = judge_kernel(cases[i].kernel, "NVIDIA A100", 8);
        const struct finding *f = judged_find(&j, "no-mixed-precision");
        if (!f != !cases[i].said || (f && !strstr(f->evidence, cases[i].said)) ||
            (f && !strcmp(cases[i].said, "in f32") != !strstr(f->evidence, "TF32")))
            fail_msg("%s: %s", cases[i].kernel, f ? f->evidence : "not found");
        judged_release(&j);
    }
}

static void the_precision_that_is_advised_is_one_that_the_device_has(void **state)
{
    (void)state;
    static const struct { const char *card; int major; const char *with, *without; } cases[] = {
        {"NVIDIA A100", 8, "bfloat16", "GradScaler"},
        {"Tesla V100", 7, "GradScaler", "dtype=torch.bfloat16"},
        {"AMD Instinct MI300X", 9, "bfloat16", "TF32"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct judged j = judge_kernel("some_sgemm_nn", cases[i].card, cases[i].major);
        const struct finding *f = assert_found(&j, "no-mixed-precision");
        assert_non_null(strstr(f->fix, cases[i].with));
        assert_null(strstr(f->fix, cases[i].without));
        judged_release(&j);
    }
    struct judged tf32 = judge_kernel("xmma_gemm_tf32f32", "NVIDIA A100", 8);
    assert_null(strstr(assert_found(&tf32, "no-mixed-precision")->fix, "set_float32_matmul_precision"));
    judged_release(&tf32);
}

static void sixteen_bits_and_cards_without_them_are_well(void **state)
{
    (void)state;
    struct model half = model_new(DEVICE_BOUND), old = in_f32(DEVICE_BOUND);
    half.types = "[\"c10::Half\", \"c10::Half\"]";
    assert_false(fires(&half, "no-mixed-precision"));
    model_train(&old);
    use_an_old_card(old.t.trace);
    assert_false(fires(&old, "no-mixed-precision"));
}

/* The last product is long for its size when the vocabulary is odd. */
static void odd_head(struct model *m) { model_linear(m, MODEL_WIDTH, 50257, "cutlass_gemm_align1", 5000); }

static void an_odd_vocabulary_costs_the_time_beyond_the_others_speed(void **state)
{
    (void)state;
    struct model m = model_new(DEVICE_BOUND);
    m.after_forward = odd_head;
    struct judged j = model_judge(&m, 0);
    /* 3 layers of products of 3 + 1 + 4 + 4 squares and the head of 2 in 13 kernels of 100 µs: a square takes 34 µs */
    const double expected = 50257.0 / MODEL_WIDTH * 13 * 100 / 38;
    const struct finding *f = assert_gain(&j, "misaligned-dims", device_gain(&j, 5000 - expected), 0.1);
    assert_non_null(strstr(f->cause, "50257"));
    judged_release(&j);
}

static void even_head(struct model *m) { model_linear(m, MODEL_WIDTH, 50304, "cutlass_gemm", 5000); }

static void multiples_of_eight_and_f32_are_aligned(void **state)
{
    (void)state;
    struct model even = model_new(DEVICE_BOUND), single = in_f32(DEVICE_BOUND);
    even.after_forward = even_head;
    single.after_forward = odd_head;
    assert_false(fires(&even, "misaligned-dims"));
    assert_false(fires(&single, "misaligned-dims"));
}

/* ---- attention ---- */

static void product_of_batches(struct model *m, const char *dims, const char *inner)
{
    model_begin(m, "matmul", dims);
    model_op(m, "bmm", inner, "cutlass_gemm", 200, NULL);
    model_end(m);
    model_learn(m, "BmmBackward0", 400, 0);
}

#define SCORES "[[32, 8, 256, 256]]"
static const double wide_us = 300;          /* an op on all scores */

static void written_out_attention(struct model *m)
{
    model_projections(m);
    product_of_batches(m, "[[32, 8, 256, 64], [32, 8, 64, 256]]", "[[256, 256, 64], [256, 64, 256]]");
    model_op(m, "div", "[[32, 8, 256, 256], []]", "vectorized_elementwise_kernel<div>", wide_us, "DivBackward0");
    model_op(m, "masked_fill", "[[32, 8, 256, 256], [256, 256], []]", "vectorized_elementwise_kernel<fill>", wide_us, "MaskedFillBackward0");
    model_op(m, "softmax", SCORES, "cunn_SoftMaxForward", wide_us, "SoftmaxBackward0");
    model_op(m, "dropout", SCORES, "fused_dropout_kernel", wide_us, "NativeDropoutBackward0");
    product_of_batches(m, "[[32, 8, 256, 256], [32, 8, 256, 64]]", "[[256, 256, 256], [256, 256, 64]]");
    model_view(m, "transpose", "[[32, 8, 256, 64]]");
    model_linear(m, MODEL_WIDTH, MODEL_WIDTH, "nvjet_gemm", m->kernel_us);
}

static void scores_that_are_written_out_cost_their_passes(void **state)
{
    (void)state;
    struct model m = model_new(DEVICE_BOUND);
    m.attention = written_out_attention;
    struct judged j = model_judge(&m, 0);
    /* four ops forward and twice that backward go; of the products (200 forward, 400 backward, of kernels that are not products
     * by name) a part stays */
    const struct finding *f = assert_found(&j, "no-flash-attention");
    const double least = device_gain(&j, 3 * 3 * 4 * wide_us), most = device_gain(&j, 3 * 3 * (4 * wide_us + 2 * 200));
    if (!(f->speedup > 0.98 * least && f->speedup < most))
        fail_msg("%.3f is not between %.3f and %.3f", f->speedup, least, most);
    assert_not_found(&j, "per-head-attention");
    judged_release(&j);
}

/* A softmax over classes between two products with weights: a gate, not attention. */
static void mixture(struct model *m)
{
    model_linear(m, MODEL_WIDTH, 64, "nvjet_gemm", m->kernel_us);
    model_op(m, "softmax", "[[8192, 64]]", "cunn_SoftMaxForward", 50, "SoftmaxBackward0");
    model_linear(m, MODEL_WIDTH, MODEL_WIDTH, "nvjet_gemm", m->kernel_us);
}

static void a_gate_and_one_attention_op_are_no_scores(void **state)
{
    (void)state;
    struct model gate = model_new(DEVICE_BOUND), one = model_new(DEVICE_BOUND);
    gate.mlp = mixture;
    assert_false(fires(&gate, "no-flash-attention"));
    assert_false(fires(&one, "no-flash-attention"));
}

static void head_by_head(struct model *m)
{
    model_projections(m);
    for (int h = 0; h < MODEL_HEADS; h++) {
        model_view(m, "select", "[[32, 8, 256, 64], [], []]");
        product_of_batches(m, "[[32, 256, 64], [32, 64, 256]]", "[[32, 256, 64], [32, 64, 256]]");
        model_op(m, "softmax", "[[32, 256, 256]]", "cunn_SoftMaxForward", 40, "SoftmaxBackward0");
        product_of_batches(m, "[[32, 256, 256], [32, 256, 64]]", "[[32, 256, 256], [32, 256, 64]]");
    }
    model_op(m, "cat", "[[[32, 256, 64]], []]", "CatArrayBatchedCopy", 40, "CatBackward0");
    model_linear(m, MODEL_WIDTH, MODEL_WIDTH, "nvjet_gemm", m->kernel_us);
}

static void heads_in_a_loop_cost_their_calls(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND), clean = model_new(HOST_BOUND);
    m.attention = head_by_head;
    m.host_us = clean.host_us = 300;        /* so that it stays the bound */
    const double step = model_step_us(&m), without = model_step_us(&clean);
    struct judged j = model_judge(&m, step);
    const struct finding *f = assert_gain(&j, "per-head-attention", step / without, 0.25);
    assert_non_null(strstr(f->evidence, "8 heads"));
    assert_null(strstr(f->fix, "is_causal"));       /* nothing masks them */
    assert_not_found(&j, "no-flash-attention");
    judged_release(&j);
    trace_free(clean.t.trace);
    struct model whole = model_new(DEVICE_BOUND);
    whole.attention = written_out_attention;
    assert_false(fires(&whole, "per-head-attention"));
}

/* ---- unfused-projections ---- */

static void three_projections(struct model *m)
{
    for (int i = 0; i < 3; i++) {
        model_linear(m, MODEL_WIDTH, MODEL_WIDTH, "nvjet_gemm", m->kernel_us / 3);
        model_view(m, "view", "[[32, 256, 512]]");
        model_view(m, "transpose", "[[32, 256, 8, 64]]");
    }
}

static void gate_and_up(struct model *m)    /* the gate's activation lies between */
{
    model_linear(m, MODEL_WIDTH, 4 * MODEL_WIDTH, "nvjet_gemm", m->kernel_us);
    model_op(m, "silu", "[[32, 256, 2048]]", "vectorized_elementwise_kernel<silu>", m->kernel_us / 4, "SiluBackward0");
    model_linear(m, MODEL_WIDTH, 4 * MODEL_WIDTH, "nvjet_gemm", m->kernel_us);
    model_op(m, "mul", "[[32, 256, 2048], [32, 256, 2048]]", "vectorized_elementwise_kernel<mul>", m->kernel_us / 4, "MulBackward0");
    model_linear(m, 4 * MODEL_WIDTH, MODEL_WIDTH, "nvjet_gemm", m->kernel_us);
}

static void separate_attention(struct model *m)
{
    three_projections(m);
    model_op(m, "scaled_dot_product_attention", "[[32, 8, 256, 64], [32, 8, 256, 64]]", "flash_fwd_kernel", m->kernel_us, "AttentionBackward0");
    model_linear(m, MODEL_WIDTH, MODEL_WIDTH, "nvjet_gemm", m->kernel_us);
}

static void products_of_one_input_could_be_one(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.attention = separate_attention;
    const double step = model_step_us(&m);
    struct judged j = model_judge(&m, step);
    /* two products of three go with their nodes (about 3.5 ops each with what hands over gradients); 8 ops come */
    const struct finding *f = assert_found(&j, "unfused-projections");
    assert_true(f->speedup > 1 && f->speedup < 1.2);
    assert_non_null(strstr(f->evidence, "3 groups per step, 9 products"));
    judged_release(&j);
    struct model gated = model_new(DEVICE_BOUND);
    gated.mlp = gate_and_up;
    struct judged g = model_judge(&gated, 0);
    assert_non_null(strstr(assert_found(&g, "unfused-projections")->evidence, "3 groups per step, 6 products"));
    judged_release(&g);
    struct model small = model_new(HOST_BOUND);             /* taking two results apart costs this host more than one product */
    small.mlp = gate_and_up;
    struct judged s = model_judge(&small, 0);
    assert_not_found(&s, "unfused-projections");
    judged_release(&s);
}

/* Products behind each other, of the same width: each takes what the one before gave. */
static void chain_of_squares(struct model *m)
{
    model_linear(m, MODEL_WIDTH, MODEL_WIDTH, "nvjet_gemm", m->kernel_us);
    model_op(m, "gelu", "[[32, 256, 512]]", "vectorized_elementwise_kernel<gelu>", m->kernel_us / 4, "GeluBackward0");
    model_linear(m, MODEL_WIDTH, MODEL_WIDTH, "nvjet_gemm", m->kernel_us);
    model_op(m, "relu", "[[32, 256, 512]]", "vectorized_elementwise_kernel<relu>", m->kernel_us / 4, "ReluBackward0");
    model_linear(m, MODEL_WIDTH, MODEL_WIDTH, "nvjet_gemm", m->kernel_us);
}

static void a_chain_of_products_has_no_common_input(void **state)
{
    (void)state;
    struct model fused = model_new(HOST_BOUND), chain = model_new(HOST_BOUND);
    chain.mlp = chain_of_squares;
    assert_false(fires(&fused, "unfused-projections"));
    assert_false(fires(&chain, "unfused-projections"));
}

/* ---- recompute ---- */

/* Non-reentrant: the first node of a block runs its forward again, then itself. */
static void recomputing_backward(struct model *m)
{
    const int n = m->n_nodes;
    traced_on_thread(&m->t, 2);
    for (int i = n - 1; i >= 0; i--) {
        const struct model_node node = m->nodes[i];
        if (strcmp(node.name, "GeluBackward0")) {
            model_run_node(m, &node);
            continue;
        }
        model_begin_node(m, &node);
        m->n_nodes = n;                     /* new nodes behind those that wait */
        model_mlp(m);
        traced_run(&m->t, "aten::mm", m->host_us, "nvjet_gemm", node.kernel_us);
        traced_end(&m->t);
        traced_end(&m->t);
    }
    m->n_nodes = 0;
    traced_on_thread(&m->t, 1);
}

static void forward_again_in_backward_costs_its_device_time(void **state)
{
    (void)state;
    struct model m = model_new(DEVICE_BOUND);
    m.backward = recomputing_backward;
    struct judged j = model_judge(&m, 0);
    assert_gain(&j, "recompute", device_gain(&j, 3 * (100 + 25 + 100)), 0.1);
    judged_release(&j);
    struct model plain = model_new(DEVICE_BOUND);
    assert_false(fires(&plain, "recompute"));
}

static void forward_again_in_backward_costs_its_host_time(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND), clean = model_new(HOST_BOUND);
    m.backward = recomputing_backward;
    const double step = model_step_us(&m), without = model_step_us(&clean);
    struct judged j = model_judge(&m, step);
    /* and the hooks that pack and unpack tensors, which this trace has not: about as much again */
    const struct finding *f = assert_found(&j, "recompute");
    assert_true(f->speedup > step / without && f->speedup < step / (without - 1.3 * (step - without)));
    judged_release(&j);
    trace_free(clean.t.trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_over_tensors_costs_nearly_all_its_host_time),
        cmocka_unit_test(a_sweep_for_each_arithmetic_operation_costs_the_devices_time),
        cmocka_unit_test(an_optimizer_in_its_best_form_is_well),
        cmocka_unit_test(sweeps_are_not_counted_in_tensors),
        cmocka_unit_test(a_fused_optimizer_and_averages_of_weights_are_well),
        cmocka_unit_test(ranges_of_old_traces_are_seen),
        cmocka_unit_test(filling_gradients_costs_fills_and_additions),
        cmocka_unit_test(accumulated_gradients_are_meant_to_be_added),
        cmocka_unit_test(clipping_is_missed),
        cmocka_unit_test(clipping_is_seen),
        cmocka_unit_test(products_in_f32_could_be_faster),
        cmocka_unit_test(f32_in_a_step_bound_by_the_host_wins_nothing),
        cmocka_unit_test(a_kernels_name_says_its_precision),
        cmocka_unit_test(the_precision_that_is_advised_is_one_that_the_device_has),
        cmocka_unit_test(sixteen_bits_and_cards_without_them_are_well),
        cmocka_unit_test(an_odd_vocabulary_costs_the_time_beyond_the_others_speed),
        cmocka_unit_test(multiples_of_eight_and_f32_are_aligned),
        cmocka_unit_test(scores_that_are_written_out_cost_their_passes),
        cmocka_unit_test(a_gate_and_one_attention_op_are_no_scores),
        cmocka_unit_test(heads_in_a_loop_cost_their_calls),
        cmocka_unit_test(products_of_one_input_could_be_one),
        cmocka_unit_test(a_chain_of_products_has_no_common_input),
        cmocka_unit_test(forward_again_in_backward_costs_its_device_time),
        cmocka_unit_test(forward_again_in_backward_costs_its_host_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
