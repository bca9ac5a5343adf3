/* What is replayed of a trace, which steps and threads, and what of the host's time is the profiler's. */
#include "unit/replayed.h"

/* ---- which steps and threads ---- */

static void a_loader_beside_the_step_is_left_out(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_on_thread(&m, 1);
        traced_step_begin(&m, i);
        traced_run(&m, "aten::mm", 100, "gemm", 10);
        traced_on_thread(&m, 2);            /* backward, while the first thread waits */
        const int64_t node = traced_run(&m, "autograd::engine::evaluate_function: MmBackward0", 100, "gemm", 10);
        traced_get(&m, node)->link = i;
        traced_on_thread(&m, 3);            /* a worker, at the same time */
        traced_at(&m, EVENT_HOST_OP, "aten::stack", 200.0 * i + 20, 150);
        traced_on_thread(&m, 1);
        traced_step_end(&m);
    }
    struct played p = play(m.trace);
    start(&p);
    assert_near(replay_run(&p.replay, NULL).host_ns, 200e3, near_ns, "host");
    assert_int_equal(p.replay.n_ops, 2 * STEPS);
    assert_near(p.replay.events, 4, 1e-9, "events per step");
    release(&p);
}

static void of_a_long_trace_some_steps_from_the_middle_are_taken(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < 10; i++) {
        traced_step_begin(&m, i);
        for (int k = 0; k < 30000; k++)
            traced_op(&m, "aten::add", 1);
        traced_step_end(&m);
    }
    struct played p = play(m.trace);
    start(&p);
    assert_near(p.replay.n_steps, 3, 0, "steps");
    assert_int_equal(p.replay.first_step, 4);
    assert_near(step_us(&p, NULL), 30000, 0.01, "step");
    release(&p);
}

static void of_one_long_step_the_middle_is_taken(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int k = 0; k < 400000; k++)
        traced_op(&m, "aten::add", 1);
    struct played p = play(m.trace);
    start(&p);
    assert_near(p.replay.n_steps, 0.25, 1e-3, "part of the step");
    assert_true(p.replay.n_items < 210000);
    assert_near(step_us(&p, NULL), 400000, 40, "step");     /* as long as the whole */
    release(&p);
}

static void without_marks_the_step_begins_with_the_first_launch(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int k = 0; k < 5; k++)
        traced_run(&m, "aten::mm", 100, "gemm", 10);
    struct played p = play(m.trace);
    start(&p);
    assert_near(p.replay.n_steps, 1, 0, "steps");
    assert_near(step_us(&p, NULL), 404, 0.01, "step");      /* the first launch, at the end of its op, and four ops */
    release(&p);
}

static void a_trace_of_the_host_alone(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&m, i);
        traced_op(&m, "aten::mm", 100);
        traced_op(&m, "aten::add", 50);
        traced_step_end(&m);
    }
    struct played p = play(m.trace);
    start(&p);
    const struct replay_result r = replay_run(&p.replay, NULL);
    assert_near(r.step_ns, 150e3, near_ns, "step");
    assert_near(r.device_ns, 0, 0, "device");
    assert_near(step_with(&p, "aten::add", 0.5), 125, 0.2, "with less of one op");
    release(&p);
}

static void a_trace_of_the_device_alone(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int k = 0; k < 10; k++)
        traced_at(&m, EVENT_KERNEL, k % 2 ? "a" : "b", 100 * k, 80);
    struct played p = play(m.trace);
    start(&p);
    const struct replay_result r = replay_run(&p.replay, NULL);
    assert_near(r.step_ns, 980e3, 2, "step");
    assert_near(r.device_ns, 800e3, near_ns, "device");
    assert_near(r.host_ns, 0, 0, "host");
    assert_near(step_with(&p, "a", 0.5), 780, 0.01, "with half of some kernels");
    release(&p);
}

/* ---- the profiler's cost ---- */

static void a_known_step_is_met_when_the_host_is_the_bound(void **state)
{
    (void)state;
    static const double given[] = {150e3, 300e3, 450e3, 500e3, 800e3};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        struct played p = plain(5, 100, 10);
        start(&p);
        struct replay_cost low, high;
        replay_calibrate(&p.replay, given[i], &low, &high);
        assert_near(replay_run(&p.replay, NULL).step_ns, given[i], 1e-3 * given[i], "step");
        assert_memory_equal(&low, &high, sizeof low);
        assert_memory_equal(&low, &p.replay.cost, sizeof low);
        release(&p);
    }
}

static void a_step_that_the_device_fills_says_nothing_of_the_host(void **state)
{
    (void)state;
    struct played p = plain(50, 10, 15);
    start(&p);
    struct replay_cost low, high;
    replay_calibrate(&p.replay, 0, &low, &high);
    const struct replay_cost usual = p.replay.cost;
    const double host_ns = replay_run(&p.replay, NULL).host_ns;
    assert_true(host_ns < 0.8 * 500e3);                     /* some of it is the profiler's */
    assert_true(low.left > usual.left && usual.left > high.left);
    replay_calibrate(&p.replay, 760e3, &low, &high);
    assert_memory_equal(&p.replay.cost, &usual, sizeof usual);
    assert_near(replay_run(&p.replay, NULL).host_ns, host_ns, near_ns, "host");
    assert_near(replay_run(&p.replay, NULL).step_ns, 750e3, near_ns, "step");
    release(&p);
}

