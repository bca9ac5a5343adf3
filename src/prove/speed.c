/* What turns say of the gain, and whether more of them would say more. */
#include <math.h>

#include "prove/prove_int.h"

static const double CONFIDENCE = 0.9;
static const double NARROW = 0.04;          /* of the gain: an interval that is no wider, around the limit, says that it is not passed */

struct speed speed_of(const struct evidence *e)
{
    struct speed s = {.ratio = bootstrap_ratio(e->a.turn_us, e->b.turn_us, e->turns, CONFIDENCE, (uint64_t)e->limits->train.seed),
                      .modes = modes_find(e->a.turn_us, e->b.turn_us, e->turns)};
    if (s.modes.two) {
        s.ratio.low = fmin(s.ratio.low, s.modes.below);
        s.ratio.high = fmax(s.ratio.high, s.modes.above);
    }
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
    return s->modes.two ? modes_agree(&s->modes, limit) : (r->high - r->low <= NARROW * r->value || r->low > limit || r->high <= limit);
}
