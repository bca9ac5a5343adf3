/* Groups of ranks: sums as a fixed tree, gathering, agreeing, and what happens when a rank is lost or gives up. */
#include <math.h>

#include "core/rng.h"
#include "core/subnormal.h"
#include "support/rank_threads.h"

/* ---- sums ---- */

enum { LONGEST = 10007, MANY_PIECES = 600001 };         /* many: of the pieces that pairs swap, several and a part; of messages more than one */

struct summed {
    int64_t n, cut;                             /* numbers, and how many are summed at a time */
    float (*x)[MANY_PIECES];                    /* per rank */
};

static void sum_in_pieces(struct dist *d, void *argument)
{
    const struct summed *s = argument;
    struct comm *c = dist_comm(d);
    float *mine = s->x[dist_rank(d)];
    for (int64_t at = 0; at < s->n; at += s->cut)
        c->start(c, mine + at, s->n - at < s->cut ? s->n - at : s->cut);
    for (int64_t at = 0; at < s->n; at += s->cut)
        if (!c->wait(c, mine + at))
            mine[at] = NAN;
}

/* The same tree by recursion: the left part is the largest power of two below. */
static float tree(float (*x)[MANY_PIECES], int64_t i, int from, int to)
{
    int left = 1;
    if (to - from == 1)
        return x[from][i];
    while (2 * left < to - from)
        left *= 2;
    return tree(x, i, from, from + left) + tree(x, i, from + left, to);
}

static void test_sums_are_a_tree_of_ranks(void **state)
{
    static float x[MOST_RANKS][MANY_PIECES], should[MANY_PIECES];
    static const int64_t sizes[][2] = {{1, 1}, {3, 3}, {4096, 4096}, {LONGEST, LONGEST}, {LONGEST, 5000}, {LONGEST, 977}, {9, 1}, {600, 1}, {MANY_PIECES, MANY_PIECES}};
    (void)state;
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            struct world w = {.size = ranks, .patience_s = 60};
            struct summed s = {sizes[k][0], sizes[k][1], x};
            for (int r = 0; r < ranks; r++)
                rng_fill_normal_part(x[r], 0, s.n, 1, 7, (uint64_t)r);
            x[ranks - 1][0] = 1e-42f;           /* too small for its full precision: zero, as in kernels */
            const subnormals_mode mode = subnormals_flush();
            for (int64_t i = 0; i < s.n; i++)
                should[i] = tree(x, i, 0, ranks);
            subnormals_restore(mode);
            on_ranks(&w, sum_in_pieces, &s);
            for (int r = 0; r < ranks && ranks > 1; r++)
                assert_memory_equal(x[r], should, (size_t)s.n * sizeof *should);
        }
}

/* ---- slices ---- */

/* Cuts at odd places, and slices of nothing. */
static const int64_t *cuts_of(int ranks, int64_t n, bool empty, int64_t cuts[MOST_RANKS + 1])
{
    for (int k = 0; k <= ranks; k++)
        cuts[k] = n * k / ranks;
    for (int k = 1; k < ranks && empty; k++)
        cuts[k] = k == ranks - 1 ? n - 1 : 0;
    return cuts;
}

struct sliced {
    struct program *p;
    const struct op *op;
    void *memory[MOST_RANKS][3];                /* per rank: three values */
    float (*x)[MANY_PIECES];
    bool ok[MOST_RANKS];
};

static void scatter_and_gather(struct dist *d, void *argument)
{
    struct sliced *s = argument;
    struct comm *c = dist_comm(d);
    const int rank = dist_rank(d);
    s->ok[rank] = c->gathered(c, s->memory[rank][0]);           /* nothing was started, and so nothing is waited for */
    c->scatter(c, s->x[rank], s->op->attrs.cuts);
    s->ok[rank] &= c->wait(c, s->x[rank]);
    c->gather(c, s->p, s->op, s->memory[rank]);
    s->ok[rank] &= c->gathered(c, s->memory[rank][0]) && c->gathered(c, s->memory[rank][0]);
}

/* Three values of n numbers in all, of which every rank has its slice right and the rest wrong. */
static void fill_slices(struct sliced *s, int ranks, int64_t n)
{
    const int64_t sizes[] = {n / 2, 1, n - n / 2 - 1};
    for (int r = 0; r < ranks; r++) {
        const int place = slice_place(r, ranks);
        int64_t at = 0;
        for (int v = 0; v < 3; v++) {
            float *data = s->memory[r][v] = xcalloc((size_t)sizes[v], sizeof *data);
            for (int64_t i = 0; i < sizes[v]; i++, at++)
                data[i] = at >= s->op->attrs.cuts[place] && at < s->op->attrs.cuts[place + 1] ? (float)at : -1;
        }
    }
}

