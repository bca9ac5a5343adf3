/* bucket-size: how many gradients travel together, on several ranks. Small buckets start earlier, large ones pay the latency of the links less
 * often. What each would give is simulated, from the step as it was measured without waiting and from the links as doctor measured them. */
#include <stdlib.h>
#include <string.h>

#include "prove/moves.h"
#include "prove/simulate.h"

static const double WORTH = 1.002;          /* below it there is nothing to say */

/* The step without communication: as one rank alone would run it. */
static enum status source_of(struct sim_source *s, const struct situation *now, struct error *err)
{
    const struct profile *p = &now->p;
    const enum status st = sim_source_measured(s, p, &now->m.config, err);
    int kept = 0;
    if (st != OK)
        return st;
    for (int i = 0; i < s->n_ops; i++)
        if (strcmp(s->ops[i].kind, "reduce_start") && strcmp(s->ops[i].kind, "reduce_wait"))
            s->ops[kept++] = s->ops[i];
    s->n_ops = kept;
    s->n_steps = 1;
    s->steps_us[0] = p->ranks[0].compute_us + p->ranks[0].loader_us;
    s->config.train.batch_size /= p->n_ranks;
    return OK;
}

/* Ranks of a machine, by the names of machines. */
static int per_machine(const struct profile *p)
{
    int n = 0;
    for (int r = 0; r < p->n_ranks; r++)
        n += !strcmp(p->ranks[r].host, p->ranks[0].host);
    return n;
}

enum status propose_bucket(struct proposal *out, const struct situation *now, int pass, struct error *err)
{
    const struct profile *p = &now->p;
    struct links links;
    struct sim_source s = {0};
    (void)pass;
    *out = (struct proposal){.next = now->m.config, .predicted = 1};
    if (p->n_ranks < 2 || !links_recall(&links, p->peaks.machine))
        return OK;
    const struct sim_net net = {.ring = p->gpu, .per_machine = per_machine(p), .within = links.within, .between = links.between};
    if ((net.per_machine > 1 && !(net.within.gb_per_s > 0)) || (net.per_machine < p->n_ranks && !(net.between.gb_per_s > 0)))
        return OK;
    struct simulation *made = xcalloc(1, sizeof *made);
    enum status st = source_of(&s, now, err);
    if (st == OK)
        st = simulate(made, &s, &net, &p->n_ranks, 1, err);
    const struct sim_point *at = &made->points[1];
    if (st == OK && at->step_us > WORTH * at->best_step_us) {
        out->places = 1;
        out->predicted = at->step_us / at->best_step_us;
        out->next.dist.bucket_mb = at->best_mb;
        snprintf(out->change, sizeof out->change, "dist.bucket_mb: %lld", (long long)at->best_mb);
    }
    free(made);
    sim_source_release(&s);
    return st;
}
