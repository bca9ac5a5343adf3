/* Rules on traces about waiting, moving and making data: each on a step that has the fault, with the gain that the planted time
 * promises, and on near misses that must stay quiet. */
#include "unit/trace_models.h"

/* ---- nothing wrong ---- */

static void a_step_with_nothing_wrong_has_no_finding_but_its_bound(void **state)
{
    (void)state;
    for (int kind = HOST_BOUND; kind <= DEVICE_BOUND; kind++) {
        struct model m = model_new((enum model_kind)kind);
        struct judged j = model_judge(&m, 0);
        for (int i = 0; i < j.d.n_findings; i++) {
            const char *rule = j.d.findings[i].rule;
            const bool bound = !strcmp(rule, "launch-bound") || !strcmp(rule, "host-bound") || !strcmp(rule, "small-batch");
            if (!bound || kind == DEVICE_BOUND)
                fail_msg("%s was found in a clean step: %s", rule, j.d.findings[i].evidence);
        }
        judged_release(&j);
    }
}

/* ---- host-sync ---- */

static void read_loss_and_log(struct model *m)
{
    m->t.launch_call = "hipLaunchKernel", m->t.copy_call = "hipMemcpyAsync";
    model_read(m, "hipStreamSynchronize");
    traced_idle(&m->t, 3000);               /* Python that the device could work beside */
}

static void read_norms(struct model *m)
{
    for (int i = 0; i < 20; i++) {
        model_op(m, "linalg_vector_norm", "[[512, 512], []]", "reduce_kernel<norm>", 3, NULL);
        model_read(m, "cudaStreamSynchronize");
    }
}

static void a_read_in_a_step_that_the_device_could_fill_costs_the_hosts_work_behind_it(void **state)
{
    (void)state;
    struct model m = model_new(DEVICE_BOUND);
    m.end = read_loss_and_log;
    struct judged j = model_judge(&m, 0);
    const double device = j.d.corrected.device_us;
    assert_gain(&j, "host-sync", (device + 3000) / device, 0.08);
    judged_release(&j);
}

static void reads_in_a_loop_cost_what_they_and_their_reductions_take(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.end = read_norms;
    struct judged j = model_judge(&m, model_step_us(&m));
    const struct finding *f = assert_gain(&j, "host-sync", model_gain(&m), 0.1);
    assert_non_null(strstr(f->cause, "20 numbers"));
    judged_release(&j);
}

static void synchronize_often(struct model *m)
{
    for (int i = 0; i < 5; i++) {
        model_op(m, "mul", MODEL_X, "vectorized_elementwise_kernel<mul>", 3, NULL);
        traced_wait(&m->t, "cudaDeviceSynchronize");
    }
}

/* torch.cuda.synchronize() reads nothing; a single read beside it does not make it one. */
static void a_wait_that_reads_nothing_is_not_told_to_read_later(void **state)
{
    (void)state;
    for (int reads = 0; reads < 2; reads++) {
        struct model m = model_new(HOST_BOUND);
        m.end = synchronize_often;
        m.after_forward = reads ? read_loss_and_log : NULL;
        struct judged j = model_judge(&m, 0);
        const struct finding *f = assert_found(&j, "host-sync");
        assert_null(strstr(f->cause, "numbers"));
        assert_null(strstr(f->fix, ".item()"));
        assert_non_null(strstr(f->fix, "torch.cuda.synchronize()"));
        assert_non_null(strstr(f->where, "cudaDeviceSynchronize"));
        judged_release(&j);
    }
}

