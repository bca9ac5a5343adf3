/* The time of a diagnosis grows with the trace and not with its square. */
#include "unit/trace_models.h"

#include <time.h>

/* Four times the events may take up to this many times as long; pairs of them take 16 times. */
static const double MOST = 7;

#ifdef HONE_SANITIZED
enum { SOME = 5000, TURNS = 1 };
#else
enum { SOME = 10000, TURNS = 2 };
#endif

typedef struct traced build_fn(int which, int n);

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of judging n of something. */
static double seconds_of(build_fn *build, int which, int n)
{
    struct traced m = build(which, n);
    const double from = seconds();
    struct judged j = trace_judge(m.trace, 0);
    const double took = seconds() - from;
    judged_release(&j);
    return took;
}

/* Judges a trace and one of four times as many events in turns, and fails when the time grows as looking at pairs of them would. */
static void assert_grows_with(build_fn *build, int which, int n, const char *what)
{
    double few = INFINITY, many = INFINITY;
    for (int i = 0; i < TURNS; i++) {
        few = fmin(few, seconds_of(build, which, n));
        many = fmin(many, seconds_of(build, which, 4 * n));
    }
    if (many > MOST * few)
        fail_msg("%s: %d take %.1f ms, four times as many %.1f", what, n, 1e3 * few, 1e3 * many);
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

enum { NAMES = 20, A_KIND = 4 };
static const char *const names[NAMES] = {
    "aten::softmax", "aten::softmax", "aten::softmax", "aten::softmax",     /* each line in a loop as long as the trace */
    "aten::bmm", "aten::softmax", "aten::bmm", "aten::select",
    "aten::linear", "aten::view", "aten::add", "aten::linear",
    "aten::ones", "aten::triu", "aten::view", "aten::ones",
    "aten::addcdiv_", "aten::zero_", "aten::norm", "aten::item",
};

static struct traced ops_of_a_kind(int first, int n)
{
    struct traced m = one_step();
    add_ops(&m, names + first, A_KIND, n);
    traced_step_end(&m);
    return m;
}

static struct traced ops_of_all_kinds(int which, int n)
{
    (void)which;
    struct traced m = one_step();
    add_ops(&m, names, NAMES, n);
    traced_step_end(&m);
    return m;
}

static void many_ops_one_behind_the_other(void **state)
{
    (void)state;
    for (int i = 0; i < NAMES; i += A_KIND)
        assert_grows_with(ops_of_a_kind, i, SOME, names[i + 1]);
    assert_grows_with(ops_of_all_kinds, 0, 2 * SOME, "ops of all kinds");
}

static struct traced copies(int which, int n)
{
    (void)which;
    struct traced m = one_step();
    for (int k = 0; k < n; k++) {
        traced_begin(&m, EVENT_HOST_OP, "aten::to");
        traced_copy(&m, k % 2 ? "Memcpy HtoD (Pageable -> Device)" : "Memcpy DtoH (Device -> Pageable)", k % 3 ? 8 : 8192, 1);
        traced_wait(&m, "cudaStreamSynchronize");
        traced_end(&m);
        traced_run(&m, "aten::mm", 5, "gemm", 1);
    }
    traced_step_end(&m);
    return m;
}

static void many_launches_waits_and_copies(void **state)
{
    (void)state;
    assert_grows_with(copies, 0, SOME / 4, "copies");
}

static struct traced waits_in_one_op(int which, int n)
{
    (void)which;
    struct traced m = one_step();
    traced_begin(&m, EVENT_HOST_OP, "my::loop");
    for (int k = 0; k < n; k++) {
        traced_launch(&m, "gemm", 1);
        traced_wait(&m, "cudaStreamSynchronize");
    }
    traced_end(&m);
    traced_step_end(&m);
    return m;
}

static void many_waits_in_one_op(void **state)
{
    (void)state;
    assert_grows_with(waits_in_one_op, 0, SOME, "waits in one op");
}

static struct traced nodes(int which, int n)
{
    (void)which;
    struct traced m = one_step();
    for (int k = 0; k < n; k++)
        traced_get(&m, traced_op(&m, "aten::mm", 1))->link = k;
    traced_on_thread(&m, 2);
    for (int k = 0; k < n; k++) {
        traced_get(&m, traced_op(&m, "autograd::engine::evaluate_function: MmBackward0", 1))->link = n - k;
        traced_op(&m, "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 1);
    }
    traced_on_thread(&m, 1);
    traced_step_end(&m);
    return m;
}

static void many_nodes(void **state)
{
    (void)state;
    assert_grows_with(nodes, 0, SOME, "a long backward pass");
}

static struct traced nest(int which, int depth)
{
    (void)which;
    struct traced m = traced_new();
    traced_step_at(&m, 1, 0, 3 * depth);
    for (int k = 0; k < depth; k++)
        traced_get(&m, traced_at(&m, EVENT_HOST_OP, "aten::add", k, 3 * depth - 2 * k))->link = k;
    return m;
}

/* Deeper than any program calls; the one-in-another of Python generators comes near. */
static void many_ops_inside_each_other(void **state)
{
    (void)state;
    assert_grows_with(nest, 0, SOME, "a deep nest");
}

static struct traced streams(int which, int n)
{
    (void)which;
    struct traced m = one_step();
    for (int k = 0; k < n; k++) {
        traced_on_stream(&m, k % 500);
        traced_idle(&m, 30);
        m.free_us = m.now_us + 40;
        traced_launch(&m, "gemm", 10);
    }
    traced_step_end(&m);
    return m;
}

static void many_streams(void **state)
{
    (void)state;
    assert_grows_with(streams, 0, SOME, "streams");
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
