/* Ranks of one profile beside each other: the rules exposed-comm and straggler on numbers made by hand, fired and not fired, and on
 * runs of two ranks with a slow transport and with a slow rank. */
#include "prove/situation.h"
#include "support/rank_threads.h"
#include "unit/rule_programs.h"

/* ---- by hand ---- */

/* A step of 100 us of two ranks. */
static struct profiled two_ranks(struct profile_rank a, struct profile_rank b)
{
    struct program *p = program_new("one");
    embedded(p);
    struct profiled x = profiled_new(p);
    static struct profile_rank list[2];
    list[0] = a;
    list[1] = b;
    x.profile.ranks = list;
    x.profile.n_ranks = 2;
    x.profile.ops[0].self_us = 100;
    add_up(&x);
    return x;
}

static void test_exposed_communication(void **state)
{
    (void)state;
    struct profiled x = two_ranks((struct profile_rank){.host = "a", .step_us = 100, .compute_us = 90, .exposed_us = 10, .sums_us = 25},
                                  (struct profile_rank){.host = "a", .step_us = 100, .compute_us = 90, .exposed_us = 10, .sums_us = 25});
    run_detect(&x);
    const struct finding *f = assert_finding(&x, "exposed-comm", 0.1, 1, 100 / 95.0, 100 / 90.0);
    assert_text(f->evidence, "every rank waits 10 µs of the 100 µs step");
    assert_text(f->evidence, "whose sums take 25 µs");
    assert_text(f->fix, "dist.bucket_mb");
    assert_null(find(&x, "straggler"));
    x.profile.ranks[0].exposed_us = x.profile.ranks[1].exposed_us = 1.9;
    run_detect(&x);
    assert_null(find(&x, "exposed-comm"));
    x.profile.ranks[0].exposed_us = 50;
    x.profile.n_ranks = 0;                          /* one rank waits for nobody */
    run_detect(&x);
    assert_null(find(&x, "exposed-comm"));
    profiled_release(&x);
}

static void test_straggler_and_its_cause(void **state)
{
    (void)state;
    struct profiled x = two_ranks((struct profile_rank){.host = "a", .step_us = 100, .compute_us = 70, .wait_us = 30},
                                  (struct profile_rank){.host = "b", .step_us = 100, .compute_us = 100});
    run_detect(&x);
    const struct finding *f = assert_finding(&x, "straggler", 0.3, 100 / 85.0, 100 / 70.0, 100 / 70.0);
    assert_text(f->where, "rank 1 (b)");
    assert_text(f->cause, "Rank 1 computes longer than the others");
    assert_text(f->evidence, "rank 1 computes 100 µs and waits 0 µs for its batch; the others 70 µs and 0 µs, and then 30 µs for rank 1");
    assert_null(find(&x, "exposed-comm"));
    x.profile.ranks[1].delayed_share = 0.2;
    run_detect(&x);
    assert_text(find(&x, "straggler")->cause, "Other work takes the cores of rank 1 away for 20 % of the time");
    x.profile.ranks[1] = (struct profile_rank){.host = "b", .step_us = 100, .compute_us = 70, .loader_us = 30};
    run_detect(&x);
    assert_text(find(&x, "straggler")->cause, "Rank 1 waits for its batches longer");
    assert_text(find(&x, "straggler")->fix, "data.workers=2");
    x.profile.ranks[0].wait_us = 4.9;               /* less than anybody would look for */
    run_detect(&x);
    assert_null(find(&x, "straggler"));
    profiled_release(&x);
}

/* Two that are as late as each other are no stragglers. */
static void test_the_next_rank_counts(void **state)
{
    (void)state;
    static struct profile_rank three[] = {{.host = "a", .step_us = 100, .compute_us = 70, .wait_us = 30}, {.host = "a", .step_us = 100, .compute_us = 97, .wait_us = 3},
                                          {.host = "a", .step_us = 100, .compute_us = 100}};
    struct profiled x = two_ranks(three[0], three[1]);
    x.profile.ranks = three;
    x.profile.n_ranks = 3;
    run_detect(&x);
    assert_null(find(&x, "straggler"));
    three[1].compute_us = 90;
    three[1].wait_us = 10;
    run_detect(&x);
    assert_finding(&x, "straggler", 0.2, 100 / 95.0, 100 / 90.0, 100 / 80.0);
    profiled_release(&x);
}

