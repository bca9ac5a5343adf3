/* Where the host is at each moment of the judged steps. Where threads are in different phases at one time the first of `order` counts. Between
 * two calls of one phase it is in that phase, too: Python that leads from op to op. Between calls of different ones of a step a short stretch
 * is of the phase to which it leads, as the call of backward() is before its first node; else it is in other. */
#include <stdlib.h>

#include "analyze/traced/phases.h"

/* Narrow ones first: the optimizer may run in a hook of the backward pass, which may run while another thread waits in an op. A collective
 * of the host's own threads counts where nothing else is done. */
static const enum step_phase order[] = {STEP_OPTIMIZER, STEP_BACKWARD, STEP_EVALUATION, STEP_DATA, STEP_FORWARD, STEP_OTHER, STEP_COMMUNICATION};
enum { GAP = STEP_PHASES, LAYERS = 2 };     /* calls; below them ranges that the user named after a phase */

static const int64_t LEADS_NS = 500000;

struct begin { int64_t at_ns; int32_t event, step, layer; enum step_phase phase; };

struct line {
    struct phases *p;
    int64_t now_ns, until_ns[LAYERS][STEP_PHASES];
    int32_t cap, step, gap_step;            /* of the latest call; of the one before the open gap */
};

static int by_time(const void *a, const void *b)
{
    const struct begin *x = a, *y = b;
    return x->at_ns != y->at_ns ? (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns) : (x->event > y->event) - (x->event < y->event);
}

/* Calls that are of another phase than what is around them, collectives, and ranges. */
static enum step_phase begins(const struct phases *p, int32_t i, int32_t *layer)
{
    *layer = 0;
    const struct view *v = p->s->v;
    const struct event *e = view_event(v, i);
    if (p->of[i] != STEP_NONE)
        return v->parent[i] < 0 || p->of[v->parent[i]] != p->of[i] ? p->of[i] : STEP_NONE;
    if (view_is_collective(v, i) && replay_covers(p->s->replay, e->start_ns))
        return STEP_COMMUNICATION;
    *layer = 1;
    return study_has(p->s, i) ? phases_named(p->s, i) : STEP_NONE;
}

static struct begin *collect(const struct phases *p, int32_t *n)
{
    struct begin *all = NULL;
    for (int pass = 0; pass < 2; pass++) {
        if (pass)
            all = xcalloc((size_t)*n + 1, sizeof *all);
        *n = 0;
        for (int32_t i = 0; i < p->s->v->n_host; i++) {
            int32_t layer;
            const enum step_phase phase = begins(p, i, &layer);
            if (phase == STEP_NONE)
                continue;
            if (pass)
                all[*n] = (struct begin){view_event(p->s->v, i)->start_ns, i, view_event(p->s->v, i)->step, layer, phase};
            ++*n;
        }
    }
    qsort(all, (size_t)*n, sizeof *all, by_time);
    return all;
}

static void put(struct line *l, int64_t from_ns, enum step_phase phase)
{
    struct phases *p = l->p;
    if (p->n_line == l->cap)
        p->line = xrealloc(p->line, (size_t)(l->cap += l->cap / 2 + 64) * sizeof *p->line);
    p->line[p->n_line++] = (struct phase_stretch){from_ns, phase};
}

static bool in_gap(const struct phases *p) { return p->n_line && (int)p->line[p->n_line - 1].phase == GAP; }

static void open_gap(struct line *l)
{
    if (in_gap(l->p))
        return;
    put(l, l->now_ns, (enum step_phase)GAP);
    l->gap_step = l->step;
}

/* What stands behind a gap says what the gap is. */
static void close_gap(struct line *l, enum step_phase phase)
{
    struct phases *p = l->p;
    if (!in_gap(p))
        return;
    struct phase_stretch *gap = &p->line[p->n_line - 1];
    const bool same = p->n_line > 1 && gap[-1].phase == phase, leads = l->now_ns - gap->from_ns <= LEADS_NS && phase != STEP_COMMUNICATION;
    gap->phase = l->gap_step == l->step && (same || leads) ? phase : STEP_OTHER;
}

static void add(struct line *l, enum step_phase phase)
{
    struct phases *p = l->p;
    close_gap(l, phase);
    if (!p->n_line || p->line[p->n_line - 1].phase != phase)
        put(l, l->now_ns, phase);
}

/* The phase that counts now, and until when it would; STEP_NONE: none. */
static enum step_phase counts(const struct line *l, int64_t *until_ns)
{
    for (int layer = 0; layer < LAYERS; layer++)
        for (size_t k = 0; k < STEP_PHASES; k++)
            if (l->until_ns[layer][order[k]] > l->now_ns) {
                *until_ns = l->until_ns[layer][order[k]];
                return order[k];
            }
    return STEP_NONE;
}

static void advance(struct line *l, int64_t to_ns)
{
    while (l->now_ns < to_ns) {
        int64_t until_ns = to_ns;
        const enum step_phase phase = counts(l, &until_ns);
        if (phase == STEP_NONE)
            open_gap(l);
        else
            add(l, phase);
        l->now_ns = until_ns < to_ns ? until_ns : to_ns;
    }
}

void phases_line(struct phases *p)
{
    const struct replay *r = p->s->replay;
    struct line l = {.p = p, .now_ns = r->start_ns, .step = -1, .gap_step = -1};
    int32_t n = 0;
    struct begin *all = collect(p, &n);
    for (int k = 0; k < LAYERS * STEP_PHASES; k++)
        l.until_ns[k / STEP_PHASES][k % STEP_PHASES] = INT64_MIN;
    for (int32_t k = 0; k < n; k++) {
        const struct event *e = view_event(p->s->v, all[k].event);
        advance(&l, e->start_ns);
        l.step = all[k].step;
        int64_t *until = &l.until_ns[all[k].layer][all[k].phase];
        *until = event_end(e) > *until ? event_end(e) : *until;
    }
    advance(&l, r->end_ns > l.now_ns ? r->end_ns : l.now_ns);
    l.step = -1;
    close_gap(&l, STEP_OTHER);
    put(&l, l.now_ns, STEP_OTHER);
    free(all);
}

int32_t phases_at(const struct phases *p, int64_t at_ns)
{
    int32_t low = 0, high = p->n_line;
    while (low < high) {
        const int32_t mid = low + (high - low) / 2;
        if (p->line[mid].from_ns <= at_ns)
            low = mid + 1;
        else
            high = mid;
    }
    return low - 1;
}
