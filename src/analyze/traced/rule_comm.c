/* exposed-comm, small-collectives: collectives that no computation hides. Also memory-limit. */
#include <math.h>
#include <string.h>

#include "analyze/traced/collectives.h"
#include "analyze/traced/rules.h"

static const double LEAST = 0.02;           /* of the step */
/* On a CPU collectives need cores themselves, and the last bucket waits for the end of backward. Of what is exposed stays, where
 * DistributedDataParallel overlaps already, and where nothing does. */
static const double CPU_LEFT = 0.5, CPU_LEFT_BY_HAND = 0.35;

/* A wrapper exchanges gradients while backward runs. */
static bool overlaps(const struct study *s)
{
    for (int32_t i = 0; i < s->v->n_host; i++) {
        const struct event *e = view_event(s->v, i);
        if (e->kind == EVENT_ANNOTATION && (strstr(view_name(s->v, i), "DistributedDataParallel") || strstr(view_name(s->v, i), "FullyShardedDataParallel")))
            return true;
    }
    return false;
}

/* NCCL sends all-to-all in pairs: its kernels are called so, and the op or the process group's range says what they are for. */
static bool has_all_to_all(const struct study *s)
{
    const struct trace *t = s->v->trace;
    for (int32_t i = 0; i < t->n_names; i++)
        if (strcasestr(t->names[i], "all_to_all") || strcasestr(t->names[i], "alltoall"))
            return true;
    return false;
}

enum { MOST_KINDS = 32 };
struct kind { const char *name; int64_t exposed_ns; };

/* Its place among the kinds; a new one gets the next. */
static int kind_at(struct kind *kinds, const char *name)
{
    int i = 0;
    while (i < MOST_KINDS - 1 && kinds[i].name && strcmp(kinds[i].name, name))
        i++;
    kinds[i].name = name;
    return i;
}

/* The kind of collectives that is exposed longest; NULL: there is none. */
static const char *longest_kind(const struct study *s)
{
    struct kind kinds[MOST_KINDS] = {0};
    int longest = 0;
    for (int i = 0; s->comm && i < s->comm->n; i++)
        kinds[kind_at(kinds, s->comm->at[i].name)].exposed_ns += s->comm->at[i].exposed_ns;
    for (int i = 0; i < MOST_KINDS; i++)
        longest = kinds[i].exposed_ns > kinds[longest].exposed_ns ? i : longest;
    const char *name = kinds[longest].name;
    return name && !strcmp(name, "send_recv") && has_all_to_all(s) ? "all_to_all" : name;
}

static bool exposed_on_host(struct study *s, struct charge *c)
{
    if (s->comm_ns < LEAST * s->base_ns)
        return false;
    const bool by_hand = !overlaps(s);
    c->asks.collective = longest_kind(s);
    c->edit.comm_factor = by_hand ? CPU_LEFT_BY_HAND : CPU_LEFT;
    c->involved_ns = s->comm_ns;
    c->doubt = 0.5;
    c->finding.where = "collectives on the host";
    c->finding.cause = by_hand ? "collectives run when backward is done, and the step waits for them"
                               : "the step waits in collectives while no op runs beside them";
    c->finding.evidence = study_text(s, "%s per step in which a collective is under way and no op runs; waiting for slower ranks is part of it",
                                     study_us(s, s->comm_ns));
    return true;
}

bool trace_rule_exposed_comm(struct study *s, struct charge *c)
{
    const struct view *v = s->v;
    const struct trace_gpu *g = &s->d->gpu;
    if (study_on_cpu(s))
        return exposed_on_host(s, c);
    if (!(g->comm_us > 0) || g->exposed_comm_us < LEAST * g->total_us)
        return false;
    const double hidden = 1 - g->exposed_comm_us / g->comm_us;
    int32_t longest = -1;
    for (int32_t d = 0; d < v->n_device; d++)
        if (view_kernel_kind(v, v->device + d) == KERNEL_COMM) {
            c->edit.device[d] = (float)fmax(hidden, 0.05);      /* what is exposed now goes behind computation */
            if (longest < 0 || view_event(v, v->device + d)->duration_ns > view_event(v, longest)->duration_ns)
                longest = v->device + d;
        }
    c->doubt = 0.5;
    c->asks.collective = longest_kind(s);
    c->finding.where = longest >= 0 ? study_kernel(s, view_name(v, longest)) : "collectives";
    c->finding.cause = "the device waits in collectives while no computation runs beside them";
    c->finding.evidence = study_text(s, "%s of collectives in the trace, %.0f %% of it exposed", study_us(s, g->comm_us * 1e3),
                                     100 * g->exposed_comm_us / g->comm_us);
    return true;
}

