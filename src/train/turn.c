/* Some steps as a run takes them: the host goes ahead of a device that works by itself, and waits for it in the end. */
#include <math.h>

#include "core/clock.h"
#include "train/train_int.h"

static const double SHORT_S = 0.02, LONG_S = 0.16;
enum { FEWEST = 8, CYCLE_MOST = 8 };         /* steps */

/* Steps that choose nodes of K-1 take longer than those that keep the choice: a turn is of all of them. Where a choice is kept for very long it hardly counts. */
int64_t cycle_steps(const struct config *c)
{
    return c->model.arch == ARCH_K1 && c->k1.every <= CYCLE_MOST ? c->k1.every : 1;
}

/* What a turn begins and ends with, an upload that nothing hides and a wait for the device, is no part of a step: there are more of them
 * the shorter they are. A CPU's step ends when it returns. */
int64_t model_run_turn_steps(const struct model_run *r, double step_s)
{
    const int64_t cycle = cycle_steps(&r->config);
    if (!r->backend->finish || !(step_s > 0))
        return cycle;
    const double steps = step_s < SHORT_S ? fmax(SHORT_S / step_s + 1, FEWEST) : fmax(LONG_S / step_s, 1);
    return ((int64_t)steps + cycle - 1) / cycle * cycle;
}

/* Of several ranks all hear it in the same step, which takes `stop` along; one alone looks between steps. */
static bool ends_here(const struct model_run *r, const volatile sig_atomic_t *stop)
{
    return division_of(&r->config).ranks > 1 ? r->stopping : stop && *stop;
}

/* Where the host reads the metrics of every step, as a program without the pass async-metrics wants it, it does so here. */
enum status model_run_turn(struct model_run *r, struct loader *l, int64_t steps, const volatile sig_atomic_t *stop, struct turn_time *out,
                           struct error *err)
{
    enum status st = OK;
    bool whole;
    int64_t n = 0;
    const volatile sig_atomic_t *along = division_of(&r->config).ranks > 1 ? stop : NULL;
    const double start = clock_s();
    for (; n < steps && st == OK && !(n > 0 && ends_here(r, stop)); n++) {
        st = model_run_step(r, l, along, &whole, err);
        if (st == OK && model_run_kept(r) == 1)
            model_run_host(r, "host.loss");
    }
    const double ran = clock_s();
    exec_finish(r->train);
    const double end = clock_s();
    *out = (struct turn_time){(end - start) / (double)n, end - ran, n};
    return st == OK ? exec_status(r->train, err) : st;
}
