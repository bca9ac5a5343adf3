/* Prepares a study and answers questions about its ops. */
#include "analyze/traced/study.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/rules.h"
#include "analyze/traced/fix.h"
#include "analyze/traced/study_int.h"

enum task study_task(const struct study *s, int32_t host)
{
    if (host < 0 || view_event(s->v, host)->kind != EVENT_HOST_OP)
        return TASK_OTHER;
    return s->tasks[view_event(s->v, host)->name];
}

static const char *arg_text(const struct study *s, int32_t name) { return name >= 0 ? s->v->trace->names[name] : ""; }

struct dims study_dims(const struct study *s, int32_t host, int input)
{
    const int32_t a = view_event(s->v, host)->args;
    return a >= 0 ? dims_read(arg_text(s, s->v->trace->args[a].dims), input) : (struct dims){.n = -1};
}

const char *study_types(const struct study *s, int32_t host)
{
    const int32_t a = view_event(s->v, host)->args;
    return a >= 0 ? arg_text(s, s->v->trace->args[a].types) : "";
}

int study_tensors(const struct study *s, int32_t host)
{
    int tensors = 0;
    for (int i = 0; i < 16; i++) {
        const struct dims d = study_dims(s, host, i);
        if (d.n < 0)
            break;
        tensors += d.n > 0;
    }
    return tensors;
}

/* ---- where an op is ---- */

bool study_in_backward(const struct study *s, int32_t host)
{
    for (int32_t i = s->v->parent[host]; i >= 0; i = s->v->parent[i])
        if (study_task(s, i) == TASK_BACKWARD)
            return true;
    return false;
}

int32_t study_annotation(const struct study *s, int32_t host, const char *prefix)
{
    for (int32_t i = host; i >= 0; i = s->v->parent[i])
        if (view_event(s->v, i)->kind != EVENT_RUNTIME && !strncmp(view_name(s->v, i), prefix, strlen(prefix)))
            return i;
    return -1;
}

/* Old traces record the user's ranges as ops: one of them has ops inside, no namespace and no number. */
static bool is_range(const struct study *s, int32_t host)
{
    const char *name = view_name(s->v, host);
    if (view_event(s->v, host)->link >= 0 || strstr(name, "::"))
        return false;
    if (strchr(name, '#'))
        return true;                        /* Optimizer.step#SGD.step */
    for (int32_t i = host + 1; i < s->v->end[host]; i = s->v->end[i])
        if (view_event(s->v, i)->kind == EVENT_HOST_OP)
            return true;
    return false;
}

static bool is_op(const struct study *s, int32_t host)
{
    return view_event(s->v, host)->kind == EVENT_HOST_OP && !is_range(s, host);
}

int32_t study_top(const struct study *s, int32_t host)
{
    int32_t top = -1;
    for (int32_t i = host; i >= 0; i = s->v->parent[i])
        if (is_op(s, i))
            top = i;
    return top;
}

double study_device_ns(const struct study *s, int32_t host)
{
    const struct view *v = s->v;
    double ns = 0;
    for (int32_t i = host; i < v->end[host]; i++)
        for (int32_t d = v->launched[i]; d >= 0; d = v->next_launched[d - v->device])
            ns += (double)view_event(v, d)->duration_ns;
    return ns;
}

int study_launches(const struct study *s, int32_t host)
{
    int n = 0;
    for (int32_t i = host; i < s->v->end[host]; i++)
        n += s->v->launched[i] >= 0;
    return n;
}

int32_t study_index(const struct study *s, int32_t host)
{
    const int64_t at = view_event(s->v, host)->start_ns;
    int32_t low = 0, high = s->n_top;
    while (low < high) {
        const int32_t mid = (low + high) / 2;
        if (view_event(s->v, s->top[mid])->start_ns < at)
            low = mid + 1;
        else
            high = mid;
    }
    while (low < s->n_top && s->top[low] != host && view_event(s->v, s->top[low])->start_ns == at)
        low++;
    return low < s->n_top && s->top[low] == host ? low : -1;
}

bool study_is_backward(const struct study *s, int32_t a) { return study_task(s, s->top[a]) == TASK_BACKWARD; }

