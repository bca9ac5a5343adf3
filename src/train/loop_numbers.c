/* Losses and norms as the host reads them: sums for the logs, and what happens where they say stop; see loop_int.h. */
#include <math.h>

#include "passes/passes.h"
#include "train/loop_int.h"

enum { MOST_SKIPS_IN_A_ROW = 100, RUNAWAY_STEPS = 10 };

static enum status refuse_step(const struct loop *l, int64_t step, struct step_metrics m, struct error *err)
{
    char after[96] = "the weights are kept as they were before it", row[64] = "";
    if (l->skipped_in_a_row >= MOST_SKIPS_IN_A_ROW)
        snprintf(row, sizeof row, "%d steps in a row were left out, and that is the most; ", MOST_SKIPS_IN_A_ROW);
    if (step < l->step)
        snprintf(after, sizeof after, "its update was left out, and the run ends after step %lld, where this was read",
                 (long long)l->step);
    return error_set(err, BAD_INPUT, "step %lld: loss is %g and the gradient norm %g; %s%s. Try a lower train.lr (now %g), a "
                     "longer train.warmup, train.clip: 1.0%s", (long long)step, m.loss, m.norm, row, after, l->run.config.train.lr,
                     l->run.config.train.on_nan == ON_NAN_STOP ? ", or train.on_nan: skip" : "");
}

/* The program itself keeps weights as they were when loss or gradient is not finite; here the config decides whether
 * to go on. */
static enum status check_finite(struct loop *l, int64_t step, struct step_metrics m, struct error *err)
{
    if (isfinite(m.loss) && isfinite(m.norm)) {
        l->skipped_in_a_row = 0;
        return OK;
    }
    l->skipped++;
    const bool scaled = exec_program(l->run.train)->loss_scale != NO_VALUE && isfinite(m.loss);     /* too large for f16: halved by now */
    if ((l->run.config.train.on_nan == ON_NAN_SKIP || scaled) && ++l->skipped_in_a_row < MOST_SKIPS_IN_A_ROW)
        return OK;
    l->alike = true;                        /* every rank has these numbers */
    return refuse_step(l, step, m, err);
}

/* A model that knows nothing and guesses every token alike has a loss of ln(vocabulary). One that stays far above that has been
 * driven there, and will hardly come back. */
static void watch_for_runaway(struct loop *l, int64_t step, double loss)
{
    const struct config_train *t = &l->run.config.train;
    const double guessing = log((double)l->run.config.model.vocab);
    char text[320];
    if (l->runaway == RUNAWAY_STEPS)
        return;
    l->runaway = isfinite(loss) && loss > 1.5 * guessing + 1 ? l->runaway + 1 : 0;
    if (l->runaway < RUNAWAY_STEPS)
        return;
    snprintf(text, sizeof text, "step %lld: the loss is %.6g, and guessing costs %.3g: training runs away. Try a lower train.lr (now %g), "
             "a longer train.warmup (now %lld)%s", (long long)step, loss, guessing, t->lr, (long long)t->warmup,
             t->clip > 0 ? "" : ", train.clip: 1.0");
    loop_warn(l, text);
}

static void add_loss(struct loss_sum *s, double loss)
{
    s->steps++;
    if (isfinite(loss)) {
        s->loss += loss;
        s->finite_steps++;
    }
}

enum status loop_read_metrics(struct loop *l, struct error *err)
{
    struct step_metrics steps[METRICS_KEPT];
    const int n = l->unread;
    enum status st = OK;
    if (!n)
        return OK;
    model_run_metrics(&l->run, steps, n);
    node_sums_add(&l->nodes, &l->run, n);
    st = exec_status(l->run.train, err);
    l->unread = 0;
    for (int i = 0; i < n && st == OK; i++) {
        l->newest = steps[i];
        add_loss(&l->since_log.sum, steps[i].loss);
        add_loss(&l->since_epoch.sum, steps[i].loss);
        watch_for_runaway(l, l->step - (n - 1 - i), steps[i].loss);
        st = check_finite(l, l->step - (n - 1 - i), steps[i], err);
    }
    return st;
}
