/* eval-share: forward passes without gradients between training steps, or of a frozen network within them. */
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/phases.h"
#include "analyze/traced/rules.h"

enum { LEAST_OPS = 4 };                     /* products, norms and attentions of a forward pass */
static const double LEFT = 0.05;            /* evaluated twenty times less often */
static const double SAME = 0.5;             /* of the layers of a pass are layers that learn: it is the same model */

enum pass { NOTHING, LEARNS, EVALUATES, RECORDS };      /* RECORDS: for gradients that no backward pass of the step computes */

/* Whether an outermost op is part of a model's pass, and whether gradients were recorded in it. */
static enum pass pass_of(const struct study *s, int32_t top)
{
    static const enum task tasks[] = {TASK_LINEAR, TASK_BATCHED, TASK_NORM, TASK_ATTENTION, TASK_CONVOLUTION, TASK_EMBEDDING};
    if (study_task(s, top) == TASK_BACKWARD || study_annotation(s, top, "Optimizer") >= 0)
        return NOTHING;
    bool works = false;
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
        works |= study_find(s, top, tasks[i]) >= 0;
    if (!works)
        return NOTHING;
    /* the op's own number counts: casts of weights inside are recorded with gradients even in an evaluation */
    return view_event(s->v, top)->link < 0 ? EVALUATES : study_learns(s, top) ? LEARNS : RECORDS;
}

/* Ops of one kind, which learn nothing, from `first` on, with those that follow the last one closely: the loss, its read. */
struct stretch {
    int32_t first, end;
    enum pass kind;                         /* EVALUATES or RECORDS */
    int ops;                                /* that work */
    bool read;                              /* the host reads a number of it */
    bool frozen;                            /* of a network that does not learn */
    bool draws;                             /* chance chooses from what it gives: it makes data, as a rollout does */
};

/* A number, or a tensor that is brought to the host. What asks how many there are, such as indexing by a mask, does not read what was computed. */
static bool reads(const struct study *s, int32_t top)
{
    static const char *const numbers[] = {"item", "_local_scalar_dense"}, *const tensors[] = {"to", "_to_copy", "copy_", "cpu"};
    const char *name = view_name(s->v, top), *plain = strrchr(name, ':');
    plain = plain ? plain + 1 : name;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(plain, numbers[i]))
            return true;
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        if (!strcmp(plain, tensors[i]))
            return study_copy(s, top, "DtoH") != NULL;
    return false;
}

/* Whether an outermost op draws at random: an action, a token. Masks of dropout are drawn, too, where somebody forgot model.eval(): that
 * remains an evaluation. Normal noise is not asked for: models of images draw it for their inputs. */
static bool draws(const struct study *s, int32_t top)
{
    static const char *const names[] = {"aten::multinomial", "aten::bernoulli", "aten::bernoulli_", "aten::exponential_"};
    for (int32_t i = top; i < s->v->end[top]; i++) {
        const char *name = view_name(s->v, i);
        if (strstr(name, "dropout")) {
            i = s->v->end[i] - 1;
            continue;
        }
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (!strcmp(name, names[k]))
                return true;
    }
    return false;
}

static bool ends_pass(const struct study *s, int32_t i, enum pass kind)
{
    const enum pass is = pass_of(s, s->top[i]);
    return study_is_backward(s, i) || (is != NOTHING && is != kind) || study_annotation(s, s->top[i], "Optimizer") >= 0;
}

static struct stretch stretch_from(const struct study *s, int32_t first)
{
    enum { CLOSELY = 8 };
    struct stretch r = {.first = first, .kind = pass_of(s, s->top[first])};
    int32_t last = first, read = -1;        /* read: the first behind the last op that works */
    for (int32_t i = first; i < s->n_top && !ends_pass(s, i, r.kind); i++) {
        if (pass_of(s, s->top[i]) == r.kind) {
            r.ops++, last = i;
            read = -1;
        } else if (reads(s, s->top[i])) {
            r.read = true;
            read = read < 0 ? i : read;
        } else {
            r.draws |= read < 0 && draws(s, s->top[i]);     /* behind the read it is the next epoch's sampler */
        }
    }
    r.end = last + 1;
    while (r.end < s->n_top && r.end - last <= CLOSELY && !ends_pass(s, r.end, r.kind) && r.end - 1 != read)
        r.end++;
    return r;
}

/* The outermost range of compiled code around an op; the op itself where there is none. Kernels of compiled code are launched without
 * an op around each. */
static int32_t compiled_around(const struct study *s, int32_t top)
{
    int32_t found = top;
    for (int32_t i = s->v->parent[top]; i >= 0; i = s->v->parent[i])
        if (strstr(view_name(s->v, i), "CompiledFxGraph") || strstr(view_name(s->v, i), "Torch-Compiled Region"))
            found = i;
    return found;
}

