/* The team of threads: every member runs, barriers hold, runs follow each other, on more threads than cores too. */
#include "support/check.h"
#include "support/own_machine.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/system.h"
#include "core/team.h"
#include "core/team_int.h"

enum { MOST = 8, CROWD = 21, RUNS = 300, ROUNDS = 40 };      /* a crowd: groups of groups, not all full */

static struct team *new_team(int members)
{
    struct team *t = NULL;
    struct error err;
    assert_ok(team_new(&t, members, &err), err);
    assert_int_equal(team_size(t), members);
    return t;
}

struct counts {
    int runs[MOST];             /* each member writes its own, plainly: a run orders memory */
};

static void count_run(void *argument, int member) { ((struct counts *)argument)->runs[member]++; }

static void test_every_member_runs_once(void **state)
{
    (void)state;
    for (int members = 1; members <= MOST; members++) {
        struct team *t = new_team(members);
        struct counts c = {{0}};
        for (int run = 1; run <= RUNS; run++) {
            team_run(t, count_run, &c);
            for (int i = 0; i < MOST; i++)
                assert_int_equal(c.runs[i], i < members ? run : 0);
        }
        team_free(t);
    }
}

struct rounds {
    struct team *team;
    int slot[CROWD];            /* plain: barriers order memory */
    atomic_int mistakes;
};

/* After a barrier every member sees what all wrote before it. */
static void meet(void *argument, int member)
{
    struct rounds *r = argument;
    for (int round = 1; round <= ROUNDS; round++) {
        r->slot[member] = round;
        team_barrier(r->team);
        for (int i = 0; i < team_size(r->team); i++)
            if (r->slot[i] != round)
                atomic_fetch_add(&r->mistakes, 1);
        team_barrier(r->team);
    }
}

static void test_barriers_hold(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 16, 17, CROWD};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct rounds r = {.team = new_team(sizes[i])};
        for (int run = 0; run < 5; run++)
            team_run(r.team, meet, &r);
        assert_int_equal(atomic_load(&r.mistakes), 0);
        team_free(r.team);
    }
}

/* A member that is late now and then makes the others sleep, and all go over to be counted and back: meetings hold, whatever way was taken. */
static void meet_late(void *argument, int member)
{
    static int run;
    if (member == 1 && run++ % 20 == 0)
        usleep(3000);
    meet(argument, member);
}

static void test_ways_to_meet_change(void **state)
{
    (void)state;
    for (int members = 2; members <= 6; members += 2) {
        struct rounds r = {.team = new_team(members)};
        for (int run = 0; run < 100; run++)
            team_run(r.team, run % 3 ? meet : meet_late, &r);
        assert_int_equal(atomic_load(&r.mistakes), 0);
        team_free(r.team);
    }
}

/* Sleepers are woken: the pause is longer than any spinning. */
static void test_runs_after_a_pause(void **state)
{
    (void)state;
    struct team *t = new_team(4);
    struct counts c = {{0}};
    for (int run = 1; run <= 3; run++) {
        usleep(20000);
        team_run(t, count_run, &c);
        for (int i = 0; i < 4; i++)
            assert_int_equal(c.runs[i], run);
    }
    team_free(t);
}

static void late_member(void *argument, int member)
{
    struct rounds *r = argument;
    if (member == 1)
        usleep(20000);
    r->slot[member] = 1;
    team_barrier(r->team);
    for (int i = 0; i < 3; i++)
        if (!r->slot[i])
            atomic_fetch_add(&r->mistakes, 1);
}

static void test_barrier_waits_for_the_late(void **state)
{
    (void)state;
    struct rounds r = {.team = new_team(3)};
    team_run(r.team, late_member, &r);
    assert_int_equal(atomic_load(&r.mistakes), 0);
    team_free(r.team);
}

static void test_free_without_a_run(void **state)
{
    (void)state;
    for (int members = 1; members <= MOST; members++)
        team_free(new_team(members));
    team_free(NULL);
}

/* Works a little between meetings. */
static void meet_often(void *argument, int member)
{
    volatile int work = 0;
    (void)member;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 1000; i++)
            work = work + 1;
        team_barrier(argument);
    }
}

