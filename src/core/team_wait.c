/* How a member of a team waits: it spins, and then it sleeps; see team_int.h. */
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/team_int.h"

enum { FEWEST_SPINS = 16, LOOK_AROUND = 64, FIRST_LOOK = 16, SHORT_NS = 50000, HELP_EVERY = 4 };

static inline void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");               /* a short stall; yield is a no-op on many cores */
#endif
}

static bool has_come(const struct awaited *w) { return (int32_t)(atomic_load_explicit(w->word, memory_order_acquire) - w->until) >= 0; }

/* A sleeper announces itself before it looks at the word, and a changer looks for sleepers after it has changed the
 * word: both in sequentially consistent order, so one of them sees the other. */
static void sleep_until(const struct awaited *w)
{
    atomic_fetch_add(w->asleep, 1);
    const uint32_t seen = atomic_load(w->word);
    if ((int32_t)(seen - w->until) < 0)
        syscall(SYS_futex, (void *)w->word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    atomic_fetch_sub(w->asleep, 1);
}

void word_wake(_Atomic uint32_t *word) { syscall(SYS_futex, (void *)word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0); }

static bool is_at_meeting(const struct member *m, const struct awaited *w) { return w->word == &m->team->phase.n; }

/* Who starts runs is member 0; who helps is in a job. */
static bool is_missing(const struct member *m, const struct awaited *w)
{
    if (is_at_meeting(m, w))
        return (int32_t)(atomic_load_explicit(&m->arrived, memory_order_relaxed) - w->until) < 0;
    return w->word == &m->team->generation.n ? m->index == 0 : atomic_load_explicit(&m->engaged, memory_order_relaxed);
}

/* One that is waited for was last seen on the core that this member has now: so that one does not run. */
static bool is_in_the_way(const struct member *m, const struct awaited *w)
{
    const int cpu = sched_getcpu();
    for (int i = 0; i < m->team->members; i++) {
        const struct member *other = &m->team->list[i];
        if (other != m && atomic_load_explicit(&other->cpu, memory_order_relaxed) == cpu && is_missing(other, w))
            return true;
    }
    return false;
}

void member_note_cpu(struct member *m) { atomic_store_explicit(&m->cpu, sched_getcpu(), memory_order_relaxed); }

static void count(_Atomic uint64_t *own, uint64_t more)
{
    atomic_store_explicit(own, atomic_load_explicit(own, memory_order_relaxed) + more, memory_order_relaxed);
}

enum spun { CAME, IN_THE_WAY, TOO_LONG, BEHIND_WORK };

/* At a meeting it looks for work that it can help with. While there is some it looks longer, and from the beginning whenever somebody has gone on with it. */
static enum spun spin(struct member *m, const struct awaited *w)
{
    const bool helps = m->helps && is_at_meeting(m, w);
    enum spun end = TOO_LONG;
    uint64_t seen = 0, spins = 0;
    bool behind_work = false;
    for (int i = 0, most = m->most_spins; i < most && end == TOO_LONG; i++, spins++) {
        if (helps && i % HELP_EVERY == 0 && !has_come(w)) {
            const enum work work = member_help(m, &seen);
            behind_work = behind_work || (spins > 0 && work != NO_WORK);        /* the first look has nothing to compare with */
            most = work == NO_WORK ? m->most_spins : MOST_SPINS;
            i = work == WORK_GOES_ON ? 0 : i;
        }
        if (has_come(w))
            end = CAME;
        else if (spins % LOOK_AROUND == FIRST_LOOK && is_in_the_way(m, w))
            end = IN_THE_WAY;
        else
            pause_cpu();
    }
    count(&m->spins, spins);
    return behind_work && end != IN_THE_WAY ? BEHIND_WORK : end;
}

/* Returns once it has come. Spinning pays while the others run; where they do not, because other work has
 * the cores, it only keeps them from running. So every thread spins less after a wait that was too long and more again
 * after one that was not, and then sleeps: yielding instead would hand the core to other work for a whole time slice. A sleep that
 * was short says that spinning would have been enough: without that, threads that wake each other late would never spin again. Who
 * slept because it was in the way of another, or behind others' work, has learned nothing about that. */
void member_wait(struct member *m, const struct awaited *w)
{
    const enum spun end = spin(m, w);
    const int64_t start = end == TOO_LONG ? clock_ns() : 0;
    while (!has_come(w))
        sleep_until(w);
    int next = m->most_spins;
    if (end == CAME)
        next += next / 8 + 1;
    else if (end == TOO_LONG)
        next = clock_ns() - start < SHORT_NS ? 2 * next : next / 2;
    m->most_spins = next < FEWEST_SPINS ? FEWEST_SPINS : next < MOST_SPINS ? next : MOST_SPINS;
    member_note_cpu(m);
}
