/* Findings: severity and effort, their names, from claim to finding, and the ranking. */
#include <math.h>
#include <string.h>

#include "analyze/rules.h"

/* The share of the step that is won is 1 - 1/speedup; compared without the division, so that the edges are sharp. */
static bool wins(double speedup, double share) { return speedup - 1 >= share * speedup - 1e-9; }

enum severity severity_of(double speedup)
{
    if (!(speedup > 1))
        return SEVERITY_LOW;
    if (isinf(speedup) || wins(speedup, 0.50))
        return SEVERITY_CRITICAL;
    return wins(speedup, 0.20) ? SEVERITY_HIGH : wins(speedup, 0.05) ? SEVERITY_MEDIUM : SEVERITY_LOW;
}

const char *const severity_names[] = {"low", "medium", "high", "critical", NULL};

const char *severity_name(enum severity s) { return severity_names[s]; }

const char *effort_name(enum effort e)
{
    static const char *const names[] = {"low", "medium", "high"};
    return names[e];
}

static double between(double x, double low, double high) { return fmin(fmax(positive(x), low), high); }

/* A step that only consists of the fault would be infinitely faster; the most that is claimed is a thousandfold. */
static double speedup_by(double base_us, double won_us)
{
    return base_us > 0 ? base_us / fmax(base_us - won_us, base_us / 1000) : 1;
}

void claim_settle(struct claim *c, const char *rule)
{
    c->involved_us = fmin(positive(c->involved_us), positive(c->base_us));
    c->won_us = between(c->won_us, 0, c->involved_us);
    c->won_low_us = between(c->won_low_us, 0, c->won_us);
    c->won_high_us = between(c->won_high_us, c->won_us, c->involved_us);
    struct finding *f = &c->finding;
    f->rule = rule;
    f->with_evaluation = c->outside;
    f->share = c->base_us > 0 ? c->involved_us / c->base_us : 0;
    f->speedup = speedup_by(c->base_us, c->won_us);
    f->speedup_low = speedup_by(c->base_us, c->won_low_us);
    f->speedup_high = speedup_by(c->base_us, c->won_high_us);
    f->severity = severity_of(f->speedup);
    f->effort = rule_text_find(rule)->effort;
}

static bool before(const struct finding *a, const struct finding *b)
{
    if (a->speedup != b->speedup)
        return a->speedup > b->speedup;
    return a->speedup_high > b->speedup_high;
}

void claims_rank(struct claim *claims, int n)
{
    for (int i = 1; i < n; i++) {
        const struct claim c = claims[i];
        int j = i;
        for (; j > 0 && before(&c.finding, &claims[j - 1].finding); j--)
            claims[j] = claims[j - 1];
        claims[j] = c;
    }
}
