/* The curves of a run: losses over steps, tokens and seconds of training, over all resumes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/arena.h"
#include "runs/runs.h"

enum { VALIDATION_POINTS = 400 };

struct reading {
    struct run_curves *c;
    int64_t step, evaluated;            /* of the last log and the last evaluation */
    double tokens_each;                 /* per step, as the last log had it */
    double before_s;                    /* of parts of the run before the last resume */
    double seconds;                     /* of this part, so far */
};

static double tokens_at(const struct reading *r, int64_t step)
{
    return step > r->step && isfinite(r->tokens_each) ? r->c->tokens + round((double)(step - r->step) * r->tokens_each) : r->c->tokens;
}

/* The clock of a run begins anew with every resume. */
static void count_time(struct reading *r, double seconds)
{
    if (!isfinite(seconds) || seconds < 0)
        return;
    if (seconds < r->seconds)
        r->before_s += r->seconds;
    r->seconds = seconds;
    r->c->seconds = r->before_s + r->seconds;
}

static void take_log(struct reading *r, const struct metrics_line *l)
{
    const double each = l->tokens_per_s / l->steps_per_s;
    if (isfinite(each) && each >= 0)
        r->tokens_each = each;
    count_time(r, l->seconds);
    r->c->tokens = tokens_at(r, l->step);
    r->step = l->step;
    curve_add(&r->c->loss, (struct curve_point){.step = l->step, .tokens = r->c->tokens, .seconds = r->c->seconds, .loss = l->loss,
                                                .steps_per_s = l->steps_per_s, .tokens_per_s = l->tokens_per_s, .memory_bytes = l->memory_bytes});
}

static void take_eval(struct reading *r, const struct metrics_line *l)
{
    r->evaluated = l->step;
    if (l->loss < r->c->best_val_loss || (isfinite(l->loss) && !isfinite(r->c->best_val_loss))) {
        r->c->best_val_loss = l->loss;
        r->c->best_step = l->step;
    }
    curve_add(&r->c->validation, (struct curve_point){.step = l->step, .tokens = tokens_at(r, l->step), .seconds = r->c->seconds, .loss = l->loss,
                                                      .steps_per_s = NAN, .tokens_per_s = NAN, .memory_bytes = NAN});
}

static void take(void *context, const struct metrics_line *l)
{
    struct reading *r = context;
    if (l->kind == METRICS_LOG && l->step > r->step)
        take_log(r, l);
    else if (l->kind == METRICS_EVAL && l->step > r->evaluated)
        take_eval(r, l);
    else if (l->kind != METRICS_OTHER)
        r->c->bad_lines++;
}

enum status run_read_curves(struct run *run, int points, struct error *err)
{
    char path[CONFIG_PATH_MAX + 32];
    struct run_curves *c = run->curves = xcalloc(1, sizeof *c);
    struct reading r = {.c = c, .evaluated = -1, .tokens_each = NAN};
    c->best_val_loss = NAN;
    curve_init(&c->loss, points);
    curve_init(&c->validation, points < VALIDATION_POINTS ? points : VALIDATION_POINTS);
    snprintf(path, sizeof path, "%s/metrics.jsonl", run->folder);
    const enum status st = metrics_each(path, take, &r, &c->cut, err);
    if (st == OK && c->bad_lines && !*run->warning)
        snprintf(run->warning, sizeof run->warning, "%lld line%s of metrics.jsonl could not be read, or go%s back, and %s left out", (long long)c->bad_lines,
                 c->bad_lines == 1 ? "" : "s", c->bad_lines == 1 ? "es" : "", c->bad_lines == 1 ? "is" : "are");
    return st;
}
