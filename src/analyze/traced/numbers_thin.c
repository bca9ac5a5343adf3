/* Thins a series over time to what a drawing can show, and keeps its peaks. */
#include <math.h>

#include "analyze/traced/numbers_int.h"

enum { PARTS = MOST_POINTS / 2 };

struct thinner thinner_start(struct arena *a, int64_t from_ns, int64_t to_ns, int64_t first_ns)
{
    return (struct thinner){.points = arena_alloc(a, MOST_POINTS * sizeof(struct trace_point)),
                             .from_ns = from_ns, .to_ns = to_ns, .first_ns = first_ns};
}

static void end_part(struct thinner *t)
{
    if (!t->any)
        return;
    if (t->largest.us < t->last.us)
        t->points[t->n++] = t->largest;
    t->points[t->n++] = t->last;
    t->any = false;
}

void thinner_add(struct thinner *t, int64_t at_ns, double value)
{
    const double length = (double)(t->to_ns - t->from_ns), at = (double)(at_ns - t->from_ns);
    const int part = length > 0 ? (int)fmin(fmax(at / length * PARTS, t->part), PARTS - 1) : 0;
    if (part != t->part)
        end_part(t);
    t->part = part;
    t->last = (struct trace_point){us_of((double)(at_ns - t->first_ns)), value};
    if (!t->any || value >= t->largest.value)
        t->largest = t->last;
    t->any = true;
}

int thinner_end(struct thinner *t)
{
    end_part(t);
    return t->n;
}
