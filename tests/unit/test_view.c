/* The view: order, nesting, launch links, steps, kinds of names, Python frames; odd traces. */
#include "unit/traced_text.h"

#include "analyze/traced/view_int.h"

/* ---- order ---- */

static uint64_t random_of(uint64_t *state) { return *state = *state * 6364136223846793005u + 1442695040888963407u; }

/* Many events of all kinds, threads and streams, in no order; short times make many equal ones. */
static struct traced shuffled(int n)
{
    static const enum event_kind kinds[] = {EVENT_HOST_OP, EVENT_RUNTIME, EVENT_ANNOTATION, EVENT_PYTHON, EVENT_KERNEL,
                                            EVENT_MEMCPY, EVENT_COUNTER, EVENT_OVERHEAD};
    struct traced m = traced_new();
    uint64_t state = 7;
    for (int i = 0; i < n; i++) {
        traced_on_thread(&m, (int64_t)(random_of(&state) >> 33) % 5);
        traced_on_stream(&m, (int64_t)(random_of(&state) >> 33) % 3);
        const enum event_kind kind = kinds[(random_of(&state) >> 33) % (sizeof kinds / sizeof *kinds)];
        traced_at(&m, kind, "x", (double)((random_of(&state) >> 33) % 1000), (double)((random_of(&state) >> 33) % 50));
    }
    return m;
}

static bool in_order(const struct event *a, const struct event *b)
{
    return a->start_ns < b->start_ns || (a->start_ns == b->start_ns && a->duration_ns >= b->duration_ns);
}

static void events_are_sorted_by_group_track_and_start(void **state)
{
    (void)state;
    struct traced m = shuffled(20000);
    int64_t sum = 0, after = 0;
    for (int64_t i = 0; i < m.trace->n; i++)
        sum += m.trace->events[i].start_ns * (m.trace->events[i].kind + 1);
    struct view v = traced_view(m.trace);
    const struct event *e = m.trace->events;
    for (int32_t i = 1; i < v.device; i++)
        if (i != v.python && e[i].track == e[i - 1].track)
            assert_true(in_order(&e[i - 1], &e[i]));
        else if (i != v.python)
            assert_true(e[i].track > e[i - 1].track);
    for (int32_t i = v.device + 1; i < v.device + v.n_device; i++)
        assert_true(e[i].start_ns >= e[i - 1].start_ns);
    for (int32_t i = 0; i < m.trace->n; i++) {
        after += e[i].start_ns * (e[i].kind + 1);
        assert_int_equal(i >= v.device && i < v.device + v.n_device, e[i].kind == EVENT_KERNEL || e[i].kind == EVENT_MEMCPY);
        assert_int_equal(i >= v.python && i < v.device, e[i].kind == EVENT_PYTHON);
    }
    assert_true(sum == after);                  /* none was lost */
    view_release(&v);
    trace_free(m.trace);
}

/* Each event's parent by looking at all others. */
static int32_t parent_by_hand(const struct view *v, int32_t i)
{
    for (int32_t j = i - 1; j >= 0 && view_event(v, j)->track == view_event(v, i)->track; j--)
        if (event_end(view_event(v, j)) > view_event(v, i)->start_ns)
            return j;
    return -1;
}

static void add_nested(struct traced *m, uint64_t *state, int depth)
{
    const int n = (int)(random_of(state) >> 33) % 4;
    for (int i = 0; i < n; i++) {
        traced_begin(m, EVENT_HOST_OP, "op");
        traced_idle(m, 1);
        if (depth < 6)
            add_nested(m, state, depth + 1);
        traced_idle(m, 1);
        traced_end(m);
    }
}

static void nested_calls_know_their_parent_and_end(void **state)
{
    (void)state;
    struct traced m = traced_new();
    uint64_t seed = 3;
    for (int thread = 1; thread <= 3; thread++) {
        traced_on_thread(&m, thread);
        m.now_us = 0;
        for (int i = 0; i < 6; i++)
            add_nested(&m, &seed, 0);
    }
    struct view v = traced_view(m.trace);
    assert_true(v.n_host > 100);
    for (int32_t i = 0; i < v.n_host; i++) {
        assert_int_equal(v.parent[i], parent_by_hand(&v, i));
        for (int32_t j = i + 1; j < v.n_host; j++) {
            const bool inside = view_event(&v, j)->track == view_event(&v, i)->track &&
                                view_event(&v, j)->start_ns < event_end(view_event(&v, i));
            if (inside != (j < v.end[i]))
                fail_msg("event %d is inside %d: %d, and its end is %d", j, i, inside, v.end[i]);
        }
    }
    view_release(&v);
    trace_free(m.trace);
}

