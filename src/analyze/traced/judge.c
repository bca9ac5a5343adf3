/* Rules -> findings: each charge is replayed at the usual and the extreme costs of the profiler, doubted, and ranked. */
#include "analyze/traced/judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/fix.h"
#include "analyze/traced/rules.h"

static const double NOISE = 0.06, CPU_NOISE = 0.08;     /* two runs of the same step differ by so much */
static const double PAYS = 1.03;            /* a speed-up that is worth the work */
static const double PAYS_LATER = 1.06;      /* what a finding must give once its bound is gone to be named */

/* The recorded step as it is at one cost; there are three of them. */
static struct replay_result base_at(struct study *s, struct replay_cost cost)
{
    const int most = sizeof s->bases / sizeof *s->bases;
    for (int i = 0; i < s->n_bases; i++)
        if (!memcmp(&s->bases[i].cost, &cost, sizeof cost))
            return s->bases[i].result;
    const struct replay_result result = replay_run(s->replay, NULL);
    if (s->n_bases < most)
        s->bases[s->n_bases++] = (struct study_base){cost, result};
    return result;
}

struct gain judge_gain(struct study *s, struct replay_cost cost, const struct edit *e)
{
    struct replay *r = s->replay;
    const struct replay_cost kept = r->cost;
    r->cost = cost;
    const struct replay_result base = base_at(s, cost), after = e ? replay_run(r, e) : base;
    r->cost = kept;
    const double cost_ns = fmax(s->all_host_ns - base.host_ns, 0);
    const double before_ns = bounds_step(base.step_ns, base.device_ns, s->span_ns - cost_ns, s->recorded_ns);
    /* a wait that the replay does not know stays as it is */
    const double unexplained = fmax(before_ns - fmax(base.step_ns, base.device_ns), 0);
    return (struct gain){before_ns, fmax(after.step_ns, after.device_ns) + unexplained, after.untouched_ns + unexplained};
}

double judge_noise(const struct study *s) { return study_on_cpu(s) ? CPU_NOISE : NOISE; }

struct interval judge_interval(struct study *s, const struct costs *costs, const struct edit *e, double doubt)
{
    const struct gain usual = judge_gain(s, costs->usual, e);
    const bool given = !memcmp(&costs->low, &costs->high, sizeof costs->low);
    const struct gain ends[] = {usual, given ? usual : judge_gain(s, costs->low, e),
                                given ? usual : judge_gain(s, costs->high, e)};
    struct interval i = {bounds_speedup(usual, 1), INFINITY, 0};
    for (int k = 0; k < 3; k++) {
        const double less = bounds_speedup(ends[k], 1 - doubt), more = bounds_speedup(ends[k], 1 + doubt);
        i.low = fmin(i.low, fmin(less, more));
        i.high = fmax(i.high, fmax(less, more));
    }
    const double noise = judge_noise(s);
    i.low *= 1 - noise;
    i.high *= 1 + noise;
    return bounds_interval(i, bounds_most(usual));
}

/* Of the replayed steps as recorded: when the host is in calls that the fix takes part in, waits included, and in gaps that it would shorten. */
static double involved_host_ns(const struct study *s, const struct charge *c)
{
    const struct view *v = s->v;
    struct ranges calls = {0};
    double gaps = 0;
    for (int32_t i = 0; i < v->n_host; i++)
        if (c->edit.host[i] < KEEP_ALL && study_has(s, i))
            ranges_add(&calls, study_range(s, i));
    for (int32_t k = 0; k < s->replay->n_items; k++) {
        const struct replay_item *item = &s->replay->items[k];
        const bool counted = item->event >= 0 && c->edit.host[item->event] < KEEP_ALL;
        if (item->owner < 0 && !counted && replay_stretch_ns(item) > c->edit.gap_limit_ns)
            gaps += (double)(item->ns - item->comm_ns) - c->edit.gap_limit_ns;
    }
    const double sum = (double)ranges_sum(&calls) + gaps;
    ranges_release(&calls);
    return sum;
}

static double involved_device_ns(const struct study *s, const struct charge *c)
{
    const struct view *v = s->v;
    double ns = 0;
    for (int32_t d = 0; d < v->n_device; d++)
        if (c->edit.device[d] < 1 && v->launch[d] >= 0 && study_has(s, v->launch[d]))
            ns += (double)view_event(v, v->device + d)->duration_ns;
    return ns;
}

/* The larger of the host's and the device's time that the fix takes part in, over the step: the host's as recorded, as is the step that it is held against. */
static double share(const struct study *s, const struct charge *c)
{
    if (c->involved_ns > 0)
        return fmin(c->involved_ns / s->base_ns, 1);
    if (c->edit.host_factor < 1)
        return fmin(s->host_ns / s->base_ns, 1);
    const double recorded = s->recorded_ns > 0 ? s->recorded_ns : s->base_ns;
    return fmin(fmax(per_step(s, involved_host_ns(s, c)) / recorded, per_step(s, involved_device_ns(s, c)) / s->base_ns), 1);
}

/* Whether the same edit would pay if the other side were no bound. */
static bool pays_when(struct study *s, const struct costs *costs, const struct charge *c, bool host_is_free)
{
    struct edit with = c->edit, without;
    edit_init(&without, s->v);
    *(host_is_free ? &with.host_factor : &with.device_factor) = 0.05;
    *(host_is_free ? &without.host_factor : &without.device_factor) = 0.05;
    struct replay_cost cost = costs->usual;
    cost.loader *= host_is_free ? 0.05 : 1;         /* nor does it wait for data */
    const double before = judge_gain(s, cost, &without).after_ns;
    const double after = judge_gain(s, cost, &with).after_ns;
    edit_release(&without);
    return before > PAYS_LATER * after;
}