/* All that its thread does from the first op to the last goes, calls outside of ops too. */
static void charge_stretch(const struct study *s, struct charge *c, int32_t first, int32_t end)
{
    const int32_t from = compiled_around(s, s->top[first]), last = compiled_around(s, s->top[end - 1]);
    const struct event *f = view_event(s->v, from);
    const int64_t until = event_end(view_event(s->v, last));
    for (int32_t k = first; k < end; k++)
        charge_call(s, c, s->top[k], LEFT);
    for (int32_t i = from; i < s->v->n_host && view_event(s->v, i)->track == f->track && view_event(s->v, i)->start_ns < until; i++)
        if (view_event(s->v, i)->kind == EVENT_RUNTIME)
            charge_call(s, c, i, LEFT);
}

/* ---- whose pass it is: layers with weights, told by what they do and how many weights they have ---- */

struct layers {
    uint64_t *at;                           /* (n) sorted once they are all known */
    int32_t n, cap;
};

/* Which input of the op its weights are; -1: it has none. */
static int weights_input(const struct study *s, int32_t op)
{
    switch (study_task(s, op)) {
    case TASK_EMBEDDING:   return 0;
    case TASK_CONVOLUTION: return 1;
    case TASK_LINEAR:      return strstr(view_name(s->v, op), "addmm") ? 2 : 1;
    default:               return -1;
    }
}

/* A number for what the op does with how many weights: compiled code calls a linear layer by another name, and turns its matrix
 * round. Without shapes all layers of a kind are one. */
static uint64_t layer_key(const struct study *s, int32_t op, int weights)
{
    return (uint64_t)dims_elements(study_dims(s, op, weights)) * 64 + study_task(s, op);
}

static int by_key(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Those in an outermost op. */
static void add_layers(const struct study *s, struct layers *l, int32_t top)
{
    for (int32_t i = top; i < s->v->end[top]; i++) {
        const int weights = weights_input(s, i);
        if (weights < 0)
            continue;
        if (l->n == l->cap) {
            l->cap = l->cap ? 2 * l->cap : 64;
            l->at = xrealloc(l->at, (size_t)l->cap * sizeof *l->at);
        }
        l->at[l->n++] = layer_key(s, i, weights);
    }
}

/* Those of the passes between which an evaluation may be: a frozen part of the model that records gradients is one of them. `surely`: those
 * alone whose gradients are computed. */
static struct layers layers_that_learn(const struct study *s, bool surely)
{
    struct layers l = {0};
    for (int32_t k = 0; k < s->n_top; k++) {
        const enum pass is = study_is_backward(s, k) ? NOTHING : pass_of(s, s->top[k]);
        if (is == LEARNS || (is == RECORDS && !surely))
            add_layers(s, &l, s->top[k]);
    }
    if (l.n)
        qsort(l.at, (size_t)l.n, sizeof *l.at, by_key);
    return l;
}

/* Whether a stretch runs the model that learns. Where nothing can be compared it does. */
static bool is_trained(const struct study *s, const struct layers *learn, int32_t first, int32_t end)
{
    struct layers run = {0};
    int32_t same = 0;
    for (int32_t k = first; k < end; k++)
        add_layers(s, &run, s->top[k]);
    for (int32_t i = 0; i < run.n; i++)
        same += learn->n && bsearch(&run.at[i], learn->at, (size_t)learn->n, sizeof *learn->at, by_key);
    const bool trained = !run.n || !learn->n || same >= SAME * run.n;
    free(run.at);
    return trained;
}

/* ---- the rule ---- */

struct stretches {
    struct stretch *at;                     /* (n) */
    int n, cap;
    int forwards;                           /* passes with gradients beside them */
};

static void add_stretch(struct stretches *l, struct stretch x)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 16;
        l->at = xrealloc(l->at, (size_t)l->cap * sizeof *l->at);
    }
    l->at[l->n++] = x;
}

/* An evaluation that forgot torch.no_grad(): the model that learns, of which a number is read. Others that record for nothing, such as what
 * is detached behind it, are part of the step. */
static bool forgets_no_grad(const struct study *s, const struct layers *surely, const struct stretch *x)
{
    return x->read && surely->n && x->ops >= LEAST_OPS && !x->draws && is_trained(s, surely, x->first, x->end);
}

