/* hone forget: numbers of a run, means over seeds, and the verdict on made-up runs: it beats, ties, is worse, cannot be compared. */
#include <math.h>

#include "forget_samples.h"
#include "report_check.h"

/* ---- numbers ---- */

static void a_run_has_the_numbers_of_its_matrix(void **state)
{
    (void)state;
    struct forget_run r = {.done = true, .n_domains = 3, .n_stages = 3, .entropy = {0.5, 0.25, 1},
                           .loss = {{4, 4.2, 3.8}, {1, 5, 5}, {1.5, 0.75, 4}, {2, 1.25, 1.5}}};
    const struct forget_numbers n = forget_numbers(&r);
    assert_near(n.new_loss, ((0.75 - 0.25) + (1.5 - 1)) / 2, 1e-12, "new_loss");
    assert_near(n.learned, ((4.2 - 0.75) + (3.8 - 1.5)) / 2, 1e-12, "learned");
    assert_near(n.forgotten, ((2.0 - 1) + (1.25 - 0.75)) / 2, 1e-12, "forgotten");
    assert_near(n.percent, 100 * ((exp(1) - 1) + (exp(0.5) - 1)) / 2, 1e-9, "percent");
    assert_near(n.end_loss, (1.5 + 1 + 0.5) / 3, 1e-12, "end_loss");
    assert_true(isnan(forget_nats(&r, 2)));

    r.entropy[1] = NAN;                     /* then all are losses as they are */
    assert_near(forget_numbers(&r).new_loss, (0.75 + 1.5) / 2, 1e-12, "new_loss without an entropy");
    r.done = false;
    assert_true(isnan(forget_numbers(&r).forgotten));
    struct forget_run one = {.done = true, .n_domains = 1, .n_stages = 1, .entropy = {0.5}, .loss = {{4}, {1}}};
    assert_true(isnan(forget_numbers(&one).forgotten) && isnan(forget_numbers(&one).new_loss));
    assert_near(forget_numbers(&one).end_loss, 0.5, 1e-12, "end_loss of one domain");
}

static void a_spread_is_mean_and_sample_deviation(void **state)
{
    (void)state;
    const double values[] = {1, NAN, 2, 4};
    const struct forget_spread s = forget_spread(values, 4), one = forget_spread(values, 2), none = forget_spread(values + 1, 1);
    assert_int_equal(s.n, 3);
    assert_near(s.mean, 7.0 / 3, 1e-12, "mean");
    assert_near(s.sd, sqrt((16.0 / 9 + 1.0 / 9 + 25.0 / 9) / 2), 1e-12, "sd");
    assert_true(one.n == 1 && one.mean == 1 && isnan(one.sd) && none.n == 0 && isnan(none.mean));
}

static void parents_follow_the_levels(void **state)
{
    (void)state;
    const struct forget_config c = {.nodes = 13, .levels = 2, .tree = {3, 3}}, d = {.nodes = 11, .levels = 2, .tree = {2, 4}};
    const int wanted[] = {-1, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3}, other[] = {-1, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2};
    for (int i = 0; i < 13; i++)
        assert_int_equal(forget_parent(&c, i), wanted[i]);
    for (int i = 0; i < 11; i++)
        assert_int_equal(forget_parent(&d, i), other[i]);
    assert_int_equal(forget_parent(&c, 13), -1);
}

/* ---- the verdict ---- */

/* A config by gradient against one at random and one with all nodes, at these places. */
static struct forget_verdict judged(double above, double forgotten, double random_above, double random_forgotten, double all_above,
                                    double all_forgotten, double scatter, int64_t seeds)
{
    struct forget *f = forget_new(seeds);
    struct forget_verdict v;
    set_runs(add_config(f, "g", CHOICE_GRADIENT, 5), above, forgotten, scatter);
    set_runs(add_config(f, "r", CHOICE_RANDOM, 5), random_above, random_forgotten, -scatter);
    set_runs(add_config(f, "a", CHOICE_ALL, 13), all_above, all_forgotten, 0.5 * scatter);
    assert_int_equal(forget_judge(f, &v, 1), 1);
    forget_free(f);
    return v;
}

static void it_beats_who_forgot_more_and_learned_no_more(void **state)
{
    (void)state;
    const struct forget_verdict v = judged(0.300, 0.5, 0.301, 0.9, 0.299, 1.0, 0.004, 3);
    assert_int_equal(v.by_random.outcome, FORGET_BEATS);
    assert_int_equal(v.beats_random, ANSWER_YES);
    assert_int_equal(v.beats_all, ANSWER_YES);
    assert_near(v.by_random.forgotten.mean, -0.4, 1e-9, "mean");
    assert_has(v.random_words, "g against r: ");
    assert_has(v.random_words, "it forgot less by 0.400 nats");
    assert_has(v.random_words, "within the spread, and it forgot");
}

