/* How members of a team wait: they spin and learn for how long, go on while there are cores for all, sleep where there are not, and do what they are told meanwhile. */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/system.h"
#include "core/team_int.h"
#include "support/own_machine.h"
#include "support/teams.h"

enum { ROUNDS = 40 };

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
    int64_t at_start[2][WAITS], leave[WAITS];       /* what members find, and what they leave */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patience_goes_with_the_others),
        cmocka_unit_test(test_with_cores_for_all_they_go_on),
        cmocka_unit_test(test_what_is_not_known_is_crowded),
        cmocka_unit_test(test_nobody_spins_for_ever),
        cmocka_unit_test(test_who_waits_is_not_idle),
        cmocka_unit_test(test_runs_and_meetings_are_learned_apart),
        cmocka_unit_test(test_patience_is_how_long_they_spin),
        cmocka_unit_test(test_members_on_one_core_do_not_spin),
    };
    return cmocka_run_group_tests(tests, make_own_machine, remove_own_machine);
}
