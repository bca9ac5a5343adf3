/* Hand-made profiles: a program, a time per op, gaps, and what detect says about them. */
#ifndef HONE_TESTS_PROFILED_H
#define HONE_TESTS_PROFILED_H

#include <stdbool.h>
#include <stdlib.h>

#include "analyze/detect.h"
#include "support/check.h"

static const struct op_attrs NONE;

struct profiled {
    struct program *program;
    struct profile profile;
    struct run_facts facts;
};

/* Times are 0 until set. 1 GFLOP/s and 1 GB/s: 1000 FLOPs or 1000 bytes take 1 µs. */
static inline struct profiled profiled_new(struct program *program)
{
    struct profiled x = {.program = program, .facts = {.clip = 1, .batch = 1}};
    struct profile *p = &x.profile;
    p->n_ops = program->n_ops;
    p->ops = arena_alloc(&p->arena, (size_t)p->n_ops * sizeof *p->ops);
    p->peak_op = -1;
    p->peaks = (struct peaks){.threads = 1, .gflops[NUMBERS_F32] = 1, .copy_gb_per_s = {[CACHE_LEVELS - 1] = 1}};
    for (int i = 0; i < p->n_ops; i++)
        p->ops[i].name = program->values[program->ops[i].out[0]].name;
    return x;
}

static inline void profiled_release(struct profiled *x)
{
    arena_release(&x->profile.arena);
    program_free(x->program);
}

static inline void add_gap(struct profiled *x, const char *name, double us)
{
    x->profile.gaps[x->profile.n_gaps++] = (struct profile_part){name, us};
}

/* Gives every op of a kind the same time. */
static inline void set_us(struct profiled *x, enum op_kind kind, double us)
{
    for (int i = 0; i < x->program->n_ops; i++)
        if (x->program->ops[i].kind == kind)
            x->profile.ops[i].self_us = us;
}

/* The step is what ops and gaps add up to. */
static inline void add_up(struct profiled *x)
{
    struct profile *p = &x->profile;
    p->step_us = 0;
    for (int i = 0; i < p->n_ops; i++)
        p->step_us += p->ops[i].self_us;
    for (int i = 0; i < p->n_gaps; i++)
        p->step_us += p->gaps[i].us;
}

/* More fixes may win as much as fewer do. */
static inline void run_detect(struct profiled *x)
{
    struct error err;
    assert_ok(detect(&x->profile, x->program, &x->facts, &err), err);
    for (int i = 1; i < x->profile.n_phases; i++)
        assert_true(x->profile.phases[i].high >= x->profile.phases[i - 1].high - 1e-9);
}

/* NULL when the rule found nothing. */
static inline const struct finding *find(const struct profiled *x, const char *rule)
{
    for (int i = 0; i < x->profile.n_findings; i++)
        if (!strcmp(x->profile.findings[i].rule, rule))
            return &x->profile.findings[i];
    return NULL;
}

/* The finding is there, with these gains and this share; numbers of a step that the test has worked out. */
static inline const struct finding *assert_finding(const struct profiled *x, const char *rule, double share, double low,
                                                   double speedup, double high)
{
    const struct finding *f = find(x, rule);
    if (!f)
        fail_msg("%s was not found", rule);
    assert_near(f->share, share, 1e-9, "share");
    assert_near(f->speedup_low, low, 1e-9, "speedup_low");
    assert_near(f->speedup, speedup, 1e-9, "speedup");
    assert_near(f->speedup_high, high, 1e-9, "speedup_high");
    assert_int_equal(f->severity, severity_of(f->speedup));
    return f;
}

static inline void assert_text(const char *text, const char *words)
{
    if (!text || !strstr(text, words))
        fail_msg("'%s' does not say '%s'", text ? text : "(null)", words);
}

#endif
