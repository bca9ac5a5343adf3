/* Traces without marks in which several networks are trained in turns: a step is a round of their updates. */
#include "unit/trace_models.h"

static void op(struct traced *t, const char *name, double us)
{
    traced_idle(t, 2);
    traced_inputs(t, traced_op(t, name, us), "[[2048, 256], [256, 256]]", NULL);
}

static void update(struct traced *t, int gradients)
{
    for (int k = 0; k < 5; k++)
        op(t, "aten::mm", 300);
    for (int k = 0; k < gradients; k++) {
        traced_begin(t, EVENT_HOST_OP, "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad");
        op(t, "aten::mm", 100);
        traced_end(t);
    }
    traced_begin(t, EVENT_ANNOTATION, "Optimizer.step#Adam.step");
    op(t, "aten::_fused_adam_", 50);
    traced_end(t);
}

/* (n) gradients of each update; how many steps they are. */
static int steps_of(const int *gradients, int n)
{
    struct traced t = traced_new();
    for (int i = 0; i < n; i++)
        update(&t, gradients[i]);
    struct judged j = trace_judge(t.trace, 0);
    const int steps = j.d.n_steps;
    assert_string_equal(j.d.steps_by, "Optimizer.step");
    judged_release(&j);
    return steps;
}

static void a_round_is_a_step(void **state)
{
    (void)state;
    static const int two[] = {4, 10, 4, 10, 4, 10, 4, 10, 4, 10, 4, 10}, four[] = {4, 4, 4, 10, 4, 4, 4, 10, 4, 4, 4, 10, 4, 4, 4, 10};
    assert_int_equal(steps_of(two, 12), 5);         /* the first ends where they begin to be told */
    assert_int_equal(steps_of(four, 16), 3);
}

static void other_updates_are_steps_of_their_own(void **state)
{
    (void)state;
    static const int one[] = {6, 6, 6, 6, 6, 6}, some[] = {6, 6, 4, 6, 4, 4, 6, 6, 4}, once[] = {6, 6, 6, 4, 6, 6};
    assert_int_equal(steps_of(one, 6), 5);
    assert_int_equal(steps_of(some, 9), 8);         /* in no order */
    assert_int_equal(steps_of(once, 6), 5);
    assert_int_equal(steps_of((const int[]){4, 10, 4}, 3), 2);     /* too few to tell */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_is_a_step),
        cmocka_unit_test(other_updates_are_steps_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
