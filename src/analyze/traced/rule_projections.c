/* unfused-projections: several products of one input with separate weights: query, key and value; gate and up. */
#include <string.h>

#include "analyze/traced/rules.h"

enum { NEAR = 10, MOST = 4 };
static const double DEVICE_LEFT = 0.9;      /* one larger product fills the device better and reads the input once */
static const double CPU_LEFT = 0.93;        /* on a CPU the products are the host's work: all of them, less a reading of the input */
static const double SPLIT_UNITS = 8;        /* host ops that take the common result apart, forward and backward */

/* An outermost product of an activation with a weight: input (.., C), weight of two dimensions. */
static bool is_projection(const struct study *s, int32_t top, struct dims *input)
{
    if (study_task(s, top) != TASK_LINEAR || study_find(s, top, TASK_BATCHED) >= 0)
        return false;
    const bool bias_first = strstr(view_name(s->v, top), "addmm") != NULL;
    *input = study_dims(s, top, bias_first);
    const struct dims weight = study_dims(s, top, 1 + bias_first);
    return input->n >= 2 && weight.n == 2 && dims_elements(*input) > 0;
}

/* The width of the product's result. linear takes (out, in), mm and addmm take (in, out). */
static int64_t width(const struct study *s, int32_t top, struct dims input)
{
    const bool bias_first = strstr(view_name(s->v, top), "addmm") != NULL;
    const struct dims w = study_dims(s, top, 1 + bias_first);
    const int64_t in = input.size[input.n - 1];
    return w.size[1] == in ? w.size[0] : w.size[1];
}

/* What may lie between two products of the same input: other views of results, and work on a result that has another width
 * than the input, so that it cannot be what the next product takes. */
static bool may_lie_between(const struct study *s, int32_t top, struct dims input)
{
    const enum task t = study_task(s, top);
    if (t == TASK_SHAPE || t == TASK_CAST)
        return true;
    if (t != TASK_ELEMENTWISE)
        return false;
    const struct dims d = study_dims(s, top, 0);
    return d.n > 0 && !dims_equal(d, input);
}

/* The products behind top[at] that share its input, as indices into top; how many with itself. */
static int group_at(const struct study *s, int32_t at, int32_t *members)
{
    struct dims input, other;
    if (study_is_backward(s, at) || !is_projection(s, s->top[at], &input))
        return 0;
    int n = 0;
    members[n++] = at;
    for (int32_t k = at + 1; k < s->n_top && n < MOST && k - members[n - 1] <= NEAR; k++) {
        if (study_is_backward(s, k))
            break;
        if (is_projection(s, s->top[k], &other)) {
            const bool worked = k - members[n - 1] > 1 && width(s, s->top[members[n - 1]], input) == input.size[input.n - 1] &&
                                study_task(s, s->top[k - 1]) == TASK_ELEMENTWISE;
            if (!dims_equal(input, other) || worked)
                break;
            members[n++] = k;
        } else if (!may_lie_between(s, s->top[k], input))
            break;
    }
    return n;
}

bool trace_rule_unfused_projections(struct study *s, struct charge *c)
{
    int groups = 0, products = 0;
    int32_t example = -1, members[MOST];
    for (int32_t k = 0; k < s->n_top; k++) {
        const int n = group_at(s, k, members);
        if (n < 2)
            continue;
        for (int i = 0; i < n; i++) {
            charge_device(s, c, s->top[members[i]], DEVICE_LEFT);
            if (study_on_cpu(s))
                charge_host(s, c, s->top[members[i]], CPU_LEFT);
            else if (i)
                charge_host_with_backward(s, c, s->top[members[i]], 0);
        }
        groups++;
        products += n;
        example = example < 0 ? s->top[k] : example;
        k = members[n - 1];
    }
    if (!groups)
        return false;
    if (!study_on_cpu(s))
        c->edit.added_ns = per_step(s, groups) * SPLIT_UNITS * s->unit_ns;
    c->doubt = 0.35;
    c->finding.where = study_where(s, example);
    c->finding.cause = "products with the same input run one after the other instead of as one wider product";
    c->finding.evidence = study_text(s, "%s groups per step, %s products in them", study_number(s, per_step(s, groups)),
                                     study_number(s, per_step(s, products)));
    return true;
}
