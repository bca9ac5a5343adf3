/* A trace by ops against the device's peaks, by modules and ranges, by Python functions; names of kernels shortened to what differs. */
#include "unit/trace_models.h"

#include "analyze/traced/study.h"

static void name_device(struct trace *t, const char *name)
{
    t->devices = xrealloc(t->devices, sizeof *t->devices);
    t->devices[0] = (struct trace_device){.name = trace_name(t, name), .major = 9, .multiprocessors = 132};
    t->n_devices = 1;
}

static const struct trace_roof *roof(const struct diagnosis *d, const char *op)
{
    for (int i = 0; i < d->n_roofs; i++)
        if (!strcmp(d->roofs[i].op, op))
            return &d->roofs[i];
    fail_msg("no row for '%s'", op);
    return NULL;
}

/* ---- roofline ---- */

/* One product of 2 x 1024^3, of 10 µs, and a sum of two tensors of 8 MB in 10 µs, in each of four steps of 100 µs. */
static struct trace *two_ops(void)
{
    struct traced m = traced_new();
    for (int i = 0; i < 4; i++) {
        traced_step_begin(&m, i);
        traced_inputs(&m, traced_run(&m, "aten::mm", 40, "nvjet_gemm", 10), "[[1024, 1024], [1024, 1024]]", "[\"c10::BFloat16\", \"c10::BFloat16\"]");
        traced_inputs(&m, traced_run(&m, "aten::add", 40, "vectorized_elementwise_kernel", 10), "[[2048, 1024], [2048, 1024], []]",
                      "[\"float\", \"float\", \"Scalar\"]");
        traced_idle(&m, 20);
        traced_step_end(&m);
    }
    return m.trace;
}

static void ops_are_held_against_the_peaks_of_the_device(void **state)
{
    (void)state;
    struct trace *t = two_ops();
    name_device(t, "NVIDIA H200");
    struct judged j = trace_judge(t, 100);
    const struct trace_roof *mm = roof(&j.d, "aten::mm"), *add = roof(&j.d, "aten::add");
    const double flops = 2.0 * 1024 * 1024 * 1024, bytes = 3 * 2048.0 * 1024 * 4;
    assert_near(mm->count, 1, 1e-9, "calls per step");
    assert_near(mm->flops, flops, 1, "FLOPs");
    assert_near(mm->bytes, 3 * 1024.0 * 1024 * 2, 1, "bytes");
    assert_near(mm->tflops, flops / 10e-6 / 1e12, 1e-6, "TFLOP/s");
    assert_near(mm->percent, 100 * flops / 10e-6 / 989e12, 1e-6, "of the peak of 16 bits");
    assert_false(mm->by_memory);
    assert_near(add->gbps, bytes / 10e-6 / 1e9, 1e-6, "GB/s: both are read, one is written");
    assert_near(add->percent, 100 * bytes / 10e-6 / 4800e9, 1e-6, "of the memory's");
    assert_true(add->by_memory && !(add->flops > 0));
    assert_near(j.d.mfu_percent, 100 * flops / 100e-6 / 989e12, 1e-6, "MFU in the step that was given");
    assert_string_equal(j.d.peaks.numbers, "16 bits");
    judged_release(&j);
}

