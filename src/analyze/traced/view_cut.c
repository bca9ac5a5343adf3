/* A file that was cut off ends within a step, whose missing part looks like time in which the host does something unknown. That step and those behind it
 * leave the steps. Some profilers write all events in order, others thread after thread, then the runtime's calls and the device's work: how far the
 * trace is whole is how far each of these goes. */
#include <stdlib.h>

#include "analyze/traced/view_int.h"

enum { ONE_IN = 10 };                       /* a thread with fewer of the first step's events than one in so many may be done before the last */

static int most(int a, int b) { return a > b ? a : b; }

struct reach {                              /* of a thread's ops and annotations, of calls of the runtime, or of the device's work */
    int last;                               /* the last step that has such events; -1: none has */
    int64_t in_first, in_last, before;      /* how many the first step has, the last, and the one before it */
};

/* By track, then calls, then the device. */
static int n_reaches(const struct view *v) { return v->trace->n_tracks + 2; }

static int reach_of(const struct view *v, int32_t i)
{
    const struct event *e = view_event(v, i);
    return i >= v->device ? v->trace->n_tracks + 1 : e->kind == EVENT_RUNTIME ? v->trace->n_tracks : e->track;
}

static void add_last(const struct view *v, struct reach *all, int32_t i)
{
    struct reach *r = &all[reach_of(v, i)];
    r->last = most(r->last, view_event(v, i)->step);
}

static void add_count(const struct view *v, struct reach *all, int32_t i)
{
    struct reach *r = &all[reach_of(v, i)];
    const int32_t step = view_event(v, i)->step;
    r->in_first += step == 0;
    r->in_last += step >= 0 && step == r->last;
    r->before += step >= 0 && step == r->last - 1;
}

static void each_event(const struct view *v, struct reach *all, void (*add)(const struct view *v, struct reach *all, int32_t i))
{
    for (int32_t i = 0; i < v->n_host; i++)
        add(v, all, i);
    for (int32_t i = v->device; i < v->device + v->n_device; i++)
        add(v, all, i);
}

static struct reach *find_reaches(const struct view *v)
{
    struct reach *all = xcalloc((size_t)n_reaches(v), sizeof *all);
    for (int k = 0; k < n_reaches(v); k++)
        all[k].last = -1;
    each_event(v, all, add_last);
    each_event(v, all, add_count);
    return all;
}

/* The first step of which some are missing, as far as these tell: one that has as many as the step before has all of them. */
static int cut_by(const struct reach *r) { return r->last + (r->last > 0 && r->in_last >= r->before); }

/* The first step that is not whole; of the last one that has events it is not known. */
static int cut_step(const struct view *v)
{
    struct reach *all = find_reaches(v);
    int64_t in_first = 0;
    int last = 0;
    for (int k = 0; k < n_reaches(v); k++) {
        in_first += k < v->trace->n_tracks ? all[k].in_first : 0;
        last = most(last, all[k].last);
    }
    int step = last;
    for (int k = 0; k < n_reaches(v); k++) {
        const bool goes_on = k >= v->trace->n_tracks ? all[k].last >= 0 : all[k].in_first && all[k].in_first * ONE_IN >= in_first;
        if (goes_on && cut_by(&all[k]) < step)
            step = cut_by(&all[k]);
    }
    free(all);
    return step;
}

static void leave_out_from(struct view *v, int step)
{
    int32_t *to = xcalloc((size_t)v->n_steps, sizeof *to);
    for (int i = 0; i < v->n_steps; i++)
        to[i] = i < step ? i : -1;
    v->n_steps = step;
    view_renumber(v, to);
    free(to);
}

/* With the last call that was read. Annotations around it go on without what is in them. */
static void end_early(const struct view *v, struct step_window *w)
{
    int64_t end = w->start_ns;
    for (int32_t i = 0; i < v->n_host; i++) {
        const struct event *e = view_event(v, i);
        if (e->step == 0 && e->kind != EVENT_ANNOTATION && event_end(e) > end)
            end = event_end(e);
    }
    if (end > w->start_ns && end < w->end_ns)
        w->end_ns = w->host_end_ns = end;
}

void view_take_out_cut(struct view *v)
{
    if (!v->trace->origin.truncated || !v->n_steps || (v->no_step_marks && !v->steps_by))
        return;                             /* one step without marks ends with its last event anyway */
    const int step = cut_step(v);
    v->cut = step ? CUT_LEFT_OUT : CUT_ONLY;
    v->cut_number = v->steps[step].number;
    v->n_cut = v->n_steps - step;
    leave_out_from(v, most(step, 1));
    if (!step)
        end_early(v, &v->steps[0]);
}
