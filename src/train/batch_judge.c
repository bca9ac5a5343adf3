/* What a sweep over batch sizes says. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/delay.h"
#include "train/batch_sweep.h"
#include "train/train_int.h"

static const double NOISE = 0.5;            /* of a step's time, from its 10th to its 90th percentile */
static const double NEAR = 0.95;            /* of the fastest: as good as it, and smaller */

const char *batch_verdict_word(enum batch_verdict v)
{
    static const char *const words[] = {"too small", "sweet spot", "no faster", "does not fit", "no verdict"};
    return words[v];
}

/* The fastest of those that fit; -1: none does. */
static int fastest(const struct batch_sweep *s)
{
    int best = -1;
    for (int i = 0; i < s->n; i++)
        if (s->points[i].fits && (best < 0 || s->points[i].samples_per_s > s->points[best].samples_per_s))
            best = i;
    return best;
}

static int last_that_fits(const struct batch_sweep *s)
{
    int last = -1;
    for (int i = 0; i < s->n; i++)
        last = s->points[i].fits ? i : last;
    return last;
}

/* Steps of most of them. */
static bool steps_vary(const struct batch_sweep *s)
{
    int noisy = 0, timed = 0;
    for (int i = 0; i < s->n; i++) {
        timed += s->points[i].fits;
        noisy += s->points[i].fits && s->points[i].ms_spread > NOISE * s->points[i].ms_per_step;
    }
    return 2 * noisy > timed;
}

/* One size is not as fast twice as two sizes must be to be told apart. */
static bool rounds_differ(const struct batch_sweep *s)
{
    for (int i = 0; i < s->n; i++)
        if (s->points[i].fits && s->points[i].ms_per_step < NEAR * s->points[i].ms_slowest)
            return true;
    return false;
}

static bool is_noisy(const struct batch_sweep *s) { return delay_is_much(s->delayed_share) || steps_vary(s) || rounds_differ(s); }

void batch_sweep_judge(struct batch_sweep *s)
{
    const int best = fastest(s), last = last_that_fits(s);
    s->spot = -1;
    s->noisy = is_noisy(s);
    for (int i = 0; i < s->n && s->spot < 0; i++)
        if (s->points[i].fits && s->points[i].samples_per_s >= NEAR * s->points[best].samples_per_s)
            s->spot = i;
    for (int i = 0; i < s->n; i++)
        s->points[i].verdict = !s->points[i].fits ? BATCH_DOES_NOT_FIT
                               : s->noisy         ? BATCH_UNKNOWN
                               : i < s->spot      ? BATCH_TOO_SMALL
                               : i == s->spot     ? BATCH_SWEET_SPOT
                                                  : BATCH_NO_FASTER;
    s->open = s->spot >= 0 && s->spot == last && last == s->n - 1 && s->end != BATCHES_NO_MEMORY && s->end != BATCHES_LEVEL;
}

const struct batch_point *batch_sweep_find(const struct batch_sweep *s, int64_t batch)
{
    for (int i = 0; i < s->n; i++)
        if (s->points[i].batch == batch && s->points[i].fits)
            return &s->points[i];
    return NULL;
}

/* ---- in words ---- */

static void spot_words(const struct batch_sweep *s, char out[BATCH_WORDS])
{
    const int best = fastest(s);
    const struct batch_point *p = s->spot >= 0 ? &s->points[s->spot] : NULL, *before = NULL;
    for (int i = 0; i < s->spot; i++)
        before = s->points[i].fits ? &s->points[i] : before;
    const double gain = before ? 100 * (p->samples_per_s / before->samples_per_s - 1) : 0;
    if (!p)
        snprintf(out, BATCH_WORDS, "no batch fits: one of %lld needs %.1f MB, and %.1f MB are free; `hone doctor` with this config says what would",
                 (long long)s->points[0].batch, s->points[0].planned_bytes / 1e6, s->free_bytes / 1e6);
    else if (s->open && !before)
        snprintf(out, BATCH_WORDS, "a batch of %lld is all that was measured: there is nothing to hold it against", (long long)p->batch);
    else if (!before && s->spot == last_that_fits(s) && s->end == BATCHES_NO_MEMORY)
        snprintf(out, BATCH_WORDS, "sweet spot: %lld, the only one of those tried that fits", (long long)p->batch);
    else if (delay_is_much(s->delayed_share))
        snprintf(out, BATCH_WORDS, "no verdict: other work took the cores for up to %.0f %% of the time, so that any of them may be the sweet spot", 100 * s->delayed_share);
    else if (s->noisy)
        snprintf(out, BATCH_WORDS, "no verdict: times of one size differ by as much as those of two may, so that any of them may be the sweet spot");
    else if (s->open)
        snprintf(out, BATCH_WORDS, "sweet spot so far: %lld, %.0f %% more samples/s than %lld; larger ones were not tried", (long long)p->batch, gain,
                 (long long)before->batch);
    else if (before && s->spot == last_that_fits(s) && s->end == BATCHES_NO_MEMORY)
        snprintf(out, BATCH_WORDS, "sweet spot: %lld, the largest of those tried that fits, %.0f %% more samples/s than %lld", (long long)p->batch, gain,
                 (long long)before->batch);
    else if (best == s->spot)
        snprintf(out, BATCH_WORDS, "sweet spot: %lld, the fastest", (long long)p->batch);
    else
        snprintf(out, BATCH_WORDS, "sweet spot: %lld, within 5 %% of the fastest (%lld) in %.0f %% of its memory", (long long)p->batch,
                 (long long)s->points[best].batch, 100 * p->planned_bytes / s->points[best].planned_bytes);
}

