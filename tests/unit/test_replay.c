/* The what-if replay on graphs small enough to be worked out by hand: host and device bounds, waits, streams, edits. */
#include "unit/replayed.h"

/* ---- bounds ---- */

static void a_step_of_much_host_work_takes_the_hosts_time(void **state)
{
    (void)state;
    struct played p = plain(5, 100, 10);
    start(&p);
    const struct replay_result r = replay_run(&p.replay, NULL);
    assert_near(r.step_ns, 500e3, near_ns, "step");
    assert_near(r.host_ns, 500e3, near_ns, "host");
    assert_near(r.device_ns, 50e3, near_ns, "device");
    assert_near(r.wait_ns, 0, near_ns, "waiting");
    assert_near(step_with(&p, "gemm", 0.5), 500, 0.01, "step with shorter kernels");
    assert_near(step_with(&p, "gemm", 0), 500, 0.01, "step without kernels");
    struct edit e;
    edit_init(&e, &p.view);
    e.host_factor = 0.5;
    assert_near(step_us(&p, &e), 250, 0.01, "half of the host's work");
    e.host_factor = 0.01;
    assert_near(step_us(&p, &e), 50, 0.01, "until the device is the bound");
    edit_release(&e);
    release(&p);
}

static void a_step_of_much_device_work_takes_the_devices_time(void **state)
{
    (void)state;
    struct played p = plain(5, 20, 100);
    start(&p);
    const struct replay_result r = replay_run(&p.replay, NULL);
    assert_near(r.step_ns, 500e3, near_ns, "step");
    assert_near(r.host_ns, 100e3, near_ns, "host");
    assert_near(r.device_ns, 500e3, near_ns, "device");
    assert_near(step_with(&p, "aten::mm", 0.5), 500, 0.01, "step with less host work");
    assert_near(step_with(&p, "gemm", 0.5), 250, 0.01, "step with kernels of half the time");
    assert_near(step_with(&p, "gemm", 0.1), 100, 0.01, "until the host is the bound");
    struct edit e;
    edit_init(&e, &p.view);
    e.added_ns = 450e3;
    assert_near(step_us(&p, &e), 550, 0.01, "with host work that the fix adds");
    edit_release(&e);
    release(&p);
}

/* ---- waits ---- */

/* Host: A, wait, B; A and B launch at their end. */
static struct played with_wait(double a_us, double b_us, const char *wait)
{
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&m, i);
        traced_run(&m, "A", 50, "a", a_us);
        traced_wait(&m, wait);
        if (b_us > 0)
            traced_run(&m, "B", 50, "b", b_us);
        else
            traced_op(&m, "B", 50);
        traced_step_end(&m);
    }
    return play(m.trace);
}

static void a_wait_drains_the_queue(void **state)
{
    (void)state;
    struct played p = with_wait(100, 0, "cudaStreamSynchronize");
    start(&p);
    const struct replay_result r = replay_run(&p.replay, NULL);
    assert_near(r.step_ns, 202e3, near_ns, "step");         /* A, the way to the device, a, B */
    assert_near(r.wait_ns, 102e3, near_ns, "waiting");
    assert_near(r.host_ns, 100e3, near_ns, "host");
    release(&p);
}

static void dropping_a_wait_wins_what_the_device_could_do_meanwhile(void **state)
{
    (void)state;
    struct played p = with_wait(100, 100, "hipStreamSynchronize");
    start(&p);
    /* from the wait's end: B 50, the way 2, b until 152; a behind it until 252 */
    assert_near(step_us(&p, NULL), 252, 0.01, "step with the wait");
    assert_near(step_with(&p, "hipStreamSynchronize", 0), 200, 0.01, "without: the device is never idle");
    release(&p);
}

static void dropping_a_wait_of_a_step_bound_by_the_host_wins_nothing(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&m, i);
        traced_run(&m, "A", 50, "a", 10);
        traced_op(&m, "B", 50);
        traced_wait(&m, "cudaEventSynchronize");            /* the device was done long ago: 2 µs of the call itself */
        traced_step_end(&m);
    }
    struct played p = play(m.trace);
    start(&p);
    assert_near(step_us(&p, NULL), 102, 0.01, "step with the wait");
    assert_near(step_with(&p, "cudaEventSynchronize", 0), 100, 0.01, "step without");
    release(&p);
}

