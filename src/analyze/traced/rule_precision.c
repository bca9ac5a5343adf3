/* no-mixed-precision, misaligned-dims: products that do not use the device's fast units. */
#include <math.h>
#include <string.h>

#include "analyze/traced/products.h"
#include "analyze/traced/rules.h"

static const double LEAST_SHARE = 0.5;      /* of the products' time is in f32 */
static const double TF32_LEFT = 0.55;       /* of a product's time in bf16 */
static const double AMD_LEFT = 0.25;        /* matrix cores of Instinct cards take f32 too, at a quarter to an eighth of the rate */
static const double MOVES_LEFT = 0.65;      /* of element-wise work: half the bytes for some, casts for others */
static const double CAST_OPS = 16;          /* host ops that autocast adds per product with a weight, forward and backward */

/* What is left of an f32 product's time in 16 bits: the ratio of the peaks, with products that are no longer bound by
 * arithmetic falling short of it. Large dies (7.0, 8.0, 9.0 and up) have the full units, others fewer. */
static double f32_left(const struct study *s)
{
    const struct device_facts *f = &s->device;
    if (f->maker == MAKER_AMD)
        return AMD_LEFT;
    if (f->major == 7)
        return 0.22;
    return f->major == 8 && f->minor ? 0.4 : 0.11;
}

static bool is_moves(enum kernel_kind k)
{
    return k == KERNEL_ELEMENTWISE || k == KERNEL_DROPOUT || k == KERNEL_COPY || k == KERNEL_SOFTMAX;
}

bool trace_rule_no_mixed_precision(struct study *s, struct charge *c)
{
    const struct view *v = s->v;
    double f32_ns = 0, tf32_ns = 0, all_ns = 0;
    int32_t example = -1;
    for (int32_t d = 0; d < v->n_device; d++) {
        const struct event *e = view_event(v, v->device + d);
        const enum kernel_kind kind = view_kernel_kind(v, v->device + d);
        if (v->launch[d] < 0 || !study_has(s, v->launch[d]))
            continue;
        if (is_moves(kind))
            c->edit.device[d] = (float)MOVES_LEFT;
        if (kind != KERNEL_GEMM && kind != KERNEL_ATTENTION && kind != KERNEL_CONV)
            continue;
        all_ns += (double)e->duration_ns;
        const enum precision p = product_precision(s, v->device + d);
        if (p != PRECISION_F32 && p != PRECISION_TF32)
            continue;
        f32_ns += (double)e->duration_ns;
        tf32_ns += p == PRECISION_TF32 ? (double)e->duration_ns : 0;
        c->edit.device[d] = (float)(p == PRECISION_F32 ? f32_left(s) : TF32_LEFT);
        example = example < 0 ? v->launch[d] : example;
    }
    if (!s->device.half_units || f32_ns < LEAST_SHARE * all_ns || f32_ns <= 0)
        return false;
    int weights = 0;
    for (int32_t k = 0; k < s->n_top; k++)
        weights += !study_is_backward(s, k) && (study_task(s, s->top[k]) == TASK_CONVOLUTION ||
                   (study_task(s, s->top[k]) == TASK_LINEAR && study_find(s, s->top[k], TASK_BATCHED) < 0));
    c->edit.added_ns = per_step(s, weights) * (s->trains ? CAST_OPS : CAST_OPS / 2) * s->unit_ns;
    c->doubt = 0.4;
    const int32_t op = view_op_around(v, example);
    c->finding.where = study_where(s, op >= 0 ? op : example);
    const bool is_tf32 = tf32_ns >= 0.5 * f32_ns;
    c->asks.tf32 = is_tf32;
    c->finding.cause = !is_tf32 ? "products run in f32 on a device whose 16-bit units are several times faster"
                                : "products run in TF32, which takes about twice as long as 16 bits";
    c->finding.evidence = study_text(s, "%s of %s of products per step run in f32", study_us(s, per_step(s, f32_ns - tf32_ns)),
                                     study_us(s, per_step(s, all_ns)));
    if (tf32_ns > 0)
        c->finding.evidence = study_text(s, "%s, %s in TF32", c->finding.evidence, study_us(s, per_step(s, tf32_ns)));
    return true;
}

/* ---- dimensions ---- */

enum { MOST_WIDTHS = 16 };

struct widths {                             /* odd ones, of forward products: in gradients of weights tokens take their place */
    int64_t size[MOST_WIDTHS];
    int n;
    int32_t example;
};

static struct widths odd_widths(const struct study *s)
{
    struct widths w = {.example = -1};
    for (int32_t i = 0; i < s->v->n_host && w.n < MOST_WIDTHS; i++) {
        struct product p;
        if (!study_has(s, i) || study_in_backward(s, i) || !product_read(s, i, &p) || !product_odd_width(&p))
            continue;
        bool known = false;
        for (int k = 0; k < w.n; k++)
            known |= w.size[k] == product_odd_width(&p);
        if (!known)
            w.size[w.n++] = product_odd_width(&p);
        w.example = w.example < 0 ? i : w.example;
    }
    return w;
}

static bool has_odd(const struct widths *w, const struct product *p)
{
    for (int k = 0; k < w->n; k++)
        if (product_has(p, w->size[k]))
            return true;
    return false;
}

struct rates { double flops, ns; };

bool trace_rule_misaligned_dims(struct study *s, struct charge *c)
{
    const struct widths w = odd_widths(s);
    struct rates good = {0}, bad = {0};
    for (int pass = 0; pass < 2 && w.n; pass++)
        for (int32_t i = 0; i < s->v->n_host; i++) {
            struct product p;
            if (!study_has(s, i) || !product_read(s, i, &p) || p.device_ns <= 0)
                continue;
            struct rates *r = has_odd(&w, &p) ? &bad : &good;
            if (!pass)
                *r = (struct rates){r->flops + p.flops, r->ns + p.device_ns};
            else if (r == &bad) {           /* as fast as the aligned ones together, never below a tenth */
                const double expected = good.ns > 0 ? p.flops * good.ns / good.flops : 0.5 * p.device_ns;
                charge_product(s, c, i, fmin(fmax(expected / p.device_ns, 0.1), 1));
            }
        }
    if (!w.n || !(bad.ns > 0))
        return false;
    c->doubt = 0.4;
    c->finding.where = study_where(s, w.example);
    c->finding.cause = study_text(s, "products have a dimension of %lld, which the fast units cannot take in full pieces",
                                  (long long)w.size[0]);
    c->finding.evidence = study_text(s, "%s per step in such products, at %.3g TFLOP/s", study_us(s, per_step(s, bad.ns)),
                                     bad.flops / bad.ns / 1e3);
    if (good.ns > 0)
        c->finding.evidence = study_text(s, "%s; the others reach %.3g", c->finding.evidence, good.flops / good.ns / 1e3);
    return true;
}
