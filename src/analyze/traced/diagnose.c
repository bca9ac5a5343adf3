/* The diagnosis, from traces to findings. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/rules.h"
#include "analyze/traced/job.h"
#include "analyze/traced/numbers.h"
#include "analyze/traced/together.h"

enum { LEAST_LAUNCHES = 20 };               /* below which nothing is said of those without work */
static const double CLOCKS = 0.03;          /* of the device's work: a given step may be shorter by so much */
static const double FILLED = 0.85;          /* of the time of its steps, from which on a device sets their pace */

static void fill_numbers(struct diagnosis *d, const struct view *v)
{
    numbers_steps(d, v);
    numbers_gpu(d, v);
    numbers_kernels(d, v);
    numbers_ops(d, v);
    numbers_launches(d, v);
    numbers_memory(d, v);
}

static const char *device_name(const struct view *v)
{
    const struct trace *t = v->trace;
    for (int i = 0; i < t->n_devices; i++)
        if (t->devices[i].name >= 0 && *t->names[t->devices[i].name])
            return t->names[t->devices[i].name];
    return v->n_device ? "unknown device" : "CPU";
}

static void warn(struct diagnosis *d, char *text)
{
    char **all = arena_alloc(&d->arena, (size_t)(d->n_warnings + 1) * sizeof *all);
    if (d->n_warnings)
        memcpy(all, d->warnings, (size_t)d->n_warnings * sizeof *all);
    all[d->n_warnings++] = text;
    d->warnings = all;
}

/* The host's recorded work per step, waits left out. */
static double all_host_ns(const struct replay *r)
{
    double ns = 0;
    for (int32_t k = 0; k < r->n_items; k++)
        ns += (double)r->items[k].ns;
    return ns / r->n_steps;
}

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* What the device falls behind in a step: a host that runs ahead of it shortens the marks, not the steps. How far it is behind at the end of the
 * first step it may be at the end of each; of a single step all of it counts. Behind missing marks it is seen what was left of the steps before. */
static double lag_ns(const struct replay *r)
{
    const int first = r->first_step, n = r->end_step - first;
    int64_t done = INT64_MIN, from = 0, lag = 0, grown = 0;
    for (int i = first; i < r->end_step; i++) {
        const struct step_window *w = &r->v->steps[i];
        if (i > first && w->after_gap) {
            grown += lag - from;
            done = most(done, w->gap_end_ns);
            from = most(done, w->start_ns) - w->start_ns;
        }
        done = most(done, w->device_end_ns);
        lag = most(done, w->end_ns) - w->end_ns;
        if (i == first && n > 1)
            from = lag;
    }
    grown += lag - from;
    return grown > 0 ? (double)grown / (n > 1 ? n - 1 : 1) : 0;
}

/* How long some device event of a step ran. */
static double busy_in(const struct view *v, int step)
{
    int64_t until = INT64_MIN, ns = 0;
    for (int32_t i = v->device; i < v->device + v->n_device; i++) {
        const struct event *e = view_event(v, i);
        if (e->step != step || event_end(e) <= until)
            continue;
        ns += event_end(e) - most(e->start_ns, until);
        until = event_end(e);
    }
    return (double)ns;
}

/* A device that fills its steps sets their pace, whatever the marks say: its time from the end of the first step to that of the last, and as much for the
 * work of the first, which may begin with what was left of steps before. 0: it does not fill them, or some are missing between. */
static double pace_ns(const struct replay *r, double device_ns)
{
    const int n = r->end_step - r->first_step;
    if (n < 2 || r->gaps.n)
        return 0;
    const double span = (double)(r->v->steps[r->end_step - 1].device_end_ns - r->v->steps[r->first_step].device_end_ns);
    const double rest = device_ns * n - busy_in(r->v, r->first_step);
    return rest > FILLED * span ? device_ns * fmax(span / rest, 1) : 0;
}

