/* Small training runs with passes on: built, trained, and compared with the same run without them. */
#ifndef HONE_TESTS_OPTIMIZED_H
#define HONE_TESTS_OPTIMIZED_H

#include "passes/optimize.h"
#include "support/models.h"

enum { MOST_STEPS = 80 };

/* What a run left behind. */
struct trained {
    struct exec *exec;
    float metrics[MOST_STEPS][METRICS];         /* of every step */
};

static inline pass_set one_pass(const char *name)
{
    const int i = pass_find(name);
    assert_true(i >= 0);
    return (pass_set)1 << i;
}

/* `order` as pass_optimize takes it; NULL: as in the table. */
static inline struct program *training_towards(struct small_model m, const struct optimizer_settings *s, pass_set set, const int *order,
                                               int *places, struct precision_goal goal)
{
    struct program *p = small_forward(m, 7);
    struct error err;
    assert_ok(pass_optimize(p, STAGE_FORWARD, set, order, places, &err), err);
    assert_ok(pass_training_step(p, s, &err), err);
    p->memory_limit = 1;                        /* less than can be reached: recompute does what it can */
    p->precision = goal;
    assert_ok(pass_optimize(p, STAGE_STEP, set, order, places, &err), err);
    return p;
}

static inline struct program *optimized_training(struct small_model m, const struct optimizer_settings *s, pass_set set,
                                                 const int *order, int *places)
{
    return training_towards(m, s, set, order, places, (struct precision_goal){.round = ROUND_BF16, .attention = true});
}

/* As the training loop reads them: from the ring where there is one, else what the step left for the host. */
static inline void read_metrics(struct exec *e, int step, float out[METRICS])
{
    static const char *const names[METRICS] = {"host.loss", "host.norm", "host.lr"};
    const value_id ring = program_find(exec_program(e), METRICS_RING);
    float *rows = ring == NO_VALUE ? NULL : read_value(e, ring);        /* (METRICS_KEPT, METRICS) */
    for (int m = 0; m < METRICS; m++)
        out[m] = rows ? rows[step % METRICS_KEPT * METRICS + m] : read_named(e, names[m]);
    free(rows);
}

static inline struct trained train_small(struct program *p, const struct small_model *m, struct backend *b, int steps)
{
    struct trained t = {.exec = new_exec(p, b)};
    for (int step = 1; step <= steps; step++) {
        for (int i = 0; i < p->micro_batches; i++) {
            const struct small_batch batch = random_batch(m, (uint64_t)((step * 8 + i) % 40));
            write_batch(t.exec, &batch);
            exec_run(t.exec, PHASE_DATA, PHASE_BACKWARD);
        }
        exec_run(t.exec, PHASE_OPTIMIZE, PHASE_OPTIMIZE);
        read_metrics(t.exec, step, t.metrics[step - 1]);
    }
    return t;
}

static inline bool is_saved(const struct value *v) { return v->kind == VALUE_PARAMETER || v->kind == VALUE_STATE; }

/* Sums over micro-batches mean nothing between two steps. */
static inline bool is_sum(const struct value *v) { return !strncmp(v->name, "accumulate.", 11); }

/* Parameters and states of one have their like in the other, by name: the same to the last bit (`share` 0), or within this
 * share of the largest number of the tensor, or of 0.01: the bias of the keys has no gradient but rounding, of which Adam makes
 * steps of its own. */
static inline void assert_same_weights(struct exec *a, struct exec *b, double share, const char *what)
{
    const struct program *p = exec_program(a);
    for (int i = 0; i < p->n_values; i++) {
        if (!is_saved(&p->values[i]) || is_sum(&p->values[i]))
            continue;
        const char *name = p->values[i].name;
        const value_id other = program_find(exec_program(b), name);
        assert_true(other != NO_VALUE && exec_program(b)->values[other].kind == p->values[i].kind);
        float *x = read_value(a, i), *y = read_value(b, other);
        const int64_t n = shape_count(p->values[i].shape);
        double largest = 1e-2;
        for (int64_t k = 0; k < n && share > 0; k++)
            largest = fabsf(x[k]) > largest ? fabsf(x[k]) : largest;
        for (int64_t k = 0; k < n; k++)
            if (share > 0 && p->values[i].dtype == F32 ? !(fabs((double)x[k] - y[k]) <= share * largest)
                                                       : memcmp(&x[k], &y[k], sizeof *x) != 0)
                fail_msg("%s: %s[%lld] is %.9g and %.9g", what, name, (long long)k, x[k], y[k]);
        free(x);
        free(y);
    }
}

static inline int count_saved(const struct program *p)
{
    int n = 0;
    for (int i = 0; i < p->n_values; i++)
        n += is_saved(&p->values[i]);
    return n;
}

#endif
