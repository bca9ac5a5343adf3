/* The answers in words: what bounds the step, the largest piece, what to do first, what gain is realistic. */
#include <math.h>
#include <string.h>

#include "analyze/rules.h"
#include "analyze/traced/judge.h"

static const double WAITS = 0.3;            /* of the step: so much of it is unexplained that nothing else bounds it */
static const double LITTLE_WAIT = 0.1;      /* of the time in collectives, for other ranks */
static const double IN_TURNS = 0.7;         /* of the time: of several devices, the busiest works less, so that they wait for each other */
static const double FULL = 0.85;            /* of the step: busy so long, it is the device's */

/* Of the device's work. */
static const char *largest_kind(const struct study *s)
{
    const struct diagnosis *d = s->d;
    if (d->n_kinds && d->kinds[0].us >= d->mean.memcpy_us)
        return d->kinds[0].name;
    return d->mean.memcpy_us > 0 ? "copies" : "kernels";
}

/* Of a step on the CPU: waiting for collectives of the host's own threads, and the time in which nothing but these is at work. */
static double waits_for_ranks_ns(const struct study *s) { return fmax(s->comm_ns, s->d->mean.comm_us * 1e3); }

/* In the loader while the device, where there is one, has nothing to do: without the profiler, as the step that it is held against. */
static double loader_ns(const struct study *s) { return fmin(s->d->mean.dataloader_us * 1e3 * study_loader_left(s), s->base_ns); }

static const char *bound(const struct study *s)
{
    const struct diagnosis *d = s->d;
    if (s->d->device_lost)
        return "unknown";
    const bool waits_for_data = loader_ns(s) > WAITS * s->base_ns;
    if (!s->v->n_device)
        return waits_for_ranks_ns(s) > WAITS * s->base_ns ? "communication" : waits_for_data ? "data" : "cpu";
    if (s->unexplained_ns > WAITS * s->base_ns)
        return "wait";
    if (d->gpu.exposed_comm_us > 0.3 * d->gpu.total_us)
        return "communication";
    if (s->device_ns >= FULL * s->base_ns)
        return "device";
    return waits_for_data ? "data" : "host";
}

/* Devices that fill a step together, while each waits for the others most of the time: the share of the busiest; else 0. */
static double in_turns(const struct diagnosis *d)
{
    const double busiest = d->gpu.total_us > 0 ? d->gpu.busiest_us / d->gpu.total_us : 1;
    return d->gpu.devices > 1 && !strcmp(d->bound_by, "device") && busiest < IN_TURNS ? busiest : 0;
}

static const char *headline(const struct study *s)
{
    const double step_ns = s->d->corrected.step_us * 1e3;       /* the one given, where it is */
    const double idle = 100 * fmax(1 - s->device_ns / step_ns, 0);
    const char *by = s->d->bound_by;
    if (!strcmp(by, "unknown"))
        return study_text(s, "A step takes %s on the host; what the device did was not recorded.", study_us(s, step_ns));
    if (!strcmp(by, "cpu"))
        return study_text(s, "A step takes %s on the CPU; the trace has no work of a device.", study_us(s, step_ns));
    if (!strcmp(by, "wait"))
        return study_text(s, "The step waits: for %s of its %s the host waits while no work in the trace explains it; the device has work for %s.",
                          study_us(s, s->unexplained_ns), study_us(s, step_ns), study_us(s, s->device_ns));
    if (s->d->in_turns > 0)
        return study_text(s, "The devices take turns: one of %d works for %s of a step of %s, but the busiest alone only %.0f %% of the time.", s->d->gpu.devices,
                          study_us(s, s->device_ns), study_us(s, step_ns), 100 * s->d->in_turns);
    if (!strcmp(by, "device"))
        return study_text(s, "The device fills the step: %s of work in %s, most of it in %s.", study_us(s, s->device_ns),
                          study_us(s, step_ns), largest_kind(s));
    if (!strcmp(by, "communication") && !s->v->n_device)
        return study_text(s, "The step waits in collectives: %s of its %s are in those that nothing hides.", study_us(s, waits_for_ranks_ns(s)), study_us(s, step_ns));
    if (!strcmp(by, "communication"))
        return study_text(s, "The step waits in collectives: those that nothing hides take %.0f %% of the device's time.",
                          100 * s->d->gpu.exposed_comm_us / s->d->gpu.total_us);
    if (!strcmp(by, "data"))
        return study_text(s, "The step waits for its data: %s of its %s, %.0f %%, are in the loader.", study_us(s, loader_ns(s)), study_us(s, step_ns),
                          100 * loader_ns(s) / step_ns);
    return study_text(s, "The device waits for the host: it has work for %s of a step of %s and is idle %.0f %% of it.",
                      study_us(s, s->device_ns), study_us(s, step_ns), idle);
}

