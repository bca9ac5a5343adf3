/* What the numbers of a diagnosis share: sets of time spans, and series thinned for drawing. */
#ifndef HONE_ANALYZE_TRACED_NUMBERS_INT_H
#define HONE_ANALYZE_TRACED_NUMBERS_INT_H

#include "analyze/traced/numbers.h"

static inline double us_of(double ns) { return ns / 1000; }

/* ---- numbers_spans.c ---- */

struct span_ns { int64_t start, end; };

struct spans {                              /* a zeroed one is empty */
    struct span_ns *at;
    int64_t n, cap;
};

/* Adds an event's time; one that touches the span added last is joined to it, so that nested events take no room. */
void spans_add(struct spans *s, const struct event *e);
void spans_join(struct spans *s);           /* sorts; overlapping ones become one */
void spans_release(struct spans *s);

/* ---- numbers_thin.c ---- */

enum { MOST_POINTS = 600 };

/* Thins a series of known extent: its time is cut into equal parts, and of each the largest and the last value stay. */
struct thinner {
    struct trace_point *points;             /* (MOST_POINTS) in an arena */
    int n;
    int64_t from_ns, to_ns, first_ns;       /* first: time 0 of the points */
    int part;
    bool any;
    struct trace_point largest, last;       /* of the current part */
};

struct thinner thinner_start(struct arena *a, int64_t from_ns, int64_t to_ns, int64_t first_ns);
void thinner_add(struct thinner *t, int64_t at_ns, double value);       /* in order of time */
int thinner_end(struct thinner *t);                                     /* how many points there are */

#endif
