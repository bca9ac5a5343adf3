/* Runs every rule over a profile, ranks what they find, and has the words written. */
#include "analyze/detect.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/rules.h"

static int rule_count(void)
{
    int n = 0;
    while (rule_table[n].id)
        n++;
    return n;
}

static struct claim new_claim(const struct scene *s, const struct remedy *remedy)
{
    return (struct claim){.base_us = s->step_us, .first_op = -1, .remedy = remedy};
}

static int keep(struct claim *claims, int n, struct claim *c, bool there, const char *rule)
{
    if (there && !c->remedy)
        claim_settle(c, rule);
    if (there)
        claims[n] = *c;
    else
        free(c->ops);
    return n + there;
}

/* A rule that passes answer is asked once for each that would do something, so that every finding names one fix; else once. */
static int run_rule(struct scene *s, const struct rule *r, struct claim *claims, int n)
{
    bool answered = false;
    for (int i = 0; i < s->facts.n_remedies; i++) {
        const struct remedy *remedy = &s->facts.remedies[i];
        if (strcmp(remedy->rule, r->id) || !remedy_does_something(s, remedy))
            continue;
        struct claim c = new_claim(s, remedy);
        const bool fired = r->detect(s, &c);
        n = keep(claims, n, &c, remedy_claim(s, &c, fired), r->id);
        answered = true;
    }
    if (answered)
        return n;
    struct claim c = new_claim(s, NULL);
    return keep(claims, n, &c, r->detect(s, &c), r->id);
}

static bool has_rule(const char *id)
{
    for (const struct rule *r = rule_table; r->id; r++)
        if (!strcmp(r->id, id))
            return true;
    return false;
}

static int run_rules(struct scene *s, struct claim *claims)
{
    int n = 0;
    for (const struct rule *r = rule_table; r->id; r++)
        n = run_rule(s, r, claims, n);
    for (int i = 0; i < s->facts.n_remedies; i++) {         /* faults that only the pass itself recognises */
        const struct remedy *remedy = &s->facts.remedies[i];
        if (has_rule(remedy->rule) || !remedy_does_something(s, remedy))
            continue;
        struct claim c = new_claim(s, remedy);
        n = keep(claims, n, &c, remedy_claim(s, &c, false), remedy->rule);
    }
    return n;
}

/* The largest finding that takes part in an op's time is what one would do about it. */
static void set_targets(struct profile *p, const struct claim *claims, int n)
{
    for (int i = 0; i < p->n_ops; i++)
        p->ops[i].target = NULL;
    for (int k = 0; k < n; k++)
        for (int i = 0; claims[k].ops && i < p->n_ops; i++)
            if (claims[k].ops[i] && !p->ops[i].target)
                p->ops[i].target = claims[k].finding.rule;
}

/* Of a run with so many steps, more samples in each save nothing. */
static double saved_s(const struct scene *s, const struct claim *c)
{
    if (c->finding.per_sample && !s->facts.by_epochs)
        return 0;
    return (double)s->p->run.steps * s->rows_scale * c->base_us * (1 - 1 / c->finding.speedup) * 1e-6;
}

static void store(const struct scene *s, const struct claim *claims, int n)
{
    struct profile *p = s->p;
    p->findings = arena_alloc(&p->arena, (size_t)n * sizeof *p->findings);
    p->n_findings = n;
    for (int i = 0; i < n; i++) {
        p->findings[i] = claims[i].finding;
        p->findings[i].saves_s = saved_s(s, &claims[i]);
    }
}

double run_seconds(int64_t steps, double step_us, double evaluation_us) { return (double)steps * (step_us + evaluation_us) * 1e-6; }

/* As long as these steps lasted, with what they wait for data on the mean, and with evaluation as often as it comes; where rows of the run are
 * shorter than those that were measured, by as many tokens less, of training and of evaluation. */
static void fill_run(struct profile *p, const struct scene *s)
{
    const double evaluation_us = s->rows_scale * s->eval_us;
    p->run.steps = s->facts.run_steps;
    p->run.rows_scale = s->rows_scale;
    p->run.evaluation_scale = s->facts.eval_scale;
    p->run.evaluation_s = run_seconds(p->run.steps, 0, evaluation_us);
    p->run.seconds = run_seconds(p->run.steps, s->rows_scale * s->step_us, evaluation_us);
}

enum status detect(struct profile *p, const struct program *program, const struct run_facts *facts, struct error *err)
{
    if (p->n_ops != program->n_ops)
        return error_set(err, BAD_INPUT, "the profile has %d ops and program %s has %d; they must be of one program",
                         p->n_ops, program->name, program->n_ops);
    struct scene s;
    scene_init(&s, p, program, facts);
    struct claim *claims = xcalloc((size_t)(rule_count() + s.facts.n_remedies), sizeof *claims);
    const int n = run_rules(&s, claims);
    claims_rank(claims, n);
    fill_run(p, &s);
    store(&s, claims, n);
    set_targets(p, claims, n);
    words_fill(&s, claims, n);
    for (int i = 0; i < n; i++)
        free(claims[i].ops);
    free(claims);
    return OK;
}
