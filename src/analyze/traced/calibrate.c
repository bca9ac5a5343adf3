/* The profiler's own cost. Known step time: the cost is the one that makes the replay take that long. Unknown: what was
 * measured is taken. Traces of PyTorch 2.11 with shapes, four models, two hosts: the host took 1.3 to 2.4 times as long
 * while it was recorded; the least where the profiler had been attached before the step was timed without it. */
#include <math.h>
#include <string.h>

#include "analyze/traced/replay.h"

static const double USUAL = 0.40, USUAL_PLAIN = 0.50;   /* of a short stretch is the program's own; without shapes recorded */
static const double MOST = 0.75;            /* the cheapest profiler that is thought of */
static const double LEAST = 0.22;           /* the dearest */
static const double LEAST_KNOWN = 0.30;     /* where the step's time is known: what this leaves unexplained slowed the machine as a whole */
static const double FILLED = 0.85;          /* the device's part of a step from which on the host may be faster than the step */
static const double FASTER = 0.95;          /* of the step: then the host's work is thought to take no more */

enum aim { STEP, HOST };                    /* what is brought to a known time */

static double at(struct replay *r, struct replay_cost cost, enum aim aim)
{
    r->cost = cost;
    const struct replay_result result = replay_run(r, NULL);
    return aim == STEP ? result.step_ns : result.host_ns;
}

/* The cost at which the replay, or its host's work, takes so long; as near as it can be brought. What the profiler cannot
 * explain is a machine that was slower or faster while it recorded. Both take longer the larger the values are. */
static void solve(struct replay *r, double ns, enum aim aim)
{
    struct replay_cost c = {1, 1, 1};
    double low = LEAST_KNOWN, high = 1;
    for (int i = 0; i < 24; i++) {
        c.left = (low + high) / 2;
        *(at(r, c, aim) > ns ? &high : &low) = c.left;
    }
    low = 0.2, high = 3;
    for (int i = 0; i < 24; i++) {
        c.scale = (low + high) / 2;
        *(at(r, c, aim) > ns ? &high : &low) = c.scale;
    }
    r->cost = c;
}

/* ---- waiting for data ---- */

static const double STALLED = 0.3;          /* of the step, from which on the loader is its bound */
static const double SLOWED = 0.97;          /* of the recorded step: a known one that is longer says that the profiler cost nothing */
static const double LONGEST_WAIT = 20;      /* times the recorded one */

static double span_ns(const struct replay *r) { return (double)r->span_ns / r->n_steps; }

/* Time spent waiting for data, per step; *workers: other processes make the batches. */
static double loader_ns(const struct replay *r, bool *workers)
{
    double ns = 0;
    *workers = false;
    for (int32_t k = 0; k < r->n_items; k++)
        if (r->items[k].loader) {
            ns += (double)r->items[k].ns;
            *workers |= r->items[k].owner >= 0 && strstr(view_name(r->v, r->items[k].owner), "MultiProcessing");
        }
    return ns / r->n_steps;
}

/* The wait for data at which the step takes so long, if it is longer than the recorded one. The profiler slows the step, not the
 * workers of a loader: without it the step would wait for them longer. */
static void stretch_wait(struct replay *r, struct replay_cost *c, double ns)
{
    c->loader = 1;
    if (at(r, *c, STEP) >= ns)
        return;
    double low = 1, high = LONGEST_WAIT;
    for (int i = 0; i < 24; i++) {
        c->loader = (low + high) / 2;
        *(at(r, *c, STEP) > ns ? &high : &low) = c->loader;
    }
}

/* A step that the device fills says little about the host: what is usual stands, if it is below the step. */
static void fit(struct replay *r, double step_ns, struct replay_cost usual)
{
    bool workers;
    const bool stalled = loader_ns(r, &workers) > STALLED * step_ns && step_ns < SLOWED * span_ns(r);
    r->cost = usual;
    const struct replay_result result = replay_run(r, NULL);
    if (stalled && result.step_ns < step_ns) {
        struct replay_cost c = usual;
        stretch_wait(r, &c, step_ns);
        r->cost = c;
    } else if (result.device_ns < FILLED * step_ns)
        solve(r, step_ns, STEP);
    else if (result.host_ns > FASTER * step_ns)
        solve(r, FASTER * step_ns, HOST);
}

void replay_calibrate(struct replay *r, double step_ns, struct replay_cost *low, struct replay_cost *high)
{
    const struct replay_cost usual = {r->v->trace->origin.has_shapes ? USUAL : USUAL_PLAIN, 1, 1};
    if (step_ns > 0) {
        fit(r, step_ns, usual);
        *low = *high = r->cost;
    } else {
        r->cost = usual;
        *low = (struct replay_cost){MOST, 1, 1};
        *high = (struct replay_cost){LEAST, 0.95, 1};
        bool workers;
        if (loader_ns(r, &workers) > STALLED * span_ns(r) && workers) {
            struct replay_cost c = usual;
            stretch_wait(r, &c, span_ns(r));
            stretch_wait(r, low, span_ns(r));
            stretch_wait(r, high, span_ns(r));
            r->cost = c;
        }
    }
}
