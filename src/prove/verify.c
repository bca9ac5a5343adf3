/* Two configs side by side: collects the evidence, then has the gates judge it. At most two runs are in memory at a time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/delay.h"
#include "core/team.h"
#include "prove/prove_int.h"

/* Where in the whole each part ends, for the progress. */
static const double GRADIENTS_END = 0.05, A_END = 0.25, B_END = 0.4, TURNS_END = 0.85;

/* Progress of one part as progress of the whole. */
struct part {
    const struct verify_options *options;
    double from, to;
};

static void tell(const struct part *p, const char *what, double done)
{
    if (p->options->progress)
        p->options->progress(p->options->context, what, p->from + (p->to - p->from) * done);
}

static void tell_turns(void *context, const char *what, double done) { tell(context, what, done); }

static enum status train(struct trial *t, double *losses, int64_t steps, const struct part *part, const char *what,
                         struct error *err)
{
    enum status st = OK;
    for (int64_t i = 0; i < steps && st == OK; i++) {
        struct trial_step s;
        if (part->options->stop && *part->options->stop)
            return error_stopped(err, "stopped before the loss curves were compared");
        tell(part, what, (double)i / (double)steps);
        st = trial_step(t, &s, err);
        losses[i] = s.loss;
    }
    return st;
}

static void fill_facts(struct evidence_side *s, struct trial *t, int64_t steps, const struct peaks *peaks)
{
    s->losses = xcalloc((size_t)steps, sizeof *s->losses);
    s->planned_bytes = trial_planned_bytes(t);
    s->ops = trial_ops_per_step(t);
    s->kernels = trial_kernels_per_step(t);
    s->tokens_per_step = trial_tokens_per_step(t);
    s->model_flops = trial_model_flops(t);
    if (peaks)
        s->peak = program_peak(trial_program(t), peaks);
}

/* The loss curve, what it leads to on the validation data, and the weights it ends with. */
static enum status run_side(struct evidence_side *s, struct trial *t, int64_t steps, const struct part *part, const char *what,
                            struct error *err)
{
    enum status st = train(t, s->losses, steps, part, what, err);
    if (st == OK)
        st = trial_validate(t, part->options->stop, &s->has_validation, &s->validation, err);
    if (st == OK)
        s->fingerprint = trial_fingerprint(t);
    return st;
}

static enum status compare_runs(struct evidence *e, struct trial *a, struct trial *b, const struct verify_options *o, struct error *err)
{
    fill_facts(&e->a, a, e->steps, o->peaks);
    fill_facts(&e->b, b, e->steps, o->peaks);
    enum status st = comparable_programs(trial_program(a), trial_program(b), err);
    tell(&(struct part){o, 0, GRADIENTS_END}, "first gradients", 0);
    if (st == OK)
        st = gradients_compare(e, a, b, err);
    if (st == OK)
        st = run_side(&e->a, a, e->steps, &(struct part){o, GRADIENTS_END, A_END}, "loss curve of a", err);
    if (st == OK)
        st = run_side(&e->b, b, e->steps, &(struct part){o, A_END, B_END}, "loss curve of b", err);
    return st;
}

static enum status measure_speed(struct evidence *e, struct trial *open[2], const struct config *a, const struct config *b, double seconds,
                                 const struct verify_options *o, struct error *err)
{
    struct part turns = {o, B_END, TURNS_END};
    struct verify_options inner = *o;
    inner.progress = tell_turns;
    inner.context = &turns;
    return openings_measure(e, open, a, b, seconds, &inner, err);
}

/* b from the start once more. */
static enum status run_again(struct evidence *e, const struct config *b, const struct verify_options *o, struct error *err)
{
    struct trial *t = NULL;
    e->again = xcalloc((size_t)e->steps, sizeof *e->again);
    enum status st = trial_open(&t, b, o->change, o->change_context, err);
    if (st == OK)
        st = train(t, e->again, e->steps, &(struct part){o, TURNS_END, 1}, "b once more", err);
    if (st == OK)
        e->again_fingerprint = trial_fingerprint(t);
    trial_free(t);
    return st;
}

