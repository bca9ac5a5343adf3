/* The rule on traces about copies to the host, with the gain that the planted time promises, and on near misses that must stay quiet. */
#include "unit/trace_models.h"

static void copy_activation(struct model *m)
{
    model_begin(m, "to", MODEL_X);
    model_begin(m, "_to_copy", MODEL_X);
    model_begin(m, "copy_", MODEL_X);
    traced_copy(&m->t, "Memcpy DtoH (Device -> Pageable)", 8 << 20, 2000);
    traced_wait(&m->t, "cudaStreamSynchronize");
    model_end(m);
    model_end(m);
    model_end(m);
}

/* Parameters one by one: matrices, and biases that are smaller than what is read for a number. */
static void copy_parameters(struct model *m)
{
    for (int i = 0; i < 24; i++) {
        model_view(m, "detach", i % 2 ? "[[512]]" : "[[512, 512]]");
        model_begin(m, "to", i % 2 ? "[[512]]" : "[[512, 512]]");
        traced_idle(&m->t, 10);
        traced_copy(&m->t, "Memcpy DtoH (Device -> Pageable)", i % 2 ? 2048 : 1 << 20, i % 2 ? 2 : 100);
        traced_wait(&m->t, "cudaStreamSynchronize");
        model_end(m);
    }
}

static void a_loop_over_parameters_is_one_fault(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.end = copy_parameters;
    struct judged j = model_judge(&m, model_step_us(&m));
    const struct finding *f = assert_gain(&j, "device-to-host-copy", model_gain(&m), 0.05);
    assert_non_null(strstr(f->evidence, "copies per step: 24"));
    assert_not_found(&j, "host-sync");
    judged_release(&j);
}

static void copy_without_waiting(struct model *m)
{
    model_begin(m, "copy_", MODEL_X);
    traced_copy(&m->t, "Memcpy DtoH (Device -> Pinned)", 8 << 20, 200);
    model_end(m);
}

static void a_large_copy_to_the_host_costs_its_wait(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.after_forward = copy_activation;
    struct judged j = model_judge(&m, model_step_us(&m));
    const struct finding *f = assert_gain(&j, "device-to-host-copy", model_gain(&m), 0.1);
    assert_non_null(strstr(f->evidence, "8.39 MB"));
    assert_not_found(&j, "host-sync");
    judged_release(&j);
}

static void a_copy_to_pinned_memory_does_not_wait(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.after_forward = copy_without_waiting;
    struct judged j = model_judge(&m, 0);
    assert_not_found(&j, "device-to-host-copy");
    assert_not_found(&j, "host-sync");
    judged_release(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_copy_to_the_host_costs_its_wait),
        cmocka_unit_test(a_loop_over_parameters_is_one_fault),
        cmocka_unit_test(a_copy_to_pinned_memory_does_not_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