/* A step as recorded, of the steps that are replayed, so that it stands beside the one without the profiler. */
static double recorded_ns(const struct diagnosis *d, const struct replay *r, double device_ns)
{
    if (d->no_step_marks && !d->steps_by)
        return d->mean.total_us * 1e3;
    const double marks = (double)r->span_ns / r->n_steps, pace = pace_ns(r, device_ns);
    return pace > 0 ? fmax(marks, pace) : fmax(marks + lag_ns(r), device_ns);
}

/* Of a call that a process does once, what lies in its step: the host may begin long before a step that is the device's time. */
static double cold_ns_in_step(const struct replay *r, int32_t k)
{
    const struct event *e = view_event(r->v, r->cold[k].event);
    if (e->step < 0)
        return 0;
    const struct step_window *w = &r->v->steps[e->step];
    const int64_t from = most(e->start_ns, w->start_ns), end = most(w->end_ns, w->device_end_ns), to = event_end(e) < end ? event_end(e) : end;
    return fmin((double)most(to - from, 0), (double)r->cold[k].ns);
}

static void warn_of_cold(struct diagnosis *d, const struct replay *r)
{
    int32_t longest = -1;
    double ns = 0;
    for (int32_t k = 0; k < r->n_cold; k++) {
        ns += cold_ns_in_step(r, k);
        longest = longest < 0 || cold_ns_in_step(r, k) > cold_ns_in_step(r, longest) ? k : longest;
    }
    d->cold_steps = r->cold_steps;
    d->all_cold = r->all_cold;
    if (!r->cold_steps)
        return;
    const char *name = view_name(r->v, r->cold[longest].event);
    const char *one = text_us(&d->arena, cold_ns_in_step(r, longest) / 1e3);
    if (r->all_cold)
        warn(d, arena_printf(&d->arena, "only cold steps were recorded: %s in them are work that a process does once (%s in one %.80s) and are "
                             "taken out; what is left is not sure: record after warm-up", text_us(&d->arena, ns / 1e3), one, name));
    else
        warn(d, arena_printf(&d->arena, "the first %s cold (work that a process does once, such as %s in one %.80s) and left out of what is "
                             "judged: record after warm-up", r->cold_steps == 1 ? "step is" : arena_printf(&d->arena, "%d steps are", r->cold_steps),
                             one, name));
}

/* Where a given time is not that of the step. What was measured in the same program is the time of a step, but perhaps not of such steps as the recorded ones. */
static const char *doubt_of(bool measured, bool taken)
{
    if (measured)
        return taken ? "steps differ, or the machine is busy with something else"
                     : "it is not taken: steps differ, or the machine is busy with something else; a larger --warmup or --steps may help";
    return taken ? "is it the time of one step?" : "it is not taken; is it the time of one step, in ms?";
}

/* What is given as the time of a step is said to be odd, and not taken (0) where no cost of the profiler explains it: no step is shorter than the
 * device's work. What the error of clocks explains is brought to that. */
static double check_given(struct diagnosis *d, const struct replay *r, double given_ns, bool measured)
{
    const double device = replay_run(r, NULL).device_ns, recorded = recorded_ns(d, r, device);
    if (!(given_ns > 0))
        return 0;
    const bool shorter = given_ns < device, near = given_ns >= (1 - CLOCKS) * device, taken = near && given_ns < 3 * recorded;
    const char *which = measured ? "undisturbed" : "given", *what = doubt_of(measured, taken);
    if (shorter)
        warn(d, arena_printf(&d->arena, "the %s step of %.3f ms is shorter than the device's own work of %.3f ms per step; %s", which, given_ns / 1e6,
                             device / 1e6, near ? "it is taken to be that" : what));
    if (given_ns > 1.3 * recorded)
        warn(d, arena_printf(&d->arena, "the %s step of %.3f ms is longer than the recorded one of %.3f ms; %s", which, given_ns / 1e6,
                             recorded / 1e6, what));
    return taken ? fmax(given_ns, device) : 0;
}

