/* Sizes, precision and device time of matrix products. */
#include "analyze/traced/products.h"

#include <math.h>
#include <string.h>

static const char *last_word(const char *name)
{
    for (const char *colon; (colon = strstr(name, "::"));)
        name = colon + 2;
    return name;
}

static double multiply_ns(const struct study *s, int32_t host)
{
    const struct view *v = s->v;
    double ns = 0;
    for (int32_t i = host; i < v->end[host]; i++)
        for (int32_t d = v->launched[i]; d >= 0; d = v->next_launched[d - v->device])
            if (view_kernel_kind(v, d) == KERNEL_GEMM)
                ns += (double)view_event(v, d)->duration_ns;
    return ns;
}

void charge_product(const struct study *s, struct charge *c, int32_t host, double factor)
{
    const struct view *v = s->v;
    for (int32_t i = host; i < v->end[host]; i++)
        for (int32_t d = v->launched[i]; d >= 0; d = v->next_launched[d - v->device])
            if (view_kernel_kind(v, d) == KERNEL_GEMM && (float)factor < c->edit.device[d - v->device])
                c->edit.device[d - v->device] = (float)factor;
}

/* "float" alone is f32; c10::BFloat16, c10::Half and Float8 say so. */
static enum precision of_types(const char *types)
{
    if (strstr(types, "Float8"))
        return PRECISION_8;
    if (strstr(types, "BFloat16") || strstr(types, "Half"))
        return PRECISION_16;
    if (strstr(types, "double"))
        return PRECISION_F64;
    return strstr(types, "float") ? PRECISION_F32 : PRECISION_UNKNOWN;
}

enum precision op_precision(const struct study *s, int32_t host) { return of_types(study_types(s, host)); }

bool product_read(const struct study *s, int32_t host, struct product *out)
{
    if (study_task(s, host) != TASK_LINEAR && study_task(s, host) != TASK_BATCHED)
        return false;
    const char *name = last_word(view_name(s->v, host));
    const bool batched = strstr(name, "bmm") != NULL, added = !strncmp(name, "addmm", 5) || !strncmp(name, "baddbmm", 7);
    if (!batched && strncmp(name, "mm", 3) && !added)
        return false;
    const struct dims a = study_dims(s, host, added), b = study_dims(s, host, 1 + added);
    const int at = batched;
    if (a.n != 2 + at || b.n != 2 + at || a.size[at + 1] != b.size[at])
        return false;
    *out = (struct product){.batch = batched ? a.size[0] : 1, .m = a.size[at], .k = a.size[at + 1], .n = b.size[at + 1]};
    out->flops = 2.0 * (double)out->batch * (double)out->m * (double)out->n * (double)out->k;
    out->device_ns = multiply_ns(s, host);
    out->precision = op_precision(s, host);
    return out->flops > 0;
}

double convolution_about_flops(const struct study *s, int32_t i)
{
    const char *name = view_name(s->v, i);
    const bool backward = strstr(name, "_backward") != NULL;
    const struct dims places = study_dims(s, i, 0), weight = study_dims(s, i, backward ? 2 : 1);
    const int channels = places.n == weight.n ? 1 : 0;          /* without a dimension of samples they come first */
    if (!strstr(name, "conv") || places.n < 3 || weight.n < 3 || places.size[channels] < 1)
        return 0;
    for (int32_t k = i + 1; k < s->v->end[i]; k = s->v->end[k])
        if (strstr(view_name(s->v, k), "conv"))
            return 0;                       /* it hands on to the one that works */
    return (backward ? 4 : 2) * (double)dims_elements(places) / (double)places.size[channels] * (double)dims_elements(weight);
}

int64_t product_odd_width(const struct product *p)
{
    const int64_t unit = p->precision == PRECISION_16 ? 8 : p->precision == PRECISION_8 ? 16 : 0;
    if (!unit)
        return 0;
    return p->n % unit && p->n >= 64 ? p->n : p->k % unit && p->k >= 64 ? p->k : 0;
}

bool product_has(const struct product *p, int64_t size) { return p->m == size || p->n == size || p->k == size; }

static bool has_any(const char *name, const char *const *words)
{
    for (; *words; words++)
        if (strcasestr(name, *words))
            return true;
    return false;
}

/* What a kernel's name says. The instruction of tensor cores is in it: s1688 takes f32 as TF32 unless it is one of 16 bits. */
static enum precision of_name(const char *name)
{
    static const char *const tf32[] = {"tf32", "s1688", NULL};
    static const char *const half[] = {"bf16", "bfloat16", "f16", "fp16", "half", "hmma", "h16816", "h1688", "h884", "s16816", "s884", "_hss_",
                                       "_bss_", "_HB_", "_BBS_", "_HHS_", NULL};
    static const char *const single[] = {"sgemm", "scudnn", "f32f32", "fp32", "_SB_", "s_nn", "s_nt", "s_tn", "engine<float", "<float", NULL};
    if (strcasestr(name, "tf32"))
        return PRECISION_TF32;
    if (has_any(name, half))
        return PRECISION_16;
    return has_any(name, tf32) ? PRECISION_TF32 : has_any(name, single) ? PRECISION_F32 : PRECISION_UNKNOWN;
}

enum precision product_precision(const struct study *s, int32_t device_event)
{
    const int32_t op = view_op_of(s->v, device_event);
    const enum precision named = of_name(view_name(s->v, device_event));
    const enum precision typed = op >= 0 ? of_types(study_types(s, op)) : PRECISION_UNKNOWN;
    if (named == PRECISION_TF32 && typed != PRECISION_16)
        return PRECISION_TF32;
    return typed != PRECISION_UNKNOWN ? typed : named;
}
