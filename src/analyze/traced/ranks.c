/* Ranks of one job beside each other: who waits, and for whom. Told by what they wait in collectives, step by step; marks of steps
 * may be apart by any time, and before the first collective of a trace ranks are not together yet. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/job.h"
#include "core/stats.h"

static const double BEHIND = 0.03;          /* of a step that all others wait for one rank, for it to be named */
static const double BEHIND_ONCE = 0.10;     /* the same, where few steps were recorded: any rank is late once */
enum { FEW_STEPS = 2 };
static const double CAUSE = 0.4;            /* of what is lost, that explains it */

/* ---- waits ---- */

static const struct collective *first_of(const struct rank_comm *c)
{
    for (int i = 0; i < c->n; i++)
        if (c->at[i].step >= 0)
            return &c->at[i];
    return NULL;
}

/* How far into its own step a rank reaches its first collective, which it has. */
static double first_at(const struct rank_comm *c)
{
    const struct collective *f = first_of(c);
    return (double)(f->start_ns - c->steps[f->step].start_ns);
}

/* What a rank waits too much in its first collective, because ranks started apart: beyond what others come later into their steps. */
static void take_out_start(struct job *j)
{
    double latest = 0, least = INFINITY;
    for (int r = 0; r < j->n; r++) {
        const struct collective *f = first_of(&j->comm[r]);
        if (!f || j->comm[r].steps[f->step].number != j->comm[0].steps[0].number)
            return;
        latest = fmax(latest, first_at(&j->comm[r]));
        least = fmin(least, (double)f->exposed_ns);
    }
    for (int r = 0; r < j->n; r++) {
        const double now = (double)first_of(&j->comm[r])->exposed_ns;
        j->waits_ns[r] -= now - fmin(now, latest - first_at(&j->comm[r]) + least);
    }
}

void job_init(struct job *j, struct diagnosis **ranks, struct rank_comm *comm, int n)
{
    *j = (struct job){.ranks = ranks, .comm = comm, .n = n, .straggler = -1, .first = ranks[0]->findings, .n_first = ranks[0]->n_findings};
    j->waits_ns = xcalloc((size_t)n * (size_t)(comm[0].n_steps + 1), sizeof *j->waits_ns);
    int *at = xcalloc((size_t)n, sizeof *at);       /* numbers of steps grow: each rank goes through its own once */
    for (int s = 0; s < comm[0].n_steps; s++) {
        bool all = true;
        for (int r = 0; r < n; r++) {
            while (at[r] < comm[r].n_steps && comm[r].steps[at[r]].number < comm[0].steps[s].number)
                at[r]++;
            all &= at[r] < comm[r].n_steps && comm[r].steps[at[r]].number == comm[0].steps[s].number;
            j->waits_ns[(size_t)j->n_steps * (size_t)n + (size_t)r] = all ? comm[r].steps[at[r]].exposed_ns : 0;
        }
        j->n_steps += all;
    }
    free(at);
    for (int r = 0; r < n; r++)
        j->step_ns = fmax(j->step_ns, ranks[r]->mean.total_us * 1e3);
    if (j->n_steps)
        take_out_start(j);
}

void job_release(struct job *j)
{
    free(j->waits_ns);
    *j = (struct job){0};
}

/* The slowest rank of a step works as long as the step but for the least wait. */
double job_speedup(const struct job *j, const double *saved)
{
    double won = 0, mean = 0, all = 0;
    for (int r = 0; r < j->n; r++)
        mean += saved[r] / j->n;
    for (int s = 0; s < j->n_steps; s++) {
        const double *waits = &j->waits_ns[s * j->n];
        double before = INFINITY, after = INFINITY;
        for (int r = 0; r < j->n; r++) {
            before = fmin(before, waits[r]);
            after = fmin(after, waits[r] + saved[r] * j->step_ns);
            all += waits[r];
        }
        won += (after - before) / j->n_steps;
    }
    /* ranks that never meet do not wait for each other */
    return bounds_speedup((struct gain){1, 1 - (all > 0 ? won / j->step_ns : mean), 0}, 1);
}