/* A name inside of another is another device. */
static void peaks_are_found_by_whole_words(void **state)
{
    (void)state;
    static const struct { const char *device; double bf16, gbps; } cases[] = {
        {"NVIDIA L4", 121, 300}, {"NVIDIA L40", 181, 864}, {"NVIDIA L40S", 362, 864}, {"NVIDIA A40", 149.7, 696}, {"NVIDIA RTX A4000", 0, 0},
        {"NVIDIA A100-SXM4-40GB", 312, 1555}, {"NVIDIA A100-SXM4-80GB", 312, 2039}, {"NVIDIA A10G", 70, 600}, {"NVIDIA A10", 125, 600},
        {"NVIDIA H100 80GB HBM3", 989, 3350}, {"NVIDIA H200", 989, 4800}, {"NVIDIA GH200 480GB", 989, 4000}, {"Tesla V100-SXM2-16GB", 125, 900}, {"Tesla T4", 65, 320},
        {"Quadro T400", 0, 0}, {"NVIDIA GeForce RTX 4090", 165.2, 1008}, {"NVIDIA GeForce RTX 4090 Laptop GPU", 0, 0},
        {"AMD Instinct MI300X", 1307, 5300}, {"AMD Instinct MI250X/MI250", 191.5, 1638}, {"unknown device", 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct device_peak p = device_peak(cases[i].device);
        assert_near(p.tflops[PEAK_16], cases[i].bf16, 0, cases[i].device);
        assert_near(p.gbps, cases[i].gbps, 0, cases[i].device);
    }
}

/* Products of two devices are held against the peaks of both; an op against that of the one it ran on. */
static void a_step_of_two_devices_has_two_peaks(void **state)
{
    (void)state;
    struct traced m = traced_new();
    const int own = m.stream;
    for (int i = 0; i < 4; i++) {
        traced_step_begin(&m, i);
        for (int device = 0; device < 2; device++) {
            m.stream = device ? traced_track(&m, TRACK_DEVICE_STREAM, 1, 7) : own;
            traced_inputs(&m, traced_run(&m, "aten::mm", 40, "nvjet_gemm", 10), "[[1024, 1024], [1024, 1024]]", "[\"c10::BFloat16\", \"c10::BFloat16\"]");
        }
        traced_step_end(&m);
    }
    name_device(m.trace, "NVIDIA H200");
    struct judged j = trace_judge(m.trace, 100);
    const double flops = 2.0 * 1024 * 1024 * 1024;
    assert_near(roof(&j.d, "aten::mm")->percent, 100 * flops / 10e-6 / 989e12, 1e-6, "of one device's peak");
    assert_near(j.d.mfu_percent, 100 * 2 * flops / 100e-6 / (2 * 989e12), 1e-6, "MFU of two devices");
    assert_int_equal(j.d.peaks.devices, 2);
    judged_release(&j);
}

/* A product in parts is two kernels, of which the short one says nothing of the numbers that were multiplied; and nothing is above a peak. */
static void a_product_in_parts_has_the_peak_of_its_product(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < 4; i++) {
        traced_step_begin(&m, i);
        const int64_t op = traced_begin(&m, EVENT_HOST_OP, "aten::mm");
        traced_launch(&m, "cutlass_80_tensorop_s1688gemm_128x128", 18);
        traced_launch(&m, "splitKreduce_kernel<float>", 2);
        traced_end(&m);
        traced_inputs(&m, op, "[[1024, 1024], [1024, 1024]]", "[\"float\", \"float\"]");
        traced_inputs(&m, traced_run(&m, "aten::add", 40, "vectorized_elementwise_kernel", 1), "[[2048, 1024], [2048, 1024], []]",
                      "[\"float\", \"float\", \"Scalar\"]");
        traced_step_end(&m);
    }
    name_device(m.trace, "NVIDIA H200");
    struct judged j = trace_judge(m.trace, 100);
    assert_near(roof(&j.d, "aten::mm")->percent, 100 * 2.0 * 1024 * 1024 * 1024 / 20e-6 / 495e12, 0.1, "of the peak of TF32");
    assert_string_equal(j.d.peaks.numbers, "TF32");
    assert_near(roof(&j.d, "aten::add")->percent, -1, 0, "faster than memory: it was in a cache");
    judged_release(&j);
}

static void peaks_that_are_given_count(void **state)
{
    (void)state;
    struct trace *t = two_ops();
    struct diagnosis d;
    struct error err;
    const struct diagnose_options unknown = {.step_us = 100}, given = {.step_us = 100, .peak_tflops = 500, .peak_gbps = 4000};
    assert_ok(diagnose(&d, &t, 1, &unknown, &err), err);
    assert_near(d.mfu_percent, -1, 0, "a device without a name has no peak");
    assert_near(roof(&d, "aten::mm")->percent, -1, 0, "of no peak");
    assert_true(roof(&d, "aten::mm")->tflops > 0);
    diagnosis_release(&d);
    assert_ok(diagnose(&d, &t, 1, &given, &err), err);
    assert_near(roof(&d, "aten::mm")->percent, 100 * 2.0 * 1024 * 1024 * 1024 / 10e-6 / 500e12, 1e-6, "of what was given");
    assert_true(d.peaks.given);
    diagnosis_release(&d);
    trace_free(t);
}

