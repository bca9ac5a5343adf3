/* How members of a team help each other; see team.h. Who has work in pieces takes them from the first on; who waits at a meeting looks for somebody with some
 * left, and takes the last. The owner does not go on before all that were taken are done, so what is behind them may rely on them
 * as if it had done them itself. */
#include <assert.h>

#include "core/clock.h"
#include "core/team_int.h"

/* What is left of a job, in one word: its number, so that a word of another job is never mistaken for it, and pieces [lo, hi). */
enum { MOST = 0xffff };
struct left { uint32_t number, lo, hi; };

static uint64_t pack(struct left l) { return (uint64_t)l.number << 32 | l.lo << 16 | l.hi; }
static struct left unpack(uint64_t word) { return (struct left){(uint32_t)(word >> 32), (uint32_t)(word >> 16 & MOST), (uint32_t)(word & MOST)}; }

/* The first piece that is left, for the owner; -1: none. */
static int take_first(struct job *j)
{
    uint64_t seen = atomic_load_explicit(&j->left, memory_order_relaxed);
    struct left l = unpack(seen);
    while (l.lo < l.hi) {
        const int piece = (int)l.lo++;
        if (atomic_compare_exchange_weak_explicit(&j->left, &seen, pack(l), memory_order_relaxed, memory_order_relaxed))
            return piece;
        l = unpack(seen);
    }
    return -1;
}

/* The last, for somebody else; -1: none, or others were faster. */
static int take_last(struct job *j)
{
    uint64_t seen = atomic_load_explicit(&j->left, memory_order_relaxed);
    struct left l = unpack(seen);
    if (l.lo >= l.hi)
        return -1;
    l.hi--;
    return atomic_compare_exchange_strong_explicit(&j->left, &seen, pack(l), memory_order_acquire, memory_order_relaxed) ? (int)l.hi : -1;
}

void team_pieces(piece_fn *fn, void *argument, int n)
{
    struct member *m = member_self();
    assert(!m || !m->engaged);
    if (!m || !m->helps || m->team->members == 1 || n < 2 || n > MOST) {
        for (int i = 0; i < n; i++)
            fn(argument, i, -1);
        return;
    }
    struct job *j = &m->job;
    const uint32_t number = unpack(atomic_load_explicit(&j->left, memory_order_relaxed)).number + 1;
    j->fn = fn;
    j->argument = argument;
    atomic_store_explicit(&m->engaged, true, memory_order_relaxed);
    atomic_store_explicit(&j->left, pack((struct left){number, 0, (uint32_t)n}), memory_order_release);
    for (int piece; (piece = take_first(j)) >= 0;)
        fn(argument, piece, -1);
    m->given += (uint32_t)n - unpack(atomic_load_explicit(&j->left, memory_order_relaxed)).hi;
    atomic_store_explicit(&m->engaged, false, memory_order_relaxed);
    if (atomic_load_explicit(&j->helped, memory_order_acquire) != m->given)
        member_wait(m, &(struct awaited){&j->helped, m->given, &m->team->sleepers.n});
}

/* What all members have in work. */
struct view {
    int most;                   /* who has most pieces left; -1: nobody has any */
    uint64_t sum;               /* of all words: it changes with every piece that somebody takes */
};

static struct view look(const struct team *t)
{
    struct view v = {.most = -1};
    uint32_t pieces = 0;
    for (int i = 0; i < t->members; i++) {
        const uint64_t word = atomic_load_explicit(&t->list[i].job.left, memory_order_relaxed);
        const struct left l = unpack(word);
        v.sum += word;
        if (l.hi - l.lo > pieces) {
            pieces = l.hi - l.lo;
            v.most = i;
        }
    }
    return v;
}

static void do_piece(const struct member *m, int owner, int piece)
{
    const struct team *t = m->team;
    const struct job *j = &t->list[owner].job;
    help_fn *const watch = t->habits.watch;
    const int64_t start = watch ? clock_ns() : 0;
    j->fn(j->argument, piece, m->index);
    if (watch)
        watch(t->argument, owner, m->index, start, clock_ns());
}

enum work member_help(struct member *m, uint64_t *seen)
{
    const struct view v = look(m->team);
    struct job *j = v.most < 0 ? NULL : &m->team->list[v.most].job;
    const int piece = j ? take_last(j) : -1;
    const bool goes_on = v.sum != *seen;
    *seen = v.sum;
    if (piece < 0)
        return goes_on ? WORK_GOES_ON : v.most < 0 ? NO_WORK : WORK;
    atomic_store_explicit(&m->engaged, true, memory_order_relaxed);
    do_piece(m, v.most, piece);
    atomic_store_explicit(&m->engaged, false, memory_order_relaxed);
    word_advance(m->team, &j->helped);
    return WORK_GOES_ON;
}

void team_run_helping(struct team *t, team_fn *fn, void *argument, const struct team_habits *habits)
{
    t->helps = true;
    t->habits = *habits;
    team_run(t, fn, argument);
    t->helps = false;
    t->habits = (struct team_habits){0};
}

uint64_t team_helped(const struct team *t)
{
    uint64_t sum = 0;
    for (int i = 0; i < t->members; i++)
        sum += atomic_load_explicit(&t->list[i].job.helped, memory_order_relaxed);
    return sum;
}
