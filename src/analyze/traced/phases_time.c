/* How long each phase of a step takes. While the device works a moment goes to the phase whose work it does, what overlaps counted once: kernels
 * before copies before fills before communication. While it does nothing, or where there is none, a moment goes to the phase that the host is in,
 * since that is what the device waits for; but between work that was launched in time to the phase of what starts next.
 *
 * Without the profiler the device's work is as long as it was, and the time in which it does nothing gets shorter: in each phase as much as the
 * host's own time in it. What sums of phases are brought to is the step, as recorded and without the profiler (corrected). */
#include <math.h>
#include <stdlib.h>

#include "analyze/traced/phases.h"

static const char *const phase_names[STEP_PHASES] = {
    [STEP_DATA] = "data", [STEP_FORWARD] = "forward", [STEP_BACKWARD] = "backward", [STEP_OPTIMIZER] = "optimizer",
    [STEP_EVALUATION] = "evaluation", [STEP_OTHER] = "other", [STEP_COMMUNICATION] = "communication",
};
static const double MOST_UNTOLD = 0.1;      /* of the device's time may be of a phase that nothing tells */

enum work { KERNELS, COPIES, FILLS, WORKS };    /* communication is a phase */

struct time {                               /* ns of all judged steps */
    double busy[STEP_PHASES];
    double host[STEP_PHASES], late[STEP_PHASES];        /* the device does nothing: it waits for the host; what starts next was launched */
};

struct clock {
    const struct phases *p;
    struct time sum;
    struct span *steps;                     /* (n) the judged ones; they follow each other */
    int n, step;                            /* steps before it are over */
    int64_t now_ns;
    int64_t until_ns[WORKS * STEP_PHASES];         /* of kind and phase: some work goes on until then */
};

/* ---- which steps ---- */

/* Of a single step that is too long its middle. The caller frees. */
static struct span *judged_steps(const struct replay *r, int *n)
{
    struct span *steps = xcalloc((size_t)(r->end_step - r->first_step) + 1, sizeof *steps);
    int64_t before = INT64_MIN;
    *n = 0;
    for (int i = 0; i < r->end_step; i++) {
        const struct span span = view_step_span(&r->v->steps[i], &before);
        if (i >= r->first_step)
            steps[(*n)++] = span;
    }
    if (r->n_steps < 1)
        steps[0] = (struct span){r->start_ns, r->end_ns};
    return steps;
}

/* ---- which phase ---- */

static enum step_phase host_phase(const struct phases *p, int64_t at_ns)
{
    const int32_t k = phases_at(p, at_ns);
    return k < 0 ? STEP_OTHER : p->line[k].phase;
}

/* A graph was captured in another step than it is launched in. */
static enum step_phase captured_phase(const struct phases *p, int32_t call)
{
    if (study_annotation(p->s, call, "Optimizer") >= 0)
        return STEP_OPTIMIZER;
    return study_in_backward(p->s, call) ? STEP_BACKWARD : STEP_FORWARD;
}

static int32_t captured_by(const struct view *v, int32_t d) { return v->captured ? v->captured[d] : -1; }

static enum step_phase device_phase(const struct phases *p, int32_t d)
{
    const struct view *v = p->s->v;
    const int32_t launch = v->launch[d];
    if (view_event(v, v->device + d)->kind == EVENT_KERNEL && view_kernel_kind(v, v->device + d) == KERNEL_COMM)
        return STEP_COMMUNICATION;
    const bool alone = launch >= 0 && v->parent[launch] < 0;
    if (alone && captured_by(v, d) >= 0)
        return captured_phase(p, captured_by(v, d));
    if (launch < 0)
        return STEP_OTHER;
    return p->of[launch] != STEP_NONE ? (enum step_phase)p->of[launch] : host_phase(p, view_event(v, launch)->start_ns);
}

/* ---- the device's time ---- */

static void add_host(struct clock *c, int64_t from_ns, int64_t to_ns)
{
    const struct phases *p = c->p;
    for (int32_t k = phases_at(p, from_ns); from_ns < to_ns; k++) {
        const int64_t next = k + 1 < p->n_line && p->line[k + 1].from_ns < to_ns ? p->line[k + 1].from_ns : to_ns;
        c->sum.host[k < 0 ? STEP_OTHER : p->line[k].phase] += (double)(next - from_ns);
        from_ns = next;
    }
}

