/* The roadmap: findings in phases by effort, and what each phase gives together with the ones before, replayed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/job.h"
#include "analyze/traced/judge.h"
#include "analyze/traced/rules.h"

enum { MOST_PHASES = 4 };
static const double WORTH = 1.005;

static const char *const titles[MOST_PHASES] = {"Quick wins", "Larger changes", "Deep changes", "Once the step has another bound"};

static int phase_of(const struct finding *f)
{
    if (f->after)
        return MOST_PHASES - 1;
    return f->effort == EFFORT_LOW ? 0 : f->effort == EFFORT_MEDIUM ? 1 : 2;
}

static const struct trace_rule *rule_find(const char *id)
{
    for (const struct trace_rule *r = trace_rule_table; r->id; r++)
        if (!strcmp(r->id, id))
            return r;
    return NULL;
}

struct replayed {
    struct study *s;
    const struct costs *costs;
    struct edit sum;                        /* what all phases until here take away */
    struct edit sure;                       /* of it, what does not rest on what a trace does not have */
    bool unsure;                            /* they differ */
};

/* Adds what a finding's rule takes away; rules that are not replayed take nothing. */
static void add_rule(struct replayed *of, const struct finding *f)
{
    const struct trace_rule *r = rule_find(f->rule);
    if (!r)
        return;
    struct charge c = {0};
    edit_init(&c.edit, of->s->v);
    r->detect(of->s, &c);
    if (!c.memory_only && !(c.speedup > 0)) {
        edit_add(&of->sum, of->s->v, &c.edit);
        if (!c.may_win_nothing)
            edit_add(&of->sure, of->s->v, &c.edit);
        of->unsure |= c.may_win_nothing;
    }
    edit_release(&c.edit);
}

/* Together no less than the best alone: of fixes that would hurt each other one is left out. What is won per sample by a larger
 * batch is the same idle time that the others win: the larger of both counts. */
static struct interval at_least(struct interval i, struct interval best)
{
    return bounds_interval((struct interval){fmax(i.usual, best.usual), fmax(i.low, best.low), fmax(i.high, best.high)}, 0);
}

/* The findings of a phase that are worth it; how many. */
static int list_phase(const struct diagnosis *d, int phase, int *list)
{
    int n = 0;
    for (int i = 0; i < d->n_findings; i++)
        if (phase_of(&d->findings[i]) == phase && (d->findings[i].speedup >= WORTH || d->findings[i].after))
            list[n++] = i;
    return n;
}

/* What the findings of a phase (n) give together with those of the phases before it; asked for in the order of phases. */
typedef struct interval together(void *context, const struct diagnosis *d, int phase, const int *list, int n);

static void plan(struct diagnosis *d, together *give, void *context)
{
    struct interval total = {1, 0, 1};
    int all = 0;
    d->phases = arena_alloc(&d->arena, MOST_PHASES * sizeof *d->phases);
    d->n_phases = 0;
    for (int p = 0; p < MOST_PHASES; p++) {
        int *list = arena_alloc(&d->arena, (size_t)(d->n_findings + 1) * sizeof *list);
        const int n = list_phase(d, p, list);
        if (!n)
            continue;
        for (int i = 0; i < n; i++) {
            const struct finding *f = &d->findings[list[i]];
            total = at_least(total, (struct interval){f->speedup, f->speedup_low, f->speedup_high});
        }
        const struct interval given = give(context, d, p, list, n);
        all += n;
        total = all > 1 ? at_least(total, given) : total;           /* one alone gives what it says */
        d->phases[d->n_phases++] = (struct plan_phase){.title = titles[p], .findings = list, .n = n, .speedup = total.usual, .low = total.low, .high = total.high};
    }
}

/* ---- of one rank ---- */

static struct interval replay_together(void *context, const struct diagnosis *d, int phase, const int *list, int n)
{
    struct replayed *r = context;
    (void)phase;
    for (int i = 0; i < n; i++)
        add_rule(r, &d->findings[list[i]]);
    struct interval all = judge_interval(r->s, r->costs, &r->sum, 0.3);
    if (r->unsure)
        all.low = fmin(all.low, judge_interval(r->s, r->costs, &r->sure, 0.3).low);
    return all;
}

