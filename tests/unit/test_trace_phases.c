/* A step on a CPU by its phases: where its thread's time goes. test_trace_phases_gpu.c has the device's. */
#include "unit/trace_phases.h"

static void forward_and_backward(struct traced *m, int64_t number)
{
    for (int i = 0; i < 3; i++, traced_idle(m, 10))
        op_of(m, "aten::linear", 100, number + i);
    for (int i = 2; i >= 0; i--, traced_idle(m, 5))
        node(m, 200, number + i);
}

static void update(struct traced *m, double us)
{
    traced_begin(m, EVENT_ANNOTATION, "Optimizer.step#AdamW.step");
    traced_idle(m, us / 4);
    traced_op(m, "aten::addcdiv_", us / 2);
    traced_idle(m, us / 4);
    traced_end(m);
}

static void load(struct traced *m, double us)
{
    traced_begin(m, EVENT_ANNOTATION, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    traced_idle(m, us / 2);
    traced_op(m, "aten::stack", us / 2);
    traced_end(m);
}

/* What leads to a phase is of it; a long stretch between two, and what lies between steps, is not. */
static void cpu_step(struct traced *m, int64_t number)
{
    load(m, 100);                           /* data 100 */
    traced_idle(m, 10);                     /* forward 10 + 320, backward 10 + 610 */
    forward_and_backward(m, number);
    traced_idle(m, 695);                    /* with the 5 before it: other 700 */
    traced_op(m, "aten::linalg_vector_norm", 30);   /* optimizer: 30 + 5 + 80 */
    traced_idle(m, 5);
    update(m, 80);
    traced_op(m, "aten::item", 15);         /* other 15 + 25 */
    traced_idle(m, 25);
}

static void a_step_on_a_cpu_is_its_thread(void **state)
{
    (void)state;
    struct traced m = traced_new();
    struct judged j = judged_steps(&m, cpu_step);
    assert_phases(&j.d, (struct expected){.data = 100, .forward = 330, .backward = 620, .optimizer = 115, .other = 740});
    assert_near(phase(&j.d, "forward")->us, 330, 1, "as long without a profiler that costs nothing");
    assert_near(phase(&j.d, "forward")->busy_us, 0, 0, "there is no device");
    judged_release(&j);
}

static void accumulating_step(struct traced *m, int64_t number)
{
    forward_and_backward(m, number);
    forward_and_backward(m, number + 10);
    update(m, 80);
}

static void passes_of_an_accumulated_gradient_add_up(void **state)
{
    (void)state;
    struct traced m = traced_new();
    struct judged j = judged_steps(&m, accumulating_step);
    assert_phases(&j.d, (struct expected){.forward = 2 * 320 + 5, .backward = 2 * 620, .optimizer = 85});
    judged_release(&j);
}

static void hooked_step(struct traced *m, int64_t number)
{
    op_of(m, "aten::linear", 100, number);
    const int64_t begun = traced_begin(m, EVENT_HOST_OP, "autograd::engine::evaluate_function: AddmmBackward0");
    traced_get(m, begun)->link = number;
    traced_idle(m, 50);
    update(m, 80);
    traced_end(m);
    traced_op(m, "c10d::hook", 20);         /* between two nodes, and not of the model */
    node(m, 60, number);
}

static void an_optimizer_in_a_hook_is_no_backward(void **state)
{
    (void)state;
    struct traced m = traced_new();
    struct judged j = judged_steps(&m, hooked_step);
    assert_phases(&j.d, (struct expected){.forward = 100, .backward = 50 + 20 + 60, .optimizer = 80});
    judged_release(&j);
}

/* Lightning's, and what LBFGS needs: the step of the optimizer calls the model. */
static void closure_step(struct traced *m, int64_t number)
{
    traced_begin(m, EVENT_ANNOTATION, "Optimizer.step#AdamW.step");
    traced_begin(m, EVENT_ANNOTATION, "Optimizer.zero_grad#AdamW.zero_grad");
    traced_op(m, "aten::zero_", 20);
    traced_end(m);
    forward_and_backward(m, number);
    traced_op(m, "aten::addcdiv_", 80);
    traced_end(m);
}

static void an_optimizer_with_a_closure_is_not_all_of_the_step(void **state)
{
    (void)state;
    struct traced m = traced_new();
    struct judged j = judged_steps(&m, closure_step);
    assert_phases(&j.d, (struct expected){.forward = 320, .backward = 620, .optimizer = 20 + 85});
    judged_release(&j);
}

/* A product between the last node and the optimizer leads to no backward pass. */
static void conditioned_step(struct traced *m, int64_t number)
{
    op_of(m, "aten::linear", 100, number);
    node(m, 200, number);
    traced_op(m, "aten::mm", 60);
    traced_op(m, "aten::mul", 10);
    update(m, 80);
}

static void gradients_that_are_multiplied_are_of_the_optimizer(void **state)
{
    (void)state;
    struct traced m = traced_new();
    struct judged j = judged_steps(&m, conditioned_step);
    assert_phases(&j.d, (struct expected){.forward = 100, .backward = 200, .optimizer = 150});
    judged_release(&j);
}

static void prepared_step(struct traced *m, int64_t number)
{
    traced_op(m, "aten::randint", 40);      /* what comes before the model makes its batch */
    traced_op(m, "aten::stack", 60);
    op_of(m, "aten::linear", 100, number);
    traced_op(m, "aten::ones_like", 10);
    node(m, 200, number);
    traced_op(m, "aten::sub_", 30);         /* an update by hand, without a range */
}

static void what_comes_before_the_model_is_data(void **state)
{
    (void)state;
    struct traced m = traced_new();
    struct judged j = judged_steps(&m, prepared_step);
    assert_phases(&j.d, (struct expected){.data = 100, .forward = 110, .backward = 200, .optimizer = 30});
    judged_release(&j);
}

static void named_step(struct traced *m, int64_t number)
{
    traced_begin(m, EVENT_ANNOTATION, "## forward ##");
    traced_idle(m, 900);
    op_of(m, "aten::linear", 100, number);
    traced_end(m);
    traced_begin(m, EVENT_ANNOTATION, "Backward");
    traced_idle(m, 900);
    node(m, 200, number);
    traced_end(m);
    traced_begin(m, EVENT_ANNOTATION, "forward_looking");
    traced_idle(m, 900);
    traced_end(m);
    update(m, 80);
}

static void ranges_named_after_phases_are_believed(void **state)
{
    (void)state;
    struct traced m = traced_new();
    struct judged j = judged_steps(&m, named_step);
    assert_phases(&j.d, (struct expected){.forward = 1000, .backward = 1100, .other = 900, .optimizer = 80});
    judged_release(&j);
}

static void infer(struct traced *m, int64_t number)
{
    (void)number;
    traced_op(m, "aten::stack", 50);
    traced_op(m, "aten::linear", 300);
    traced_idle(m, 10);
    traced_op(m, "aten::linear", 300);
    traced_op(m, "aten::argmax", 20);
    traced_op(m, "aten::item", 30);
    traced_idle(m, 60);
}

static void inference_has_no_backward(void **state)
{
    (void)state;
    struct traced m = traced_new();
    struct judged j = judged_steps(&m, infer);
    assert_phases(&j.d, (struct expected){.data = 50, .forward = 630, .other = 90});
    judged_release(&j);
}

/* The profiler's cost is where its events are: what is long for itself is as long without it. */
static void a_wait_for_data_is_not_the_profilers(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&m, i);
        traced_begin(&m, EVENT_ANNOTATION, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
        traced_idle(&m, 500);
        traced_end(&m);
        for (int k = 0; k < 100; k++)
            op_of(&m, "aten::linear", 10, 1000 * i + k);
        for (int k = 99; k >= 0; k--)
            node(&m, 10, 1000 * i + k);
        update(&m, 20);
        traced_step_end(&m);
    }
    struct judged j = trace_judge(m.trace, 0);
    const struct trace_phase *data = phase(&j.d, "data"), *forward = phase(&j.d, "forward");
    assert_sums(&j.d);
    assert_true(j.d.corrected.step_us < 0.9 * j.d.corrected.recorded_us);
    assert_true(data->us / data->recorded_us > 1.2 * forward->us / forward->recorded_us);
    judged_release(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_on_a_cpu_is_its_thread),
        cmocka_unit_test(passes_of_an_accumulated_gradient_add_up),
        cmocka_unit_test(an_optimizer_in_a_hook_is_no_backward),
        cmocka_unit_test(an_optimizer_with_a_closure_is_not_all_of_the_step),
        cmocka_unit_test(gradients_that_are_multiplied_are_of_the_optimizer),
        cmocka_unit_test(what_comes_before_the_model_is_data),
        cmocka_unit_test(ranges_named_after_phases_are_believed),
        cmocka_unit_test(inference_has_no_backward),
        cmocka_unit_test(a_wait_for_data_is_not_the_profilers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
