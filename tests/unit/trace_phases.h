/* Steps of a trace, and their phases as they should be. */
#ifndef HONE_TESTS_TRACE_PHASES_H
#define HONE_TESTS_TRACE_PHASES_H

#include "unit/trace_models.h"

static inline const struct trace_phase *phase(const struct diagnosis *d, const char *name)
{
    for (int i = 0; i < d->n_iteration; i++)
        if (!strcmp(d->iteration[i].name, name))
            return &d->iteration[i];
    fail_msg("there is no phase '%s': %s", name, d->iteration_note ? d->iteration_note : "");
    return NULL;
}

/* They are the steps that the same page shows. */
static inline void assert_sums(const struct diagnosis *d)
{
    double us = 0, recorded = 0, busy = 0;
    for (int i = 0; i < d->n_iteration; i++) {
        const struct trace_phase *p = &d->iteration[i];
        assert_true(p->us >= 0 && p->recorded_us >= 0 && p->busy_us >= 0);
        us += p->us, recorded += p->recorded_us, busy += p->busy_us;
    }
    assert_near(us, d->corrected.step_us, 1e-6 * us, "a step without the profiler");
    assert_near(recorded, d->corrected.recorded_us, 1e-6 * recorded, "a step as recorded");
    assert_near(busy, d->corrected.device_us, 1e-6 * us, "the device's work");
}

struct expected { double data, forward, backward, optimizer, evaluation, other, communication; };

static inline void assert_each(const struct diagnosis *d, struct expected e, bool busy)
{
    const struct { const char *name; double us; } all[] = {{"data", e.data},           {"forward", e.forward}, {"backward", e.backward},
                                                           {"optimizer", e.optimizer}, {"evaluation", e.evaluation}, {"other", e.other},
                                                           {"communication", e.communication}};
    assert_sums(d);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_near(busy ? phase(d, all[i].name)->busy_us : phase(d, all[i].name)->recorded_us, all[i].us, 0.01, all[i].name);
}

/* µs of a step as recorded, and of the device's work in it. */
static inline void assert_phases(const struct diagnosis *d, struct expected e) { assert_each(d, e, false); }
static inline void assert_busy(const struct diagnosis *d, struct expected e) { assert_each(d, e, true); }

static inline void op_of(struct traced *m, const char *name, double us, int64_t number) { traced_get(m, traced_op(m, name, us))->link = number; }

static inline void node(struct traced *m, double us, int64_t number) { op_of(m, "autograd::engine::evaluate_function: AddmmBackward0", us, number); }

enum { STEPS = 3 };

static inline struct judged judged_steps(struct traced *m, void (*step)(struct traced *m, int64_t number))
{
    for (int i = 0; i < STEPS; i++) {
        traced_step_begin(m, i);
        step(m, 100 * (i + 1));
        traced_step_end(m);
    }
    return trace_judge(m->trace, m->now_us / STEPS);
}

#endif