/* A pass between a forward pass and its backward is part of the loss, such as a reference model's, whatever its layers are. */
static struct stretches find_stretches(const struct study *s)
{
    struct stretches l = {0};
    struct layers learn = layers_that_learn(s, false), surely = layers_that_learn(s, true);
    bool in_forward = false;
    for (int32_t i = 0, end; i < s->n_top; i = end) {
        end = i + 1;
        const enum pass is = study_is_backward(s, i) ? NOTHING : pass_of(s, s->top[i]);
        struct stretch x = {0};
        if (is == EVALUATES || is == RECORDS) {
            x = stretch_from(s, i);
            end = x.end;
        }
        const bool evaluates = is == EVALUATES || (is == RECORDS && !in_forward && forgets_no_grad(s, &surely, &x));
        const bool forward = is != NOTHING && !evaluates;
        l.forwards += forward && !in_forward;
        in_forward = forward || (in_forward && !study_is_backward(s, i));
        if (!evaluates)
            continue;
        x.frozen = in_forward || !is_trained(s, &learn, x.first, x.end);
        if (x.ops >= LEAST_OPS && !x.draws)
            add_stretch(&l, x);
    }
    free(learn.at);
    free(surely.at);
    return l;
}

/* A pass of the layers that learn with every forward pass, of which nobody reads a number, is no evaluation either: a reference model's or a teacher's, before the forward pass. */
static bool is_with_every_forward(const struct stretches *l)
{
    int read = 0, unread = 0;
    for (int i = 0; i < l->n; i++)
        *(l->at[i].read ? &read : &unread) += !l->at[i].frozen;
    return l->forwards > 1 && unread > 1 && 2 * unread >= l->forwards && read + unread >= l->forwards - 1;
}

static bool is_of_frozen(const struct stretch *x, bool with_every_forward) { return x->frozen || (with_every_forward && !x->read); }

void study_evaluations(const struct study *s, void (*each)(void *context, int32_t first, int32_t end), void *context)
{
    if (!s->trains)
        return;
    struct stretches l = find_stretches(s);
    const bool every = is_with_every_forward(&l);
    for (int i = 0; i < l.n; i++)
        if (!is_of_frozen(&l.at[i], every))
            each(context, l.at[i].first, l.at[i].end);
    free(l.at);
}

struct passes {
    int evaluations, frozen, recorded;      /* stretches; of evaluations, those that record gradients */
    int ops[2];                             /* products, norms and attentions: of evaluations, of frozen networks */
    double ns;                              /* of frozen networks, on the device where there is one */
    int32_t example, frozen_example;        /* -1 */
};

static void add_pass(const struct study *s, struct charge *c, struct passes *p, const struct stretch *x, bool frozen)
{
    int32_t *example = frozen ? &p->frozen_example : &p->example;
    *example = *example < 0 ? s->top[x->first] : *example;
    p->ops[frozen] += x->ops;
    if (!frozen) {
        charge_stretch(s, c, x->first, x->end);
        p->evaluations++;
        p->recorded += x->kind == RECORDS;
        return;
    }
    p->frozen++;
    for (int32_t k = x->first; k < x->end; k++)
        p->ns += !study_on_cpu(s) ? study_device_ns(s, s->top[k]) : (double)view_event(s->v, s->top[k])->duration_ns;
}

static struct passes find_passes(const struct study *s, struct charge *c)
{
    struct passes p = {.example = -1, .frozen_example = -1};
    struct stretches l = find_stretches(s);
    const bool every = is_with_every_forward(&l);
    for (int i = 0; i < l.n; i++)
        add_pass(s, c, &p, &l.at[i], is_of_frozen(&l.at[i], every));
    free(l.at);
    return p;
}

/* How much of it can be kept or made cheaper is not in the trace: no gain is promised. */
static bool runs_frozen(struct study *s, struct charge *c, const struct passes *p)
{
    c->memory_only = true;
    c->asks.frozen = true;
    c->finding.where = study_where(s, p->frozen_example);
    c->finding.cause = "a network that does not learn runs forward in the step: a frozen encoder, a teacher or a reference model";
    c->finding.evidence = study_text(s, "%d stretch%s without gradients in %s steps, %d products, norms and attentions in them, %s%s per step", p->frozen, p->frozen == 1 ? "" : "es",
                                     study_number(s, s->replay->n_steps), p->ops[1], study_us(s, per_step(s, p->ns)), study_on_cpu(s) ? "" : " of the device");
    return true;
}

bool trace_rule_eval_share(struct study *s, struct charge *c)
{
    if (!s->trains)
        return false;
    const struct passes p = find_passes(s, c);
    if (!p.evaluations)
        return p.frozen && runs_frozen(s, c, &p);
    c->doubt = 0.25;
    c->finding.where = study_where(s, p.example);
    c->finding.cause = p.recorded ? "the model runs forward between training steps and keeps all that gradients would need, which nobody asks for; that time trains nothing"
                                  : "the model runs forward without gradients between training steps; that time trains nothing";
    c->finding.evidence = study_text(s, "%d stretch%s of evaluation in %s steps, %d products, norms and attentions in them",
                                     p.evaluations, p.evaluations == 1 ? "" : "es", study_number(s, s->replay->n_steps), p.ops[0]);
    return true;
}