/* A product of 2 x 512^3 in f32 within aten::linear, one in bf16, a convolution, and one whose arithmetic is not known. */
static struct trace *cpu_ops(double unknown_us)
{
    struct traced m = traced_new();
    for (int i = 0; i < 4; i++) {
        traced_step_begin(&m, i);
        traced_inputs(&m, traced_begin(&m, EVENT_HOST_OP, "aten::linear"), "[[512, 512], [512, 512], [512]]", "[\"float\", \"float\", \"float\"]");
        traced_inputs(&m, traced_op(&m, "aten::addmm", 1000), "[[512], [512, 512], [512, 512], [], []]", "[\"float\", \"float\", \"float\", \"Scalar\", \"Scalar\"]");
        traced_end(&m);
        traced_inputs(&m, traced_op(&m, "aten::mm", 500), "[[512, 512], [512, 512]]", "[\"c10::BFloat16\", \"c10::BFloat16\"]");
        const int64_t conv = traced_op(&m, "aten::mkldnn_convolution", 400);
        traced_inputs(&m, conv, "[[8, 16, 32, 32], [64, 16, 3, 3], [], [], [], [], []]", "[\"float\", \"float\", \"\"]");
        traced_args(&m, conv)->values = trace_name(m.trace, "[\"\", \"\", \"\", \"[1, 1]\", \"[2, 2]\", \"[1, 1]\", \"1\"]");
        traced_inputs(&m, traced_op(&m, "mkldnn::_linear_pointwise", unknown_us), "[[8, 512, 512], [512, 512], [512]]", "[\"float\", \"float\", \"float\"]");
        traced_idle(&m, 100);
        traced_step_end(&m);
    }
    return m.trace;
}

static void ops_of_a_cpu_are_held_against_what_was_measured_of_it(void **state)
{
    (void)state;
    struct diagnosis d;
    struct error err;
    const double mm = 2.0 * 512 * 512 * 512, conv = 2.0 * 8 * 64 * 16 * 16 * 16 * 9;
    for (int much = 0; much < 2; much++) {
        struct trace *t = cpu_ops(much ? 3000 : 1);
        const struct diagnose_options options = {.step_us = 2001, .cpu = {.f32_tflops = 0.5, .bf16_tflops = 1, .gbps = 50}};
        assert_ok(diagnose(&d, &t, 1, much ? NULL : &options, &err), err);
        assert_near(roof(&d, "aten::addmm")->flops, mm, 1, "its FLOPs");
        assert_near(roof(&d, "aten::mkldnn_convolution")->flops, conv, 1, "a convolution's");
        assert_near(d.products_flops, 2 * mm + conv, 1, "those of linear are of what it calls");
        assert_true(much ? d.mfu_percent < 0 && d.mfu_at_least : !d.mfu_at_least);
        if (!much) {
            const struct trace_roof *f32 = roof(&d, "aten::addmm"), *bf16 = roof(&d, "aten::mm");
            assert_near(f32->percent, 100 * mm / (f32->device_us * 1e-6) / 0.5e12, 1e-6, "of the peak of f32");
            assert_near(bf16->percent, 100 * mm / (bf16->device_us * 1e-6) / 1e12, 1e-6, "of that of bf16");
            assert_true(fabs(f32->device_us - 1000) < 20 && fabs(bf16->device_us - 500) < 20);
            assert_near(d.mfu_percent, 100 * (2 * mm + conv) / 2001e-6 / 0.5e12, 1e-6, "MFU, by what most are of");
            assert_string_equal(d.peaks.numbers, "f32");
        }
        diagnosis_release(&d);
        trace_free(t);
    }
}

