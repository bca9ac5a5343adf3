/* Cold start: work that a process does once. The first launch of a kernel loads its code, the first calls set the device up, the
 * allocator grows, libraries search for their fastest kernel. Steps that begin with it are left out where others follow; where
 * there are none its time is taken out of them. */
#include <stdlib.h>

#include "analyze/traced/replay_int.h"
#include "analyze/traced/view_int.h"

static const int64_t LEAST_NS = 1000000;    /* of one call, without what is inside: shorter ones do not matter */
static const double COLD = 0.1;             /* of a step, from which on it is cold */
static const int64_t REPEATS = 4;           /* where another call takes a quarter of the time, it happens again and again */
static const int64_t RARER = 10;            /* of an op: others take a tenth at most */

static int64_t own_ns(const struct view *v, int32_t i)
{
    int64_t ns = view_event(v, i)->duration_ns;
    for (int32_t k = i + 1; k < v->end[i]; k = v->end[k])
        ns -= view_event(v, k)->duration_ns;
    return ns;
}

struct long_call {
    int32_t event;
    int64_t own_ns;
};

struct long_calls {
    struct long_call *at;
    int32_t n, cap;
};

/* Ops and calls that take long themselves. */
static struct long_calls find_long(const struct view *v)
{
    struct long_calls l = {0};
    for (int32_t i = 0; i < v->n_host; i++) {
        const struct event *e = view_event(v, i);
        if (e->duration_ns < LEAST_NS || e->kind == EVENT_ANNOTATION || v->watches[e->track])
            continue;
        const int64_t own = own_ns(v, i);
        if (own < LEAST_NS)
            continue;
        if (l.n == l.cap) {
            l.cap = l.cap ? 2 * l.cap : 64;
            l.at = xrealloc(l.at, (size_t)l.cap * sizeof *l.at);
        }
        l.at[l.n++] = (struct long_call){i, own};
    }
    return l;
}

/* By name: the first host event with it, how many there are; the first launch of the kernel. Only where something takes long. */
struct firsts { int32_t *event, *count, *launch; };

static bool is_before(const struct view *v, int32_t a, int32_t b)
{
    return b < 0 || view_event(v, a)->start_ns < view_event(v, b)->start_ns;
}

static struct firsts find_firsts(const struct view *v)
{
    const size_t n = (size_t)v->trace->n_names + 1;
    struct firsts f = {.event = xcalloc(3 * n, sizeof *f.event)};
    f.count = f.event + n;
    f.launch = f.count + n;
    for (size_t i = 0; i < n; i++)
        f.event[i] = f.launch[i] = -1;
    for (int32_t i = 0; i < v->n_host; i++) {
        const int32_t name = view_event(v, i)->name;
        f.count[name]++;
        if (is_before(v, i, f.event[name]))
            f.event[name] = i;
    }
    for (int32_t d = 0; d < v->n_device; d++) {
        const int32_t name = view_event(v, v->device + d)->name;
        if (v->launch[d] >= 0 && is_before(v, v->launch[d], f.launch[name]))
            f.launch[name] = v->launch[d];
    }
    return f;
}

static bool takes_memory(const struct view *v, const struct event *e)
{
    const int kind = e->kind == EVENT_RUNTIME ? v->call_kinds[e->name] : CALL_OTHER;
    return kind == CALL_MALLOC || kind == CALL_FREE || kind == CALL_HOST_ALLOC;
}

/* Another call of the same name that takes `part` of the time or more; of those that take memory in another step, as an allocator
 * grows by many calls. */
static bool comes_again(const struct view *v, const struct long_calls *l, const struct long_call *c, int64_t part)
{
    const struct event *e = view_event(v, c->event);
    const bool grows = takes_memory(v, e);
    for (int32_t k = 0; k < l->n; k++) {
        const struct event *other = view_event(v, l->at[k].event);
        if (other != e && other->name == e->name && l->at[k].own_ns >= c->own_ns / part && (!grows || other->step != e->step))
            return true;
    }
    return false;
}

static bool is_cold(const struct view *v, const struct long_calls *l, const struct long_call *c, const struct firsts *f)
{
    const struct event *e = view_event(v, c->event);
    const int32_t work = v->launched[c->event];
    if (e->kind == EVENT_HOST_OP)
        return f->event[e->name] == c->event && f->count[e->name] > 1 && !comes_again(v, l, c, RARER);
    if (view_call_waits(v, c->event) || v->call_kinds[e->name] == CALL_COPY)
        return false;
    if (work >= 0 || kind_is_work(v->call_kinds[e->name])) {    /* work that starts long after its call waited in a full queue */
        if (work < 0 || f->launch[view_event(v, work)->name] != c->event)
            return false;
        return view_event(v, work)->start_ns - event_end(e) < c->own_ns / 2;
    }
    return !comes_again(v, l, c, REPEATS);
}

/* Steps from the first on that are cold. */
static int count_cold(const struct replay *r)
{
    const struct view *v = r->v;
    double *ns = xcalloc((size_t)v->n_steps + 1, sizeof *ns);
    for (int32_t k = 0; k < r->n_cold; k++)
        if (view_event(v, r->cold[k].event)->step >= 0)
            ns[view_event(v, r->cold[k].event)->step] += (double)r->cold[k].ns;
    int n = 0;
    while (n < v->n_steps && ns[n] >= COLD * (double)(v->steps[n].host_end_ns - v->steps[n].host_start_ns))
        n++;
    free(ns);
    return n;
}

/* Of steps from this one on, does any give the device work? */
static bool any_works(const struct view *v, int from)
{
    for (int i = from; i < v->n_steps; i++)
        if (v->steps[i].device_end_ns > v->steps[i].start_ns)
            return true;
    return false;
}

void replay_find_cold(struct replay *r)
{
    const struct view *v = r->v;
    struct long_calls l = find_long(v);
    if (l.n) {
        struct firsts f = find_firsts(v);
        r->cold = xcalloc((size_t)l.n, sizeof *r->cold);
        for (int32_t k = 0; k < l.n; k++)
            if (is_cold(v, &l, &l.at[k], &f))
                r->cold[r->n_cold++] = (struct replay_cold){l.at[k].event, l.at[k].own_ns};
        free(f.event);
    }
    free(l.at);
    r->cold_steps = count_cold(r);
    r->all_cold = r->cold_steps && (r->cold_steps == v->n_steps || (any_works(v, 0) && !any_works(v, r->cold_steps)));     /* a mark where the recording ended is no step */
}

int replay_cold_steps(const struct view *v)
{
    struct replay r = {.v = v};
    replay_find_cold(&r);
    free(r.cold);
    return r.cold_steps;
}

bool replay_is_cold(const struct replay *r, int32_t host)
{
    int32_t low = 0, high = r->n_cold;      /* by event */
    while (low < high) {
        const int32_t mid = (low + high) / 2;
        if (r->cold[mid].event < host)
            low = mid + 1;
        else
            high = mid;
    }
    return low < r->n_cold && r->cold[low].event == host;
}

void replay_take_out_cold(struct replay *r)
{
    for (int32_t k = 0; r->n_cold && k < r->n_items; k++) {
        struct replay_item *item = &r->items[k];
        if (item->owner >= 0 && replay_is_cold(r, item->owner))
            item->ns = item->effect == EFFECT_LAUNCH && item->ns > (int64_t)r->launch_ns ? (int64_t)r->launch_ns : 0;
    }
}
