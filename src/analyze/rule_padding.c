/* padding-waste: a noticeable part of what a step works on are tokens of no sample. */
#include "analyze/rules.h"

static const double WASTE_SHARE = 0.10;

bool rule_padding_waste(struct scene *s, struct claim *c)
{
    struct arena *a = &s->p->arena;
    const double now = positive(s->facts.padding), buckets = positive(s->facts.padding_least);
    const bool pack = !s->p->gpu && !s->facts.packs && positive(s->facts.padding_packed) < buckets;
    const double least = pack ? positive(s->facts.padding_packed) : buckets;
    if (s->step_us <= 0 || s->facts.bucket <= 0 || now <= WASTE_SHARE || now >= 1 || least >= now)
        return false;
    c->involved_us = s->step_us * now;
    c->won_us = s->step_us * (1 - (1 - now) / (1 - least));     /* time goes with tokens, that of scores with more */
    c->won_low_us = c->won_us / 2;
    c->won_high_us = c->involved_us;
    c->broad = true;
    c->finding.where = arena_printf(a, "every op between the batch and the loss");
    c->finding.cause = arena_printf(a, "%.1f %% of the tokens of a step are padding behind samples that are shorter than their row", 100 * now);
    if (pack)
        c->finding.fix = arena_printf(a, "--set data.pack=on: samples share rows, and see nothing of each other");
    else
        c->finding.fix = arena_printf(a, "%s--set data.bucket=%lld --set data.group=%lld: batches of samples of like length, which are no longer than "
                                      "that", s->facts.packs ? "--set data.pack=off " : "", (long long)s->facts.bucket, (long long)s->facts.group);
    c->finding.evidence = arena_printf(a, "by the lengths of some thousands of samples: %.1f %% padding as it is, %.1f %% with %s", 100 * now,
                                       100 * least, pack ? "rows that are shared" : "these buckets");
    return true;
}
