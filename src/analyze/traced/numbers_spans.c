/* Sets of time spans. */
#include <stdlib.h>

#include "analyze/traced/numbers_int.h"
#include "analyze/traced/view_sort.h"

static inline bool span_before(const struct span_ns *a, const struct span_ns *b) { return a->start < b->start; }

SORT_DEFINE(sort_spans, struct span_ns, span_before)

void spans_add(struct spans *s, const struct event *e)
{
    if (e->duration_ns <= 0)
        return;
    struct span_ns *last = s->n ? &s->at[s->n - 1] : NULL;
    if (last && e->start_ns >= last->start && e->start_ns <= last->end) {
        last->end = event_end(e) > last->end ? event_end(e) : last->end;
        return;
    }
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap + s->cap / 2 : 256;
        s->at = xrealloc(s->at, (size_t)s->cap * sizeof *s->at);
    }
    s->at[s->n++] = (struct span_ns){e->start_ns, event_end(e)};
}

void spans_join(struct spans *s)
{
    int64_t n = 0;
    sort_spans(s->at, s->n);
    for (int64_t i = 0; i < s->n; i++) {
        const struct span_ns x = s->at[i];
        if (n && x.start <= s->at[n - 1].end)
            s->at[n - 1].end = x.end > s->at[n - 1].end ? x.end : s->at[n - 1].end;
        else
            s->at[n++] = x;
    }
    s->n = n;
}

void spans_release(struct spans *s)
{
    free(s->at);
    *s = (struct spans){0};
}
