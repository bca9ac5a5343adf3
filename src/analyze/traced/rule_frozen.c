/* unused-gradients: backward goes on behind the last parameter that an optimizer updates, as in a backbone that is meant to be frozen.
 * Parameters are told by the shapes of their gradients; nothing is said where shapes leave a doubt that all of them may be updated. */
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/rules.h"

static const double LEAST = 0.01;           /* of the step, in nodes behind the last gradient that is used */

/* ---- shapes as numbers; 0: not recorded ---- */

static uint64_t shape_key(struct dims d)
{
    uint64_t key = 1469598103934665603u;
    for (int i = 0; i < d.n; i++)
        key = (key ^ (uint64_t)d.size[i]) * 1099511628211u;
    return d.n <= 0 ? 0 : key ? key : 1;
}

/* ---- what optimizers update ---- */

struct updated {                            /* a tensor that an optimizer goes over */
    uint64_t key;
    int32_t window;                         /* a window is what is updated between two backward passes */
    bool any;                               /* it stands for any number of such tensors: an op on it does not say which they are */
};

struct capacity {
    uint64_t key;
    int32_t tensors;                        /* that are updated together; -1: any number */
    int32_t left, pass;                     /* not yet met in this backward pass */
    bool adds;                              /* one that was met is added to what is there */
};

struct updates {
    struct updated *at;                     /* (n) */
    int32_t n, cap, windows;
    struct capacity *capacities;            /* (n_capacities) by key */
    int32_t n_capacities, n_counted;        /* of them, with a number of tensors */
    bool unknown;                           /* something is updated of which no shape was recorded */
};

static void add_updated(struct updates *u, uint64_t key, bool any)
{
    if (u->n == u->cap) {
        u->cap = u->cap ? 2 * u->cap : 64;
        u->at = xrealloc(u->at, (size_t)u->cap * sizeof *u->at);
    }
    u->at[u->n++] = (struct updated){key, u->windows, any};
}

/* The shapes of a list, "[[[10, 256], [10]], ...", of which study_dims gives the first; the profiler leaves long lists out. */
static int add_list(const struct study *s, struct updates *u, int32_t op)
{
    const int32_t a = view_event(s->v, op)->args, text = a >= 0 ? s->v->trace->args[a].dims : -1;
    const char *p = text >= 0 ? s->v->trace->names[text] : "";
    int n = 0;
    if (strncmp(p, "[[[", 3))
        return 0;
    for (p += 2; *p == '['; n++) {
        const struct dims d = dims_take(&p);
        if (*p != ']')
            return 0;
        add_updated(u, shape_key(d), false);
        p += 1 + strspn(p + 1, ", ");
    }
    return n;
}

/* An op that has each parameter once, as its first input: what optimizers do last. */
static bool is_last_word(const char *name) { return strstr(name, "_fused_") || strstr(name, "addcdiv_"); }

/* Of others all shapes may be parameters', any number of them. */
static void add_all_inputs(const struct study *s, struct updates *u, int32_t op)
{
    const bool list = study_task(s, op) == TASK_MULTI;
    const int32_t before = u->n;
    if (list && !add_list(s, u, op))
        u->unknown = true;
    for (int32_t i = before; i < u->n; i++)
        u->at[i].any = true;
    for (int i = 0; i < 8 && !list; i++) {
        const struct dims d = study_dims(s, op, i);
        if (d.n > 0)
            add_updated(u, shape_key(d), true);
    }
}

/* One call of an optimizer's step: top[from, end). */
static void add_step(const struct study *s, struct updates *u, int32_t from, int32_t end)
{
    bool exact = false;
    for (int32_t k = from; k < end; k++)
        exact |= is_last_word(view_name(s->v, s->top[k]));
    const int32_t before = u->n;
    for (int32_t k = from; k < end; k++) {
        const int32_t op = s->top[k];
        if (!exact)
            add_all_inputs(s, u, op);
        else if (is_last_word(view_name(s->v, op)) && study_task(s, op) == TASK_MULTI)
            u->unknown |= !add_list(s, u, op);
        else if (is_last_word(view_name(s->v, op))) {
            const uint64_t key = shape_key(study_dims(s, op, 0));
            u->unknown |= !key;
            add_updated(u, key, false);
        }
        u->unknown |= name_is_compiled(view_name(s->v, op));
    }
    u->unknown |= u->n == before;           /* by kernels that no op tells of */
}

