/* The fused loss with operands in bf16, in every way that this CPU has: heads of several blocks of rows, words and widths, with padding
 * and without, against the reference; logits that are too large for powers relative to the target's; the same bits once more. */
#include "ops/cpu/bf16.h"
#include "support/all_backends.h"
#include "support/op_fill.h"

struct head {
    int64_t rows, vocab, width;
    bool padded, gradients;
    float spread;               /* of the logits, about */
};

static struct plain run_head(const struct head *h, struct backend *b)
{
    struct program *p = program_new("head");
    const struct shape x = {2, {h->rows, h->width}}, w = {2, {h->vocab, h->width}}, t = {1, {h->rows}};
    const value_id in[] = {program_add_value(p, "x", VALUE_INPUT, F32, x), program_add_value(p, "w", VALUE_INPUT, F32, w),
                           program_add_value(p, "targets", VALUE_INPUT, I32, t)};
    assert_true(program_add_op(p, OP_LINEAR_LOSS, (struct op_attrs){.parts = h->gradients ? 4 : 2, .round = ROUND_BF16}, "loss", 3, in) >= 0);
    struct plain is = plain_new(p, b);
    float *numbers = is.memory[in[0]];
    rng_fill_normal(numbers, h->rows * h->width, h->spread / sqrtf((float)h->width), 7, 1);
    rng_fill_normal(is.memory[in[1]], h->vocab * h->width, 1, 7, 2);
    for (int64_t i = 0; i < h->rows; i++)
        ((int32_t *)is.memory[in[2]])[i] = h->padded && i % 3 == 1 ? -1 : (int32_t)((i * 37 + 5) % h->vocab);
    plain_run_op(&is, &p->ops[0]);
    return is;
}

static void release(struct plain *x)
{
    struct program *p = x->program;
    plain_release(x);
    program_free(p);
}

/* Loss, count, dx, dw. Powers are rounded to bf16 between two products, on another scale than the reference's: 2^-9 each. */
static void compare(const struct head *h, const struct plain *is, const struct plain *should, double loss, double gradients)
{
    const struct op *op = &is->program->ops[0];
    for (int o = 0; o < op->n_out; o++) {
        const int64_t n = shape_count(is->program->values[op->out[o]].shape);
        const float *x = is->memory[op->out[o]], *y = should->memory[op->out[o]];
        double apart = 0, length = 0;
        for (int64_t i = 0; i < n; i++) {
            apart += pow((double)x[i] - y[i], 2);
            length += (double)y[i] * y[i];
        }
        if (!(sqrt(apart) <= (o < 2 ? loss : gradients) * sqrt(length)))
            fail_msg("%lld rows, %lld words, width %lld%s, %s, %d threads: output %d is %.3g of its length off", (long long)h->rows,
                     (long long)h->vocab, (long long)h->width, h->padded ? ", padded" : "", cpu_bf16_name(), is->backend->lanes, o,
                     sqrt(apart / length));
    }
}

static void check_head(struct head h)
{
    struct plain should = run_head(&h, backends[0]);
    for (int b = 1; b < BACKENDS; b++) {
        struct plain is = run_head(&h, backends[b]), again = run_head(&h, backends[b]);
        compare(&h, &is, &should, 4e-6, 0x1p-8);
        compare(&h, &again, &is, 0, 0);
        release(&is);
        release(&again);
    }
    release(&should);
}

static void test_heads(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 2, 1},     {16, 16, 32},   {31, 33, 31},   {33, 257, 16},  {40, 300, 48}, {260, 290, 33},
                                       {300, 700, 64}, {260, 131, 513}, {40, 600, 600}, {530, 520, 17}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int how = 0; how < 3; how++)
            check_head((struct head){sizes[i][0], sizes[i][1], sizes[i][2], how == 1, how < 2, 2});
}

/* Rows and words of more than one block of what stays near. */
static void test_large_head(void **state)
{
    (void)state;
    check_head((struct head){1050, 1070, 20, true, true, 3});
    check_head((struct head){40, 300, 1030, false, true, 2});
}

/* Losses far above what powers relative to the target can hold. */
static void test_large_logits(void **state)
{
    (void)state;
    check_head((struct head){50, 300, 33, false, true, 40});
    check_head((struct head){50, 300, 33, true, true, 300});
    check_head((struct head){50, 300, 33, true, false, 300});
}

static int run_way(enum bf16_way way)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_heads), cmocka_unit_test(test_large_head), cmocka_unit_test(test_large_logits)};
    cpu_bf16_limit(way);
    if (cpu_bf16_way() != way)
        return 0;
    print_message("bf16 products: %s\n", cpu_bf16_name());
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}

int main(void)
{
    int failed = 0;
    for (int way = BF16_ROUNDED; way <= BF16_AMX; way++)
        failed += run_way((enum bf16_way)way);
    return failed;
}