/* Members that share one core do not burn it while they wait for each other: one who spins keeps the other from coming. */
static void test_members_on_one_core_do_not_spin(void **state)
{
    (void)state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    for (int members = 2; members <= 4; members++) {
        struct team *t = new_team(members);             /* threads inherit where they may run */
        team_run(t, meet_often, t);
        const uint64_t start = team_spins(t);
        for (int run = 0; run < 10; run++)
            team_run(t, meet_often, t);
        /* a look or two per meeting and member; spinning would be hundreds to thousands */
        const uint64_t looks = team_spins(t) - start, meetings = 10 * (ROUNDS + 2) * (uint64_t)members;
        if (looks > 32 * meetings)
            fail_msg("%d members looked %lu times in vain in %lu meetings", members, (unsigned long)looks, (unsigned long)meetings);
        team_free(t);
    }
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

/* Waits of milliseconds teach to sleep at once, short ones to spin again. */
static void test_patience_goes_with_the_others(void **state)
{
    (void)state;
    int64_t patience = MOST_NS;
    for (int i = 0; i < 20; i++) {
        const int64_t before = patience;
        patience = patience_learned(patience, 5000000);
        assert_int_equal(patience, before / 2);
    }
    assert_int_equal(patience, 0);
    assert_int_equal(patience_learned(8000, 3000), 17000);          /* it slept, and need not have */
    for (int i = 0; i < 40; i++)
        patience = patience_learned(patience, -1);
    assert_int_equal(patience, MOST_NS);
}

struct patience {
    struct team *team;
    int64_t at_start[CROWD][WAITS], leave[WAITS];       /* what members find, and what they leave */
};

static void set_patience(void *argument, int member)
{
    struct patience *p = argument;
    int64_t *patience = p->team->list[member].patience_ns;
    memcpy(p->at_start[member], patience, sizeof p->at_start[member]);
    memcpy(patience, p->leave, sizeof p->leave);
}

/* Each member on a core of its own, so that none is in another's way. */
static void go_apart(void *argument, int member)
{
    const cpu_set_t *may = argument;
    cpu_set_t one;
    int cpu = 0;
    for (int left = member; !CPU_ISSET(cpu, may) || left-- > 0; cpu++)
        ;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

/* Of teams that come: so many threads more run than there are cores. */
static void machine_runs(int more)
{
    char text[64];
    snprintf(text, sizeof text, "0.50 0.40 0.30 %d/100 12345\n", system_cores(sched_getaffinity) + more);
    machine_says("/proc/loadavg", text);
    team_root(own_machine);
}

/* A team of two, and where its first member might run before. NULL: there are no two cores. */
static struct team *team_apart(cpu_set_t *before)
{
    assert_int_equal(sched_getaffinity(0, sizeof *before, before), 0);
    if (CPU_COUNT(before) < 2)
        return NULL;
    struct team *t = new_team(2);
    team_run(t, go_apart, before);
    return t;
}

static void free_apart(struct team *t, const cpu_set_t *before)
{
    team_free(t);
    team_root(NULL);
    assert_int_equal(sched_setaffinity(0, sizeof *before, before), 0);
}

/* Sleeping would do as well, but not where other work has the cores. */
static void work_for(int64_t ns)
{
    for (const int64_t end = clock_ns() + ns; clock_ns() < end;)
        ;
}

/* What is between runs says nothing about meetings. */
static void test_runs_and_meetings_are_learned_apart(void **state)
{
    (void)state;
    cpu_set_t before;
    struct patience p = {.team = team_apart(&before), .leave = {100000, 200000}};
    if (!p.team)
        skip();
    bool learned = false;
    for (int run = 0; run < 300 && !learned; run++) {
        team_run(p.team, set_patience, &p);
        learned = p.at_start[1][WAIT_FOR_RUN] == p.leave[WAIT_FOR_RUN] / 2;
        assert_true(p.at_start[1][WAIT_IN_RUN] >= p.leave[WAIT_IN_RUN] / 2);    /* by the meeting at the end of a run alone */
        work_for(3000000);
    }
    assert_true(learned);
    free_apart(p.team, &before);
}

struct wait {
    struct team *team;
    int64_t patience;
    uint64_t spins;             /* of member 1 */
    int64_t learned;            /* its patience then */
};

static void wait_for_the_late(void *argument, int member)
{
    struct wait *w = argument;
    struct member *m = &w->team->list[member];
    m->patience_ns[WAIT_IN_RUN] = w->patience;
    const uint64_t before = m->spins;
    if (member == 0)
        work_for(2000000);
    team_barrier(w->team);
    if (member == 1) {
        w->spins = m->spins - before;
        w->learned = m->patience_ns[WAIT_IN_RUN];
    }
}

/* Where more want to run than there are cores: without patience there is one look around, with it there are many; that is tried again where other work took the core meanwhile. */
static void test_patience_is_how_long_they_spin(void **state)
{
    (void)state;
    cpu_set_t before;
    machine_runs(1);
    struct wait w = {.team = team_apart(&before)};
    if (!w.team)
        skip();
    for (int i = 0; i < 5; i++) {
        team_run(w.team, wait_for_the_late, &w);
        assert_true(w.spins <= 17);
    }
    w.patience = MOST_NS;
    for (int i = 0; i < 200 && w.spins < 1000; i++)
        team_run(w.team, wait_for_the_late, &w);
    assert_true(w.spins >= 1000);
    free_apart(w.team, &before);
}

/* While there are cores for all who has no patience goes on, and has it back. */
static void test_with_cores_for_all_they_go_on(void **state)
{
    (void)state;
    cpu_set_t before;
    machine_runs(0);
    struct wait w = {.team = team_apart(&before)};
    if (!w.team)
        skip();
    for (int i = 0; i < 200 && (w.spins < 1000 || w.learned == 0); i++)
        team_run(w.team, wait_for_the_late, &w);
    assert_true(w.spins >= 1000 && w.learned > 0);
    free_apart(w.team, &before);
}

/* Nobody knows what runs, or it has a quota: as if too many ran. */
static void test_what_is_not_known_is_crowded(void **state)
{
    (void)state;
    static const char *const says[] = {"0.00 0.00 0.00 0/0 0\n", "", NULL, "0.50 0.40 0.30 1/100 12345\n"};
    for (int way = 0; way < 4; way++) {
        cpu_set_t before;
        if (says[way])
            machine_says("/proc/loadavg", says[way]);
        machine_says("/sys/fs/cgroup/cpu.max", way == 3 ? "150000 100000\n" : "max 100000\n");
        team_root(says[way] ? own_machine : "/nowhere");
        struct wait w = {.team = team_apart(&before)};
        if (!w.team)
            skip();
        team_run(w.team, wait_for_the_late, &w);
        assert_true(w.spins <= 17);
        free_apart(w.team, &before);
    }
    machine_says("/sys/fs/cgroup/cpu.max", "max 100000\n");
}

struct burning {
    struct team *team;
    double cpu_s;               /* of member 1, so far or for a meeting */
};

static double thread_cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void wait_for_long(void *argument, int member)
{
    struct burning *b = argument;
    const double before = thread_cpu_s();
    if (member == 0)
        usleep(400000);
    team_barrier(b->team);
    if (member == 1)
        b->cpu_s = thread_cpu_s() - before;
}

static void note_cpu(void *argument, int member)
{
    if (member == 1)
        ((struct burning *)argument)->cpu_s = thread_cpu_s();
}

/* Also with cores for all nobody spins for ever: at a meeting for a tenth of a second, between runs for less. */
static void test_nobody_spins_for_ever(void **state)
{
    (void)state;
    cpu_set_t before;
    machine_runs(0);
    struct burning b = {.team = team_apart(&before)};
    if (!b.team)
        skip();
    team_run(b.team, wait_for_long, &b);
    assert_true(b.cpu_s < 0.25);
    team_run(b.team, note_cpu, &b);
    const double so_far = b.cpu_s;
    usleep(200000);
    team_run(b.team, note_cpu, &b);
    assert_true(b.cpu_s - so_far < 0.1);
    free_apart(b.team, &before);
}

struct idling {
    struct team *team;
    atomic_int idle[2], outside;
    atomic_bool in_run[2];
};

static void note_idle(void *argument, int member)
{
    struct idling *i = argument;
    atomic_fetch_add(&i->idle[member], 1);
    if (!atomic_load(&i->in_run[member]))
        atomic_fetch_add(&i->outside, 1);
}

/* Member 1 waits for the other at a barrier, and then, at the end of the run, again. */
static void wait_twice(void *argument, int member)
{
    struct idling *i = argument;
    atomic_store(&i->in_run[member], true);
    if (member == 0)
        work_for(100000);
    team_barrier(i->team);
    atomic_store(&i->in_run[member], false);
    if (member == 0)
        work_for(100000);
}

/* Who waits at a barrier of a run does what it is told to, but not behind its part: whose argument that is may be gone. */
static void test_who_waits_is_not_idle(void **state)
{
    (void)state;
    cpu_set_t before;
    struct idling i = {.team = team_apart(&before)};
    if (!i.team)
        skip();
    for (int run = 0; run < 200 && atomic_load(&i.idle[1]) < 100; run++)
        team_run_helping(i.team, wait_twice, &i, &(struct team_habits){.idle = note_idle});
    assert_true(atomic_load(&i.idle[1]) >= 100);
    assert_int_equal(atomic_load(&i.outside), 0);
    const int so_far = atomic_load(&i.idle[1]);
    team_run_helping(i.team, wait_twice, &i, &(struct team_habits){0});
    team_run(i.team, wait_twice, &i);
    assert_int_equal(atomic_load(&i.idle[1]), so_far);
    free_apart(i.team, &before);
}

/* ---- work in pieces ---- */

enum { PIECES = 200 };
struct pieces {
    struct team *team;
    int n;
    int done[CROWD][PIECES];    /* plain: who shared it out sees what others did of it */
    atomic_int mistakes, helped;
};
struct sharing { struct pieces *all; int member; };

static void do_piece(void *argument, int piece, int helper)
{
    const struct sharing *s = argument;
    s->all->done[s->member][piece]++;
    if (helper >= 0)
        atomic_fetch_add(&s->all->helped, 1);
    if (helper == s->member)
        atomic_fetch_add(&s->all->mistakes, 1);
    for (volatile int i = 0; i < 200 * (piece % 7); i = i + 1)
        ;
}

static void share_out(void *argument, int member)
{
    struct pieces *p = argument;
    for (int round = 1; round <= 4; round++) {
        if (member % 3 != 1)                    /* some have nothing to do */
            team_pieces(do_piece, &(struct sharing){p, member}, p->n);
        for (int i = 0; i < p->n && member % 3 != 1; i++)
            if (p->done[member][i] != round)
                atomic_fetch_add(&p->mistakes, 1);
        if (round % 2)
            team_barrier(p->team);
    }
}

static void test_every_piece_is_done_once(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 3, 8, CROWD};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int n = 0; n <= PIECES; n += n < 3 ? 1 : 197) {
            struct pieces p = {.team = new_team(sizes[i]), .n = n};
            for (int run = 0; run < 10; run++) {
                memset(p.done, 0, sizeof p.done);
                if (run % 3)
                    team_run_helping(p.team, share_out, &p, &(struct team_habits){0});
                else
                    team_run(p.team, share_out, &p);
            }
            assert_int_equal(atomic_load(&p.mistakes), 0);
            assert_int_equal(team_helped(p.team), (uint64_t)atomic_load(&p.helped));
            team_free(p.team);
        }
}

