/* The order of findings: what is to be done first stands first. Causes that pay come before their symptoms (launch-bound, which is what
 * many of them together look like), and so does what a graph cannot hold; then what pays little, then what costs no time. Of equal gains
 * the lower effort goes first. */
#include <math.h>
#include <string.h>

#include "analyze/traced/judge.h"

static const double PAYS = 1.02;            /* a speed-up from which on a cause is worth naming before its symptom */
static const double TIE = 1.02;             /* gains that differ by less are equal */

/* What must go before a step can be captured into a graph: waits, reads, and memory of the host that is gone at the replay. */
static const char *const not_in_graphs[] = {"host-sync", "device-to-host-copy", "tiny-host-tensors", "pageable-copies", "allocator-churn"};

bool finding_blocks_graphs(const struct finding *f)
{
    for (size_t i = 0; i < sizeof not_in_graphs / sizeof *not_in_graphs; i++)
        if (!strcmp(f->rule, not_in_graphs[i]))
            return true;
    return false;
}

enum place { CAUSE, SYMPTOM, SMALL, NO_TIME };

static enum place place_of(const struct finding *f)
{
    if (f->symptom)
        return f->speedup >= PAYS ? SYMPTOM : SMALL;
    if (f->speedup == 1 && f->speedup_low == 1 && f->speedup_high == 1)
        return NO_TIME;
    return f->speedup >= PAYS || finding_blocks_graphs(f) ? CAUSE : SMALL;
}

static bool is_before(const struct finding *a, const struct finding *b)
{
    const enum place x = place_of(a), y = place_of(b);
    if (x != y)
        return x < y;
    const double gain_a = floor(log(a->speedup) / log(TIE)), gain_b = floor(log(b->speedup) / log(TIE));
    if (gain_a != gain_b)
        return gain_a > gain_b;
    return a->effort != b->effort ? a->effort < b->effort : a->speedup > b->speedup;
}

/* The roadmap names findings by their place. */
static void make_room(struct diagnosis *d, int at)
{
    for (int p = 0; p < d->n_phases; p++) {
        int *list = arena_copy(&d->arena, d->phases[p].findings, (size_t)d->phases[p].n * sizeof *list);
        for (int i = 0; i < d->phases[p].n; i++)
            list[i] += list[i] >= at;
        d->phases[p].findings = list;
    }
}

void finding_insert(struct diagnosis *d, struct finding f)
{
    if (!d->findings)
        d->findings = arena_alloc(&d->arena, MOST_FINDINGS * sizeof *d->findings);
    if (d->n_findings == MOST_FINDINGS)
        return;
    int at = d->n_findings++;
    for (; at > 0 && is_before(&f, &d->findings[at - 1]); at--)
        d->findings[at] = d->findings[at - 1];
    d->findings[at] = f;
    make_room(d, at);
}