/* The code for this program; a place in a fix is where the user's own code is. */
static const char *fix_of(const struct study *s, const struct charge *c, const char *rule)
{
    struct fix_facts f = s->facts;
    f.tf32 = c->asks.tf32;
    f.planes = c->asks.planes;
    f.collective = c->asks.collective;
    f.synchronizes = c->asks.synchronizes;
    f.clips = c->asks.clips;
    f.frozen = c->asks.frozen;
    f.mask = c->asks.mask;
    f.holder = c->asks.holder;
    f.threads = c->asks.threads;
    f.times = c->asks.times;
    f.accumulates = f.times > 1 && study_accumulates(s);
    const char *in = c->finding.where ? strstr(c->finding.where, ", in ") : NULL;
    f.place = in ? in + 5 : NULL;
    return fix_text(s->arena, rule, &f);
}

static void settle(struct study *s, const struct costs *costs, struct charge *c, const char *rule)
{
    struct finding *f = &c->finding;
    const struct rule_text *text = rule_text_find(rule);
    f->rule = rule;
    f->effort = text->effort;
    f->doubt = c->doubt;
    f->fix = f->fix ? f->fix : fix_of(s, c, rule);
    struct interval i = {1, 1, 1};
    if (c->speedup > 0)
        i = bounds_interval((struct interval){c->speedup, 1 + (c->speedup - 1) * (1 - c->doubt), 1 + (c->speedup - 1) * (1 + c->doubt)}, 0);
    else if (!c->memory_only)
        i = judge_interval(s, costs, &c->edit, c->doubt);
    f->speedup = i.usual;
    f->speedup_low = i.low;
    f->speedup_high = i.high;
    if (c->may_win_nothing)
        f->speedup_low = fmin(f->speedup_low, 1);
    f->severity = severity_of(f->speedup);
    if (s->replay->all_cold) {              /* what is left of a cold step is no proof of much */
        f->speedup_low = fmin(f->speedup_low, 1);
        f->severity = f->severity > SEVERITY_MEDIUM ? SEVERITY_MEDIUM : f->severity;
    }
    f->share = c->memory_only ? 0 : fmax(share(s, c), f->speedup > 1 ? 1 - 1 / f->speedup : 0);
    if (c->memory_only || c->speedup > 0 || f->speedup >= PAYS)
        return;
    const bool host_bound = s->device_ns < 0.9 * s->base_ns;
    if (pays_when(s, costs, c, host_bound))
        f->after = host_bound ? "launch-bound" : "device";
    else if (f->speedup < 1 && pays_when(s, costs, c, !host_bound))
        f->after = host_bound ? "device" : "launch-bound";      /* what it adds on the one side hides what it wins on the other */
    if (f->speedup >= 1 || !f->after)
        return;
    /* not now, but later: until then nothing is won or lost */
    f->evidence = study_text(s, "%s; in the step as it is now it would cost %.0f %%", f->evidence, 100 * (1 / f->speedup - 1));
    f->speedup = 1;
    f->speedup_low = fmax(f->speedup_low, 1 - NOISE);
    f->speedup_high = fmax(f->speedup_high, 1 + NOISE);
}

/* What would only cost time is no finding. */
static bool is_finding(const struct finding *f) { return f->speedup >= 1 || f->after; }

/* "device" stands for the finding that wins most on the device, where there is one. */
static void name_bounds(struct diagnosis *d)
{
    const char *launch = NULL, *device = NULL;
    for (int i = 0; i < d->n_findings; i++) {
        const struct finding *f = &d->findings[i];
        if (!launch && (!strcmp(f->rule, "launch-bound") || !strcmp(f->rule, "host-bound")))
            launch = f->rule;
        else if (!device && f->speedup >= PAYS && !f->after)
            device = f->rule;
    }
    for (int i = 0; i < d->n_findings; i++) {
        struct finding *f = &d->findings[i];
        if (f->after)
            f->after = !strcmp(f->after, "device") ? device : finding_blocks_graphs(f) ? NULL : launch;
    }
}

/* A graph cannot be captured around waits and reads: they are named at its head. */
static void name_what_comes_first(struct diagnosis *d)
{
    const char *names = "";
    struct finding *launch = NULL;
    for (int i = 0; i < d->n_findings; i++) {
        if (finding_blocks_graphs(&d->findings[i]))
            names = arena_printf(&d->arena, "%s%s%s", names, *names ? ", " : "", d->findings[i].rule);
        if (!strcmp(d->findings[i].rule, "launch-bound"))
            launch = &d->findings[i];
    }
    if (launch && *names)
        launch->fix = arena_printf(&d->arena, "# first: %s; a graph cannot hold what waits for the device or reads the host's memory\n%s", names,
                                   launch->fix);
}

void judge_findings(struct study *s, const struct costs *costs)
{
    for (const struct trace_rule *r = trace_rule_table; r->id; r++) {
        struct charge c = {.doubt = 0.3};
        edit_init(&c.edit, s->v);
        if (r->detect(s, &c)) {
            settle(s, costs, &c, r->id);
            if (is_finding(&c.finding))
                finding_insert(s->d, c.finding);
        }
        edit_release(&c.edit);
    }
    name_bounds(s->d);
    name_what_comes_first(s->d);
}