static void a_wait_that_is_kept_in_part_still_waits(void **state)
{
    (void)state;
    struct played p = with_wait(100, 100, "cudaStreamSynchronize");
    start(&p);
    assert_near(step_with(&p, "cudaStreamSynchronize", 0.5), 252, 0.01, "step");
    release(&p);
}

/* One op that copies at its end, and a host op behind it. */
static struct played copying(const char *call, const char *copy)
{
    struct traced m = traced_new();
    m.copy_call = call;
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&m, i);
        traced_copy(&m, copy, 1 << 20, 100);
        traced_op(&m, "B", 200);
        traced_step_end(&m);
    }
    return play(m.trace);
}

static void copies_block_where_they_must(void **state)
{
    (void)state;
    static const struct { const char *call, *copy; bool blocks; } cases[] = {
        {"cudaMemcpyAsync", "Memcpy DtoH (Device -> Pageable)", true},
        {"hipMemcpyAsync", "Memcpy DtoH (Device -> Pageable)", true},
        {"cudaMemcpyAsync", "Memcpy DtoH (Device -> Pinned)", false},
        {"cudaMemcpyAsync", "Memcpy HtoD (Pinned -> Device)", false},
        {"cudaMemcpyAsync", "Memcpy DtoD (Device -> Device)", false},
        {"cudaMemcpy", "Memcpy HtoD (Pageable -> Device)", true},
        {"hipMemcpyWithStream", "Memcpy HtoD (Host -> Device)", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct played p = copying(cases[i].call, cases[i].copy);
        start(&p);
        const struct replay_result r = replay_run(&p.replay, NULL);
        if ((r.wait_ns > 100e3) != cases[i].blocks)
            fail_msg("%s of '%s' waits %.0f ns", cases[i].call, cases[i].copy, r.wait_ns);
        assert_near(r.step_ns, cases[i].blocks ? 302e3 : 204e3, 2000, cases[i].copy);
        release(&p);
    }
}

static void a_wait_for_the_device_waits_for_all_streams(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_at(&m, i, 400 * i, 400);
        traced_on_stream(&m, 7);
        traced_work_at(&m, "cudaLaunchKernel", 400 * i, 10, EVENT_KERNEL, "long", 400 * i + 12, 300);
        traced_on_stream(&m, 20);
        traced_work_at(&m, "cudaLaunchKernel", 400 * i + 10, 10, EVENT_KERNEL, "short", 400 * i + 22, 10);
        traced_at(&m, EVENT_RUNTIME, "cudaDeviceSynchronize", 400 * i + 20, 292);
        traced_at(&m, EVENT_HOST_OP, "B", 400 * i + 312, 88);
    }
    struct played p = play(m.trace);
    start(&p);
    assert_near(step_us(&p, NULL), 400, 0.01, "step");
    assert_near(step_with(&p, "short", 0), 400, 0.01, "without the short one");
    assert_near(step_with(&p, "long", 0.5), 250, 0.01, "with half of the long one");
    release(&p);
}

/* ---- queues and streams ---- */

static void a_launch_that_waits_for_room_in_the_queue_is_not_host_work(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&m, i);
        for (int k = 0; k < 8; k++) {
            m.launch_us = k == 5 ? 400 : 4;
            traced_run(&m, "aten::mm", k == 5 ? 406 : 10, "gemm", 100);
        }
        traced_step_end(&m);
    }
    struct played p = play(m.trace);
    start(&p);
    const struct replay_result r = replay_run(&p.replay, NULL);
    assert_near(r.host_ns, 80e3, near_ns, "host");
    assert_near(r.step_ns, 800e3, near_ns, "step");
    release(&p);
}

static void a_long_launch_while_the_device_is_idle_is_host_work(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&m, i);
        for (int k = 0; k < 8; k++) {
            m.launch_us = k == 5 ? 400 : 4;                 /* loads its code first */
            traced_run(&m, "aten::mm", k == 5 ? 406 : 10, "gemm", 5);
        }
        traced_step_end(&m);
    }
    struct played p = play(m.trace);
    start(&p);
    assert_near(replay_run(&p.replay, NULL).host_ns, 476e3, near_ns, "host");
    release(&p);
}

