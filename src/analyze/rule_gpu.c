/* Rules that only a run on a GPU can break: launch-bound, low-occupancy, no-mixed-precision, misaligned-dims,
 * device-to-host-copy. On a CPU they find nothing. */
#include <math.h>

#include "analyze/rules.h"

static const double LAUNCH_SHARE = 0.10;    /* of the step; a little idleness is between any two kernels */
static const double LOW_OCCUPANCY = 0.15, LOW_SHARE = 0.05;
static const double NEAR_ROOF = 0.5;        /* few warps that do half of what can be done are enough */
enum { TENSOR_ROW_BYTES = 16, GOOD_MULTIPLE = 64 };

/* ---- launches ---- */

bool rule_launch_bound(struct scene *s, struct claim *c)
{
    struct arena *a = &s->p->arena;
    const double kernels = positive(s->p->kernels_per_step), replayed_us = positive(s->p->peaks.gpu.replayed_us) * kernels;
    const double launched_us = positive(s->p->peaks.gpu.launched_us);
    double work_us = 0;
    if (!s->p->gpu || s->step_us <= 0 || s->dispatch_us < LAUNCH_SHARE * s->step_us)
        return false;
    for (int i = 0; i < s->p->n_ops; i++)
        work_us += scene_self_us(s, i);
    c->broad = true;
    c->involved_us = c->won_high_us = s->dispatch_us;
    c->won_us = s->facts.replayed ? s->dispatch_us / 2 : fmax(s->dispatch_us - replayed_us, s->dispatch_us / 2);
    c->won_low_us = c->won_us / 2;
    c->finding.where = kernels > 0 ? arena_printf(a, "between the %.0f kernels of the step", kernels)
                                   : arena_printf(a, "between the kernels of the %d ops of the step", s->p->n_ops);
    c->finding.cause = arena_printf(a, "The GPU is idle between kernels for %.1f %% of the step: they are short, and there are many",
                                    100 * s->dispatch_us / s->step_us);
    c->finding.fix = s->facts.replayed
                         ? arena_printf(a, "Fewer and larger kernels: the passes that fuse ops, and a train.batch_size above %lld",
                                        (long long)s->facts.batch)
                         : arena_printf(a, "--set optimize.capture=on: the step is captured into a graph that one call starts");
    c->finding.evidence = arena_printf(a, "kernels work for %s of the %s%s%s", text_us(a, work_us), scene_step(s),
                                       kernels > 0 ? arena_printf(a, ", %s each", text_us(a, work_us / kernels)) : "",
                                       launched_us > 0 ? arena_printf(a, "; one that does nothing costs %s when the host starts it, %s in a graph",
                                                                      text_us(a, launched_us), text_us(a, s->p->peaks.gpu.replayed_us)) : "");
    return true;
}

/* ---- kernels that do not fill the GPU ---- */

static bool is_product(const struct op *op)
{
    switch (op->kind) {
    case OP_MATMUL: case OP_LINEAR_GELU: case OP_LINEAR_LOSS: case OP_PROJECT: case OP_PROJECT_GRAD:
    case OP_ATTENTION: case OP_ATTENTION_GRAD: case OP_ATTN_SCORES: case OP_ATTN_MIX: case OP_ATTN_MIX_T:
        return true;
    default:
        return false;
    }
}

bool rule_low_occupancy(struct scene *s, struct claim *c)
{
    struct arena *a = &s->p->arena;
    double beyond_us = 0, weighted = 0, self_us = 0;
    for (int i = 0; s->p->gpu && i < s->p->n_ops; i++) {
        const double occupancy = positive(s->p->ops[i].occupancy);
        if (occupancy <= 0 || occupancy >= LOW_OCCUPANCY || is_product(scene_op(s, i)) ||
            scene_floor_us(s, i) > NEAR_ROOF * scene_self_us(s, i))
            continue;
        claim_op(s, c, i);
        beyond_us += positive(scene_self_us(s, i) - scene_floor_us(s, i));
        self_us += scene_self_us(s, i);
        weighted += occupancy * scene_self_us(s, i);
    }
    if (self_us <= 0 || self_us < LOW_SHARE * s->step_us)
        return false;
    c->won_us = beyond_us / 2;
    c->won_high_us = beyond_us;
    c->finding.where = claim_where(s, c);
    c->finding.cause = arena_printf(a, "%d op%s of few blocks or few warps: most of the GPU has nothing to do while they run", c->n_ops,
                                    c->n_ops == 1 ? " is" : "s are");
    c->finding.fix = arena_printf(a, "--set train.batch_size=%lld: more blocks per kernel; or a pass that puts them into an op with more work",
                                  (long long)(2 * (s->facts.batch > 0 ? s->facts.batch : 1)));
    c->finding.evidence = arena_printf(a, "%s of the %s at an occupancy of %.0f %%, %s beyond their roofline", text_us(a, self_us),
                                       scene_step(s), 100 * weighted / self_us, text_us(a, beyond_us));
    return true;
}

/* ---- numbers ---- */

