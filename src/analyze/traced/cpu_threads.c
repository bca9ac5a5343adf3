/* How many threads the ops of a CPU had. The profiler does not say; buffers that an op makes with a row for each thread do. */
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/study.h"
#include "analyze/traced/study_int.h"

enum { MOST_THREADS = 4096 };

/* The sizes of the tensor that a call makes or works on. */
static struct dims made(const struct study *s, int32_t i)
{
    const int32_t a = view_event(s->v, i)->args;
    if (a < 0 || strcmp(view_name(s->v, i), "aten::empty"))
        return study_dims(s, i, 0);
    const int32_t values = s->v->trace->args[a].values;             /* ["[8, 5184]", "6", ...] */
    return values >= 0 ? dims_read(s->v->trace->names[values], 0) : (struct dims){.n = -1};
}

struct clue {
    const char *around, *inside;            /* words in their names */
    int n_dims, at;                         /* of the buffer: its dimensions; the one that counts threads */
    int64_t first;                          /* what its first dimension must be; 0: anything */
};

/* The gradients of a norm's weights are summed by each thread for itself; a thread of attention has its tiles. */
static const struct clue clues[] = {
    {"native_layer_norm_backward", "aten::zero_", 3, 1, 2},
    {"flash_attention_for_cpu", "aten::empty", 2, 0, 0},
    {"native_batch_norm", "aten::zero_", 2, 0, 0},
};

static int read_clue(const struct study *s, int32_t i, const struct clue *c)
{
    const int32_t around = s->v->parent[i];
    if (around < 0 || strcmp(view_name(s->v, i), c->inside) || !strstr(view_name(s->v, around), c->around))
        return 0;
    const struct dims d = made(s, i);
    if (d.n != c->n_dims || (c->first && d.size[0] != c->first) || d.size[c->at] < 1 || d.size[c->at] > MOST_THREADS)
        return 0;
    return (int)d.size[c->at];
}

/* Elements of all tensors of a list: "[[[16, 256], [16, 256]], []]". */
static double elements_of_list(const char *p)
{
    double all = 0, one = 1;
    int depth = 0;
    for (bool any = false; p && *p; p++) {
        if (*p == '[') {
            depth++;
            one = 1;
            any = false;
        } else if (*p == ']') {
            all += any ? one : 0;
            any = false;
            if (--depth < 2)
                break;
        } else if (*p >= '0' && *p <= '9') {
            char *end;
            one *= strtod(p, &end);
            any = true;
            p = end - 1;
        }
    }
    return all;
}

/* With one thread a large cat copies by itself; with several it makes a view of the result for every tensor. */
static bool is_serial_cat(const struct study *s, int32_t i)
{
    const int32_t a = view_event(s->v, i)->args;
    if (strcmp(view_name(s->v, i), "aten::cat") || a < 0 || s->v->trace->args[a].dims < 0 || s->v->end[i] > i + 1)
        return false;
    return elements_of_list(s->v->trace->names[s->v->trace->args[a].dims]) >= 2 * PARALLEL_ELEMENTS;
}

/* ---- without such buffers: time in proportion to the elements ---- */

enum { MOST_NAMES = 16, LARGEST = 8 * PARALLEL_ELEMENTS, LEAST_CALLS = 3 };
static const double IN_PROPORTION = 0.8;

struct growth {                             /* of elementwise ops of one name: the smallest and the largest that are divided, each at its fastest */
    int32_t name;
    int64_t elements[2];
    int64_t ns[2];
    int calls[2];
};

static void add_call(struct growth *g, int end, int64_t elements, int64_t ns)
{
    const bool better = end ? elements > g->elements[1] : elements < g->elements[0];
    if (!g->calls[end] || better) {
        g->elements[end] = elements;
        g->ns[end] = ns;
        g->calls[end] = 1;
    } else if (elements == g->elements[end]) {
        g->ns[end] = ns < g->ns[end] ? ns : g->ns[end];
        g->calls[end]++;
    }
}

static int collect_growth(const struct study *s, struct growth *of)
{
    int n = 0;
    for (int32_t i = 0; i < s->v->n_host; i++) {
        const enum task t = study_task(s, i);
        const struct event *e = view_event(s->v, i);
        if ((t != TASK_ELEMENTWISE && t != TASK_UPDATE && t != TASK_FILL && t != TASK_COPY) || s->v->end[i] > i + 1 || !study_has(s, i))
            continue;
        const int64_t elements = dims_elements(study_dims(s, i, 0));
        int k = 0;
        while (k < n && of[k].name != e->name)
            k++;
        if (elements <= PARALLEL_ELEMENTS || elements > LARGEST || (k == n && n == MOST_NAMES))
            continue;
        if (k == n)
            of[n++] = (struct growth){.name = e->name};
        add_call(&of[k], 0, elements, e->duration_ns);
        add_call(&of[k], 1, elements, e->duration_ns);
    }
    return n;
}

/* Several threads take four times the elements in hardly more time: what they meet for is most of it. One takes four times as long. */
static bool grows_in_proportion(const struct study *s)
{
    struct growth of[MOST_NAMES] = {{0}};
    const int n = collect_growth(s, of);
    int in_proportion = 0, others = 0;
    for (int k = 0; k < n; k++) {
        const struct growth *g = &of[k];
        if (g->calls[0] < LEAST_CALLS || g->calls[1] < LEAST_CALLS || g->elements[1] < 2 * g->elements[0] || g->ns[0] <= 0)
            continue;
        const double slower = (double)g->ns[1] / (double)g->ns[0], larger = (double)g->elements[1] / (double)g->elements[0];
        *(slower >= IN_PROPORTION * larger ? &in_proportion : &others) += 1;
    }
    return in_proportion > others;
}

int study_threads(const struct study *s)
{
    int found[sizeof clues / sizeof *clues] = {0}, cats = 0;
    for (int32_t i = 0; i < s->v->n_host; i++) {
        if (view_event(s->v, i)->kind != EVENT_HOST_OP || !study_has(s, i))
            continue;
        for (size_t k = 0; k < sizeof clues / sizeof *clues; k++)
            if (!found[k])
                found[k] = read_clue(s, i, &clues[k]);
        cats += is_serial_cat(s, i);
    }
    for (size_t k = 0; k < sizeof clues / sizeof *clues; k++)
        if (found[k])
            return found[k];
    return cats || grows_in_proportion(s) ? 1 : 0;
}

double *study_work_ns(const struct study *s)
{
    double *own = xcalloc((size_t)s->v->n_host + 1, sizeof *own);
    for (int32_t k = 0; k < s->replay->n_items; k++)
        if (s->replay->items[k].owner >= 0)
            own[s->replay->items[k].owner] += replay_own_ns(s->replay, &s->replay->items[k]);
    return own;
}

double *study_own_ns(const struct study *s)
{
    double *own = xcalloc((size_t)s->v->n_host + 1, sizeof *own);
    for (int32_t k = 0; k < s->replay->n_items; k++)
        if (s->replay->items[k].owner >= 0)
            own[s->replay->items[k].owner] += (double)s->replay->items[k].ns;
    return own;
}
