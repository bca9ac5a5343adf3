/* The numbers of a diagnosis on small traces whose answers are worked out by hand. */
#include "unit/traced_text.h"

static const double near_us = 1e-9;

struct counted {
    struct view view;
    struct diagnosis d;
};

static struct counted count(struct trace *t)
{
    struct counted c = {.view = traced_view(t)};
    c.d = traced_numbers(&c.view);
    return c;
}

static void release(struct counted *c)
{
    struct trace *t = c->view.trace;
    arena_release(&c->d.arena);
    view_release(&c->view);
    trace_free(t);
}

/* ---- steps ---- */

static void each_moment_goes_to_the_first_role_that_is_active(void **state)
{
    (void)state;
    struct traced m = traced_new();
    traced_step_at(&m, 1, 0, 100);
    traced_at(&m, EVENT_ANNOTATION, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 20);
    traced_at(&m, EVENT_HOST_OP, "aten::stack", 10, 5);             /* inside the loader: its time */
    traced_at(&m, EVENT_HOST_OP, "aten::mm", 30, 30);
    traced_work_at(&m, "cudaLaunchKernel", 40, 10, EVENT_KERNEL, "gemm", 45, 10);   /* 45-55, over call and op */
    traced_work_at(&m, "cudaMemcpyAsync", 56, 1, EVENT_MEMCPY, "Memcpy HtoD", 50, 15);  /* 55-65 beside the kernel */
    traced_on_stream(&m, 20);
    traced_work_at(&m, "cudaLaunchKernel", 57, 1, EVENT_KERNEL, "ncclDevKernel_AllReduce", 60, 20);     /* 65-80 beside the copy */
    traced_work_at(&m, "cudaMemsetAsync", 58, 1, EVENT_MEMSET, "Memset", 79, 3);    /* takes 79-82 */
    struct counted c = count(m.trace);
    const struct trace_step *s = &c.d.steps[0];
    assert_near(s->total_us, 100, near_us, "total");
    assert_near(s->kernel_us, 10, near_us, "kernel");
    assert_near(s->memcpy_us, 10, near_us, "memcpy");
    assert_near(s->memset_us, 3, near_us, "memset");
    assert_near(s->comm_us, 14, near_us, "comm");
    assert_near(s->runtime_us, 5, near_us, "runtime");
    assert_near(s->dataloader_us, 20, near_us, "data loader");
    assert_near(s->cpu_us, 10, near_us, "cpu");
    assert_near(s->other_us, 28, near_us, "other");
    assert_near(s->busy_us, 37, near_us, "busy");
    assert_int_equal(s->kernels, 2);
    assert_int_equal(s->launches, 4);
    assert_int_equal(s->host_ops, 2);
    release(&c);
}

static void a_step_lasts_until_its_work_is_done(void **state)
{
    (void)state;
    struct traced m = traced_new();
    traced_step_at(&m, 1, 0, 100);
    traced_step_at(&m, 2, 100, 100);
    traced_step_at(&m, 3, 210, 100);
    traced_work_at(&m, "cudaLaunchKernel", 50, 5, EVENT_KERNEL, "a", 90, 60);       /* until 150 */
    traced_work_at(&m, "cudaLaunchKernel", 120, 5, EVENT_KERNEL, "b", 150, 20);
    traced_get(&m, traced_at(&m, EVENT_KERNEL, "launched earlier", 1, 30))->link = 999;
    struct counted c = count(m.trace);
    assert_near(c.d.steps[0].total_us, 150, near_us, "step 1");
    assert_near(c.d.steps[1].total_us, 50, near_us, "step 2");
    assert_near(c.d.steps[1].start_us, 150 - 1, near_us, "start of step 2");        /* the first event starts at 1 */
    assert_near(c.d.steps[2].total_us, 100, near_us, "step 3");
    assert_near(c.d.steps[0].kernel_us, 60, near_us, "kernels of step 1");
    assert_near(c.d.steps[1].kernel_us, 20, near_us, "kernels of step 2");
    assert_near(c.d.mean.total_us, 100, near_us, "mean");
    assert_near(c.d.mean.kernel_us, 80.0 / 3, near_us, "mean of kernels");
    assert_int_equal(c.d.timeline_step, 2);
    assert_int_equal(c.d.steps[c.d.timeline_step].number, 3);
    release(&c);
}

