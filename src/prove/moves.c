/* The table of settings, and passes as moves. */
#include "prove/moves.h"

#include <math.h>
#include <string.h>

#include "train/trial.h"

static const double MOST_CHOSEN = 4;        /* times as fast, by a choice of kernels: a file of choices can say anything */

static const struct move settings[] = {
    {.name = "batch-size", .answers = "small-batch", .effort = PASS_LOW, .grows = true, .pass = -1,
     .propose = propose_batch,
     .what = "samples of an update in larger or smaller micro-batches, as many per update as before"},
    {.name = "loader", .answers = "data-stall", .effort = PASS_LOW, .pass = -1, .propose = propose_loader,
     .what = "more workers and batches in advance, so that the step finds its batch ready"},
    {.name = "eval-schedule", .answers = "eval-share", .effort = PASS_LOW, .gain = GAIN_AROUND_STEP, .trade = true, .pass = -1,
     .propose = propose_evaluation, .what = "evaluation so often that it takes 2 % of the run"},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

bool move_get(int i, struct move *out)
{
    int passes = 0;
    while (pass_table[passes].name)
        passes++;
    if (i >= passes + SETTINGS)
        return false;
    if (i >= passes) {
        *out = settings[i - passes];
        return true;
    }
    const struct pass *p = &pass_table[i];
    *out = (struct move){.name = p->name, .answers = p->answers, .what = p->what, .effort = p->effort, .pass = i,
                         .trade = !strcmp(p->name, "recompute") || !strcmp(p->name, "mixed-precision"), .propose = propose_pass};
    return true;
}

int move_phase(const struct move *m)
{
    return m->trade ? PHASE_TRADE : m->effort == PASS_LOW ? PHASE_QUICK : PHASE_REWRITE;
}

struct config config_with_passes(const struct config *c, pass_set set)
{
    struct config next = *c;
    const int bf16 = pass_find("mixed-precision");
    if (set >> bf16 & 1)
        next.optimize.precision = PRECISION_BF16;
    set &= ~((pass_set)1 << bf16);
    if (set && next.optimize.passes.choice != PASSES_ALL) {
        next.optimize.passes.choice = PASSES_LISTED;
        next.optimize.passes.listed |= set;
    }
    return next;
}

static bool has_timed_ops(const struct program *p)
{
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].timed)
            return true;
    return false;
}

/* What the choice of kernels saves, which no program shows: binding it times them. Nothing is expected of it where the memory for a
 * second run beside the measured one is not to be had. */
static enum status choice_gain(double *us, const struct config *c, struct error *err)
{
    struct trial *t;
    const enum status st = trial_open(&t, c, NULL, NULL, err);
    if (st != OK)
        return st == CANNOT ? OK : st;
    *us = trial_choice_gain_us(t);
    trial_free(t);
    return OK;
}

enum status propose_pass(struct proposal *out, const struct situation *now, int pass, struct error *err)
{
    int places[PASSES_MAX] = {0};
    struct program *then;
    double saved_us = 0;
    *out = (struct proposal){.next = config_with_passes(&now->m.config, (pass_set)1 << pass), .predicted = 1};
    if (config_pass_is_on(&now->m.config, pass))         /* it is on */
        return OK;
    enum status st = train_step_program(&then, &out->next, out->next.train.steps, places, err);
    if (st != OK)
        return st;
    out->places = places[pass];
    if (out->places && has_timed_ops(then) && !has_timed_ops(now->m.program))
        st = choice_gain(&saved_us, &out->next, err);
    const double before_us = predict_step_us(&now->p, now->m.program, now->m.program);
    const double then_us = predict_step_us(&now->p, now->m.program, then);
    out->predicted = before_us / fmax(then_us - saved_us, then_us / MOST_CHOSEN);
    program_free(then);
    if (!strcmp(pass_table[pass].name, "mixed-precision"))
        snprintf(out->change, sizeof out->change, "optimize.precision: bf16");
    else
        snprintf(out->change, sizeof out->change, "optimize.passes: + %s", pass_table[pass].name);
    return st;
}
