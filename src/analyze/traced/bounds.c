/* Bounds of estimates: a step is never shorter than its busy device, a gain never more than what the time allows. */
#include "analyze/traced/bounds.h"

#include <math.h>

static const double MOST_SPEEDUP = 20;       /* beyond, a trace tells that something is wrong, and not how fast the step would be */

double bounds_step(double replayed_ns, double device_ns, double unexplained_ns, double recorded_ns)
{
    const double ns = fmax(replayed_ns, fmax(device_ns, unexplained_ns));
    return recorded_ns > 0 ? fmin(ns, fmax(recorded_ns, device_ns)) : ns;
}

double bounds_most(struct gain g)
{
    if (!(g.before_ns > 0))
        return 1;
    return fmin(g.before_ns / fmax(g.floor_ns, g.before_ns / MOST_SPEEDUP), MOST_SPEEDUP);
}

double bounds_speedup(struct gain g, double sure)
{
    if (!(g.before_ns > 0) || !isfinite(g.after_ns))
        return 1;
    const double left = g.before_ns - (g.before_ns - g.after_ns) * sure;
    /* what is left is not thought away by more than so much either */
    const double least = fmax(g.after_ns / fmax(sure, 1), g.floor_ns);
    return fmin(g.before_ns / fmax(fmax(left, least), g.before_ns / MOST_SPEEDUP), MOST_SPEEDUP);
}

struct interval bounds_interval(struct interval i, double most)
{
    const double top = most > 0 ? fmin(most, MOST_SPEEDUP) : MOST_SPEEDUP;
    i.usual = isfinite(i.usual) && i.usual > 0 ? fmin(i.usual, top) : 1;
    i.low = isfinite(i.low) && i.low > 0 ? fmin(i.low, i.usual) : i.usual;
    i.high = isfinite(i.high) ? fmin(fmax(i.high, i.usual), MOST_SPEEDUP) : i.usual;
    return i;
}