/* A copy that step 2 launches on a stream of its own runs while step 1 still has work: it is time of the device in step 1. */
static void work_of_the_next_step_is_busy_time_where_it_runs(void **state)
{
    (void)state;
    struct traced m = traced_new();
    traced_step_at(&m, 1, 0, 100);
    traced_step_at(&m, 2, 100, 150);
    traced_work_at(&m, "cudaLaunchKernel", 50, 5, EVENT_KERNEL, "a", 60, 30);
    traced_work_at(&m, "cudaLaunchKernel", 60, 5, EVENT_KERNEL, "b", 140, 60);      /* until 200 */
    traced_on_stream(&m, 20);
    traced_work_at(&m, "cudaMemcpyAsync", 105, 5, EVENT_MEMCPY, "Memcpy HtoD", 110, 20);
    traced_work_at(&m, "cudaLaunchKernel", 110, 5, EVENT_KERNEL, "c", 210, 40);
    struct counted c = count(m.trace);
    assert_near(c.d.steps[0].busy_us, 30 + 20 + 60, near_us, "step 1");
    assert_near(c.d.steps[1].busy_us, 40, near_us, "step 2");
    for (int i = 0; i < 2; i++) {
        const struct trace_step *s = &c.d.steps[i];
        assert_near(s->busy_us, s->kernel_us + s->memcpy_us + s->memset_us + s->comm_us, near_us, "its parts");
    }
    assert_near(2 * c.d.mean.busy_us, c.d.gpu.busy_us, near_us, "all steps");
    release(&c);
}

/* ---- the device ---- */

static void idle_time_is_told_by_what_ends_it(void **state)
{
    (void)state;
    struct traced m = traced_new();
    traced_work_at(&m, "cudaLaunchKernel", 0, 5, EVENT_KERNEL, "a", 10, 10);        /* 10-20 */
    traced_work_at(&m, "cudaLaunchKernel", 12, 2, EVENT_KERNEL, "b", 23, 7);        /* 3 µs after: from kernel to kernel */
    traced_work_at(&m, "cudaLaunchKernel", 15, 2, EVENT_KERNEL, "c", 50, 10);       /* 20 µs after, launched before: other */
    traced_work_at(&m, "cudaLaunchKernel", 90, 5, EVENT_KERNEL, "d", 100, 10);      /* 40 µs after, launched in it: the host */
    traced_at(&m, EVENT_KERNEL, "from before", 1, 2);
    traced_step_at(&m, 1, 0, 120);
    struct counted c = count(m.trace);
    const struct trace_gpu *g = &c.d.gpu;
    assert_near(g->total_us, 100, near_us, "total");                /* what was launched before the trace does not count */
    assert_near(g->busy_us, 37, near_us, "busy");
    assert_near(g->idle_us, 63, near_us, "idle");
    assert_near(g->idle_kernel_us, 3, near_us, "kernel wait");
    assert_near(g->idle_other_us, 20, near_us, "other");
    assert_near(g->idle_host_us, 40, near_us, "host wait");
    assert_int_equal(g->streams, 1);
    release(&c);
}

static void communication_and_copies_hide_behind_computation(void **state)
{
    (void)state;
    struct traced m = traced_new();
    traced_work_at(&m, "cudaLaunchKernel", 0, 1, EVENT_KERNEL, "gemm", 10, 20);     /* 10-30 */
    traced_work_at(&m, "cudaMemsetAsync", 1, 1, EVENT_MEMSET, "Memset", 30, 5);     /* 30-35: computation */
    traced_on_stream(&m, 20);
    traced_work_at(&m, "cudaLaunchKernel", 2, 1, EVENT_KERNEL, "ncclDevKernel_AllGather", 20, 30);  /* 15 of it hidden */
    traced_on_stream(&m, 30);
    traced_work_at(&m, "cudaMemcpyAsync", 3, 1, EVENT_MEMCPY, "Memcpy DtoH", 45, 10);   /* 5 hidden behind nccl */
    struct counted c = count(m.trace);
    const struct trace_gpu *g = &c.d.gpu;
    assert_near(g->computation_us, 25, near_us, "computation");
    assert_near(g->comm_us, 30, near_us, "communication");
    assert_near(g->exposed_comm_us, 15, near_us, "exposed communication");
    assert_near(g->memcpy_us, 10, near_us, "copies");
    assert_near(g->exposed_memcpy_us, 5, near_us, "exposed copies");
    assert_near(g->busy_us, 45, near_us, "busy");
    assert_int_equal(g->streams, 3);
    release(&c);
}