static void read_in_the_loader(struct model *m)
{
    traced_begin(&m->t, EVENT_ANNOTATION, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    model_read(m, "cudaStreamSynchronize");
    traced_end(&m->t);
}

static void reads_outside_of_steps_and_in_the_loader_are_not_the_steps(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    model_read(&m, "cudaStreamSynchronize");
    m.data = read_in_the_loader;
    model_train(&m);
    model_read(&m, "cudaDeviceSynchronize");
    traced_on_thread(&m.t, 9);              /* another thread's waits, such as a pinning thread's */
    for (int i = 0; i < 10; i++)
        traced_at(&m.t, EVENT_RUNTIME, "cudaEventSynchronize", 500 + 10 * i, 5);
    struct judged j = model_judge(&m, 0);
    assert_not_found(&j, "host-sync");
    assert_not_found(&j, "device-to-host-copy");
    judged_release(&j);
}

/* ---- constant-rebuilt ---- */

static void build_mask(struct model *m)
{
    const bool no_grad = m->no_grad;
    m->no_grad = true;
    model_op(m, "ones", NULL, "vectorized_elementwise_kernel<Fill>", 5, NULL);
    model_op(m, "triu", "[[256, 256], []]", "triu_tril_kernel", 5, NULL);
    model_view(m, "unsqueeze", "[[256, 256], []]");
    model_op(m, "logical_not", "[[1, 256, 256]]", "vectorized_elementwise_kernel<not>", 5, NULL);
    m->no_grad = no_grad;
}

static void build_mask_of_another_namespace(struct model *m)
{
    const char *space = m->space;
    m->space = "npu";
    build_mask(m);
    m->space = space;
}

static void fill_buffer(struct model *m) { model_op(m, "zeros", NULL, "vectorized_elementwise_kernel<Fill>", 5, NULL); }
static void make_noise(struct model *m)
{
    model_op(m, "randn", NULL, "distribution_elementwise_grid_stride_kernel", 5, NULL);
    model_op(m, "mul", "[[32, 256], []]", "vectorized_elementwise_kernel<mul>", 5, NULL);
}
static void build_mask_once(struct model *m)
{
    if (m->step == 1)
        build_mask(m);
}

static void a_mask_built_in_every_step_costs_its_ops(void **state)
{
    (void)state;
    model_part *const parts[] = {build_mask, build_mask_of_another_namespace};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct model m = model_new(HOST_BOUND);
        m.data = parts[i];
        struct judged j = model_judge(&m, model_step_us(&m));
        assert_gain(&j, "constant-rebuilt", model_gain(&m), 0.15);
        judged_release(&j);
    }
}

static void buffers_noise_and_single_masks_are_not_constants_rebuilt(void **state)
{
    (void)state;
    model_part *const parts[] = {fill_buffer, make_noise, build_mask_once};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct model m = model_new(HOST_BOUND);
        m.data = parts[i];
        struct judged j = model_judge(&m, 0);
        assert_not_found(&j, "constant-rebuilt");
        judged_release(&j);
    }
}

/* ---- pageable-copies, tiny-host-tensors ---- */

static void upload(struct model *m, const char *copy, int64_t bytes, double us, bool waits)
{
    model_begin(m, "to", "[[32, 256]]");
    model_begin(m, "_to_copy", "[[32, 256]]");
    model_begin(m, "copy_", "[[32, 256], [32, 256]]");
    traced_idle(&m->t, 10);
    traced_copy(&m->t, copy, bytes, us);
    if (waits)
        traced_wait(&m->t, m->t.copy_call[0] == 'h' ? "hipStreamSynchronize" : "cudaStreamSynchronize");
    model_end(m);
    model_end(m);
    model_end(m);
}

static void upload_batch(struct model *m) { upload(m, "Memcpy HtoD (Pageable -> Device)", 1 << 22, 1000, true); }
static void upload_batch_hip(struct model *m)
{
    m->t.copy_call = "hipMemcpyWithStream";
    upload(m, "Memcpy HtoD (Host -> Device)", 1 << 22, 1000, true);
}
static void upload_pinned_hip(struct model *m)
{
    m->t.copy_call = "hipMemcpyAsync";
    upload(m, "Memcpy HtoD (Host -> Device)", 1 << 22, 1000, false);
}
static void upload_pinned(struct model *m) { upload(m, "Memcpy HtoD (Pinned -> Device)", 1 << 22, 1000, false); }

static void upload_rows(struct model *m)
{
    for (int i = 0; i < 16; i++) {
        model_view(m, "select", "[[16, 4096], [], []]");
        upload(m, "Memcpy HtoD (Pageable -> Device)", 32 << 10, 20, true);
    }
    model_op(m, "stack", "[[[4096]], []]", "CatArrayBatchedCopy", 10, NULL);
}

static void upload_numbers(struct model *m)
{
    for (int i = 0; i < 12; i++) {
        model_view(m, "lift_fresh", "[[]]");
        upload(m, "Memcpy HtoD (Pageable -> Device)", 8, 2, true);
        model_op(m, "mul", "[[32, 256], []]", "vectorized_elementwise_kernel<mul>", 3, NULL);
    }
}

static void upload_one_number_in_all(struct model *m)
{
    if (m->step == 1)
        upload(m, "Memcpy HtoD (Pageable -> Device)", 8, 2, true);
}

static void a_batch_from_ordinary_memory_costs_the_wait_for_it(void **state)
{
    (void)state;
    model_part *const parts[] = {upload_batch, upload_batch_hip};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct model m = model_new(HOST_BOUND);
        m.data = parts[i];
        struct judged j = model_judge(&m, model_step_us(&m));
        const double step = model_step_us(&m);
        assert_gain(&j, "pageable-copies", step / (step - 790), 0.1);       /* pinned, 4 MiB at 20 GB/s take 210 µs instead of 1000 */
        assert_not_found(&j, "host-sync");
        assert_not_found(&j, "tiny-host-tensors");
        judged_release(&j);
    }
}

