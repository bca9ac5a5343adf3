/* Epochs for which a loader's workers are started anew: what they cost where several start in a trace, and a step that is told of where one does. */
#include "unit/trace_models.h"

enum { STEPS = 12 };

struct trainer {
    int epoch;                              /* steps of one */
    bool kept;                              /* workers are */
    bool slow;                              /* batches come late in every step */
};

static double recorded_us, anew_us;         /* of a step; of it, what starting anew takes */

static void next(struct traced *t, double us)
{
    traced_begin(t, EVENT_ANNOTATION, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
    traced_idle(t, us);
    traced_end(t);
    traced_idle(t, 20);
}

static void op(struct traced *t, const char *name, double us)
{
    traced_idle(t, 2);
    traced_inputs(t, traced_op(t, name, us), "[[2048, 256], [256, 256]]", NULL);
}

/* The last call of an epoch and the iterator of the next one. */
static void start_epoch(struct traced *t, const struct trainer *p)
{
    next(t, p->kept ? 40 : 30000);
    op(t, "aten::empty", 5);
    traced_idle(t, p->kept ? 500 : 40000);
    op(t, "aten::random_", 5);
    op(t, "aten::randperm", 20);
    next(t, p->kept ? 2000 : 20000);
    anew_us += p->kept ? 0 : (30000 * 0.97 + 40000 * 0.85 + 20000 * 0.75) / STEPS;
}

static struct judged judge(struct trainer p)
{
    struct traced t = traced_new();
    anew_us = 0;
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(&t, i);
        if (i % p.epoch == 2)
            start_epoch(&t, &p);
        else
            next(&t, p.slow ? 6000 : 50);
        for (int k = 0; k < 20; k++)
            op(&t, "aten::mm", 300);
        traced_begin(&t, EVENT_ANNOTATION, "Optimizer.step#AdamW.step");
        op(&t, "aten::_fused_adamw_", 1000);
        traced_end(&t);
        traced_step_end(&t);
    }
    recorded_us = t.now_us / STEPS;
    return trace_judge(t.trace, recorded_us);
}

static void starts_of_epochs_are_waits_for_data(void **state)
{
    (void)state;
    struct judged j = judge((struct trainer){.epoch = 4});
    const struct finding *f = assert_gain(&j, "data-stall", recorded_us / (recorded_us - anew_us), 0.04);
    assert_non_null(strstr(f->cause, "starts the loader's workers anew"));
    assert_non_null(strstr(f->evidence, "of 3 epochs that start in 12 steps each takes 90"));
    assert_non_null(strstr(f->fix, "persistent_workers=True"));
    assert_int_equal(j.d.n_odd, 0);
    judged_release(&j);
}

/* How long the epoch is nobody knows. */
static void one_start_is_an_odd_step(void **state)
{
    (void)state;
    struct judged j = judge((struct trainer){.epoch = STEPS});
    assert_int_equal(j.d.n_odd, 1);
    assert_true(j.d.odd[0].number == 2);
    assert_true(warns(&j.d, "it starts an epoch, for which the loader's workers stop and are started anew"));
    judged_release(&j);
}

static void workers_that_are_kept_are_as_they_were(void **state)
{
    (void)state;
    struct judged j = judge((struct trainer){.epoch = 4, .kept = true, .slow = true});
    const struct finding *f = assert_found(&j, "data-stall");
    assert_non_null(strstr(f->cause, "not ready"));
    assert_null(strstr(f->evidence, "epochs"));
    assert_int_equal(j.d.n_odd, 0);
    judged_release(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_of_epochs_are_waits_for_data),
        cmocka_unit_test(one_start_is_an_odd_step),
        cmocka_unit_test(workers_that_are_kept_are_as_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