static enum status collect(struct evidence *e, const struct config *a, const struct config *b, double seconds,
                           const struct verify_options *o, struct error *err)
{
    struct trial *open[2] = {NULL};
    team_share(true);                       /* or cores that are nearer to each other make one of two programs faster */
    enum status st = trial_open(&open[0], a, NULL, NULL, err);
    if (st == OK)
        st = trial_open(&open[1], b, o->change, o->change_context, err);
    if (st == OK)
        st = compare_runs(e, open[0], open[1], o, err);
    if (st == OK)
        st = measure_speed(e, open, a, b, seconds, o, err);
    trial_free(open[0]);
    trial_free(open[1]);
    team_share(false);
    return st == OK ? run_again(e, b, o, err) : st;
}

static void release(struct evidence *e)
{
    free(e->a.losses);
    free(e->b.losses);
    free(e->a.turn_us);
    free(e->b.turn_us);
    free(e->a.turn_delay);
    free(e->b.turn_delay);
    free(e->opening);
    free(e->again);
}

/* All three runs; those of b are compared by a gate, too. */
static bool same_bits(const struct evidence *e)
{
    const size_t bytes = (size_t)e->steps * sizeof *e->again;
    return !memcmp(e->a.losses, e->b.losses, bytes) && !memcmp(e->b.losses, e->again, bytes) &&
           e->a.fingerprint == e->b.fingerprint && e->b.fingerprint == e->again_fingerprint;
}

static struct verdict_side side_of(const struct evidence_side *s, double step_us)
{
    return (struct verdict_side){.step_us = step_us, .tokens_per_step = s->tokens_per_step, .model_flops = s->model_flops,
                                 .planned_bytes = s->planned_bytes, .ops = s->ops, .kernels = s->kernels, .peak = s->peak};
}

/* Both sides are held against one peak where they multiply the same numbers, raised to what either of them reached. */
static void raise_peaks(struct verdict_side *a, struct verdict_side *b)
{
    products_peak_raise(&a->peak, a->model_flops, a->step_us);
    products_peak_raise(&b->peak, b->model_flops, b->step_us);
    if (a->peak.numbers == b->peak.numbers)
        a->peak.gflops = b->peak.gflops = a->peak.gflops > b->peak.gflops ? a->peak.gflops : b->peak.gflops;
}

enum status verify_configs(struct verdict *out, const struct config *a, const struct config *b,
                           const struct verify_options *options, struct error *err)
{
    struct evidence e = {.limits = a, .steps = options->steps ? options->steps : a->verify.steps};
    e.bf16 = a->optimize.precision != PRECISION_F32 || b->optimize.precision != PRECISION_F32;
    struct config other = *b;
    other.eval = a->eval;                   /* the same validation batches for both */
    enum status st = comparable_configs(a, b, err);
    if (st == OK)
        st = collect(&e, a, &other, options->seconds > 0 ? options->seconds : a->verify.seconds, options, err);
    if (st == OK) {
        const struct speed s = speed_of(&e);
        *out = (struct verdict){.pass = true, .same_bits = same_bits(&e), .longer = e.longer, .delayed_share = s.delayed, .disturbed = s.disturbed,
                                .of_a = side_of(&e.a, s.ratio.a), .of_b = side_of(&e.b, s.ratio.b)};
        raise_peaks(&out->of_a, &out->of_b);
        if (!gpu_watch_warning(&e.gpu, out->warning) && s.disturbed)
            delay_warning(s.delayed, out->warning);
        snprintf(out->a, sizeof out->a, "%s", a->file);
        snprintf(out->b, sizeof out->b, "%s", b->file);
        gates_judge(&e, out);
    }
    release(&e);
    return st;
}