const struct event *study_copy(const struct study *s, int32_t host, const char *way)
{
    const struct view *v = s->v;
    for (int32_t i = host; host >= 0 && i < v->end[host]; i++)
        if (v->launched[i] >= 0 && view_event(v, v->launched[i])->kind == EVENT_MEMCPY &&
            strstr(view_name(v, v->launched[i]), way))
            return view_event(v, v->launched[i]);
    return NULL;
}

int32_t study_find(const struct study *s, int32_t host, enum task task)
{
    for (int32_t i = host; i < s->v->end[host]; i++)
        if (study_task(s, i) == task)
            return i;
    return -1;
}

bool study_works(const struct study *s, int32_t host)
{
    return study_find(s, host, TASK_LINEAR) >= 0 || study_find(s, host, TASK_ATTENTION) >= 0 || study_find(s, host, TASK_NORM) >= 0 ||
           study_find(s, host, TASK_CONVOLUTION) >= 0 || study_task(s, host) == TASK_BACKWARD;
}

double per_step(const struct study *s, double total) { return total / s->replay->n_steps; }

struct range study_range(const struct study *s, int32_t host)
{
    const struct event *e = view_event(s->v, host);
    const int64_t from = e->start_ns - s->replay->start_ns, to = from + e->duration_ns;
    return (struct range){from > 0 ? (size_t)from : 0, to > 0 ? (size_t)to : 0};
}

/* ---- backward twins ---- */

