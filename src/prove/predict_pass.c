/* What a pass that is off would win: the program is built with it and weighed by the cost model (predict.c). */
#include <math.h>
#include <stdlib.h>

#include "passes/passes.h"
#include "prove/moves.h"
#include "train/trial.h"

static const double MOST_CHOSEN = 4;        /* times as fast, by a choice of kernels: a file of choices can say anything */

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
    struct config measured = *c;            /* with rows of one length, as it was */
    measured.data.bucket = 0;
    measured.data.group = 1;
    const enum status st = trial_open(&t, &measured, NULL, NULL, err);
    if (st != OK)
        return st == CANNOT ? OK : st;
    *us = trial_choice_gain_us(t);
    trial_free(t);
    return OK;
}

/* With the pass on, also where its switch says off: tune leaves that alone, but a profile says what it costs. */
static struct config config_with_pass_on(const struct config *c, int pass)
{
    struct config next = config_with_passes(c, (pass_set)1 << pass);
    if (!config_pass_is_on(&next, pass))
        next.optimize.pass[pass] = PASS_ON;
    return next;
}

/* Operands of fewer bits that the CPU multiplies no faster: rounding them takes what smaller values save. */
static bool rounds_in_vain(const struct program *now, const struct program *then, const struct peaks *peaks)
{
    return then->precision.round != ROUND_NO && now->precision.round == ROUND_NO && program_peak(then, peaks).gflops <= program_peak(now, peaks).gflops;
}

enum status predict_pass(struct pass_prediction *out, const struct situation *now, int pass, struct error *err)
{
    const struct program *program = now->m.program;
    int places[PASSES_MAX] = {0};
    struct program *then;
    double saved_us = 0;
    *out = (struct pass_prediction){.next = config_with_pass_on(&now->m.config, pass), .speedup = 1, .speedup_high = 1};
    if (config_pass_is_on(&now->m.config, pass))
        return OK;
    enum status st = train_step_program(&then, &out->next, out->next.train.steps, places, err);
    if (st != OK)
        return st;
    if (places[pass] && has_timed_ops(then) && !has_timed_ops(program))
        st = choice_gain(&saved_us, &out->next, err);
    if (st == OK && places[pass]) {
        out->places = places[pass];
        out->ops = xcalloc((size_t)program->n_ops + 1, sizeof *out->ops);
    }
    if (st == OK && places[pass] && !rounds_in_vain(program, then, &now->p.peaks)) {
        const double before_us = predict_step_us(&now->p, program, program);
        const struct prediction p = predict_step(&now->p, program, then, out->ops);
        out->speedup = before_us / fmax(p.us - saved_us, p.us / MOST_CHOSEN);
        out->speedup_high = fmax(before_us / fmax(p.best_us - saved_us, p.best_us / MOST_CHOSEN), out->speedup);
        out->saved_bytes = pass_planned_bytes(program) - pass_planned_bytes(then);
    }
    program_free(then);
    return st;
}

void pass_prediction_release(struct pass_prediction *p)
{
    free(p->ops);
    p->ops = NULL;
}