/* The step without the profiler, and the device in both views. */
static void fill_corrected(struct study *s, const struct costs *costs, double given_ns)
{
    const struct replay *r = s->replay;
    const double recorded = recorded_ns(s->d, r, s->device_ns);
    s->all_host_ns = all_host_ns(r);
    if (!(given_ns > 0) && !r->all_cold) {  /* of a cold step much is taken out besides the profiler */
        const bool marked = !s->d->no_step_marks || s->d->steps_by;
        s->recorded_ns = recorded;
        s->span_ns = marked ? (double)r->span_ns / r->n_steps : 0;
    }
    const struct gain base = judge_gain(s, costs->usual, NULL);
    s->base_ns = base.before_ns;
    s->unexplained_ns = base.floor_ns - fmin(base.floor_ns, s->device_ns);
    const double low = judge_gain(s, costs->high, NULL).before_ns, high = judge_gain(s, costs->low, NULL).before_ns;
    const double step = given_ns > 0 ? given_ns : s->base_ns, noise = given_ns > 0 ? 0 : judge_noise(s);
    s->d->corrected = (struct corrected_view){
        .step_us = step / 1e3, .low_us = (given_ns > 0 ? step : low) * (1 - noise) / 1e3,
        .high_us = (given_ns > 0 ? step : high) * (1 + noise) / 1e3,
        .given = given_ns > 0, .recorded_us = recorded / 1e3, .host_us = s->host_ns / 1e3, .device_us = s->device_ns / 1e3,
        .cost_per_event_us = r->events > 0 ? fmax(all_host_ns(r) - s->host_ns, 0) / r->events / 1e3 : 0, .events_per_step = r->events,
        .idle_us = (step > s->device_ns ? step - s->device_ns : 0) / 1e3,
        .recorded_idle_us = (recorded > s->device_ns ? recorded - s->device_ns : 0) / 1e3};
}

static enum status judge(struct diagnosis *d, const struct view *v, const struct rank_comm *comm, const struct diagnose_options *options,
                         struct error *err)
{
    struct replay r = {0};
    struct study s = {0};
    enum status st = replay_init(&r, v, err);
    if (st != OK)
        return st;
    struct costs costs;
    warn_of_cold(d, &r);
    d->judged_steps = r.end_step - r.first_step;
    const double given_ns = check_given(d, &r, options->step_us * 1e3, options->rank_step_us != NULL);
    replay_calibrate(&r, given_ns, &costs.low, &costs.high);
    costs.usual = r.cost;
    study_init(&s, v, &r, d);
    s.comm = comm;
    fill_corrected(&s, &costs, given_ns);
    judge_findings(&s, &costs);
    judge_plan(&s, &costs);
    judge_words(&s);
    study_roofline(&s, options);
    study_modules(&s);
    study_frames(&s);
    study_iteration(&s);
    study_release(&s);
    replay_release(&r);
    return st;
}

static void take_warnings(struct diagnosis *d, const struct trace *t, bool named)
{
    for (int i = 0; i < t->origin.n_warnings; i++)
        warn(d, named ? arena_printf(&d->arena, "%s: %s", t->origin.path, t->origin.warnings[i])
                      : arena_printf(&d->arena, "%s", t->origin.warnings[i]));
}

struct launched {                           /* launches of the host, and work of the device */
    int64_t launches, graphs, alone;        /* alone: no work is known to be behind them */
    int64_t no_id, work_no_id, work_alone;  /* those alone without an id; work without an id; work whose launch is not known */
};

