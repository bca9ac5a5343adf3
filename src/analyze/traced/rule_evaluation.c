/* eval-share: forward passes without gradients between training steps. */
#include <string.h>

#include "analyze/traced/rules.h"

enum { LEAST_OPS = 4 };                     /* products, norms and attentions of a forward pass */
static const double LEFT = 0.05;            /* evaluated twenty times less often */

enum pass { NOTHING, LEARNS, EVALUATES };

/* Whether an outermost op is part of a model's pass, and whether gradients were recorded in it. */
static enum pass pass_of(const struct study *s, int32_t top)
{
    static const enum task tasks[] = {TASK_LINEAR, TASK_BATCHED, TASK_NORM, TASK_ATTENTION, TASK_CONVOLUTION, TASK_EMBEDDING};
    if (study_task(s, top) == TASK_BACKWARD || study_annotation(s, top, "Optimizer") >= 0)
        return NOTHING;
    bool works = false;
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
        works |= study_find(s, top, tasks[i]) >= 0;
    if (!works)
        return NOTHING;
    /* the op's own number counts: casts of weights inside are recorded with gradients even in an evaluation */
    return view_event(s->v, top)->link >= 0 ? LEARNS : EVALUATES;
}

/* The end of a run of ops without gradients that starts at `first`, with the ops that follow its last one closely: the loss,
 * its read. *ops counts those that work. */
static int32_t run_end(const struct study *s, int32_t first, int *ops)
{
    int32_t last = first;
    *ops = 0;
    for (int32_t i = first; i < s->n_top && !study_is_backward(s, i); i++) {
        const enum pass p = pass_of(s, s->top[i]);
        if (p == LEARNS)
            break;
        if (p == EVALUATES)
            (*ops)++, last = i;
    }
    int32_t end = last + 1;
    while (end < s->n_top && end - last <= 8 && !study_is_backward(s, end) && pass_of(s, s->top[end]) == NOTHING &&
           study_annotation(s, s->top[end], "Optimizer") < 0) {
        end++;
        if (study_find(s, s->top[end - 1], TASK_SCALAR) >= 0)
            break;
    }
    return end;
}

/* The outermost range of compiled code around an op; the op itself where there is none. Kernels of compiled code are launched without
 * an op around each. */
static int32_t compiled_around(const struct study *s, int32_t top)
{
    int32_t found = top;
    for (int32_t i = s->v->parent[top]; i >= 0; i = s->v->parent[i])
        if (strstr(view_name(s->v, i), "CompiledFxGraph") || strstr(view_name(s->v, i), "Torch-Compiled Region"))
            found = i;
    return found;
}

/* All that its thread does from the first op to the last goes, calls outside of ops too. */
static void charge_stretch(const struct study *s, struct charge *c, int32_t first, int32_t end)
{
    const int32_t from = compiled_around(s, s->top[first]), last = compiled_around(s, s->top[end - 1]);
    const struct event *f = view_event(s->v, from);
    const int64_t until = event_end(view_event(s->v, last));
    for (int32_t k = first; k < end; k++)
        charge_call(s, c, s->top[k], LEFT);
    for (int32_t i = from; i < s->v->n_host && view_event(s->v, i)->track == f->track && view_event(s->v, i)->start_ns < until; i++)
        if (view_event(s->v, i)->kind == EVENT_RUNTIME)
            charge_call(s, c, i, LEFT);
}

bool trace_rule_eval_share(struct study *s, struct charge *c)
{
    if (!s->trains)
        return false;
    int passes = 0, of_work = 0;
    int32_t example = -1;
    for (int32_t i = 0, end; i < s->n_top; i = end) {
        int ops = 0;
        end = i + 1;
        if (study_is_backward(s, i) || pass_of(s, s->top[i]) != EVALUATES)
            continue;
        end = run_end(s, i, &ops);
        if (ops < LEAST_OPS)
            continue;
        charge_stretch(s, c, i, end);
        passes++;
        of_work += ops;
        example = example < 0 ? s->top[i] : example;
    }
    if (!passes)
        return false;
    c->doubt = 0.25;
    c->finding.where = study_where(s, example);
    c->finding.cause = "the model runs forward without gradients between training steps; that time trains nothing";
    c->finding.evidence = study_text(s, "%d stretches of evaluation in %s steps, %d products, norms and attentions in them",
                                     passes, study_number(s, s->replay->n_steps), of_work);
    return true;
}
