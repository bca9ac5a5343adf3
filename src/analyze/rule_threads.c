/* cpu-oversubscribed: threads wait for each other, because there are more of them than cores or because the cores are
 * not theirs alone. */
#include "analyze/rules.h"

static const double IMBALANCE_SHARE = 0.10; /* with enough cores: ordinary unevenness is below */

bool rule_cpu_oversubscribed(struct scene *s, struct claim *c)
{
    struct arena *a = &s->p->arena;
    const int threads = s->facts.threads, cores = s->facts.usable_cores;
    if (s->p->gpu)
        return false;                       /* its threads are not ours to choose */
    const bool too_many = cores > 0 && threads > cores;
    const double waits_us = s->imbalance_us + s->stalled_us;
    if (!too_many && !(threads > 1 && s->step_us > 0 && waits_us > IMBALANCE_SHARE * s->step_us))
        return false;
    c->broad = true;
    /* Barriers also wait for a thread that has no core: dispatch may hold more of it. */
    c->involved_us = waits_us + (too_many ? s->dispatch_us : 0);
    c->won_us = too_many ? waits_us : waits_us / 2;
    c->won_low_us = too_many ? waits_us / 2 : 0;
    c->won_high_us = c->involved_us;
    c->finding.where = arena_printf(a, "all ops, %d threads", threads);
    if (too_many) {
        c->finding.cause =
            arena_printf(a, "%d threads share %d core%s: at every op some wait for one that is not running", threads,
                         cores, cores == 1 ? "" : "s");
        c->finding.fix = arena_printf(a, "--set threads=%d, or 0 for all usable cores", cores);
    } else {
        c->finding.cause = arena_printf(a, "Threads finish their part of an op at different times: other work takes "
                                           "the cores, or the parts are uneven");
        c->finding.fix = arena_printf(a,
                                      "Look for other load on the machine (%d loader worker%s beside %d threads on "
                                      "%d cores); else try fewer threads",
                                      s->facts.workers, s->facts.workers == 1 ? " runs" : "s run", threads, cores);
    }
    c->finding.evidence = arena_printf(
        a,
        "threads wait %s for each other behind ops%s%s%s; %.1f %% of the %s",
        text_us(a, s->imbalance_us),
        s->p->waits_behind ? ", the longest behind " : "", s->p->waits_behind ? s->p->waits_behind : "",
        s->stalled_us > 0 ? arena_printf(a, ", and ops start %s later than they could", text_us(a, s->stalled_us)) : "",
        s->step_us > 0 ? 100 * waits_us / s->step_us : 0,
        scene_step(s));
    return true;
}