static struct launched count_launched(const struct view *v)
{
    struct launched n = {0};
    for (int32_t i = 0; i < v->n_host; i++) {
        const struct event *e = view_event(v, i);
        const int kind = e->kind == EVENT_RUNTIME ? v->call_kinds[e->name] : CALL_OTHER;
        const bool launch = kind == CALL_LAUNCH || kind == CALL_GRAPH, alone = launch && v->launched[i] < 0;
        n.launches += launch;
        n.graphs += kind == CALL_GRAPH;
        n.alone += alone;
        n.no_id += alone && e->link < 0;
    }
    for (int32_t i = 0; i < v->n_device; i++) {
        n.work_no_id += view_event(v, v->device + i)->link < 0;
        n.work_alone += v->launch[i] < 0;
    }
    return n;
}

/* Work is there, but the ids are not that tell which launch it is of. */
static void warn_of_no_ids(struct diagnosis *d, const struct view *v, const struct launched *n)
{
    const char *then = n->work_alone == v->n_device ? "steps have what the device did in their time, but which op launched it is not known"
                                                    : "such work is in no step and of no op, so that their numbers of the device are too low";
    warn(d, arena_printf(&d->arena, "correlation ids are missing: %lld of %lld launches and %lld of %d events of the device cannot be brought together; %s",
                         (long long)n->alone, (long long)n->launches, (long long)n->work_alone, v->n_device, then));
}

/* Launches that have no work behind them: the driver told the profiler nothing. Of a capture none is expected, but then graphs run. */
static void warn_of_lost_device(struct diagnosis *d, const struct view *v)
{
    const struct launched n = count_launched(v);
    const bool most_alone = 2 * n.alone > n.launches && n.launches >= LEAST_LAUNCHES;
    d->device_lost = n.launches && !v->n_device;
    if (d->device_lost)
        warn(d, arena_printf(&d->arena, "%lld launches, but no work of the device: recording of the device failed (another profiler, or no "
                             "right to counters); record with ProfilerActivity.CUDA, and look for CUPTI's message at its start", (long long)n.launches));
    else if (v->n_device && most_alone && (2 * n.work_no_id > v->n_device || 2 * n.no_id > n.alone))
        warn_of_no_ids(d, v, &n);
    else if (!n.graphs && v->n_device && most_alone)
        warn(d, arena_printf(&d->arena, "%lld of %lld launches have no work of the device behind them: recording of the device failed in part; "
                             "numbers of the device are too low", (long long)n.alone, (long long)n.launches));
}

/* Each has its own steps and waits; marks of one number are one step here. */
static void warn_of_processes(struct diagnosis *d, const struct view *v)
{
    if (v->n_processes > 1)
        warn(d, arena_printf(&d->arena, "%d processes start work in this file, and are judged as one: give the trace of each on its own, as ranks of a job", v->n_processes));
}

static void warn_of_marks(struct diagnosis *d, const struct view *v)
{
    if (d->steps_by)
        warn(d, arena_printf(&d->arena, "no ProfilerStep marks: %d step%s told by %.80s (call prof.step() after each to be sure)",
                             d->n_steps, d->n_steps == 1 ? " is" : "s are", d->steps_by));
    else
        warn(d, arena_printf(&d->arena, "no ProfilerStep marks: the whole trace%s is taken as one step (call prof.step() after each)",
                             v->n_device ? ", from the device's first event to its last," : ""));
}

static void warn_of_cut(struct diagnosis *d, const struct view *v)
{
    const long long number = v->cut_number;
    d->only_cut = v->cut == CUT_ONLY;
    if (v->cut == CUT_ONLY)
        warn(d, arena_printf(&d->arena, "no step is whole: the file was cut off within step %lld; what was read of it is judged, and nothing is sure", number));
    else if (v->cut == CUT_LEFT_OUT && v->n_cut == 1)
        warn(d, arena_printf(&d->arena, "the file was cut off within step %lld: the last step is left out of all numbers", number));
    else if (v->cut == CUT_LEFT_OUT)
        warn(d, arena_printf(&d->arena, "the file was cut off within step %lld: the last %d steps are left out of all numbers", number, v->n_cut));
}

