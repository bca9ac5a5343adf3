/* Ranges and placement against the plainest ways to do the same, over many small random cases. */
#include <stdlib.h>

#include "core/ranges.h"
#include "core/rng.h"
#include "passes/placement.h"
#include "support/check.h"

enum { CASES = 200, NUMBERS = 60 };

static uint64_t draws;
static int below(int n) { return (int)rng_below(3, 1, draws++, (uint64_t)n); }

/* The set as one flag per number. */
static void check_set(const struct ranges *s, const bool *has)
{
    int n = 0;
    for (int i = 0; i < NUMBERS; i++)
        if (has[i] && (i == 0 || !has[i - 1])) {
            assert_true(n < s->n && ranges_at(s, n)->lo == (size_t)i);
            while (i < NUMBERS && has[i])
                i++;
            assert_int_equal(ranges_at(s, n++)->hi, i);
        }
    assert_int_equal(n, s->n);
}

static void check_hit(const struct ranges *s, const bool *has, struct range r)
{
    const struct range *hit = ranges_hit(s, r);
    size_t first = r.lo;
    while (first < r.hi && !has[first])
        first++;
    assert_int_equal(hit != NULL, first < r.hi);
    if (hit)
        assert_true(hit->lo <= first && first < hit->hi);
}

static void test_ranges(void **state)
{
    (void)state;
    struct range lent[3];
    struct ranges s = {0};
    for (int c = 0; c < CASES; c++) {
        bool has[NUMBERS] = {0};
        ranges_clear(&s);
        if (c % 10 == 0) {
            ranges_release(&s);
            s = c % 20 ? ranges_in(lent, 3) : (struct ranges){0};
        }
        for (int i = 0; i < 20; i++) {
            const size_t lo = (size_t)below(NUMBERS), hi = lo + (size_t)below(NUMBERS - (int)lo > 8 ? 8 : NUMBERS - (int)lo);
            ranges_add(&s, (struct range){lo, hi});
            for (size_t k = lo; k < hi; k++)
                has[k] = true;
            check_set(&s, has);
            for (int k = 0; k < 10; k++) {
                const size_t from = (size_t)below(NUMBERS);
                check_hit(&s, has, (struct range){from, from + (size_t)below(NUMBERS - (int)from)});
            }
        }
    }
    ranges_release(&s);
}

struct buffer { int first, last; size_t bytes, offset; };

/* The lowest offset, found by trying them all. */
static size_t lowest(const struct buffer *placed, int n, const struct buffer *b)
{
    for (size_t at = 0;; at++) {
        bool free_here = true;
        for (int i = 0; i < n && free_here; i++)
            free_here = placed[i].last < b->first || b->last < placed[i].first || placed[i].offset >= at + b->bytes ||
                        at >= placed[i].offset + placed[i].bytes;
        if (free_here)
            return at;
    }
}

static void test_placement(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) {
        struct buffer placed[80];
        const int times = 1 + below(70);
        struct placement *p = placement_new(times);
        for (int n = 0; n < 80; n++) {
            struct buffer *b = &placed[n];
            b->first = below(times);
            b->last = b->first + below(times - b->first);
            b->bytes = (size_t)(1 + below(9));
            b->offset = placement_add(p, b->first, b->last, b->bytes, NULL, 0);
            assert_int_equal(b->offset, lowest(placed, n, b));
        }
        placement_free(p);
    }
}

/* The first of the liked offsets that is free at that time, or else the lowest. */
static void test_liked(void **state)
{
    (void)state;
    const size_t liked[] = {40, 20};
    struct placement *p = placement_new(8);
    assert_int_equal(placement_add(p, 0, 3, 10, liked, 2), 40);
    assert_int_equal(placement_add(p, 3, 4, 10, liked, 2), 20);
    assert_int_equal(placement_add(p, 3, 5, 10, liked, 2), 0);
    assert_int_equal(placement_add(p, 4, 6, 10, liked, 2), 40);
    assert_int_equal(placement_add(p, 5, 7, 25, liked, 2), 10);         /* 40 is taken, and behind 20 is not room enough */
    placement_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranges), cmocka_unit_test(test_placement), cmocka_unit_test(test_liked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
