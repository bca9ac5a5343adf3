/* memory-limit: the step comes near what the process may use. It costs no time yet, so its gain is 1. */
#include <math.h>

#include "analyze/rules.h"

static const double NEAR = 0.80;

/* The smallest number above 1 that divides n. */
static long long smallest_factor(long long n)
{
    for (long long f = 2; f * f <= n; f++)
        if (n % f == 0)
            return f;
    return n;
}

bool rule_memory_limit(struct scene *s, struct claim *c)
{
    const struct profile *p = s->p;
    struct arena *a = &s->p->arena;
    const double resident = p->gpu ? 0 : positive(p->rss_peak_bytes);       /* of the host, which a GPU's memory is not */
    const double used = fmax(fmax(positive(p->peak_bytes), p->gpu ? positive(p->planned_bytes) : 0), resident);
    if (s->available_bytes <= 0 || used < NEAR * s->available_bytes)
        return false;
    const long long batch = s->facts.batch, factor = smallest_factor(batch);
    const bool known = p->peak_op >= 0 && p->peak_op < p->n_ops;
    c->finding.where = arena_printf(a, "%s", known ? scene_op_name(s, p->peak_op) : "the whole step");
    c->finding.cause = arena_printf(
        a, "The step uses %.0f %% of the memory %s", 100 * used / s->available_bytes,
        p->gpu ? "that is free on the GPU; a little more, and it does not start"
               : "this process may have; more means swapping or the end of the process");
    if (batch > 1)
        c->finding.fix =
            arena_printf(a, "--set train.batch_size=%lld --set train.accumulate=%lld keeps the samples of an update",
                         batch / factor, (long long)(p->accumulate > 0 ? p->accumulate : 1) * factor);
    else
        c->finding.fix =
            arena_printf(a, "A shorter model.seq: stored scores grow with its square, other activations with it");
    if (p->gpu)
        c->finding.evidence = arena_printf(a, "%s planned, %s available on the GPU", text_bytes(a, used), text_bytes(a, s->available_bytes));
    else
        c->finding.evidence =
            arena_printf(a, "%s planned, values %s of it at their peak; %s resident, %s available", text_bytes(a, positive(p->planned_bytes)),
                         text_bytes(a, positive(p->peak_bytes)), text_bytes(a, resident), text_bytes(a, s->available_bytes));
    return true;
}
