/* Speed: turns of steps of a and of b, one after the other, in one process.
 *
 * What disturbs the machine then disturbs both. A turn lasts some tens of milliseconds, as steps that alternate one by one would
 * find the caches full of the other's data; the first step of a turn of several is not counted for the same reason. */
#include <math.h>
#include <stdlib.h>

#include "core/arena.h"
#include "core/clock.h"
#include "core/stats.h"
#include "prove/prove_int.h"

static const double TURN_SECONDS = 0.03;
static const double LOOK_SECONDS = 0.25;   /* between two looks at a GPU, which lie between turns */
static const double PATIENCE = 4;          /* times as long as asked for, at most, where the interval stays wide */
enum { TURN_STEPS_MOST = 256 };

struct player {
    struct trial *trial;
    double *turn_us;                /* (TURNS_MOST) */
    int steps;                      /* of one turn that are counted */
};

static bool stopped(const struct verify_options *o) { return o->stop && *o->stop; }

static enum status take_turn(struct player *p, int turn, struct error *err)
{
    double us[TURN_STEPS_MOST];
    struct trial_step s;
    enum status st = p->steps > 1 ? trial_step(p->trial, &s, err) : OK;
    for (int i = 0; i < p->steps && st == OK; i++) {
        st = trial_step(p->trial, &s, err);
        us[i] = s.us;
    }
    if (st == OK) {
        stats_sort(us, p->steps);
        p->turn_us[turn] = stats_percentile(us, p->steps, 0.5);
    }
    return st;
}

/* How many steps fill a turn, from the faster of two. */
static enum status fit_turn(struct player *p, double seconds, struct error *err)
{
    struct trial_step s[2];
    enum status st = trial_step(p->trial, &s[0], err);
    if (st == OK)
        st = trial_step(p->trial, &s[1], err);
    if (st == OK) {
        const double step = fmin(s[0].us, s[1].us) * 1e-6, turn = fmin(TURN_SECONDS, seconds / TURNS_FEWEST);
        p->steps = (int)fmin(fmax(floor(turn / step), 1), TURN_STEPS_MOST);
    }
    return st;
}

/* Who begins changes from pair to pair. */
static enum status take_pair(struct player *players, int turn, struct error *err)
{
    const enum status st = take_turn(&players[turn % 2], turn, err);
    return st == OK ? take_turn(&players[1 - turn % 2], turn, err) : st;
}

/* Twice as long, where the limit lies inside a wide interval and there is time. */
static bool ask_for_more(struct evidence *e, double *seconds, double most)
{
    const struct speed s = speed_of(e);
    if (*seconds >= most || speed_is_settled(&s, 1 + e->limits->verify.min_gain))
        return false;
    *seconds = fmin(2 * *seconds, most);
    e->longer = true;
    return true;
}

enum status turns_measure(struct evidence *e, struct trial *a, struct trial *b, double seconds,
                          const struct verify_options *options, struct error *err)
{
    e->a.turn_us = xcalloc(TURNS_MOST, sizeof *e->a.turn_us);
    e->b.turn_us = xcalloc(TURNS_MOST, sizeof *e->b.turn_us);
    struct player players[] = {{.trial = a, .turn_us = e->a.turn_us}, {.trial = b, .turn_us = e->b.turn_us}};
    enum status st = fit_turn(&players[0], seconds, err);
    if (st == OK)
        st = fit_turn(&players[1], seconds, err);
    const double most = options->most_seconds > 0 ? options->most_seconds : PATIENCE * seconds;
    const double start = clock_s();
    double looked = start;
    gpu_watch_begin(&e->gpu, trial_gpu_address(a));
    gpu_watch_look(&e->gpu, NULL);
    for (int n = 0; st == OK && n < TURNS_MOST; n++) {
        const double spent = (clock_s() - start) / fmax(2 * seconds, 1e-9);
        if (n >= TURNS_FEWEST && spent >= 1 && !ask_for_more(e, &seconds, most))
            break;
        if (stopped(options))
            return error_set(err, BAD_INPUT, "stopped before the speed was measured");
        if (options->progress)
            options->progress(options->context, e->longer ? "speed in turns, for longer" : "speed in turns",
                              fmin(spent, (double)(n + 1) / TURNS_FEWEST));
        st = take_pair(players, n, err);
        e->turns = n + 1;
        if (clock_s() - looked > LOOK_SECONDS) {
            gpu_watch_look(&e->gpu, NULL);
            looked = clock_s();
        }
    }
    gpu_watch_look(&e->gpu, NULL);
    e->gpu.address = NULL;                  /* the trial's, which goes */
    e->seconds = (clock_s() - start) / 2;
    return st;
}
