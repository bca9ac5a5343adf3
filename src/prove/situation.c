/* Measures a config and makes of it what hone profile reports and hone tune decides by; see situation.h. */
#include "prove/situation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/detect.h"
#include "analyze/profile.h"
#include "core/setup.h"
#include "prove/moves.h"

/* Per training step, with rows as they were measured; 0: none, or not known. */
static double evaluation_us(const struct measured *m) { return isfinite(m->evaluation_us) ? m->evaluation_us * evaluations_per_step(m->evaluations) : 0; }

static struct profile_input input_of(const struct measured *m, const struct situation_options *o, const char *yaml)
{
    const struct config *c = &m->config;
    const struct exec_memory *mem = &m->memory;
    return (struct profile_input){
        .program = m->program, .trace = m->trace, .peaks = *o->peaks, .threads = m->threads, .usable_cores = o->usable_cores, .step_us = m->step_us,
        .wait_us = m->wait_us, .upload_us = m->upload_us, .pace = m->pace, .delayed_share = m->delayed_share, .preemptions_per_s = m->preemptions_per_s, .n_steps = m->n, .batch = c->train.batch_size, .seq = c->model.seq, .accumulate = c->train.accumulate,
        .layers = c->model.layers, .model_flops = m->model_flops,
        .evaluation_us = evaluation_us(m), .kernels = m->kernels,
        .gpu = m->device_name != NULL, .device_name = m->device_name, .timed_by = m->timed_by, .times_kernels = m->times_kernels,
        .kernels_per_step = m->kernels_per_step, .occupancy = m->occupancy, .watch = m->gpu,
        .name = c->name, .arch = config_word("model.arch", (int)c->model.arch), .device = o->device, .isa = o->isa,
        .blas = o->blas, .config_yaml = yaml, .version = HONE_VERSION, .loss = m->loss, .padding_share = m->padding_share, .tokens_per_step = m->tokens_per_step, .rss_peak_bytes = m->rss_peak_bytes,
        .available_bytes = o->available_bytes, .planned_bytes = exec_memory_bytes(mem), .scratch_bytes = (double)mem->scratch,
        .naive_bytes = (double)(mem->parameters + mem->state + mem->inputs + mem->naive_workspace + mem->scratch),
        .has_counters = m->has_counters, .instructions = m->instructions, .cycles = m->cycles,
        .cache_misses = m->cache_misses};
}

/* For free(). */
static struct profile_rank *ranks_of_profile(const struct measured *m)
{
    struct profile_rank *list = xcalloc((size_t)m->n_ranks + 1, sizeof *list);
    for (int r = 0; r < m->n_ranks; r++) {
        const struct measured_rank *k = &m->ranks[r];
        list[r] = (struct profile_rank){.host = k->host, .step_us = k->step_us, .compute_us = k->compute_us, .loader_us = k->loader_us,
                                        .exposed_us = k->exposed_us, .wait_us = k->wait_us, .sums_us = k->sums_us, .hidden_share = k->hidden_share,
                                        .memory_bytes = k->memory_bytes, .delayed_share = k->delayed_share};
    }
    return list;
}

static enum status build_profile(struct situation *s, const struct situation_options *o, const struct peaks *peaks, struct error *err)
{
    char *yaml = config_text(&s->m.config);
    struct profile_input in = input_of(&s->m, o, yaml);
    struct profile_rank *ranks = ranks_of_profile(&s->m);
    in.peaks = *peaks;
    in.ranks = ranks;
    in.n_ranks = s->m.n_ranks;
    const enum status st = profile_build(&s->p, &in, err);
    free(ranks);
    free(yaml);
    return st;
}

/* A step that beats the peaks proves them wrong: they are measured again, right behind it, and the best is kept. What the step showed
 * is proof, too, where measuring does not find it again. */
