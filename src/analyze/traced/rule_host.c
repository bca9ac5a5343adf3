/* host-bound, launch-bound: the device waits for the host. */
#include <math.h>
#include <string.h>

#include "analyze/traced/rules.h"

static const double IDLE = 0.15;            /* of the step, from which on the device waits too much */
static const double GAP = 12;               /* usual gaps: a longer one is the user's own Python */
static const double LEAST_GAP_NS = 60e3;
static const double MOST_GAP_NS = 200e3;    /* in a step of few calls, as of graphs, the usual gap is long itself */
static const double USUAL_GAP_NS = 30e3;    /* what stays of a long stretch at most: some Python between two calls */
static const double IN_GRAPHS = 0.5;        /* of the device's time: the step is launched as graphs already */
static const double SERIAL = 0.05;          /* of the step, from which on such stretches matter in a step that also waits */
static const double ONE_PLACE = 0.1;        /* of the step: one stretch so long is a cause, many short ones are what slow hosts look like */
static const double NOTICED = 0.05;         /* of them, that one name takes to be told */
static const double REPLAYED = 0.15;        /* of the host's time stays when the step is one graph or compiled */
static const double ONCE = 0.5;             /* of such stretches, in one of them */
enum { LEAST_LAUNCHES = 50 };               /* per step, below which launching is not the matter */

static bool is_idle(const struct study *s)
{
    if (s->replay->all_cold)
        return false;                       /* a host that does things for the first time is no bound of later steps */
    return s->v->n_device > 0 && s->device_ns < (1 - IDLE) * s->base_ns;
}

static bool works_all_the_time(const struct study *s) { return s->host_ns > 0.8 * s->base_ns; }

/* Up to three holders with their time per step. */
static const char *list_holders(const struct study *s, const struct holders *h)
{
    const char *text = "";
    for (int i = 0, n = 0; i < h->n && n < 3; i++)
        if (h->at[i].name && h->at[i].ns >= NOTICED * h->all_ns)
            text = study_text(s, "%s%s%.120s %s", text, n++ ? ", " : "", h->at[i].name, study_us(s, per_step(s, h->at[i].ns)));
    return text;
}

/* Ops that work on the host alone and hold the device up go with the rest. */
static void charge_ops(const struct study *s, struct charge *c)
{
    for (int32_t k = 0; k < s->n_top; k++)
        if (study_annotation(s, s->top[k], "enumerate(DataLoader)") < 0 && stretch_is_op(s, s->top[k]))
            charge_host(s, c, s->top[k], 0);
}

/* One frame or range of the user's takes a noticeable part of the step. */
static bool is_named(const struct study *s, const struct holders *h)
{
    return h->n && h->at[0].name && per_step(s, h->at[0].ns) >= SERIAL * s->base_ns && strncmp(h->at[0].name, "Optimizer.", 10);
}

/* Without a device nothing idles: what is done between ops is time that the ops do not have. One stretch of several steps that is longer than
 * all others together is a moment in which the machine did something else. */
static bool trace_of_cpu(struct study *s, struct charge *c, const struct holders *h, const char *names)
{
    const double longest_ns = h->longest_ns - c->edit.gap_limit_ns;         /* as they are added up */
    if (per_step(s, h->all_ns) < SERIAL * s->base_ns || (s->replay->n_steps > 2 && longest_ns > ONCE * h->all_ns))
        return false;
    const bool named = h->n && h->at[0].name && strncmp(h->at[0].name, "Optimizer.", 10) != 0;
    c->finding.cause = "Python and what it calls outside of PyTorch's ops take a part of the step, in which no op works";
    c->finding.fix = study_text(s, "# %.120s: do it in the loader's workers, in a process beside the step, or less often\n"
                                "loader = DataLoader(dataset, batch_size=B, num_workers=spare)      # spare: cores that no thread of the step needs; what is done per batch, in its collate_fn",
                                named ? h->at[0].name : "what the loop does between ops");
    c->finding.evidence = study_text(s, "long stretches outside of ops per step: %s, which take %s per step beyond what is usual, as recorded%s%s",
                                     study_number(s, per_step(s, h->stretches)), study_us(s, per_step(s, h->all_ns)), *names ? ", in " : "", names);
    return true;
}

static const char *held_where(const struct study *s, const struct holders *h)
{
    return h->n && h->at[0].name ? study_text(s, "%.200s", h->at[0].name)
           : h->longest >= 0     ? study_text(s, "before %s", study_where(s, h->longest))
           : h->longest_ns > 0   ? "behind the last op"
                                 : "between ops";
}

bool trace_rule_host_bound(struct study *s, struct charge *c)
{
    const struct replay *r = s->replay;
    const bool cpu = study_on_cpu(s) && !r->all_cold;
    if (!cpu && !is_idle(s))
        return false;
    c->edit.gap_limit_ns = fmin(fmax(GAP * r->typical_gap_ns, LEAST_GAP_NS), MOST_GAP_NS);
    c->edit.gap_left_ns = fmin(2 * r->typical_gap_ns, USUAL_GAP_NS);
    const struct holders h = study_holders(s, c->edit.gap_limit_ns);
    if (!cpu && !works_all_the_time(s) && per_step(s, h.all_ns) < SERIAL * s->base_ns)
        return false;                       /* the host waits, and what it does else is little */
    charge_ops(s, c);
    c->doubt = 0.25;
    c->asks.holder = is_named(s, &h) ? h.at[0].name : NULL;
    c->finding.symptom = !is_named(s, &h) && h.longest_ns < ONE_PLACE * s->base_ns;
    const char *names = list_holders(s, &h);
    c->finding.where = held_where(s, &h);
    if (cpu)
        return trace_of_cpu(s, c, &h, names);
    c->finding.cause = *names ? "the device waits for the host, which does work of its own in between"
                              : "the device waits for the host, which spends time outside of PyTorch's ops";
    c->finding.evidence = study_text(s, "the device is idle %.0f %% of the step", 100 * (1 - s->device_ns / s->base_ns));
    if (h.stretches)
        c->finding.evidence = study_text(s, "%s; long stretches that launch nothing per step: %s, which take %s per step beyond what is "
                                         "usual, as recorded%s%s", c->finding.evidence, study_number(s, per_step(s, h.stretches)),
                                         study_us(s, per_step(s, h.all_ns)), *names ? ", in " : "", names);
    return true;
}

bool trace_rule_launch_bound(struct study *s, struct charge *c)
{
    int64_t launches = 0;
    for (int32_t k = 0; k < s->replay->n_items; k++)
        launches += s->replay->items[k].effect == EFFECT_LAUNCH;
    if (!is_idle(s) || !works_all_the_time(s) || per_step(s, (double)launches) < LEAST_LAUNCHES || s->uses.graphs >= IN_GRAPHS)
        return false;
    c->finding.symptom = true;
    c->edit.host_factor = REPLAYED;
    c->doubt = 0.35;
    c->finding.where = "the whole step";
    c->finding.cause = "the host cannot launch kernels as fast as the device runs them";
    c->finding.evidence = study_text(s, "%.0f launches per step; host work %s, device work %s per step", per_step(s, (double)launches),
                                     study_us(s, s->host_ns), study_us(s, s->device_ns));
    return true;
}