/* Attention by its math path: the products inside are the arithmetic. What makes views and room, and who calls others, moves nothing itself. */
static void what_a_cpu_does_inside_of_another_op_counts_once(void **state)
{
    (void)state;
    struct traced m = traced_new();
    const char *types = "[\"float\", \"float\", \"float\"]";
    for (int i = 0; i < 4; i++) {
        traced_step_begin(&m, i);
        traced_inputs(&m, traced_begin(&m, EVENT_HOST_OP, "aten::_scaled_dot_product_attention_math"), "[[8, 8, 128, 64], [8, 8, 128, 64], [8, 8, 128, 64]]", types);
        traced_inputs(&m, traced_op(&m, "aten::transpose", 2), "[[8, 8, 128, 64], [], []]", types);
        traced_inputs(&m, traced_op(&m, "aten::bmm", 300), "[[64, 128, 64], [64, 64, 128]]", types);
        traced_inputs(&m, traced_op(&m, "aten::bmm", 300), "[[64, 128, 128], [64, 128, 64]]", types);
        traced_idle(&m, 10);
        traced_end(&m);
        traced_inputs(&m, traced_begin(&m, EVENT_HOST_OP, "aten::layer_norm"), "[[1024, 512], [], [512]]", types);
        traced_inputs(&m, traced_begin(&m, EVENT_HOST_OP, "aten::native_layer_norm"), "[[1024, 512], [], [512]]", types);
        traced_inputs(&m, traced_op(&m, "aten::empty_like", 2), "[[1024, 512], [], []]", types);
        traced_idle(&m, 50);
        traced_end(&m);
        traced_idle(&m, 5);
        traced_end(&m);
        traced_inputs(&m, traced_begin(&m, EVENT_HOST_OP, "aten::addmm"), "[[512], [512, 512], [512, 512]]", types);
        traced_inputs(&m, traced_op(&m, "aten::copy_", 5), "[[512, 512], [512]]", types);        /* the bias, into the result */
        traced_idle(&m, 1000);
        traced_end(&m);
        traced_step_end(&m);
    }
    struct judged j = trace_judge(m.trace, 2000);
    const double attention = 2 * 2.0 * 64 * 128 * 64 * 128, linear = 2.0 * 512 * 512 * 512;
    assert_near(j.d.products_flops, attention + linear, 1, "each once");
    static const char *const hollow[] = {"aten::_scaled_dot_product_attention_math", "aten::transpose", "aten::layer_norm", "aten::empty_like"};
    for (size_t i = 0; i < sizeof hollow / sizeof *hollow; i++)
        for (int k = 0; k < j.d.n_roofs; k++)
            assert_string_not_equal(j.d.roofs[k].op, hollow[i]);
    assert_true(roof(&j.d, "aten::native_layer_norm")->bytes > 0 && roof(&j.d, "aten::copy_")->bytes > 0);
    judged_release(&j);
}

static void convolutions_and_attention_have_their_arithmetic(void **state)
{
    (void)state;
    struct traced m = traced_new();
    const char *types = "[\"float\", \"float\", \"float\"]";
    for (int i = 0; i < 4; i++) {
        traced_step_begin(&m, i);
        const int64_t conv = traced_run(&m, "aten::cudnn_convolution", 40, "implicit_gemm", 10);
        traced_inputs(&m, conv, "[[8, 16, 32, 32], [64, 16, 3, 3], []]", types);
        traced_args(&m, conv)->values = trace_name(m.trace, "[\"\", \"\", \"[1, 1]\", \"[2, 2]\", \"[1, 1]\", \"1\"]");
        traced_inputs(&m, traced_run(&m, "aten::convolution_backward", 40, "dgrad_engine<float>", 10),
                      "[[8, 64, 16, 16], [8, 16, 32, 32], [64, 16, 3, 3]]", types);
        traced_inputs(&m, traced_run(&m, "aten::_flash_attention_forward", 40, "flash_fwd_kernel", 10), "[[2, 128, 8, 64], [2, 256, 8, 64], [2, 256, 8, 64]]",
                      types);
        traced_step_end(&m);
    }
    struct judged j = trace_judge(m.trace, 0);
    const double conv = 2.0 * 8 * 64 * 16 * 16 * 16 * 9;
    assert_near(roof(&j.d, "aten::cudnn_convolution")->flops, conv, 1, "half of the places, 16 x 16");
    assert_near(roof(&j.d, "aten::convolution_backward")->flops, 2 * conv, 1, "two products");
    assert_near(roof(&j.d, "aten::_flash_attention_forward")->flops, 2 * 2.0 * 2 * 8 * 128 * 256 * 64, 1, "two products of all pairs");
    judged_release(&j);
}

