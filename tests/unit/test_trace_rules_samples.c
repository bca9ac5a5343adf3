/* sample-loop: a model that is called once per sample of a batch, with the gain that its turns promise; and loops that look like it. */
#include "unit/trace_models.h"

enum { STEPS = 4, TURNS = 8, LAYERS = 5 };

struct trainer {
    int turns, rows;                        /* 0: TURNS, and as many rows in the tensor that is picked from */
    int batch;                              /* samples that a turn has; 0: one */
    int layers;                             /* 0: LAYERS */
    const char *pick;                       /* NULL: slice; "select", with `unsqueeze` behind it or not; "unbind": once, before the loop */
    bool unsqueeze, backward_each;          /* a backward pass in every turn */
    const char *first, *last;               /* an op before the first layer, and behind the last one; NULL: none */
    bool wide;                              /* products that are large for one sample already */
    bool no_shapes, device;
};

static double loop_us, recorded_us;         /* of a step of the latest trace, in turns and their backward */

static int64_t begin(struct traced *t, const struct trainer *p, const char *name, const char *dims)
{
    traced_idle(t, 2);
    const int64_t event = traced_begin(t, EVENT_HOST_OP, name);
    if (!p->no_shapes && dims)
        traced_inputs(t, event, dims, NULL);
    return event;
}

static int64_t op(struct traced *t, const struct trainer *p, const char *name, const char *dims, double us)
{
    const int64_t event = begin(t, p, name, dims);
    traced_idle(t, us);
    if (p->device && us >= 100)
        traced_launch(t, "sm90_xmma_gemm", 5);
    traced_end(t);
    return event;
}

static void layer(struct traced *t, const struct trainer *p, int64_t number)
{
    char dims[64];
    const int rows = p->wide ? 4096 : p->batch ? p->batch : 1;
    snprintf(dims, sizeof dims, p->wide ? "[[1, %d, 512], [512, 512]]" : "[[%d, 512], [512, 512]]", rows);
    traced_get(t, begin(t, p, "aten::linear", dims))->link = number;
    snprintf(dims, sizeof dims, "[[%d, 512], [512, 512]]", rows);
    traced_get(t, op(t, p, "aten::mm", dims, p->wide ? 1000 : 100))->link = number;
    traced_end(t);
    op(t, p, "aten::relu", "[[1, 512]]", 20);
}

static void node(struct traced *t, const struct trainer *p, int64_t number)
{
    traced_idle(t, 2);
    traced_get(t, traced_begin(t, EVENT_HOST_OP, "autograd::engine::evaluate_function: MmBackward0"))->link = number;
    traced_get(t, traced_begin(t, EVENT_HOST_OP, "MmBackward0"))->link = number;
    op(t, p, "aten::mm", p->wide ? "[[512, 4096], [4096, 512]]" : "[[512, 1], [1, 512]]", p->wide ? 1000 : 150);
    traced_end(t);
    op(t, p, "aten::add_", "[[512, 512], [512, 512]]", 60);     /* of the turns' gradients */
    traced_end(t);
}

static void extra(struct traced *t, const struct trainer *p, const char *name)
{
    if (name)
        op(t, p, name, "[[1, 512], [1, 512]]", 5);
}

static void turn(struct traced *t, const struct trainer *p, int64_t first)
{
    char dims[64];
    const char *pick = p->pick ? p->pick : "slice";
    snprintf(dims, sizeof dims, "[[%d, 512], [], [], [], []]", p->rows ? p->rows : p->turns ? p->turns : TURNS);
    if (strcmp(pick, "unbind"))
        op(t, p, strcmp(pick, "select") ? "aten::slice" : "aten::select", dims, 5);
    if (p->unsqueeze)
        op(t, p, "aten::unsqueeze", "[[512], []]", 5);
    extra(t, p, p->first);
    for (int k = 0; k < (p->layers ? p->layers : LAYERS); k++)
        layer(t, p, first + k);
    extra(t, p, p->last);
}

