/* emulated-precision: products of 16 bits on a CPU without units for them, with the gain that their arithmetic promises; and CPUs that have
 * such units, products that are slow for another reason, and f32. */
#include "unit/trace_models.h"

enum { STEPS = 4, LAYERS = 6 };

struct trainer {
    double gflops;                          /* that products reach */
    int rows, threads;                      /* 0: 1024 and 1 */
    bool f32, attention, images, no_shapes, device;
};

static double won_us, recorded_us;          /* of a step of the latest trace */

static const char *types(const struct trainer *p) { return p->f32 ? "[\"float\", \"float\", \"float\"]" : BF16; }

static int64_t op(struct traced *t, const struct trainer *p, const char *name, const char *dims, const char *of, double us)
{
    traced_idle(t, 2);
    const int64_t event = traced_op(t, name, us);
    if (!p->no_shapes)
        traced_inputs(t, event, dims, of);
    if (p->device)
        traced_launch(t, "sm90_xmma_gemm", 5);
    return event;
}

static void win(double us) { won_us += us / STEPS; }

/* autocast's, of weights and activations. */
static void cast(struct traced *t, const struct trainer *p, int64_t number)
{
    if (p->f32)
        return;
    const double from = t->now_us;
    traced_idle(t, 2);
    const int64_t outer = traced_begin(t, EVENT_HOST_OP, "aten::to");
    traced_get(t, outer)->link = number;
    traced_inputs(t, outer, "[[512, 512], [], []]", "[\"float\", \"Scalar\"]");
    op(t, p, "aten::_to_copy", "[[512, 512], [], []]", "[\"float\", \"Scalar\"]", 50);
    traced_end(t);
    win(t->now_us - from);
}

static void product(struct traced *t, const struct trainer *p, int64_t number)
{
    char dims[64];
    const int rows = p->rows ? p->rows : 1024, threads = p->threads ? p->threads : 1;
    const double mflops = 2e-6 * rows * 512 * 512, us = 1000 * mflops / p->gflops, rate = fmax(3.5 * p->gflops, 40.0 * threads);
    snprintf(dims, sizeof dims, "[[%d, 512], [512, 512]]", rows);
    traced_get(t, op(t, p, "aten::mm", dims, types(p), us))->link = number;
    win(us - 1000 * mflops / rate - 10);
}

static void attend(struct traced *t, const struct trainer *p)
{
    const double mflops = 4e-6 * 16 * 8 * 128 * 128 * 64, us = mflops / 4 * 1000, rate = 0.5 * fmax(3.5 * p->gflops, 40);
    op(t, p, "aten::_scaled_dot_product_flash_attention_for_cpu", "[[16, 8, 128, 64], [16, 8, 128, 64], [16, 8, 128, 64]]", types(p), us);
    win(us - 1000 * mflops / rate - 10);
}

static void convolve(struct traced *t, const struct trainer *p)
{
    const double mflops = 2e-6 * 32 * 32 * 32 * 64 * 64 * 9, us = 1000 * mflops / p->gflops;
    traced_idle(t, 2);
    op(t, p, "aten::mkldnn_convolution", "[[32, 64, 32, 32], [64, 64, 3, 3], [64]]", types(p), us);
    win(us - 1000 * mflops / 40 - 10);
}

static struct judged judge(struct trainer p)
{
    struct traced t = traced_new();
    won_us = 0;
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&t, i);
        for (int k = 0; k < LAYERS; k++) {
            cast(&t, &p, 100 + k);
            if (p.images)
                convolve(&t, &p);
            else
                product(&t, &p, 100 + k);
            if (p.attention)
                attend(&t, &p);
        }
        char rows[64];                      /* layer norm's backward has a row per thread */
        snprintf(rows, sizeof rows, "[[2, %d, 512]]", p.threads ? p.threads : 1);
        traced_get(&t, traced_begin(&t, EVENT_HOST_OP, "autograd::engine::evaluate_function: NativeLayerNormBackward0"))->link = 100;
        traced_begin(&t, EVENT_HOST_OP, "aten::native_layer_norm_backward");
        op(&t, &p, "aten::zero_", rows, NULL, 3);
        traced_end(&t);
        traced_end(&t);
        op(&t, &p, "aten::_fused_adamw_", "[[[512, 512]], []]", NULL, 2000);
        traced_step_end(&t);
    }
    t.trace->origin.has_shapes = !p.no_shapes;
    recorded_us = t.now_us / STEPS;
    return trace_judge(t.trace, recorded_us);
}

static void products_get_the_rate_of_f32(void **state)
{
    (void)state;
    static const struct trainer slow[] = {{.gflops = 20}, {.gflops = 3}, {.gflops = 20, .attention = true}, {.gflops = 16, .images = true}, {.gflops = 150, .threads = 8, .rows = 8192}};
    for (size_t k = 0; k < sizeof slow / sizeof *slow; k++) {
        struct judged j = judge(slow[k]);
        const struct finding *f = assert_gain(&j, "emulated-precision", recorded_us / (recorded_us - won_us), 0.05);
        assert_non_null(strstr(f->cause, "no units"));
        assert_non_null(strstr(f->evidence, slow[k].threads ? "on 8 threads" : "on 1 thread;"));
        judged_release(&j);
    }
}

static void what_is_fast_or_small_or_wide_is_left_alone(void **state)
{
    (void)state;
    static const struct trainer quiet[] = {
        {.gflops = 200},                    /* the CPU has units */
        {.gflops = 500, .threads = 8, .rows = 8192},
        {.gflops = 20, .f32 = true},        /* slow, and not for its precision */
        {.gflops = 5, .rows = 1},           /* bound by memory */
        {.gflops = 5, .rows = 4, .threads = 8},
        {.gflops = 20, .no_shapes = true}, {.gflops = 20, .device = true},
    };
    for (size_t k = 0; k < sizeof quiet / sizeof *quiet; k++) {
        struct judged j = judge(quiet[k]);
        assert_not_found(&j, "emulated-precision");
        judged_release(&j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_get_the_rate_of_f32),
        cmocka_unit_test(what_is_fast_or_small_or_wide_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
