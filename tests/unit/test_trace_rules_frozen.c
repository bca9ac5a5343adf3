/* unused-gradients: a head is trained, and backward goes through the backbone below it. The gain that the time behind the head promises,
 * and programs that look like it. */
#include "unit/trace_models.h"

enum { STEPS = 4, LAYERS = 6 };

enum form { FUSED, FOREACH, LOOP, MOMENTUM };

struct trainer {
    int trained;                            /* layers from the loss on that the optimizer goes over */
    bool alike;                             /* the head's weights have the shape of the others */
    bool adds;                              /* gradients that nobody takes are added to */
    bool all_add;                           /* all are */
    bool no_shapes, sharded, several_ranks, long_list;
    enum form form;
};

static double unused_us, recorded_us;       /* of a step of the latest trace */

static void op(struct traced *t, const struct trainer *p, const char *name, const char *dims, double us)
{
    traced_idle(t, 2);
    const int64_t event = traced_op(t, name, us);
    if (!p->no_shapes)
        traced_inputs(t, event, dims, NULL);
}

static const char *shape(const struct trainer *p, int layer) { return layer == LAYERS - 1 && !p->alike ? "[10, 256]" : "[256, 256]"; }

static void accumulate(struct traced *t, const struct trainer *p, int layer)
{
    char dims[32];
    snprintf(dims, sizeof dims, "[%s]", shape(p, layer));
    traced_idle(t, 2);
    traced_begin(t, EVENT_HOST_OP, "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad");
    const int64_t inside = traced_begin(t, EVENT_HOST_OP, "torch::autograd::AccumulateGrad");
    if (!p->no_shapes)
        traced_inputs(t, inside, dims, NULL);
    if (p->all_add || (p->adds && layer < LAYERS - p->trained))
        op(t, p, "aten::add_", dims, 30);
    traced_idle(t, 2);
    traced_end(t);
    traced_end(t);
}

static void node(struct traced *t, const struct trainer *p, int layer)
{
    traced_idle(t, 2);
    traced_get(t, traced_begin(t, EVENT_HOST_OP, "autograd::engine::evaluate_function: MmBackward0"))->link = 100 + layer;
    const int64_t inside = traced_begin(t, EVENT_HOST_OP, "MmBackward0");
    traced_get(t, inside)->link = 100 + layer;
    if (!p->no_shapes)
        traced_inputs(t, inside, "[[512, 256]]", NULL);
    op(t, p, "aten::mm", "[[256, 512], [512, 256]]", 400);
    op(t, p, "aten::mm", "[[512, 256], [256, 256]]", 400);     /* hands on */
    traced_end(t);
    traced_end(t);
    accumulate(t, p, layer);
}

static void backward(struct traced *t, const struct trainer *p)
{
    for (int k = LAYERS - 1; k >= 0; k--) {
        const double from = t->now_us;
        node(t, p, k);
        unused_us += k < LAYERS - p->trained ? (t->now_us - from) / STEPS : k == LAYERS - p->trained && k > 0 ? 402.0 / STEPS : 0;
    }
}

static void optimize(struct traced *t, const struct trainer *p)
{
    char list[256] = "", all[600];
    for (int k = 0; k < p->trained; k++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", k ? ", " : "", p->sharded ? "[4096]" : shape(p, LAYERS - 1 - k));
    snprintf(all, sizeof all, "[[%s], [%s], []]", p->long_list ? "" : list, p->long_list ? "" : list);
    traced_begin(t, EVENT_ANNOTATION, p->form == MOMENTUM ? "Optimizer.step#SGD.step" : "Optimizer.step#AdamW.step");
    if (p->form == FUSED)
        op(t, p, "aten::_fused_adamw_", all, 50);
    if (p->form == FOREACH) {
        op(t, p, "aten::_foreach_lerp_", all, 30);
        op(t, p, "aten::_foreach_addcdiv_", all, 30);
    }
    for (int k = 0; k < p->trained && p->form >= LOOP; k++) {
        char dims[64];
        snprintf(dims, sizeof dims, "[%s, %s, []]", shape(p, LAYERS - 1 - k), shape(p, LAYERS - 1 - k));
        op(t, p, "aten::mul_", dims, 10);
        op(t, p, p->form == LOOP ? "aten::addcdiv_" : "aten::add_", dims, 10);
    }
    traced_end(t);
}

static struct judged judge(struct trainer p)
{
    struct traced t = traced_new();
    unused_us = 0;
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&t, i);
        for (int k = 0; k < LAYERS; k++) {
            op(&t, &p, "aten::mm", "[[512, 256], [256, 256]]", 400);
            traced_get(&t, t.trace->n - 1)->link = 100 + k;
        }
        backward(&t, &p);
        optimize(&t, &p);
        traced_step_end(&t);
    }
    t.trace->origin.has_shapes = !p.no_shapes;
    t.trace->origin.world_size = p.several_ranks ? 4 : 0;
    recorded_us = t.now_us / STEPS;
    return trace_judge(t.trace, recorded_us);
}