static struct judged judge_strideless(double conv_us, double mm_us)
{
    struct traced m = traced_new();
    for (int i = 0; i < 4; i++) {
        traced_step_begin(&m, i);
        traced_inputs(&m, traced_run(&m, "aten::cudnn_convolution", 40, "implicit_gemm", conv_us), "[[8, 16, 32, 32], [64, 16, 3, 3], []]", F32);
        traced_inputs(&m, traced_run(&m, "aten::mm", 40, "nvjet_gemm", mm_us), "[[1024, 1024], [1024, 1024]]", F32);
        traced_inputs(&m, traced_run(&m, "aten::_cudnn_attention_forward", 40, "cudnn_flash_fprop", 1), "[[2, 8, 128, 64], [2, 8, 256, 64], [2, 8, 256, 64]]", BF16);
        traced_step_end(&m);
    }
    name_device(m.trace, "NVIDIA H200");
    return trace_judge(m.trace, 0);
}

/* Without strides nothing is known of a convolution's arithmetic. */
static void what_is_not_counted_makes_mfu_a_lower_bound_or_none(void **state)
{
    (void)state;
    struct judged some = judge_strideless(20, 50), most = judge_strideless(80, 50), few = judge_strideless(1, 50);
    assert_near(roof(&some.d, "aten::_cudnn_attention_forward")->flops, 2 * 2.0 * 2 * 8 * 128 * 256 * 64, 1, "two products of all pairs");
    assert_near(roof(&some.d, "aten::cudnn_convolution")->percent, -1, 0, "nor which peak is its bound");
    assert_true(some.d.mfu_percent > 0 && some.d.mfu_at_least);
    assert_near(some.d.uncounted_share, 20.0 / 71, 1e-9, "convolutions");
    assert_true(few.d.mfu_percent > 0 && !few.d.mfu_at_least);
    assert_near(most.d.mfu_percent, -1, 0, "most is not known");
    judged_release(&some);
    judged_release(&most);
    judged_release(&few);
}

/* Of a table ops read the rows or numbers that they pick, and the places of these. */
static void of_a_table_only_what_is_picked_is_moved(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < 4; i++) {
        traced_step_begin(&m, i);
        traced_inputs(&m, traced_run(&m, "aten::embedding", 20, "indexSelect", 2), "[[50000, 64], [8, 16]]", "[\"float\", \"long\"]");
        traced_inputs(&m, traced_run(&m, "aten::gather", 20, "gather", 2), "[[128, 50000], [], [128, 1]]", "[\"float\", \"\", \"long\"]");
        traced_inputs(&m, traced_run(&m, "aten::index_select", 20, "index", 2), "[[50000, 64], [], [8]]", "[\"float\", \"\", \"long\"]");
        traced_step_end(&m);
    }
    struct judged j = trace_judge(m.trace, 0);
    assert_near(roof(&j.d, "aten::embedding")->bytes, 128 * (2 * 64 * 4 + 8), 1e-6, "rows");
    assert_near(roof(&j.d, "aten::gather")->bytes, 128 * (2 * 4 + 8), 1e-6, "numbers");
    assert_int_equal(j.d.n_roofs, 2);           /* how many rows the third picks nobody says */
    judged_release(&j);
}

static void copies_can_be_the_largest_part(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < 4; i++) {
        traced_step_begin(&m, i);
        traced_begin(&m, EVENT_HOST_OP, "aten::to");
        traced_copy(&m, "Memcpy HtoD (Pageable -> Device)", 1 << 20, 5000);
        traced_wait(&m, "cudaStreamSynchronize");
        traced_end(&m);
        traced_run(&m, "aten::mm", 20, "gemm", 50);
        traced_step_end(&m);
    }
    struct judged j = trace_judge(m.trace, 0);
    assert_string_equal(j.d.bound_by, "device");
    assert_non_null(strstr(j.d.headline, "most of it in copies"));
    judged_release(&j);
}

/* ---- modules ---- */

