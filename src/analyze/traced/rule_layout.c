/* layout-copies: tensors are copied only to change how they lie in memory. */
#include <string.h>

#include "analyze/traced/rules.h"

/* A copy on the device between equal types: contiguous, clone, and reshape where a view does not do. */
static bool is_layout_copy(const struct study *s, int32_t top)
{
    if (study_launches(s, top) == 0)
        return false;
    const char *name = view_name(s->v, top);
    return strstr(name, "contiguous") || strstr(name, "clone") || strstr(name, "reshape") || strstr(name, "flatten");
}

/* ---- convolutions: the library turns images round and back again around each of its kernels ---- */

static const double NORM_LEFT = 0.75;       /* of a batch norm's time when channels lie together; measured 0.25 in one net, whose host then was the bound */

/* cuDNN's nchwToNhwcKernel, MIOpen's batched_transpose; told by the name and by whose launch it is. */
static bool is_conversion(const struct study *s, int32_t d)
{
    const char *name = view_name(s->v, d);
    if (strcasestr(name, "nchwtonhwc") || strcasestr(name, "nhwctonchw"))
        return true;
    const int32_t op = view_op_around(s->v, s->v->launch[d - s->v->device]);
    return op >= 0 && strcasestr(name, "transpose") && study_task(s, op) == TASK_CONVOLUTION;
}

static bool is_norm_of_planes(const struct study *s, int32_t d)
{
    const char *name = view_name(s->v, d);
    return view_kernel_kind(s->v, d) == KERNEL_NORM && strcasestr(name, "batch_norm") && !strcasestr(name, "channels_last") &&
           !strcasestr(name, "nhwc");
}

struct copies {
    int n;
    double ns, conversions_ns;
    int32_t example;                        /* an op */
};

/* Norms alone are no sign: channels apart may be meant. */
static void charge_conversions(const struct study *s, struct charge *c, struct copies *x)
{
    const struct view *v = s->v;
    for (int pass = 0; pass < 2; pass++)
        for (int32_t d = v->device; d < v->device + v->n_device; d++) {
            const int32_t launch = v->launch[d - v->device];
            const double ns = (double)view_event(v, d)->duration_ns;
            if (view_event(v, d)->kind != EVENT_KERNEL || launch < 0 || !study_has(s, launch))
                continue;
            if (!pass && is_conversion(s, d)) {
                c->edit.device[d - v->device] = 0;
                charge_host(s, c, launch, 0);
                x->n++;
                x->ns += ns;
                x->conversions_ns += ns;
                const int32_t op = view_op_around(v, launch);
                x->example = x->example < 0 ? (op >= 0 ? op : launch) : x->example;
            } else if (pass && x->conversions_ns > 0 && is_norm_of_planes(s, d))
                c->edit.device[d - v->device] = (float)NORM_LEFT;
        }
}

static void charge_copies(const struct study *s, struct charge *c, struct copies *x)
{
    double most = 0;
    for (int32_t k = 0; k < s->n_top; k++) {
        const int32_t top = s->top[k];
        if (study_is_backward(s, k) || !is_layout_copy(s, top) || study_annotation(s, top, "Optimizer") >= 0)
            continue;
        const double ns = study_device_ns(s, top);
        x->n++;
        x->ns += ns;
        charge_with_backward(s, c, top, 0);
        if (x->example < 0 || ns > most)
            x->example = top, most = ns;
    }
}

bool trace_rule_layout_copies(struct study *s, struct charge *c)
{
    struct copies x = {.example = -1};
    charge_copies(s, c, &x);
    charge_conversions(s, c, &x);
    if (!x.n)
        return false;
    c->doubt = 0.5;
    c->finding.where = study_where(s, x.example);
    c->finding.cause = "tensors are copied to another order of dimensions; nothing is computed";
    c->finding.evidence = study_text(s, "such copies per step: %s, %s of the device per step", study_number(s, per_step(s, x.n)),
                                     study_us(s, per_step(s, x.ns)));
    if (2 * x.conversions_ns < x.ns)
        return true;
    c->finding.cause = "channels lie apart (NCHW): the library turns tensors round before and behind its convolutions";
    c->asks.planes = true;
    return true;
}