/* Whether a step in collectives waits for other ranks or for the exchange itself is seen where ranks stand beside each other. */
void judge_waits(struct diagnosis *d)
{
    double wait = 0, exposed = 0;
    for (int i = 0; i < d->n_ranks; i++) {
        wait += d->ranks[i].wait_us / d->n_ranks;
        exposed += d->ranks[i].exposed_comm_us / d->n_ranks;
    }
    if (strcmp(d->bound_by, "communication") != 0 || d->n_ranks < 2 || !(exposed > 0))
        return;
    const char *mean = wait < LITTLE_WAIT * exposed         ? "hardly any of it for another rank: it is the exchange itself"
                       : wait > (1 - LITTLE_WAIT) * exposed ? "nearly all of it for other ranks"
                                                            : arena_printf(&d->arena, "on average %s of a step for other ranks and %s for the exchange itself", text_us(&d->arena, wait),
                                                                           text_us(&d->arena, exposed - wait));
    d->headline = arena_printf(&d->arena, "%.*s, %s.", (int)strlen(d->headline) - 1, d->headline, mean);
}

void judge_answers(struct diagnosis *d)
{
    const struct finding *first = NULL;
    for (int i = 0; i < d->n_findings && !first; i++)
        if (d->findings[i].speedup > 1.01 && !d->findings[i].after)
            first = &d->findings[i];
    d->first_action = "Nothing that is worth changing was found in this trace.";
    d->realistic_gain = "None that this trace shows.";
    if (d->in_turns > 0) {                  /* no rule replays it: the program has to be divided otherwise */
        d->first_action = "Let the devices work at the same time: several micro-batches in flight in a pipeline, or a part of each batch for each device.";
        d->realistic_gain = arena_printf(&d->arena, "Devices at the same time: at most %.2f×, less what a pipeline takes to fill.", 1 / d->in_turns);
    }
    if (d->all_cold)
        d->first_action = "Record again after warm-up: this trace has only steps in which the process did things for the first time.";
    if (first && !d->all_cold) {
        const struct rule_text *text = rule_text_find(first->rule);
        d->first_action = arena_printf(&d->arena, "%s: %s Expected %.2f× (%.2f× to %.2f×).", first->rule, text->summary, first->speedup,
                                       first->speedup_low, first->speedup_high);
        d->realistic_gain = arena_printf(&d->arena, "%s: %.2f× (%.2f× to %.2f×).", first->rule, first->speedup, first->speedup_low,
                                         first->speedup_high);
    }
    if (d->n_phases) {
        const struct plan_phase *p = &d->phases[0], *all = &d->phases[d->n_phases - 1];
        const char *quick = d->n_phases > 1 ? arena_printf(&d->arena, "%s: %.2f× (%.2f× to %.2f×); ", p->title, p->speedup, p->low, p->high) : "";
        d->realistic_gain = arena_printf(&d->arena, "%s%s together: %.2f× (%.2f× to %.2f×).", quick, *quick ? "everything" : "Everything", all->speedup, all->low,
                                         all->high);
    }
}

/* Of a device that is idle most of the time that is the largest part of the step; else it is a kernel, or what the host does. */
static const char *largest(const struct study *s)
{
    const struct diagnosis *d = s->d;
    const struct corrected_view *c = &d->corrected;
    if (!s->v->n_device && !strcmp(d->bound_by, "communication"))
        return study_text(s, "collectives that nothing hides: %s of a step", study_us(s, waits_for_ranks_ns(s)));
    if (!strcmp(d->bound_by, "data"))
        return study_text(s, "the data loader: %s, %.0f %% of the step", study_us(s, loader_ns(s)), 100 * loader_ns(s) / (c->step_us * 1e3));
    if (!d->n_kernels)
        return d->n_ops ? study_text(s, "%.120s: %s of a step, %.0f %% of what ops take on the host", d->ops[0].name,
                                     study_us(s, d->ops[0].self_us * 1e3 / (d->n_steps > 0 ? d->n_steps : 1)), 100 * d->ops[0].share)
                        : "nothing that takes time was recorded";
    const char *kernel = study_text(s, "%.120s", d->kernels[0].shown);
    const double share = 100 * d->kernels[0].share;
    if (!d->device_lost && c->idle_us > c->device_us)
        return study_text(s, "the device is idle: %s, %.0f %% of the step; the largest kernel, %s, takes %.1f %% of all kernel time",
                          study_us(s, c->idle_us * 1e3), 100 * c->idle_us / c->step_us, kernel, share);
    return study_text(s, "%s: %.1f %% of all kernel time", kernel, share);
}

void judge_words(struct study *s)
{
    struct diagnosis *d = s->d;
    d->bound_by = bound(s);
    d->in_turns = in_turns(d);
    d->headline = headline(s);
    d->largest = largest(s);
    judge_answers(d);
}