/* Adds the time from now on to a sum, as far as it lies in steps; NULL: to where the host is. */
static void give(struct clock *c, double *sum, int64_t to_ns)
{
    for (; c->step < c->n && c->steps[c->step].start_ns < to_ns; c->step++) {
        const struct span *w = &c->steps[c->step];
        const int64_t from = c->now_ns > w->start_ns ? c->now_ns : w->start_ns, to = to_ns < w->end_ns ? to_ns : w->end_ns;
        if (to > from && sum)
            *sum += (double)(to - from);
        else if (to > from)
            add_host(c, from, to);
        if (w->end_ns > to_ns)
            break;
    }
    c->now_ns = to_ns;
}

/* The device does nothing from now on until `next` starts; -1: until the steps end. */
static void idle(struct clock *c, int32_t next, int64_t to_ns)
{
    const struct view *v = c->p->s->v;
    const int32_t launch = next < 0 ? -1 : v->launch[next];
    const bool late = launch >= 0 && view_event(v, launch)->start_ns <= c->now_ns;
    give(c, late ? &c->sum.late[device_phase(c->p, next)] : NULL, to_ns);
}

/* No work but `next` starts before to_ns. */
static void advance(struct clock *c, int32_t next, int64_t to_ns)
{
    while (c->now_ns < to_ns) {
        int k = 0;
        while (k < WORKS * STEP_PHASES && c->until_ns[k] <= c->now_ns)
            k++;
        if (k == WORKS * STEP_PHASES)
            idle(c, next, to_ns);
        else
            give(c, &c->sum.busy[k % STEP_PHASES], c->until_ns[k] < to_ns ? c->until_ns[k] : to_ns);
    }
}

/* Communication stands last in each kind of work, and its kernels are with the fills: so it counts where there is nothing else. */
static enum work work_of(const struct event *e, enum step_phase phase)
{
    return phase == STEP_COMMUNICATION || e->kind == EVENT_MEMSET ? FILLS : e->kind == EVENT_MEMCPY ? COPIES : KERNELS;
}

static void run_device(struct clock *c)
{
    const struct view *v = c->p->s->v;
    for (int k = 0; k < WORKS * STEP_PHASES; k++)
        c->until_ns[k] = INT64_MIN;
    c->now_ns = c->steps[0].start_ns;
    for (int32_t d = 0; d < v->n_device; d++) {
        const struct event *e = view_event(v, v->device + d);
        if (!replay_has(c->p->s->replay, d))
            continue;
        advance(c, d, e->start_ns);
        const enum step_phase phase = device_phase(c->p, d);
        int64_t *until = &c->until_ns[work_of(e, phase) * STEP_PHASES + phase];
        *until = event_end(e) > *until ? event_end(e) : *until;
    }
    advance(c, -1, c->steps[c->n - 1].end_ns);
}

static struct time measure(const struct phases *p)
{
    struct clock c = {.p = p};
    c.steps = judged_steps(p->s->replay, &c.n);
    run_device(&c);
    free(c.steps);
    return c.sum;
}

/* ---- without the profiler ---- */

/* Of the host's time before an item; of a stretch outside of ops where it ends. */
static enum step_phase item_phase(const struct phases *p, const struct replay_item *item)
{
    if (item->owner >= 0 && p->of[item->owner] != STEP_NONE)
        return (enum step_phase)p->of[item->owner];
    const struct replay *r = p->s->replay;
    return host_phase(p, (item->event < 0 ? r->end_ns : view_event(r->v, item->event)->start_ns) - 1);
}

/* (STEP_PHASES) what of the host's recorded time is the program's own: neither the profiler's nor, in a cold step, what a process does once. */
static void find_own(const struct phases *p, double *own)
{
    const struct replay *r = p->s->replay;
    double recorded[STEP_PHASES] = {0};
    for (int k = 0; k < STEP_PHASES; k++)
        own[k] = 0;
    for (int32_t k = 0; k < r->n_items; k++) {
        const enum step_phase phase = item_phase(p, &r->items[k]);
        own[phase] += replay_own_ns(r, &r->items[k]);
        recorded[phase] += (double)(r->items[k].ns - r->items[k].comm_ns);
    }
    for (int32_t k = 0; k < r->n_cold; k++)
        if (p->of[r->cold[k].event] != STEP_NONE)
            recorded[p->of[r->cold[k].event]] += (double)r->cold[k].ns;
    for (int k = 0; k < STEP_PHASES; k++)
        own[k] = k != STEP_COMMUNICATION && recorded[k] > 0 ? own[k] / recorded[k] : 1;
}

static double sum_of(const double *of)
{
    double sum = 0;
    for (int k = 0; k < STEP_PHASES; k++)
        sum += of[k];
    return sum;
}