/* Walks up and down the nesting stay short in a file whose calls are all inside each other. */
static void nesting_has_a_bound(void **state)
{
    (void)state;
    enum { CALLS = 3000 };
    struct traced m = traced_new();
    for (int i = 0; i < CALLS; i++)
        traced_at(&m, EVENT_HOST_OP, "op", i, 3 * CALLS - 2 * i);
    struct view v = traced_view(m.trace);
    int32_t deepest = 0, depth[CALLS];
    for (int32_t i = 0; i < v.n_host; i++) {
        depth[i] = v.parent[i] < 0 ? 1 : depth[v.parent[i]] + 1;
        deepest = depth[i] > deepest ? depth[i] : deepest;
        assert_true(v.parent[i] < i && v.end[i] > i);
        assert_true(v.parent[i] < 0 || v.end[i] <= v.end[v.parent[i]]);
    }
    assert_int_equal(v.n_host, CALLS);
    assert_in_range(deepest, 200, 300);
    view_release(&v);
    trace_free(m.trace);
}

static void equal_times_nest_as_written_and_calls_inside_ops(void **state)
{
    (void)state;
    struct traced m = traced_new();
    traced_at(&m, EVENT_RUNTIME, "cudaLaunchKernel", 5, 10);
    traced_at(&m, EVENT_HOST_OP, "outer", 5, 10);
    traced_at(&m, EVENT_HOST_OP, "inner", 5, 10);
    traced_at(&m, EVENT_ANNOTATION, "range", 5, 10);
    struct view v = traced_view(m.trace);
    static const char *const names[] = {"range", "outer", "inner", "cudaLaunchKernel"};
    for (int32_t i = 0; i < 4; i++) {
        assert_string_equal(view_name(&v, i), names[i]);
        assert_int_equal(v.parent[i], i - 1);
        assert_int_equal(v.end[i], 4);
    }
    assert_int_equal(view_op_around(&v, 3), 2);
    assert_int_equal(view_op_around(&v, 0), -1);
    view_release(&v);
    trace_free(m.trace);
}

static void jitter_and_late_annotations_do_not_adopt(void **state)
{
    (void)state;
    struct traced m = traced_new();
    traced_at(&m, EVENT_HOST_OP, "op", 0, 10);
    traced_at(&m, EVENT_RUNTIME, "cudaMemsetAsync", 8, 2.2);       /* ends 200 ns after its op */
    traced_at(&m, EVENT_HOST_OP, "next", 10.1, 5);                  /* starts before that */
    traced_at(&m, EVENT_HOST_OP, "collective", 20, 10);
    traced_at(&m, EVENT_ANNOTATION, "nccl:all_reduce", 22, 500);    /* ends when the work does */
    traced_at(&m, EVENT_HOST_OP, "later", 40, 10);
    traced_at(&m, EVENT_ANNOTATION, "range", 600, 10);
    traced_at(&m, EVENT_HOST_OP, "long", 605, 100);                 /* outlasts the range it starts in */
    traced_at(&m, EVENT_HOST_OP, "in long", 650, 10);
    struct view v = traced_view(m.trace);
    assert_int_equal(v.parent[traced_find(&v, "cudaMemsetAsync")], traced_find(&v, "op"));
    assert_int_equal(v.parent[traced_find(&v, "next")], -1);
    assert_int_equal(v.parent[traced_find(&v, "nccl:all_reduce")], traced_find(&v, "collective"));
    assert_int_equal(v.parent[traced_find(&v, "later")], -1);
    assert_int_equal(v.parent[traced_find(&v, "long")], -1);
    assert_int_equal(v.parent[traced_find(&v, "in long")], traced_find(&v, "long"));
    view_release(&v);
    trace_free(m.trace);
}

/* ---- launches ---- */

