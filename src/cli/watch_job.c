/* Diagnoses a watched program; see watch_job.h. */
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/watch_job.h"
#include "ops/cpu/cpu.h"
#include "report/report.h"

/* ---- the diagnosis ---- */

struct recordings {
    const char **paths;         /* (n) */
    int *ranks;                 /* (n) */
    double *step_us;            /* (n) usual, undisturbed */
    int n;
};

/* Of the ranks that have this kind of recording. */
static struct recordings list_recordings(struct watch_job *j, const char *folder, bool stacks)
{
    const struct watched *w = &j->watched;
    struct recordings r = {.paths = arena_alloc(&j->arena, (size_t)(w->n + 1) * sizeof *r.paths),
                           .ranks = arena_alloc(&j->arena, (size_t)(w->n + 1) * sizeof *r.ranks),
                           .step_us = arena_alloc(&j->arena, (size_t)(w->n + 1) * sizeof *r.step_us)};
    for (int i = 0; i < w->n; i++) {
        const struct watched_rank *rank = &w->ranks[i];
        if (!(stacks ? rank->stacks.steps : rank->shapes.steps))
            continue;
        r.paths[r.n] = arena_printf(&j->arena, "%s/rank%d/%s", folder, rank->rank, stacks ? WATCH_STACKS : WATCH_SHAPES);
        r.ranks[r.n] = rank->rank;
        r.step_us[r.n++] = rank->undisturbed.usual_us > 0 ? rank->undisturbed.usual_us : rank->undisturbed.step_us;
    }
    return r;
}

/* As hone has measured it on this machine before: beside the program nothing is measured. Ranks of one machine share it. */
static struct cpu_reach cpu_reach(int ranks)
{
    struct cpu_machine m;
    struct peaks p;
    cpu_hardware_read(&m);
    if (!peaks_recall_hardware(&p, m.hardware, m.usable))
        return (struct cpu_reach){0};
    const double share = 1.0 / (ranks > 1 ? ranks : 1);
    return (struct cpu_reach){.f32_tflops = share * p.gflops[NUMBERS_F32] / 1e3, .bf16_tflops = share * p.gflops[NUMBERS_BF16] / 1e3,
                              .gbps = share * p.copy_gb_per_s[CACHE_LEVELS - 1]};
}

static enum status diagnose_recordings(struct trace_job *to, const struct watched_rank *first, const struct recordings *r, struct error *err)
{
    const struct diagnose_options o = {.ranks = r->ranks, .rank_step_us = r->step_us, .cpu = cpu_reach(first->ranks_here),
                                       .on_cpu = first->device && !strcmp(first->device, "cpu")};
    return trace_job_show(to, r->paths, r->n, &o, err);
}

/* Lines are good to have; without them the diagnosis stands. */
static void add_lines(struct watch_job *j, const char *recording)
{
    struct error err;
    const struct recordings r = list_recordings(j, recording, true);
    if (!r.n)
        return;
    if (diagnose_recordings(&j->stacks, j->watched.ranks, &r, &err) == OK)
        diagnosis_take_places(&j->shapes.diagnosis, &j->stacks.diagnosis);
    else
        fprintf(stderr, "hone: warning: no lines of Python: %s\n", err.text);
}

enum status watch_job_make(struct watch_job *j, const char *recording, const char *command, struct error *err)
{
    enum status st = watched_read(&j->watched, &j->arena, recording, err);
    if (st != OK)
        return st;
    const struct recordings r = list_recordings(j, recording, false);
    j->watched.command = command;
    if (!r.n)
        return error_set(err, BAD_INPUT, "nothing was recorded in '%s'", recording);
    st = diagnose_recordings(&j->shapes, j->watched.ranks, &r, err);
    if (st != OK)
        return st;
    j->shapes.diagnosis.name = command;
    j->shapes.diagnosis.watched = &j->watched;
    add_lines(j, recording);
    watched_take_measured(&j->shapes.diagnosis, &j->watched);
    trace_job_print_warnings(&j->shapes);
    j->made = true;
    return OK;
}

