/* Threads, a barrier, and waiting that spins before it sleeps; see team.h. Who comes to a barrier counts itself in a group of a few, the last of a
 * group counts in a group of groups, and so on: a word that all threads change would go from core to core once for each of them. */
#include "core/team.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/clock.h"
#include "core/subnormal.h"

enum { CACHE_LINE = 128, GROUP = 4, MOST_SPINS = 4000, FEWEST_SPINS = 16, LOOK_AROUND = 64, FIRST_LOOK = 16, SHORT_NS = 50000, STACK_BYTES = 1 << 20 };

struct member {
    struct team *team;
    int index;
    pthread_t thread;
    int most_spins;                 /* before it sleeps; it learns */
    _Atomic uint64_t spins;         /* so far; written by itself alone */
    _Alignas(CACHE_LINE) _Atomic int cpu;       /* where it was when it last came to a meeting or left one */
    _Atomic uint32_t arrived;       /* the phase in which it last came to one */
};

/* How many of a group have arrived. */
struct group { _Alignas(CACHE_LINE) _Atomic uint32_t arrived; };

struct team {
    int members;
    struct member *list;
    struct group *groups;           /* of members, then of those, up to one of all */
    team_fn *fn;
    void *argument;
    bool stopping;
    _Alignas(CACHE_LINE) _Atomic uint32_t generation;   /* a new run starts when it changes */
    _Alignas(CACHE_LINE) _Atomic uint32_t phase;        /* a barrier opens when it changes */
    _Alignas(CACHE_LINE) _Atomic uint32_t sleepers;     /* a change must wake someone only when this is not 0 */
};

static _Thread_local int member_index;      /* of this thread, in the team whose run it is in */

static inline void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");               /* a short stall; yield is a no-op on many cores */
#endif
}

/* A sleeper announces itself before it looks at the word, and a changer looks for sleepers after it has changed the
 * word: both in sequentially consistent order, so one of them sees the other. */
