/* The threads of a team: they start, run, and end; see team.h. */
#include "core/team.h"

#include <assert.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/subnormal.h"
#include "core/system.h"
#include "core/team_int.h"

enum { STACK_BYTES = 1 << 20 };

static _Thread_local struct member *self;

struct member *member_self(void) { return self; }

void team_barrier(struct team *t)
{
    assert(self && self->team == t);
    member_meet(self);
}

/* A member's part of a run. */
static void work(struct member *m)
{
    const struct team *t = m->team;
    m->helps = t->helps;
    m->idle = t->habits.idle;
    t->fn(t->argument, m->index);
    m->idle = NULL;
}

static void *member_main(void *argument)
{
    struct member *m = argument;
    struct team *t = m->team;
    self = m;
    if (t->nodes)
        nodes_bind(t->nodes, nodes_of_thread(t->nodes, m->index));
    subnormals_flush();
    for (uint32_t run = 1;; run++) {
        member_wait(m, &(struct awaited){&t->generation.n, run, &t->sleepers.n});
        if (t->stopping)
            return NULL;
        work(m);
        member_meet(m);
    }
}

void team_run(struct team *t, team_fn *fn, void *argument)
{
    struct member *const outer = self;
    const subnormals_mode mode = subnormals_flush();
    self = &t->list[0];
    t->fn = fn;
    t->argument = argument;
    if (t->members > 1) {
        member_note_cpu(&t->list[0]);
        word_advance(t, &t->generation.n);
    }
    work(&t->list[0]);
    member_meet(&t->list[0]);
    subnormals_restore(mode);
    self = outer;
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

static const char *root = "";           /* before /proc and /sys */

void team_root(const char *folder) { root = folder ? folder : ""; }

/* Where there are several nodes and as many threads as cores, every thread stays on one node, and so near the memory that it was the first to
 * touch. The caller, member 0, may run anywhere, as threads that it starts may: there is one core for it. With fewer threads the system does better: it
 * knows what else runs, and other ranks have threads of their own. */
static struct nodes *find_nodes(int members)
{
    struct nodes *n = xcalloc(1, sizeof *n);
    nodes_read(n, root);
    if (n->n > 1 && n->cpus == members)
        return n;
    free(n);
    return NULL;
}

/* Zeroed, in whole cache lines. */
static void *lines(size_t bytes)
{
    void *memory = aligned_alloc(CACHE_LINE, (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
    return memory ? memset(memory, 0, bytes) : NULL;
}

static void release(struct team *t)
{
    team_meet_release(t);
    free(t->list);
    free(t->nodes);
    free(t);
}

static _Thread_local bool sharing;
static _Thread_local struct team *shared;       /* the first that was made meanwhile and is still there */

void team_share(bool on)
{
    sharing = on;
    if (!on)
        shared = NULL;
}

static enum status make_team(struct team **out, int members, struct error *err)
{
    const size_t list = (size_t)members * sizeof(struct member);
    struct team *t = lines(sizeof *t);
    if (!t)
        return error_no_memory(err, "a team of threads", sizeof *t);
    t->members = members;
    t->users = 1;
    t->list = lines(list);
    if (!team_meet_init(t) || !t->list) {
        release(t);
        return error_no_memory(err, "a team of threads", list);
    }
    t->nodes = find_nodes(members);
    t->root = root;
    t->cores = system_has_quota(root) ? 0 : system_cores(sched_getaffinity);
    for (int i = 0; i < members; i++)
        t->list[i] = (struct member){.team = t, .index = i, .patience_ns = {MOST_NS, MOST_NS}, .cpu = -1};
    const enum status st = start_members(t, err);
    if (st != OK) {
        team_free(t);
        return st;
    }
    *out = t;
    return OK;
}

enum status team_new(struct team **out, int members, struct error *err)
{
    if (sharing && shared && shared->members == members) {
        shared->users++;
        *out = shared;
        return OK;
    }
    const enum status st = make_team(out, members, err);
    if (st == OK && sharing && !shared)
        shared = *out;
    return st;
}

void team_free(struct team *t)
{
    if (!t || --t->users > 0)
        return;
    if (t == shared)
        shared = NULL;
    t->stopping = true;
    word_advance(t, &t->generation.n);
    for (int i = 1; i < t->members; i++)
        pthread_join(t->list[i].thread, NULL);
    release(t);
}

int team_size(const struct team *t) { return t->members; }
int team_nodes(const struct team *t) { return t->nodes ? t->nodes->n : 1; }

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
