/* The team of threads: every member runs, barriers hold, runs follow each other, on more threads than cores too. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/clock.h"
#include "support/teams.h"

enum { MOST = 8, CROWD = 21, RUNS = 300, ROUNDS = 40 };      /* a crowd: groups of groups, not all full */

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
        cmocka_unit_test(test_every_piece_is_done_once),
        cmocka_unit_test(test_pieces_alone),
        cmocka_unit_test(test_who_waits_helps),
        cmocka_unit_test(test_every_member_runs_once),
        cmocka_unit_test(test_barriers_hold),
        cmocka_unit_test(test_ways_to_meet_change),
        cmocka_unit_test(test_runs_after_a_pause),
        cmocka_unit_test(test_barrier_waits_for_the_late),
        cmocka_unit_test(test_free_without_a_run),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_spans_are_fair),
        cmocka_unit_test(test_subnormals_are_zero_inside_a_run),
        cmocka_unit_test(test_teams_are_shared_while_it_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
