/* small-batch on a CPU: most of a step is work that a larger batch would not make longer. */
#include <math.h>
#include <stdlib.h>

#include "analyze/traced/rules.h"

enum { MOST_BATCH = 8 };                    /* samples, above which a batch is not called small */
static const double MOST_GROWS = 0.65;      /* of the step, in what grows with the batch */
static const double FIXED_NS = 40e3;        /* of such an op: threads, dispatch, and tiles that are not full */
static const double FACTOR = 16;            /* how much larger a batch is thought of */

/* A compiled region is one call: loops over activations, which no op tells of, are its own time. */
static bool grows(const struct study *s, int32_t i)
{
    if (name_is_compiled(view_name(s->v, i)))
        return study_annotation(s, i, "Optimizer") < 0;
    const enum task t = study_task(s, i);
    const bool model = t == TASK_LINEAR || t == TASK_BATCHED || t == TASK_SOFTMAX || t == TASK_ATTENTION || t == TASK_NORM || t == TASK_CONVOLUTION ||
                       t == TASK_EMBEDDING || t == TASK_LOSS;
    const bool moves = t == TASK_ELEMENTWISE || t == TASK_COPY || t == TASK_JOIN;       /* of activations, not of parameters */
    if (!model && !(moves && (view_event(s->v, i)->link >= 0 || study_in_backward(s, i))))
        return false;
    return study_annotation(s, i, "Optimizer") < 0 && dims_elements(study_dims(s, i, 0)) > 1;
}

/* Samples of a batch, where an op of the model shows them: images, heads, indices, (B, T, C); 0: none does. */
static int64_t samples(const struct study *s, int32_t i)
{
    const enum task t = study_task(s, i);
    const struct dims d = study_dims(s, i, t == TASK_EMBEDDING ? 1 : 0);
    if ((t == TASK_CONVOLUTION && d.n >= 4) || (t == TASK_ATTENTION && d.n == 4) || (t == TASK_EMBEDDING && d.n == 2) || (t == TASK_LINEAR && d.n == 3))
        return d.size[0];
    return 0;
}

/* Where only flat products are there, their rows. */
static int64_t batch_of(const struct study *s)
{
    int64_t most = 0, rows = 0;
    for (int32_t i = 0; i < s->v->n_host; i++) {
        if (!study_has(s, i) || study_in_backward(s, i))
            continue;
        const int64_t n = samples(s, i);
        const struct dims d = study_task(s, i) == TASK_LINEAR ? study_dims(s, i, 0) : (struct dims){.n = -1};
        most = n > most ? n : most;
        rows = d.n == 2 && d.size[0] > rows ? d.size[0] : rows;
    }
    return most ? most : rows;
}

struct parts {                              /* of the replayed steps, in ns as recorded */
    double all;                             /* without waits for other ranks */
    double growing, fixed;                  /* what grows with the batch; of it, what each op takes at any batch */
};

/* Ops in the loader are its time, not the model's. */
static double *own_outside_loader(const struct study *s)
{
    double *own = study_own_ns(s);
    for (int32_t k = 0; k < s->replay->n_items; k++)
        if (s->replay->items[k].loader)
            own[s->replay->items[k].owner] = 0;
    return own;
}

static struct parts parts_of(const struct study *s)
{
    struct parts p = {0};
    double *own = own_outside_loader(s);
    for (int32_t k = 0; k < s->replay->n_items; k++)
        p.all += (double)(s->replay->items[k].ns - s->replay->items[k].comm_ns);
    for (int32_t i = 0; i < s->v->n_host; i++)
        if (own[i] > 0 && grows(s, i)) {
            p.growing += own[i];
            p.fixed += fmin(own[i], FIXED_NS);
        }
    free(own);
    p.growing = fmin(p.growing + (study_loader_ns(s) + study_python_ns(s)) * s->replay->n_steps, p.all);
    return p;
}

bool cpu_small_batch(struct study *s, struct charge *c)
{
    const int64_t batch = study_found(s, "sample-loop") ? 0 : batch_of(s);
    if (!batch || batch > MOST_BATCH || !s->trains)
        return false;
    const struct parts p = parts_of(s);
    if (!(p.all > 0) || p.growing > MOST_GROWS * p.all)
        return false;
    c->speedup = FACTOR * p.all / (p.all + (FACTOR - 1) * (p.growing - p.fixed));
    c->asks.times = (int)FACTOR;
    c->doubt = 0.5;
    c->involved_ns = s->base_ns;
    c->finding.symptom = study_is_bound_by(s, study_loader_ns(s));       /* what the step waits for goes first */
    c->finding.where = "the whole step";
    c->finding.per_sample = true;
    c->finding.cause = "most of the step does not grow with the batch: ops too small for all threads, their dispatch, the optimizer";
    c->finding.evidence = study_text(s, "batch of %lld; what grows with it takes %.0f %% of the step; the gain is per sample, at %.0f times the batch",
                                     (long long)batch, 100 * p.growing / p.all, FACTOR);
    return c->speedup > 1.1;
}
