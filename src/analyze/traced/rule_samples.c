/* sample-loop: the model runs once per sample of a batch that is there, in a loop of the user's. A loop over time looks much the same: of
 * several signs that turns may need each other one is enough to say nothing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/products.h"
#include "analyze/traced/rules.h"

enum { LEAST_TURNS = 4, LONGEST = 2048, CANDIDATES = 4, LOOK_BACK = 16, DEEP = 4 };
static const double FIXED_NS = 40e3;        /* of an op on a CPU that is no product, which a batch does not make longer: dispatch, threads */
static const double ELEMENT_NS = 1;         /* each element of it takes so long at least */
static const double SURE_NS = 20e3;         /* of a product, from which on its time tells how fast they are */

/* ---- a loop over samples ---- */

static const char *op_name(const struct study *s, int32_t k)
{
    const char *name = view_name(s->v, s->top[k]);
    return strncmp(name, "aten::", 6) ? name : name + 6;
}

static bool is_op(const struct study *s, int32_t k, const char *name) { return !strcmp(op_name(s, k), name); }

static bool is_slice(const struct study *s, int32_t k) { return is_op(s, k, "slice") || is_op(s, k, "narrow"); }

/* An op that takes one sample out of many, or makes a batch of one of it. */
static bool is_anchor(const struct study *s, int32_t k)
{
    return (is_slice(s, k) || is_op(s, k, "select") || is_op(s, k, "unsqueeze")) && study_annotation(s, s->top[k], "enumerate(DataLoader)") < 0;
}

static bool repeats(const struct study *s, int32_t first, int32_t period)
{
    const int64_t end = first + (int64_t)LEAST_TURNS * period;
    if (end > s->n_top)
        return false;
    for (int32_t i = first; i < end - period; i++)
        if (!study_same(s, i, i + period))
            return false;
    return true;
}

/* From an anchor to the same op of the next turn; y[i] may be like x[i], so that the next but one is tried, too. */
static bool loop_at(const struct study *s, int32_t first, struct loop *l)
{
    for (int32_t next = first + 1, tried = 0; next < s->n_top && next - first <= LONGEST && tried < CANDIDATES; next++) {
        if (study_is_backward(s, next))
            return false;
        if (!study_same(s, first, next))
            continue;
        tried++;
        if (!repeats(s, first, next - first))
            continue;
        *l = (struct loop){first, next - first, LEAST_TURNS * (next - first)};
        study_loop_extend(s, l);
        return true;
    }
    return false;
}

/* What a turn consists of. */
struct body {
    int ones, others;                       /* inputs of products, convolutions and lookups: of one sample; of more rows */
    int works;                              /* products, convolutions, lookups, norms, attention */
    bool joins, adds, tanh, sigmoid;        /* ways to bring in a state and to bound it */
    bool brings_in;                         /* one of the first two before anything works */
    bool unsqueezes, single;                /* a convolution without a dimension of samples */
    bool unfit;                             /* it needs what came before it: recurrent ops, reads, chance */
    int64_t rows;                           /* of what is picked from; 0: nothing is */
    bool selects;                           /* and its first dimension goes */
};

static void look_at_input(const struct study *s, struct body *b, int32_t op)
{
    const enum task t = study_task(s, op);
    const struct dims d = study_dims(s, op, t == TASK_EMBEDDING ? 1 : 0);
    if ((t != TASK_LINEAR && t != TASK_CONVOLUTION && t != TASK_EMBEDDING && t != TASK_ATTENTION) || d.n < 1)
        return;
    b->single |= t == TASK_CONVOLUTION && d.n == 3;
    const bool one = d.size[0] == 1 || (t == TASK_CONVOLUTION && d.n == 3);
    *(one ? &b->ones : &b->others) += 1;
}

static void look_at(const struct study *s, struct body *b, int32_t k)
{
    static const char *const bound[] = {"lstm", "gru", "rnn_", "multinomial", "bernoulli", "exponential_", "normal"};
    const int32_t op = s->top[k];
    const char *name = op_name(s, k);
    for (size_t i = 0; i < sizeof bound / sizeof *bound; i++)
        b->unfit |= strstr(name, bound[i]) && !strstr(name, "norm_") && study_task(s, op) != TASK_NORM;
    b->unfit |= study_task(s, op) == TASK_SCALAR || study_is_backward(s, k) || study_annotation(s, op, "Optimizer") >= 0;
    b->works += study_works(s, op) || study_task(s, op) == TASK_EMBEDDING;
    b->joins |= study_task(s, op) == TASK_JOIN;
    b->adds |= !strncmp(name, "add", 3) && strncmp(name, "addmm", 5) && dims_elements(study_dims(s, op, 1)) > 1;
    b->brings_in |= !b->works && (b->joins || b->adds);
    b->tanh |= !strncmp(name, "tanh", 4);
    b->sigmoid |= !strncmp(name, "sigmoid", 7);
    b->unsqueezes |= is_op(s, k, "unsqueeze");
    if (is_slice(s, k) || is_op(s, k, "select")) {
        const struct dims d = study_dims(s, op, 0);
        b->selects |= !b->rows && is_op(s, k, "select");
        b->rows = !b->rows && d.n > 0 ? d.size[0] : b->rows;
    }
    look_at_input(s, b, op);
}

/* Rows of a tensor that was taken apart before the loop: for x, y in zip(xs, ys). */
static int64_t rows_taken_apart(const struct study *s, int32_t first)
{
    for (int32_t k = first - 1; k >= 0 && first - k <= LOOK_BACK; k--)
        if (is_op(s, k, "unbind") || is_op(s, k, "split") || is_op(s, k, "chunk"))
            return study_dims(s, s->top[k], 0).n > 0 ? study_dims(s, s->top[k], 0).size[0] : 0;
    return 0;
}

