/* Events of all threads and devices by start, merged from the rows of the view, which are in that order each. */
#include <stdlib.h>

#include "analyze/traced/numbers_int.h"

static void sink(struct sweep *s, int i)
{
    const struct sweep_row row = s->rows[i];
    for (int child = 2 * i + 1; child < s->n; child = 2 * i + 1) {
        child += child + 1 < s->n && s->rows[child + 1].start_ns < s->rows[child].start_ns;
        if (row.start_ns <= s->rows[child].start_ns)
            break;
        s->rows[i] = s->rows[child];
        i = child;
    }
    s->rows[i] = row;
}

static void add_row(struct sweep *s, int32_t at, int32_t end)
{
    if (at < end)
        s->rows[s->n++] = (struct sweep_row){view_event(s->v, at)->start_ns, at, end};
}

struct sweep sweep_start(const struct view *v)
{
    struct sweep s = {.v = v, .rows = xcalloc((size_t)v->trace->n_tracks + 1, sizeof *s.rows)};
    for (int32_t at = 0, i = 1; i <= v->n_host; i++)        /* the host's events are by track */
        if (i == v->n_host || view_event(v, i)->track != view_event(v, at)->track) {
            add_row(&s, at, i);
            at = i;
        }
    add_row(&s, v->device, v->device + v->n_device);
    for (int i = s.n / 2; i-- > 0;)
        sink(&s, i);
    return s;
}

int32_t sweep_next(struct sweep *s)
{
    if (!s->n)
        return -1;
    struct sweep_row *top = s->rows;
    const int32_t event = top->at++;
    if (top->at < top->end)
        top->start_ns = view_event(s->v, top->at)->start_ns;
    else
        *top = s->rows[--s->n];
    if (s->n)
        sink(s, 0);
    return event;
}

void sweep_release(struct sweep *s)
{
    free(s->rows);
    *s = (struct sweep){0};
}
