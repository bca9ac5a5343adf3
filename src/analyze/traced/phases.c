/* Which phase of its step each call of the host is of. Backward nodes, ranges of the optimizer and waits for the loader say it themselves,
 * evaluations are found by their rule. What lies between these is told by what the model does in it, and by what comes before and behind:
 * what leads to a backward pass is forward from the first op of the model on, and before that it makes the batch. */
#include "analyze/traced/phases.h"

#include <stdlib.h>
#include <string.h>

enum role { PLAIN, BACKWARD, UPDATES, ZEROES, LOADS, EVALUATES };      /* UPDATES: Optimizer.step; ZEROES: other ranges of an optimizer */

/* An outermost op, range of an optimizer or wait for the loader, or a call of the runtime that is in none of them. */
struct unit {
    int64_t start_ns;
    int32_t event, step;
    enum role role;
    bool works;                             /* an op of the model is in it */
};

struct units {
    const struct study *s;
    struct phases *out;
    struct unit *at;                        /* (n) by start, of all threads that make the step */
    int32_t n;
    bool any_update;
};

/* Units [from, end) with nothing between that says its phase itself, of one step; of them [model, model_end) are the model's pass. */
struct region {
    int32_t from, end, model, model_end;
    enum role before, after;                /* PLAIN: the step begins, or ends */
};

/* "ReluBackward1": old traces have the nodes alone, without the engine's evaluation around. */
static bool is_node(const struct study *s, int32_t i)
{
    const char *name = view_name(s->v, i), *back = strstr(name, "Backward");
    if (view_event(s->v, i)->kind != EVENT_HOST_OP)
        return false;
    return study_task(s, i) == TASK_BACKWARD || (back && !strstr(name, "::") && !back[8 + strspn(back + 8, "0123456789")]) ||
           !strcmp(name, "torch::autograd::AccumulateGrad");
}

/* A step of an optimizer that is given a closure has the forward and the backward pass in it. */
static bool has_closure(const struct study *s, int32_t range)
{
    bool any = study_learns(s, range);
    for (int32_t i = range + 1; i < s->v->end[range] && !any; i++)
        any = is_node(s, i);
    return any;
}

static enum role role_of(const struct study *s, int32_t i)
{
    const char *name = view_name(s->v, i);
    if (view_event(s->v, i)->kind == EVENT_RUNTIME)
        return PLAIN;
    if (!strncmp(name, "Optimizer.step", 14))
        return has_closure(s, i) ? PLAIN : UPDATES;
    if (!strncmp(name, "Optimizer.", 10))
        return ZEROES;
    if (is_node(s, i))
        return BACKWARD;
    return strstr(name, "DataLoader") ? LOADS : PLAIN;
}

static bool is_unit(const struct study *s, int32_t i)
{
    return role_of(s, i) != PLAIN || view_event(s->v, i)->kind == EVENT_RUNTIME || study_top(s, i) == i;
}

/* A graph, or a kernel of compiled code, is launched without an op around. */
static bool launches_model(const struct study *s, int32_t i)
{
    const int32_t work = s->v->launched[i];
    if (view_event(s->v, i)->kind != EVENT_RUNTIME || work < 0)
        return false;
    return s->v->call_kinds[view_event(s->v, i)->name] == CALL_GRAPH || name_is_compiled(view_name(s->v, work));
}

static bool works(const struct study *s, int32_t i)
{
    return launches_model(s, i) || study_works(s, i) || study_find(s, i, TASK_BATCHED) >= 0 || study_find(s, i, TASK_EMBEDDING) >= 0 || study_learns(s, i);
}

static int by_start(const void *a, const void *b)
{
    const struct unit *x = a, *y = b;
    return x->start_ns != y->start_ns ? (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns) : (x->event > y->event) - (x->event < y->event);
}

