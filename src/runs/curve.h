/* A curve of any length in a bounded number of points: each stands for as many lines as the others, and knows the mean of their losses,
 * the lowest and the highest. */
#ifndef HONE_RUNS_CURVE_H
#define HONE_RUNS_CURVE_H

#include <stdint.h>

struct curve_point {
    int64_t step;                       /* of the last line; so are tokens and seconds */
    double tokens, seconds;
    double loss, low, high;             /* NAN: none was finite */
    double steps_per_s, tokens_per_s, memory_bytes;     /* means and largest; NAN: not told */
    int64_t lines, finite;
};

struct curve {
    struct curve_point *point;
    int n, room;                        /* room is even */
    int64_t each;                       /* lines that a point stands for */
    int64_t lines;                      /* all of them */
};

void curve_init(struct curve *c, int room);
void curve_release(struct curve *c);
/* A line: its `low`, `high`, `lines` and `finite` are set here. */
void curve_add(struct curve *c, struct curve_point line);

#endif
