/* How sure a finding is, in a word, and what would make it surer: the weakest of what it rests on decides. */
#include <string.h>

#include "analyze/traced/judge.h"

enum confidence { SURE, LIKELY, GUESS };
static const char *const words[] = {"high", "medium", "low"};

enum { FEW_STEPS = 3 };                     /* below which a mean says little */
static const double WIDE = 0.35, VERY_WIDE = 0.9;       /* of the speed-up: the interval's whole width */
static const double RATIO = 0.4;            /* a rule's doubt from which on its gain is a ratio of kernels, not a time in the trace */

/* Rules that look at sizes of tensors; without them they see less and promise by less. */
static const char *const by_shapes[] = {"no-flash-attention", "per-head-attention", "unfused-projections", "misaligned-dims", "no-mixed-precision",
                                        "constant-rebuilt"};

static bool needs_shapes(const char *rule)
{
    for (size_t i = 0; i < sizeof by_shapes / sizeof *by_shapes; i++)
        if (!strcmp(by_shapes[i], rule))
            return true;
    return false;
}

struct opinion {
    enum confidence word;
    const char *raise;                      /* a list, or "" */
};

static void doubt(struct diagnosis *d, struct opinion *o, enum confidence at_most, const char *raise)
{
    o->word = o->word > at_most ? o->word : at_most;
    o->raise = arena_printf(&d->arena, "%s%s%s", o->raise, *o->raise ? "; " : "", raise);
}

static void of_recording(struct diagnosis *d, struct opinion *o)
{
    if (d->all_cold)
        doubt(d, o, GUESS, "record steps after warm-up (schedule(wait=5, warmup=2, active=4))");
    if (d->only_cut)
        doubt(d, o, GUESS, "give the whole file: no step of it is whole");
    if (d->no_step_marks)
        doubt(d, o, d->steps_by ? LIKELY : GUESS, "mark the steps (prof.step())");
    if (d->n_steps - (d->all_cold ? 0 : d->cold_steps) < FEW_STEPS)
        doubt(d, o, LIKELY, "record more steps (active=4)");
}

static void of_gain(struct diagnosis *d, struct opinion *o, const struct finding *f)
{
    const double width = f->speedup > 0 ? (f->speedup_high - f->speedup_low) / f->speedup : 0;
    const enum confidence wide = width > VERY_WIDE ? GUESS : width > WIDE ? LIKELY : SURE;
    if (wide != SURE && !d->corrected.given)
        doubt(d, o, wide, "give the step's time without the profiler (--step-ms)");
    else if (wide != SURE || f->doubt >= RATIO)
        doubt(d, o, wide == GUESS ? GUESS : LIKELY, "try it: the gain is estimated from a ratio, and no time in the trace shows it");
}

static void of_what_was_recorded(struct diagnosis *d, struct opinion *o, const struct finding *f)
{
    if (!d->trace)
        return;
    if (!d->trace->origin.has_shapes && needs_shapes(f->rule))
        doubt(d, o, LIKELY, "record shapes (record_shapes=True)");
    if (!d->trace->origin.has_stacks && !d->lines_known && o->word != SURE)
        doubt(d, o, o->word, "record stacks, which name the line (with_stack=True)");
}

void judge_confidence(struct diagnosis *d)
{
    for (int i = 0; i < d->n_findings; i++) {
        struct finding *f = &d->findings[i];
        struct opinion o = {SURE, ""};
        of_recording(d, &o);
        of_gain(d, &o, f);
        of_what_was_recorded(d, &o, f);
        f->confidence = words[o.word];
        f->raise = *o.raise ? o.raise : NULL;
    }
}
