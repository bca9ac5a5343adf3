/* An update of more samples: the batch's sweet spot by measurement, the learning rate by a rule. No gate can say that the other update learns
 * as well, so that it is done only where it is asked for, and said to be a rule. What gates do hold against each other is the same update in
 * micro-batches of the given size and in larger ones. */
#include <math.h>

#include "prove/tune_int.h"

static const double SHARE = 0.15;           /* of the budget */
static const double SECONDS_LEAST = 0.2, SECONDS_MOST = 2;     /* for each size */
enum { SIZES_USUAL = 6 };

const char *tune_larger_refused(const struct tuner *t)
{
    const struct config *c = &t->r->base;
    return c->model.dropout > 0       ? "dropout falls on other samples in other batches, and nothing could be proved"
           : c->dist.comm             ? "ranks divide a batch"
           : !(t->o->budget_s > 0)    ? "nothing is measured with a budget of 0"
                                      : NULL;
}

static void on_size(void *context, int64_t batch, int done)
{
    char what[64];
    (void)done;
    snprintf(what, sizeof what, "steps of %lld samples", (long long)batch);
    tuner_tell(context, what);
}

static void say(struct tune_larger *l, const struct config *c)
{
    const int64_t samples = l->given.train.batch_size * l->given.train.accumulate;
    const struct batch_point *spot = &l->sweep.points[l->sweep.spot], *given = batch_sweep_find(&l->sweep, l->given.train.batch_size);
    char length[96] = "as many epochs as before";
    if (!c->train.epochs)
        snprintf(length, sizeof length, "train.steps %lld to %lld", (long long)l->given.train.steps, (long long)c->train.steps);
    snprintf(l->words, sizeof l->words,
             "an update has %lld samples instead of %lld: batches of %lld made %.2f times as many samples/s as those of %lld. train.lr goes from %g to %g (%s rule), %s, so that "
             "as many samples are seen. That is a rule, not a proof: gates hold this update in small batches against the same update in large ones, and do not say whether it "
             "learns as much from a sample; compare two runs before you trust it",
             (long long)(samples * l->times), (long long)samples, (long long)spot->batch, spot->samples_per_s / given->samples_per_s, (long long)given->batch,
             l->given.train.lr, c->train.lr, l->rule == LR_SQRT ? "square-root" : "linear", length);
}

enum status tune_enlarge(struct tuner *t, struct error *err)
{
    struct tune_result *r = t->r;
    struct tune_larger *l = &r->larger;
    const char *not = tune_larger_refused(t);
    *l = (struct tune_larger){.asked = true, .rule = t->o->rule, .times = 1, .given = r->base};
    snprintf(l->words, sizeof l->words, "not tried: %s", not ? not : "");
    if (not)
        return OK;
    const struct batch_sweep_options o = {.from = r->base.train.batch_size, .peaks = t->o->peaks, .stop = t->o->stop, .progress = on_size, .context = t,
                                          .seconds = fmin(fmax(SHARE * t->o->budget_s / SIZES_USUAL, SECONDS_LEAST), SECONDS_MOST)};
    const enum status st = batch_sweep_run(&l->sweep, &r->base, &o, err);
    if (st != OK)
        return st;
    const int64_t spot = l->sweep.spot >= 0 ? l->sweep.points[l->sweep.spot].batch : 0;
    char other[BATCH_WORDS], given[BATCH_WORDS];
    batch_sweep_words(&l->sweep, other, given);
    snprintf(l->words, sizeof l->words, "no: %s%s", l->sweep.noisy ? "" : "a larger one wins less than 5 %; ", other);
    if (l->sweep.noisy || spot <= r->base.train.batch_size)
        return OK;
    const struct config next = config_with_update(&r->base, spot / r->base.train.batch_size, t->o->rule);
    if (next.train.lr > 10) {
        snprintf(l->words, sizeof l->words, "no: train.lr would be %g by the %s rule, above 10", next.train.lr, lr_rule_name(l->rule));
        return OK;
    }
    l->times = spot / r->base.train.batch_size;
    say(l, &next);
    r->base = t->now = next;
    r->given = "the given config with the larger update";
    return OK;
}

void tune_keep_or_shrink(struct tuner *t)
{
    struct tune_result *r = t->r;
    struct tune_larger *l = &r->larger;
    const struct interval every = t->now.eval.every;
    if (l->times < 2 || t->now.train.batch_size > l->given.train.batch_size)
        return;
    t->now.train = l->given.train;
    t->now.log = l->given.log;
    t->now.checkpoint = l->given.checkpoint;
    t->now.eval = l->given.eval;
    if (every.n != r->base.eval.every.n)        /* as often as tune chose, in samples */
        t->now.eval.every.n = l->given.train.epochs ? every.n * l->times : (int64_t)fmin((double)(every.n * l->times), (double)l->given.train.steps);
    r->base = l->given;
    snprintf(l->words, sizeof l->words, "no: batches of %lld were not proved to be faster than those of %lld, so that an update keeps its %lld samples; what follows was measured "
             "with %lld times as many", (long long)l->sweep.points[l->sweep.spot].batch, (long long)l->given.train.batch_size,
             (long long)(l->given.train.batch_size * l->given.train.accumulate), (long long)l->times);
    l->times = 1;
}
