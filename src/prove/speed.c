/* What turns say of the gain, and whether more of them would say more. */
#include <math.h>
#include <stdlib.h>

#include "core/arena.h"
#include "prove/prove_int.h"

static const double NARROW = 0.04;          /* of the gain: an interval that is no wider, around the limit, says that it is not passed */

static const double UNDISTURBED = 0.02;     /* of the time of the threads of a turn, at most, without a core */
static const double OWN_LEAST = 0.01;       /* of a turn, at least, is the program's own, however long it waited */

enum { CLEAN_FEWEST = 3 };                   /* openings with undisturbed turns */

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

static bool is_undisturbed(const struct evidence *e, int turn)
{
    return delay_of(&e->a, turn) <= UNDISTURBED && delay_of(&e->b, turn) <= UNDISTURBED;
}

static struct pairs pairs_new(int n)
{
    return (struct pairs){xcalloc((size_t)n, sizeof(double)), xcalloc((size_t)n, sizeof(double)), xcalloc((size_t)n, sizeof(int)), 0};
}

static void pairs_release(struct pairs *p)
{
    free(p->a);
    free(p->b);
    free(p->opening);
}

static void add_pair(struct pairs *to, const struct evidence *e, int turn)
{
    to->a[to->n] = e->a.turn_us[turn];
    to->b[to->n] = e->b.turn_us[turn];
    to->opening[to->n++] = e->opening[turn];
}

/* Pairs in which neither side was disturbed, of openings with enough of them; returns how many of these there are. */
static int take_undisturbed(struct pairs *to, const struct evidence *e)
{
    int openings = 0;
    for (int from = 0, end; from < e->turns; from = end) {
        const int before = to->n;
        for (end = from; end < e->turns && e->opening[end] == e->opening[from]; end++)
            if (is_undisturbed(e, end))
                add_pair(to, e, end);
        if (to->n - before < TURNS_FEWEST)
            to->n = before;
        openings += to->n > before;
    }
    return openings;
}

static void take_all(struct pairs *to, const struct evidence *e)
{
    to->n = 0;
    for (int i = 0; i < e->turns; i++)
        add_pair(to, e, i);
}

/* ---- the gain ---- */

static struct speed speed_in(const struct pairs *p)
{
    struct speed s = {.ratio = ratio_of_pairs(p), .modes = modes_find(p), .turns = p->n};
    if (s.modes.two) {
        s.ratio.low = fmin(s.ratio.low, s.modes.below);
        s.ratio.high = fmax(s.ratio.high, s.modes.above);
    }
    return s;
}

struct speed speed_of(const struct evidence *e)
{
    struct pairs p = pairs_new(e->turns);
    const bool enough = take_undisturbed(&p, e) >= CLEAN_FEWEST;
    if (!enough)
        take_all(&p, e);
    struct speed s = speed_in(&p);
    s.left_out = e->turns - s.turns;
    s.delayed = fmax(mean_delay(&e->a, e->turns), mean_delay(&e->b, e->turns));
    s.disturbed = !enough && s.delayed > UNDISTURBED;
    if (s.disturbed) {
        s.ratio.low *= own_part(&e->a, e->turns);
        s.ratio.high /= own_part(&e->b, e->turns);
    }
    pairs_release(&p);
    return s;
}

/* Had what comes and goes helped one side in every turn, it would have given it as much as the groups are apart: what is left without that decides. */
static bool modes_agree(const struct modes *m, double limit)
{
    const double apart = m->high / m->low;
    return limit > 0 && (m->below / apart > limit || m->above * apart <= limit);
}

static bool is_decided(const struct speed *s, double limit, double low, double high)
{
    const struct ratio *r = &s->ratio;
    const bool aside = low > limit || high <= limit;
    if (s->disturbed)
        return aside;
    return s->modes.two ? modes_agree(&s->modes, limit) : aside || r->high - r->low <= NARROW * r->value;
}

bool speed_is_settled(const struct speed *s, double limit) { return is_decided(s, limit, s->ratio.low, s->ratio.high); }

bool speed_is_sure(const struct speed *s, double limit)
{
    return is_decided(s, limit, fmin(s->ratio.low, s->ratio.sure_low), fmax(s->ratio.high, s->ratio.sure_high));
}