static void given_words(const struct batch_sweep *s, char out[BATCH_WORDS])
{
    const struct batch_point *spot = s->spot >= 0 ? &s->points[s->spot] : NULL, *given = NULL;
    *out = 0;
    for (int i = 0; i < s->n; i++)
        given = s->points[i].batch == s->given ? &s->points[i] : given;
    if (!given || !spot || given == spot || given->verdict == BATCH_UNKNOWN)
        return;
    if (given->verdict == BATCH_TOO_SMALL)
        snprintf(out, BATCH_WORDS, "train.batch_size is %lld: too small, %lld makes %.2f times as many samples/s", (long long)given->batch,
                 (long long)spot->batch, spot->samples_per_s / given->samples_per_s);
    else if (given->verdict == BATCH_NO_FASTER)
        snprintf(out, BATCH_WORDS, "train.batch_size is %lld: no faster than %lld, which takes %.0f %% of the memory", (long long)given->batch,
                 (long long)spot->batch, 100 * spot->planned_bytes / given->planned_bytes);
    else
        snprintf(out, BATCH_WORDS, "train.batch_size is %lld, and does not fit", (long long)given->batch);
}

void batch_sweep_words(const struct batch_sweep *s, char spot[BATCH_WORDS], char given[BATCH_WORDS])
{
    spot_words(s, spot);
    given_words(s, given);
}

static json_t *point_json(const struct batch_point *p)
{
    return json_pack("{s:I,s:o,s:o,s:o,s:o,s:f,s:b,s:b,s:s}", "batch", (json_int_t)p->batch, "ms_per_step", json_number(p->fits ? p->ms_per_step : NAN),
                     "ms_spread", json_number(p->fits ? p->ms_spread : NAN), "samples_per_s", json_number(p->fits ? p->samples_per_s : NAN),
                     "tokens_per_s", json_number(p->fits ? p->tokens_per_s : NAN), "planned_mb", p->planned_bytes / 1e6, "fits", p->fits,
                     "recompute", p->recompute, "verdict", batch_verdict_word(p->verdict));
}

json_t *batch_sweep_json(const struct batch_sweep *s)
{
    char spot[BATCH_WORDS], given[BATCH_WORDS];
    json_t *points = json_array();
    batch_sweep_words(s, spot, given);
    for (int i = 0; points && i < s->n; i++)
        json_array_append_new(points, point_json(&s->points[i]));
    return json_pack("{s:b,s:I,s:b,s:o,s:s,s:i,s:I,s:o,s:o,s:o,s:b,s:b,s:s,s:s}", "interrupted", s->end == BATCHES_STOPPED, "vocab", (json_int_t)s->vocab, "vocab_assumed", s->vocab_assumed, "delayed_share",
                     json_number(s->delayed_share < 0 ? NAN : s->delayed_share), "device", s->device, "threads", s->threads, "given", (json_int_t)s->given, "free_mb",
                     json_number(s->free_bytes > 0 ? s->free_bytes / 1e6 : NAN), "points", points, "sweet_spot",
                     s->spot >= 0 && !s->noisy ? json_integer((json_int_t)s->points[s->spot].batch) : json_null(), "open", s->open, "noisy", s->noisy, "words", spot, "given_words",
                     given);
}

/* ---- the learning rate ---- */

const char *const lr_rules[] = {[LR_SQRT] = "sqrt", [LR_LINEAR] = "linear", NULL};

const char *lr_rule_name(enum lr_rule r) { return lr_rules[r]; }

static void fewer(int64_t *steps, int64_t times) { *steps = *steps / times + (*steps % times != 0); }

static void fewer_between(struct interval *every, int64_t times)
{
    if (!every->epochs)
        fewer(&every->n, times);
}

struct config config_with_update(const struct config *c, int64_t times, enum lr_rule rule)
{
    struct config next = *c;
    const double factor = rule == LR_SQRT ? sqrt((double)times) : (double)times;
    next.train.accumulate *= times;
    next.train.lr *= factor;
    next.train.min_lr *= factor;
    fewer(&next.train.steps, times);
    fewer(&next.train.warmup, times);
    fewer(&next.log.every, times);
    fewer_between(&next.eval.every, times);
    fewer_between(&next.checkpoint.every, times);
    return next;
}
