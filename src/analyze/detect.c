/* Runs every rule over a profile, ranks what they find, and has the words written. */
#include "analyze/detect.h"

#include <stdlib.h>

#include "analyze/rules.h"

static int rule_count(void)
{
    int n = 0;
    while (rule_table[n].id)
        n++;
    return n;
}

static int run_rules(struct scene *s, struct claim *claims)
{
    int n = 0;
    for (const struct rule *r = rule_table; r->id; r++) {
        struct claim c = {.base_us = s->step_us, .first_op = -1};
        if (r->detect(s, &c)) {
            claim_settle(&c, r->id);
            claims[n++] = c;
        } else {
            free(c.ops);
        }
    }
    return n;
}

static void store(struct profile *p, const struct claim *claims, int n)
{
    p->findings = arena_alloc(&p->arena, (size_t)n * sizeof *p->findings);
    p->n_findings = n;
    for (int i = 0; i < n; i++)
        p->findings[i] = claims[i].finding;
}

enum status detect(struct profile *p, const struct program *program, const struct run_facts *facts, struct error *err)
{
    if (p->n_ops != program->n_ops)
        return error_set(err, BAD_INPUT, "the profile has %d ops and program %s has %d; they must be of one program",
                         p->n_ops, program->name, program->n_ops);
    struct scene s;
    scene_init(&s, p, program, facts);
    struct claim *claims = xcalloc((size_t)rule_count(), sizeof *claims);
    const int n = run_rules(&s, claims);
    claims_rank(claims, n);
    store(p, claims, n);
    words_fill(&s, claims, n);
    for (int i = 0; i < n; i++)
        free(claims[i].ops);
    free(claims);
    return OK;
}