/* Numbers of steps that jump, with time between them. */
static void warn_of_gaps(struct diagnosis *d, const struct view *v)
{
    int first = 0, n = 0;
    for (int i = v->n_steps - 1; i > 0; i--)
        if (v->steps[i].after_gap && !v->steps[i].after_odd)
            first = i, n++;
    if (n)
        warn(d, arena_printf(&d->arena, "step marks are missing: behind ProfilerStep#%lld comes #%lld%s; what lies between is taken for no step",
                             (long long)v->steps[first - 1].number, (long long)v->steps[first].number,
                             n > 1 ? arena_printf(&d->arena, ", and so in %d place%s more", n - 1, n > 2 ? "s" : "") : ""));
}

/* The longest call of the host in it that no other step has; -1: all have such. */
static int32_t longest_in(const struct view *v, const struct step_window *w)
{
    bool *usual = xcalloc((size_t)v->trace->n_names + 1, sizeof *usual);
    int32_t longest = -1;
    for (int32_t i = 0; i < v->n_host; i++)
        usual[view_event(v, i)->name] |= view_event(v, i)->step >= 0;
    for (int32_t i = 0; i < v->n_host; i++) {
        const struct event *e = view_event(v, i);
        if (view_begins_in(v, i, w) && !usual[e->name] && (longest < 0 || e->duration_ns > view_event(v, longest)->duration_ns))
            longest = i;
    }
    free(usual);
    return longest;
}

/* Kernels, or ops where there is no device. */
static int64_t work_in(const struct view *v, const struct step_window *w)
{
    const int32_t first = v->n_device ? v->device : 0, end = v->n_device ? v->device + v->n_device : v->n_host;
    int64_t n = 0;
    for (int32_t i = first; i < end; i++)
        n += view_event(v, i)->kind == (v->n_device ? EVENT_KERNEL : EVENT_HOST_OP) && view_begins_in(v, i, w);
    return n;
}

/* What is in it, so that it is told from the others. */
static const char *what_is_in(struct diagnosis *d, const struct view *v, const struct odd_step *o)
{
    struct restart r;
    if (view_restart_in(v, &o->window, &r))
        return arena_printf(&d->arena, "; it starts an epoch, for which the loader's workers stop and are started anew: %s of it (DataLoader(..., persistent_workers=True) keeps them)",
                            text_us(&d->arena, (double)restart_ns(v, &r) / 1e3));
    const int32_t longest = longest_in(v, &o->window);
    const char *call = longest < 0 ? "" : arena_printf(&d->arena, "; %.80s in it, which the others do not have, takes %s",
                                                       view_name(v, longest), text_us(&d->arena, (double)view_event(v, longest)->duration_ns / 1e3));
    const int64_t here = work_in(v, &o->window), usual = v->n_device ? d->mean.kernels : d->mean.host_ops;
    return here == usual ? call : arena_printf(&d->arena, "%s; it has %lld %s, the others %lld", call, (long long)here, v->n_device ? "kernels" : "ops", (long long)usual);
}

/* All of them, and in words each on its own; of many the first ones. */
static void tell_odd(struct diagnosis *d, const struct view *v)
{
    enum { MOST_TOLD = 5 };
    d->odd = arena_alloc(&d->arena, (size_t)v->n_odd * sizeof *d->odd);
    d->n_odd = v->n_odd;
    for (int i = 0; i < v->n_odd; i++)
        d->odd[i] = (struct trace_odd){v->odd[i].window.number, v->odd[i].ns / 1e3, v->odd[i].usual_ns / 1e3};
    for (int i = 0; i < v->n_odd && i < MOST_TOLD; i++) {
        const struct odd_step *o = &v->odd[i];
        warn(d, arena_printf(&d->arena, "step %lld is not like the others and left out of what is judged: it takes %s, %.3g times the median of %s%s",
                             (long long)o->window.number, text_us(&d->arena, o->ns / 1e3), o->ns / o->usual_ns, text_us(&d->arena, o->usual_ns / 1e3),
                             what_is_in(d, v, o)));
    }
    if (v->n_odd > MOST_TOLD)
        warn(d, arena_printf(&d->arena, "and so are %d other steps", v->n_odd - MOST_TOLD));
}