static int by_key(const void *a, const void *b)
{
    const struct updated *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->window > y->window) - (x->window < y->window);
}

/* As many of a shape as the window with most of them has. */
static void find_capacities(struct updates *u)
{
    if (!u->n)
        return;
    qsort(u->at, (size_t)u->n, sizeof *u->at, by_key);
    u->capacities = xcalloc((size_t)u->n, sizeof *u->capacities);
    for (int32_t i = 0, in_window = 0; i < u->n; i++) {
        const bool same = i && u->at[i].key == u->at[i - 1].key;
        if (!same)
            u->capacities[u->n_capacities++] = (struct capacity){.key = u->at[i].key, .pass = -1};
        struct capacity *c = &u->capacities[u->n_capacities - 1];
        in_window = same && u->at[i].window == u->at[i - 1].window ? in_window + 1 : 1;
        if (u->at[i].any)
            c->tensors = -1;
        else if (c->tensors >= 0 && in_window > c->tensors)
            c->tensors = in_window;
    }
    for (int32_t i = 0; i < u->n_capacities; i++)
        u->n_counted += u->capacities[i].tensors > 0;
}

static struct capacity *capacity_of(const struct updates *u, uint64_t key)
{
    int32_t low = 0, high = u->n_capacities;
    while (low < high) {
        const int32_t mid = (low + high) / 2;
        if (u->capacities[mid].key < key)
            low = mid + 1;
        else
            high = mid;
    }
    return low < u->n_capacities && u->capacities[low].key == key ? &u->capacities[low] : NULL;
}

static struct updates find_updates(const struct study *s)
{
    struct updates u = {0};
    bool behind_backward = false;
    for (int32_t k = 0, end; k < s->n_top; k = end) {
        end = k + 1;
        const int32_t range = study_annotation(s, s->top[k], "Optimizer.step");
        behind_backward |= study_is_backward(s, k);
        if (range < 0)
            continue;
        while (end < s->n_top && study_annotation(s, s->top[end], "Optimizer.step") == range)
            end++;
        u.windows += behind_backward;
        behind_backward = false;
        add_step(s, &u, k, end);
    }
    find_capacities(&u);
    return u;
}

static void release_updates(struct updates *u)
{
    free(u->at);
    free(u->capacities);
}

/* ---- gradients of a backward pass ---- */

static bool is_accumulate(const struct study *s, int32_t k)
{
    return study_is_backward(s, k) && strstr(view_name(s->v, s->top[k]), "AccumulateGrad") != NULL;
}

static uint64_t gradient_key(const struct study *s, int32_t k)
{
    const int32_t inside = s->top[k] + 1;   /* the node's own function has its input */
    return inside < s->v->end[s->top[k]] ? shape_key(study_dims(s, inside, 0)) : 0;
}

struct unused {
    int gradients, used;
    double ns;                              /* as recorded, or of the device */
    int32_t example;                        /* the first node that computes for nobody; -1 */
    bool unsure;                            /* which of several gradients of one shape is used is told by their order alone */
    bool unknown;
};

/* Adding to what is there: a gradient that no zero_grad of its optimizer has dropped. */
static bool adds(const struct study *s, int32_t k) { return study_find(s, s->top[k], TASK_ELEMENTWISE) >= 0; }

struct pass {
    int32_t from, end, last_used;           /* in top; -1: none is used */
    int gradients, used;
    int32_t met;                            /* capacities of which all tensors have a gradient */
    bool unsure, unknown;
};

/* Backward begins at the loss: of gradients of one shape the first are those of the head that is trained. */
static struct pass judge_pass(const struct study *s, const struct updates *u, int32_t from, int32_t end, int32_t number)
{
    struct pass p = {.from = from, .end = end, .last_used = -1};
    for (int32_t k = from; k < end; k++) {
        if (!is_accumulate(s, k))
            continue;
        const uint64_t key = gradient_key(s, k);
        struct capacity *c = key ? capacity_of(u, key) : NULL;
        p.unknown |= !key;
        p.gradients++;
        if (c && c->pass != number) {
            c->pass = number;
            c->left = c->tensors;
            c->adds = false;
        }
        if (c && c->left) {
            c->left -= c->left > 0;
            p.met += c->tensors > 0 && !c->left;
            c->adds |= adds(s, k);
            p.last_used = k;
            p.used++;
        } else if (c) {
            p.unsure |= c->adds || !adds(s, k);
        }
    }
    return p;
}