static int by_number(const void *a, const void *b)
{
    const struct twin *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* The first twin with the number or a larger one; an op that begins in one step has its backward in the same. */
static int32_t first_twin(const struct study *s, int32_t step, int64_t number)
{
    const struct twin wanted = {.number = number, .step = step};
    int32_t low = 0, high = s->n_twins;
    while (low < high) {
        const int32_t mid = (low + high) / 2;
        if (by_number(&s->twins[mid], &wanted) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* A number has one node, or a few where one is used again; a damaged file may give all of them the same. */
enum { MOST_TWINS = 64 };

static bool is_twin(const struct study *s, int32_t first, int32_t t, const struct event *e)
{
    return t < s->n_twins && t - first < MOST_TWINS && s->twins[t].step == e->step && s->twins[t].number == e->link;
}

/* An op carries the number that the next node will get, whether it makes one or not: the last op with a number made it. */
static void find_ops(struct study *s)
{
    for (int32_t i = 0; i < s->v->n_host; i++) {
        const struct event *e = view_event(s->v, i);
        if (e->kind != EVENT_HOST_OP || e->link < 0 || study_task(s, i) == TASK_BACKWARD || study_in_backward(s, i))
            continue;
        const int32_t first = first_twin(s, e->step, e->link);
        for (int32_t t = first; is_twin(s, first, t, e); t++)
            if (s->twins[t].op < 0 || view_event(s->v, s->twins[t].op)->start_ns <= e->start_ns)
                s->twins[t].op = i;
    }
}

static void collect_twins(struct study *s)
{
    for (int pass = 0; pass < 2; pass++) {
        s->n_twins = 0;
        for (int32_t i = 0; i < s->v->n_host; i++) {
            const struct event *e = view_event(s->v, i);
            if (study_task(s, i) != TASK_BACKWARD || e->link < 0)
                continue;
            if (pass)
                s->twins[s->n_twins] = (struct twin){e->link, e->step, i, -1};
            s->n_twins++;
        }
        if (!pass)
            s->twins = xcalloc((size_t)s->n_twins + 1, sizeof *s->twins);
    }
    qsort(s->twins, (size_t)s->n_twins, sizeof *s->twins, by_number);
    find_ops(s);
}

/* Nodes without a number behind a twin hand its result to a parameter's gradient: they belong to it. */
static void visit_node(const struct study *s, int32_t node, void (*each)(void *context, int32_t node), void *context)
{
    each(context, node);
    const int32_t at = study_index(s, node);
    for (int32_t k = at + 1; at >= 0 && k < s->n_top && study_is_backward(s, k) && view_event(s->v, s->top[k])->link < 0; k++)
        each(context, s->top[k]);
}

void study_twins(const struct study *s, int32_t host, void (*each)(void *context, int32_t node), void *context)
{
    for (int32_t i = host; i < s->v->end[host]; i++) {
        const struct event *e = view_event(s->v, i);
        if (e->kind != EVENT_HOST_OP || e->link < 0)
            continue;
        const int32_t first = first_twin(s, e->step, e->link);
        for (int32_t t = first; is_twin(s, first, t, e); t++)
            if (s->twins[t].op == i)
                visit_node(s, s->twins[t].node, each, context);
    }
}

int32_t study_forward_of(const struct study *s, int32_t host)
{
    int32_t node = host;
    while (node >= 0 && (study_task(s, node) != TASK_BACKWARD || view_event(s->v, node)->link < 0))
        node = s->v->parent[node];
    if (node < 0)
        return -1;
    const struct event *e = view_event(s->v, node);
    const int32_t first = first_twin(s, e->step, e->link);
    return is_twin(s, first, first, e) ? s->twins[first].op : -1;
}

static void count_twin(void *context, int32_t node)
{
    (void)node;
    ++*(int *)context;
}

bool study_learns(const struct study *s, int32_t host)
{
    int n = 0;
    study_twins(s, host, count_twin, &n);
    return n > 0;
}

/* ---- loops ---- */

bool study_same(const struct study *s, int32_t a, int32_t b)
{
    const struct event *x = view_event(s->v, s->top[a]), *y = view_event(s->v, s->top[b]);
    if (x->name != y->name || x->track != y->track)
        return false;
    const int32_t dx = x->args >= 0 ? s->v->trace->args[x->args].dims : -1;
    const int32_t dy = y->args >= 0 ? s->v->trace->args[y->args].dims : -1;
    return dx == dy;
}

bool study_loop(const struct study *s, int32_t at, int least, int longest, struct loop *out)
{
    for (int32_t period = 1; period <= longest && at + (int64_t)least * period <= s->n_top; period++) {
        int32_t same = 0;
        while (same < (least - 1) * period && study_same(s, at + same, at + same + period))
            same++;
        if (same == (least - 1) * period) {
            *out = (struct loop){at, period, least * period};
            return true;
        }
    }
    return false;
}

void study_loop_extend(const struct study *s, struct loop *l)
{
    while (l->first + l->ops < s->n_top && study_same(s, l->first + l->ops - l->period, l->first + l->ops))
        l->ops++;
}

/* ---- charges ---- */

static void lower(uint8_t *kept, double part)
{
    const uint8_t to = (uint8_t)lround(fmin(fmax(part, 0), 1) * KEEP_ALL);
    if (to < *kept)
        *kept = to;
}

void charge_host(const struct study *s, struct charge *c, int32_t host, double part)
{
    for (int32_t i = host; i < s->v->end[host]; i++)
        lower(&c->edit.host[i], part);
}

void charge_device(const struct study *s, struct charge *c, int32_t host, double factor)
{
    const struct view *v = s->v;
    for (int32_t i = host; i < v->end[host]; i++)
        for (int32_t d = v->launched[i]; d >= 0; d = v->next_launched[d - v->device])
            if ((float)factor < c->edit.device[d - v->device])
                c->edit.device[d - v->device] = (float)factor;
}

void charge_call(const struct study *s, struct charge *c, int32_t host, double part)
{
    charge_host(s, c, host, part);
    charge_device(s, c, host, part);
}

struct both {
    const struct study *s;
    struct charge *c;
    double part;
};

static void charge_twin(void *context, int32_t node)
{
    const struct both *b = context;
    charge_call(b->s, b->c, node, b->part);
}

void charge_with_backward(const struct study *s, struct charge *c, int32_t host, double part)
{
    charge_call(s, c, host, part);
    struct both b = {s, c, part};
    study_twins(s, host, charge_twin, &b);
}

static void charge_twin_host(void *context, int32_t node)
{
    const struct both *b = context;
    charge_host(b->s, b->c, node, b->part);
}

void charge_host_with_backward(const struct study *s, struct charge *c, int32_t host, double part)
{
    charge_host(s, c, host, part);
    struct both b = {s, c, part};
    study_twins(s, host, charge_twin_host, &b);
}

bool study_found(const struct study *s, const char *rule)
{
    for (int i = 0; i < s->d->n_findings; i++)
        if (!strcmp(s->d->findings[i].rule, rule))
            return true;
    return false;
}

/* ---- words ---- */

const char *study_text(const struct study *s, const char *format, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, format);
    const int n = vasprintf(&text, format, args);
    va_end(args);
    const char *kept = n >= 0 ? arena_copy(s->arena, text, (size_t)n + 1) : "";
    free(n >= 0 ? text : NULL);
    return kept;
}

const char *study_us(const struct study *s, double ns) { return text_us(s->arena, ns / 1e3); }

const char *study_number(const struct study *s, double number)
{
    return study_text(s, number < 100 ? "%.3g" : "%.0f", number);
}

const char *study_kernel(const struct study *s, const char *name)
{
    if (!strncmp(name, "void ", 5))
        name += 5;
    const size_t base = strcspn(name, name[0] == '(' ? "<" : "<("), n = base ? base : strlen(name);
    return study_text(s, "%.*s%s", n < 80 ? (int)n : 80, name, n > 80 ? "…" : "");
}

/* ---- preparation ---- */

static int by_start(const void *a, const void *b, void *study)
{
    const struct view *v = ((const struct study *)study)->v;
    const int64_t x = view_event(v, *(const int32_t *)a)->start_ns, y = view_event(v, *(const int32_t *)b)->start_ns;
    return (x > y) - (x < y);
}

static void collect_top(struct study *s)
{
    const struct replay *r = s->replay;
    s->top = xcalloc((size_t)r->n_ops + 1, sizeof *s->top);
    for (int32_t i = 0; i < s->v->n_host && s->n_top < r->n_ops; i++) {
        if (!is_op(s, i))
            continue;
        if (study_has(s, i))
            s->top[s->n_top++] = i;
        i = s->v->end[i] - 1;               /* what is inside is not outermost */
    }
    qsort_r(s->top, (size_t)s->n_top, sizeof *s->top, by_start, s);
}

/* (n_names) which names ops, ranges, calls and kernels have; those of Python's frames say nothing of what runs. The caller frees. */
static bool *names_that_run(const struct view *v)
{
    bool *run = xcalloc((size_t)v->trace->n_names + 1, sizeof *run);
    for (int32_t i = 0; i < v->n_host; i++)
        run[view_event(v, i)->name] = true;
    for (int32_t i = v->device; i < v->device + v->n_device; i++)
        run[view_event(v, i)->name] = true;
    return run;
}

static bool tells_of_learning(const char *name)
{
    static const char *const words[] = {"backward", "bwd", "Optimizer.", "multi_tensor", "_foreach_", "_fused_adam"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strcasestr(name, words[k]))
            return true;
    return false;
}

/* Of a graph, of compiled code and of kernels alone there are no backward nodes; names may still tell of them. */
static bool goes_forward(const struct study *s)
{
    bool *run = names_that_run(s->v), learns = s->trains || !s->n_top;
    for (int32_t i = 0; i < s->v->trace->n_names && !learns; i++)
        learns = run[i] && tells_of_learning(s->v->trace->names[i]);
    free(run);
    return !learns;
}

void study_init(struct study *s, const struct view *v, struct replay *r, struct diagnosis *d)
{
    *s = (struct study){.v = v, .replay = r, .d = d, .arena = &d->arena, .device = device_facts(v), .uses = study_uses(v)};
    s->tasks = xcalloc((size_t)v->trace->n_names + 1, 1);
    for (int32_t i = 0; i < v->trace->n_names; i++)
        s->tasks[i] = (uint8_t)task_of(v->trace->names[i]);
    s->facts = fix_facts_of(s);
    collect_top(s);
    collect_twins(s);
    s->trains = s->n_twins > 0;
    s->facts.forward_only = goes_forward(s);
    const struct replay_result base = replay_run(r, NULL);
    s->base_ns = base.step_ns;
    s->host_ns = base.host_ns;
    s->device_ns = base.device_ns;
    for (int32_t k = 0; k < r->n_items; k++)
        s->comm_ns += (double)r->items[k].comm_ns / r->n_steps;
    s->unit_ns = r->n_ops ? base.host_ns * r->n_steps / r->n_ops : 0;
}

void study_release(struct study *s)
{
    free(s->tasks);
    free(s->top);
    free(s->twins);
    *s = (struct study){0};
}