static void sleep_while(struct team *t, _Atomic uint32_t *word, uint32_t seen)
{
    atomic_fetch_add(&t->sleepers, 1);
    if (atomic_load(word) == seen)
        syscall(SYS_futex, (void *)word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    atomic_fetch_sub(&t->sleepers, 1);
}

static void change(struct team *t, _Atomic uint32_t *word)
{
    atomic_fetch_add(word, 1);
    if (atomic_load(&t->sleepers))
        syscall(SYS_futex, (void *)word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* What a member waits for: that a word changes, which takes all others to arrive in a phase, or the first to start a run. */
struct awaited {
    _Atomic uint32_t *word;
    uint32_t seen;
};

static bool is_missing(const struct member *m, const struct awaited *w)
{
    return w->word == &m->team->phase ? atomic_load_explicit(&m->arrived, memory_order_relaxed) != w->seen : m->index == 0;
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

static void note_cpu(struct member *m) { atomic_store_explicit(&m->cpu, sched_getcpu(), memory_order_relaxed); }

static bool has_changed(const struct awaited *w) { return atomic_load_explicit(w->word, memory_order_acquire) != w->seen; }

enum spun { CHANGED, IN_THE_WAY, TOO_LONG };

static enum spun spin(struct member *m, const struct awaited *w)
{
    enum spun end = TOO_LONG;
    int i = 0;
    for (; i < m->most_spins && end == TOO_LONG; i++) {
        if (has_changed(w))
            end = CHANGED;
        else if (i % LOOK_AROUND == FIRST_LOOK && is_in_the_way(m, w))     /* not at once: it reads a line of every other member */
            end = IN_THE_WAY;
        else
            pause_cpu();
    }
    atomic_store_explicit(&m->spins, atomic_load_explicit(&m->spins, memory_order_relaxed) + (uint64_t)i, memory_order_relaxed);
    return end;
}

/* Returns once *word differs from `seen`. Spinning pays while the others run; where they do not, because other work has
 * the cores, it only keeps them from running. So every thread spins less after a wait that was too long and more again
 * after one that was not, and then sleeps: yielding instead would hand the core to other work for a whole time slice. A sleep that
 * was short says that spinning would have been enough: without that, threads that wake each other late would never spin again. Who
 * slept because it was in the way of another has learned nothing about that. */
static void wait_change(struct member *m, _Atomic uint32_t *word, uint32_t seen)
{
    const struct awaited w = {word, seen};
    const enum spun end = spin(m, &w);
    const int64_t start = end == TOO_LONG ? clock_ns() : 0;
    while (!has_changed(&w))
        sleep_while(m->team, word, seen);
    int next = m->most_spins;
    if (end == CHANGED)
        next += next / 8 + 1;
    else if (end == TOO_LONG)
        next = clock_ns() - start < SHORT_NS ? 2 * next : next / 2;
    m->most_spins = next < FEWEST_SPINS ? FEWEST_SPINS : next < MOST_SPINS ? next : MOST_SPINS;
    note_cpu(m);
}

static int groups_of(int n) { return (n + GROUP - 1) / GROUP; }

/* Counts a member in; true for the last of all. A group is empty again before anyone can come to it for the next time: that takes a new phase. */
static bool arrive(struct team *t, int place)
{
    struct group *level = t->groups;
    for (int count = t->members; count > 1; count = groups_of(count)) {
        const int group = place / GROUP, left = count - group * GROUP;
        if (atomic_fetch_add_explicit(&level[group].arrived, 1, memory_order_acq_rel) + 1 != (uint32_t)(left < GROUP ? left : GROUP))
            return false;
        atomic_store_explicit(&level[group].arrived, 0, memory_order_relaxed);
        place = group;
        level += groups_of(count);
    }
    return true;
}

static void meet(struct member *m)
{
    struct team *t = m->team;
    if (t->members == 1)
        return;
    const uint32_t seen = atomic_load_explicit(&t->phase, memory_order_acquire);
    note_cpu(m);
    atomic_store_explicit(&m->arrived, seen, memory_order_relaxed);
    if (arrive(t, m->index))
        change(t, &t->phase);
    else
        wait_change(m, &t->phase, seen);
}

void team_barrier(struct team *t) { meet(&t->list[member_index]); }

static void *member_main(void *argument)
{
    struct member *m = argument;
    struct team *t = m->team;
    member_index = m->index;
    subnormals_flush();
    for (uint32_t seen = 0;; seen++) {
        wait_change(m, &t->generation, seen);
        if (t->stopping)
            return NULL;
        t->fn(t->argument, m->index);
        meet(m);
    }
}

void team_run(struct team *t, team_fn *fn, void *argument)
{
    const int outer = member_index;
    const subnormals_mode mode = subnormals_flush();
    member_index = 0;
    t->fn = fn;
    t->argument = argument;
    if (t->members > 1) {
        note_cpu(&t->list[0]);
        change(t, &t->generation);
    }
    fn(argument, 0);
    meet(&t->list[0]);
    subnormals_restore(mode);
    member_index = outer;
}

uint64_t team_spins(const struct team *t)
{
    uint64_t sum = 0;
    for (int i = 0; i < t->members; i++)
        sum += atomic_load_explicit(&t->list[i].spins, memory_order_relaxed);
    return sum;
}

/* With a stack of the same size everywhere, whatever `ulimit -s` says: kernels need little of it, BLAS some. */
static int start(struct member *m)
{
    pthread_attr_t attributes;
    int code = pthread_attr_init(&attributes);
    if (!code)
        code = pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (!code)
        code = pthread_create(&m->thread, &attributes, member_main, m);
    pthread_attr_destroy(&attributes);
    return code;
}

static enum status start_members(struct team *t, struct error *err)
{
    for (int i = 1; i < t->members; i++) {
        const int code = start(&t->list[i]);
        if (code) {
            t->members = i;     /* those that run must still be stopped */
            return error_set(err, CANNOT, "cannot start thread %d: %s; try fewer threads", i, strerror(code));
        }
    }
    return OK;
}

/* Zeroed, in whole cache lines. */
static void *lines(size_t bytes)
{
    void *memory = aligned_alloc(CACHE_LINE, (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
    return memory ? memset(memory, 0, bytes) : NULL;
}

enum status team_new(struct team **out, int members, struct error *err)
{
    const size_t list = (size_t)members * sizeof(struct member), groups = (size_t)members * sizeof(struct group);       /* no more than members */
    struct team *t = lines(sizeof *t);
    if (!t)
        return error_no_memory(err, "a team of threads", sizeof *t);
    t->members = members;
    t->list = lines(list);
    t->groups = lines(groups);
    if (!t->list || !t->groups) {
        free(t->list);
        free(t->groups);
        free(t);
        return error_no_memory(err, "a team of threads", list + groups);
    }
    for (int i = 0; i < members; i++)
        t->list[i] = (struct member){.team = t, .index = i, .most_spins = MOST_SPINS, .cpu = -1, .arrived = UINT32_MAX};
    const enum status st = start_members(t, err);
    if (st != OK) {
        team_free(t);
        return st;
    }
    *out = t;
    return OK;
}

void team_free(struct team *t)
{
    if (!t)
        return;
    t->stopping = true;
    change(t, &t->generation);
    for (int i = 1; i < t->members; i++)
        pthread_join(t->list[i].thread, NULL);
    free(t->list);
    free(t->groups);
    free(t);
}

int team_size(const struct team *t) { return t->members; }

struct span team_span(int64_t n, int64_t unit, int member, int members)
{
    const int64_t units = (n + unit - 1) / unit;
    struct span s = {units * member / members * unit, units * (member + 1) / members * unit};
    if (s.lo > n)
        s.lo = n;
    if (s.hi > n)
        s.hi = n;
    return s;
}
