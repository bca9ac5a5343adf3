/* The curves of a run: losses over steps, tokens and seconds of training, over all resumes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/arena.h"
#include "core/fs.h"
#include "runs/runs.h"

enum { VALIDATION_POINTS = 400 };

static double tokens_at(const struct run_curves *c, int64_t step)
{
    return step > c->step && isfinite(c->tokens_each) ? c->tokens + round((double)(step - c->step) * c->tokens_each) : c->tokens;
}

static double rate_of(const struct metrics_line *l) { return l->overall_per_s >= 0 ? l->overall_per_s : l->steps_per_s; }

/* A run that was stopped behind its last log has made steps whose time no log has: they took what those before them did, or, where there is no log before
 * them, those of the next one. */
static double unlogged_s(const struct run_curves *c, double begin, const struct metrics_line *next)
{
    const double steps = round(begin) - (double)c->step, per_s = c->part_per_s > 0 ? c->part_per_s : rate_of(next);
    return per_s > 0 && steps > 0 ? steps / per_s : 0;
}

/* The clock of a run begins anew with every resume: it goes back, or, where the first log behind the resume was late, its steps per second say that it
 * began at a later step. */
static void count_time(struct run_curves *c, const struct metrics_line *l)
{
    if (!isfinite(l->seconds) || l->seconds < 0)
        return;
    const double begin = l->overall_per_s >= 0 ? (double)l->step - l->overall_per_s * l->seconds : NAN;
    if (l->seconds < c->part_s || begin > c->part_begin + 0.5)
        c->before_s += c->part_s + unlogged_s(c, begin, l);
    if (begin > c->part_begin)
        c->part_begin = begin;
    c->part_s = l->seconds;
    c->part_per_s = rate_of(l);
    c->seconds = c->before_s + c->part_s;
}

static void take_log(struct run_curves *c, const struct metrics_line *l)
{
    const double each = l->tokens_per_s / l->steps_per_s;
    if (isfinite(each) && each >= 0)
        c->tokens_each = each;
    count_time(c, l);
    c->tokens = tokens_at(c, l->step);
    c->step = l->step;
    curve_add(&c->loss, (struct curve_point){.step = l->step, .tokens = c->tokens, .seconds = c->seconds, .loss = l->loss,
                                             .steps_per_s = l->steps_per_s, .tokens_per_s = l->tokens_per_s, .memory_bytes = l->memory_bytes});
}

static void take_eval(struct run_curves *c, const struct metrics_line *l)
{
    c->evaluated = l->step;
    if (l->loss < c->best_val_loss || (isfinite(l->loss) && !isfinite(c->best_val_loss))) {
        c->best_val_loss = l->loss;
        c->best_step = l->step;
    }
    curve_add(&c->validation, (struct curve_point){.step = l->step, .tokens = tokens_at(c, l->step), .seconds = c->seconds, .loss = l->loss,
                                                   .steps_per_s = NAN, .tokens_per_s = NAN, .memory_bytes = NAN});
}

void run_curves_init(struct run_curves *c, int points)
{
    *c = (struct run_curves){.evaluated = -1, .tokens_each = NAN, .best_val_loss = NAN, .part_per_s = NAN};
    curve_init(&c->loss, points);
    curve_init(&c->validation, points < VALIDATION_POINTS ? points : VALIDATION_POINTS);
}

void run_curves_release(struct run_curves *c)
{
    curve_release(&c->loss);
    curve_release(&c->validation);
}

void run_curves_add(struct run_curves *c, const struct metrics_line *l)
{
    if (l->kind == METRICS_LOG && l->step > c->step)
        take_log(c, l);
    else if (l->kind == METRICS_EVAL && l->step > c->evaluated)
        take_eval(c, l);
    else if (l->kind != METRICS_OTHER)
        c->bad_lines++;
}

static void add_line(void *context, const struct metrics_line *l) { run_curves_add(context, l); }

/* run.json knows its own process alone: of a run that was resumed the logs of all of them say how fast it was. */
static void take_speed(struct run *run, const struct run_curves *c)
{
    if (run->state == RUN_RUNNING || !(c->before_s > 0) || !(c->tokens_each > 0))
        return;
    run->tokens_per_s = c->tokens / c->seconds;
    run->steps_per_s = run->tokens_per_s / c->tokens_each;
}

enum status run_read_curves(struct run *run, int points, struct error *err)
{
    char path[CONFIG_PATH_MAX + 32];
    struct run_curves *c = run->curves = xcalloc(1, sizeof *c);
    run_curves_init(c, points);
    snprintf(path, sizeof path, "%s/metrics.jsonl", run->folder);
    const enum status st = fs_exists(path) ? metrics_each(path, add_line, c, &c->cut, err) : OK;
    if (st == OK)
        take_speed(run, c);
    if (st == OK && c->bad_lines && !*run->warning)
        snprintf(run->warning, sizeof run->warning, "%lld line%s of metrics.jsonl could not be read, or go%s back, and %s left out", (long long)c->bad_lines,
                 c->bad_lines == 1 ? "" : "s", c->bad_lines == 1 ? "es" : "", c->bad_lines == 1 ? "is" : "are");
    return st;
}
