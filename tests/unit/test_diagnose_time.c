/* The time of a diagnosis grows with the trace and not with its square. */
#include "unit/trace_models.h"

#include <time.h>

#ifdef HONE_SANITIZED
enum { SOME = 20000, MANY = 20000, LONGEST_S = 10 };
#else
enum { SOME = 40000, MANY = 200000, LONGEST_S = 2 };    /* pairs of some take many seconds, of many minutes */
#endif

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Judges a trace of many ops and fails when that takes as long as looking at pairs of them would. */
static void assert_quick(struct traced *m, const char *what)
{
    const double from = seconds();
    struct judged j = trace_judge(m->trace, 0);
    const double took = seconds() - from;
    if (took > LONGEST_S)
        fail_msg("%s takes %.1f s", what, took);
    judged_release(&j);
}

static struct traced one_step(void)
{
    struct traced m = traced_new();
    traced_step_begin(&m, 1);
    return m;
}

static void add_ops(struct traced *m, const char *const *names, int n_names, int n)
{
    for (int k = 0; k < n; k++)
        traced_op(m, names[k % n_names], 1);
}

static void many_ops_one_behind_the_other(void **state)
{
    (void)state;
    static const char *const names[] = {
        "aten::softmax", "aten::softmax", "aten::softmax", "aten::softmax",     /* each line in a loop as long as the trace */
        "aten::bmm", "aten::softmax", "aten::bmm", "aten::select",
        "aten::linear", "aten::view", "aten::add", "aten::linear",
        "aten::ones", "aten::triu", "aten::view", "aten::ones",
        "aten::addcdiv_", "aten::zero_", "aten::norm", "aten::item",
    };
    for (int i = 0; i < 20; i += 4) {
        struct traced m = one_step();
        add_ops(&m, names + i, 4, SOME);
        traced_step_end(&m);
        assert_quick(&m, names[i + 1]);
    }
    struct traced m = one_step();
    add_ops(&m, names, 20, MANY);
    traced_step_end(&m);
    assert_quick(&m, "a trace of all kinds of ops");
}

static void many_launches_waits_and_copies(void **state)
{
    (void)state;
    struct traced m = one_step();
    for (int k = 0; k < SOME / 4; k++) {
        traced_begin(&m, EVENT_HOST_OP, "aten::to");
        traced_copy(&m, k % 2 ? "Memcpy HtoD (Pageable -> Device)" : "Memcpy DtoH (Device -> Pageable)", k % 3 ? 8 : 8192, 1);
        traced_wait(&m, "cudaStreamSynchronize");
        traced_end(&m);
        traced_run(&m, "aten::mm", 5, "gemm", 1);
    }
    traced_step_end(&m);
    assert_quick(&m, "a trace of copies");
}

static void many_waits_in_one_op(void **state)
{
    (void)state;
    struct traced m = one_step();
    traced_begin(&m, EVENT_HOST_OP, "my::loop");
    for (int k = 0; k < SOME; k++) {
        traced_launch(&m, "gemm", 1);
        traced_wait(&m, "cudaStreamSynchronize");
    }
    traced_end(&m);
    traced_step_end(&m);
    assert_quick(&m, "an op with many waits");
}

static void many_nodes(void **state)
{
    (void)state;
    struct traced m = one_step();
    for (int k = 0; k < SOME; k++)
        traced_get(&m, traced_op(&m, "aten::mm", 1))->link = k;
    traced_on_thread(&m, 2);
    for (int k = 0; k < SOME; k++) {
        traced_get(&m, traced_op(&m, "autograd::engine::evaluate_function: MmBackward0", 1))->link = SOME - k;
        traced_op(&m, "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 1);
    }
    traced_on_thread(&m, 1);
    traced_step_end(&m);
    assert_quick(&m, "a long backward pass");
}

/* Deeper than any program calls; the one-in-another of Python generators comes near. */
static void many_ops_inside_each_other(void **state)
{
    (void)state;
    enum { DEPTH = 5000 };
    struct traced m = traced_new();
    traced_step_at(&m, 1, 0, 3 * DEPTH);
    for (int k = 0; k < DEPTH; k++)
        traced_get(&m, traced_at(&m, EVENT_HOST_OP, "aten::add", k, 3 * DEPTH - 2 * k))->link = k;
    assert_quick(&m, "a deep nest");
}

static void many_streams(void **state)
{
    (void)state;
    struct traced m = one_step();
    for (int k = 0; k < SOME / 4; k++) {
        traced_on_stream(&m, k % 500);
        traced_idle(&m, 30);
        m.free_us = m.now_us + 40;
        traced_launch(&m, "gemm", 10);
    }
    traced_step_end(&m);
    assert_quick(&m, "many streams");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_ops_one_behind_the_other),
        cmocka_unit_test(many_launches_waits_and_copies),
        cmocka_unit_test(many_waits_in_one_op),
        cmocka_unit_test(many_nodes),
        cmocka_unit_test(many_ops_inside_each_other),
        cmocka_unit_test(many_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