static const struct trace_module *module_of(const struct diagnosis *d, const char *name)
{
    for (int i = 0; i < d->n_modules; i++)
        if (!strcmp(d->modules[i].name, name))
            return &d->modules[i];
    fail_msg("no module '%s'", name);
    return NULL;
}

static void modules_have_their_forward_and_backward(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < 4; i++) {
        traced_step_begin(&m, i);
        traced_idle(&m, 1);
        const double from = m.now_us;
        const int64_t op = traced_run(&m, "aten::mm", 40, "gemm", 20);
        traced_get(&m, op)->link = 10 + i;
        traced_idle(&m, 10);
        traced_at(&m, EVENT_PYTHON, "nn.Module: GPT_0", from - 0.5, 52);
        traced_at(&m, EVENT_PYTHON, "model.py(4): forward", from - 0.4, 51);
        traced_at(&m, EVENT_PYTHON, "nn.Module: Linear_3", from - 0.2, 45);
        traced_at(&m, EVENT_PYTHON, "/usr/share/hone/hook/hone_hook/calls.py(24): _stand_in", from + 46, 2);
        traced_on_thread(&m, 2);
        const int64_t node = traced_begin(&m, EVENT_HOST_OP, "autograd::engine::evaluate_function: MmBackward0");
        traced_get(&m, node)->link = 10 + i;
        traced_run(&m, "aten::mm", 40, "gemm", 50);
        traced_end(&m);
        traced_on_thread(&m, 1);
        traced_run(&m, "aten::_fused_adamw_", 20, "multi_tensor_apply_kernel", 30);
        traced_step_end(&m);
    }
    struct judged j = trace_judge(m.trace, 0);
    assert_false(j.d.modules_are_ranges);
    assert_int_equal(j.d.n_modules, 2);
    for (int i = 0; i < 2; i++) {
        const struct trace_module *x = module_of(&j.d, i ? "GPT_0" : "Linear_3");
        assert_near(x->forward_us, 20, 1e-6, "forward");
        assert_near(x->backward_us, 50, 1e-6, "backward");
        assert_near(x->share, 0.7, 1e-6, "share");
        assert_near(x->host_us, i ? 52 : 45, 1e-6, "host");
    }
    /* functions: forward has 51 µs, less 45 of the module inside, and 2 of hone's hook, which has no row; that has its op of 40 µs inside */
    assert_int_equal(j.d.n_frames, 3);
    for (int i = 0; i < 3; i++) {
        const struct trace_frame *f = &j.d.frames[i];
        const bool forward = strstr(f->name, "forward"), inner = strstr(f->name, "Linear");
        assert_near(f->self_us, forward ? 4 : inner ? 5 : 1, 1e-6, f->name);
        assert_near(f->count, 1, 1e-9, "calls");
    }
    judged_release(&j);
}

static void without_modules_the_users_ranges_are_shown(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < 4; i++) {
        traced_step_begin(&m, i);
        traced_begin(&m, EVENT_ANNOTATION, "encoder");
        traced_run(&m, "aten::mm", 40, "gemm", 20);
        traced_end(&m);
        traced_begin(&m, EVENT_ANNOTATION, "Optimizer.step#AdamW.step");
        traced_run(&m, "aten::_fused_adamw_", 40, "multi_tensor_apply_kernel", 20);
        traced_end(&m);
        traced_step_end(&m);
    }
    struct judged j = trace_judge(m.trace, 0);
    assert_true(j.d.modules_are_ranges);
    assert_int_equal(j.d.n_modules, 1);
    assert_near(module_of(&j.d, "encoder")->share, 0.5, 1e-6, "share");
    assert_int_equal(j.d.n_frames, 0);
    judged_release(&j);
}