static void rows_copied_one_by_one_could_go_together(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.data = upload_rows;
    struct judged j = model_judge(&m, model_step_us(&m));
    const double step = model_step_us(&m);
    assert_gain(&j, "pageable-copies", step / (step - m.planted_us * 15 / 16), 0.15);
    judged_release(&j);
}

/* The call takes as long as the copy: the host waits in it, although it is named asynchronous. Nothing else is in the step. */
static struct trace *only_copies(void)
{
    struct traced m = traced_new();
    for (int i = 0; i < 10; i++) {
        const double at = 67000.0 * i;
        traced_step_at(&m, i, at, 67000);
        traced_at(&m, EVENT_HOST_OP, "aten::copy_", at + 10, 33000);
        const int64_t up = traced_work_at(&m, "cudaMemcpyAsync", at + 20, 32900, EVENT_MEMCPY, "Memcpy HtoD (Pageable -> Device)", at + 100, 32800);
        traced_args(&m, up)->bytes = 1 << 28;
        traced_at(&m, EVENT_RUNTIME, "cudaDeviceSynchronize", at + 33100, 20);
        traced_at(&m, EVENT_HOST_OP, "aten::copy_", at + 33200, 33500);
        const int64_t down = traced_work_at(&m, "cudaMemcpyAsync", at + 33210, 33400, EVENT_MEMCPY, "Memcpy DtoH (Device -> Pageable)",
                                            at + 33300, 33300);
        traced_args(&m, down)->bytes = 1 << 28;
        traced_at(&m, EVENT_RUNTIME, "cudaStreamSynchronize", at + 66610, 5);
    }
    return m.trace;
}

static void a_call_that_waits_for_its_copy_takes_its_time_once(void **state)
{
    (void)state;
    struct judged j = trace_judge(only_copies(), 0);
    assert_near(j.d.corrected.step_us, 66500, 600, "the step without the profiler");
    judged_release(&j);
}

static void a_loop_of_uploads_ends_with_its_step(void **state)
{
    (void)state;
    struct judged j = trace_judge(only_copies(), 0);
    const struct finding *f = assert_found(&j, "pageable-copies");
    assert_true(f->speedup > 1.2 && f->speedup < 1.9);      /* half of the time goes the other way */
    judged_release(&j);
}

static void pinned_copies_are_well(void **state)
{
    (void)state;
    model_part *const parts[] = {upload_pinned, upload_pinned_hip};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct model m = model_new(HOST_BOUND);
        m.data = parts[i];
        struct judged j = model_judge(&m, 0);
        assert_not_found(&j, "pageable-copies");
        assert_not_found(&j, "tiny-host-tensors");
        judged_release(&j);
    }
}

static void numbers_made_on_the_host_in_a_loop_cost_the_loop(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.after_forward = upload_numbers;
    struct judged j = model_judge(&m, model_step_us(&m));
    const double step = model_step_us(&m);
    assert_gain(&j, "tiny-host-tensors", step / (step - m.planted_us * 11 / 12), 0.2);
    assert_not_found(&j, "pageable-copies");
    judged_release(&j);
}

static void one_number_in_all_steps_is_nothing(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.after_forward = upload_one_number_in_all;
    struct judged j = model_judge(&m, 0);
    assert_not_found(&j, "tiny-host-tensors");
    judged_release(&j);
}

/* ---- data-stall ---- */

