/* One rank leads, the others follow: a proof on two ranks, what cannot be opened, a follower that gives up; and what is expected of other
 * buckets. */
#include <math.h>

#include "prove/moves.h"
#include "support/own_cache.h"
#include "support/rank_threads.h"
#include "train/follow.h"

static const char TINY[] =
    "model: {arch: gpt, dim: 24, layers: 2, heads: 3, seq: 12}\n"
    "data: {chars: 6000, workers: 1, samples: lines}\n"
    "train: {batch_size: 8, accumulate: 2, steps: 50, lr: 3.0e-3, warmup: 3}\n"
    "eval: {every: 10, batches: 3}\n"
    "optimize: {autotune: off}\n"
    "verify: {steps: 4, seconds: 0.02}\n"
    "threads: 1\n";

struct led {
    const char *set_a, *set_b;
    struct verdict v;
    struct error err, followed;
    enum status st, follows;
    int opened;                             /* trials that could be */
};

static struct config parsed(struct dist *d, const char *set)
{
    struct config c;
    struct error err;
    if (config_parse(&c, "tiny", TINY, sizeof TINY - 1, &set, set ? 1 : 0, &err) != OK)
        fprintf(stderr, "%s\n", err.text);
    c.dist.comm = dist_comm(d);
    return c;
}

static void lead_a_proof(struct dist *d, void *argument)
{
    struct led *l = argument;
    const struct config a = parsed(d, l->set_a), b = parsed(d, l->set_b);
    if (dist_rank(d) != 0) {
        l->follows = follow(d, NULL, &l->followed);
        return;
    }
    follow_lead(d);
    l->st = verify_configs(&l->v, &a, &b, &(struct verify_options){.most_seconds = 0.05}, &l->err);
    follow_end(d);
}

static void on_two(void (*fn)(struct dist *d, void *argument), struct led *l)
{
    struct world w = {.size = 2, .patience_s = 60};
    on_ranks(&w, fn, l);
}

static void test_a_proof_on_two_ranks(void **state)
{
    static const char *const must[] = {"gradients", "loss-curve", "validation", "determinism"};
    struct led *l = xcalloc(1, sizeof *l);
    (void)state;
    l->set_a = "dist.bucket_mb=1";
    l->set_b = "optimize.fuse-qkv=off";
    on_two(lead_a_proof, l);
    assert_ok(l->st, l->err);
    assert_ok(l->follows, l->followed);
    for (size_t i = 0; i < sizeof must / sizeof *must; i++)
        if (!verdict_gate(&l->v, must[i])->pass)
            fail_msg("%s: %s", must[i], verdict_gate(&l->v, must[i])->words);
    free(l);
}

static void test_buckets_change_no_bit(void **state)
{
    struct led *l = xcalloc(1, sizeof *l);
    (void)state;
    l->set_a = "dist.bucket_mb=1";
    l->set_b = "dist.bucket_mb=50";
    on_two(lead_a_proof, l);
    assert_ok(l->st, l->err);
    assert_true(l->v.same_bits);
    free(l);
}

/* What cannot be opened is no end: the next one is. */
static void lead_openings(struct dist *d, void *argument)
{
    struct led *l = argument;
    if (dist_rank(d) != 0) {
        l->follows = follow(d, NULL, &l->followed);
        return;
    }
    follow_lead(d);
    for (int i = 0; i < 40; i++) {                  /* more than can be open at once */
        const struct config c = parsed(d, i % 2 ? "train.batch_size=7" : NULL);
        struct trial *t = NULL;
        struct trial_step step;
        if (trial_open(&t, &c, NULL, NULL, &l->err) == OK && trial_step(t, &step, &l->err) == OK)
            l->opened++;
        trial_free(t);
    }
    follow_end(d);
}

static void test_what_cannot_be_opened(void **state)
{
    struct led *l = xcalloc(1, sizeof *l);
    (void)state;
    on_two(lead_openings, l);
    assert_ok(l->follows, l->followed);
    assert_int_equal(l->opened, 20);
    assert_non_null(strstr(l->err.text, "train.batch_size is 7, and 2 ranks cannot have equal parts"));
    free(l);
}

/* ---- the move ---- */

static void test_bucket_size(void **state)
{
    static const char text[] = "model: {arch: gpt, dim: 256, layers: 2, heads: 4, seq: 8}\ndata: {chars: 6000, workers: 0}\n"
                               "train: {batch_size: 2, steps: 5, lr: 1.0e-3}\neval: {every: 0}\noptimize: {autotune: off}\nthreads: 1\ndist: {bucket_mb: 1}\n";
    const struct peaks peaks = {.threads = 1, .gflops[NUMBERS_F32] = 50, .copy_gb_per_s = {80, 60, 40, 10}, .cache_bytes = {65536, 1 << 20, 32 << 20, 8e9},
                                .machine = "of the tests"};
    struct profile_rank ranks[] = {{.host = "a", .compute_us = 20000}, {.host = "a", .compute_us = 20000}};
    struct links links = {.ranks = 2, .machines = 1, .within = {50000, 100}, .machine = "of the tests"};
    struct config c;
    struct error err;
    struct situation s;
    struct proposal p;
    (void)state;
    assert_ok(config_parse(&c, "wide", text, sizeof text - 1, NULL, 0, &err), err);
    assert_ok(situation_measure(&s, &c, &(struct situation_options){.steps = 2, .peaks = &peaks}, &err), err);
    assert_ok(propose_bucket(&p, &s, -1, &err), err);
    assert_int_equal(p.places, 0);                  /* one rank has none */
    s.p.ranks = ranks;
    s.p.n_ranks = 2;
    s.m.config.train.batch_size = 4;                /* of both */
    assert_ok(propose_bucket(&p, &s, -1, &err), err);
    assert_int_equal(p.places, 0);                  /* nobody knows how fast they talk */
    assert_int_equal(links_remember(&links, &err), OK);
    assert_ok(propose_bucket(&p, &s, -1, &err), err);
    assert_int_equal(p.places, 1);                  /* 100 ms for every sum */
    assert_true(p.predicted > 1.5 && p.next.dist.bucket_mb > 1);
    assert_ptr_equal(strstr(p.change, "dist.bucket_mb: "), p.change);
    s.m.config.dist.bucket_mb = p.next.dist.bucket_mb;
    assert_ok(propose_bucket(&p, &s, -1, &err), err);
    assert_int_equal(p.places, 0);                  /* that is the best already */
    situation_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_proof_on_two_ranks), cmocka_unit_test(test_buckets_change_no_bit), cmocka_unit_test(test_what_cannot_be_opened),
        TEST_WITH_CACHE(test_bucket_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