static void it_beats_who_learned_less_and_forgot_no_less(void **state)
{
    (void)state;
    assert_int_equal(judged(0.2, 0.9, 0.5, 0.9, 0.2, 0.9, 0.004, 3).beats_random, ANSWER_YES);
}

static void within_the_spread_is_no(void **state)
{
    (void)state;
    const struct forget_verdict v = judged(0.30, 0.89, 0.31, 0.90, 0.30, 0.90, 0.05, 3);
    assert_int_equal(v.by_random.outcome, FORGET_TIES);
    assert_int_equal(v.beats_random, ANSWER_NOT);
    assert_int_equal(v.beats_all, ANSWER_NOT);
}

static void who_forgot_more_at_equal_learning_is_worse(void **state)
{
    (void)state;
    const struct forget_verdict v = judged(0.30, 1.4, 0.30, 0.9, 0.30, 0.9, 0.004, 3);
    assert_int_equal(v.by_random.outcome, FORGET_WORSE);
    assert_int_equal(v.beats_random, ANSWER_NOT);
    assert_int_equal(judged(0.50, 0.9, 0.30, 0.9, 0.30, 0.9, 0.004, 3).by_all.outcome, FORGET_WORSE);       /* learned less */
}

/* A rival that differs in more than the choice of nodes tells nothing about the choice. */
static void who_is_another_besides_is_no_rival(void **state)
{
    (void)state;
    struct forget *f = forget_new(3);
    struct forget_verdict v;
    char headline[FORGET_WORDS];
    set_runs(add_config(f, "g", CHOICE_GRADIENT, 5), 0.3, 0.5, 0.004);
    set_runs(add_config(f, "faster", CHOICE_RANDOM, 5), 0.3, 0.9, -0.004);
    set_runs(add_config(f, "a", CHOICE_ALL, 13), 0.3, 1.0, 0.002);
    f->configs[0].unlike[1] = "train.lr is 0.01 and 0.1";
    assert_int_equal(forget_judge(f, &v, 1), 1);
    assert_int_equal(v.random, -1);
    assert_int_equal(v.beats_random, ANSWER_UNSAID);
    assert_int_equal(v.beats_all, ANSWER_YES);
    assert_has(v.random_words, "there is no config that chooses as many nodes at random and is the same otherwise (g and faster: train.lr is 0.01 and 0.1)");
    set_runs(add_config(f, "r", CHOICE_RANDOM, 5), 0.3, 0.9, -0.004);       /* one that does not is taken */
    assert_int_equal(forget_judge(f, &v, 1), 1);
    assert_int_equal(v.random, 3);
    assert_int_equal(v.beats_random, ANSWER_YES);

    set_runs(add_config(f, "g2", CHOICE_GRADIENT, 5), 0.3, 0.95, 0.004);    /* forgets more than at random */
    forget_headline(f, headline);
    assert_string_equal(headline, "At equal learning, of 2 configs that choose nodes by gradient 1 beats choosing as many at random, and 2 choosing all");
    forget_free(f);
}

/* It learned more than random and forgot more, less than all and forgot less: a line between the two answers. */
static void between_the_two_a_line_answers(void **state)
{
    (void)state;
    struct forget_verdict v = judged(0.40, 0.6, 0.50, 0.5, 0.30, 1.0, 0.004, 3);
    assert_int_equal(v.by_random.outcome, FORGET_NO_OVERLAP);
    assert_int_equal(v.by_all.outcome, FORGET_NO_OVERLAP);
    assert_true(v.has_line);
    assert_near(v.line_part, 0.5, 1e-9, "part");
    assert_near(v.line.mean, 0.6 - 0.75, 1e-9, "below the line");
    assert_int_equal(v.beats_random, ANSWER_YES);
    assert_int_equal(v.beats_all, ANSWER_YES);
    assert_has(v.random_words, "on the line from r to a");

    v = judged(0.40, 0.75, 0.50, 0.5, 0.30, 1.0, 0.004, 3);          /* on it */
    assert_int_equal(v.line_outcome, FORGET_TIES);
    assert_int_equal(v.beats_random, ANSWER_NOT);
    v = judged(0.40, 0.95, 0.50, 0.5, 0.30, 1.0, 0.004, 3);          /* above it */
    assert_int_equal(v.line_outcome, FORGET_WORSE);
    assert_int_equal(v.beats_all, ANSWER_NOT);
}

