/* Two traces side by side: true steps, ops by device time, kernels of different devices. */
#include "unit/trace_models.h"

struct pair {
    struct judged a, b;
    struct trace_diff d;
};

static struct pair pair_judge(struct model *a, struct model *b)
{
    struct pair p = {.a = model_judge(a, 0), .b = model_judge(b, 0)};
    struct error err;
    assert_ok(diagnosis_diff(&p.d, &p.a.d, &p.b.d, &err), err);
    return p;
}

static void pair_release(struct pair *p)
{
    trace_diff_release(&p->d);
    judged_release(&p->a);
    judged_release(&p->b);
}

static const struct diff_row *row_of(const struct diff_row *rows, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    fail_msg("there is no row '%s'", name);
    return NULL;
}

static const struct diff_number *number_of(const struct trace_diff *d, const char *name)
{
    for (int i = 0; i < DIFF_NUMBERS; i++)
        if (!strcmp(d->numbers[i].name, name))
            return &d->numbers[i];
    fail_msg("there is no number '%s'", name);
    return NULL;
}

static void think(struct model *m) { traced_idle(&m->t, 3000); }

static void steps_are_compared_without_the_profiler(void **state)
{
    (void)state;
    struct model a = model_new(HOST_BOUND), b = model_new(HOST_BOUND);
    a.end = think;
    struct pair p = pair_judge(&a, &b);
    assert_near(p.d.a_step_us, p.a.d.corrected.step_us, 1e-9, "A");
    assert_near(p.d.b_step_us, p.b.d.corrected.step_us, 1e-9, "B");
    assert_near(p.d.a_recorded_us, p.a.d.corrected.recorded_us, 1e-9, "A as recorded");
    assert_near(p.d.host_factor, 1, 0, "equal ops take equally long");
    assert_true(p.d.a_step_us / p.d.b_step_us > p.d.a_recorded_us / p.d.b_recorded_us);
    pair_release(&p);
}

static void a_host_that_was_slower_is_taken_out(void **state)
{
    (void)state;
    struct model a = model_new(HOST_BOUND), b = model_new(HOST_BOUND), far = model_new(HOST_BOUND);
    b.host_us *= 1.25;
    far.host_us *= 3;
    struct pair p = pair_judge(&a, &b);
    assert_true(p.d.host_factor > 1.15 && p.d.host_factor < 1.3);
    assert_near(p.d.b_step_us, p.d.a_step_us, 0.05 * p.d.a_step_us, "B at equal speed");
    pair_release(&p);
    struct model again = model_new(HOST_BOUND);
    struct pair q = pair_judge(&again, &far);
    assert_near(q.d.host_factor, 1, 0, "so much is no noise");
    pair_release(&q);
}

static void a_given_step_is_not_compared_with_an_estimated_one(void **state)
{
    (void)state;
    struct model a = model_new(HOST_BOUND), b = model_new(HOST_BOUND);
    struct pair p = {.a = model_judge(&a, 0.7 * model_step_us(&a)), .b = model_judge(&b, 0)};
    struct error err;
    assert_true(p.a.d.corrected.given);
    assert_ok(diagnosis_diff(&p.d, &p.a.d, &p.b.d, &err), err);
    assert_true(p.d.as_recorded);
    assert_near(p.d.a_step_us, p.d.b_step_us, 1e-9, "the same trace");
    assert_near(p.d.a_step_us, p.a.d.corrected.recorded_us, 1e-9, "as recorded");
    pair_release(&p);
}

static void ops_are_compared_by_their_time_on_the_device(void **state)
{
    (void)state;
    struct model a = model_new(DEVICE_BOUND), b = model_new(DEVICE_BOUND);
    b.kernel_us = 50;
    struct pair p = pair_judge(&a, &b);
    const struct diff_row *r = row_of(p.d.ops, p.d.n_ops, "aten::addmm");
    assert_near(r->a_us, 13 * 100, 0.1, "A");               /* four per layer and the head */
    assert_near(r->b_us, 13 * 50, 0.1, "B");
    assert_true(p.d.n_host_ops > 0);
    assert_true(row_of(p.d.host_ops, p.d.n_host_ops, "aten::addmm")->a_us > 0);
    double kernels = 0;
    for (int i = 0; i < p.d.n_kernels; i++)
        kernels += p.d.kernels[i].a_count;
    assert_near(number_of(&p.d, "kernels")->a, kernels, 1e-6, "kernels");
    assert_near(number_of(&p.d, "calls that start work")->a, p.a.d.launches.per_step, 1e-9, "calls");
    assert_true(number_of(&p.d, "GPU busy, as recorded")->a > number_of(&p.d, "GPU busy, as recorded")->b);
    assert_true(isnan(number_of(&p.d, "memory at its peak")->a));
    pair_release(&p);
}

static void use_card(struct trace *t, const char *name)
{
    t->devices = xrealloc(NULL, sizeof *t->devices);
    t->n_devices = 1;
    t->devices[0] = (struct trace_device){.name = trace_name(t, name), .major = 9, .multiprocessors = 100};
}

static void kernels_of_different_devices_are_matched_by_op(void **state)
{
    (void)state;
    struct model a = model_new(DEVICE_BOUND), b = model_new(DEVICE_BOUND);
    model_train(&a);
    model_train(&b);
    struct trace *t = b.t.trace;
    for (int64_t i = 0; i < t->n; i++)
        if (t->events[i].kind == EVENT_KERNEL && !strcmp(t->names[t->events[i].name], "nvjet_gemm"))
            t->events[i].name = trace_name(t, "Cijk_Alik_Bljk_BBS");
    use_card(a.t.trace, "NVIDIA H200");
    use_card(t, "AMD Instinct MI300X");
    struct pair p = pair_judge(&a, &b);
    assert_true(p.d.kernels_by_op);
    const struct diff_row *r = row_of(p.d.kernels, p.d.n_kernels, "aten::addmm, gemm");
    assert_near(r->a_us, r->b_us, 0.1, "the same work");
    assert_true(r->a_us > 0 && r->a_count == r->b_count);
    pair_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_compared_without_the_profiler),
        cmocka_unit_test(a_host_that_was_slower_is_taken_out),
        cmocka_unit_test(a_given_step_is_not_compared_with_an_estimated_one),
        cmocka_unit_test(ops_are_compared_by_their_time_on_the_device),
        cmocka_unit_test(kernels_of_different_devices_are_matched_by_op),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