/* ---- measured ---- */

struct seen { bool exposed, straggler, alike, sums; char where[128]; enum status st; struct error err; };

static const char TINY[] =
    "model: {arch: gpt, dim: 24, layers: 2, heads: 3, seq: 12}\n"
    "data: {chars: 6000, workers: 1}\n"
    "train: {batch_size: 8, steps: 50, lr: 3.0e-3, warmup: 3}\n"
    "eval: {every: 10, batches: 3}\n"
    "optimize: {autotune: off}\n"
    "threads: 1\n";

/* What is measured adds up, and is the same on both. */
static void look_at(struct seen *s, const struct situation *of)
{
    for (int r = 0; r < of->p.n_ranks; r++) {
        const struct profile_rank *k = &of->p.ranks[r];
        s->sums &= fabs(k->compute_us + k->loader_us + k->exposed_us + k->wait_us - k->step_us) < 1e-6 * k->step_us && k->memory_bytes > 0;
    }
    s->alike &= of->p.n_ranks == 2 && of->p.n_split == 7 && of->p.ranks[0].hidden_share == of->p.ranks[1].hidden_share;
    s->exposed = situation_finding(of, "exposed-comm");
    const struct finding *late = situation_finding(of, "straggler");
    s->straggler = late;
    snprintf(s->where, sizeof s->where, "%s", late ? late->where : "");
}

static void profile_here(struct dist *d, void *argument)
{
    struct seen *s = (struct seen *)argument + dist_rank(d);
    const struct peaks peaks = {.threads = 1, .gflops[NUMBERS_F32] = 50, .copy_gb_per_s = {80, 60, 40, 10}, .cache_bytes = {65536, 1 << 20, 32 << 20, 8e9}};
    struct config c;
    struct situation of;
    s->st = config_parse(&c, "tiny", TINY, sizeof TINY - 1, NULL, 0, &s->err);
    c.dist.comm = dist_comm(d);
    if (s->st == OK)
        s->st = situation_measure(&of, &c, &(struct situation_options){.steps = 6, .peaks = &peaks}, &s->err);
    if (s->st != OK)
        return;
    look_at(s, &of);
    situation_release(&of);
}

static void profile_two(struct seen s[2], double delay_s)
{
    struct world w = {.size = 2, .patience_s = 60, .delay_s = delay_s};
    s[0] = s[1] = (struct seen){.sums = true, .alike = true};
    on_ranks(&w, profile_here, s);
    for (int r = 0; r < 2; r++) {
        assert_ok(s[r].st, s[r].err);
        assert_true(s[r].sums && s[r].alike);
    }
}

static void test_a_slow_transport_is_exposed(void **state)
{
    struct seen s[2];
    (void)state;
    profile_two(s, 0.02);
    assert_true(s[0].exposed && s[1].exposed);
}

static void test_a_slow_rank_is_named(void **state)
{
    struct seen s[2];
    (void)state;
    setenv("HONE_TEST_DELAY", "1:50", 1);
    profile_two(s, 0);
    unsetenv("HONE_TEST_DELAY");
    assert_true(s[0].straggler && s[1].straggler);
    assert_ptr_equal(strstr(s[0].where, "rank 1 ("), s[0].where);
    assert_ptr_equal(strstr(s[1].where, "rank 1 ("), s[1].where);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exposed_communication), cmocka_unit_test(test_straggler_and_its_cause), cmocka_unit_test(test_the_next_rank_counts),
        cmocka_unit_test(test_a_slow_transport_is_exposed), cmocka_unit_test(test_a_slow_rank_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