static void check_slices(struct sliced *s, int ranks, int64_t n, const float *should)
{
    const int64_t sizes[] = {n / 2, 1, n - n / 2 - 1};
    for (int r = 0; r < ranks; r++) {
        const int64_t *cuts = s->op->attrs.cuts, from = cuts[slice_place(r, ranks)], to = cuts[slice_place(r, ranks) + 1];
        int64_t at = 0;
        assert_true(s->ok[r]);
        assert_memory_equal(s->x[r] + from, should + from, (size_t)(to - from) * sizeof *should);
        for (int v = 0; v < 3; v++) {
            for (int64_t i = 0; i < sizes[v]; i++, at++)
                assert_true(((float *)s->memory[r][v])[i] == (float)at);
            free(s->memory[r][v]);
        }
    }
}

static void test_slices_have_the_bits_of_the_sum(void **state)
{
    static float x[MOST_RANKS][MANY_PIECES], should[MANY_PIECES];
    static const int64_t sizes[] = {100, LONGEST, MANY_PIECES};
    (void)state;
    for (int ranks = 2; ranks <= MOST_RANKS; ranks++)
        for (int k = 0; k < 6; k++) {
            const int64_t n = sizes[k / 2];
            struct world w = {.size = ranks, .patience_s = 60};
            struct program *p = program_new("slices");
            int64_t cuts[MOST_RANKS + 1];
            const struct op_attrs attrs = {.parts = 3, .n_cuts = ranks + 1, .cuts = cuts_of(ranks, n, k % 2, cuts)};
            value_id in[3];
            for (int v = 0; v < 3; v++)
                in[v] = program_add_parameter(p, (const char *[]){"a", "b", "c"}[v], shape_of(1, (int64_t[]){n / 2, 1, n - n / 2 - 1}[v]),
                                              ROLE_MATRIX, INIT_ZEROS, 0);
            const int op = program_add_op(p, OP_GATHER_START, attrs, "gather", 3, in);
            assert_int_equal(op, 0);
            struct sliced s = {.p = p, .op = &p->ops[0], .x = x};
            fill_slices(&s, ranks, n);
            for (int r = 0; r < ranks; r++)
                rng_fill_normal_part(x[r], 0, n, 1, 7, (uint64_t)r);
            for (int64_t i = 0; i < n; i++)
                should[i] = tree(x, i, 0, ranks);
            on_ranks(&w, scatter_and_gather, &s);
            check_slices(&s, ranks, n, should);
            program_free(p);
        }
}

struct dealt { float whole[64], back[64], own[MOST_RANKS][64]; struct dist_part parts[MOST_RANKS]; bool ok[MOST_RANKS]; };

static void deal_and_collect(struct dist *d, void *argument)
{
    struct dealt *t = argument;
    const int rank = dist_rank(d);
    struct error err;
    t->ok[rank] = dist_deal(d, rank ? NULL : t->whole, t->own[rank], t->parts, &err) == OK &&
                  dist_collect(d, t->own[rank], rank ? NULL : t->back, t->parts, &err) == OK;
}

/* One rank has nothing of it. */
static void test_parts_are_dealt_and_collected(void **state)
{
    struct world w = {.size = 4, .patience_s = 60};
    struct dealt t = {.parts = {{64, 128}, {0, 64}, {0, 0}, {192, 64}}};
    (void)state;
    for (int i = 0; i < 64; i++)
        t.whole[i] = (float)i;
    on_ranks(&w, deal_and_collect, &t);
    for (int r = 0; r < 4; r++) {
        assert_true(t.ok[r]);
        for (int i = 0; i < 64; i++)
            assert_true(t.own[r][i] == (i < t.parts[r].bytes / 4 ? (float)(t.parts[r].from / 4 + i) : 0));
    }
    assert_memory_equal(t.whole, t.back, sizeof t.whole);
}

/* ---- the rest ---- */

struct together { int all[MOST_RANKS][MOST_RANKS]; char *text[MOST_RANKS]; bool ok[MOST_RANKS]; };

