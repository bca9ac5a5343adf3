/* Epochs for which a loader's workers are started anew: its last call ends the old ones, and the first of the next epoch waits for the new. */
#include <string.h>

#include "analyze/traced/view.h"

enum { MOST_BETWEEN = 64 };                 /* events of a sampler that begins, which are few whatever the data */
static const int64_t LEAST_NS = 2000000;    /* in the last call: workers that are kept end an epoch in no time */

static bool is_next(const struct view *v, int32_t i) { return strstr(view_name(v, i), "_MultiProcessingDataLoaderIter.__next__") != NULL; }

/* What a step has and the start of an epoch has not. */
static bool is_work(const struct view *v, int32_t i)
{
    return strstr(view_name(v, i), "Optimizer.") || strstr(view_name(v, i), "autograd::") || v->launched[i] >= 0;
}

bool view_restart_at(const struct view *v, int32_t host, struct restart *out)
{
    if (view_event(v, host)->duration_ns < LEAST_NS || !is_next(v, host))
        return false;
    bool seeds = false;                     /* an iterator that is made draws a number for its workers */
    for (int32_t i = v->end[host]; i < v->n_host && i - v->end[host] <= MOST_BETWEEN; i++) {
        if (view_event(v, i)->track != view_event(v, host)->track || is_work(v, i))
            return false;
        if (is_next(v, i)) {
            *out = (struct restart){host, i};
            return seeds;
        }
        seeds |= !strcmp(view_name(v, i), "aten::random_");
    }
    return false;
}

bool view_restart_in(const struct view *v, const struct step_window *w, struct restart *out)
{
    for (int32_t i = 0; i < v->n_host; i++)
        if (view_begins_in(v, i, w) && view_restart_at(v, i, out))
            return true;
    return false;
}

int64_t restart_ns(const struct view *v, const struct restart *r) { return event_end(view_event(v, r->starts)) - view_event(v, r->stops)->start_ns; }
