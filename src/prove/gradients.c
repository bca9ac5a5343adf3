/* First gradients of two trials, parameter by parameter: |ga - gb| / |ga|.
 *
 * Some gradients are zero but for rounding (the bias of the keys in front of a softmax), and rounding has no relative accuracy.
 * So |ga| counts as at least a hundredth of what the gradient of an average parameter of that size has. */
#include <math.h>
#include <stdlib.h>

#include "core/arena.h"
#include "prove/prove_int.h"

static const double LEAST_SHARE = 0.01;

struct norms {
    const struct value *parameter;
    double a2, b2, difference2;     /* sums of squares */
};

static enum status read_both(struct trial *a, value_id in_a, float *x, struct trial *b, value_id in_b, float *y, struct error *err)
{
    const enum status st = trial_gradient(a, in_a, x, err);
    return st == OK ? trial_gradient(b, in_b, y, err) : st;
}

static enum status measure(struct norms *out, struct trial *a, value_id in_a, struct trial *b, struct error *err)
{
    const struct value *v = &trial_program(a)->values[in_a];
    const int64_t n = shape_count(v->shape);
    float *x = malloc((size_t)n * sizeof *x), *y = malloc((size_t)n * sizeof *y);       /* (n) */
    enum status st = x && y ? read_both(a, in_a, x, b, program_find(trial_program(b), v->name), y, err)
                            : error_no_memory(err, "a gradient", 2 * (unsigned long long)n * sizeof *x);
    *out = (struct norms){.parameter = v};
    for (int64_t i = 0; i < n && st == OK; i++) {
        const double difference = (double)x[i] - (double)y[i];
        out->a2 += (double)x[i] * x[i];
        out->b2 += (double)y[i] * y[i];
        out->difference2 += difference * difference;
    }
    free(x);
    free(y);
    return st;
}

/* Keeps the worst; one that is not a number is worse than any. */
static void judge(struct evidence *e, const struct norms *list, int n)
{
    double squares = 0, numbers = 0;
    for (int i = 0; i < n; i++) {
        squares += list[i].a2;
        numbers += (double)shape_count(list[i].parameter->shape);
    }
    e->gradients.parameters = n;
    e->gradients.error = -1;
    for (int i = 0; i < n; i++) {
        const double average2 = squares / numbers * (double)shape_count(list[i].parameter->shape);
        const double whole = prove_largest(sqrt(list[i].a2), LEAST_SHARE * sqrt(average2));
        const double difference = sqrt(list[i].difference2), error = difference == 0 ? 0 : difference / whole;
        if (isnan(e->gradients.error) || error <= e->gradients.error)
            continue;
        e->gradients.error = error;
        e->gradients.a_norm = sqrt(list[i].a2);
        e->gradients.b_norm = sqrt(list[i].b2);
        snprintf(e->gradients.worst, sizeof e->gradients.worst, "%s", list[i].parameter->name);
    }
}

enum status gradients_compare(struct evidence *e, struct trial *a, struct trial *b, struct error *err)
{
    const struct program *p = trial_program(a);
    struct norms *list = xcalloc((size_t)p->n_values, sizeof *list);
    int n = 0;
    enum status st = trial_backward(a, err);
    if (st == OK)
        st = trial_backward(b, err);
    for (int i = 0; i < p->n_values && st == OK; i++)
        if (p->values[i].kind == VALUE_PARAMETER)
            st = measure(&list[n++], a, i, b, err);
    if (st == OK)
        judge(e, list, n);
    free(list);
    if (st == OK)
        st = trial_restart(a, err);
    return st == OK ? trial_restart(b, err) : st;
}
