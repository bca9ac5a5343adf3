/* anomaly-mode: torch.autograd.set_detect_anomaly(True) was left on. Every gradient is looked through for NaN, and every op whose gradient
 * will be wanted keeps the Python stack that called it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/rules.h"
#include "core/stats.h"

static const double MOST_NODES = 0.5;       /* of the nodes with a number, from which on it is the mode and not a check of the user's own */
static const double DEEP = 3;               /* usual stacks: what takes longer before the first call inside an op does other work there */
enum { LEAST_STACKS = 8 };                  /* ops that tell how long one takes */

/* ---- the checks: isnan, any and item of each gradient, behind the node that computed it and in its evaluation ---- */

static bool is_named(const struct study *s, int32_t i, const char *name) { return !strcmp(view_name(s->v, i), name); }

/* Nodes behind one that has a number belong to it. */
static bool is_numbered(const struct study *s, int32_t i)
{
    return study_task(s, i) == TASK_BACKWARD && view_event(s->v, i)->link >= 0 && study_has(s, i);
}

/* Directly inside: what the node itself computes is deeper. The old form asks `any`, which users' hooks do, too. */
static bool is_part_of_check(const struct study *s, int32_t i)
{
    static const char *const parts[] = {"aten::isnan", "aten::_is_any_true", "aten::any", "aten::item", "aten::is_nonzero"};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        if (is_named(s, i, parts[k]))
            return true;
    return false;
}

struct checks {
    int nodes, checked, gradients;
    double ns;                              /* as recorded */
    int32_t example;                        /* a node; -1 */
};

/* From each isnan on, in the evaluation of a node; with `c` they are taken out. */
static int checks_in(const struct study *s, int32_t node, struct charge *c, double *ns)
{
    int n = 0;
    bool in_check = false;
    for (int32_t i = node + 1; i < s->v->end[node]; i = s->v->end[i]) {
        const bool starts = is_named(s, i, "aten::isnan");
        n += starts;
        in_check = starts || (in_check && is_part_of_check(s, i));
        if (!in_check)
            continue;
        *ns += (double)view_event(s->v, i)->duration_ns;
        if (c)
            charge_call(s, c, i, 0);
    }
    return n;
}

static struct checks find_checks(const struct study *s, struct charge *c)
{
    struct checks f = {.example = -1};
    for (int32_t i = 0; i < s->v->n_host; i++) {
        if (!is_numbered(s, i))
            continue;
        const int n = checks_in(s, i, c, &f.ns);
        f.nodes++;
        f.checked += n > 0;
        f.gradients += n;
        f.example = f.example < 0 && n ? i : f.example;
    }
    return f;
}

/* ---- the stacks: an op keeps its own before it calls what is inside ---- */

struct stacks {
    double *waits;                          /* (n) before the first call inside, without the profiler, of ops that keep one */
    double *others;                         /* (n_others) the same of ops in backward, which keep none */
    int n, n_others;
};

/* The op that an item is the beginning of: from its begin to the first call inside, or to its end. -1: none. */
static int32_t begins_op(const struct study *s, int32_t item)
{
    const struct replay_item *now = &s->replay->items[item];
    if (!item || now->owner < 0 || now[-1].event != now->owner || view_event(s->v, now->owner)->kind != EVENT_HOST_OP)
        return -1;
    return now[-1].owner != now->owner || now->event == now->owner ? now->owner : -1;
}

/* (n_host) ops that made a node which ran. The caller frees. */
static bool *find_makers(const struct study *s)
{
    bool *makes = xcalloc((size_t)s->v->n_host + 1, sizeof *makes);
    for (int32_t t = 0; t < s->n_twins; t++)
        if (s->twins[t].op >= 0)
            makes[s->twins[t].op] = true;
    return makes;
}

static struct stacks collect_stacks(const struct study *s, const bool *makes)
{
    const struct replay *r = s->replay;
    struct stacks x = {xcalloc((size_t)r->n_items, sizeof *x.waits), xcalloc((size_t)r->n_items, sizeof *x.others), 0, 0};
    for (int32_t k = 0; k < r->n_items; k++) {
        const int32_t op = begins_op(s, k);
        if (op < 0 || r->items[k].event == op)      /* without a call inside its work is in the same stretch */
            continue;
        if (makes[op])
            x.waits[x.n++] = replay_own_ns(r, &r->items[k]);
        else if (study_in_backward(s, op))
            x.others[x.n_others++] = replay_own_ns(r, &r->items[k]);
    }
    return x;
}

static double median(double *values, int n)
{
    stats_sort(values, n);
    return n ? stats_percentile(values, n, 0.5) : 0;
}

/* What all stacks take, of the replayed steps; *usual_ns: one of them. */
static double stacks_ns(const struct study *s, double *usual_ns)
{
    const struct replay *r = s->replay;
    bool *makes = find_makers(s);
    struct stacks x = collect_stacks(s, makes);
    const double other = median(x.others, x.n_others), usual = x.n >= LEAST_STACKS ? fmax(median(x.waits, x.n) - other, 0) : 0;
    double ns = 0;
    for (int32_t k = 0; k < r->n_items; k++) {
        const int32_t op = begins_op(s, k);
        if (op < 0 || !makes[op])
            continue;
        const double most = r->items[k].event == op ? usual : DEEP * usual;
        ns += fmin(fmax(replay_own_ns(r, &r->items[k]) - other, 0), most);
    }
    free(makes);
    free(x.waits);
    free(x.others);
    *usual_ns = usual;
    return ns;
}

bool trace_rule_anomaly_mode(struct study *s, struct charge *c)
{
    struct checks f = find_checks(s, NULL);
    if (!f.checked || f.checked < MOST_NODES * f.nodes)
        return false;
    f = find_checks(s, c);
    double stack_ns = 0;
    const double all_ns = stacks_ns(s, &stack_ns);
    c->edit.added_ns = -per_step(s, all_ns);
    c->involved_ns = per_step(s, all_ns + f.ns);
    c->doubt = 0.25;
    c->finding.where = study_where(s, f.example);
    c->finding.cause = "torch.autograd's anomaly detection is on: it looks through every gradient for NaN and keeps the stack of every call that will have one";
    c->finding.evidence = study_text(s, "%s gradients per step are looked through, in %s, as recorded", study_number(s, per_step(s, f.gradients)), study_us(s, per_step(s, f.ns)));
    if (stack_ns > 0)
        c->finding.evidence = study_text(s, "%s; an op that will have a gradient takes %s before it begins, for its stack: %s per step", c->finding.evidence, study_us(s, stack_ns),
                                         study_us(s, per_step(s, all_ns)));
    return true;
}