static void step(struct traced *t, const struct trainer *p)
{
    const int turns = p->turns ? p->turns : TURNS, layers = p->layers ? p->layers : LAYERS;
    const double from = t->now_us;
    if (p->pick && !strcmp(p->pick, "unbind"))
        op(t, p, "aten::unbind", "[[8, 512], []]", 5);
    for (int i = 0; i < turns; i++) {
        turn(t, p, 100 + (int64_t)i * layers);
        for (int k = layers - 1; p->backward_each && k >= 0; k--)
            node(t, p, 100 + (int64_t)i * layers + k);
    }
    for (int k = turns * layers - 1; !p->backward_each && k >= 0; k--)
        node(t, p, 100 + k);
    loop_us += (t->now_us - from) / STEPS;
    traced_begin(t, EVENT_ANNOTATION, "Optimizer.step#AdamW.step");
    op(t, p, "aten::_fused_adamw_", "[[[512, 512]], []]", 2000);
    traced_end(t);
}

static struct judged judge(struct trainer p)
{
    struct traced t = traced_new();
    loop_us = 0;
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&t, i);
        step(&t, &p);
        traced_step_end(&t);
    }
    t.trace->origin.has_shapes = !p.no_shapes;
    recorded_us = t.now_us / STEPS;
    return trace_judge(t.trace, recorded_us);
}

/* Of equal turns one stays, of the sums of gradients none. */
static double gain(int turns)
{
    const double sums = (double)turns * LAYERS * 62;
    return recorded_us / (recorded_us - (loop_us - sums) * (1 - 1.0 / turns) - sums);
}

static void turns_become_one(void **state)
{
    (void)state;
    static const struct trainer ways[] = {
        {.turns = TURNS}, {.turns = 16}, {.rows = 64}, {.pick = "select", .unsqueeze = true}, {.pick = "unbind", .unsqueeze = true}, {.last = "aten::mse_loss"},
    };
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        struct judged j = judge(ways[k]);
        const struct finding *f = assert_gain(&j, "sample-loop", gain(ways[k].turns ? ways[k].turns : TURNS), 0.06);
        assert_int_equal(f->severity, SEVERITY_CRITICAL);
        assert_non_null(strstr(f->evidence, ways[k].turns == 16 ? "of 16 turns each" : "of 8 turns each"));
        assert_non_null(strstr(f->where, "linear"));
        assert_not_found(&j, "small-batch");
        judged_release(&j);
    }
}

/* A sample that fills the machine takes as long in a batch: what is won is the rest. */
static void what_a_batch_makes_longer_stays(void **state)
{
    (void)state;
    struct judged j = judge((struct trainer){.wide = true});
    const struct finding *f = assert_found(&j, "sample-loop");
    assert_true(f->speedup > 1.02 && f->speedup < 1.15);
    judged_release(&j);
}

static void loops_that_need_their_order_are_left_alone(void **state)
{
    (void)state;
    static const struct trainer quiet[] = {
        {.last = "aten::lstm_cell"}, {.last = "aten::gru"}, {.last = "aten::item"}, {.last = "aten::multinomial"},
        {.first = "aten::cat"}, {.first = "aten::add"},             /* a state is brought in */
        {.layers = 2, .last = "aten::tanh"}, {.layers = 2, .last = "aten::add"},      /* a cell written out */
        {.batch = 16},                      /* over time: a turn has all samples */
        {.pick = "select"},                 /* a row of (T, 1, C) */
        {.rows = 4},                        /* fewer samples than turns */
        {.turns = 3}, {.backward_each = true}, {.no_shapes = true}, {.device = true},
    };
    for (size_t k = 0; k < sizeof quiet / sizeof *quiet; k++) {
        struct judged j = judge(quiet[k]);
        assert_not_found(&j, "sample-loop");
        judged_release(&j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_become_one),
        cmocka_unit_test(what_a_batch_makes_longer_stays),
        cmocka_unit_test(loops_that_need_their_order_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
