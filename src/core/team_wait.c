/* How a member of a team waits: it spins, and then it sleeps; see team_int.h. */
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/system.h"
#include "core/team_int.h"

enum { LOOK_AROUND = 64, FIRST_LOOK = 16, HELP_EVERY = 4 };        /* spins */

static const int64_t SHORT_NS = 50000;

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

/* ---- what is learned ---- */

/* Spinning pays while the others run; where they do not, because other work has the cores, it only keeps them from running. So a thread spins less after a wait that was too
 * long and more again after one that was not. A sleep that was short says that spinning would have been enough. */
int64_t patience_learned(int64_t patience_ns, int64_t slept_ns)
{
    const int64_t next = slept_ns < 0 ? patience_ns + patience_ns / 8 + 1000 : slept_ns < SHORT_NS ? 2 * patience_ns + 1000 : patience_ns / 2;
    return next < MOST_NS ? next : MOST_NS;
}

void word_advance(struct team *t, _Atomic uint32_t *word)
{
    atomic_fetch_add(word, 1);
    if (atomic_load(&t->sleepers.n))
        syscall(SYS_futex, (void *)word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* ---- waiting ---- */

static bool is_for_a_run(const struct member *m, const struct awaited *w) { return w->word == &m->team->generation.n; }
static bool is_at_meeting(const struct member *m, const struct awaited *w) { return w->word == &m->team->phase.n; }

/* Who starts runs is member 0; who helps is in a job. */
static bool is_missing(const struct member *m, const struct awaited *w)
{
    if (is_at_meeting(m, w))
        return (int32_t)(atomic_load_explicit(&m->arrived, memory_order_relaxed) - w->until) < 0;
    return is_for_a_run(m, w) ? m->index == 0 : atomic_load_explicit(&m->engaged, memory_order_relaxed);
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

enum spun { SPINS, CAME, IN_THE_WAY, TOO_LONG, BEHIND_WORK };

/* Whether somebody may want the core of one who spins: more threads run than would fit, even if all of them ran here; or nobody knows. To look takes some microseconds, so what
 * one has seen is good for all for a while. */
static bool is_crowded(struct team *t, int64_t now_ns)
{
    if (t->cores == 0)
        return true;
    if (now_ns - atomic_load_explicit(&t->looked_ns, memory_order_relaxed) >= MOST_NS) {
        const int running = system_running(t->root);
        atomic_store_explicit(&t->crowded, running == 0 || running > t->cores, memory_order_relaxed);
        atomic_store_explicit(&t->looked_ns, now_ns, memory_order_relaxed);
    }
    return atomic_load_explicit(&t->crowded, memory_order_relaxed);
}

/* How long it spins: so long since somebody has gone on with work, and in all. */
struct vigil {
    int64_t begun_ns, since_ns, patience_ns, most_ns, longest_ns;
};

/* Where it takes long to wake up, as in virtual machines that share their cores, threads that have once slept come to the next meeting so far apart that they sleep again, and the whole
 * run takes ten times as long. So who has lost its patience goes on all the same while there are cores for all. */
static enum spun look_around(const struct member *m, const struct awaited *w, struct vigil *v)
{
    const int64_t now = clock_ns();
    v->begun_ns = v->begun_ns ? v->begun_ns : now;
    v->since_ns = v->since_ns ? v->since_ns : now;
    if (is_in_the_way(m, w))
        return IN_THE_WAY;
    if (now - v->since_ns < v->most_ns)
        return SPINS;
    if (now - v->begun_ns >= v->longest_ns || is_crowded(m->team, now))
        return TOO_LONG;
    v->since_ns = now;
    v->most_ns = v->patience_ns = MOST_NS;
    return SPINS;
}

/* At a meeting it looks for work that it can help with. While there is some it is as patient as can be, and from the beginning whenever somebody has gone on with it. */
static enum spun spin(struct member *m, const struct awaited *w, const int64_t patience_ns)
{
    const bool helps = m->helps && is_at_meeting(m, w);
    team_fn *const idle = helps ? m->idle : NULL;
    struct vigil v = {.patience_ns = patience_ns, .most_ns = patience_ns, .longest_ns = is_for_a_run(m, w) ? MOST_NS : LONGEST_NS};
    enum spun end = SPINS;
    uint64_t seen = 0, spins = 0;
    bool behind_work = false;
    for (; end == SPINS; spins++) {
        if (helps && spins % HELP_EVERY == 0 && !has_come(w)) {
            const enum work work = member_help(m, &seen);
            behind_work = behind_work || (spins > 0 && work != NO_WORK);        /* the first look has nothing to compare with */
            v.most_ns = work == NO_WORK ? v.patience_ns : MOST_NS;
            v.since_ns = work == WORK_GOES_ON ? 0 : v.since_ns;
        }
        if (has_come(w)) {
            end = CAME;
        } else if (spins % LOOK_AROUND == FIRST_LOOK) {
            end = look_around(m, w, &v);
        } else {
            if (idle)
                idle(m->team->argument, m->index);
            pause_cpu();
        }
    }
    count(&m->spins, spins);
    return behind_work && end != IN_THE_WAY ? BEHIND_WORK : end;
}

/* Returns once it has come. Who has spun for long enough sleeps: yielding instead would hand the core to other work for a whole time slice. Who slept because it was in the way
 * of another, or behind others' work, has learned nothing. */
void member_wait(struct member *m, const struct awaited *w)
{
    int64_t *patience = &m->patience_ns[is_for_a_run(m, w) ? WAIT_FOR_RUN : WAIT_IN_RUN];
    const enum spun end = spin(m, w, *patience);
    const int64_t asleep = end == TOO_LONG ? clock_ns() : 0;
    while (!has_come(w))
        sleep_until(w);
    if (end == CAME || end == TOO_LONG)
        *patience = patience_learned(*patience, end == CAME ? -1 : clock_ns() - asleep);
    member_note_cpu(m);
}