/* a on one stream; b on another, launched with it, starts when a is done; the host waits for b. */
static struct played two_streams(void)
{
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        const double at = 246.0 * i;
        traced_step_at(&m, i, at, 246);
        traced_at(&m, EVENT_HOST_OP, "op", at, 50);
        traced_on_stream(&m, 7);
        traced_work_at(&m, "cudaLaunchKernel", at + 40, 4, EVENT_KERNEL, "a", at + 46, 100);
        traced_on_stream(&m, 20);
        traced_work_at(&m, "cudaLaunchKernel", at + 46, 4, EVENT_KERNEL, "b", at + 146, 100);
        traced_at(&m, EVENT_RUNTIME, "cudaStreamSynchronize", at + 50, 196);
    }
    return play(m.trace);
}

static void a_stream_waits_for_another(void **state)
{
    (void)state;
    struct played p = two_streams();
    start(&p);
    for (int32_t d = 0; d < p.view.n_device; d++)
        if (!strcmp(view_name(&p.view, p.view.device + d), "b"))
            assert_string_equal(view_name(&p.view, p.view.device + p.replay.waits_for[d]), "a");
        else
            assert_int_equal(p.replay.waits_for[d], -1);
    assert_near(step_us(&p, NULL), 246, 0.01, "step");
    assert_near(step_with(&p, "a", 0.5), 196, 0.01, "with half of a");
    assert_near(step_with(&p, "a", 0), 152, 0.01, "without a");
    assert_near(step_with(&p, "b", 0), 146, 0.01, "without b");
    release(&p);
}

/* Work of two streams at one time keeps the device busy once. */
static void overlapping_streams_are_busy_once(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        const double at = 400.0 * i;
        traced_step_at(&m, i, at, 400);
        traced_at(&m, EVENT_HOST_OP, "op", at, 400);
        traced_on_stream(&m, 7);
        traced_work_at(&m, "cudaLaunchKernel", at + 10, 10, EVENT_KERNEL, "a", at + 22, 200);
        traced_on_stream(&m, 20);
        traced_work_at(&m, "cudaLaunchKernel", at + 30, 10, EVENT_KERNEL, "ncclDevKernel_AllReduce", at + 42, 200);
    }
    struct played p = play(m.trace);
    start(&p);
    const struct replay_result r = replay_run(&p.replay, NULL);
    assert_near(r.step_ns, 400e3, near_ns, "step");
    assert_near(r.device_ns, 220e3, near_ns, "device");
    release(&p);
}

/* Two devices; work of the second begins so long behind that of the first. */
static struct played on_two_devices(double behind_us)
{
    struct traced m = traced_new();
    const int other = traced_track(&m, TRACK_DEVICE_STREAM, 1, 7), first = m.stream;
    for (int i = 0; i < STEPS; i++) {
        const double at = 400.0 * i;
        traced_step_at(&m, i, at, 400);
        traced_at(&m, EVENT_HOST_OP, "op", at, 400);
        m.stream = first;
        traced_work_at(&m, "cudaLaunchKernel", at + 10, 5, EVENT_KERNEL, "a", at + 30, 30);
        m.stream = other;
        traced_work_at(&m, "cudaLaunchKernel", at + 20, 5, EVENT_KERNEL, "b", at + 30 + behind_us, 50);
    }
    return play(m.trace);
}

static void two_devices_are_busy_while_one_of_them_works(void **state)
{
    (void)state;
    static const double behind_us[] = {0, 10, 30, 100}, busy_us[] = {50, 60, 80, 80}, without_b_us[] = {31.25, 30, 30, 30};
    for (int k = 0; k < 4; k++) {
        struct played p = on_two_devices(behind_us[k]);
        start(&p);
        assert_near(replay_run(&p.replay, NULL).device_ns, 1e3 * busy_us[k], near_ns, "device");
        struct edit e;
        edit_init(&e, &p.view);
        for (int32_t d = 0; d < p.view.n_device; d++)
            e.device[d] = strcmp(view_name(&p.view, p.view.device + d), "b") ? 1 : 0;
        const double left = replay_run(&p.replay, &e).device_ns;
        assert_true(left >= 30e3 - near_ns && left <= 1e3 * without_b_us[k] + near_ns);        /* the first has its own work to do */
        edit_release(&e);
        release(&p);
    }
}

/* ---- edits ---- */

