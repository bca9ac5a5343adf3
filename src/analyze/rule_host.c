/* host-sync: the step hands scalars to the host every time. host-bound: what the host does between ops takes a share of
 * its own. */
#include <string.h>

#include "analyze/rules.h"
#include "passes/passes.h"

static const double HOST_BOUND_SHARE = 0.05;        /* below it, dispatch is as cheap as it gets */

bool rule_host_sync(struct scene *s, struct claim *c)
{
    struct arena *a = &s->p->arena;
    for (int i = 0; i < s->p->n_ops; i++)
        if (scene_op(s, i)->kind == OP_HOST_READ && strcmp(scene_op_name(s, i), HOST_STOP)) {      /* that one all ranks act by */
            claim_op(s, c, i);
            c->won_low_us += scene_op_us(s, i);
        }
    if (!c->n_ops)
        return false;
    c->won_us = c->won_high_us = c->involved_us;            /* and their dispatch */
    c->finding.where = claim_where(s, c);
    c->finding.cause =
        arena_printf(a, "%d scalar%s read by the host in every step, although they are needed at log intervals only",
                     c->n_ops, c->n_ops == 1 ? " is" : "s are");
    c->finding.fix = arena_printf(
        a, "--set optimize.async-metrics=on: loss, norm and learning rate are read when they are shown");
    c->finding.evidence = arena_printf(a, "%d host_read op%s take%s %s of the %s, %s included", c->n_ops, c->n_ops == 1 ? "" : "s", c->n_ops == 1 ? "s" : "", text_us(a, c->involved_us),
                                       scene_step(s), scene_start_word(s));
    return true;
}

/* Of a GPU: idleness between kernels is launch-bound. */
static bool gpu_waits_for_host(struct scene *s, struct claim *c)
{
    struct arena *a = &s->p->arena;
    c->involved_us = c->won_high_us = s->host_us + s->upload_us;
    if (s->step_us <= 0 || c->involved_us < HOST_BOUND_SHARE * s->step_us)
        return false;
    c->won_us = c->involved_us / 2;
    c->finding.where = arena_printf(a, "before and behind the kernels of the step");
    c->finding.cause = arena_printf(a, "The GPU waits for the host for %.1f %% of the step: for its batch, and for the call that starts the step",
                                    100 * c->involved_us / s->step_us);
    c->finding.fix = arena_printf(a, "A train.batch_size above %lld gives each step more work; without a read in every step "
                                  "(optimize.async-metrics) the host runs ahead", (long long)s->facts.batch);
    c->finding.evidence = arena_printf(a, "upload %s, host %s of the %s, as far as the device waits for them",
                                       text_us(a, s->upload_us), text_us(a, s->host_us), scene_step(s));
    return true;
}

bool rule_host_bound(struct scene *s, struct claim *c)
{
    struct arena *a = &s->p->arena;
    if (s->p->gpu)
        return gpu_waits_for_host(s, c);
    c->involved_us = s->dispatch_us + s->host_us;
    c->broad = true;
    if (s->step_us <= 0 || c->involved_us < HOST_BOUND_SHARE * s->step_us)
        return false;
    c->won_us = c->involved_us / 2;                         /* half as many ops; all of it if the step were replayed */
    c->won_high_us = c->involved_us;
    c->finding.where = arena_printf(a, "between the %d ops of the step", s->p->n_ops);
    c->finding.cause = arena_printf(a,
                                    "Dispatch and host work take %.1f %% of the step: the ops are too many or too "
                                    "small for what one costs to start",
                                    100 * c->involved_us / s->step_us);
    c->finding.fix = arena_printf(a,
                                  "%sGive each op more work (train.batch_size above %lld) or run fewer ops (see the "
                                  "unfused and no-flash findings); for very small models try threads: 1",
                                  s->program->fewer_meetings || s->facts.threads < 2
                                      ? "" : "--set optimize.fewer-meetings=on: threads meet only where they must. ",
                                  (long long)s->facts.batch);
    c->finding.evidence = arena_printf(
        a, "dispatch %s (%s per op), host %s of the %s; expected: half of it goes",
        text_us(a, s->dispatch_us), text_us(a, s->call_us), text_us(a, s->host_us), scene_step(s));
    return true;
}