static void collect(struct units *u)
{
    const struct study *s = u->s;
    int32_t cap = 0;
    for (int32_t i = 0; i < s->v->n_host; i++) {
        if (!study_has(s, i) || !is_unit(s, i))
            continue;
        if (u->n == cap)
            u->at = xrealloc(u->at, (size_t)(cap += cap / 2 + 256) * sizeof *u->at);
        const struct event *e = view_event(s->v, i);
        const enum role role = role_of(s, i);
        u->at[u->n++] = (struct unit){e->start_ns, i, e->step, role, role == PLAIN && works(s, i)};
        u->any_update |= role == UPDATES;
        u->out->any_backward |= role == BACKWARD;
        u->out->any_model |= u->at[u->n - 1].works;
        i = s->v->end[i] - 1;
    }
    if (u->n)
        qsort(u->at, (size_t)u->n, sizeof *u->at, by_start);
}

/* With all that is inside. */
static void assign(const struct units *u, int32_t event, enum step_phase phase)
{
    memset(u->out->of + event, phase, (size_t)(u->s->v->end[event] - event));
}

/* ---- the user's own words ---- */

enum step_phase phases_named(const struct study *s, int32_t host)
{
    static const struct { const char *word; enum step_phase phase; } names[] = {
        {"forward", STEP_FORWARD},     {"forward_pass", STEP_FORWARD},     {"DistributedDataParallel.forward", STEP_FORWARD},
        {"backward", STEP_BACKWARD},   {"backward_pass", STEP_BACKWARD},   {"optimizer", STEP_OPTIMIZER},
        {"optimizer_step", STEP_OPTIMIZER}, {"data", STEP_DATA},           {"data_loading", STEP_DATA},
        {"dataloader", STEP_DATA},     {"load_batch", STEP_DATA},          {"eval", STEP_EVALUATION},
        {"evaluation", STEP_EVALUATION}, {"validation", STEP_EVALUATION}};
    if (view_event(s->v, host)->kind == EVENT_RUNTIME)
        return STEP_NONE;
    const char *name = view_name(s->v, host) + strspn(view_name(s->v, host), "# ");
    const size_t n = strcspn(name, "# ");
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (strlen(names[k].word) == n && !strncasecmp(name, names[k].word, n) && !name[n + strspn(name + n, "# ")])
            return names[k].phase;
    return STEP_NONE;
}

static enum step_phase named_around(const struct study *s, int32_t host)
{
    enum step_phase phase = STEP_NONE;
    for (int32_t i = s->v->parent[host]; i >= 0 && phase == STEP_NONE; i = s->v->parent[i])
        phase = phases_named(s, i);
    return phase;
}

/* ---- evaluations ---- */

static void mark_evaluation(void *units, int32_t first, int32_t end)
{
    const struct units *u = units;
    for (int32_t k = first; k < end; k++)
        u->out->of[u->s->top[k]] = STEP_EVALUATION;
}

static bool ends_evaluation(const struct unit *x) { return x->works || x->role == BACKWARD || x->role == UPDATES; }

/* From one pass of an evaluation to the next all is of it: its batches, what it adds up. */
static void find_evaluations(struct units *u)
{
    int32_t last = -1;
    study_evaluations(u->s, mark_evaluation, u);
    for (int32_t k = 0; k < u->n; k++) {
        struct unit *x = &u->at[k];
        if (x->role == PLAIN && u->out->of[x->event] == STEP_EVALUATION) {
            for (int32_t i = last < 0 ? k : last; i <= k; i++)
                u->at[i].role = EVALUATES;
            last = k;
        } else if (ends_evaluation(x)) {
            last = -1;
        }
    }
}

/* ---- regions ---- */

static bool is_part(enum role role) { return role != PLAIN && role != ZEROES; }

static enum role role_beside(const struct units *u, int32_t k, int32_t step)
{
    return k >= 0 && k < u->n && u->at[k].step == step ? u->at[k].role : PLAIN;
}

/* The host reads a number, or waits. */
static bool reads(const struct study *s, int32_t i) { return study_task(s, i) == TASK_SCALAR || view_call_waits(s->v, i); }

