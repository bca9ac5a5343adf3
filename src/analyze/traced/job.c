/* Findings of all ranks as those of the job. A fault that one rank has costs the job what the others wait for that rank; one that all
 * have costs each of them. */
#include "analyze/traced/job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of these a rank's own gain holds its wait for others, which other rules explain. */
static bool is_of_collectives(const char *rule) { return !strcmp(rule, "exposed-comm") || !strcmp(rule, "small-collectives"); }

static const struct finding *find(const struct diagnosis *d, const char *rule)
{
    for (int i = 0; i < d->n_findings; i++)
        if (!strcmp(d->findings[i].rule, rule))
            return &d->findings[i];
    return NULL;
}

enum end { USUAL, LOW, HIGH };

static double gain_at(const struct finding *f, enum end end)
{
    return end == USUAL ? f->speedup : end == LOW ? f->speedup_low : f->speedup_high;
}

/* What the job wins by one rule. */
static double job_gain(const struct job *j, const char *rule, enum end end)
{
    double *saved = xcalloc((size_t)j->n, sizeof *saved), least = INFINITY;
    for (int r = 0; r < j->n; r++) {
        const struct finding *f = find(j->ranks[r], rule);
        saved[r] = f ? 1 - 1 / gain_at(f, end) : 0;
        least = fmin(least, saved[r] > 0 ? saved[r] * job_least_wait(j, r) : saved[r]);
    }
    const double speedup = is_of_collectives(rule) ? 1 / (1 - least) : job_speedup(j, saved);
    free(saved);
    return speedup;
}

/* The rank that says most of it tells where it is. */
static struct finding of_job(const struct job *j, const char *rule)
{
    struct diagnosis *d = j->ranks[0];
    int have = 0, symptoms = 0, best = -1;
    for (int r = 0; r < j->n; r++) {
        const struct finding *f = find(j->ranks[r], rule);
        have += f != NULL;
        symptoms += f && f->symptom;
        if (f && (best < 0 || f->speedup > find(j->ranks[best], rule)->speedup))
            best = r;
    }
    struct finding f = *find(j->ranks[best], rule);
    const bool all = have == j->n;
    f.symptom = 2 * symptoms > have;        /* where most ranks wait for others, the one that does not tells of no cause */
    f.where = all ? f.where : arena_printf(&d->arena, "%s: %s", j->comm[best].name, f.where);
    f.evidence = arena_printf(&d->arena, "%s; on %s of %d ranks, here %s", f.evidence, all ? "all" : arena_printf(&d->arena, "%d", have), j->n,
                              j->comm[best].name);
    const bool costs_time = f.speedup != 1 || f.speedup_low != 1 || f.speedup_high != 1;
    if (!costs_time)
        return f;
    const struct interval i = bounds_interval((struct interval){job_gain(j, rule, USUAL), job_gain(j, rule, LOW), job_gain(j, rule, HIGH)}, 0);
    f.speedup = i.usual;
    f.speedup_low = i.low;
    f.speedup_high = i.high;
    const enum severity severity = severity_of(f.speedup);
    f.severity = severity < f.severity ? severity : f.severity;         /* a cold trace has a lower one already */
    return f;
}

void job_findings(struct job *j)
{
    struct diagnosis *d = j->ranks[0];
    struct finding *all = xcalloc(MOST_FINDINGS + 1, sizeof *all);
    int n = job_straggler(j, &all[0]);
    for (int r = 0; r < j->n; r++)
        for (int i = 0; i < j->ranks[r]->n_findings && n < MOST_FINDINGS; i++) {
            const char *rule = j->ranks[r]->findings[i].rule;
            bool known = false;
            for (int k = 0; k < n; k++)
                known |= !strcmp(all[k].rule, rule);
            if (!known)
                all[n++] = of_job(j, rule);
        }
    d->findings = NULL;
    d->n_findings = d->n_phases = 0;
    for (int i = 0; i < n; i++)
        if (all[i].speedup >= 1 || all[i].after)
            finding_insert(d, all[i]);
    free(all);
}