static void work_is_linked_to_its_call(void **state)
{
    (void)state;
    struct traced m = traced_new();
    traced_run(&m, "aten::mm", 20, "gemm", 50);
    const int64_t graph = traced_work_at(&m, "cudaGraphLaunch", 100, 5, EVENT_KERNEL, "first", 110, 5);
    const int64_t link = m.trace->events[graph].link;
    traced_get(&m, traced_at(&m, EVENT_KERNEL, "third", 130, 5))->link = link;
    traced_get(&m, traced_at(&m, EVENT_MEMSET, "second", 120, 5))->link = link;
    traced_get(&m, traced_at(&m, EVENT_KERNEL, "earlier", 1, 5))->link = 999;       /* launched before the trace */
    traced_at(&m, EVENT_KERNEL, "unknown", 2, 5);
    struct view v = traced_view(m.trace);
    const int32_t launch = traced_find(&v, "cudaLaunchKernel"), gemm = traced_find(&v, "gemm");
    assert_int_equal(v.launched[launch], gemm);
    assert_int_equal(v.launch[gemm - v.device], launch);
    assert_int_equal(v.next_launched[gemm - v.device], -1);
    int32_t at = v.launched[traced_find(&v, "cudaGraphLaunch")];
    static const char *const order[] = {"first", "second", "third"};
    for (int i = 0; i < 3; i++, at = v.next_launched[at - v.device])
        assert_string_equal(view_name(&v, at), order[i]);
    assert_int_equal(at, -1);
    assert_int_equal(v.launch[traced_find(&v, "earlier") - v.device], -1);
    assert_int_equal(v.launch[traced_find(&v, "unknown") - v.device], -1);
    view_release(&v);
    trace_free(m.trace);
}

static void of_calls_with_one_number_the_launch_before_the_work_is_taken(void **state)
{
    (void)state;
    struct traced m = traced_new();
    traced_work_at(&m, "cudaLaunchKernel", 10, 5, EVENT_KERNEL, "a", 20, 5);
    traced_on_thread(&m, 2);                                        /* of another process with the same numbers */
    traced_get(&m, traced_at(&m, EVENT_RUNTIME, "cuLaunchKernel", 100, 5))->link = 1;
    traced_get(&m, traced_at(&m, EVENT_KERNEL, "b", 120, 5))->link = 1;
    traced_get(&m, traced_at(&m, EVENT_RUNTIME, "cudaEventQuery", 110, 5))->link = 1;
    struct view v = traced_view(m.trace);
    assert_string_equal(view_name(&v, v.launch[traced_find(&v, "a") - v.device]), "cudaLaunchKernel");
    assert_string_equal(view_name(&v, v.launch[traced_find(&v, "b") - v.device]), "cuLaunchKernel");
    view_release(&v);
    trace_free(m.trace);
}

/* Two processes with the same numbers at the same times: each device is one's. */
static void work_of_merged_processes_goes_to_its_own(void **state)
{
    (void)state;
    struct traced m = traced_new();
    const int process[] = {m.host, traced_track(&m, TRACK_HOST_THREAD, 2, 1)}, device[] = {m.stream, traced_track(&m, TRACK_DEVICE_STREAM, 1, 7)};
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 2; k++) {
            m.host = process[k];
            m.stream = device[k];
            traced_get(&m, traced_at(&m, EVENT_RUNTIME, "cudaLaunchKernel", 100 * i, 5))->link = i;
            traced_get(&m, traced_at(&m, EVENT_KERNEL, "gemm", 100 * i + 10, 50))->link = i;
        }
    struct view v = traced_view(m.trace);
    assert_int_equal(v.n_processes, 2);
    for (int i = 0; i < v.n_device; i++) {
        assert_true(v.launch[i] >= 0);
        const struct trace_track *host = &m.trace->tracks[view_event(&v, v.launch[i])->track], *stream = &m.trace->tracks[view_event(&v, v.device + i)->track];
        assert_int_equal(host->pid, stream->pid + 1);
    }
    for (int i = 0; i < v.n_host; i++)
        assert_true(v.launched[i] >= 0);
    view_release(&v);
    trace_free(m.trace);
}

/* ---- steps ---- */