static void a_trace_of_the_device_alone_counts_all_its_events(void **state)
{
    (void)state;
    struct traced m = traced_new();
    traced_at(&m, EVENT_KERNEL, "a", 0, 10);
    traced_at(&m, EVENT_KERNEL, "b", 20, 10);
    struct counted c = count(m.trace);
    assert_near(c.d.gpu.busy_us, 20, near_us, "busy");
    assert_near(c.d.steps[0].kernel_us, 20, near_us, "kernels of the step");
    assert_true(c.d.no_step_marks);
    release(&c);
}

/* Wall-clock times with ns do not fit a double; differences must. */
static void large_clocks_keep_their_nanoseconds(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < 100; i++)
        traced_work_at(&m, "cudaLaunchKernel", 10 * i, 1, EVENT_KERNEL, "k", 10 * i + 2, 1.001);
    for (int64_t i = 0; i < m.trace->n; i++)
        m.trace->events[i].start_ns += 1712195495502094517;
    struct counted c = count(m.trace);
    assert_near(c.d.gpu.busy_us, 100.1, 1e-6, "busy");
    assert_near(c.d.kernels[0].total_us, 100.1, 1e-6, "kernels");
    release(&c);
}

/* ---- kernels ---- */

static void kernels_are_grouped_by_name_op_and_stream(void **state)
{
    (void)state;
    struct traced m = traced_new();
    traced_step_begin(&m, 1);
    traced_run(&m, "aten::mm", 20, "gemm", 10);
    traced_run(&m, "aten::mm", 20, "gemm", 30);
    traced_run(&m, "aten::bmm", 20, "gemm", 5);
    traced_args(&m, traced_launch(&m, "copy_kernel", 15))->occupancy = 50;
    traced_on_stream(&m, 9);
    traced_run(&m, "aten::mm", 20, "gemm", 1);
    traced_copy(&m, "Memcpy HtoD", 4, 100);
    traced_step_end(&m);
    struct counted c = count(m.trace);
    assert_int_equal(c.d.n_kernels, 4);
    const struct trace_kernel *k = &c.d.kernels[0];
    assert_string_equal(k->name, "gemm");
    assert_string_equal(k->op, "aten::mm");
    assert_string_equal(k->kind, "gemm");
    assert_int_equal(k->stream, 7);
    assert_int_equal(k->count, 2);
    assert_near(k->total_us, 40, near_us, "total");
    assert_near(k->mean_us, 20, near_us, "mean");
    assert_near(k->min_us, 10, near_us, "min");
    assert_near(k->max_us, 30, near_us, "max");
    assert_near(k->share, 40.0 / 61, near_us, "share");
    assert_near(k->occupancy, -1, 0, "occupancy");
    assert_string_equal(c.d.kernels[1].op, "");
    assert_near(c.d.kernels[1].occupancy, 50, near_us, "occupancy of the copy");
    assert_near(c.d.mean_occupancy, 50, near_us, "mean occupancy");
    assert_int_equal(c.d.kernels[3].stream, 9);
    assert_int_equal(c.d.n_kinds, 2);
    assert_string_equal(c.d.kinds[0].name, "gemm");
    assert_near(c.d.kinds[0].us, 46, near_us, "gemms of a step");
    assert_near(c.d.kinds[1].us, 15, near_us, "copies of a step");
    release(&c);
}