static struct diagnose_options options_of(const struct diagnose_options *options, int trace)
{
    struct diagnose_options mine = options ? *options : (struct diagnose_options){0};
    if (mine.rank_step_us)
        mine.step_us = mine.rank_step_us[trace];
    return mine;
}

/* One rank alone. */
static enum status judge_rank(struct diagnosis *d, struct rank_comm *comm, struct trace *t, const struct diagnose_options *options, struct error *err)
{
    struct view v;
    enum status st = view_init(&v, t, err);
    if (st != OK)
        return st;
    view_take_out_cut(&v);
    view_take_out_odd(&v, replay_cold_steps(&v));
    d->trace = t;
    d->device = arena_printf(&d->arena, "%s", device_name(&v));
    fill_numbers(d, &v);
    if (d->no_step_marks)
        warn_of_marks(d, &v);
    warn_of_cut(d, &v);
    warn_of_processes(d, &v);
    warn_of_gaps(d, &v);
    tell_odd(d, &v);
    warn_of_lost_device(d, &v);
    collectives_find(comm, &v);
    d->ranks = arena_alloc(&d->arena, sizeof *d->ranks);
    d->ranks[0] = numbers_rank(d, &v);
    d->n_ranks = 1;
    if (!d->ranks[0].comm_us) {             /* on threads of the host */
        d->ranks[0].comm_us = collectives_us(comm);
        d->ranks[0].exposed_comm_us = collectives_exposed_us(comm);
    }
    st = judge(d, &v, comm, options, err);
    view_release(&v);
    return st;
}

/* By number; those without one are last, in the order in which they were given. */
static void sort_ranks(struct diagnosis *d)
{
    for (int i = 1; i < d->n_ranks; i++)
        for (int j = i; j > 0 && (unsigned)d->ranks[j].rank < (unsigned)d->ranks[j - 1].rank; j--) {
            const struct trace_rank swap = d->ranks[j];
            d->ranks[j] = d->ranks[j - 1];
            d->ranks[j - 1] = swap;
        }
}

/* Rows of all ranks, with how much longer each waits in collectives than the one that waits least. */
static void list_ranks(struct diagnosis *d, const struct job *j)
{
    struct trace_rank *rows = arena_alloc(&d->arena, (size_t)j->n * sizeof *rows);
    double least = INFINITY;
    for (int i = 0; i < j->n; i++) {
        rows[i] = j->ranks[i]->ranks[0];
        rows[i].straggler = i == j->straggler;
        least = fmin(least, rows[i].exposed_comm_us);
    }
    for (int i = 0; i < j->n; i++)
        rows[i].wait_us = rows[i].exposed_comm_us - least;
    d->ranks = rows;
    d->n_ranks = j->n;
    sort_ranks(d);
}

/* The first rank's diagnosis becomes that of the job. */
static void judge_job(struct diagnosis **ranks, struct rank_comm *comm, int n)
{
    struct diagnosis *d = ranks[0];
    struct job j;
    job_init(&j, ranks, comm, n);
    const struct plan_phase *phases = d->phases;
    const int n_phases = d->n_phases;
    job_findings(&j);
    job_plan(&j, phases, n_phases);
    judge_answers(d);
    list_ranks(d, &j);
    judge_waits(d);
    job_release(&j);
}

/* ---- all traces ---- */

struct judged_traces {
    struct diagnosis **each;                /* (n) judged alone */
    struct rank_comm *comm;                 /* (n) */
    int n;
};

static void forget(struct diagnosis *d)
{
    if (d)
        diagnosis_release(d);
    free(d);
}

