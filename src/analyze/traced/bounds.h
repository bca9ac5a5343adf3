/* The one place where estimates are held to what is possible. */
#ifndef HONE_ANALYZE_TRACED_BOUNDS_H
#define HONE_ANALYZE_TRACED_BOUNDS_H

struct interval { double usual, low, high; };           /* speed-ups */

/* A step before and after a fix, at one cost of the profiler. */
struct gain {
    double before_ns, after_ns;
    double floor_ns;                        /* what no doubt takes away: device work that the fix leaves alone, waits that nothing explains */
};

/* A step's time without the profiler: no shorter than the device's work and than the host's recorded time less what the profiler's
 * cost explains, no longer than the recorded step (0: no such bound). */
double bounds_step(double replayed_ns, double device_ns, double unexplained_ns, double recorded_ns);

/* Before over after when the time won is `sure` times as much. */
double bounds_speedup(struct gain g, double sure);

/* The most that can be won when only what is left alone stays. */
double bounds_most(struct gain g);

/* In order, finite and positive; the usual value at most `most` (0: no such bound), which the others are drawn to. */
struct interval bounds_interval(struct interval i, double most);

#endif
