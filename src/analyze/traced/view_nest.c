/* Which call is inside which. Calls of one thread nest, but for clocks that jitter (a child ends some ns after its parent)
 * and for annotations that end later than the code they were opened in. A call belongs to the innermost one that is still
 * open when it starts; it counts as closed with its parent at the latest. An annotation that an op outlasts is closed. */
#include <stdlib.h>

#include "analyze/traced/view_int.h"

static const int64_t jitter_ns = 2000;      /* times in whole µs are off by up to one at both ends */

/* Ops of PyTorch nest some tens deep. Many go up or down the nesting for each call: what is deeper counts as a call of the
 * one at this depth, so that a damaged file does not take the square of its events. */
enum { DEEPEST = 256 };

struct open_calls {                         /* from the outermost inwards */
    int32_t *call;
    int64_t *end_ns;                        /* no later than the one around it */
    int n, cap;
};

static void push(struct open_calls *s, int32_t call, int64_t end_ns)
{
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 64;
        s->call = xrealloc(s->call, (size_t)s->cap * sizeof *s->call);
        s->end_ns = xrealloc(s->end_ns, (size_t)s->cap * sizeof *s->end_ns);
    }
    s->call[s->n] = call;
    s->end_ns[s->n] = s->n && s->end_ns[s->n - 1] < end_ns ? s->end_ns[s->n - 1] : end_ns;
    s->n++;
}

static bool still_open(const struct view *v, const struct open_calls *s, const struct event *e)
{
    const struct event *around = view_event(v, s->call[s->n - 1]);
    const int64_t end_ns = s->end_ns[s->n - 1];
    if (around->track != e->track || end_ns <= e->start_ns)
        return false;
    return around->kind != EVENT_ANNOTATION || e->kind == EVENT_ANNOTATION || event_end(e) <= end_ns + jitter_ns;
}

void view_nest(struct view *v)
{
    struct open_calls s = {0};
    for (int32_t i = 0; i <= v->n_host; i++) {
        while (s.n && (i == v->n_host || !still_open(v, &s, view_event(v, i))))
            v->end[s.call[--s.n]] = i;
        if (i == v->n_host)
            break;
        v->parent[i] = s.n ? s.call[s.n - 1] : -1;
        v->end[i] = i + 1;
        if (s.n < DEEPEST)
            push(&s, i, event_end(view_event(v, i)));
    }
    free(s.call);
    free(s.end_ns);
}

void view_nest_python(struct view *v)
{
    struct event *events = v->trace->events;
    int32_t around = -1;
    for (int32_t i = v->python; i < v->python + v->n_python; i++) {
        while (around >= 0 && (events[around].track != events[i].track || event_end(&events[around]) <= events[i].start_ns))
            around = events[around].step;
        events[i].step = around;
        around = i;
    }
}