static void count_piece(void *argument, int piece, int helper)
{
    assert_int_equal(helper, -1);
    ((int *)argument)[piece]++;
}

/* Outside of a run, and more pieces than fit in a word. */
static void test_pieces_alone(void **state)
{
    (void)state;
    enum { MANY = 70000 };
    int *count = calloc(MANY, sizeof *count);
    team_pieces(count_piece, count, MANY);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(count[i], 1);
    free(count);
}

/* Two pieces, each of which waits for the other to begin: who has them needs help, or patience. */
static void wait_for_the_other(void *argument, int piece, int helper)
{
    (void)helper;
    atomic_bool *begun = argument;
    const double start = clock_s();
    atomic_store(&begun[piece], true);
    while (!atomic_load(&begun[1 - piece]) && clock_s() < start + 0.02)
        ;
}

static void one_shares(void *argument, int member)
{
    if (member == 0)
        team_pieces(wait_for_the_other, argument, 2);
}

static void check_help(void *argument, int owner, int helper, int64_t start_ns, int64_t end_ns)
{
    (void)argument;
    assert_true(owner == 0 && helper == 1 && end_ns >= start_ns && start_ns > 0);
}

/* Where all cores are busy it may sleep instead: so for a while, until it did. */
static void test_who_waits_helps(void **state)
{
    (void)state;
    struct team *t = new_team(2);
    const double start = clock_s();
    while (team_helped(t) == 0 && clock_s() < start + 20)
        team_run_helping(t, one_shares, (atomic_bool[2]){false, false}, &(struct team_habits){.watch = check_help});
    assert_true(team_helped(t) > 0 || sysconf(_SC_NPROCESSORS_ONLN) < 2);
    team_free(t);
}

