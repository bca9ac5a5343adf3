/* Threads, a sense-counting barrier, and waiting that spins before it sleeps; see team.h. */
#include "core/team.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/clock.h"

enum { CACHE_LINE = 128, MOST_SPINS = 4000, FEWEST_SPINS = 16, SHORT_NS = 50000 };

struct member {
    struct team *team;
    int index;
    pthread_t thread;
};

struct team {
    int members;
    struct member *list;
    team_fn *fn;
    void *argument;
    bool stopping;
    _Alignas(CACHE_LINE) _Atomic uint32_t generation;   /* a new run starts when it changes */
    _Alignas(CACHE_LINE) _Atomic uint32_t arrived;
    _Alignas(CACHE_LINE) _Atomic uint32_t phase;        /* a barrier opens when it changes */
    _Alignas(CACHE_LINE) _Atomic uint32_t sleepers;     /* a change must wake someone only when this is not 0 */
};

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

/* Returns once *word differs from `seen`. Spinning pays while the others run; where they do not, because other work has
 * the cores, it only keeps them from running. So every thread spins less after a wait that was too long and more again
 * after one that was not, and then sleeps: yielding instead would hand the core to other work for a whole time slice. A sleep that
 * was short says that spinning would have been enough: without that, threads that wake each other late would never spin again. */
static void wait_change(struct team *t, _Atomic uint32_t *word, uint32_t seen)
{
    static _Thread_local int spins = MOST_SPINS;
    for (int i = 0; i < spins; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != seen) {
            spins += spins < MOST_SPINS ? spins / 8 + 1 : 0;
            return;
        }
        pause_cpu();
    }
    const int64_t start = clock_ns();
    while (atomic_load_explicit(word, memory_order_acquire) == seen)
        sleep_while(t, word, seen);
    const bool short_sleep = clock_ns() - start < SHORT_NS;
    const int next = short_sleep ? 2 * spins : spins / 2;
    spins = next < FEWEST_SPINS ? FEWEST_SPINS : next < MOST_SPINS ? next : MOST_SPINS;
}

void team_barrier(struct team *t)
{
    if (t->members == 1)
        return;
    const uint32_t seen = atomic_load_explicit(&t->phase, memory_order_acquire);
    if (atomic_fetch_add_explicit(&t->arrived, 1, memory_order_acq_rel) + 1 == (uint32_t)t->members) {
        atomic_store_explicit(&t->arrived, 0, memory_order_relaxed);
        change(t, &t->phase);
    } else {
        wait_change(t, &t->phase, seen);
    }
}

static void *member_main(void *argument)
{
    struct member *m = argument;
    struct team *t = m->team;
    for (uint32_t seen = 0;; seen++) {
        wait_change(t, &t->generation, seen);
        if (t->stopping)
            return NULL;
        t->fn(t->argument, m->index);
        team_barrier(t);
    }
}

void team_run(struct team *t, team_fn *fn, void *argument)
{
    t->fn = fn;
    t->argument = argument;
    if (t->members > 1)
        change(t, &t->generation);
    fn(argument, 0);
    team_barrier(t);
}

static enum status start_members(struct team *t, struct error *err)
{
    for (int i = 1; i < t->members; i++) {
        t->list[i] = (struct member){.team = t, .index = i};
        const int code = pthread_create(&t->list[i].thread, NULL, member_main, &t->list[i]);
        if (code) {
            t->members = i;     /* those that run must still be stopped */
            return error_set(err, CANNOT, "cannot start thread %d: %s; try fewer threads", i, strerror(code));
        }
    }
    return OK;
}

enum status team_new(struct team **out, int members, struct error *err)
{
    struct team *t = aligned_alloc(CACHE_LINE, (sizeof *t + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
    if (!t)
        return error_no_memory(err, "a team of threads", sizeof *t);
    memset(t, 0, sizeof *t);
    t->members = members;
    t->list = xcalloc((size_t)members, sizeof *t->list);
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