static void host_events_go_by_time_and_device_events_by_launch(void **state)
{
    (void)state;
    struct traced m = traced_new();
    traced_step_at(&m, 5, 100, 100);
    traced_step_at(&m, 6, 200, 100);
    traced_work_at(&m, "cudaLaunchKernel", 150, 5, EVENT_KERNEL, "late", 250, 100);
    traced_at(&m, EVENT_HOST_OP, "before", 50, 10);
    traced_on_thread(&m, 2);
    traced_at(&m, EVENT_HOST_OP, "second", 200, 10);
    traced_get(&m, traced_at(&m, EVENT_KERNEL, "earlier", 120, 5))->link = 999;
    struct view v = traced_view(m.trace);
    assert_int_equal(v.n_steps, 2);
    assert_false(v.no_step_marks);
    assert_int_equal(v.steps[0].number, 5);
    assert_int_equal(v.steps[0].device_end_ns, 350000);
    assert_int_equal(v.steps[1].device_end_ns, v.steps[1].start_ns);
    assert_int_equal(view_event(&v, traced_find(&v, "late"))->step, 0);
    assert_int_equal(view_event(&v, traced_find(&v, "before"))->step, -1);
    assert_int_equal(view_event(&v, traced_find(&v, "second"))->step, 1);
    assert_int_equal(view_event(&v, traced_find(&v, "earlier"))->step, -1);
    view_release(&v);
    trace_free(m.trace);
}

static void a_step_marked_twice_is_one(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int thread = 1; thread <= 2; thread++) {
        traced_on_thread(&m, thread);
        traced_step_at(&m, 1, 10 + thread, 90);
        traced_step_at(&m, 2, 110 + thread, 90);
    }
    traced_get(&m, traced_at(&m, EVENT_STEP, "ProfilerStep#3", 300, 0))->step = 3;      /* without length: no step */
    traced_at(&m, EVENT_HOST_OP, "op", 20, 5);
    struct view v = traced_view(m.trace);
    assert_int_equal(v.n_steps, 2);
    assert_int_equal(v.steps[0].start_ns, 11000);
    assert_int_equal(v.steps[0].end_ns, 102000);
    view_release(&v);
    trace_free(m.trace);
}

static void without_marks_the_devices_time_is_a_step(void **state)
{
    (void)state;
    struct traced m = traced_new();
    traced_at(&m, EVENT_HOST_OP, "no time", 0, 0);
    traced_at(&m, EVENT_HOST_OP, "op", 1000, 20);
    traced_work_at(&m, "cudaLaunchKernel", 1005, 5, EVENT_KERNEL, "k", 1100, 40);
    struct view v = traced_view(m.trace);
    assert_true(v.no_step_marks);
    assert_int_equal(v.n_steps, 1);
    assert_int_equal(v.steps[0].number, 0);
    assert_int_equal(v.first_ns, 1000000);
    assert_int_equal(v.last_ns, 1140000);
    assert_int_equal(v.steps[0].start_ns, 1100000);
    assert_int_equal(view_event(&v, traced_find(&v, "op"))->step, -1);              /* it began before the launch */
    assert_int_equal(view_event(&v, traced_find(&v, "cudaLaunchKernel"))->step, 0);
    assert_int_equal(view_event(&v, traced_find(&v, "k"))->step, 0);
    view_release(&v);
    trace_free(m.trace);
}

static void without_launches_device_events_go_by_time(void **state)
{
    (void)state;
    struct traced m = traced_new();
    traced_step_at(&m, 1, 0, 100);
    traced_at(&m, EVENT_KERNEL, "in", 50, 10);
    traced_at(&m, EVENT_KERNEL, "out", 150, 10);
    struct view v = traced_view(m.trace);
    assert_int_equal(view_event(&v, traced_find(&v, "in"))->step, 0);
    assert_int_equal(view_event(&v, traced_find(&v, "out"))->step, -1);
    view_release(&v);
    trace_free(m.trace);
}

/* ---- kinds ---- */