static void gather_and_broadcast(struct dist *d, void *argument)
{
    struct together *t = argument;
    const int rank = dist_rank(d), mine = 10 * rank;
    struct error err;
    char *text = t->text[rank] = xcalloc(40000000, 1);          /* more than one message */
    if (rank == 0)
        for (int i = 0; i < 40000000; i++)
            text[i] = (char)(i % 251);
    t->ok[rank] = dist_gather(d, &mine, t->all[rank], sizeof mine, &err) == OK && dist_broadcast(d, text, 40000000, &err) == OK;
}

static void test_gather_and_broadcast(void **state)
{
    static struct together t;
    struct world w = {.size = 3, .patience_s = 60};
    (void)state;
    on_ranks(&w, gather_and_broadcast, &t);
    for (int r = 0; r < 3; r++) {
        assert_true(t.ok[r]);
        for (int k = 0; k < 3; k++)
            assert_int_equal(t.all[r][k], 10 * k);
        assert_memory_equal(t.text[r], t.text[0], 40000000);
        assert_int_equal(t.text[r][39999999], (char)(39999999 % 251));
    }
    for (int r = 0; r < 3; r++)
        free(t.text[r]);
}

struct outcome { enum status st[MOST_RANKS]; struct error err[MOST_RANKS]; bool tells[MOST_RANKS]; struct world *world; };

static void disagree(struct dist *d, void *argument)
{
    struct outcome *o = argument;
    const int r = dist_rank(d);
    struct error *err = &o->err[r];
    const enum status mine = r == 2 ? error_set(err, BAD_INPUT, "no such file") : OK;
    o->st[r] = dist_agree(d, mine, err);
}

static void test_one_error_is_everybodys(void **state)
{
    struct world w = {.size = 4, .patience_s = 60};
    struct outcome o = {.world = &w};
    (void)state;
    on_ranks(&w, disagree, &o);
    for (int r = 0; r < 4; r++) {
        assert_int_equal(o.st[r], BAD_INPUT);
        assert_non_null(strstr(o.err[r].text, "rank 2 ("));
        assert_non_null(strstr(o.err[r].text, ": no such file"));
    }
}

/* Rank `lost` does nothing any more; the others wait for a sum with it. */
static void lose(struct dist *d, struct outcome *o, int lost)
{
    struct comm *c = dist_comm(d);
    const int r = dist_rank(d);
    float x = 1;
    dist_at_step(d, 12);
    c->start(c, &x, 1);
    const bool first = c->wait(c, &x);
    struct timespec some = {.tv_nsec = 300000000};
    nanosleep(&some, NULL);                     /* a beat tells where everybody is */
    if (r == lost) {
        pthread_mutex_lock(&o->world->lock);
        o->world->frozen[r] = true;
        pthread_mutex_unlock(&o->world->lock);
    }
    c->start(c, &x, 1);
    const bool second = c->wait(c, &x);
    o->st[r] = first && !second ? dist_status(d, &o->err[r]) : OK;
    o->tells[r] = dist_tells(d);
}

static void lose_2(struct dist *d, void *o) { lose(d, o, 2); }
static void lose_0(struct dist *d, void *o) { lose(d, o, 0); }

static void test_a_lost_rank_is_named(void **state)
{
    (void)state;
    for (int lost = 0; lost <= 2; lost += 2) {
        struct world w = {.size = 4, .patience_s = 1};
        struct outcome o = {.world = &w};
        char name[16];
        snprintf(name, sizeof name, "rank %d (", lost);
        on_ranks(&w, lost ? lose_2 : lose_0, &o);
        for (int r = 0; r < 4; r++)
            if (r != lost) {
                assert_int_equal(o.st[r], CANNOT);
                assert_ptr_equal(strstr(o.err[r].text, name), o.err[r].text);
                assert_non_null(strstr(o.err[r].text, "in step 12"));
                assert_int_equal(o.tells[r], r == (lost == 0));
            }
    }
}

static void give_up(struct dist *d, void *argument)
{
    struct outcome *o = argument;
    struct comm *c = dist_comm(d);
    const int r = dist_rank(d);
    struct error why;
    float x = 1;
    dist_at_step(d, 5);
    if (r == 1) {
        error_set(&why, BAD_INPUT, "shard 3 is cut off");
        dist_give_up(d, &why);
    }
    c->start(c, &x, 1);
    o->st[r] = c->wait(c, &x) ? OK : dist_status(d, &o->err[r]);
    o->tells[r] = dist_tells(d);
}

