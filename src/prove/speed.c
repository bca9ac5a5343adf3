/* What turns say of the gain, and whether more of them would say more. */
#include <math.h>
#include <stdlib.h>

#include "core/arena.h"
#include "prove/prove_int.h"

static const double CONFIDENCE = 0.9;
static const double NARROW = 0.04;          /* of the gain: an interval that is no wider, around the limit, says that it is not passed */

static const double UNDISTURBED = 0.02;     /* of the time of the threads of a turn, at most, without a core */
static const double OWN_LEAST = 0.01;       /* of a turn, at least, is the program's own, however long it waited */

/* ---- other work on the machine ---- */

static double delay_of(const struct evidence_side *s, int turn) { return s->turn_delay ? s->turn_delay[turn] : -1; }

static double mean_delay(const struct evidence_side *s, int turns)
{
    double sum = 0;
    int known = 0;
    for (int i = 0; i < turns; i++)
        if (delay_of(s, i) >= 0) {
            sum += delay_of(s, i);
            known++;
        }
    return known ? sum / known : -1;
}

/* What is left of a turn without the delay: at worst each thread waited while all others waited for it. */
static double own_part(const struct evidence_side *s, int turns)
{
    return fmax(1 - fmax(mean_delay(s, turns), 0) * s->lanes, OWN_LEAST);
}

/* Pairs in which neither side was disturbed, (turns) at most. */
static int undisturbed(const struct evidence *e, double *a, double *b)
{
    int n = 0;
    for (int i = 0; i < e->turns; i++)
        if (delay_of(&e->a, i) <= UNDISTURBED && delay_of(&e->b, i) <= UNDISTURBED) {
            a[n] = e->a.turn_us[i];
            b[n++] = e->b.turn_us[i];
        }
    return n;
}

/* ---- the gain ---- */

static struct speed speed_in(const double *a, const double *b, int n, uint64_t seed)
{
    struct speed s = {.ratio = bootstrap_ratio(a, b, n, CONFIDENCE, seed), .modes = modes_find(a, b, n), .turns = n};
    if (s.modes.two) {
        s.ratio.low = fmin(s.ratio.low, s.modes.below);
        s.ratio.high = fmax(s.ratio.high, s.modes.above);
    }
    return s;
}

struct speed speed_of(const struct evidence *e)
{
    double *a = xcalloc((size_t)e->turns, sizeof *a), *b = xcalloc((size_t)e->turns, sizeof *b);
    const int clean = undisturbed(e, a, b);
    const double delayed = fmax(mean_delay(&e->a, e->turns), mean_delay(&e->b, e->turns));
    const bool enough = clean >= TURNS_FEWEST;
    struct speed s = speed_in(enough ? a : e->a.turn_us, enough ? b : e->b.turn_us, enough ? clean : e->turns, (uint64_t)e->limits->train.seed);
    s.left_out = e->turns - s.turns;
    s.delayed = delayed;
    s.disturbed = !enough && delayed > UNDISTURBED;
    if (s.disturbed) {
        s.ratio.low *= own_part(&e->a, e->turns);
        s.ratio.high /= own_part(&e->b, e->turns);
    }
    free(a);
    free(b);
    return s;
}

/* Had what comes and goes helped one side in every turn, it would have given it as much as the groups are apart: what is left without that decides. */
static bool modes_agree(const struct modes *m, double limit)
{
    const double apart = m->high / m->low;
    return limit > 0 && (m->below / apart > limit || m->above * apart <= limit);
}

bool speed_is_settled(const struct speed *s, double limit)
{
    const struct ratio *r = &s->ratio;
    if (s->disturbed)
        return r->low > limit || r->high <= limit;
    return s->modes.two ? modes_agree(&s->modes, limit) : (r->high - r->low <= NARROW * r->value || r->low > limit || r->high <= limit);
}
