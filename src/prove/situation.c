/* A config, measured: steps, profile, findings. */
#include <string.h>

#include "analyze/detect.h"
#include "analyze/profile.h"
#include "prove/moves.h"

static enum status build_profile(struct situation *s, const struct peaks *peaks, struct error *err)
{
    const struct measured *m = &s->m;
    const struct config *c = &m->config;
    const struct exec_memory *mem = &m->memory;
    const struct profile_input in = {
        .program = m->program, .trace = m->trace, .peaks = *peaks, .threads = m->threads, .step_us = m->step_us, .n_steps = m->n,
        .batch = c->train.batch_size, .seq = c->model.seq, .accumulate = c->train.accumulate, .layers = c->model.layers,
        .model_flops = m->model_flops, .kernels = m->kernels, .name = c->name,
        .evaluation_us = m->evaluation_every ? m->evaluation_us / (double)m->evaluation_every : 0,
        .planned_bytes = (double)(mem->parameters + mem->state + mem->inputs + mem->workspace + mem->scratch)};
    const enum status st = profile_build(&s->p, &in, err);
    if (st != OK)
        return st;
    const struct run_facts facts = {
        .eval_us_per_step = in.evaluation_us, .eval_batches = c->eval.batches, .eval_every_steps = m->evaluation_every,
        .data_wait_us = m->data_wait_us, .workers = (int)c->data.workers, .clip = c->train.clip, .threads = m->threads,
        .batch = c->train.batch_size};
    return detect(&s->p, m->program, &facts, err);
}

enum status situation_measure(struct situation *out, const struct config *c, int steps, const struct peaks *peaks,
                              const volatile sig_atomic_t *stop, struct error *err)
{
    struct situation s = {0};
    enum status st = measure_steps(&s.m, c, steps, stop, NULL, NULL, err);
    if (st != OK)
        return st;
    st = build_profile(&s, peaks, err);
    if (st == OK)
        *out = s;
    else
        situation_release(&s);
    return st;
}

void situation_release(struct situation *s)
{
    profile_release(&s->p);
    measured_release(&s->m);
}

const struct finding *situation_finding(const struct situation *s, const char *rule)
{
    for (int i = 0; i < s->p.n_findings; i++)
        if (!strcmp(s->p.findings[i].rule, rule))
            return &s->p.findings[i];
    return NULL;
}
