/* exposed-comm: all ranks wait for sums that no computation hides. straggler: one rank is later than the others in most steps, and they
 * wait for it. */
#include <math.h>

#include "analyze/rules.h"

static const double EXPOSED_LEAST = 0.02;   /* of the step */
static const double BEHIND_LEAST = 0.05;    /* of the step, that a rank must cost to be named */
static const double DELAYED = 0.05;         /* of the time of a rank's threads: other work takes its cores */

static void claim_waits(const struct scene *s, struct claim *c)
{
    for (int i = 0; i < s->p->n_ops; i++)
        if (op_waits_for_ranks(scene_op(s, i)->kind))
            claim_op(s, c, i);
}

static int count_buckets(const struct scene *s, double *bytes)
{
    int n = 0;
    *bytes = 0;
    for (int i = 0; i < s->p->n_ops; i++)
        if (scene_op(s, i)->kind == OP_REDUCE_START) {
            n++;
            *bytes += (double)value_bytes(&s->program->values[scene_op(s, i)->out[0]]);
        }
    return n;
}

bool rule_exposed_comm(struct scene *s, struct claim *c)
{
    struct arena *a = &s->p->arena;
    double bytes;
    const double exposed_us = s->p->n_ranks > 1 ? positive(s->p->ranks[0].exposed_us) : 0;
    if (s->step_us <= 0 || exposed_us < EXPOSED_LEAST * s->step_us)
        return false;
    const int buckets = count_buckets(s, &bytes);
    claim_waits(s, c);
    c->involved_us = exposed_us;
    c->won_us = exposed_us / 2;             /* the last bucket cannot be hidden, nor can a link that is too slow for the step */
    c->won_high_us = exposed_us;
    c->finding.where = arena_printf(a, "sums between %d ranks, before the norm", s->p->n_ranks);
    c->finding.cause = arena_printf(a, "Gradients are still on their way when backward has ended, and nothing runs meanwhile");
    c->finding.fix = arena_printf(a, "A smaller dist.bucket_mb lets sums start earlier, a larger one makes fewer of them; a larger train.accumulate or "
                                  "train.batch_size has fewer sums per sample; `hone simulate` predicts what a faster link would win");
    c->finding.evidence = arena_printf(a, "every rank waits %s of the %s for %d bucket%s of %s in all, whose sums take %s",
                                       text_us(a, exposed_us), scene_step(s), buckets, buckets == 1 ? "" : "s", text_bytes(a, bytes),
                                       text_us(a, positive(s->p->ranks[0].sums_us)));
    return true;
}

/* ---- straggler ---- */

/* The rank that waits least for others, what it costs (others wait so much longer at least), and the mean of what others wait longer. */
struct last { int rank; double least_us, mean_us; };

static struct last find_last(const struct profile *p)
{
    struct last l = {.least_us = INFINITY};
    for (int r = 1; r < p->n_ranks; r++)
        l.rank = p->ranks[r].wait_us < p->ranks[l.rank].wait_us ? r : l.rank;
    for (int r = 0; r < p->n_ranks; r++) {
        const double longer = positive(p->ranks[r].wait_us - p->ranks[l.rank].wait_us);
        l.least_us = r == l.rank ? l.least_us : fmin(l.least_us, longer);
        l.mean_us += longer / (p->n_ranks - 1);
    }
    return l;
}

/* The mean over the others. */
static struct profile_rank others(const struct profile *p, int but)
{
    struct profile_rank m = {0};
    for (int r = 0; r < p->n_ranks; r++) {
        if (r == but)
            continue;
        m.compute_us += p->ranks[r].compute_us / (p->n_ranks - 1);
        m.loader_us += p->ranks[r].loader_us / (p->n_ranks - 1);
        m.delayed_share += fmax(p->ranks[r].delayed_share, 0) / (p->n_ranks - 1);
    }
    return m;
}

static void say_why(const struct scene *s, struct finding *f, int rank)
{
    struct arena *a = &s->p->arena;
    const struct profile_rank *k = &s->p->ranks[rank], rest = others(s->p, rank);
    if (k->loader_us - rest.loader_us > k->compute_us - rest.compute_us) {
        f->cause = arena_printf(a, "Rank %d waits for its batches longer than the others do, and they wait for it", rank);
        f->fix = arena_printf(a, "--set data.workers=%d, or bring the data nearer to %s: its disk or its cores are slower", s->facts.workers ? 2 * s->facts.workers : 2,
                              k->host);
    } else if (k->delayed_share > DELAYED && k->delayed_share > 2 * rest.delayed_share) {
        f->cause = arena_printf(a, "Other work takes the cores of rank %d away for %.0f %% of the time, and the other ranks wait for it", rank,
                                100 * k->delayed_share);
        f->fix = arena_printf(a, "Stop what else runs on %s, or give the ranks there fewer threads", k->host);
    } else {
        f->cause = arena_printf(a, "Rank %d computes longer than the others on as many samples, and they wait for it", rank);
        f->fix = arena_printf(a, "Look at %s: slower or hotter cores, fewer threads, other load; else leave it out", k->host);
    }
    f->evidence = arena_printf(a, "per step, rank %d computes %s and waits %s for its batch; the others %s and %s, and then %s for rank %d", rank,
                               text_us(a, positive(k->compute_us)), text_us(a, positive(k->loader_us)), text_us(a, positive(rest.compute_us)),
                               text_us(a, positive(rest.loader_us)), text_us(a, find_last(s->p).mean_us), rank);
}

bool rule_straggler(struct scene *s, struct claim *c)
{
    if (s->p->n_ranks < 2 || s->step_us <= 0)
        return false;
    const struct last l = find_last(s->p);
    if (!(l.least_us >= BEHIND_LEAST * s->step_us))
        return false;
    claim_waits(s, c);
    c->involved_us = l.mean_us;
    c->won_us = l.least_us;                 /* then it is as early as the next one */
    c->won_low_us = l.least_us / 2;
    c->won_high_us = l.mean_us;
    c->finding.where = arena_printf(&s->p->arena, "rank %d (%s)", l.rank, s->p->ranks[l.rank].host);
    say_why(s, &c->finding, l.rank);
    return true;
}
