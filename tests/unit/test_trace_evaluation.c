/* eval-share in traces: what an evaluation between steps costs, and what else runs forward without gradients. */
#include "unit/trace_models.h"

static void use_the_average_weights(struct model *m)    /* a few ops without gradients are no evaluation */
{
    m->no_grad = true;
    model_linear(m, MODEL_WIDTH, MODEL_WIDTH, "nvjet_gemm", 10);
    m->no_grad = false;
}

static void checkpointed_mlp(struct model *m)           /* forward without gradients inside a function that has them */
{
    model_begin(m, "CheckpointFunction::apply", MODEL_X);
    m->no_grad = true;
    model_mlp(m);
    model_norm(m);
    model_norm(m);
    m->no_grad = false;
    model_end(m);
    model_learn(m, "CheckpointFunctionBackward", m->kernel_us, 2);
}

static void evaluation_between_steps_costs_its_time(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.end = model_evaluate;
    struct judged j = model_judge(&m, model_step_us(&m));
    assert_gain(&j, "eval-share", model_gain(&m), 0.1);
    judged_release(&j);
}

/* torch.no_grad() was forgotten: what backward would need is recorded, and no backward comes. */
static void evaluate_with_gradients(struct model *m)
{
    const int nodes = m->n_nodes;
    model_forward(m);
    m->n_nodes = nodes;
    model_read(m, "cudaStreamSynchronize");
}

static void ask_and_detach(struct model *m)             /* the layers that learn, for a target; nothing is read */
{
    const int nodes = m->n_nodes;
    model_forward(m);
    m->n_nodes = nodes;
}

static void encode_with_gradients(struct model *m)      /* weights that ask for none, in grad mode */
{
    const int nodes = m->n_nodes;
    for (int i = 0; i < 12; i++) {
        model_linear(m, 768, 768, "nvjet_gemm", m->kernel_us);
        model_norm(m);
    }
    m->n_nodes = nodes;
    model_read(m, "cudaStreamSynchronize");
}

static void an_evaluation_may_record_gradients(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.end = evaluate_with_gradients;
    struct judged j = model_judge(&m, model_step_us(&m));
    const struct finding *f = assert_gain(&j, "eval-share", model_gain(&m), 0.1);
    assert_non_null(strstr(f->cause, "keeps all that gradients would need"));
    assert_non_null(strstr(f->fix, "inference_mode"));
    judged_release(&j);
}

static void what_else_records_for_nothing_is_part_of_the_step(void **state)
{
    (void)state;
    static model_part *const parts[] = {ask_and_detach, encode_with_gradients, evaluate_with_gradients};
    for (int i = 0; i < 3; i++) {
        struct model m = model_new(HOST_BOUND);
        *(i == 2 ? &m.after_forward : &m.data) = parts[i];      /* read between forward and backward it is of the loss */
        struct judged j = model_judge(&m, 0);
        assert_not_found(&j, "eval-share");
        judged_release(&j);
    }
}

static void few_ops_without_gradients_are_no_evaluation(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.end = use_the_average_weights;
    struct judged j = model_judge(&m, 0);
    assert_not_found(&j, "eval-share");
    judged_release(&j);
    struct model c = model_new(HOST_BOUND);
    c.mlp = checkpointed_mlp;
    struct judged k = model_judge(&c, 0);
    assert_not_found(&k, "eval-share");
    judged_release(&k);
}

/* Layers of other sizes than those that learn. */
static void encode(struct model *m)
{
    m->no_grad = true;
    for (int i = 0; i < 12; i++) {
        model_linear(m, 768, 768, "nvjet_gemm", m->kernel_us);
        model_norm(m);
    }
    m->no_grad = false;
}

static void ask_reference(struct model *m)             /* the layers that learn, before backward, or before the forward pass */
{
    m->no_grad = true;
    model_forward(m);
    m->no_grad = false;
}

static void a_frozen_network_is_no_evaluation(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct model m = model_new(HOST_BOUND);
        *(i == 1 ? &m.after_forward : &m.data) = i ? ask_reference : encode;
        struct judged j = model_judge(&m, 0);
        const struct finding *f = assert_found(&j, "eval-share");
        assert_int_equal(f->severity, SEVERITY_LOW);
        assert_true(f->speedup <= 1 && f->speedup_high <= 1);
        assert_null(strstr(f->fix, "eval_every"));
        assert_non_null(strstr(f->fix, "inference_mode"));
        assert_non_null(strstr(f->cause, "does not learn"));
        judged_release(&j);
    }
}

/* ---- what is read of a pass says what it is ---- */

static void read_behind_views(struct model *m)         /* the loss of a model of words: slices and views of the logits before it */
{
    m->no_grad = true;
    model_forward(m);
    for (int i = 0; i < 12; i++)
        model_view(m, "slice", MODEL_X);
    model_read(m, "cudaStreamSynchronize");
    m->no_grad = false;
}

static void read_by_batch(struct model *m)             /* of the first batch; the last result is kept on the device */
{
    model_evaluate(m);
    m->no_grad = true;
    model_forward(m);
    m->no_grad = false;
}