struct tiny {
    volatile float x, y;
    float product[MOST];
};

static void multiply_tiny(void *argument, int member)
{
    struct tiny *t = argument;
    t->product[member] = t->x * t->y;
}

/* Inside a run what is too small for its full precision is zero, on every member; outside nothing changes. */
static void test_subnormals_are_zero_inside_a_run(void **state)
{
    (void)state;
    for (int members = 1; members <= MOST; members++) {
        struct team *t = new_team(members);
        struct tiny result = {.x = 1e-38f, .y = 0.01f}, input = {.x = 1e-40f, .y = 1e10f};
        team_run(t, multiply_tiny, &result);
        team_run(t, multiply_tiny, &input);
        for (int i = 0; i < members; i++) {
            assert_true(result.product[i] == 0);
            assert_true(input.product[i] == 0);
        }
        multiply_tiny(&result, 0);
        assert_true(result.product[0] > 0);
        team_free(t);
    }
}

/* Spans cover everything once, in order, and start at multiples of the unit. */
static void test_spans(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 3, 15, 16, 17, 64, 65, 1000, 1 << 20}, units[] = {1, 8, 16, 64};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t u = 0; u < sizeof units / sizeof *units; u++)
            for (int members = 1; members <= MOST; members++) {
                int64_t at = 0;
                for (int m = 0; m < members; m++) {
                    const struct span s = team_span(sizes[i], units[u], m, members);
                    assert_int_equal(s.lo, at);
                    assert_true(s.hi >= s.lo && (s.lo % units[u] == 0 || s.lo == sizes[i]));
                    at = s.hi;
                }
                assert_int_equal(at, sizes[i]);
            }
}

