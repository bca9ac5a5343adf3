/* Losses of linear heads: their sizes, a run of one on a backend, and how two of them compare. */
#ifndef HONE_TESTS_HEADS_H
#define HONE_TESTS_HEADS_H

#include "ops/cpu/bf16.h"
#include "support/op_fill.h"

struct head {
    int64_t rows, vocab, width;
    bool padded, gradients;
    float spread;               /* of the logits, about */
    enum rounding round;
};

static inline struct plain head_run(const struct head *h, struct backend *b)
{
    struct program *p = program_new("head");
    const struct shape x = {2, {h->rows, h->width}}, w = {2, {h->vocab, h->width}}, t = {1, {h->rows}};
    const value_id in[] = {program_add_value(p, "x", VALUE_INPUT, F32, x), program_add_value(p, "w", VALUE_INPUT, F32, w),
                           program_add_value(p, "targets", VALUE_INPUT, I32, t)};
    assert_true(program_add_op(p, OP_LINEAR_LOSS, (struct op_attrs){.parts = h->gradients ? 4 : 2, .round = h->round}, "loss", 3, in) >= 0);
    struct plain is = plain_new(p, b);
    float *numbers = is.memory[in[0]];
    rng_fill_normal(numbers, h->rows * h->width, h->spread / sqrtf((float)h->width), 7, 1);
    rng_fill_normal(is.memory[in[1]], h->vocab * h->width, 1, 7, 2);
    for (int64_t i = 0; i < h->rows; i++)
        ((int32_t *)is.memory[in[2]])[i] = h->padded && i % 3 == 1 ? -1 : (int32_t)((i * 37 + 5) % h->vocab);
    plain_run_op(&is, &p->ops[0]);
    return is;
}

static inline void head_release(struct plain *x)
{
    struct program *p = x->program;
    plain_release(x);
    program_free(p);
}

/* Loss, count, dx, dw: how much of their length they may be off. */
static inline void head_compare(const struct head *h, const struct plain *is, const struct plain *should, double loss, double gradients)
{
    const struct op *op = &is->program->ops[0];
    for (int o = 0; o < op->n_out; o++) {
        const double apart = plain_apart(is, should, o);
        if (!(apart <= (o < 2 ? loss : gradients)))
            fail_msg("%lld rows, %lld words, width %lld%s, %s, %d threads: output %d is %.3g of its length off", (long long)h->rows,
                     (long long)h->vocab, (long long)h->width, h->padded ? ", padded" : "", cpu_bf16_name(), is->backend->lanes, o,
                     apart);
    }
}

/* A head on backends against the reference, and twice on each: the same bits. */
static inline void head_check(const struct head *h, struct backend *reference, struct backend *const *others, int n, double loss, double gradients)
{
    struct plain should = head_run(h, reference);
    for (int i = 0; i < n; i++) {
        struct plain is = head_run(h, others[i]), again = head_run(h, others[i]);
        head_compare(h, &is, &should, loss, gradients);
        head_compare(h, &again, &is, 0, 0);
        head_release(&is);
        head_release(&again);
    }
    head_release(&should);
}

#endif
