/* constant-rebuilt: masks, positions and tables that are the same in every step are made again. */
#include <string.h>

#include "analyze/traced/rules.h"

enum { LONGEST_CHAIN = 16, MANY = 4 };
static const int64_t LEAST_ELEMENTS = 16;   /* a scalar is not a table */

/* Work on something that was made from nothing in this chain: a transform of constants, or any work on a tensor that is not
 * larger than what the chain has seen. */
static bool goes_on(const struct study *s, int32_t op, int64_t elements, bool first)
{
    const enum task t = study_task(s, op);
    if (t == TASK_SHAPE || t == TASK_CREATE)
        return true;
    if (study_learns(s, op) || study_tensors(s, op) > 2)
        return false;
    if (t == TASK_FIXED || (first && t == TASK_CAST))
        return true;
    return (t == TASK_CAST || t == TASK_FILL || t == TASK_ELEMENTWISE || t == TASK_REDUCE) &&
           dims_elements(study_dims(s, op, 0)) <= elements;
}

/* A chain starts with an op that makes a tensor from no tensor, on the device, in the forward pass. */
static bool starts(const struct study *s, int32_t k)
{
    const int32_t op = s->top[k];
    return study_task(s, op) == TASK_CREATE && study_tensors(s, op) == 0 && study_launches(s, op) > 0 &&
           study_annotation(s, op, "Optimizer") < 0 && !strstr(view_name(s->v, op), "lift_fresh");
}

/* The chain's end; ops that only look at it differently at the end are left out. */
static int32_t chain_end(const struct study *s, int32_t first)
{
    int32_t end = first + 1, work = end;
    int64_t elements = LEAST_ELEMENTS;
    for (; end < s->n_top && end - first < LONGEST_CHAIN && !study_is_backward(s, end); end++) {
        const int32_t op = s->top[end];
        const int64_t n = dims_elements(study_dims(s, op, 0));
        if (!goes_on(s, op, elements, end == first + 1))
            break;
        elements = n > elements ? n : elements;
        if (study_task(s, op) != TASK_SHAPE && study_launches(s, op))
            work = end + 1;
    }
    return work;
}

bool trace_rule_constant_rebuilt(struct study *s, struct charge *c)
{
    int chains = 0, ops = 0;
    int32_t example = -1;
    double device = 0;
    for (int32_t k = 0, end; k < s->n_top; k = end) {
        end = k + 1;
        if (!starts(s, k))
            continue;
        end = chain_end(s, k);
        if (end - k < 2)
            continue;                       /* one op alone may be a buffer that is filled later */
        for (int32_t i = k; i < end; i++) {
            charge_call(s, c, s->top[i], 0);
            device += study_device_ns(s, s->top[i]);
        }
        chains++;
        ops += end - k;
        example = example < 0 ? s->top[k] : example;
    }
    if (chains < s->replay->n_steps)
        return false;                       /* not in every step */
    c->doubt = 0.35;
    c->finding.where = study_where(s, example);
    c->finding.cause = "a tensor that does not depend on the data is built again in every step";
    c->finding.evidence = study_text(s, "%s times per step, %s ops, %s of the device per step; it starts with %.200s",
                                     study_number(s, per_step(s, chains)), study_number(s, per_step(s, ops)),
                                     study_us(s, per_step(s, device)), view_name(s->v, example));
    return true;
}