static void many_groups_are_kept_apart(void **state)
{
    (void)state;
    struct traced m = traced_new();
    char name[32];
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "kernel %d", i % 1000);
        traced_launch(&m, name, 1 + i % 1000);
    }
    struct counted c = count(m.trace);
    assert_int_equal(c.d.n_kernels, 1000);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(c.d.kernels[i].count, 3);
        assert_near(c.d.kernels[i].total_us, 3 * (1000 - i), near_us, "total");
    }
    release(&c);
}

/* ---- ops ---- */

static const struct trace_op *op_named(const struct diagnosis *d, const char *name)
{
    for (int i = 0; i < d->n_ops; i++)
        if (!strcmp(d->ops[i].name, name))
            return &d->ops[i];
    fail_msg("no op '%s'", name);
    return NULL;
}

static void an_op_has_its_own_time_and_that_of_ops_inside(void **state)
{
    (void)state;
    struct traced m = traced_new();
    traced_op(&m, "aten::before", 10);
    traced_step_begin(&m, 1);
    traced_begin(&m, EVENT_HOST_OP, "aten::linear");
    traced_idle(&m, 5);
    traced_begin(&m, EVENT_ANNOTATION, "range");
    traced_run(&m, "aten::addmm", 20, "gemm", 50);
    traced_end(&m);
    traced_launch(&m, "bias", 7);               /* 4 µs by the op itself */
    traced_end(&m);
    traced_begin(&m, EVENT_HOST_OP, "aten::to");
    traced_begin(&m, EVENT_HOST_OP, "aten::to");
    traced_run(&m, "aten::copy_", 10, "copy_kernel", 3);
    traced_end(&m);
    traced_end(&m);
    traced_step_end(&m);
    struct counted c = count(m.trace);
    assert_int_equal(c.d.n_ops, 4);             /* not the one before the step */
    const struct trace_op *linear = op_named(&c.d, "aten::linear"), *to = op_named(&c.d, "aten::to");
    assert_near(linear->total_us, 29, near_us, "total");
    assert_near(linear->self_us, 9, near_us, "self");
    assert_near(linear->device_self_us, 7, near_us, "device self");
    assert_near(linear->device_us, 57, near_us, "device");
    assert_int_equal(linear->launches, 1);
    assert_int_equal(to->count, 2);
    assert_near(to->total_us, 10, near_us, "an op inside itself counts once");
    assert_near(to->device_us, 3, near_us, "and its device time");
    assert_string_equal(c.d.ops[0].name, "aten::addmm");
    assert_near(c.d.ops[0].share, 50.0 / 60, near_us, "share");
    release(&c);
}

/* Shares of ops are of all that the device did in steps, also of what a call outside of any op launched. */
static void shares_of_ops_are_of_the_devices_time(void **state)
{
    (void)state;
    struct traced m = traced_new();
    traced_launch(&m, "before", 1000);          /* no step's */
    traced_step_begin(&m, 1);
    traced_run(&m, "aten::mm", 20, "gemm", 10);
    traced_copy(&m, "Memcpy HtoD (Pinned -> Device)", 64, 30);
    traced_launch(&m, "of_a_graph", 160);
    traced_step_end(&m);
    struct counted c = count(m.trace);
    assert_near(c.d.ops[0].share, 0.05, 1e-9, "share");
    assert_near(c.d.no_op_share, 0.95, 1e-9, "what no op launched");
    release(&c);
}

/* ---- launches ---- */