/* A module or a function in another of its name, as calls of themselves are: time in both counts once. */
static void what_is_inside_its_own_name_counts_once(void **state)
{
    (void)state;
    for (int ranges = 0; ranges < 2; ranges++) {
        struct traced m = traced_new();
        for (int i = 0; i < 4; i++) {
            traced_step_begin(&m, i);
            traced_idle(&m, 1);
            const double from = m.now_us;
            for (int depth = 0; depth < 3; depth++)
                traced_at(&m, ranges ? EVENT_ANNOTATION : EVENT_PYTHON, ranges ? "graph" : "nn.Module: graph", from - 0.5 + 0.1 * depth, 50 - depth);
            traced_run(&m, "aten::mm", 40, "gemm", 20);
            traced_idle(&m, 10);
            traced_run(&m, "aten::add", 40, "elementwise", 20);
            traced_step_end(&m);
        }
        struct judged j = trace_judge(m.trace, 0);
        const struct trace_module *x = module_of(&j.d, "graph");
        assert_near(x->count, 3, 1e-9, "calls");
        assert_near(x->host_us, 50, 1e-6, "host");
        assert_near(x->forward_us, 20, 1e-6, "forward");
        assert_near(x->share, 0.5, 1e-6, "share");
        assert_int_equal(j.d.n_frames, !ranges);
        if (!ranges) {
            assert_near(j.d.frames[0].total_us, 50, 1e-6, "the function with what is inside");
            assert_near(j.d.frames[0].self_us, 10, 1e-6, "without its op");
        }
        judged_release(&j);
    }
}

/* ---- names of kernels ---- */

static void names_of_kernels_are_shortened_to_what_differs(void **state)
{
    (void)state;
    static const struct { const char *name, *shown; } cases[] = {
        {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int, at::native::X)",
         "vectorized_elementwise<CUDAFunctor_add>"},
        {"void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::GeluFunctor<float>, std::array<char*, 3ul> >(int, int)",
         "vectorized_elementwise<GeluFunctor>"},
        {"void at::native::vectorized_elementwise_kernel<8, at::native::(anonymous namespace)::CopyFunctor<c10::BFloat16>, std::array<char*, 3ul> >(int, int)",
         "vectorized_elementwise<8 CopyFunctor BFloat16>"},         /* two of one name: told in all words that differ */
        {"void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::CopyFunctor<float>, std::array<char*, 3ul> >(int, int)",
         "vectorized_elementwise<4 CopyFunctor float>"},
        {"void at::native::(anonymous namespace)::softmax_warp_forward<float, 8>(float*)", "softmax_warp_forward"},
        {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1", "sm90_xmma_gemm…tilesize128x128x64"},
        {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_warpgroupsize1x1x1", "sm90_xmma_gemm…tilesize64x64x64"},
        {"flash<unclosed, x", "flash"}, {"<>", ""}, {"a>b<c>", "a>b"},
    };
    const int n = sizeof cases / sizeof *cases;
    struct traced m = traced_new();
    traced_step_begin(&m, 0);
    for (int i = 0; i < n; i++)
        traced_run(&m, "aten::x", 10, cases[i].name, 100 - i);
    traced_step_end(&m);
    struct view v = traced_view(m.trace);
    struct diagnosis d = traced_numbers(&v);
    assert_int_equal(d.n_kernels, n);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            if (!strcmp(d.kernels[k].name, cases[i].name))
                assert_string_equal(d.kernels[k].shown, cases[i].shown);
    arena_release(&d.arena);
    view_release(&v);
    trace_free(m.trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_are_held_against_the_peaks_of_the_device),
        cmocka_unit_test(peaks_are_found_by_whole_words),
        cmocka_unit_test(a_step_of_two_devices_has_two_peaks),
        cmocka_unit_test(a_product_in_parts_has_the_peak_of_its_product),
        cmocka_unit_test(peaks_that_are_given_count),
        cmocka_unit_test(ops_of_a_cpu_are_held_against_what_was_measured_of_it),
        cmocka_unit_test(what_a_cpu_does_inside_of_another_op_counts_once),
        cmocka_unit_test(convolutions_and_attention_have_their_arithmetic),
        cmocka_unit_test(what_is_not_counted_makes_mfu_a_lower_bound_or_none),
        cmocka_unit_test(of_a_table_only_what_is_picked_is_moved),
        cmocka_unit_test(copies_can_be_the_largest_part),
        cmocka_unit_test(modules_have_their_forward_and_backward),
        cmocka_unit_test(without_modules_the_users_ranges_are_shown),
        cmocka_unit_test(what_is_inside_its_own_name_counts_once),
        cmocka_unit_test(names_of_kernels_are_shortened_to_what_differs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