/* No member has more than one unit above the fair share. */
static void test_spans_are_fair(void **state)
{
    (void)state;
    for (int64_t n = 1; n < 3000; n += 37)
        for (int members = 1; members <= MOST; members++)
            for (int m = 0; m < members; m++) {
                const struct span s = team_span(n, 16, m, members);
                assert_true(s.hi - s.lo <= ((n + 15) / 16 / members + 1) * 16);
            }
}

/* ---- shared teams ---- */

static void *make_elsewhere(void *out)
{
    *(struct team **)out = new_team(3);
    return NULL;
}

static void add_one(void *count, int member)
{
    (void)member;
    atomic_fetch_add((_Atomic int *)count, 1);
}

static void test_teams_are_shared_while_it_is_asked_for(void **state)
{
    (void)state;
    struct team *before = new_team(3), *elsewhere = NULL;
    pthread_t thread;
    _Atomic int ran = 0;
    team_share(true);
    struct team *a = new_team(3), *other = new_team(2), *b = new_team(3);
    assert_true(a == b && a != before && other != a);
    assert_int_equal(pthread_create(&thread, NULL, make_elsewhere, &elsewhere), 0);
    pthread_join(thread, NULL);
    assert_true(elsewhere != a);            /* another thread, which may run at the same time */
    team_free(a);
    team_run(b, add_one, &ran);             /* as long as one has it */
    assert_int_equal(ran, 3);
    team_free(b);
    team_free(other);
    struct team *anew = new_team(3), *again = new_team(3);
    team_share(false);
    struct team *after = new_team(3);
    assert_true(anew == again && after != anew);
    team_run(anew, add_one, &ran);
    assert_int_equal(ran, 6);
    team_free(anew);
    team_free(again);
    team_free(after);
    team_free(before);
    team_free(elsewhere);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patience_goes_with_the_others), cmocka_unit_test(test_with_cores_for_all_they_go_on),
        cmocka_unit_test(test_what_is_not_known_is_crowded), cmocka_unit_test(test_nobody_spins_for_ever), cmocka_unit_test(test_who_waits_is_not_idle),
        cmocka_unit_test(test_runs_and_meetings_are_learned_apart), cmocka_unit_test(test_patience_is_how_long_they_spin),
        cmocka_unit_test(test_every_piece_is_done_once),
        cmocka_unit_test(test_pieces_alone),
        cmocka_unit_test(test_who_waits_helps),
        cmocka_unit_test(test_every_member_runs_once), cmocka_unit_test(test_barriers_hold), cmocka_unit_test(test_ways_to_meet_change),
        cmocka_unit_test(test_runs_after_a_pause),     cmocka_unit_test(test_barrier_waits_for_the_late),
        cmocka_unit_test(test_free_without_a_run),     cmocka_unit_test(test_spans),
        cmocka_unit_test(test_spans_are_fair),         cmocka_unit_test(test_members_on_one_core_do_not_spin),
        cmocka_unit_test(test_subnormals_are_zero_inside_a_run), cmocka_unit_test(test_teams_are_shared_while_it_is_asked_for),
    };
    return cmocka_run_group_tests(tests, make_own_machine, remove_own_machine);
}
