/* What holds the device up: long stretches in which the host launches nothing, by the Python frame, the user's range or the op in
 * which they lie. A stretch is time outside of all ops, or an op that works on the host alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/study.h"

enum { LOOK_BACK = 16 };                    /* ranges before an op that may have ended in the stretch before it */
static const double LEAST_OP_NS = 300e3;    /* of an op on the host, that it matters */

bool stretch_is_op(const struct study *s, int32_t host)
{
    const struct event *e = view_event(s->v, host);
    if (!s->v->n_device || e->kind != EVENT_HOST_OP || (double)e->duration_ns < LEAST_OP_NS || study_launches(s, host))
        return false;
    for (int32_t i = host; i < s->v->end[host]; i++)
        if (view_call_waits(s->v, i))
            return false;
    return true;
}

/* The range, if most of the stretch lies in it and none that is shorter was found. */
static void consider(const struct study *s, int32_t i, int64_t from_ns, int64_t to_ns, int32_t *best)
{
    const struct event *e = view_event(s->v, i);
    const int64_t start = e->start_ns > from_ns ? e->start_ns : from_ns, end = event_end(e) < to_ns ? event_end(e) : to_ns;
    if (e->kind == EVENT_ANNOTATION && 2 * (end - start) >= to_ns - from_ns &&
        (*best < 0 || e->duration_ns < view_event(s->v, *best)->duration_ns))
        *best = i;
}

static int32_t range_around(const struct study *s, int32_t next, int64_t from_ns, int64_t to_ns)
{
    int32_t best = -1;
    for (int32_t i = next; i >= 0 && next - i <= LOOK_BACK && view_event(s->v, i)->track == view_event(s->v, next)->track; i--)
        for (int32_t k = i; k >= 0; k = s->v->parent[k])
            consider(s, k, from_ns, to_ns, &best);
    return best;
}

/* In words; `next` is the op or call that ends the stretch, or the op that is the stretch. */
static const char *holder_name(const struct study *s, int32_t next, int64_t from_ns, int64_t to_ns)
{
    const int track = view_event(s->v, next)->track;
    const int64_t middle = from_ns + (to_ns - from_ns) / 2;
    int32_t at = view_python_at(s->v, track, middle, false);
    at = at >= 0 ? at : range_around(s, next, from_ns, to_ns);
    at = at >= 0 ? at : view_python_at(s->v, track, middle, true);
    return at >= 0 ? view_name(s->v, at) : NULL;
}

static void add(struct holders *h, const char *name, double ns)
{
    int i = 0;
    while (i < h->n && (h->at[i].name == name || (name && h->at[i].name && !strcmp(h->at[i].name, name))) == false)
        i++;
    h->all_ns += ns;
    h->stretches++;
    if (i == h->n && h->n == MOST_HOLDERS)
        return;
    if (i == h->n)
        h->at[h->n++] = (struct holder){name, 0};
    h->at[i].ns += ns;
    for (; i > 0 && h->at[i].ns > h->at[i - 1].ns; i--) {
        const struct holder swap = h->at[i];
        h->at[i] = h->at[i - 1];
        h->at[i - 1] = swap;
    }
}

struct holders study_holders(const struct study *s, double limit_ns)
{
    const struct replay *r = s->replay;
    struct holders h = {.longest = -1};
    int32_t last = -1, seen = -1;           /* items of one op follow each other */
    for (int32_t k = 0; k < r->n_items; k++) {
        const struct replay_item *item = &r->items[k];
        const int32_t top = item->owner >= 0 ? study_top(s, item->owner) : -1;
        const double ns = (double)(item->ns - item->comm_ns);      /* waiting for other ranks is no work of the host */
        if (item->owner < 0 && replay_stretch_ns(item) > limit_ns) {
            const int32_t next = item->event >= 0 ? item->event : last;
            const int64_t to = item->event >= 0 ? view_event(s->v, next)->start_ns : r->end_ns;
            if (next >= 0)
                add(&h, holder_name(s, next, to - (int64_t)ns, to), ns - limit_ns);
            if (ns > h.longest_ns)
                h.longest_ns = ns, h.longest = item->event;
        } else if (top >= 0 && top != seen && !item->loader && stretch_is_op(s, top)) {
            const struct event *e = view_event(s->v, top);
            const char *name = holder_name(s, top, e->start_ns, event_end(e));
            add(&h, name ? name : view_name(s->v, top), (double)e->duration_ns);
        }
        seen = top >= 0 ? top : seen;
        last = item->event >= 0 ? item->event : last;
    }
    return h;
}
