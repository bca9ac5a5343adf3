/* What the numbers of a diagnosis share: events in order of time, and series thinned for drawing. */
#ifndef HONE_ANALYZE_TRACED_NUMBERS_INT_H
#define HONE_ANALYZE_TRACED_NUMBERS_INT_H

#include "analyze/traced/numbers.h"

static inline double us_of(double ns) { return ns / 1000; }

/* ---- numbers_sweep.c ---- */

struct sweep_row {                          /* events [at, end) are by start */
    int64_t start_ns;                       /* of `at` */
    int32_t at, end;
};

/* The host and device events of a view one after the other by their starts, whatever thread they are of. */
struct sweep {
    const struct view *v;
    struct sweep_row *rows;                 /* (n) a heap: the one whose next event starts first is on top */
    int n;
};

struct sweep sweep_start(const struct view *v);
int32_t sweep_next(struct sweep *s);        /* -1: there are no more */
void sweep_release(struct sweep *s);

/* ---- numbers_shown.c ---- */

/* Fills steps, n_steps, steps_left_out and timeline_step of a diagnosis from all n steps, of which one has the median time. */
void numbers_show_steps(struct diagnosis *d, const struct trace_step *steps, int n, int median);

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
