/* allocator-churn: memory of the device is taken from and given back to the driver inside steps. */
#include "analyze/traced/rules.h"

bool trace_rule_allocator_churn(struct study *s, struct charge *c)
{
    int n = 0;
    double ns = 0;
    int32_t example = -1;
    for (int32_t i = 0; i < s->v->n_host; i++) {
        if (!study_has(s, i) || replay_is_cold(s->replay, i) || !(study_calls(s, i, CALL_MALLOC) || study_calls(s, i, CALL_FREE)))
            continue;
        n++;
        ns += (double)view_event(s->v, i)->duration_ns;
        charge_host(s, c, i, 0);
        if (example < 0 || view_event(s->v, i)->duration_ns > view_event(s->v, example)->duration_ns)
            example = i;
    }
    if (per_step(s, n) < 1 || s->replay->all_cold)      /* while a process starts its allocator grows */
        return false;
    c->doubt = 0.3;
    c->finding.where = study_where(s, example);
    c->finding.cause = "the caching allocator is emptied or too small, so that every step asks the driver for memory again";
    c->finding.evidence = study_text(s, "%s calls of malloc and free per step, %s per step as recorded",
                                     study_number(s, per_step(s, n)), study_us(s, per_step(s, ns)));
    return true;
}
