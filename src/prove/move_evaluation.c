/* eval-schedule: evaluation as often as 2 % of the run pays for. */
#include "prove/moves.h"

static const double SHARE = 0.02;

enum status propose_evaluation(struct proposal *out, const struct situation *now, int pass, struct error *err)
{
    const struct measured *m = &now->m;
    const struct finding *f = situation_finding(now, "eval-share");
    (void)pass;
    (void)err;
    *out = (struct proposal){.next = m->config, .predicted = 1};
    if (!f)
        return OK;
    const double allowed_us = now->p.step_us * now->p.run.rows_scale * SHARE / (1 - SHARE);
    const int64_t every = evaluations_interval(m->evaluations, allowed_us / (m->evaluation_us * m->evaluation_scale));
    if (evaluations_left(m->evaluations, every) >= 1)
        return OK;
    out->next.eval.every = (struct interval){.n = every};
    out->places = 1;
    out->predicted = f->speedup;
    snprintf(out->change, sizeof out->change, "eval.every: %lld", (long long)every);
    return OK;
}