double job_least_wait(const struct job *j, int rank)
{
    double least = 0, own = 0;
    for (int s = 0; s < j->n_steps; s++) {
        const double *waits = &j->waits_ns[s * j->n];
        double lowest = INFINITY;
        for (int r = 0; r < j->n; r++)
            lowest = fmin(lowest, waits[r]);
        least += lowest;
        own += waits[rank];
    }
    return own > 0 ? fmin(fmax(least / own, 0), 1) : 1;
}

/* ---- the straggler ---- */

/* Per step, how much less a rank waits than the one that waits least of the others; or than their mean. */
static void behind(const struct job *j, int rank, double *least, double *mean)
{
    double *less = xcalloc(2 * (size_t)j->n_steps + 1, sizeof *less), *usual = less + j->n_steps;
    for (int s = 0; s < j->n_steps; s++) {
        const double *waits = &j->waits_ns[s * j->n];
        double others = INFINITY, sum = 0;
        for (int r = 0; r < j->n; r++)
            if (r != rank) {
                others = fmin(others, waits[r]);
                sum += waits[r] / (j->n - 1);
            }
        less[s] = others - waits[rank];
        usual[s] = sum - waits[rank];
    }
    stats_sort(less, j->n_steps);
    stats_sort(usual, j->n_steps);
    *least = stats_percentile(less, j->n_steps, 0.5);
    *mean = stats_percentile(usual, j->n_steps, 0.5);
    free(less);
}

/* What of its step the rank has more of than the others do on average. */
static const char *why(const struct job *j, int rank, double lost_us)
{
    struct diagnosis *d = j->ranks[0];
    const struct trace_step *of = &j->ranks[rank]->mean;
    double loader = 0, ops = 0;
    for (int r = 0; r < j->n; r++)
        if (r != rank) {
            loader += j->ranks[r]->mean.dataloader_us / (j->n - 1);
            ops += (double)j->ranks[r]->mean.host_ops / (j->n - 1);
        }
    if (of->dataloader_us - loader > CAUSE * lost_us)
        return arena_printf(&d->arena, "it waits for its data: %.2f ms per step in its loader, the others %.2f ms", of->dataloader_us / 1e3,
                            loader / 1e3);
    if ((double)of->host_ops > 1.1 * ops)
        return arena_printf(&d->arena, "it runs more: %lld ops per step, the others %.0f", (long long)of->host_ops, ops);
    return "it runs the same ops as the others, and takes longer for them: other work on its machine, a slower clock, or longer sequences";
}

bool job_straggler(struct job *j, struct finding *f)
{
    struct diagnosis *d = j->ranks[0];
    double least = -INFINITY, mean = 0;
    int last = 0;
    for (int r = 0; r < j->n && j->n_steps; r++) {
        double a, b;
        behind(j, r, &a, &b);
        if (a > least)
            least = a, mean = b, last = r;
    }
    if (!j->n_steps || !(j->step_ns > 0) || least < (j->n_steps < FEW_STEPS ? BEHIND_ONCE : BEHIND) * j->step_ns)
        return false;
    const struct rule_text *text = rule_text_find("straggler");
    const char *name = j->comm[last].name;
    j->straggler = last;
    /* behind it comes the next; which of the others that is changes from step to step */
    const struct gain next = {j->step_ns, j->step_ns - least, 0}, usual = {j->step_ns, j->step_ns - (least + mean) / 2, 0},
                      even = {j->step_ns, j->step_ns - mean, 0};
    const struct interval i = bounds_interval((struct interval){bounds_speedup(usual, 1), bounds_speedup(next, 0.6), bounds_speedup(even, 1.1)}, 0);
    *f = (struct finding){
        .rule = "straggler", .effort = text->effort, .fix = text->fix_pytorch, .share = fmin(mean / j->step_ns, 1),
        .speedup = i.usual, .speedup_low = i.low, .speedup_high = i.high, .severity = severity_of(i.usual),
        .where = name,
        .cause = arena_printf(&d->arena, "%s arrives last at collectives, and %d other%s wait%s for it: %s", name, j->n - 1,
                              j->n > 2 ? "s" : "", j->n > 2 ? "" : "s", why(j, last, least / 1e3)),
        .evidence = arena_printf(&d->arena, "in the median step all others wait %.2f ms longer in collectives than %s does, %.2f ms on "
                                 "average", least / 1e6, name, mean / 1e6)};
    return true;
}