static void load_slowly(struct model *m)
{
    traced_begin(&m->t, EVENT_ANNOTATION, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
    traced_idle(&m->t, 2500);
    traced_end(&m->t);
}

static void load_in_the_process(struct model *m)
{
    traced_begin(&m->t, EVENT_ANNOTATION, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    for (int i = 0; i < 100; i++)
        traced_op(&m->t, "aten::stack", 25);
    traced_end(&m->t);
}

static void load_quickly(struct model *m)
{
    traced_begin(&m->t, EVENT_ANNOTATION, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
    traced_idle(&m->t, 5);
    traced_end(&m->t);
}

static void waiting_for_the_loader_costs_the_wait(void **state)
{
    (void)state;
    static const struct { model_part *part; const char *says; } cases[] = {{load_slowly, "workers"}, {load_in_the_process, "process itself"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model m = model_new(HOST_BOUND);
        m.data = cases[i].part;
        struct judged j = model_judge(&m, model_step_us(&m));
        const struct finding *f = assert_gain(&j, "data-stall", model_gain(&m), 0.06);
        assert_non_null(strstr(f->cause, cases[i].says));
        judged_release(&j);
    }
}

static void a_batch_that_is_ready_is_no_stall(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.data = load_quickly;
    struct judged j = model_judge(&m, 0);
    assert_not_found(&j, "data-stall");
    judged_release(&j);
}

/* ---- allocator-churn ---- */

static void take_and_give_back(struct model *m)
{
    for (int i = 0; i < 5; i++) {
        traced_get(&m->t, traced_at(&m->t, EVENT_RUNTIME, i % 2 ? "cudaMalloc" : "hipMalloc", m->t.now_us, 150))->link = -1;
        traced_idle(&m->t, 150);
        traced_wait(&m->t, "cudaFree");
        traced_idle(&m->t, 100);
    }
}

static void take_once(struct model *m)
{
    if (m->step == 0)
        for (int i = 0; i < 3; i++) {
            traced_at(&m->t, EVENT_RUNTIME, "cudaMalloc", m->t.now_us, 150);
            traced_idle(&m->t, 150);
        }
}

static void memory_of_the_driver_in_every_step_costs_its_calls(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.end = take_and_give_back;
    struct judged j = model_judge(&m, model_step_us(&m));
    assert_gain(&j, "allocator-churn", model_gain(&m), 0.12);
    assert_not_found(&j, "host-sync");
    judged_release(&j);
}

static void memory_that_is_taken_once_is_kept(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.end = take_once;
    struct judged j = model_judge(&m, 0);
    assert_not_found(&j, "allocator-churn");
    judged_release(&j);
}

/* ---- the profiler's words ---- */

/* All that is planted above at once, as text with the names of both ages: the same findings. */
static void plant_all(struct model *m)
{
    load_slowly(m);
    upload_rows(m);
    build_mask(m);
}

static void plant_all_behind(struct model *m)
{
    read_norms(m);
    take_and_give_back(m);
    model_evaluate(m);
}

static void old_and_new_names_of_categories_say_the_same(void **state)
{
    (void)state;
    static const char *const rules[] = {"data-stall", "pageable-copies", "constant-rebuilt", "host-sync", "allocator-churn",
                                        "eval-share", "launch-bound"};
    struct model m = model_new(HOST_BOUND);
    m.data = plant_all;
    m.end = plant_all_behind;
    const double step = model_step_us(&m);
    struct judged now = trace_judge(model_as_text(m.t.trace, false), step), old = trace_judge(model_as_text(m.t.trace, true), step);
    struct judged made = model_judge(&m, step);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const double gain = assert_found(&made, rules[i])->speedup;
        assert_near(assert_found(&now, rules[i])->speedup, gain, 1e-3, rules[i]);
        assert_near(assert_found(&old, rules[i])->speedup, gain, 0.05 * gain, rules[i]);
    }
    judged_release(&now);
    judged_release(&old);
    judged_release(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_with_nothing_wrong_has_no_finding_but_its_bound),
        cmocka_unit_test(a_read_in_a_step_that_the_device_could_fill_costs_the_hosts_work_behind_it),
        cmocka_unit_test(reads_in_a_loop_cost_what_they_and_their_reductions_take),
        cmocka_unit_test(a_wait_that_reads_nothing_is_not_told_to_read_later),
        cmocka_unit_test(reads_outside_of_steps_and_in_the_loader_are_not_the_steps),
        cmocka_unit_test(a_call_that_waits_for_its_copy_takes_its_time_once),
        cmocka_unit_test(a_loop_of_uploads_ends_with_its_step),
        cmocka_unit_test(a_mask_built_in_every_step_costs_its_ops),
        cmocka_unit_test(buffers_noise_and_single_masks_are_not_constants_rebuilt),
        cmocka_unit_test(a_batch_from_ordinary_memory_costs_the_wait_for_it),
        cmocka_unit_test(rows_copied_one_by_one_could_go_together),
        cmocka_unit_test(pinned_copies_are_well),
        cmocka_unit_test(numbers_made_on_the_host_in_a_loop_cost_the_loop),
        cmocka_unit_test(one_number_in_all_steps_is_nothing),
        cmocka_unit_test(waiting_for_the_loader_costs_the_wait),
        cmocka_unit_test(a_batch_that_is_ready_is_no_stall),
        cmocka_unit_test(memory_of_the_driver_in_every_step_costs_its_calls),
        cmocka_unit_test(memory_that_is_taken_once_is_kept),
        cmocka_unit_test(old_and_new_names_of_categories_say_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
