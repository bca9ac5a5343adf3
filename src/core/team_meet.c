/* How all members of a team meet; see team_int.h. Who comes counts itself in a group of a few, the last of a group counts in a group of groups, and
 * so on, in a number of steps that grows with the logarithm of members, and the last of all lets them go. A member that sleeps meanwhile is woken once.
 *
 * That everybody tells others, in rounds, was tried: a bare meeting of 16 threads took 0.6 to 0.9 us instead of 0.9 to 1.9, and a step no less (docs/performance.md); where
 * cores have other work a sleeper must run again for every round, and 16 threads on two cores took 0.34 ms instead of 0.026. */
#include <stdlib.h>
#include <string.h>

#include "core/team_int.h"

enum { FAN = 4 };

static int groups_of(int n) { return (n + FAN - 1) / FAN; }

/* Counts a member in; true for the last of all. A group is empty again before anyone can come to it for the next time: that takes a new phase. */
static bool arrive(struct team *t, int place)
{
    struct word *level = t->groups;
    for (int count = t->members; count > 1; count = groups_of(count)) {
        const int group = place / FAN, left = count - group * FAN;
        if (atomic_fetch_add_explicit(&level[group].n, 1, memory_order_acq_rel) + 1 != (uint32_t)(left < FAN ? left : FAN))
            return false;
        atomic_store_explicit(&level[group].n, 0, memory_order_relaxed);
        place = group;
        level += groups_of(count);
    }
    return true;
}

void member_meet(struct member *m)
{
    struct team *t = m->team;
    if (t->members == 1)
        return;
    const uint32_t come = atomic_load_explicit(&m->arrived, memory_order_relaxed) + 1;
    member_note_cpu(m);
    atomic_store_explicit(&m->arrived, come, memory_order_relaxed);
    if (!arrive(t, m->index)) {
        member_wait(m, &(struct awaited){&t->phase.n, come, &t->sleepers.n});
        return;
    }
    word_advance(t, &t->phase.n);
}

static struct word *words(size_t n)
{
    struct word *list = aligned_alloc(CACHE_LINE, (n + 1) * sizeof *list);
    return list ? memset(list, 0, (n + 1) * sizeof *list) : NULL;
}

bool team_meet_init(struct team *t)
{
    t->groups = words((size_t)t->members);      /* there are fewer */
    return t->groups != NULL;
}

void team_meet_release(struct team *t) { free(t->groups); }
