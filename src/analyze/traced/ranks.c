/* Ranks of one job beside each other: who waits, and for whom. */
#include <math.h>

#include "analyze/traced/judge.h"

static const double BEHIND = 0.05;          /* of a step that a rank must lose to be named */

/* In a collective all wait for the last to arrive: it spends the least time there. */
void judge_ranks(struct diagnosis *d)
{
    if (d->n_ranks < 2)
        return;
    int last = 0, quickest = 0;
    double step = 0;
    for (int i = 0; i < d->n_ranks; i++) {
        last = d->ranks[i].comm_us < d->ranks[last].comm_us ? i : last;
        step = fmax(step, d->ranks[i].step_us);
    }
    for (int i = 0; i < d->n_ranks; i++) {
        d->ranks[i].wait_us = d->ranks[i].comm_us - d->ranks[last].comm_us;
        quickest = d->ranks[i].wait_us > d->ranks[quickest].wait_us ? i : quickest;
    }
    double mean = 0;
    for (int i = 0; i < d->n_ranks; i++)
        mean += d->ranks[i].wait_us / d->n_ranks;
    const double lost = d->ranks[quickest].wait_us;
    if (!(step > 0) || lost < BEHIND * step)
        return;
    const struct rule_text *text = rule_text_find("straggler");
    const struct gain g = {step, step - mean, 0};
    const struct interval i = bounds_interval((struct interval){bounds_speedup(g, 1), bounds_speedup(g, 0.5), bounds_speedup(g, lost / mean)}, 0);
    finding_insert(d, (struct finding){
        .rule = "straggler", .effort = text->effort, .fix = text->fix_pytorch, .share = lost / step,
        .speedup = i.usual, .speedup_low = i.low, .speedup_high = i.high, .severity = severity_of(i.usual),
        .where = arena_printf(&d->arena, "rank %d", d->ranks[last].rank),
        .cause = arena_printf(&d->arena, "rank %d arrives last at collectives, and %d other%s wait%s for it", d->ranks[last].rank,
                              d->n_ranks - 1, d->n_ranks > 2 ? "s" : "", d->n_ranks > 2 ? "" : "s"),
        .evidence = arena_printf(&d->arena, "per step, rank %d is in collectives for %.2f ms, rank %d for %.2f ms",
                                 d->ranks[last].rank, d->ranks[last].comm_us / 1e3, d->ranks[quickest].rank,
                                 d->ranks[quickest].comm_us / 1e3)});
    judge_answers(d);           /* it may be what to do first */
}