/* Brings the parts to their sum; where there are none to where the device works. */
static void bring(double *parts, double sum, const double *busy)
{
    const double is = sum_of(parts), works = sum_of(busy);
    for (int k = 0; k < STEP_PHASES; k++)
        parts[k] = is > 0 ? parts[k] / is * sum : works > 0 ? busy[k] / works * sum : k == STEP_OTHER ? sum : 0;
}

static void fill(struct study *s, const struct phases *p)
{
    const struct corrected_view *c = &s->d->corrected;
    struct time t = measure(p);
    double own[STEP_PHASES], idle_us[STEP_PHASES], recorded_us[STEP_PHASES];
    find_own(p, own);
    for (int k = 0; k < STEP_PHASES; k++) {
        idle_us[k] = t.host[k] * own[k] + t.late[k];
        recorded_us[k] = t.host[k] + t.late[k];
    }
    bring(t.busy, c->device_us, t.busy);
    bring(idle_us, fmax(c->step_us - c->device_us, 0), t.busy);
    bring(recorded_us, fmax(c->recorded_us - c->device_us, 0), t.busy);
    s->d->iteration = arena_alloc(s->arena, STEP_PHASES * sizeof *s->d->iteration);
    s->d->n_iteration = STEP_PHASES;
    for (int k = 0; k < STEP_PHASES; k++)
        s->d->iteration[k] = (struct trace_phase){phase_names[k], t.busy[k] + idle_us[k], t.busy[k] + recorded_us[k], t.busy[k]};
}

/* ---- what a trace does not show ---- */

static const char no_launches[] = "the trace does not say which op launched what";

/* Launched as a graph in which no op lies; where nothing learns it is a forward pass. */
static bool is_of_graph(const struct phases *p, int32_t d)
{
    const struct view *v = p->s->v;
    const int32_t launch = v->launch[d];
    if (launch < 0 || captured_by(v, d) >= 0 || p->s->facts.forward_only)
        return false;
    const struct event *e = view_event(v, launch);
    return e->kind == EVENT_RUNTIME && v->call_kinds[e->name] == CALL_GRAPH && v->parent[launch] < 0;
}

/* Of the device's time in the judged steps: work of no known launch, which has no step of its own, is looked for by its time. */
static double not_launched_share(const struct phases *p)
{
    const struct view *v = p->s->v;
    int n, step = 0;
    struct span *steps = judged_steps(p->s->replay, &n);
    double all = 0, not_launched = 0;
    for (int32_t d = 0; d < v->n_device; d++) {             /* by start */
        const struct event *e = view_event(v, v->device + d);
        while (step < n && steps[step].end_ns <= e->start_ns)
            step++;
        if (step == n || e->start_ns < steps[step].start_ns)
            continue;
        all += (double)e->duration_ns;
        not_launched += v->launch[d] < 0 ? (double)e->duration_ns : 0;
    }
    free(steps);
    return all > 0 ? not_launched / all : 0;
}

static const char *why_untold(const struct phases *p)
{
    const struct view *v = p->s->v;
    double all = 0, of_graphs = 0;
    for (int32_t d = 0; d < v->n_device; d++) {
        if (!replay_has(p->s->replay, d))
            continue;
        const double ns = (double)view_event(v, v->device + d)->duration_ns;
        all += ns;
        of_graphs += is_of_graph(p, d) ? ns : 0;
    }
    if (not_launched_share(p) > MOST_UNTOLD)
        return no_launches;
    return of_graphs > MOST_UNTOLD * all ? "whole graphs are launched, and the trace does not say of which phase their kernels are" : NULL;
}

/* Steps may be graphs alone, captured before the judged ones. */
static bool captured_backward(const struct phases *p)
{
    const struct view *v = p->s->v;
    for (int32_t d = 0; d < v->n_device; d++)
        if (captured_by(v, d) >= 0 && replay_has(p->s->replay, d) && study_in_backward(p->s, captured_by(v, d)))
            return true;
    return false;
}

static const char *why_none(const struct study *s, const struct phases *p)
{
    const bool any_backward = p->any_backward || captured_backward(p);
    if (s->d->device_lost)
        return "work was launched, and none of it was recorded";
    if (!s->v->n_host || (s->v->n_device && !s->replay->linked))
        return no_launches;
    if (!any_backward && !s->facts.forward_only)
        return "no op of a backward pass is in the trace, and it is not of forward passes alone";
    if (!any_backward && !p->any_model)
        return "no op of a model is in the trace";
    return why_untold(p);
}

void study_iteration(struct study *s)
{
    struct phases p = phases_of(s);
    s->d->iteration_note = why_none(s, &p);
    if (!s->d->iteration_note) {
        phases_line(&p);
        fill(s, &p);
    }
    phases_release(&p);
}