static void launches_and_their_queue(void **state)
{
    (void)state;
    struct traced m = traced_new();
    traced_step_at(&m, 1, 0, 50);
    traced_step_at(&m, 2, 50, 50);
    traced_work_at(&m, "cudaLaunchKernel", 0, 4, EVENT_KERNEL, "a", 10, 20);        /* waits 6, runs until 30 */
    traced_work_at(&m, "cudaLaunchKernel", 10, 6, EVENT_KERNEL, "b", 30, 3);        /* waits 14, until 33; shorter than its call */
    traced_work_at(&m, "cudaLaunchKernel", 60, 8, EVENT_KERNEL, "c", 64, 16);       /* starts before its call returns */
    traced_at(&m, EVENT_RUNTIME, "cudaStreamSynchronize", 70, 10);
    traced_at(&m, EVENT_RUNTIME, "cudaStreamSynchronize", 200, 10);                 /* after the steps */
    struct counted c = count(m.trace);
    const struct trace_launches *l = &c.d.launches;
    assert_int_equal(l->count, 3);
    assert_near(l->per_step, 1.5, near_us, "per step");
    assert_near(l->call_us, 6, near_us, "call");
    assert_near(l->delay_us, 6, near_us, "delay");
    assert_near(l->kernel_us, 16, near_us, "work");
    assert_int_equal(l->shorter_than_call, 1);
    assert_int_equal(l->syncs, 1);
    assert_near(l->sync_us, 10, near_us, "waits");
    assert_int_equal(l->queue_max, 2);
    assert_near(l->queue_mean, (30 + 23 + 20) / 80.0, near_us, "queue");
    assert_int_equal(c.d.n_queue, 6);
    assert_near(c.d.queue[1].us, 10, near_us, "time of a point");
    assert_near(c.d.queue[1].value, 2, 0, "value of a point");
    release(&c);
}

static void a_graph_is_one_launch(void **state)
{
    (void)state;
    struct traced m = traced_new();
    const int64_t first = traced_work_at(&m, "cudaGraphLaunch", 0, 5, EVENT_KERNEL, "a", 10, 2);
    const int64_t link = traced_get(&m, first)->link;
    for (int i = 1; i < 10; i++)
        traced_get(&m, traced_at(&m, EVENT_KERNEL, "a", 10 + 2 * i, 2))->link = link;
    struct counted c = count(m.trace);
    assert_int_equal(c.d.launches.count, 1);
    assert_int_equal(c.d.launches.graphs, 1);
    assert_int_equal(c.d.launches.queue_max, 10);
    assert_int_equal(c.d.kernels[0].count, 10);
    release(&c);
}

/* ---- series ---- */

static void thinned_series_keep_their_peak_and_end(void **state)
{
    (void)state;
    struct traced m = traced_new();
    traced_op(&m, "op", 100000);
    for (int i = 0; i < 50000; i++)
        traced_memory_at(&m, 2 * i, i == 31234 ? 1e9 : 1000 + i % 100);
    struct counted c = count(m.trace);
    assert_true(c.d.n_memory > 300 && c.d.n_memory <= 600);
    assert_near(c.d.memory_peak_bytes, 1e9, 0, "peak");
    bool found = false;
    for (int i = 0; i < c.d.n_memory; i++) {
        assert_true(i == 0 || c.d.memory[i].us >= c.d.memory[i - 1].us);
        found |= c.d.memory[i].us == 62468 && c.d.memory[i].value == 1e9;
    }
    assert_true(found);
    assert_near(c.d.memory[c.d.n_memory - 1].us, 99998, near_us, "the last point");
    release(&c);
}

static void without_memory_there_are_no_points(void **state)
{
    (void)state;
    struct traced m = traced_new();
    traced_op(&m, "op", 10);
    struct counted c = count(m.trace);
    assert_int_equal(c.d.n_memory, 0);
    assert_near(c.d.memory_peak_bytes, 0, 0, "peak");
    assert_int_equal(c.d.n_queue, 0);
    assert_int_equal(c.d.n_kernels, 0);
    release(&c);
}

/* ---- ranks and differences ---- */

static void a_rank_has_its_numbers_per_step(void **state)
{
    (void)state;
    struct traced m = traced_new();
    m.trace->origin.rank = 3;
    for (int step = 1; step <= 2; step++) {
        traced_step_begin(&m, step);
        traced_run(&m, "aten::mm", 20, "gemm", 50);
        traced_run(&m, "c10d::allreduce_", 10, "ncclDevKernel_AllReduce", 30);
        traced_wait(&m, "cudaStreamSynchronize");
        traced_step_end(&m);
    }
    struct counted c = count(m.trace);
    const struct trace_rank r = numbers_rank(&c.d, &c.view);
    assert_int_equal(r.rank, 3);
    assert_int_equal(r.steps, 2);
    assert_near(r.step_us, 102, near_us, "step");               /* 16 + 6 until the first kernel starts, 50, 30 */
    assert_near(r.kernel_us, 50, near_us, "kernels");
    assert_near(r.comm_us, 30, near_us, "communication");
    assert_near(r.exposed_comm_us, 30, near_us, "exposed");
    assert_near(r.idle_us, 22, near_us, "idle");
    assert_near(r.host_us, 30, near_us, "host");                /* the wait is none of it */
    release(&c);
}

