/* Speed in one opening: turns of steps of a and of b, one after the other, in one process.
 *
 * What disturbs the machine then disturbs both. A turn lasts some tens of milliseconds, as steps that alternate one by one would
 * find the caches full of the other's data; the first step of a turn of several is not counted for the same reason, and those are not
 * whose batches were made between turns. How long other work had the cores in a turn is noted with it: speed.c leaves such pairs out. */
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
static const double USED_UP_SECONDS = 0.3; /* for the batches that were ready before, where steps take them faster than they are made */
static const double WAITS = 0.05;          /* of the time of steps, for batches: they are not alike then, as several workers end theirs together */
enum { TURN_STEPS_MOST = 256, CYCLE_MOST = 64, FIT_FEWEST = 2, FIT_MOST = 8, WARM_STEPS = 3 };

static enum status take_steps(struct trial *t, int64_t n, struct error *err)
{
    struct trial_step step;
    enum status st = OK;
    for (int64_t i = 0; i < n && st == OK; i++)
        st = trial_step(t, &step, err);
    return st;
}

/* The mean step of a cycle. */
static enum status time_cycle(double *us, struct trial *t, int cycle, struct error *err)
{
    enum status st = OK;
    double sum = 0;
    for (int i = 0; i < cycle && st == OK; i++) {
        struct trial_step step;
        st = trial_step(t, &step, err);
        sum += step.us;
    }
    *us = sum / cycle;
    return st;
}

static enum status take_turn(struct evidence_side *s, struct trial *t, int turn, struct error *err)
{
    double us[TURN_STEPS_MOST];
    const int n = s->turn_steps / s->cycle, first = s->turn_steps > 1, rested = trial_batches_rested(t);
    const struct delay delay = delay_begin();
    enum status st = take_steps(t, rested > first ? rested : first, err);
    for (int i = 0; i < n && st == OK; i++)
        st = time_cycle(&us[i], t, s->cycle, err);
    if (st == OK) {
        s->turn_delay[turn] = s->lanes ? delay_share(&delay, s->lanes) : -1;
        stats_sort(us, n);
        s->turn_us[turn] = stats_percentile(us, n, 0.5);
    }
    return st == OK ? trial_rest(t, err) : st;
}

/* The fastest of a few cycles of steps; of more where they are short, as other work makes one of them several times as long. */
static enum status time_step(double *step_s, struct trial *t, int cycle, double seconds, struct error *err)
{
    enum status st = OK;
    double spent = 0;
    *step_s = INFINITY;
    for (int i = 0; i < FIT_MOST && st == OK && (i < FIT_FEWEST || spent < FIT_MOST * seconds); i++) {
        double us;
        st = time_cycle(&us, t, cycle, err);
        *step_s = fmin(*step_s, us * 1e-6);
        spent += us * cycle * 1e-6;
    }
    return st == OK ? trial_rest(t, err) : st;
}

static void make_room(struct evidence_side *s, struct trial *t)
{
    s->turn_us = xcalloc(TURNS_MOST, sizeof *s->turn_us);
    s->turn_delay = xcalloc(TURNS_MOST, sizeof *s->turn_delay);
    s->lanes = delay_is_of_others(trial_lanes(t)) ? trial_lanes(t) : 0;
}

static int whole_cycles(double steps, int cycle)
{
    const int most = TURN_STEPS_MOST / cycle, cycles = (int)fmin(fmax(floor(steps / cycle), 1), most);
    return cycles * cycle;
}

/* Also of workers, where steps wait for them. */
static int cycle_of(const struct trial *t, double waited_share)
{
    const int cycle = (int)trial_cycle(t), workers = trial_workers(t), both = cycle % (workers > 1 ? workers : 1) ? cycle * workers : cycle;
    return workers > 1 && waited_share > WAITS && both <= CYCLE_MOST ? both : cycle;
}

/* How many steps fill a turn: as many of both where they take about as long, so that both are disturbed alike. */
enum status turns_fit(struct evidence *e, struct trial *const open[2], double seconds, struct error *err)
{
    const double turn = fmin(TURN_SECONDS, seconds / (OPENINGS_USUAL * TURNS_FEWEST));
    struct evidence_side *const sides[] = {&e->a, &e->b};
    double step_s[2];
    e->opening = xcalloc(TURNS_MOST, sizeof *e->opening);
    for (int i = 0; i < 2; i++) {
        const double start = clock_s(), waited = trial_wait_us(open[i]);
        make_room(sides[i], open[i]);
        if (time_step(&step_s[i], open[i], (int)trial_cycle(open[i]), turn, err) != OK)
            return err->status;
        sides[i]->cycle = cycle_of(open[i], (trial_wait_us(open[i]) - waited) / 1e6 / (clock_s() - start));
    }
    const double longer = fmax(step_s[0], step_s[1]), shorter = fmin(step_s[0], step_s[1]);
    for (int i = 0; i < 2; i++)
        sides[i]->turn_steps = whole_cycles(turn / (longer < ALIKE * shorter ? shorter : step_s[i]), sides[i]->cycle);
    return OK;
}

/* While batches that were ready get fewer: a long run has used them up. As many steps between two looks as there are workers, which end theirs together. */
static enum status use_up(struct trial *t, struct error *err)
{
    const double start = clock_s();
    const int steps = trial_workers(t);
    enum status st = OK;
    for (int64_t before = INT64_MAX, ready; st == OK && clock_s() - start < USED_UP_SECONDS; before = ready) {
        ready = trial_batches_ahead(t);
        if (ready == 0 || ready >= before)
            break;
        st = take_steps(t, steps, err);
    }
    return st;
}

/* A GPU's graph is captured in the second step; on a CPU the first one touches memory for the first time. */
enum status turns_warm(struct trial *t, struct error *err)
{
    enum status st = OK;
    const double start = clock_s();
    for (int i = 0; st == OK && (i < 1 || clock_s() - start < (i < WARM_STEPS ? WARM_SECONDS : TURN_SECONDS)); i++)
        st = take_steps(t, 1, err);
    if (st == OK)
        st = use_up(t, err);
    return st == OK ? trial_rest(t, err) : st;
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
