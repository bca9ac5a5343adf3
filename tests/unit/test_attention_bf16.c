/* Attention whose operands may be rounded to bf16: every class of sizes against the reference in f32, and the same bits once more. Where the CPU has no tiles for
 * it this is the f32 kernel, and as right; extreme scores are in test_flash_attention.c. */
#include "core/bf16.h"
#include "support/all_backends.h"
#include "support/attention.h"

/* Inputs are such numbers already, so that what is left is the rounding of weights and of the gradients of scores: half of 2^-8 each, by chance up and
 * down, in the root of the mean square of all numbers; at least `floor` of it, as gradients are small differences of numbers of about 1. */
static const double ROUNDED = 4e-3;

static double length_of(const float *x, const float *less, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += pow((double)x[i] - (less ? less[i] : 0), 2);
    return sqrt(sum / (double)n);
}

static struct plain run_rounded(struct program *p, struct backend *b, struct sizes s, int64_t mean)
{
    struct plain x = plain_new(p, b);
    for (int i = 0; i < TICK; i++) {
        float *numbers = x.memory[i];
        rng_fill_normal(numbers, shape_count(p->values[i].shape), 1, 17, (uint64_t)i);
        for (int64_t k = 0; k < shape_count(p->values[i].shape); k++)
            numbers[k] = bf16_round(numbers[k]);
    }
    plain_write(&x, TICK, &(int32_t){9});
    if (mean)
        write_starts(&x, s, mean);
    plain_run(&x, PHASE_FORWARD, PHASE_BACKWARD);
    return x;
}

/* The same bits, however often. */
static void compare_rounded(const struct plain *is, const struct plain *again, const struct plain *should, const char *name, double floor)
{
    const struct program *p = is->program;
    for (int i = 0; i < p->n_ops; i++)
        for (int k = 0; k < p->ops[i].n_out; k++) {
            const value_id v = p->ops[i].out[k];
            const int64_t n = shape_count(p->values[v].shape);
            const double apart = length_of(is->memory[v], should->memory[v], n), length = length_of(should->memory[v], NULL, n);
            if (!(apart <= ROUNDED * (length > floor ? length : floor)))
                fail_msg("%s on %d threads: %s is %.3g off, of %.3g", name, is->backend->lanes, p->values[v].name, apart, length);
            assert_memory_equal(is->memory[v], again->memory[v], (size_t)n * sizeof(float));
        }
}

/* mean: of samples in a row; 0: one. */
static void check_rounded(struct sizes s, bool causal, float prob, int64_t mean, int threads)
{
    char name[112];
    snprintf(name, sizeof name, "bf16: B %lld T %lld H %lld K %lld D %lld causal %d prob %.1f samples of %lld", (long long)s.batch, (long long)s.seq,
             (long long)s.heads, (long long)s.kv_heads, (long long)s.size, causal, prob, (long long)mean);
    struct program *p = mean ? packed_program(s, prob) : attention_program(s, causal, prob);
    struct plain should = run_rounded(p, backends[0], s, mean);
    p->ops[0].attrs.round = p->ops[1].attrs.round = ROUND_BF16;
    struct plain is = run_rounded(p, backends[threads], s, mean), again = run_rounded(p, backends[threads], s, mean);
    compare_rounded(&is, &again, &should, name, prob > 0 ? 1 : 0.3);
    plain_release(&should);
    plain_release(&is);
    plain_release(&again);
    program_free(p);
}

static void test_rounded_operands(void **state)
{
    (void)state;
    static const int64_t seqs[] = {1, 5, 31, 32, 33, 64, 65, 130}, sizes[] = {8, 16, 33, 64, 128}, kv_heads[] = {4, 2, 1};
    int n = 0;
    for (int t = 0; t < 8; t++)
        for (int d = 0; d < 5; d++, n++) {
            const struct sizes s = {1 + n % 2, seqs[t], 4, kv_heads[n % 3], sizes[d]};
            check_rounded(s, true, 0, 0, 1 + n % 3);
            check_rounded(s, false, n % 2 ? 0 : 0.2f, 0, 1 + (n + 1) % 3);
            check_rounded(s, true, n % 2 ? 0.1f : 0, seqs[t] > 30 ? (const int64_t[]){1, 7, 40}[n % 3] : 0, 1 + (n + 2) % 3);
        }
    check_rounded((struct sizes){2, 300, 4, 2, 32}, true, 0, 0, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rounded_operands)};
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