void judge_plan(struct study *s, const struct costs *costs)
{
    struct replayed r = {.s = s, .costs = costs};
    edit_init(&r.sum, s->v);
    edit_init(&r.sure, s->v);
    plan(s->d, replay_together, &r);
    edit_release(&r.sum);
    edit_release(&r.sure);
}

/* ---- of a job ---- */

/* What a rank's own roadmap gives up to a phase. */
static struct interval up_to(const struct plan_phase *phases, int n, int phase)
{
    struct interval i = {1, 1, 1};
    for (int p = 0; p < n; p++)
        for (int t = 0; t <= phase; t++)
            if (!strcmp(phases[p].title, titles[t]))
                i = (struct interval){phases[p].speedup, phases[p].low, phases[p].high};
    return i;
}

enum end { USUAL, LOW, HIGH, ENDS };

static double gain_at(const struct finding *f, enum end end) { return end == USUAL ? f->speedup : end == LOW ? f->speedup_low : f->speedup_high; }
static double saved_by(double speedup) { return speedup > 0 ? 1 - 1 / speedup : 0; }

static const struct finding *find_rule(const struct finding *all, int n, const char *rule)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(all[i].rule, rule))
            return &all[i];
    return NULL;
}

static const struct finding *findings_of(const struct job *j, int rank, int *n)
{
    *n = rank ? j->ranks[rank]->n_findings : j->n_first;
    return rank ? j->ranks[rank]->findings : j->first;
}

/* What a fix saves of the step of the others, on average. */
static double saved_by_others(const struct job *j, const char *rule, enum end end)
{
    double sum = 0;
    for (int r = 0; r < j->n; r++) {
        int n;
        const struct finding *all = findings_of(j, r, &n), *f = r == j->straggler ? NULL : find_rule(all, n, rule);
        sum += f ? saved_by(gain_at(f, end)) : 0;
    }
    return sum / (j->n - 1);
}

/* Of the straggler's delay, what its own findings explain: those that save more on it than on the others. That is the same time. */
static double explained(const struct job *j, int phase, enum end end)
{
    int n;
    const struct finding *all = findings_of(j, j->straggler, &n);
    double sum = 0;
    for (int i = 0; i < n; i++)
        if (phase_of(&all[i]) <= phase)
            sum += fmax(saved_by(gain_at(&all[i], end)) - saved_by_others(j, all[i].rule, end), 0);
    return sum;
}

/* What the straggler saves besides, when it becomes as fast as the others; 0: there is none, or it is for a later phase. */
static double delay_saved(const struct job *j, int phase, enum end end)
{
    const struct diagnosis *d = j->ranks[0];
    const struct finding *f = j->straggler >= 0 ? find_rule(d->findings, d->n_findings, "straggler") : NULL;
    return f && phase_of(f) <= phase ? fmax(saved_by(gain_at(f, end)) - explained(j, phase, end), 0) : 0;
}

/* The roadmaps of ranks, of which the first one's findings are the job's already. */
static struct interval of_ranks(const struct job *j, const struct plan_phase *first, int n_first, int phase)
{
    double *saved = xcalloc(ENDS * (size_t)j->n, sizeof *saved);
    for (int r = 0; r < j->n; r++) {
        const struct interval i = r ? up_to(j->ranks[r]->phases, j->ranks[r]->n_phases, phase) : up_to(first, n_first, phase);
        const double gain[ENDS] = {i.usual, i.low, i.high};
        for (enum end e = 0; e < ENDS; e++)
            saved[(int)e * j->n + r] = saved_by(gain[e]) + (r == j->straggler ? delay_saved(j, phase, e) : 0);
    }
    const struct interval i = {job_speedup(j, saved), job_speedup(j, saved + j->n), job_speedup(j, saved + 2 * j->n)};
    free(saved);
    return i;
}

