/* How often a run evaluates; see evaluations.h. */
#include "core/evaluations.h"

#include <math.h>

static int64_t divisor(int64_t a, int64_t b) { return b ? divisor(b, a % b) : a; }

/* Multiples of both up to the end. The product may be beyond any number. */
static int64_t common(int64_t steps, int64_t a, int64_t b)
{
    int64_t both;
    return __builtin_mul_overflow(a / divisor(a, b), b, &both) ? 0 : steps / both;
}

static int64_t count(struct evaluations e)
{
    const int64_t own = e.every ? e.steps / e.every : 0, stages = e.stage ? e.steps / e.stage : 0;
    const int64_t twice = e.every && e.stage ? common(e.steps, e.every, e.stage) : 0;
    const int at_end = (e.every && e.steps % e.every == 0) || (e.stage && e.steps % e.stage == 0);
    return own + stages - twice + !at_end;
}

double evaluations_per_step(struct evaluations e)
{
    if (e.steps > 0)
        return (double)count(e) / (double)e.steps;
    return e.every > 0 ? 1 / (double)e.every : 0;
}

struct evaluations evaluations_at(struct evaluations e, int64_t every)
{
    e.every = every;
    return e;
}

int64_t evaluations_interval(struct evaluations e, double per_step)
{
    const double most = floor(per_step * (double)e.steps);
    if (e.steps <= 0)
        return (int64_t)fmin(ceil(1 / per_step), 1e12);
    if (most < 1)
        return e.steps;
    return most < (double)e.steps ? (int64_t)ceil((double)e.steps / most) : 1;
}

double evaluations_left(struct evaluations e, int64_t every)
{
    const double now = evaluations_per_step(e);
    return now > 0 ? evaluations_per_step(evaluations_at(e, every)) / now : 1;
}