static void two_edits_take_what_both_take_once(void **state)
{
    (void)state;
    struct played p = with_wait(100, 100, "cudaStreamSynchronize");
    start(&p);
    struct edit a, b;
    edit_init(&a, &p.view);
    edit_init(&b, &p.view);
    keep(&a, &p.view, "A", 0.2);
    keep(&b, &p.view, "A", 0.6);
    keep(&b, &p.view, "b", 0.25);
    a.added_ns = 1000;
    b.added_ns = 500;
    a.gap_limit_ns = 70e3;
    b.host_factor = 0.5;
    edit_add(&a, &p.view, &b);
    const int32_t host = traced_find(&p.view, "A"), other = traced_find(&p.view, "B");
    assert_int_equal(a.host[host], lround(0.2 * KEEP_ALL));
    assert_int_equal(a.host[other], KEEP_ALL);
    assert_near((double)a.device[traced_find(&p.view, "b") - p.view.device], 0.25, 1e-6, "device");
    assert_near((double)a.device[traced_find(&p.view, "a") - p.view.device], 1, 0, "device of the other");
    assert_near(a.added_ns, 1500, 0, "added");
    assert_near(a.gap_limit_ns, 70e3, 0, "gaps");
    assert_near(a.host_factor, 0.5, 0, "host factor");
    edit_release(&a);
    edit_release(&b);
    release(&p);
}

static void work_that_a_fix_adds_is_as_fast_as_the_host(void **state)
{
    (void)state;
    struct played p = plain(5, 100, 10);
    start(&p);
    struct edit e;
    edit_init(&e, &p.view);
    e.added_ns = 100e3;
    e.host_factor = 0.5;
    assert_near(step_us(&p, &e), 300, 0.01, "a step at half of the host's time");
    edit_release(&e);
    release(&p);
}

static void long_gaps_are_cut_to_the_limit(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&m, i);
        for (int k = 0; k < 10; k++) {
            traced_idle(&m, k == 4 ? 1000 : 5);
            traced_run(&m, "aten::mm", 20, "gemm", 10);
        }
        traced_step_end(&m);
    }
    struct played p = play(m.trace);
    start(&p);
    assert_near(p.replay.typical_gap_ns, 5000, near_ns, "usual gap");
    struct edit e;
    edit_init(&e, &p.view);
    assert_near(step_us(&p, &e), 1245, 0.01, "as recorded");
    e.gap_limit_ns = 60e3;
    assert_near(step_us(&p, &e), 305, 0.01, "with short gaps");
    edit_release(&e);
    release(&p);
}

/* What leads to a call goes with it: the usual gap before one, all of the time between two. */
static void the_way_to_a_call_goes_with_it(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&m, i);
        for (int k = 0; k < 8; k++) {
            traced_idle(&m, 5);
            traced_op(&m, "other", 20);
        }
        traced_idle(&m, 300);               /* to the first: not all of it is its */
        traced_op(&m, "gone", 20);
        traced_idle(&m, 100);               /* between two that go */
        traced_op(&m, "gone", 20);
        traced_step_end(&m);
    }
    struct played p = play(m.trace);
    start(&p);
    assert_near(step_us(&p, NULL), 640, 0.01, "as recorded");
    assert_near(step_with(&p, "gone", 0), 480, 0.01, "without");    /* 20 of the 300 go, four usual gaps */
    release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_of_much_host_work_takes_the_hosts_time),
        cmocka_unit_test(a_step_of_much_device_work_takes_the_devices_time),
        cmocka_unit_test(a_wait_drains_the_queue),
        cmocka_unit_test(dropping_a_wait_wins_what_the_device_could_do_meanwhile),
        cmocka_unit_test(dropping_a_wait_of_a_step_bound_by_the_host_wins_nothing),
        cmocka_unit_test(a_wait_that_is_kept_in_part_still_waits),
        cmocka_unit_test(copies_block_where_they_must),
        cmocka_unit_test(a_wait_for_the_device_waits_for_all_streams),
        cmocka_unit_test(a_launch_that_waits_for_room_in_the_queue_is_not_host_work),
        cmocka_unit_test(a_long_launch_while_the_device_is_idle_is_host_work),
        cmocka_unit_test(a_stream_waits_for_another),
        cmocka_unit_test(overlapping_streams_are_busy_once),
        cmocka_unit_test(two_devices_are_busy_while_one_of_them_works),
        cmocka_unit_test(two_edits_take_what_both_take_once),
        cmocka_unit_test(work_that_a_fix_adds_is_as_fast_as_the_host),
        cmocka_unit_test(long_gaps_are_cut_to_the_limit),
        cmocka_unit_test(the_way_to_a_call_goes_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
