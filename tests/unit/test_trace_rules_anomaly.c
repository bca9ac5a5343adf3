/* anomaly-mode on traces of a CPU and of a device: the gain that the planted checks and stacks promise, and programs without the mode that
 * must stay quiet. */
#include "unit/trace_models.h"

enum { STEPS = 4, LAYERS = 6 };

struct trainer {
    double stack_us;                        /* an op that will have a gradient keeps its stack */
    double check_us;                        /* a gradient is looked through; 0: it is not */
    bool old_check;                         /* as PyTorch before 2 looked */
    bool device;                            /* a read of a number waits for it */
    int hooks;                              /* the first so many nodes have a hook of the user's that looks for NaN */
};

static double planted_us, recorded_us;      /* of a step of the latest trace */

static void small(struct traced *t, const char *name, double us)
{
    traced_idle(t, 1);
    traced_op(t, name, us);
}

/* An op with something inside, as addmm has expand: its stack comes before that. */
static void maker(struct traced *t, const struct trainer *p, const char *name, int64_t number, double us)
{
    traced_idle(t, 2);
    traced_get(t, traced_begin(t, EVENT_HOST_OP, name))->link = number;
    traced_idle(t, 3 + p->stack_us);
    planted_us += p->stack_us / STEPS;
    small(t, "aten::as_strided", 1);
    traced_idle(t, us);
    if (p->device)
        traced_launch(t, "sm90_xmma_gemm", us);
    traced_end(t);
}

static void check(struct traced *t, const struct trainer *p, double us)
{
    const double from = t->now_us;
    small(t, "aten::isnan", us / 2);
    small(t, p->old_check ? "aten::any" : "aten::_is_any_true", us / 2);
    traced_begin(t, EVENT_HOST_OP, "aten::item");
    traced_idle(t, 2);
    if (p->device) {
        traced_copy(t, "Memcpy DtoH (Device -> Pageable)", 1, 2);
        traced_wait(t, "cudaStreamSynchronize");
    }
    traced_end(t);
    planted_us += (t->now_us - from) / STEPS;
}

static void node(struct traced *t, const struct trainer *p, int64_t number, int i)
{
    traced_idle(t, 2);
    traced_get(t, traced_begin(t, EVENT_HOST_OP, "autograd::engine::evaluate_function: AddmmBackward0"))->link = number;
    traced_get(t, traced_begin(t, EVENT_HOST_OP, "AddmmBackward0"))->link = number;
    traced_begin(t, EVENT_HOST_OP, "aten::mm");
    traced_idle(t, 3);
    small(t, "aten::as_strided", 1);
    traced_idle(t, 400);
    if (p->device)
        traced_launch(t, "sm90_xmma_gemm", 300);
    traced_end(t);
    traced_end(t);
    for (int k = 0; k < 2 && (p->check_us > 0 || i < p->hooks); k++)
        check(t, p, p->check_us > 0 ? p->check_us : 20);
    traced_end(t);
}

static struct judged judge(struct trainer p)
{
    struct traced t = traced_new();
    planted_us = 0;
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&t, i);
        for (int k = 0; k < LAYERS; k++) {
            maker(&t, &p, "aten::t", 100 + 2 * k, 1);
            maker(&t, &p, "aten::addmm", 101 + 2 * k, 200);
        }
        for (int k = LAYERS - 1; k >= 0; k--)
            node(&t, &p, 101 + 2 * k, k);
        for (int k = LAYERS - 1; k >= 0; k--) {
            traced_get(&t, traced_begin(&t, EVENT_HOST_OP, "autograd::engine::evaluate_function: TBackward0"))->link = 100 + 2 * k;
            traced_idle(&t, 5);
            if (p.check_us > 0)
                check(&t, &p, p.check_us);
            traced_end(&t);
        }
        traced_step_end(&t);
    }
    recorded_us = t.now_us / STEPS;
    return trace_judge(t.trace, recorded_us);
}

static void checks_and_stacks_go(void **state)
{
    (void)state;
    struct judged j = judge((struct trainer){.stack_us = 150, .check_us = 40});
    const struct finding *f = assert_gain(&j, "anomaly-mode", recorded_us / (recorded_us - planted_us), 0.05);
    assert_int_equal(f->severity, SEVERITY_HIGH);
    assert_non_null(strstr(f->evidence, "for its stack"));
    assert_non_null(strstr(f->fix, "set_detect_anomaly(False)"));
    judged_release(&j);
}

static void checks_of_older_versions_are_the_same(void **state)
{
    (void)state;
    struct judged j = judge((struct trainer){.stack_us = 150, .check_us = 40, .old_check = true});
    assert_gain(&j, "anomaly-mode", recorded_us / (recorded_us - planted_us), 0.05);
    judged_release(&j);
}

/* What makes the host wait is the mode, not a number that the program reads. */
static void its_reads_of_a_device_are_no_finding_of_their_own(void **state)
{
    (void)state;
    struct judged j = judge((struct trainer){.stack_us = 100, .check_us = 20, .device = true});
    const struct finding *f = assert_found(&j, "anomaly-mode");
    assert_true(f->speedup > 1.2);
    assert_not_found(&j, "host-sync");
    judged_release(&j);
}

static void nothing_is_said_without_it(void **state)
{
    (void)state;
    struct judged j = judge((struct trainer){0});
    assert_not_found(&j, "anomaly-mode");
    judged_release(&j);
    j = judge((struct trainer){.device = true});
    assert_not_found(&j, "anomaly-mode");
    judged_release(&j);
}

/* Hooks on some tensors ask the same of some gradients: the program's own choice. */
static void hooks_of_the_users_are_no_mode(void **state)
{
    (void)state;
    struct judged j = judge((struct trainer){.hooks = 2});
    assert_not_found(&j, "anomaly-mode");
    judged_release(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checks_and_stacks_go),
        cmocka_unit_test(checks_of_older_versions_are_the_same),
        cmocka_unit_test(its_reads_of_a_device_are_no_finding_of_their_own),
        cmocka_unit_test(nothing_is_said_without_it),
        cmocka_unit_test(hooks_of_the_users_are_no_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
