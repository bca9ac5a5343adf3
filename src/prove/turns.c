/* Speed: turns of steps of a and of b, one after the other, in one process.
 *
 * What disturbs the machine then disturbs both. A turn lasts some tens of milliseconds, as steps that alternate one by one would
 * find the caches full of the other's data; the first step of a turn of several is not counted for the same reason. How long other
 * work had the cores in a turn is noted with it: speed.c leaves such pairs out, and more are taken in their place. */
#include <math.h>
#include <stdlib.h>

#include "core/arena.h"
#include "core/clock.h"
#include "core/delay.h"
#include "core/stats.h"
#include "prove/prove_int.h"

static const double TURN_SECONDS = 0.03;
static const double LOOK_SECONDS = 0.25;   /* between two looks at a GPU, which lie between turns */
static const double PATIENCE = 4;          /* times as long as asked for, at most, where the interval stays wide */
static const double ALIKE = 1.5;           /* steps that are no further apart make turns of as many steps */
enum { TURN_STEPS_MOST = 256, FIT_FEWEST = 2, FIT_MOST = 8 };

struct player {
    struct trial *trial;
    double *turn_us, *turn_delay;   /* (TURNS_MOST) */
    double step_s;                  /* about as long as it takes undisturbed */
    int steps;                      /* of one turn that are counted */
    int lanes;                      /* that other work could delay; 0: none */
};

static bool stopped(const struct verify_options *o) { return o->stop && *o->stop; }

static enum status take_turn(struct player *p, int turn, struct error *err)
{
    double us[TURN_STEPS_MOST];
    struct trial_step s;
    const struct delay delay = delay_begin();
    enum status st = p->steps > 1 ? trial_step(p->trial, &s, err) : OK;
    for (int i = 0; i < p->steps && st == OK; i++) {
        st = trial_step(p->trial, &s, err);
        us[i] = s.us;
    }
    if (st == OK) {
        p->turn_delay[turn] = p->lanes ? delay_share(&delay, p->lanes) : -1;
        stats_sort(us, p->steps);
        p->turn_us[turn] = stats_percentile(us, p->steps, 0.5);
    }
    return st;
}

/* The fastest of a few steps; of more where they are short, as other work makes one of them several times as long. */
static enum status time_step(struct player *p, double seconds, struct error *err)
{
    enum status st = OK;
    double spent = 0;
    p->step_s = INFINITY;
    for (int i = 0; i < FIT_MOST && st == OK && (i < FIT_FEWEST || spent < FIT_MOST * seconds); i++) {
        struct trial_step s;
        st = trial_step(p->trial, &s, err);
        p->step_s = fmin(p->step_s, s.us * 1e-6);
        spent += s.us * 1e-6;
    }
    return st;
}

/* How many steps fill a turn: as many of both where they take about as long, so that both are disturbed alike. */
static enum status fit_turns(struct player players[2], double seconds, struct error *err)
{
    const double turn = fmin(TURN_SECONDS, seconds / TURNS_FEWEST);
    enum status st = time_step(&players[0], turn, err);
    if (st == OK)
        st = time_step(&players[1], turn, err);
    if (st != OK)
        return st;
    const double longer = fmax(players[0].step_s, players[1].step_s), shorter = fmin(players[0].step_s, players[1].step_s);
    for (int i = 0; i < 2; i++)
        players[i].steps = (int)fmin(fmax(floor(turn / (longer < ALIKE * shorter ? shorter : players[i].step_s)), 1), TURN_STEPS_MOST);
    return OK;
}

static struct player player_of(struct trial *t, struct evidence_side *s)
{
    s->turn_us = xcalloc(TURNS_MOST, sizeof *s->turn_us);
    s->turn_delay = xcalloc(TURNS_MOST, sizeof *s->turn_delay);
    s->lanes = delay_is_of_others(trial_lanes(t)) ? trial_lanes(t) : 0;
    return (struct player){.trial = t, .turn_us = s->turn_us, .turn_delay = s->turn_delay, .lanes = s->lanes};
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
    struct player players[] = {player_of(a, &e->a), player_of(b, &e->b)};
    enum status st = fit_turns(players, seconds, err);
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
