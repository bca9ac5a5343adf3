/* data-stall: the step waits for its batch. eval-share: evaluation takes a noticeable part of the run. */
#include <math.h>

#include "analyze/rules.h"
#include "core/evaluations.h"

static const double STALL_SHARE = 0.005;    /* handing over a ready batch is not a stall */
static const double EVAL_SHARE = 0.02;      /* what evaluation may take */

bool rule_data_stall(struct scene *s, struct claim *c)
{
    struct arena *a = &s->p->arena;
    const bool spare = s->facts.usable_cores > s->facts.threads;
    c->involved_us = s->data_wait_us;
    if (s->step_us <= 0 || c->involved_us <= STALL_SHARE * s->step_us)
        return false;
    /* With a free core all of it can be hidden; without one the loader takes its time from the step. */
    c->won_us = spare ? c->involved_us : c->involved_us / 2;
    c->won_low_us = spare ? c->involved_us / 2 : 0;
    c->won_high_us = c->involved_us;
    c->finding.where = arena_printf(a, "before the first op of the step");
    c->finding.cause = arena_printf(a, "Batches are prepared slower than they are used%s",
                                    s->facts.workers ? "" : ", by the one who trains");
    if (s->facts.workers == 0)
        c->finding.fix = arena_printf(a, "--set data.workers=2 prepares batches beside the step");
    else if (spare)
        c->finding.fix = arena_printf(a, "--set data.workers=%d, and a larger data.prefetch if waits come in bursts",
                                      2 * s->facts.workers);
    else if (s->p->gpu)
        c->finding.fix = arena_printf(a, "Use token shards (data.source: bin), which need no tokenizing, or a larger data.prefetch");
    else
        c->finding.fix = arena_printf(a,
                                      "Leave the loader a core (--set threads=%d), or use token shards (data.source: "
                                      "bin), which need no tokenizing",
                                      s->facts.threads > 1 ? s->facts.threads - 1 : 1);
    if (s->p->gpu)
        c->finding.evidence = arena_printf(a, "waits %s of the %s with %d worker%s of the host", text_us(a, c->involved_us),
                                           scene_step(s), s->facts.workers, s->facts.workers == 1 ? "" : "s");
    else
        c->finding.evidence = arena_printf(a, "waits %s of the %s with %d worker%s, %d thread%s on %d "
                                          "core%s",
                                       text_us(a, c->involved_us), scene_step(s), s->facts.workers,
                                       s->facts.workers == 1 ? "" : "s", s->facts.threads,
                                       s->facts.threads == 1 ? "" : "s", s->facts.usable_cores,
                                       s->facts.usable_cores == 1 ? "" : "s");
    return true;
}

bool rule_eval_share(struct scene *s, struct claim *c)
{
    struct arena *a = &s->p->arena;
    const double eval_us = s->eval_us;
    c->involved_us = eval_us;
    c->base_us = s->step_us + eval_us;
    c->outside = true;
    if (s->step_us <= 0 || eval_us <= EVAL_SHARE * c->base_us)
        return false;
    const struct evaluations e = {.steps = s->facts.run_steps, .every = s->facts.eval_every_steps, .stage = s->facts.stage_steps};
    const double kept_us = s->step_us * EVAL_SHARE / (1 - EVAL_SHARE);
    const int64_t every = evaluations_interval(e, evaluations_per_step(e) * kept_us / eval_us);
    const double left_us = eval_us * evaluations_left(e, every);
    if (left_us >= eval_us)
        return false;                                       /* the one at the end of the run, or of a stage, is there in any case */
    c->won_us = eval_us - left_us;
    c->won_low_us = fmin(eval_us * (1 - evaluations_left(e, 2 * e.every)), c->won_us);     /* half as often */
    c->won_high_us = eval_us * (1 - (e.steps ? evaluations_left(e, e.steps) : 0));
    const long long steps = s->facts.eval_every_steps, batches = s->facts.eval_batches;
    const char *often = steps == 1 ? "every step" : arena_printf(a, "every %lld steps", steps);
    c->finding.where = arena_printf(a, "evaluation %s", often);
    c->finding.cause = arena_printf(a, "%lld validation batch%s %s cost%s %.1f %% of the run", batches, batches == 1 ? "" : "es", often,
                                    batches == 1 ? "s" : "", 100 * eval_us / c->base_us);
    c->finding.fix = arena_printf(a, "--set eval.every=%lld brings it to %.3g %%; fewer eval.batches do the same with a noisier loss", (long long)every,
                                  100 * left_us / (s->step_us + left_us));
    c->finding.evidence = arena_printf(a, "%s of evaluation per step beside the %s", text_us(a, positive(s->facts.eval_us_per_step)),
                                       scene_step(s));
    return true;
}