static enum status judge_each(struct judged_traces *j, struct trace **traces, const struct diagnose_options *options, struct error *err)
{
    enum status st = OK;
    for (int i = 0; st == OK && i < j->n; i++) {
        const struct diagnose_options mine = options_of(options, i);
        if (mine.ranks && traces[i]->origin.rank < 0)
            traces[i]->origin.rank = mine.ranks[i];
        j->each[i] = xcalloc(1, sizeof **j->each);
        j->each[i]->name = traces[i]->origin.path;
        take_warnings(j->each[i], traces[i], j->n > 1);
        st = judge_rank(j->each[i], &j->comm[i], traces[i], &mine, err);
    }
    return st;
}

/* Names of files said which ranks they are, but not all of them are of the job. */
static void forget_guesses(struct judged_traces *j)
{
    for (int i = 0; i < j->n; i++) {
        struct trace_origin *o = &j->each[i]->trace->origin;
        if (o->rank_by_names)
            o->rank = j->comm[i].rank = j->each[i]->ranks[0].rank = -1;
    }
}

static void swap_traces(struct judged_traces *j, int a, int b)
{
    struct diagnosis *d = j->each[a];
    const struct rank_comm c = j->comm[a];
    j->each[a] = j->each[b];
    j->comm[a] = j->comm[b];
    j->each[b] = d;
    j->comm[b] = c;
}

/* Only ranks of one job go on together; of traces that are none, one alone. The others stay behind them. */
static void leave_out_others(struct judged_traces *j)
{
    bool *in = xcalloc((size_t)j->n, sizeof *in);
    char *why = job_members(j->each, j->comm, j->n, in), *again = job_cycle(j->each, j->n, in);
    int n = 0;
    for (int i = 0; i < j->n; i++)
        if (in[i])
            swap_traces(j, i, n++);
    j->n = n;
    free(in);
    if (again)
        warn(j->each[0], again);
    if (!why)
        return;
    forget_guesses(j);
    warn(j->each[0], why);
}

/* What they say together is said by the first, which the others go with. */
static struct diagnosis *judge_together(struct judged_traces *j)
{
    const int given = j->n;
    leave_out_others(j);
    struct diagnosis *d = j->each[0];
    char *missing = j->n > 1 || given == 1 ? job_missing(j->each, j->n) : NULL;     /* of traces that are no job one alone is judged, and none is missing */
    if (missing)
        warn(d, missing);
    for (int i = 1; i < given; i++)         /* also of those that were left out: perhaps that is why */
        take_warnings(d, j->each[i]->trace, true);
    job_names(j->each, j->comm, j->n);
    if (j->n > 1)
        judge_job(j->each, j->comm, j->n);
    judge_confidence(d);
    collectives_table(d, j->comm, j->n);
    d->others = xcalloc((size_t)j->n, sizeof(struct diagnosis *));
    for (int i = 0; i < j->n; i++) {
        if (i)
            d->others[d->n_others++] = j->each[i];
        j->each[i] = NULL;                  /* handed over */
    }
    return d;
}

enum status diagnose_check(const struct trace *t, struct error *err) { return view_check(t, err); }

enum status diagnose(struct diagnosis *out, struct trace **traces, int n, const struct diagnose_options *options,
                     struct error *err)
{
    struct judged_traces j = {xcalloc((size_t)n, sizeof *j.each), xcalloc((size_t)n, sizeof *j.comm), n};
    const enum status st = judge_each(&j, traces, options, err);
    if (st == OK) {
        struct diagnosis *d = judge_together(&j);
        *out = *d;
        free(d);
    }
    for (int i = 0; i < n; i++) {
        forget(j.each[i]);
        collectives_release(&j.comm[i]);
    }
    free(j.each);
    free(j.comm);
    return st;
}

void diagnosis_release(struct diagnosis *d)
{
    for (int i = 0; i < d->n_others; i++) {
        diagnosis_release(d->others[i]);
        free(d->others[i]);
    }
    free(d->others);
    arena_release(&d->arena);
    *d = (struct diagnosis){0};
}