/* `all`, but no more than one fix after the other gives, each with all it has: `most`, to which those of a phase are added. */
static struct interval within(struct interval *most, struct interval all, const struct diagnosis *d, const int *list, int n)
{
    for (int i = 0; i < n; i++) {
        const struct finding *f = &d->findings[list[i]];
        *most = (struct interval){most->usual * f->speedup, most->low * f->speedup_low, most->high * f->speedup_high};
    }
    return (struct interval){fmin(all.usual, most->usual), fmin(all.low, most->low), fmin(all.high, most->high)};
}

struct of_job {
    const struct job *job;
    const struct plan_phase *first;         /* (n_first) the roadmap of the first rank alone */
    int n_first;
    struct interval most;                   /* see within */
};

/* Two fixes of times that do not overlap. */
static double besides(double speedup, double saved) { return 1 / fmax(1 / speedup - saved, 0.01); }

/* The straggler's delay is time of its own: what it saves comes on top of the other fixes, not out of what they leave. */
static struct interval job_together(void *context, const struct diagnosis *d, int phase, const int *list, int n)
{
    struct of_job *o = context;
    int *others = xcalloc((size_t)n + 1, sizeof *others), n_others = 0;
    for (int i = 0; i < n; i++)
        if (strcmp(d->findings[list[i]].rule, "straggler") != 0)
            others[n_others++] = list[i];
    const struct interval unbound = {INFINITY, INFINITY, INFINITY}, most = within(&o->most, unbound, d, others, n_others);
    const struct interval all = of_ranks(o->job, o->first, o->n_first, phase);
    free(others);
    return (struct interval){fmin(all.usual, besides(most.usual, delay_saved(o->job, phase, USUAL))), fmin(all.low, besides(most.low, delay_saved(o->job, phase, LOW))),
                             fmin(all.high, besides(most.high, delay_saved(o->job, phase, HIGH)))};
}

void job_plan(struct job *j, const struct plan_phase *first, int n_first)
{
    plan(j->ranks[0], job_together, &(struct of_job){j, first, n_first, {1, 1, 1}});
}

/* ---- of what was tried ---- */

static void take_fix(struct diagnosis *d, struct finding *f, const struct measured_fix *fix)
{
    f->predicted = f->speedup;
    f->speedup = fix->won ? fmax(fix->speedup, 1) : 1;
    f->speedup_low = fix->won ? fmax(fix->low, 1) : 1;
    f->speedup_high = fmax(fix->high, f->speedup);
    f->share = fmax(f->share, 1 - 1 / f->speedup);      /* at least what it wins */
    f->severity = severity_of(f->speedup);
    f->confidence = "high";
    f->raise = NULL;
    f->evidence = arena_printf(&d->arena, "%s%stried in the running program: %s %s, %.3f× (%.3f× to %.3f×); predicted %.2f×", f->evidence ? f->evidence : "",
                               f->evidence && *f->evidence ? "; " : "", fix->name, fix->won ? "wins" : "wins nothing", fix->speedup, fix->low, fix->high,
                               f->predicted);
}

struct tried {
    const struct plan_phase *before;        /* (n_before) the roadmap as predicted */
    int n_before;
    struct interval most;                   /* see within */
};

static struct interval tried_together(void *context, const struct diagnosis *d, int phase, const int *list, int n)
{
    struct tried *t = context;
    return within(&t->most, up_to(t->before, t->n_before, phase), d, list, n);
}

void diagnosis_take_measured(struct diagnosis *d, const struct measured_fix *fixes, int n)
{
    struct tried t = {d->phases, d->n_phases, {1, 1, 1}};
    const int n_findings = d->n_findings;
    struct finding *all = d->findings;
    bool any = false;
    for (int i = 0; i < n_findings; i++)
        for (int k = 0; k < n; k++)
            if (!strcmp(all[i].rule, fixes[k].rule)) {
                take_fix(d, &all[i], &fixes[k]);
                any = true;
            }
    if (!any)
        return;
    d->findings = NULL;
    d->n_findings = d->n_phases = 0;
    for (int i = 0; i < n_findings; i++)
        finding_insert(d, all[i]);
    plan(d, tried_together, &t);
    judge_answers(d);
}