/* The product that hands the gradient on to the layers behind: its rows are those of the gradient that the node was given. */
static void charge_input_gradient(const struct study *s, struct charge *c, const struct pass *p)
{
    int32_t k = p->last_used;
    while (k > p->from && !(study_is_backward(s, k) && study_find(s, s->top[k], TASK_LINEAR) >= 0))
        k--;
    const int32_t node = s->top[k], first = study_find(s, node, TASK_LINEAR);
    int32_t onward = -1, products = 0;
    for (int32_t i = first; first >= 0 && i < s->v->end[node]; i++)
        if (study_task(s, i) == TASK_LINEAR) {
            const struct dims in = study_dims(s, i, 0);
            products++;
            onward = in.n == 2 && dims_equal(in, study_dims(s, node + 1, 0)) ? i : onward;
        }
    if (products == 2 && onward >= 0)
        charge_call(s, c, onward, 0);
}

static void charge_tail(const struct study *s, struct charge *c, const struct pass *p, struct unused *x)
{
    for (int32_t k = p->last_used + 1; k < p->end; k++) {
        const int32_t node = s->top[k];
        if (!study_is_backward(s, k))
            continue;
        charge_call(s, c, node, 0);
        x->ns += study_on_cpu(s) ? (double)view_event(s->v, node)->duration_ns : study_device_ns(s, node);
        x->example = x->example < 0 ? node : x->example;
    }
    charge_input_gradient(s, c, p);
    x->gradients += p->gradients;
    x->used += p->used;
    x->unsure |= p->unsure;
}

static struct unused find_unused(const struct study *s, const struct updates *u, struct charge *c)
{
    struct unused x = {.example = -1};
    int32_t number = 0;
    for (int32_t k = 0, end; k < s->n_top && !x.unknown; k = end) {
        end = k + 1;
        if (!study_is_backward(s, k))
            continue;
        while (end < s->n_top && (study_is_backward(s, end) || !(study_works(s, s->top[end]) || study_annotation(s, s->top[end], "Optimizer") >= 0)))
            end++;
        const struct pass p = judge_pass(s, u, k, end, number);
        x.unknown |= p.unknown;
        if (p.used && p.used < p.gradients && p.met == u->n_counted)      /* shards and copies of another shape have none */
            charge_tail(s, c, &p, &x);
        number++;
    }
    return x;
}

static bool has_other_ranks(const struct study *s) { return s->v->trace->origin.world_size > 1 || s->v->collectives || s->comm_ns > 0; }

bool trace_rule_unused_gradients(struct study *s, struct charge *c)
{
    if (!s->trains || !s->v->trace->origin.has_shapes || has_other_ranks(s))
        return false;                       /* each rank may update a share of the parameters */
    struct updates u = find_updates(s);
    struct unused x = {.example = -1};
    if (u.n && !u.unknown)
        x = find_unused(s, &u, c);
    release_updates(&u);
    if (x.unknown || x.example < 0 || per_step(s, x.ns) < LEAST * s->base_ns)
        return false;
    const int32_t forward = study_forward_of(s, x.example);
    c->doubt = 0.25;
    c->may_win_nothing = x.unsure;
    c->finding.where = study_where(s, forward >= 0 ? forward : x.example);
    c->finding.cause = "backward goes on behind the last parameter that an optimizer updates: layers that are meant to be frozen still ask for their gradients";
    c->finding.evidence = study_text(s, "%s gradients per step, of which no optimizer step in the trace takes %s; backward from the last that is used to the model's input: %s%s per step",
                                     study_number(s, per_step(s, x.gradients)), study_number(s, per_step(s, x.gradients - x.used)), study_us(s, per_step(s, x.ns)),
                                     study_on_cpu(s) ? ", as recorded," : " of the device");
    return true;
}