/* ---- many small ones ---- */

enum { MANY = 16 };                         /* per step */
static const double SMALL_BYTES = 1 << 20, BUCKET_BYTES = 25e6;
static const double SMALL_SHARE = 0.8;      /* of them */

struct exchange {
    double n, small, exposed_ns, bytes;     /* of the steps; bytes of all */
    double latency_ns, ns_per_byte;         /* the shortest one; the best rate of one that takes twice as long or more */
};

static struct exchange sum(const struct rank_comm *r)
{
    struct exchange x = {.latency_ns = INFINITY, .ns_per_byte = INFINITY};
    for (int i = 0; i < r->n; i++) {
        const struct collective *c = &r->at[i];
        if (c->step < 0 || c->bytes <= 0)
            continue;
        x.n++;
        x.small += (double)c->bytes < SMALL_BYTES;
        x.exposed_ns += (double)c->exposed_ns;
        x.bytes += (double)c->bytes;
        x.latency_ns = fmin(x.latency_ns, (double)(c->end_ns - c->start_ns));
    }
    for (int i = 0; i < r->n; i++) {
        const struct collective *c = &r->at[i];
        const double ns = (double)(c->end_ns - c->start_ns);
        if (c->step >= 0 && c->bytes > 0)
            x.ns_per_byte = fmin(x.ns_per_byte, fmax(ns - x.latency_ns, ns / 2) / (double)c->bytes);
    }
    return x;
}

/* In buckets each costs its latency once, and bytes take the time of the best one seen. */
bool trace_rule_small_collectives(struct study *s, struct charge *c)
{
    if (!s->comm)
        return false;
    const struct exchange x = sum(s->comm);
    const double steps = s->comm->n_steps > 0 ? s->comm->n_steps : 1;
    if (x.n < MANY * steps || x.small < SMALL_SHARE * x.n || x.exposed_ns / steps < LEAST * s->base_ns)
        return false;
    const double after = steps * ceil(x.bytes / steps / BUCKET_BYTES) * x.latency_ns + x.bytes * x.ns_per_byte;
    const double left = fmin(after / x.exposed_ns, 1);
    c->edit.comm_factor = left;
    for (int32_t d = 0; d < s->v->n_device; d++)
        if (view_kernel_kind(s->v, s->v->device + d) == KERNEL_COMM)
            c->edit.device[d] = (float)fmax(left, 0.01);
    c->doubt = 0.4;
    c->involved_ns = x.exposed_ns / steps;
    c->finding.where = study_text(s, "%.0f collectives per step", x.n / steps);
    c->finding.cause = s->facts.forward_only ? "tensors are exchanged one by one: each collective costs its latency, whatever its size"
                                             : "gradients are exchanged one by one: each collective costs its latency, whatever its size";
    c->finding.evidence = study_text(s, "%.0f collectives per step, %.0f of them below 1 MiB, %.1f MB together; %s per step are hidden by nothing, the shortest takes %s",
                                     x.n / steps, x.small / steps, x.bytes / steps / 1e6, study_us(s, x.exposed_ns / steps),
                                     study_us(s, x.latency_ns));
    return true;
}

/* memory-limit: the allocator holds nearly all there is. */
bool trace_rule_memory_limit(struct study *s, struct charge *c)
{
    const double held = fmax((double)s->v->trace->origin.reserved_bytes, s->d->memory_peak_bytes);
    const double total = s->d->memory_total_bytes;
    if (!(total > 0) || held < 0.92 * total)
        return false;
    c->memory_only = true;
    c->finding.where = "the allocator";
    c->finding.cause = "nearly all memory of the device is taken: the next larger batch or sequence fails, and the allocator "
                       "may give memory back and take it again";
    c->finding.evidence = study_text(s, "%.1f GB of %.1f GB", held / 1e9, total / 1e9);
    return true;
}