static struct region region_from(const struct units *u, int32_t from)
{
    struct region r = {.from = from, .end = from, .model = -1};
    const int32_t step = u->at[from].step;
    for (; r.end < u->n && !is_part(u->at[r.end].role) && u->at[r.end].step == step; r.end++)
        if (u->at[r.end].works) {
            r.model = r.model < 0 ? r.end : r.model;
            r.model_end = r.end + 1;
        }
    r.before = role_beside(u, from - 1, step);
    r.after = role_beside(u, r.end, step);
    if (r.model >= 0 && r.after == BACKWARD)
        r.model_end = r.end;
    while (u->s->facts.forward_only && r.model >= 0 && r.model_end < r.end && !reads(u->s, u->at[r.model_end].event))
        r.model_end++;                      /* what it gives, until somebody looks at it */
    return r;
}

/* Gradients are set to zero, weights are averaged, without a range that says so. */
static bool goes_over_tensors(const struct study *s, int32_t i)
{
    const enum task task = study_task(s, i);
    return task == TASK_MULTI || task == TASK_UPDATE || task == TASK_FILL;
}

static enum step_phase phase_in(const struct units *u, const struct region *r, int32_t k)
{
    const int32_t event = u->at[k].event;
    const enum step_phase named = named_around(u->s, event);
    const bool before_model = r->model >= 0 && k < r->model, no_model = r->model < 0;
    if (u->at[k].role == ZEROES)
        return STEP_OPTIMIZER;
    if (named != STEP_NONE)
        return named;
    if (r->before == BACKWARD && r->after == UPDATES)
        return reads(u->s, event) ? STEP_OTHER : STEP_OPTIMIZER;       /* gradients are clipped, or multiplied by what conditions them */
    if (r->model >= 0 && k >= r->model && k < r->model_end)
        return STEP_FORWARD;
    if (reads(u->s, event))
        return STEP_OTHER;
    if (goes_over_tensors(u->s, event))
        return STEP_OPTIMIZER;
    if (no_model && r->before == BACKWARD && r->after == BACKWARD)
        return STEP_BACKWARD;              /* a hook */
    if (no_model && r->before == BACKWARD && (r->after == UPDATES || !u->any_update))
        return STEP_OPTIMIZER;             /* gradients are scaled back, clipped */
    if (u->s->replay->all_cold)
        return STEP_OTHER;                  /* the model itself is moved */
    return before_model || study_copy(u->s, event, "HtoD") ? STEP_DATA : STEP_OTHER;
}

static void assign_phases(const struct units *u)
{
    static const enum step_phase says[] = {[PLAIN] = STEP_NONE, [BACKWARD] = STEP_BACKWARD, [UPDATES] = STEP_OPTIMIZER, [ZEROES] = STEP_OPTIMIZER,
                                      [LOADS] = STEP_DATA, [EVALUATES] = STEP_EVALUATION};
    for (int32_t k = 0; k < u->n;) {
        if (is_part(u->at[k].role)) {
            assign(u, u->at[k].event, says[u->at[k].role]);
            k++;
            continue;
        }
        const struct region r = region_from(u, k);
        for (; k < r.end; k++)
            assign(u, u->at[k].event, phase_in(u, &r, k));
    }
}

/* An optimizer's step in a hook of the backward pass; a backward pass in an op of forward. */
static void assign_inner(const struct units *u)
{
    for (int32_t i = 0; i < u->s->v->n_host; i++) {
        const enum step_phase is = u->out->of[i];
        if (is == STEP_NONE || is == STEP_OPTIMIZER || is == STEP_DATA)
            continue;
        const enum role role = role_of(u->s, i);
        if (role == UPDATES || role == ZEROES)
            assign(u, i, STEP_OPTIMIZER);
        else if (role == BACKWARD && is != STEP_BACKWARD)
            assign(u, i, STEP_BACKWARD);
    }
}

struct phases phases_of(const struct study *s)
{
    struct phases p = {.s = s, .of = xcalloc((size_t)s->v->n_host + 1, 1)};
    struct units u = {.s = s, .out = &p};
    memset(p.of, STEP_NONE, (size_t)s->v->n_host);
    collect(&u);
    find_evaluations(&u);
    assign_phases(&u);
    assign_inner(&u);
    free(u.at);
    return p;
}

void phases_release(struct phases *p)
{
    free(p->of);
    free(p->line);
    *p = (struct phases){0};
}