static void test_who_gives_up_says_why(void **state)
{
    struct world w = {.size = 3, .patience_s = 4};
    struct outcome o = {.world = &w};
    (void)state;
    on_ranks(&w, give_up, &o);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(o.st[r], BAD_INPUT);
        assert_non_null(strstr(o.err[r].text, "shard 3 is cut off"));
        assert_int_equal(o.tells[r], r < 2);
        if (r != 1)
            assert_ptr_equal(strstr(o.err[r].text, "rank 1 ("), o.err[r].text);
    }
}

/* ---- links ---- */

struct seen_links { struct links of[MOST_RANKS]; enum status st[MOST_RANKS]; };

static void see_links(struct dist *d, void *argument)
{
    struct seen_links *s = argument;
    struct error err;
    s->st[dist_rank(d)] = dist_measure_links(d, &s->of[dist_rank(d)], &err);
}

/* All ranks hear the same of it; threads of one process are on one machine. */
static void test_links_are_measured(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 3; ranks++) {
        struct world w = {.size = ranks, .patience_s = 60};
        struct seen_links s = {0};
        on_ranks(&w, see_links, &s);
        for (int r = 0; r < ranks; r++) {
            assert_int_equal(s.st[r], OK);
            assert_true(s.of[r].ranks == ranks && s.of[r].machines == 1);
            assert_true(s.of[r].within.us > 0 && s.of[r].within.gb_per_s > 0 && s.of[r].between.gb_per_s == 0);
            assert_memory_equal(&s.of[r].within, &s.of[0].within, sizeof s.of[r].within);
        }
    }
}

/* ---- what travels behind other work ---- */

enum { HIDDEN = 1000, ASKED = 3000 };           /* floats of the sum that has time, and of the one that is asked for at once */

static void sum_behind_work(struct dist *d, void *argument)
{
    struct comm *c = dist_comm(d);
    float *x = xcalloc(HIDDEN + ASKED, sizeof *x);
    bool ok = true;
    c->start(c, x, HIDDEN);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    ok &= c->wait(c, x);
    c->start(c, x + HIDDEN, ASKED);
    ok &= c->wait(c, x + HIDDEN);
    ((struct dist_bytes *)argument)[dist_rank(d)] = ok ? dist_sum_bytes(d) : (struct dist_bytes){-1, -1};
    free(x);
}

static bool is_hidden(struct dist_bytes b) { return b.hidden >= 4 * HIDDEN && b.hidden < 4 * (HIDDEN + ASKED / 2); }

/* A busy machine may stop a thread between two lines: then once more. */
static void test_bytes_behind_work_are_hidden(void **state)
{
    enum { TRIES = 10 };
    struct dist_bytes b[2];
    bool seen = false;
    (void)state;
    for (int i = 0; i < TRIES && !seen; i++) {
        struct world w = {.size = 2, .patience_s = 60, .delay_s = 0.02};
        on_ranks(&w, sum_behind_work, b);
        assert_true(b[0].all == 4 * (HIDDEN + ASKED) && b[1].all == b[0].all);
        seen = is_hidden(b[0]) && is_hidden(b[1]);
    }
    assert_true(seen);
    assert_true(dist_sum_bytes(NULL).all == 0);
}

static void test_alone(void **state)
{
    struct links links;
    struct error err = {.status = BAD_INPUT};
    int all = 0;
    (void)state;
    assert_int_equal(dist_size(NULL), 1);
    assert_int_equal(dist_agree(NULL, BAD_INPUT, &err), BAD_INPUT);
    assert_int_equal(dist_gather(NULL, &(int){3}, &all, sizeof all, &err), OK);
    assert_int_equal(all, 3);
    assert_true(dist_tells(NULL));
    assert_int_equal(dist_measure_links(NULL, &links, &err), OK);
    assert_true(links.ranks == 1 && links.within.gb_per_s == 0 && links.between.gb_per_s == 0);
    dist_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_are_a_tree_of_ranks), cmocka_unit_test(test_slices_have_the_bits_of_the_sum),
        cmocka_unit_test(test_parts_are_dealt_and_collected), cmocka_unit_test(test_gather_and_broadcast),
        cmocka_unit_test(test_one_error_is_everybodys), cmocka_unit_test(test_a_lost_rank_is_named),
        cmocka_unit_test(test_who_gives_up_says_why), cmocka_unit_test(test_links_are_measured), cmocka_unit_test(test_bytes_behind_work_are_hidden),
        cmocka_unit_test(test_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
