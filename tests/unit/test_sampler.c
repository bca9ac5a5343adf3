/* Draws: exactly the distribution that temperature, top-k and top-p make, and log-probabilities that are the model's own. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>

#include "core/rng.h"
#include "train/sampler.h"

enum { N = 12, LARGE = 5000 };
/* Where sanitizers make it slow, fewer places. */
#ifdef HONE_SANITIZED
enum { GRID = 1000 };
#else
enum { GRID = 20000 };
#endif

/* The same by brute force: tokens are taken from the likeliest on, while they are fewer than k and those taken so far have less than p. */
static void expected(const float *logits, int n, double temperature, int64_t k, double p, double *out)
{
    double weight[N], sum = 0, has = 0, kept = 0;
    int order[N];
    for (int i = 0; i < n; i++) {
        int at = i;
        for (; at > 0 && logits[order[at - 1]] < logits[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
        weight[i] = exp(logits[i] / temperature);
        out[i] = 0;
    }
    const int most = k && k < n ? (int)k : n;
    for (int i = 0; i < most; i++)
        sum += weight[order[i]];
    for (int i = 0; i < most && has < p * sum * (1 - 1e-12); i++) {
        has += weight[order[i]];
        out[order[i]] = weight[order[i]];
    }
    for (int i = 0; i < n; i++)
        kept += out[i];
    for (int i = 0; i < n; i++)
        out[i] /= kept;
}

/* u over a grid: a token is drawn as often as its probability says, but for one place of the grid at each of its ends. */
static void check(const float *logits, int n, double temperature, int64_t k, double p)
{
    struct sampler s;
    double should[N];
    int drawn[N] = {0}, last = -1;
    sampler_init(&s, temperature, k, p, n);
    expected(logits, n, temperature, k, p, should);
    for (int i = 0; i < GRID; i++) {
        const int token = sampler_draw(&s, logits, (double)i / GRID);
        assert_true(token >= last);                 /* in the order of ids */
        last = token;
        drawn[token]++;
    }
    for (int i = 0; i < n; i++) {
        if (should[i] == 0)
            assert_int_equal(drawn[i], 0);
        if (!(fabs(drawn[i] - should[i] * GRID) <= 1.001))
            fail_msg("temperature %g, top-k %lld, top-p %g: token %d is drawn %d times; it should be %g", temperature, (long long)k, p, i, drawn[i],
                     should[i] * GRID);
    }
    sampler_release(&s);
}

static void test_distributions(void **state)
{
    (void)state;
    static const double temperatures[] = {0.3, 0.8, 1, 2.5}, parts[] = {1e-9, 0.1, 0.5, 0.77, 0.9, 0.999, 1};
    float random[N], equal[N] = {0}, steps[N];
    rng_fill_normal(random, N, 2, 3, 1);
    for (int i = 0; i < N; i++)
        steps[i] = (float)(i / 3 % 3);              /* groups of equal ones */
    const float *const logits[] = {random, equal, steps};
    for (size_t l = 0; l < 3; l++)
        for (size_t t = 0; t < sizeof temperatures / sizeof *temperatures; t++)
            for (size_t q = 0; q < sizeof parts / sizeof *parts; q++)
                for (int64_t k = 0; k <= N; k++)
                    check(logits[l], N, temperatures[t], k, parts[q]);
    check(random, 1, 1, 0, 0.5);
}

/* The likeliest, whatever u is: temperature 0, and one token that can be drawn. */
static void test_one_token(void **state)
{
    (void)state;
    const float logits[] = {0.5f, 2, 2, -1};
    const struct { double temperature; int64_t k; double p; } ways[] = {{0, 0, 1}, {0, 3, 0.5}, {1, 1, 1}, {1, 0, 1e-6}, {1e-300, 0, 1}};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        struct sampler s;
        sampler_init(&s, ways[w].temperature, ways[w].k, ways[w].p, w < 4 ? 4 : 2);
        for (double u = 0; u < 1; u += 0.09)
            assert_int_equal(sampler_draw(&s, logits, u), 1);
        sampler_release(&s);
    }
}

/* A vocabulary of ordinary size: what can be drawn, and nothing else, is drawn. */
static void test_large_vocabulary(void **state)
{
    (void)state;
    float *logits = malloc(LARGE * sizeof *logits);
    struct sampler s;
    rng_fill_normal(logits, LARGE, 3, 8, 1);
    for (int64_t k = 1; k <= LARGE; k += 700) {
        sampler_init(&s, 1, k, 1, LARGE);
        for (int i = 0; i < 300; i++) {
            const int32_t token = sampler_draw(&s, logits, rng_double(1, 2, (uint64_t)i));
            int64_t before = 0;
            for (int32_t j = 0; j < LARGE; j++)
                before += logits[j] > logits[token];
            assert_true(before < k);
        }
        sampler_release(&s);
    }
    free(logits);
}

static void test_logprobs(void **state)
{
    (void)state;
    float logits[N];
    double sum = 0, all = 0;
    rng_fill_normal(logits, N, 30, 3, 2);
    for (int i = 0; i < N; i++)
        all += exp(logits[i]);
    for (int i = 0; i < N; i++) {
        const double logprob = sampler_logprob(logits, N, i);
        assert_true(logprob <= 0 && fabs(logprob - (logits[i] - log(all))) < 1e-9);
        sum += exp(logprob);
    }
    assert_true(fabs(sum - 1) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distributions),
        cmocka_unit_test(test_one_token),
        cmocka_unit_test(test_large_vocabulary),
        cmocka_unit_test(test_logprobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
