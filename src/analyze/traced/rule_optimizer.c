/* unfused-optimizer, zero-grad-fills, no-clipping: what happens to the parameters. */
#include <math.h>
#include <string.h>

#include "analyze/traced/fix.h"
#include "analyze/traced/rules.h"

enum { LEAST_UPDATES = 8 };                 /* in-place updates per step that are a loop over tensors */
static const double PASSES_LEFT = 0.35;     /* of the device's time: one sweep reads and writes each tensor once */
static const double FOREACH_LEFT = 0.6;
static const double UNITS_PER_TENSOR = 1;   /* host time of a fused step, in usual ops */
static const double CPU_LEFT = 0.3, CPU_FOREACH_LEFT = 0.5;     /* on a CPU, of the time of its ops, when one op does all */

static bool in_optimizer(const struct study *s, int32_t i) { return study_annotation(s, i, "Optimizer.step") >= 0; }

struct updates {
    int tensors, ops, launches, multi;      /* in all replayed steps */
    int32_t example;
};

static struct updates count_updates(const struct study *s)
{
    struct updates u = {.example = -1};
    int addcdiv = 0, most = 0;
    for (int32_t k = 0; k < s->n_top; k++) {
        const int32_t i = s->top[k];
        if (!in_optimizer(s, i))
            continue;
        u.ops++;
        u.launches += study_launches(s, i);
        u.multi += study_task(s, i) == TASK_MULTI;
        addcdiv += strstr(view_name(s->v, i), "::addcdiv_") != NULL;
        most += study_task(s, i) == TASK_UPDATE || strstr(view_name(s->v, i), "::add_");
        if (study_task(s, i) != TASK_MULTI && u.example < 0)
            u.example = i;
    }
    u.tensors = addcdiv ? addcdiv : most / 2;
    return u;
}

struct clipping { int steps, norms; int32_t example; };     /* optimizer steps behind a backward, and norms between both */

static struct clipping count_norms(const struct study *s)
{
    struct clipping n = {.example = -1};
    bool behind_backward = false;
    for (int32_t k = 0; k < s->n_top; k++) {
        const int32_t i = s->top[k];
        if (study_is_backward(s, k))
            behind_backward = true;
        else if (behind_backward && in_optimizer(s, i)) {
            n.steps++;
            behind_backward = false;
            n.example = i;
        } else if (behind_backward)
            n.norms += strstr(view_name(s->v, i), "norm") != NULL;
    }
    return n;
}

static const char *updates_evidence(const struct study *s, const struct updates *u, bool loop)
{
    const char *ops = study_on_cpu(s) ? study_text(s, "%.0f ops per step inside Optimizer.step", per_step(s, u->ops))
                                      : study_text(s, "%.0f ops and %.0f launches per step inside Optimizer.step", per_step(s, u->ops),
                                                   per_step(s, u->launches));
    return loop ? study_text(s, "%s, about %.0f tensors", ops, per_step(s, u->tensors)) : study_text(s, "%s, over lists of tensors", ops);
}

bool trace_rule_unfused_optimizer(struct study *s, struct charge *c)
{
    const struct updates u = count_updates(s);
    const enum optimizer_form form = fix_optimizer_form(&s->facts);
    const bool loop = form != OPTIMIZER_AS_IT_IS && per_step(s, u.ops - u.multi) >= LEAST_UPDATES && u.tensors > s->replay->n_steps;
    const bool foreach = form == OPTIMIZER_FUSED && !loop && per_step(s, u.multi) >= 6;     /* else it has the best form there is */
    const bool cpu = study_on_cpu(s);
    if ((!loop && !foreach) || (!u.launches && !cpu))
        return false;
    const double left = !loop ? FOREACH_LEFT : form == OPTIMIZER_FUSED ? PASSES_LEFT : PASSES_LEFT / FOREACH_LEFT;
    for (int32_t k = 0; k < s->n_top; k++)
        if (in_optimizer(s, s->top[k])) {
            charge_host(s, c, s->top[k], cpu ? (loop ? CPU_LEFT : CPU_FOREACH_LEFT) : loop ? 0 : 0.3);
            charge_device(s, c, s->top[k], left);
        }
    if (loop && !cpu)
        c->edit.added_ns = per_step(s, u.tensors) * UNITS_PER_TENSOR * s->unit_ns;
    c->doubt = 0.25;
    c->asks.clips = count_norms(s).norms > 0;
    c->finding.where = u.example >= 0 ? study_where(s, u.example) : "Optimizer.step";
    c->finding.cause = loop ? (cpu ? "the optimizer updates tensor by tensor, with several ops for each"
                                   : "the optimizer updates tensor by tensor, with several small kernels for each")
                            : "the optimizer sweeps over all tensors once per arithmetic operation instead of once";
    c->finding.evidence = updates_evidence(s, &u, loop);
    return true;
}