void watch_job_release(struct watch_job *j)
{
    trace_job_release(&j->shapes);
    trace_job_release(&j->stacks);
    watched_release(&j->watched);
    arena_release(&j->arena);
    *j = (struct watch_job){0};
}

/* ---- the report ---- */

static enum status write_files(const void *what, const char *folder, struct error *err)
{
    return report_trace_write(what, folder, err);
}

enum status watch_job_publish(struct watch_job *j, const char *folder, struct error *err)
{
    const enum status st = report_folder_publish(folder, REPORT_WATCH, write_files, &j->shapes.diagnosis, err);
    j->published = st == OK;
    return st;
}

/* ---- nothing to diagnose ---- */

static bool is_word(const json_t *trial, const char *key, const char *word)
{
    const char *is = json_string_value(json_object_get(trial, key));
    return is && !strcmp(is, word);
}

/* Else it had come to its end, or been given up. */
static bool trial_was_cut(const json_t *trial) { return is_word(trial, "status", "running") || is_word(trial, "why", "the program ended"); }

static enum status too_few_steps(const struct watched *w, int64_t needed, struct error *err)
{
    const struct watched_rank *r = &w->ranks[0];
    if (*r->failure)
        return error_set(err, BAD_INPUT, "watching ended after %lld steps, before anything was recorded: %s", (long long)r->steps, r->failure);
    if (w->trial && trial_was_cut(w->trial) && r->steps >= needed)
        return error_set(err, BAD_INPUT, "the program ended after %s%lld steps, in the middle of the trial: --try takes seconds of steps for each switch; let the program take more, or "
                         "give fewer with --switches", r->ended ? "" : "at least ", (long long)r->steps);
    if (w->trial && r->steps >= needed)
        return error_set(err, BAD_INPUT, "the program ended after %s%lld steps, before anything was recorded: some more are needed behind the trial; let it take them", r->ended ? "" :
                         "at least ", (long long)r->steps);
    if (r->steps >= needed)
        return error_set(err, BAD_INPUT, "the program ended after %s%lld steps, before anything was recorded: its optimizers are called in no order, so it was long not known what a "
                         "step is; let it take more, or name the function: --step-call MODULE:FUNCTION", r->ended ? "" : "at least ", (long long)r->steps);
    return error_set(err, BAD_INPUT, "the program ended after %s%lld step%s, before anything was recorded: %lld are needed; let it take more, or give a "
                     "smaller --warmup or --steps", r->ended ? "" : "at least ", (long long)r->steps, r->steps == 1 ? "" : "s", (long long)needed);
}

static enum status no_step(const char *step_call, struct error *err)
{
    if (step_call)
        return error_set(err, BAD_INPUT, "torch was imported, but '%s' was never called; --step-call takes MODULE:FUNCTION, with __main__ for the script "
                         "itself", step_call);
    return error_set(err, BAD_INPUT, "torch was imported, but no optimizer of torch took a step; where steps are taken by something else, name the "
                     "function: --step-call MODULE:FUNCTION");
}

enum status watch_job_nothing(const char *recording, const char *command, int64_t needed, const char *step_call, struct error *err)
{
    struct arena a = {0};
    struct watched w;
    enum status st = watched_read(&w, &a, recording, err);
    if (st != OK)
        return st;
    const enum watched_reach reach = watched_reach(recording);
    if (w.n) {
        watched_end_trial(&w);
        report_trial_print_terminal(&w, stderr, stream_has_color(stderr));
        st = too_few_steps(&w, needed, err);
    } else if (reach == REACHED_STEP)
        st = error_set(err, BAD_INPUT, "the program was killed before its first %lld steps were measured", (long long)needed);
    else if (reach == REACHED_TORCH)
        st = no_step(step_call, err);
    else if (reach == REACHED_PYTHON)
        st = error_set(err, BAD_INPUT, "the program ended without importing torch");
    else
        st = error_set(err, BAD_INPUT, "'%.200s' started no Python that can be watched: it takes a program that runs Python, without -I, -E or -S, and "
                       "that leaves PYTHONPATH as it is", command);
    watched_release(&w);
    arena_release(&a);
    return st;
}
