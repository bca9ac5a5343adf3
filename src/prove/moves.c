/* The table of settings, and passes as moves. */
#include "prove/moves.h"

#include <stdio.h>

static const struct move settings[] = {
    {.name = "batch-size", .answers = "small-batch", .effort = PASS_LOW, .grows = true, .pass = -1,
     .propose = propose_batch,
     .what = "samples of an update in larger or smaller micro-batches, as many per update as before"},
    {.name = "bucket-size", .answers = "exposed-comm", .effort = PASS_LOW, .grows = true, .pass = -1, .propose = propose_bucket,
     .what = "gradients travel between ranks in larger or smaller buckets"},
    {.name = "loader", .answers = "data-stall", .effort = PASS_LOW, .pass = -1, .propose = propose_loader,
     .what = "more workers and batches in advance, so that the step finds its batch ready"},
    {.name = "eval-schedule", .answers = "eval-share", .effort = PASS_LOW, .gain = GAIN_AROUND_STEP, .trade = true, .pass = -1,
     .propose = propose_evaluation, .what = "evaluation so often that it takes 2 % of the run"},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static struct move pass_move(int i, bool off)
{
    const struct pass *p = &pass_table[i];
    struct move m = {.answers = off ? NULL : p->answers, .effort = p->effort, .pass = i, .off = off,
                     .what = off ? "back to what it takes the place of, in case that is faster on this machine" : p->what,
                     .trade = !off && (p->traits & PASS_TRADES), .propose = off ? propose_without : propose_pass};
    snprintf(m.name, sizeof m.name, "%s%s", off ? "without " : "", p->name);
    return m;
}

bool move_get(int i, struct move *out)
{
    int passes = 0;
    while (pass_table[passes].name)
        passes++;
    if (i >= 2 * passes + SETTINGS)
        return false;
    *out = i < passes              ? pass_move(i, false)
           : i < passes + SETTINGS ? settings[i - passes]
                                   : pass_move(i - passes - SETTINGS, true);
    return true;
}

int move_phase(const struct move *m)
{
    return m->trade ? PHASE_TRADE : m->effort == PASS_LOW ? PHASE_QUICK : PHASE_REWRITE;
}

struct config config_with_passes(const struct config *c, pass_set set)
{
    struct config next = *c;
    for (int i = 0; pass_table[i].name; i++)
        if ((set >> i & 1) && !config_pass_is_on(&next, i) && !config_pass_is_named(&next, i))
            config_pass_switch(&next, i, true);
    return next;
}

/* What the change of a pass writes. */
static void put_change(struct proposal *p, const struct config *now, int pass, bool on)
{
    const struct pass *t = &pass_table[pass];
    if (t->traits & PASS_IS_PRECISION)
        snprintf(p->change, sizeof p->change, "%s: %s", t->key, config_word(t->key, (int)p->next.optimize.precision));
    else if (now->optimize.passes.choice == PASSES_ALL)
        snprintf(p->change, sizeof p->change, "%s: %s", t->key, on ? "auto" : "off");
    else
        snprintf(p->change, sizeof p->change, "optimize.passes: %c %s", on ? '+' : '-', t->name);
}

enum status propose_pass(struct proposal *out, const struct situation *now, int pass, struct error *err)
{
    struct pass_prediction p;
    *out = (struct proposal){.next = config_with_passes(&now->m.config, (pass_set)1 << pass), .predicted = 1};
    if (config_pass_is_on(&now->m.config, pass) || !config_pass_is_on(&out->next, pass))        /* it is, or must not be */
        return OK;
    const enum status st = predict_pass(&p, now, pass, err);
    if (st != OK)
        return st;
    out->places = p.places;
    out->predicted = p.speedup;
    pass_prediction_release(&p);
    put_change(out, &now->m.config, pass, true);
    return OK;
}

enum status propose_without(struct proposal *out, const struct situation *now, int pass, struct error *err)
{
    const struct config *c = &now->m.config;
    int places[PASSES_MAX] = {0};
    struct program *same, *then;
    *out = (struct proposal){.next = *c, .predicted = 1};
    if (!config_pass_is_on(c, pass) || config_pass_is_named(c, pass) || (pass_table[pass].traits & PASS_WHEN_NEEDED))
        return OK;
    config_pass_switch(&out->next, pass, false);
    enum status st = train_step_program(&same, c, c->train.steps, places, err);
    if (st != OK)
        return st;
    program_free(same);
    st = train_step_program(&then, &out->next, c->train.steps, NULL, err);
    if (st != OK)
        return st;
    out->places = places[pass];             /* where it does something now */
    out->predicted = predict_step_us(&now->p, now->m.program, now->m.program) / predict_step_us(&now->p, now->m.program, then);
    program_free(then);
    put_change(out, c, pass, false);
    return OK;
}
