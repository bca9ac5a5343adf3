/* emulated-precision: products in 16 bits on a CPU that has no units for them: each is widened on the way, and takes longer than in f32. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/products.h"
#include "analyze/traced/rules.h"

static const double SLOW = 30;              /* per ns and thread: units for 16 bits do several times as much */
static const double LEAST_FLOPS = 4e6;      /* per thread, of a product that is large enough to tell */
enum { LEAST_SIZE = 32 };                   /* in every direction: others are bound by memory */
static const double LEAST = 0.1;            /* of the step, in products, convolutions and attention of 16 bits */
static const double OWN_NS = 10e3;          /* of a product in f32 besides its arithmetic */
static const double EMULATED = 3.5;         /* times faster are products in f32: measured 3.6 and 3.7 where both are oneDNN's, for AVX-512 */
static const double ATTENTION = 0.5;        /* of the rate of products */

static bool is_half(const struct study *s, int32_t i) { return strstr(study_types(s, i), "BFloat16") || strstr(study_types(s, i), "Half"); }

static bool is_attention(const struct study *s, int32_t i) { return strstr(view_name(s->v, i), "_scaled_dot_product_flash_attention_for_cpu") != NULL; }

/* Queries and keys are (B, H, T, D); backward has the gradient of the result before them. */
static double attention_flops(const struct study *s, int32_t i)
{
    const bool backward = strstr(view_name(s->v, i), "_backward") != NULL;
    const struct dims q = study_dims(s, i, backward), k = study_dims(s, i, 1 + backward);
    return q.n == 4 && k.n == 4 ? 2 * (backward ? 5 : 2) * (double)dims_elements(q) * (double)k.size[2] : 0;
}

static bool is_whole(const struct product *p) { return p->m >= LEAST_SIZE && p->n >= LEAST_SIZE && p->k >= LEAST_SIZE; }

struct sums {
    double flops, ns;                       /* of ops that are large enough to tell */
    double product_flops, product_ns;       /* of them, of products */
    double all_ns, casts_ns;                /* of all in 16 bits; of casts */
    int32_t example;
};

/* Arithmetic of an op in 16 bits that multiplies; 0: it is none. */
static double half_flops(const struct study *s, int32_t i, bool *tells)
{
    struct product p;
    *tells = false;
    if (!is_half(s, i))
        return 0;
    if (product_read(s, i, &p)) {
        *tells = is_whole(&p);
        return p.flops;
    }
    if (is_attention(s, i))
        return attention_flops(s, i);
    const double flops = convolution_about_flops(s, i);
    *tells = flops > 0;
    return flops;
}

struct rates { double products, attention, convolutions; };     /* of f32, per ns */

static struct rates rates_in_f32(const struct sums *x, int threads)
{
    const double least = threads * PRODUCT_FLOPS_PER_NS, products = fmax(least, x->product_ns > 0 ? EMULATED * x->product_flops / x->product_ns : 0);
    return (struct rates){products, ATTENTION * products, least};
}

static void charge_op(const struct study *s, struct charge *c, int32_t i, double flops, double own_ns, const struct rates *r)
{
    const double rate = is_attention(s, i) ? r->attention : study_task(s, i) == TASK_LINEAR || study_task(s, i) == TASK_BATCHED ? r->products : r->convolutions;
    c->edit.host[i] = (uint8_t)lround(KEEP_ALL * (own_ns > 0 ? fmin((flops / rate + OWN_NS) / own_ns, 1) : 1));
}

/* Numbers made narrower and back. Of other casts, as of a batch's labels, types say nothing of 16 bits or what they are of. */
static bool is_cast(const struct study *s, int32_t i)
{
    const char *types = study_types(s, i);
    const bool widened = strstr(types, "BFloat16") || strstr(types, "Half"), narrowed = strstr(types, "float") && view_event(s->v, i)->link >= 0;
    return study_task(s, i) == TASK_CAST && s->v->end[i] > i + 1 && (widened || narrowed);
}

static struct sums find_halves(const struct study *s, const double *own, int threads)
{
    struct sums x = {.example = -1};
    for (int32_t i = 0; i < s->v->n_host; i++) {
        bool tells;
        const double flops = study_has(s, i) ? half_flops(s, i, &tells) : 0;
        if (!(flops > 0))
            continue;
        x.all_ns += own[i];
        x.example = x.example < 0 ? i : x.example;
        if (!tells || flops < LEAST_FLOPS * threads)
            continue;
        const bool product = study_task(s, i) == TASK_LINEAR || study_task(s, i) == TASK_BATCHED;
        x.flops += flops, x.ns += own[i];
        x.product_flops += product ? flops : 0, x.product_ns += product ? own[i] : 0;
    }
    return x;
}

static void charge_halves(const struct study *s, struct charge *c, struct sums *x, const double *own, int threads)
{
    const struct rates rates = rates_in_f32(x, threads);
    for (int32_t i = 0; i < s->v->n_host; i++) {
        if (!study_has(s, i))
            continue;
        bool tells;
        const double flops = half_flops(s, i, &tells);
        if (flops > 0)
            charge_op(s, c, i, flops, own[i], &rates);
        else if (is_cast(s, i) || (study_task(s, i) == TASK_BACKWARD && strstr(view_name(s->v, i), "ToCopyBackward"))) {
            charge_call(s, c, i, 0);
            x->casts_ns += (double)view_event(s->v, i)->duration_ns;
            i = s->v->end[i] - 1;
        }
    }
}

bool trace_rule_emulated_precision(struct study *s, struct charge *c)
{
    if (!study_on_cpu(s) || study_found(s, "cpu-oversubscribed"))
        return false;                       /* threads that wait for a core are slow in any precision */
    const int known = study_threads(s), threads = known > 0 ? known : 1;
    double *own = study_work_ns(s);
    struct sums x = find_halves(s, own, threads);
    const bool slow = x.ns > 0 && x.flops < SLOW * threads * x.ns && per_step(s, x.all_ns) >= LEAST * s->base_ns;
    if (slow)
        charge_halves(s, c, &x, own, threads);
    free(own);
    if (!slow)
        return false;
    c->involved_ns = per_step(s, x.all_ns + x.casts_ns);
    c->doubt = 0.45;
    c->finding.where = study_where(s, x.example);
    c->finding.cause = "products run in 16 bits on a CPU that has no units for them: they take longer than in f32, and casts come on top";
    c->finding.evidence = study_text(s, "products and convolutions of 16 bits reach %s GFLOP/s on %d thread%s; with attention they take %s per step, casts %s",
                                     study_number(s, x.flops / x.ns), threads, threads == 1 ? "" : "s", study_us(s, per_step(s, x.all_ns)),
                                     study_us(s, per_step(s, x.casts_ns)));
    return true;
}