static double gain(void) { return recorded_us / (recorded_us - unused_us); }

static void backward_behind_the_head_goes(void **state)
{
    (void)state;
    static const enum form forms[] = {FUSED, FOREACH, LOOP, MOMENTUM};
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        struct judged j = judge((struct trainer){.trained = 1, .form = forms[k]});
        const struct finding *f = assert_gain(&j, "unused-gradients", gain(), 0.03);
        assert_true(f->speedup_low > 1);
        assert_non_null(strstr(f->evidence, "6 gradients per step, of which no optimizer step in the trace takes 5"));
        assert_non_null(strstr(f->fix, "requires_grad_(False)"));
        assert_non_null(strstr(f->fix, forms[k] == MOMENTUM ? "torch.optim.SGD(" : "torch.optim.AdamW("));
        judged_release(&j);
    }
}

/* Of equal shapes the order decides, and it may be another; gradients that nobody drops leave no doubt. */
static void equal_shapes_leave_a_doubt(void **state)
{
    (void)state;
    struct judged j = judge((struct trainer){.trained = 2, .alike = true});
    assert_true(assert_gain(&j, "unused-gradients", gain(), 0.03)->speedup_low == 1);
    judged_release(&j);
    j = judge((struct trainer){.trained = 2, .alike = true, .all_add = true});
    assert_true(assert_found(&j, "unused-gradients")->speedup_low == 1);
    judged_release(&j);
    j = judge((struct trainer){.trained = 2, .alike = true, .adds = true});
    assert_true(assert_gain(&j, "unused-gradients", gain(), 0.03)->speedup_low > 1);
    judged_release(&j);
    j = judge((struct trainer){.trained = 2, .alike = true, .form = MOMENTUM});       /* its ops do not say how many there are */
    assert_not_found(&j, "unused-gradients");
    judged_release(&j);
}

static void gradients_that_are_used_are_not_told(void **state)
{
    (void)state;
    static const struct trainer quiet[] = {
        {.trained = LAYERS}, {.trained = LAYERS, .form = FOREACH}, {.trained = LAYERS, .form = LOOP}, {.trained = LAYERS, .form = MOMENTUM},
        {.trained = LAYERS, .alike = true, .all_add = true},
        {.trained = 1, .no_shapes = true},
        {.trained = 1, .sharded = true},            /* what is updated is no tensor that has a gradient */
        {.trained = 1, .several_ranks = true},      /* others may update the rest */
        {.trained = 2, .long_list = true},          /* of which the profiler leaves the shapes out */
    };
    for (size_t k = 0; k < sizeof quiet / sizeof *quiet; k++) {
        struct judged j = judge(quiet[k]);
        assert_not_found(&j, "unused-gradients");
        judged_release(&j);
    }
}

/* Lists that are cut off, nested or no lists are read to where they make sense. */
static void damaged_lists_are_no_shapes(void **state)
{
    (void)state;
    static const char *const lists[] = {"[[[", "[[[10, 256", "[[[10, 256]", "[[[10, 256],", "[[[[10, 256]]]]", "[[[]]]", "[[[x]]]", "[[[99999999999999999999999, -1]]]",
                                        "[[[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]]]"};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        struct traced t = traced_new();
        const struct trainer p = {.trained = 1};
        for (int i = 0; i < STEPS; i++) {
            traced_step_begin(&t, i);
            backward(&t, &p);
            traced_begin(&t, EVENT_ANNOTATION, "Optimizer.step#AdamW.step");
            op(&t, &p, "aten::_fused_adamw_", lists[k], 50);
            traced_end(&t);
            traced_step_end(&t);
        }
        struct judged j = trace_judge(t.trace, 0);
        judged_release(&j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backward_behind_the_head_goes),
        cmocka_unit_test(equal_shapes_leave_a_doubt),
        cmocka_unit_test(gradients_that_are_used_are_not_told),
        cmocka_unit_test(damaged_lists_are_no_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
