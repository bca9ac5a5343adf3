/* host-bound, launch-bound: the device waits for the host. */
#include <math.h>

#include "analyze/traced/rules.h"

static const double IDLE = 0.15;            /* of the step, from which on the device waits too much */
static const double GAP = 12;               /* usual gaps: a longer one is the user's own Python */
static const double LEAST_GAP_NS = 60e3;
static const double REPLAYED = 0.15;        /* of the host's time stays when the step is one graph or compiled */
enum { LEAST_LAUNCHES = 50 };               /* per step, below which launching is not the matter */

static bool waits_for_host(const struct study *s)
{
    if (s->replay->all_cold)
        return false;                       /* a host that does things for the first time is no bound of later steps */
    return s->v->n_device > 0 && s->device_ns < (1 - IDLE) * s->base_ns && s->host_ns > 0.8 * s->base_ns;
}

bool trace_rule_host_bound(struct study *s, struct charge *c)
{
    if (!waits_for_host(s))
        return false;
    const struct replay *r = s->replay;
    c->edit.gap_limit_ns = fmax(GAP * r->typical_gap_ns, LEAST_GAP_NS);
    int n = 0;
    int32_t longest = -1;
    int64_t most = 0;
    double ns = 0;
    for (int32_t k = 0; k < r->n_items; k++)
        if (r->items[k].owner < 0 && (double)r->items[k].ns > c->edit.gap_limit_ns) {
            n++;
            ns += (double)r->items[k].ns - c->edit.gap_limit_ns;
            if (r->items[k].ns > most)
                most = r->items[k].ns, longest = r->items[k].event;
        }
    c->doubt = 0.25;
    c->finding.where = longest >= 0 ? study_text(s, "before %s", study_where(s, longest))
                       : most       ? "behind the last op"
                                    : "between ops";
    c->finding.cause = "the device waits for the host, which spends time outside of PyTorch's ops";
    c->finding.evidence = study_text(s, "the device is idle %.0f %% of the step", 100 * (1 - s->device_ns / s->base_ns));
    if (n)
        c->finding.evidence = study_text(s, "%s; long stretches without any op per step: %s, the longest %s, which take %s per "
                                         "step beyond what is usual, as recorded", c->finding.evidence,
                                         study_number(s, per_step(s, n)), study_us(s, (double)most), study_us(s, per_step(s, ns)));
    return true;
}

bool trace_rule_launch_bound(struct study *s, struct charge *c)
{
    int64_t launches = 0;
    for (int32_t k = 0; k < s->replay->n_items; k++)
        launches += s->replay->items[k].effect == EFFECT_LAUNCH;
    if (!waits_for_host(s) || per_step(s, (double)launches) < LEAST_LAUNCHES)
        return false;
    c->edit.host_factor = REPLAYED;
    c->doubt = 0.35;
    c->finding.where = "the whole step";
    c->finding.cause = "the host cannot launch kernels as fast as the device runs them";
    c->finding.evidence = study_text(s, "%.0f launches per step; host work %s, device work %s per step", per_step(s, (double)launches),
                                     study_us(s, s->host_ns), study_us(s, s->device_ns));
    return true;
}