/* It learned less than both and forgot less: nothing learns as little, so nothing can be said. */
static void outside_of_both_it_cannot_be_said(void **state)
{
    (void)state;
    const struct forget_verdict v = judged(0.80, 0.1, 0.50, 0.5, 0.30, 1.0, 0.004, 3);
    assert_int_equal(v.by_random.outcome, FORGET_NO_OVERLAP);
    assert_false(v.has_line);
    assert_int_equal(v.beats_random, ANSWER_UNSAID);
    assert_int_equal(v.beats_all, ANSWER_UNSAID);
    assert_has(v.random_words, "no mixture of r and a learns as much as g");
}

static void one_seed_says_nothing(void **state)
{
    (void)state;
    const struct forget_verdict v = judged(0.30, 0.1, 0.50, 0.5, 0.30, 1.0, 0.0, 1);
    assert_int_equal(v.by_random.outcome, FORGET_TOO_FEW);
    assert_int_equal(v.beats_random, ANSWER_UNSAID);
    assert_has(v.all_words, "1 seed in common");
}

/* Pairs of seeds count: each seed by itself is far from the next, and the difference is the same in all. */
static void differences_are_within_seeds(void **state)
{
    (void)state;
    struct forget *f = forget_new(3);
    set_runs(add_config(f, "g", CHOICE_GRADIENT, 5), 0.30, 0.50, 0.2);
    set_runs(add_config(f, "r", CHOICE_RANDOM, 5), 0.30, 0.60, 0.2);
    assert_int_equal(forget_compare(f, 0, 1).outcome, FORGET_BEATS);
    f->configs[1].runs[0].done = f->configs[0].runs[2].done = false;        /* one seed is left that both have */
    assert_int_equal(forget_compare(f, 0, 1).outcome, FORGET_TOO_FEW);
    forget_free(f);
}

static void rivals_are_of_the_same_tree(void **state)
{
    (void)state;
    struct forget *f = forget_new(3);
    struct forget_verdict v;
    char words[FORGET_WORDS];
    set_runs(add_config(f, "g", CHOICE_GRADIENT, 5), 0.30, 0.50, 0.01);
    set_runs(add_config(f, "r", CHOICE_RANDOM, 4), 0.30, 0.60, 0.01);       /* another number */
    set_runs(add_config(f, "a", CHOICE_ALL, 13), 0.30, 0.60, 0.01);
    f->configs[2].tree[1] = 2;                                              /* another tree */
    assert_int_equal(forget_judge(f, &v, 1), 1);
    assert_true(v.random == -1 && v.all == -1 && v.beats_random == ANSWER_UNSAID && v.beats_all == ANSWER_UNSAID);
    assert_has(v.random_words, "there is no config that chooses as many nodes at random");
    forget_headline(f, words);
    assert_string_equal(words, "At equal learning, choosing nodes by gradient cannot be compared with choosing as many at random or choosing all");
    f->configs[1].k = 5;
    f->configs[1].every = 2;                                                /* not as often */
    assert_int_equal(forget_judge(f, &v, 1), 1);
    assert_int_equal(v.random, -1);
    f->configs[1].every = f->configs[0].every;
    f->configs[2].tree[1] = 3;
    forget_headline(f, words);
    assert_string_equal(words, "At equal learning, choosing nodes by gradient beats choosing as many at random, and choosing all");
    f->n_configs = 0;
    forget_headline(f, words);
    assert_has(words, "none of them chooses nodes by gradient");
    forget_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_has_the_numbers_of_its_matrix),
        cmocka_unit_test(a_spread_is_mean_and_sample_deviation),
        cmocka_unit_test(parents_follow_the_levels),
        cmocka_unit_test(it_beats_who_forgot_more_and_learned_no_more),
        cmocka_unit_test(it_beats_who_learned_less_and_forgot_no_less),
        cmocka_unit_test(within_the_spread_is_no),
        cmocka_unit_test(who_forgot_more_at_equal_learning_is_worse),
        cmocka_unit_test(between_the_two_a_line_answers), cmocka_unit_test(who_is_another_besides_is_no_rival),
        cmocka_unit_test(outside_of_both_it_cannot_be_said),
        cmocka_unit_test(one_seed_says_nothing),
        cmocka_unit_test(differences_are_within_seeds),
        cmocka_unit_test(rivals_are_of_the_same_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
