/* What launched what: a device event and the runtime call that started it carry the same correlation. The numbers are
 * not unique over the processes of one file, nor over calls inside calls (cudaLaunchKernel around cuLaunchKernel): of
 * several, the last call before the work starts is taken, and calls that start work before those that do not. */
#include <stdlib.h>

#include "analyze/traced/view_int.h"
#include "analyze/traced/view_sort.h"

struct link_key {
    int64_t link;
    int32_t call;
    bool works;                             /* sorts first */
};

static inline bool key_before(const struct link_key *a, const struct link_key *b)
{
    if (a->link != b->link)
        return a->link < b->link;
    return a->works != b->works ? a->works : a->call < b->call;
}

SORT_DEFINE(sort_keys, struct link_key, key_before)

/* Calls on several tracks with one link are in order of their tracks, not of time; those are few, so each is looked at. */
enum { MOST_ALIKE = 64 };

static int64_t collect(const struct view *v, struct link_key *keys)
{
    int64_t n = 0;
    for (int32_t i = 0; i < v->n_host; i++) {
        const struct event *e = view_event(v, i);
        if (e->kind != EVENT_RUNTIME || e->link < 0)
            continue;
        if (keys)
            keys[n] = (struct link_key){e->link, i, kind_is_work(v->call_kinds[e->name])};
        n++;
    }
    return n;
}

static int64_t first_with(const struct link_key *keys, int64_t n, int64_t link)
{
    int64_t from = 0;
    for (int64_t to = n; from < to;) {
        const int64_t middle = from + (to - from) / 2;
        if (keys[middle].link < link)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static int32_t find_launch(const struct view *v, const struct link_key *keys, int64_t n, const struct event *work)
{
    int64_t i = first_with(keys, n, work->link);
    if (i == n || keys[i].link != work->link)
        return -1;
    int32_t best = keys[i].call;
    const bool works = keys[i].works;
    for (int64_t k = 1; k < MOST_ALIKE && i + k < n && keys[i + k].link == work->link && keys[i + k].works == works; k++) {
        const int64_t start_ns = view_event(v, keys[i + k].call)->start_ns, best_ns = view_event(v, best)->start_ns;
        if (start_ns <= work->start_ns && (best_ns > work->start_ns || start_ns > best_ns))
            best = keys[i + k].call;
    }
    return best;
}

void view_link(struct view *v)
{
    const int64_t n = collect(v, NULL);
    struct link_key *keys = xcalloc((size_t)n + 1, sizeof *keys);
    collect(v, keys);
    sort_keys(keys, n);

    for (int32_t i = 0; i < v->n_host; i++)
        v->launched[i] = -1;
    for (int32_t i = v->n_device; i-- > 0;) {       /* from the last, so that lists run by start */
        const struct event *e = view_event(v, v->device + i);
        const int32_t call = e->link < 0 ? -1 : find_launch(v, keys, n, e);
        v->launch[i] = call;
        v->next_launched[i] = call < 0 ? -1 : v->launched[call];
        if (call >= 0)
            v->launched[call] = v->device + i;
    }
    free(keys);
}
