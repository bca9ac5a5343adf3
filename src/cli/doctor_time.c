/* What `hone doctor` says of the time that a run of a config takes here: some of its steps are timed, where they are short. */
#include "cli/doctor.h"
#include "core/delay.h"

enum { STEPS_MOST = 10, STEPS_LEAST = 5 };          /* turns that are timed; steps that cannot be fewer: those that warm up, and one of each kind */
static const double BUDGET_S = 5, WAIT_S = 20;      /* for turns; for the fewest steps there can be */
static const double ABOVE_FLOOR = 3;                /* so many times the least do steps take, often */

void doctor_read_time(struct doctor_time *t, const struct config *c, double least_ms)
{
    const bool slow = c->backend.kernels == KERNELS_REFERENCE && c->device != DEVICE_CUDA;
    *t = (struct doctor_time){.long_steps = slow || STEPS_LEAST * ABOVE_FLOOR * least_ms > WAIT_S * 1e3};
    t->known = !t->long_steps && train_estimate(&t->run, c, STEPS_MOST, BUDGET_S, &t->none) == OK;
}

/* Below a minute with digits. */
static const char *time_words(double seconds, char out[32])
{
    if (seconds < 60)
        snprintf(out, 32, seconds < 1 ? "%.2g s" : seconds < 10 ? "%.1f s" : "%.0f s", seconds);
    else
        human_time(seconds, out);
    return out;
}

const char *doctor_time_words(const struct doctor_time *t, char out[TIME_WORDS])
{
    const struct train_estimate *e = &t->run;
    char steps[32], evaluations[32], all[32], step[32];
    if (t->long_steps)
        snprintf(out, TIME_WORDS, "run: its steps are too long to be timed here; hone profile CONFIG --steps 2 does");
    else if (!t->known)
        snprintf(out, TIME_WORDS, "run: %.400s", t->none.text);
    if (!t->known)
        return out;
    human_rate(e->step_s * 1e3, 2, step);
    int n = snprintf(out, TIME_WORDS, "run: a step takes %s ms here and now (%lld were timed), %lld of them %s", step, (long long)e->timed, (long long)e->steps,
                     time_words(e->step_s * (double)e->steps, steps));
    if (e->evaluations)
        n += snprintf(out + n, TIME_WORDS - (size_t)n, ", and %lld evaluation%s %s: about %s", (long long)e->evaluations, e->evaluations == 1 ? "" : "s",
                      time_words(e->evaluation_s * (double)e->evaluations, evaluations), time_words(e->run_s, all));
    n += snprintf(out + n, TIME_WORDS - (size_t)n, ", beside checkpoints");
    if (delay_is_much(e->delayed_share))
        snprintf(out + n, TIME_WORDS - (size_t)n, "; less where other work does not take %.0f %% of the cores' time, as it did meanwhile", 100 * e->delayed_share);
    return out;
}

json_t *doctor_time_json(const struct doctor_time *t)
{
    const struct train_estimate *e = &t->run;
    if (!t->known)
        return json_null();
    return json_pack("{s:f, s:I, s:I, s:f, s:I, s:f}", "step_ms", e->step_s * 1e3, "timed", (json_int_t)e->timed, "steps", (json_int_t)e->steps, "evaluation_ms",
                     e->evaluation_s * 1e3, "evaluations", (json_int_t)e->evaluations, "run_s", e->run_s);
}