static void bring_to_host(struct model *m)             /* .cpu() */
{
    m->no_grad = true;
    model_forward(m);
    model_begin(m, "to", MODEL_X);
    traced_copy(&m->t, "Memcpy DtoH (Device -> Pageable)", 4096, 2);
    traced_wait(&m->t, "cudaStreamSynchronize");
    model_end(m);
    m->no_grad = false;
}

static void an_evaluation_is_read_somehow(void **state)
{
    (void)state;
    static model_part *const ways[] = {read_behind_views, read_by_batch, bring_to_host};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct model m = model_new(HOST_BOUND);
        m.end = ways[i];
        struct judged j = model_judge(&m, model_step_us(&m));
        const struct finding *f = assert_found(&j, "eval-share");
        assert_non_null(strstr(f->cause, "between training steps"));
        assert_true(f->speedup > 1.2);
        judged_release(&j);
    }
}

static void ask_reference_with_mask(struct model *m)   /* indexing by a mask asks how many there are */
{
    ask_reference(m);
    model_begin(m, "index", MODEL_X);
    model_begin(m, "nonzero", "[[8192]]");
    traced_copy(&m->t, "Memcpy DtoH (Device -> Pageable)", 4, 2);
    traced_wait(&m->t, "cudaStreamSynchronize");
    model_end(m);
    model_end(m);
}

static void a_mask_reads_nothing(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.data = ask_reference_with_mask;
    struct judged j = model_judge(&m, 0);
    const struct finding *f = assert_found(&j, "eval-share");
    assert_non_null(strstr(f->cause, "does not learn"));
    judged_release(&j);
}

/* ---- what chooses at random from the outputs makes data ---- */

static void draw(struct model *m, const char *around, const char *name)
{
    if (around)
        model_begin(m, around, MODEL_X);
    model_begin(m, name, MODEL_X);
    traced_idle(&m->t, 2);
    model_end(m);
    if (around)
        model_end(m);
}

static void roll_out(struct model *m)
{
    m->no_grad = true;
    model_forward(m);
    draw(m, NULL, "multinomial");
    model_read(m, "cudaStreamSynchronize");
    m->no_grad = false;
}

static void a_rollout_is_no_evaluation(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.end = roll_out;
    struct judged j = model_judge(&m, 0);
    assert_not_found(&j, "eval-share");
    judged_release(&j);
}

static void evaluate_with_dropout(struct model *m)     /* model.eval() was forgotten */
{
    m->no_grad = true;
    draw(m, "dropout", "bernoulli_");
    model_evaluate(m);
    m->no_grad = true;
    model_forward(m);
    draw(m, "dropout", "bernoulli_");
    model_read(m, "cudaStreamSynchronize");
    m->no_grad = false;
}

static void evaluate_and_sample(struct model *m)       /* the next epoch's order, with WeightedRandomSampler */
{
    model_evaluate(m);
    draw(m, NULL, "multinomial");
}

static void what_else_is_drawn_leaves_an_evaluation(void **state)
{
    (void)state;
    static model_part *const ways[] = {evaluate_with_dropout, evaluate_and_sample};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct model m = model_new(HOST_BOUND);
        m.end = ways[i];
        struct judged j = model_judge(&m, 0);
        assert_non_null(strstr(assert_found(&j, "eval-share")->cause, "between training steps"));
        judged_release(&j);
    }
}

static void evaluate_once(struct model *m)
{
    if (m->step == m->steps - 1)
        model_evaluate(m);
}

/* Only what was read is an evaluation, and only its time can be won. */
static void one_evaluation_beside_a_reference_in_every_step(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.data = ask_reference;
    m.end = evaluate_once;
    struct judged j = model_judge(&m, 0);
    const struct finding *f = assert_found(&j, "eval-share");
    assert_non_null(strstr(f->evidence, "1 stretch of evaluation in 4 steps"));
    judged_release(&j);
}

static void nothing(struct model *m) { (void)m; }

static void inference_alone_is_no_evaluation_between_steps(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.no_grad = true;
    m.backward = nothing;
    struct judged j = model_judge(&m, 0);
    assert_not_found(&j, "eval-share");
    assert_not_found(&j, "no-clipping");
    judged_release(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evaluation_between_steps_costs_its_time),
        cmocka_unit_test(an_evaluation_may_record_gradients),
        cmocka_unit_test(what_else_records_for_nothing_is_part_of_the_step),
        cmocka_unit_test(few_ops_without_gradients_are_no_evaluation),
        cmocka_unit_test(a_frozen_network_is_no_evaluation),
        cmocka_unit_test(an_evaluation_is_read_somehow),
        cmocka_unit_test(a_mask_reads_nothing),
        cmocka_unit_test(a_rollout_is_no_evaluation),
        cmocka_unit_test(what_else_is_drawn_leaves_an_evaluation),
        cmocka_unit_test(one_evaluation_beside_a_reference_in_every_step),
        cmocka_unit_test(inference_alone_is_no_evaluation_between_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