static int turns_of(const struct loop *l) { return (l->ops + l->period / 2) / l->period; }

/* Few ops that work may be a recurrent cell written out, which adds, joins or bounds what it hands on; a deep one begins with that. */
static bool may_be_recurrent(const struct body *b)
{
    return (b->tanh && b->sigmoid) || b->brings_in || (b->works < DEEP && (b->joins || b->adds || b->tanh || b->sigmoid));
}

static bool is_over_samples(const struct study *s, const struct loop *l)
{
    struct body b = {0};
    for (int32_t k = l->first; k < l->first + l->period; k++)
        look_at(s, &b, k);
    const bool picks = b.rows > 1;
    const int64_t rows = picks ? b.rows : rows_taken_apart(s, l->first);
    const bool makes_one = picks && !b.selects ? true : b.unsqueezes || b.single;
    return rows >= turns_of(l) && makes_one && b.ones > b.others && !b.unfit && !may_be_recurrent(&b) &&
           view_event(s->v, s->top[l->first])->step == view_event(s->v, s->top[l->first + l->ops - 1])->step;
}

/* ---- what is left of it in one batch ---- */

struct fix {
    const struct study *s;
    struct charge *c;
    const double *own;                      /* (n_host) without the profiler and what is inside */
    double turns, flops_per_ns;
    double ns;                              /* of the loop and its backward, as recorded */
};

/* The fastest product there is, or what may be expected. */
static double product_rate(const struct study *s, const double *own)
{
    double rate = PRODUCT_FLOPS_PER_NS * fmax(study_threads(s), 1);
    struct product p;
    for (int32_t i = 0; i < s->v->n_host; i++)
        if (own[i] >= SURE_NS && product_read(s, i, &p))
            rate = fmax(rate, p.flops / own[i]);
    return rate;
}

/* What a further sample adds to an op. */
static double grows_ns(const struct fix *f, int32_t i)
{
    const struct study *s = f->s;
    const enum task t = study_task(s, i);
    struct product p;
    if (view_event(s->v, i)->kind != EVENT_HOST_OP || t == TASK_SHAPE || t == TASK_BACKWARD)
        return 0;
    if (product_read(s, i, &p))
        return p.flops / f->flops_per_ns;
    const double flops = convolution_about_flops(s, i);
    if (flops > 0)
        return flops / f->flops_per_ns;
    const bool leaf = s->v->end[i] == i + 1;
    const struct dims d = study_dims(s, i, 0);
    return fmax(f->own[i] - FIXED_NS, leaf && d.n > 0 ? ELEMENT_NS * (double)dims_elements(d) : 0);
}

static void charge_own(struct fix *f, int32_t i)
{
    const double own = f->own[i], batched = fmin(fmax(own, f->turns * grows_ns(f, i)), f->turns * own);
    const double part = own > 0 ? batched / (f->turns * own) : 1 / f->turns;
    f->c->edit.host[i] = (uint8_t)lround(part * KEEP_ALL);
}

static void charge_all(struct fix *f, int32_t host)
{
    f->ns += (double)view_event(f->s->v, host)->duration_ns;
    for (int32_t i = host; i < f->s->v->end[host]; i++)
        charge_own(f, i);
}

/* Behind a node, and not in its function, are sums of the turns' gradients of one weight: a batch has one. */
static void charge_node(void *context, int32_t node)
{
    struct fix *f = context;
    const struct study *s = f->s;
    if (strstr(view_name(s->v, node), "AccumulateGrad"))
        return;                             /* once for all turns */
    charge_all(f, node);
    for (int32_t i = node + 1; i < s->v->end[node]; i = s->v->end[i])
        if (study_task(s, i) == TASK_ELEMENTWISE && strstr(view_name(s->v, i), "::add"))
            charge_call(s, f->c, i, 0);
}

bool trace_rule_sample_loop(struct study *s, struct charge *c)
{
    int loops = 0;
    int32_t example = -1;
    if (!study_on_cpu(s))
        return false;                       /* what a batch would take there is not measured */
    double *own = study_work_ns(s);
    struct fix f = {.s = s, .c = c, .own = own, .flops_per_ns = product_rate(s, own)};
    double turns = 0;
    for (int32_t k = 0; k < s->n_top; k++) {
        struct loop l;
        if (!is_anchor(s, k) || !loop_at(s, k, &l))
            continue;
        k = l.first + l.ops - 1;
        if (!is_over_samples(s, &l))
            continue;
        f.turns = turns_of(&l);
        for (int32_t i = l.first; i < l.first + l.ops; i++) {
            charge_all(&f, s->top[i]);
            study_twins(s, s->top[i], charge_node, &f);
            example = example < 0 && study_works(s, s->top[i]) ? s->top[i] : example;
        }
        turns += f.turns;
        loops++;
    }
    free(own);
    if (example < 0)
        return false;
    c->involved_ns = per_step(s, f.ns);
    c->doubt = 0.45;
    c->finding.where = study_where(s, example);
    c->finding.cause = "the model runs sample by sample, in a loop over a batch that it could take at once";
    c->finding.evidence = study_text(s, "%s loops per step of %.0f turns each, all of the same ops on one sample; with their backward %s per step, as recorded",
                                     study_number(s, per_step(s, loops)), turns / loops, study_us(s, per_step(s, f.ns)));
    return true;
}
