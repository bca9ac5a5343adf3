/* Measures a config and makes of it what hone profile reports and hone tune decides by; see situation.h. */
#include "prove/situation.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/detect.h"
#include "analyze/profile.h"

static struct profile_input input_of(const struct measured *m, const struct situation_options *o, const char *yaml)
{
    const struct config *c = &m->config;
    const struct exec_memory *mem = &m->memory;
    return (struct profile_input){
        .program = m->program, .trace = m->trace, .peaks = *o->peaks, .threads = m->threads, .step_us = m->step_us,
        .n_steps = m->n, .batch = c->train.batch_size, .seq = c->model.seq, .accumulate = c->train.accumulate,
        .layers = c->model.layers, .model_flops = m->model_flops,
        .evaluation_us = m->evaluation_every ? m->evaluation_us / (double)m->evaluation_every : 0, .kernels = m->kernels,
        .name = c->name, .arch = config_word("model.arch", (int)c->model.arch), .device = o->device, .isa = o->isa,
        .blas = o->blas, .config_yaml = yaml, .version = HONE_VERSION, .loss = m->loss, .rss_peak_bytes = m->rss_peak_bytes,
        .available_bytes = o->available_bytes, .planned_bytes = exec_memory_bytes(mem),
        .naive_bytes = (double)(mem->parameters + mem->state + mem->inputs + mem->naive_workspace),
        .has_counters = m->has_counters, .instructions = m->instructions, .cycles = m->cycles,
        .cache_misses = m->cache_misses};
}

static enum status build_profile(struct situation *s, const struct situation_options *o, struct error *err)
{
    const struct measured *m = &s->m;
    const struct config *c = &m->config;
    char *yaml = config_text(c);
    const struct profile_input in = input_of(m, o, yaml);
    const enum status st = profile_build(&s->p, &in, err);
    free(yaml);
    if (st != OK)
        return st;
    const struct run_facts facts = {
        .eval_us_per_step = in.evaluation_us, .eval_batches = c->eval.batches, .eval_every_steps = m->evaluation_every,
        .data_wait_us = m->data_wait_us, .workers = (int)c->data.workers, .clip = c->train.clip, .threads = m->threads,
        .usable_cores = o->usable_cores, .available_bytes = o->available_bytes, .batch = c->train.batch_size};
    return detect(&s->p, m->program, &facts, err);
}

enum status situation_measure(struct situation *out, const struct config *c, const struct situation_options *options,
                              struct error *err)
{
    struct situation s = {0};
    enum status st = measure_steps(&s.m, c, options->steps, options->stop, options->progress, options->context, err);
    if (st != OK)
        return st;
    st = build_profile(&s, options, err);
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