static struct trace *steps_of(int mms, int adds, const char *kernel, double us)
{
    struct traced m = traced_new();
    for (int step = 0; step < 2; step++) {
        traced_step_begin(&m, step);
        for (int i = 0; i < mms; i++)
            traced_run(&m, "aten::mm", 20, kernel, us);
        for (int i = 0; i < adds; i++)
            traced_op(&m, "aten::add", 10);
        traced_op(&m, adds ? "aten::only_a" : "aten::only_b", 1);
        traced_wait(&m, "cudaDeviceSynchronize");
        traced_step_end(&m);
    }
    return m.trace;
}

static void two_traces_side_by_side(void **state)
{
    (void)state;
    struct counted a = count(steps_of(2, 3, "gemm", 100)), b = count(steps_of(2, 0, "gemm", 40));
    struct trace_diff d;
    struct error err;
    assert_ok(diagnosis_diff(&d, &a.d, &b.d, &err), err);
    assert_near(d.a_step_us, a.d.mean.total_us, near_us, "step of a");
    assert_int_equal(d.n_split, 8);
    assert_near(d.split[0].a_us, 200, near_us, "kernels of a");
    assert_near(d.split[0].b_us, 80, near_us, "kernels of b");
    assert_int_equal(d.n_kernels, 1);
    assert_near(d.kernels[0].b_us, 80, near_us, "gemm of b");
    assert_near(d.kernels[0].a_count, 2, near_us, "gemms of a");
    assert_int_equal(d.n_ops, 1);                               /* on the device */
    assert_string_equal(d.ops[0].name, "aten::mm");
    assert_near(d.ops[0].a_us, 200, near_us, "products of a");
    assert_near(d.ops[0].b_us, 80, near_us, "products of b");
    assert_string_equal(d.host_ops[0].name, "aten::add");       /* the largest difference: 30 µs */
    assert_near(d.host_ops[0].a_us, 30, near_us, "adds of a");
    assert_near(d.host_ops[0].b_us, 0, near_us, "adds of b");
    assert_int_equal(d.n_host_ops, 4);
    assert_int_equal(d.ops_equal, 4);                           /* the step, mm, its launch, the wait */
    assert_int_equal(d.ops_added, 1);
    assert_int_equal(d.ops_removed, 2);
    release(&a);                                                /* the difference stands alone */
    release(&b);
    assert_string_equal(d.host_ops[0].name, "aten::add");
    trace_diff_release(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_moment_goes_to_the_first_role_that_is_active),
        cmocka_unit_test(a_step_lasts_until_its_work_is_done),
        cmocka_unit_test(work_of_the_next_step_is_busy_time_where_it_runs),
        cmocka_unit_test(idle_time_is_told_by_what_ends_it),
        cmocka_unit_test(communication_and_copies_hide_behind_computation),
        cmocka_unit_test(a_trace_of_the_device_alone_counts_all_its_events),
        cmocka_unit_test(large_clocks_keep_their_nanoseconds),
        cmocka_unit_test(kernels_are_grouped_by_name_op_and_stream),
        cmocka_unit_test(many_groups_are_kept_apart),
        cmocka_unit_test(an_op_has_its_own_time_and_that_of_ops_inside),
        cmocka_unit_test(shares_of_ops_are_of_the_devices_time),
        cmocka_unit_test(launches_and_their_queue),
        cmocka_unit_test(a_graph_is_one_launch),
        cmocka_unit_test(thinned_series_keep_their_peak_and_end),
        cmocka_unit_test(without_memory_there_are_no_points),
        cmocka_unit_test(a_rank_has_its_numbers_per_step),
        cmocka_unit_test(two_traces_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