static void kernels_are_told_by_words(void **state)
{
    (void)state;
    static const struct { const char *name; enum kernel_kind kind; } cases[] = {
        {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", KERNEL_GEMM},
        {"nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT", KERNEL_GEMM},
        {"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16>", KERNEL_GEMM},
        {"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64", KERNEL_GEMM},
        {"ampere_sgemm_32x128_nt", KERNEL_GEMM},
        {"void fbgemm_gpu::permute_2D_lengths_kernel<int>", KERNEL_COPY},
        {"void fbgemm_gpu::split_embedding_codegen_forward_unweighted_kernel<float>", KERNEL_INDEX},
        {"void fbgemm_gpu::some_kernel<float>", KERNEL_OTHER},
        {"void cublasLt::splitKreduce_kernel<32, 16, int>", KERNEL_GEMM},
        {"void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, cutlass::bfloat16_t>>", KERNEL_ATTENTION},
        {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16", KERNEL_ATTENTION},
        {"fmha_cutlassF_bf16_aligned_64x64_rf_sm80", KERNEL_ATTENTION},
        {"void (anonymous namespace)::softmax_warp_forward<float>", KERNEL_SOFTMAX},
        {"void at::native::vectorized_layer_norm_kernel<float>", KERNEL_NORM},
        {"void cudnn::bn_fw_tr_1C11_singleread<float, 512>", KERNEL_NORM},
        {"_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdE", KERNEL_NORM},
        {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", KERNEL_COMM},
        {"void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>", KERNEL_COMM},
        {"ncclDevKernel_ReduceScatter_Sum_f32", KERNEL_COMM},
        {"void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>", KERNEL_OPTIMIZER},
        {"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>", KERNEL_FILL},
        {"void at::native::elementwise_kernel<at::native::masked_fill_kernel(at::TensorIterator&)>", KERNEL_ELEMENTWISE},
        {"void at::native::fused_dropout_kernel_vec<float>", KERNEL_DROPOUT},
        {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>", KERNEL_REDUCE},
        {"void at::native::indexSelectLargeIndex<float>", KERNEL_INDEX},
        {"void at::native::embedding_backward_feature_kernel<float>", KERNEL_INDEX},
        {"void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda, LoadWithCast<1>>", KERNEL_CAST},
        {"void at::native::elementwise_kernel<at::native::direct_copy_kernel_cuda(float)>", KERNEL_COPY},
        {"void at::native::CatArrayBatchedCopy<float>", KERNEL_COPY},
        {"sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32", KERNEL_CONV},
        {"igemm_fwd_gtcx2_nhwc_bf16_bx0_ex1", KERNEL_CONV},
        {"cudnn_infer_volta_scudnn_winograd_128x128_ldg1", KERNEL_CONV},
        {"triton_poi_fused_add_softmax_gelu_3", KERNEL_ELEMENTWISE},
        {"triton_red_fused_sum_1", KERNEL_REDUCE},
        {"triton_per_fused_native_layer_norm_0", KERNEL_NORM},
        {"void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>", KERNEL_ELEMENTWISE},
        {"my_kernel", KERNEL_OTHER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (kind_of_kernel(cases[i].name) != cases[i].kind)
            fail_msg("'%s' is %s; it should be %s", cases[i].name, kernel_kind_names[kind_of_kernel(cases[i].name)],
                     kernel_kind_names[cases[i].kind]);
    for (int k = 0; k < KERNEL_KINDS; k++)
        assert_non_null(kernel_kind_names[k]);
}

static void calls_are_told_whatever_their_maker(void **state)
{
    (void)state;
    static const struct { const char *name; enum call_kind kind; } cases[] = {
        {"cudaLaunchKernel", CALL_LAUNCH},          {"cudaLaunchKernelExC", CALL_LAUNCH},
        {"cuLaunchKernelEx", CALL_LAUNCH},          {"hipExtModuleLaunchKernel", CALL_LAUNCH},
        {"cudaLaunchCooperativeKernel", CALL_LAUNCH}, {"zeCommandListAppendLaunchKernel", CALL_LAUNCH},
        {"cudaGraphLaunch", CALL_GRAPH},            {"hipGraphLaunch", CALL_GRAPH},
        {"cudaMemcpyAsync", CALL_COPY},             {"hipMemcpyWithStream", CALL_COPY},
        {"cuMemcpyHtoDAsync_v2", CALL_COPY},        {"zeCommandListAppendMemoryCopy", CALL_COPY},
        {"cudaMemsetAsync", CALL_FILL},             {"cudaDeviceSynchronize", CALL_SYNC_DEVICE},
        {"hipStreamSynchronize", CALL_SYNC_STREAM}, {"cudaEventSynchronize", CALL_SYNC_EVENT},
        {"cudaStreamWaitEvent", CALL_STREAM_WAIT},  {"cudaEventRecordWithFlags", CALL_EVENT_RECORD},
        {"cudaMalloc", CALL_MALLOC},                {"cudaMallocAsync", CALL_MALLOC},
        {"cuMemCreate", CALL_MALLOC},               {"cudaFree", CALL_FREE},
        {"hipFreeAsync", CALL_FREE},                {"cudaHostAlloc", CALL_HOST_ALLOC},
        {"hipHostMalloc", CALL_HOST_ALLOC},         {"cudaMallocHost", CALL_HOST_ALLOC},
        {"cudaEventQuery", CALL_OTHER},             {"cudaStreamIsCapturing", CALL_OTHER},
        {"cudaFuncGetAttributes", CALL_OTHER},      {"cudaPeekAtLastError", CALL_OTHER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (kind_of_call(cases[i].name) != cases[i].kind)
            fail_msg("'%s' is kind %d; it should be %d", cases[i].name, kind_of_call(cases[i].name), cases[i].kind);
}

static void the_op_decides_where_the_name_does_not(void **state)
{
    (void)state;
    struct traced m = traced_new();
    traced_run(&m, "aten::bmm", 20, "mystery_1", 5);
    traced_run(&m, "aten::_efficient_attention_forward", 20, "mystery_2", 5);
    traced_run(&m, "aten::frobnicate", 20, "mystery_3", 5);
    const int64_t same = traced_run(&m, "aten::copy_", 20, "direct_copy_kernel_cuda_1", 5);
    traced_inputs(&m, same, NULL, "[\"float\", \"float\", \"\"]");
    const int64_t other = traced_run(&m, "aten::copy_", 20, "direct_copy_kernel_cuda_2", 5);
    traced_inputs(&m, other, NULL, "[\"c10::BFloat16\", \"float\", \"\"]");
    traced_begin(&m, EVENT_HOST_OP, "aten::_to_copy");
    traced_run(&m, "aten::copy_", 20, "direct_copy_kernel_cuda_3", 5);
    traced_end(&m);
    traced_run(&m, "aten::copy_", 20, "direct_copy_kernel_cuda_4", 5);
    traced_copy(&m, "Memcpy HtoD (Pageable -> Device)", 64, 3);
    struct view v = traced_view(m.trace);
    static const struct { const char *name; enum kernel_kind kind; } cases[] = {
        {"mystery_1", KERNEL_GEMM},                 {"mystery_2", KERNEL_ATTENTION},
        {"mystery_3", KERNEL_OTHER},                {"direct_copy_kernel_cuda_1", KERNEL_COPY},
        {"direct_copy_kernel_cuda_2", KERNEL_CAST}, {"direct_copy_kernel_cuda_3", KERNEL_CAST},
        {"direct_copy_kernel_cuda_4", KERNEL_COPY}, {"Memcpy HtoD (Pageable -> Device)", KERNEL_COPY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (view_kernel_kind(&v, traced_find(&v, cases[i].name)) != cases[i].kind)
            fail_msg("'%s' should be %s", cases[i].name, kernel_kind_names[cases[i].kind]);
    view_release(&v);
    trace_free(m.trace);
}

static void copies_that_are_not_asynchronous_wait(void **state)
{
    (void)state;
    struct traced m = traced_new();
    static const char *const calls[] = {"cudaMemcpyAsync", "cudaLaunchKernel", "cudaMemcpy", "hipMemcpyWithStream", "cudaEventSynchronize"};
    for (int i = 0; i < 5; i++)
        traced_at(&m, EVENT_RUNTIME, calls[i], 10 * i, 5);
    struct view v = traced_view(m.trace);
    for (int32_t i = 0; i < 5; i++)
        assert_int_equal(view_call_waits(&v, i), i >= 2);
    view_release(&v);
    trace_free(m.trace);
}

/* ---- Python ---- */

static void the_users_frame_is_found(void **state)
{
    (void)state;
    struct traced m = traced_new();
    traced_at(&m, EVENT_PYTHON, "train.py(80): <module>", 0, 1000);
    traced_at(&m, EVENT_PYTHON, "train.py(12): step", 100, 500);
    for (int i = 0; i < 50; i++)
        traced_at(&m, EVENT_PYTHON, "<built-in method append of list object at 0x7f>", 110 + i, 0.5);
    traced_at(&m, EVENT_PYTHON, "nn.Module: Linear_3", 200, 100);
    traced_at(&m, EVENT_PYTHON, "torch/nn/modules/linear.py(124): forward", 210, 80);
    traced_at(&m, EVENT_HOST_OP, "aten::mm", 220, 10);
    traced_on_thread(&m, 2);
    traced_at(&m, EVENT_PYTHON, "other.py(1): run", 0, 1000);
    struct view v = traced_view(m.trace);
    const int track = view_event(&v, traced_find(&v, "aten::mm"))->track;
    assert_string_equal(view_name(&v, view_python_at(&v, track, 225000, false)), "train.py(12): step");
    assert_string_equal(view_name(&v, view_python_at(&v, track, 225000, true)), "torch/nn/modules/linear.py(124): forward");
    assert_string_equal(view_name(&v, view_python_at(&v, track, 700000, true)), "train.py(80): <module>");
    assert_string_equal(view_name(&v, view_python_at(&v, track, 190000, false)), "train.py(12): step");
    assert_int_equal(view_python_at(&v, track, 1000000, true), -1);
    assert_int_equal(view_python_at(&v, 77, 225000, true), -1);
    view_release(&v);
    trace_free(m.trace);
}

/* ---- odd traces ---- */

static void impossible_times_are_made_possible(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < 6; i++)
        traced_at(&m, i % 2 ? EVENT_KERNEL : EVENT_HOST_OP, "x", i, 1);
    m.trace->events[0].duration_ns = -5;
    m.trace->events[1].duration_ns = INT64_MAX;
    m.trace->events[2].start_ns = INT64_MAX;
    m.trace->events[3].start_ns = INT64_MIN;
    m.trace->events[4].track = 99;
    struct view v = traced_view(m.trace);
    for (int64_t i = 0; i < m.trace->n; i++)
        assert_true(m.trace->events[i].duration_ns >= 0 && event_end(&m.trace->events[i]) >= m.trace->events[i].start_ns);
    assert_int_equal(v.n_host, 2);              /* the one on a track that is not there is left out */
    struct diagnosis d = traced_numbers(&v);
    arena_release(&d.arena);
    view_release(&v);
    trace_free(m.trace);
}

static void a_trace_without_calls_and_work_is_refused(void **state)
{
    (void)state;
    struct traced m = traced_new();
    struct error err;
    struct view v;
    traced_at(&m, EVENT_PYTHON, "train.py(1): <module>", 0, 10);
    assert_int_equal(view_init(&v, m.trace, &err), BAD_INPUT);
    assert_says(&err, "test", "ProfilerActivity", NULL);
    view_release(&v);
    trace_free(m.trace);
}

static void a_trace_of_text_becomes_a_view(void **state)
{
    (void)state;
    struct trace *t = traced_json(
        "{\"traceEvents\": ["
        "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"pid\": 0, \"tid\": 7, \"ts\": 130.5, \"dur\": 40,"
        " \"args\": {\"correlation\": 9, \"device\": 0, \"stream\": 7}},"
        "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 1, \"tid\": 1, \"ts\": 112, \"dur\": 4,"
        " \"args\": {\"correlation\": 9}},"
        "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"pid\": 1, \"tid\": 1, \"ts\": 110, \"dur\": 10},"
        "{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#3\", \"pid\": 1, \"tid\": 1, \"ts\": 100, \"dur\": 50}]}");
    struct view v = traced_view(t);
    assert_int_equal(v.n_steps, 1);
    assert_int_equal(v.steps[0].number, 3);
    assert_int_equal(v.steps[0].device_end_ns, 170500);
    assert_string_equal(view_name(&v, view_op_around(&v, v.launch[0])), "aten::mm");
    view_release(&v);
    trace_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_sorted_by_group_track_and_start),
        cmocka_unit_test(nested_calls_know_their_parent_and_end),
        cmocka_unit_test(nesting_has_a_bound),
        cmocka_unit_test(equal_times_nest_as_written_and_calls_inside_ops),
        cmocka_unit_test(jitter_and_late_annotations_do_not_adopt),
        cmocka_unit_test(work_is_linked_to_its_call),
        cmocka_unit_test(of_calls_with_one_number_the_launch_before_the_work_is_taken),
        cmocka_unit_test(work_of_merged_processes_goes_to_its_own),
        cmocka_unit_test(host_events_go_by_time_and_device_events_by_launch),
        cmocka_unit_test(a_step_marked_twice_is_one),
        cmocka_unit_test(without_marks_the_devices_time_is_a_step),
        cmocka_unit_test(without_launches_device_events_go_by_time),
        cmocka_unit_test(kernels_are_told_by_words),
        cmocka_unit_test(calls_are_told_whatever_their_maker),
        cmocka_unit_test(the_op_decides_where_the_name_does_not),
        cmocka_unit_test(copies_that_are_not_asynchronous_wait),
        cmocka_unit_test(the_users_frame_is_found),
        cmocka_unit_test(impossible_times_are_made_possible),
        cmocka_unit_test(a_trace_without_calls_and_work_is_refused),
        cmocka_unit_test(a_trace_of_text_becomes_a_view),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