bool rule_no_mixed_precision(struct scene *s, struct claim *c)
{
    struct arena *a = &s->p->arena;
    const struct peaks *peaks = &s->p->peaks;
    const double f32 = positive(peaks->gflops[NUMBERS_F32]), bf16 = positive(peaks->gflops[NUMBERS_BF16]);
    if (!s->p->gpu || f32 <= 0 || bf16 <= f32)
        return false;
    for (int i = 0; i < s->p->n_ops; i++)
        if (is_product(scene_op(s, i)) && op_numbers(s->program, scene_op(s, i)) == NUMBERS_F32) {
            claim_op(s, c, i);
            /* half the bytes at least; where arithmetic limits it, the ratio of the peaks */
            c->won_us += scene_self_us(s, i) * (1 - (s->p->ops[i].memory_bound ? 0.5 : f32 / bf16));
        }
    if (!c->n_ops || c->won_us <= 0)
        return false;
    c->won_low_us = c->won_us / 4;
    c->won_high_us = c->won_us;
    c->won_us /= 2;
    c->finding.where = claim_where(s, c);
    c->finding.cause = arena_printf(a, "%d product%s of f32 on a GPU whose tensor cores multiply bf16 %.0f times as fast", c->n_ops,
                                    c->n_ops == 1 ? " is" : "s are", bf16 / f32);
    c->finding.fix = arena_printf(a, "--set optimize.precision=bf16; master weights, sums and the optimizer stay f32. tf32 is the smaller step");
    c->finding.evidence = arena_printf(a, "%s of the %s; measured peaks: f32 %.0f, tf32 %.0f, bf16 %.0f TFLOP/s",
                                       text_us(a, c->involved_us), scene_step(s), f32 / 1e3,
                                       positive(peaks->gflops[NUMBERS_TF32]) / 1e3, bf16 / 1e3);
    return true;
}

static bool is_odd(const struct value *v, int64_t row)
{
    const int64_t n = shape_count(v->shape);
    return v->dtype != I32 && n > 0 && row > 1 && row * ((int64_t)value_bytes(v) / n) % TENSOR_ROW_BYTES;
}

/* The length of rows that tensor cores cannot load 16 bytes at a time; 0: all are all right. Logits are not among the values of the op
 * that never stores them: their rows are as long as the vocabulary. */
static int64_t odd_row(const struct program *p, const struct op *op)
{
    for (int i = 0; i < op->n_in + op->n_out; i++) {
        const struct value *v = &p->values[i < op->n_in ? op->in[i] : op->out[i - op->n_in]];
        const int64_t row = v->shape.rank > 1 ? v->shape.dim[v->shape.rank - 1] : 0;
        if (is_odd(v, row))
            return row;
        if (op->kind == OP_LINEAR_LOSS && i == 1 && is_odd(v, v->shape.dim[0]))
            return v->shape.dim[0];
    }
    return 0;
}

bool rule_misaligned_dims(struct scene *s, struct claim *c)
{
    struct arena *a = &s->p->arena;
    double floor_us = 0, even_us = 0, even_floor_us = 0, odd_us = 0;
    int64_t row = 0;
    for (int i = 0; s->p->gpu && i < s->p->n_ops; i++) {
        const struct op *op = scene_op(s, i);
        if (!is_product(op) || op_numbers(s->program, op) == NUMBERS_F32)
            continue;
        const int64_t odd = odd_row(s->program, op);
        if (odd) {
            claim_op(s, c, i);
            row = row ? row : odd;
        }
        *(odd ? &odd_us : &even_us) += scene_self_us(s, i);
        *(odd ? &floor_us : &even_floor_us) += scene_floor_us(s, i);
    }
    if (!c->n_ops)
        return false;
    /* at the rate of the others; where there are none, nobody knows */
    const double rate = even_us > 0 ? even_floor_us / even_us : 0;
    c->won_us = rate > 0 ? positive(odd_us - floor_us / rate) : 0;
    c->won_high_us = positive(odd_us - floor_us);
    c->finding.where = claim_where(s, c);
    c->finding.cause = arena_printf(a, "Rows of %lld numbers are no multiple of 16 bytes: the tensor cores get them by a slower way",
                                    (long long)row);
    c->finding.fix = arena_printf(a, "Dimensions in multiples of %d: %lld instead of %lld (most often model.vocab; the extra logits are never targets)",
                                  GOOD_MULTIPLE, (long long)((row + GOOD_MULTIPLE - 1) / GOOD_MULTIPLE * GOOD_MULTIPLE), (long long)row);
    c->finding.evidence = arena_printf(a, "%d product%s take%s %s of the %s at %.0f %% of the roofline; the others run at %.0f %%", c->n_ops,
                                       c->n_ops == 1 ? "" : "s", c->n_ops == 1 ? "s" : "", text_us(a, odd_us), scene_step(s),
                                       odd_us > 0 ? 100 * floor_us / odd_us : 0, 100 * rate);
    return true;
}

/* ---- copies ---- */

/* The copies; that the host waits for them is host-sync, and what takes that away takes these away, too. */
bool rule_device_to_host_copy(struct scene *s, struct claim *c)
{
    struct arena *a = &s->p->arena;
    double bytes = 0;
    for (int i = 0; s->p->gpu && i < s->p->n_ops; i++)
        if (scene_op(s, i)->kind == OP_HOST_READ) {
            claim_op(s, c, i);
            bytes += (double)value_bytes(&s->program->values[scene_op(s, i)->in[0]]);
        }
    if (!c->n_ops)
        return false;
    c->won_us = c->won_high_us = c->involved_us;
    c->finding.where = claim_where(s, c);
    c->finding.cause = arena_printf(a, "%s are copied from the GPU to the host in every step, in %d piece%s", text_bytes(a, bytes), c->n_ops,
                                    c->n_ops == 1 ? "" : "s");
    c->finding.fix = arena_printf(a, "--set optimize.async-metrics=on: they are kept on the GPU, and copied when they are shown (log.every)");
    c->finding.after = "host-sync";
    c->finding.evidence = arena_printf(a, "%d op%s take%s %s of the %s", c->n_ops, c->n_ops == 1 ? "" : "s", c->n_ops == 1 ? "s" : "",
                                       text_us(a, c->involved_us), scene_step(s));
    return true;
}