static enum status judge_by_peaks(struct situation *s, const struct situation_options *o, struct error *err)
{
    s->peaks = *o->peaks;
    enum status st = build_profile(s, o, &s->peaks, err);
    if (st != OK)
        return st;
    struct peaks reached = s->peaks;
    const bool beaten = profile_raise_peaks(&s->p, s->m.program, &reached);
    const bool stopped = o->stop && *o->stop;           /* then only what would be wrong without is measured */
    if ((!beaten && (!o->peaks_are_new || stopped)) || !o->measure_peaks)
        return OK;
    o->measure_peaks(o->peaks_context, &s->peaks);
    profile_release(&s->p);
    st = build_profile(s, o, &s->peaks, err);
    if (st == OK)
        profile_raise_peaks(&s->p, s->m.program, &s->peaks);
    return st;
}

/* ---- what passes that are off would do ---- */

static struct remedy remedy_of(struct situation *s, const struct pass *pass, const struct pass_prediction *p)
{
    struct arena *a = &s->p.arena;
    const bool bf16 = pass->traits & PASS_IS_PRECISION;
    return (struct remedy){
        .pass = pass->name, .rule = pass->answers, .what = pass->what, .places = p->places, .speedup = p->speedup,
        .speedup_high = p->speedup_high, .saved_bytes = p->saved_bytes,
        .change = arena_printf(a, "--set %s=%s", pass->key, bf16 ? config_word(pass->key, (int)p->next.optimize.precision) : "on"),
        .ops = arena_copy(a, p->ops, (size_t)s->m.program->n_ops * sizeof *p->ops)};
}

/* Whoever stops the measuring gets a report of the steps that there are, with all that they say. */
static enum status ask_passes(struct situation *s, const struct situation_options *o, struct remedy list[PASSES_MAX], int *n,
                              struct error *err)
{
    enum status st = OK;
    *n = 0;
    setup_insist(true);
    for (int i = 0; o->ask_passes && pass_table[i].name && st == OK; i++) {
        struct pass_prediction p;
        st = predict_pass(&p, s, i, err);
        if (st == OK && p.places)
            list[(*n)++] = remedy_of(s, &pass_table[i], &p);
        if (st == OK)
            pass_prediction_release(&p);
    }
    setup_insist(false);
    return st;
}

enum status situation_judge(struct situation *s, const struct situation_options *o, struct error *err)
{
    const struct measured *m = &s->m;
    const struct config *c = &m->config;
    struct remedy remedies[PASSES_MAX];
    int n;
    const enum status st = ask_passes(s, o, remedies, &n, err);
    if (st != OK)
        return st;
    const struct run_facts facts = {
        .eval_us_per_step = evaluation_us(m), .eval_scale = m->evaluation_scale, .eval_batches = c->eval.batches,
        .eval_every_steps = m->evaluations.every, .stage_steps = m->evaluations.stage, .run_steps = isfinite(m->evaluation_us) ? m->total_steps : 0, .by_epochs = c->train.epochs > 0, .data_wait_us = m->data_wait_us, .workers = (int)c->data.workers,
        .clip = c->train.clip, .left_out = !isfinite(m->loss) || !isfinite(m->norm), .threads = m->threads, .usable_cores = o->usable_cores, .available_bytes = o->available_bytes,
        .batch = c->train.batch_size, .padding = m->padding.now,
        .padding_least = m->padding.least, .padding_packed = m->padding.packed, .padding_rows = m->padding.rows, .packs = c->data.pack == PACK_ON, .bucket = m->padding.bucket, .group = m->padding.group, .replayed = m->program->captured, .remedies = remedies, .n_remedies = n};
    return detect(&s->p, m->program, &facts, err);
}

enum status situation_measure(struct situation *out, const struct config *c, const struct situation_options *options,
                              struct error *err)
{
    struct situation s = {0};
    enum status st = (options->last ? measure_steps_traced : measure_steps)(&s.m, c, options->steps, options->stop, options->progress,
                                                                            options->context, err);
    if (st != OK)
        return st;
    st = judge_by_peaks(&s, options, err);
    if (st == OK)
        st = situation_judge(&s, options, err);
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
