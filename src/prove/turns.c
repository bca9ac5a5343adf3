/* Speed in one opening: turns of steps of a and of b, one after the other, in one process.
 *
 * What disturbs the machine then disturbs both. A turn lasts some tens of milliseconds, as steps that alternate one by one would
 * find the caches full of the other's data; the first step of a turn of several is not counted for the same reason. How long other
 * work had the cores in a turn is noted with it: speed.c leaves such pairs out. */
#include <math.h>

#include "core/arena.h"
#include "core/clock.h"
#include "core/delay.h"
#include "core/stats.h"
#include "prove/prove_int.h"

static const double TURN_SECONDS = 0.03;
static const double LOOK_SECONDS = 0.25;   /* between two looks at a GPU, which lie between turns */
static const double ALIKE = 1.5;           /* steps that are no further apart make turns of as many steps */
static const double WARM_SECONDS = 0.1;    /* enough for three steps, or it is fewer */
enum { TURN_STEPS_MOST = 256, FIT_FEWEST = 2, FIT_MOST = 8, WARM_STEPS = 3 };

static enum status take_turn(struct evidence_side *s, struct trial *t, int turn, struct error *err)
{
    double us[TURN_STEPS_MOST];
    struct trial_step step;
    const struct delay delay = delay_begin();
    enum status st = s->turn_steps > 1 ? trial_step(t, &step, err) : OK;
    for (int i = 0; i < s->turn_steps && st == OK; i++) {
        st = trial_step(t, &step, err);
        us[i] = step.us;
    }
    if (st == OK) {
        s->turn_delay[turn] = s->lanes ? delay_share(&delay, s->lanes) : -1;
        stats_sort(us, s->turn_steps);
        s->turn_us[turn] = stats_percentile(us, s->turn_steps, 0.5);
    }
    return st;
}

/* The fastest of a few steps; of more where they are short, as other work makes one of them several times as long. */
static enum status time_step(double *step_s, struct trial *t, double seconds, struct error *err)
{
    enum status st = OK;
    double spent = 0;
    *step_s = INFINITY;
    for (int i = 0; i < FIT_MOST && st == OK && (i < FIT_FEWEST || spent < FIT_MOST * seconds); i++) {
        struct trial_step s;
        st = trial_step(t, &s, err);
        *step_s = fmin(*step_s, s.us * 1e-6);
        spent += s.us * 1e-6;
    }
    return st;
}

static void make_room(struct evidence_side *s, struct trial *t)
{
    s->turn_us = xcalloc(TURNS_MOST, sizeof *s->turn_us);
    s->turn_delay = xcalloc(TURNS_MOST, sizeof *s->turn_delay);
    s->lanes = delay_is_of_others(trial_lanes(t)) ? trial_lanes(t) : 0;
}

/* How many steps fill a turn: as many of both where they take about as long, so that both are disturbed alike. */
enum status turns_fit(struct evidence *e, struct trial *const open[2], double seconds, struct error *err)
{
    const double turn = fmin(TURN_SECONDS, seconds / (OPENINGS_USUAL * TURNS_FEWEST));
    double step_s[2];
    e->opening = xcalloc(TURNS_MOST, sizeof *e->opening);
    make_room(&e->a, open[0]);
    make_room(&e->b, open[1]);
    for (int i = 0; i < 2; i++)
        if (time_step(&step_s[i], open[i], turn, err) != OK)
            return err->status;
    const double longer = fmax(step_s[0], step_s[1]), shorter = fmin(step_s[0], step_s[1]);
    for (int i = 0; i < 2; i++)
        (i ? &e->b : &e->a)->turn_steps = (int)fmin(fmax(floor(turn / (longer < ALIKE * shorter ? shorter : step_s[i])), 1), TURN_STEPS_MOST);
    return OK;
}

/* A GPU's graph is captured in the second step; on a CPU the first one touches memory for the first time. */
enum status turns_warm(struct trial *t, struct error *err)
{
    enum status st = OK;
    const double start = clock_s();
    for (int i = 0; st == OK && (i < 1 || clock_s() - start < (i < WARM_STEPS ? WARM_SECONDS : TURN_SECONDS)); i++) {
        struct trial_step s;
        st = trial_step(t, &s, err);
    }
    return st;
}

/* Who begins changes from pair to pair. */
static enum status take_pair(struct evidence *e, struct trial *const open[2], struct error *err)
{
    const int turn = e->turns, first = turn % 2;
    enum status st = take_turn(first ? &e->b : &e->a, open[first], turn, err);
    if (st == OK)
        st = take_turn(first ? &e->a : &e->b, open[1 - first], turn, err);
    if (st == OK) {
        e->opening[turn] = e->openings;
        e->turns++;
    }
    return st;
}

enum status turns_take(struct evidence *e, struct trial *const open[2], double until_s, const volatile sig_atomic_t *stop,
                       void (*tell)(void *context), void *context, struct error *err)
{
    enum status st = OK;
    double looked = -INFINITY;
    for (int n = 0; st == OK && e->turns < TURNS_MOST && (n < TURNS_FEWEST || clock_s() < until_s); n++) {
        if (stop && *stop)
            return error_stopped(err, "stopped before the speed was measured");
        tell(context);
        if (clock_s() - looked > LOOK_SECONDS) {
            gpu_watch_look(&e->gpu, NULL);
            looked = clock_s();
        }
        st = take_pair(e, open, err);
    }
    gpu_watch_look(&e->gpu, NULL);
    e->openings++;
    return st;
}
