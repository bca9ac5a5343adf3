/* Collectives that threads of the host work on (gloo): when one is under way and nothing else is done, the step waits for it. */
#include <stdlib.h>

#include "analyze/traced/replay_int.h"
#include "core/arena.h"

static int by_span(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

struct spans replay_find_collectives(const struct replay *r)
{
    const struct view *v = r->v;
    struct spans s = {0};
    int n = 0, cap = 0;
    for (int32_t i = 0; i < v->n_host; i++) {
        const struct event *e = view_event(v, i);
        if (event_end(e) <= r->start_ns || (e->start_ns >= r->start_ns && !replay_covers(r, e->start_ns)) || !view_is_collective(v, i))
            continue;
        if (n == cap)
            s.at = xrealloc(s.at, (size_t)(cap += cap / 2 + 64) * sizeof *s.at);
        s.at[n++] = (struct span){e->start_ns, event_end(e)};
    }
    if (n)
        qsort(s.at, (size_t)n, sizeof *s.at, by_span);
    for (int i = 0; i < n; i++)
        if (s.n && s.at[i].start_ns <= s.at[s.n - 1].end_ns)
            s.at[s.n - 1].end_ns = s.at[i].end_ns > s.at[s.n - 1].end_ns ? s.at[i].end_ns : s.at[s.n - 1].end_ns;
        else
            s.at[s.n++] = s.at[i];
    return s;
}

int64_t spans_overlap(const struct spans *s, int *at, int64_t from_ns, int64_t to_ns)
{
    int64_t ns = 0;
    while (*at < s->n && s->at[*at].end_ns <= from_ns)
        ++*at;
    for (int i = *at; i < s->n && s->at[i].start_ns < to_ns; i++) {
        const int64_t from = s->at[i].start_ns > from_ns ? s->at[i].start_ns : from_ns;
        const int64_t to = s->at[i].end_ns < to_ns ? s->at[i].end_ns : to_ns;
        ns += to > from ? to - from : 0;
    }
    return ns;
}