/* ---- zeroed gradients ---- */

static bool is_accumulate(const struct study *s, int32_t i)
{
    return study_task(s, i) == TASK_BACKWARD && strstr(view_name(s->v, i), "AccumulateGrad");
}

static bool is_zero(const struct study *s, int32_t i)
{
    const enum task t = study_task(s, i);
    return t == TASK_FILL || (t == TASK_MULTI && strstr(view_name(s->v, i), "zero"));
}

/* Adding to zeros what could be kept as it is: the additions inside AccumulateGrad. */
static int charge_additions(const struct study *s, struct charge *c, int32_t node)
{
    int n = 0;
    for (int32_t i = node; i < s->v->end[node]; i++)
        if (study_task(s, i) == TASK_ELEMENTWISE && (study_on_cpu(s) || study_launches(s, i))) {
            charge_call(s, c, i, 0);
            n++;
        }
    return n;
}

/* Those of the first backward pass behind the fills: further passes accumulate what is meant to be added. A forward pass,
 * with products, parts two of them. */
static int charge_first_additions(const struct study *s, struct charge *c)
{
    int n = 0, passes = 0;
    bool forward = true;
    for (int32_t k = 0; k < s->n_top; k++) {
        if (study_annotation(s, s->top[k], "Optimizer") >= 0)
            passes = 0;
        else if (!study_is_backward(s, k))
            forward |= study_find(s, s->top[k], TASK_LINEAR) >= 0 || study_find(s, s->top[k], TASK_CONVOLUTION) >= 0;
        else if (is_accumulate(s, s->top[k])) {
            passes += forward;
            forward = false;
            n += passes == 1 ? charge_additions(s, c, s->top[k]) : 0;
        }
    }
    return n;
}

/* An update behind several backward passes. */
bool study_accumulates(const struct study *s)
{
    int passes = 0;
    bool forward = true, several = false;
    for (int32_t k = 0; k < s->n_top && !several; k++) {
        if (study_annotation(s, s->top[k], "Optimizer") >= 0) {
            several = passes > 1;
            passes = 0;
        } else if (!study_is_backward(s, k))
            forward |= study_find(s, s->top[k], TASK_LINEAR) >= 0 || study_find(s, s->top[k], TASK_CONVOLUTION) >= 0;
        else if (is_accumulate(s, s->top[k])) {
            passes += forward;
            forward = false;
        }
    }
    return several;
}

bool trace_rule_zero_grad_fills(struct study *s, struct charge *c)
{
    int fills = 0, nodes = 0;
    int32_t example = -1;
    for (int32_t k = 0; k < s->n_top; k++) {
        nodes += is_accumulate(s, s->top[k]);
        if (is_zero(s, s->top[k]) && (study_annotation(s, s->top[k], "Optimizer.zero_grad") >= 0)) {
            fills += study_on_cpu(s) ? 1 : study_launches(s, s->top[k]);
            example = example < 0 ? s->top[k] : example;
            charge_call(s, c, s->top[k], 0);
        }
    }
    if (example < 0 || !fills)
        return false;
    const int additions = charge_first_additions(s, c);
    c->doubt = 0.35;
    c->finding.where = study_where(s, example);
    c->finding.cause = "gradients are set to zero and then added to, where keeping the first gradient would do";
    c->finding.evidence = study_text(s, "%.0f fills and %.0f additions of gradients per step, %.0f gradients",
                                     per_step(s, fills), per_step(s, additions), per_step(s, nodes));
    return true;
}

/* ---- no clipping: no norm of the gradients between backward and the optimizer ---- */

bool trace_rule_no_clipping(struct study *s, struct charge *c)
{
    const struct clipping n = count_norms(s);
    if (!s->trains || !n.steps || n.norms)
        return false;
    c->memory_only = true;
    c->finding.where = study_where(s, n.example);
    c->finding.cause = "no norm of the gradients is computed before the optimizer's step: one bad batch can undo a run";
    c->finding.evidence = study_text(s, "%d optimizer steps, no norm between backward and them", n.steps);
    return true;
}