/* Half of each step is spent waiting for data. */
static struct played stalled(const char *loader)
{
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&m, i);
        traced_begin(&m, EVENT_ANNOTATION, loader);
        traced_idle(&m, 500);
        traced_end(&m);
        for (int k = 0; k < 50; k++)
            traced_run(&m, "aten::mm", 10, "gemm", 2);
        traced_step_end(&m);
    }
    return play(m.trace);
}

/* The profiler slows the step, not the workers of a loader. */
static void a_step_that_waits_for_workers_waits_longer_without_the_profiler(void **state)
{
    (void)state;
    struct played p = stalled("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
    struct replay_cost low, high;
    start(&p);
    replay_calibrate(&p.replay, 0, &low, &high);
    assert_near(replay_run(&p.replay, NULL).step_ns, 1000e3, 1e3, "step");
    assert_true(p.replay.cost.loader > 1.2 && low.loader < p.replay.cost.loader && p.replay.cost.loader < high.loader);
    replay_calibrate(&p.replay, 900e3, &low, &high);        /* known, and shorter than recorded */
    assert_near(replay_run(&p.replay, NULL).step_ns, 900e3, 1e3, "step");
    assert_true(p.replay.cost.loader > 1.1);
    release(&p);
    struct played q = stalled("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    start(&q);
    replay_calibrate(&q.replay, 0, &low, &high);
    assert_near(q.replay.cost.loader, 1, 0, "the wait");
    release(&q);
}

/* On a machine that was slower while it recorded ops of the loader were so, too; a long stretch in it waits for something, as far as a trace can tell. */
static void ops_of_the_loader_are_as_slow_as_others(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&m, i);
        traced_begin(&m, EVENT_ANNOTATION, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
        traced_idle(&m, 100);
        for (int k = 0; k < 50; k++) {
            traced_op(&m, "aten::select", 5);
            traced_idle(&m, 5);
        }
        traced_end(&m);
        for (int k = 0; k < 20; k++) {
            traced_run(&m, "aten::mm", 5, "gemm", 2);
            traced_idle(&m, 5);
        }
        traced_step_end(&m);
    }
    struct played p = play(m.trace);
    struct replay_cost low, high;
    start(&p);
    replay_calibrate(&p.replay, 200e3, &low, &high);
    assert_near(replay_run(&p.replay, NULL).step_ns, 200e3, 1e3, "step");
    double loader_ns = 0;
    for (int k = 0; k < p.replay.n_items; k++)
        loader_ns += p.replay.items[k].loader ? replay_own_ns(&p.replay, &p.replay.items[k]) / p.replay.n_steps : 0;
    assert_near(loader_ns, 155e3, 10e3, "the loader: 90 of its wait, and half of what is left");
    release(&p);
}

/* The profiler takes a part of short stretches and no more than some µs of a long one. */
static void long_stretches_of_the_host_lose_little(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&m, i);
        traced_op(&m, "aten::sort", 20000);
        traced_idle(&m, 10000);
        for (int k = 0; k < 10; k++)
            traced_op(&m, "aten::add", 4);
        traced_step_end(&m);
    }
    struct played p = play(m.trace);
    start(&p);
    struct replay_cost low, high;
    replay_calibrate(&p.replay, 0, &low, &high);
    const double us = replay_run(&p.replay, NULL).host_ns / 1e3;
    assert_true(us < 30040 - 15 && us > 30040 - 60);
    assert_true(low.scale >= 1);
    p.replay.cost = low;
    assert_true(replay_run(&p.replay, NULL).host_ns / 1e3 > us);
    release(&p);
}

static void python_frames_have_a_cost_too(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&m, i);
        traced_op(&m, "A", 10);
        for (int k = 0; k < 100; k++)
            traced_at(&m, EVENT_PYTHON, "train.py(1): f", m.now_us + 10 * k, 5);
        traced_idle(&m, 1000);
        traced_op(&m, "B", 10);
        traced_step_end(&m);
    }
    struct played p = play(m.trace);
    start(&p);
    assert_near(p.replay.events, 102, 1e-9, "events per step");
    p.replay.cost.left = 0.5;
    assert_near(replay_run(&p.replay, NULL).host_ns, 800e3, 3e3, "host");  /* 2 µs of each frame, 10 of each op */
    release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loader_beside_the_step_is_left_out),
        cmocka_unit_test(of_a_long_trace_some_steps_from_the_middle_are_taken),
        cmocka_unit_test(of_one_long_step_the_middle_is_taken),
        cmocka_unit_test(without_marks_the_step_begins_with_the_first_launch),
        cmocka_unit_test(a_trace_of_the_host_alone),
        cmocka_unit_test(a_trace_of_the_device_alone),
        cmocka_unit_test(a_known_step_is_met_when_the_host_is_the_bound),
        cmocka_unit_test(a_step_that_the_device_fills_says_nothing_of_the_host),
        cmocka_unit_test(a_step_that_waits_for_workers_waits_longer_without_the_profiler),
        cmocka_unit_test(ops_of_the_loader_are_as_slow_as_others),
        cmocka_unit_test(long_stretches_of_the_host_lose_little),
        cmocka_unit_test(python_frames_have_a_cost_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
