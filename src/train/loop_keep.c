/* What a run keeps on its way: evaluations, the rows of forgetting.json, checkpoints; see loop_int.h. */
#include "core/clock.h"
#include "train/loop_int.h"

bool loop_due(const struct loop *l, struct interval every)
{
    const int64_t steps = interval_steps(every, l->run.steps_per_epoch);
    return steps > 0 && l->step % steps == 0;
}

bool loop_ends_stage(const struct loop *l) { return l->run.stage_steps && l->step % l->run.stage_steps == 0; }

enum status loop_evaluate(struct loop *l, struct error *err)
{
    if (!l->run.eval || l->evaluated == l->step)
        return OK;
    const int stage = model_run_stage(&l->run, l->step);
    const enum status st = model_run_evaluate(&l->run, l->options->stop, l->losses, err);
    if (st != OK || loop_stopped(l))
        return st;
    l->val_loss = l->losses[stage];
    l->evaluated = l->step;
    if (!loop_leads(l))
        return OK;
    metrics_eval(l->metrics, l->step, l->run.dataset, stage, l->losses);
    if (l->run.stage_steps && l->watch->on_domains)
        l->watch->on_domains(l->watch->context, l->step, l->losses);
    else if (!l->run.stage_steps && l->watch->on_eval)
        l->watch->on_eval(l->watch->context, l->step, l->val_loss);
    return OK;
}

void loop_write_forgetting(struct loop *l)
{
    struct error why;
    if (!loop_leads(l))
        return;
    l->unwritten = forgetting_write(&l->forgetting, &l->run.config, l->options->out, &why) != OK;
    if (l->unwritten)
        loop_warn(l, why.text);
}

enum status loop_pass_border(struct loop *l, struct error *err)
{
    struct forgetting *f = &l->forgetting;
    enum status st = OK;
    if (!loop_ends_stage(l))
        return OK;
    if (f->rows == l->step / l->run.stage_steps)
        st = loop_evaluate(l, err);
    if (f->rows == l->step / l->run.stage_steps && st == OK && l->evaluated == l->step) {
        forgetting_add(f, l->losses);
        loop_write_forgetting(l);
    }
    return st;
}

static enum status write_checkpoint(struct loop *l, struct error *err)
{
    const bool owes = l->step > 0 && l->run.eval && l->evaluated != l->step && loop_due(l, l->run.config.eval.every);
    const struct carried carried = {l->since_log.sum, l->since_epoch.sum, l->skipped, owes, l->forgetting, &l->nodes};
    return loop_leads(l) ? state_save(&l->run, l->options->out, l->step, &carried, l->checkpoint, err) : OK;
}

enum status loop_compare(struct loop *l, struct error *err)
{
    l->compare = false;
    l->compared_s = clock_s();
    const enum status st = ranks_compare_weights(&l->run, l->step, &l->apart, err);
    l->alike |= l->apart;
    return st;
}

/* All know whether it went well, also of what rank 0 alone writes: they try again together, or not. */
enum status loop_save(struct loop *l, struct error *err)
{
    if (l->saved == l->step)
        return OK;
    enum status st = moments_are_divided(&l->run) ? moments_collect(&l->run, err) : OK;
    if (st == OK)
        st = write_checkpoint(l, err);
    st = loop_agree(l, st, err);
    if (st != OK)
        return st;
    l->saved = l->step;
    if (loop_leads(l) && l->watch->on_checkpoint)
        l->watch->on_checkpoint(l->watch->context, l->step, l->checkpoint);
    loop_sample(l);
    return OK;
}

void loop_save_or_warn(struct loop *l)
{
    struct error why;
    if (loop_save(l, &why) != OK)
        loop_warn(l, why.text);
}
