/* Replays of graphs and what was captured into them. A replay is one call; what its kernels are for is known from the capture, where
 * the ops ran and launched without work behind them. The n-th kernel of a replay was captured by the n-th such launch. */
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/view_int.h"

enum { MOST_CAPTURES = 256 };

struct capture {                            /* calls on one thread between the begin of a capture and its end */
    int32_t first, end, launches;
};

static bool is_launch(const struct view *v, int32_t i)
{
    const struct event *e = view_event(v, i);
    return e->kind == EVENT_RUNTIME && v->launched[i] < 0 && kind_is_work(v->call_kinds[e->name]) && v->call_kinds[e->name] != CALL_GRAPH;
}

static int find_captures(const struct view *v, struct capture *captures)
{
    int n = 0;
    bool open = false;
    for (int32_t i = 0; i < v->n_host && n < MOST_CAPTURES; i++) {
        if (i && view_event(v, i)->track != view_event(v, i - 1)->track)
            open = false;
        if (view_event(v, i)->kind != EVENT_RUNTIME)
            continue;
        const char *name = view_name(v, i);
        if (strcasestr(name, "streambegincapture")) {
            captures[n] = (struct capture){.first = i};
            open = true;
        } else if (open && strcasestr(name, "streamendcapture")) {
            captures[n].end = i;
            n += captures[n].launches > 0;
            open = false;
        } else if (open)
            captures[n].launches += is_launch(v, i);
    }
    return n;
}

/* The latest capture before the replay with as many launches as it has work; NULL: none. */
static const struct capture *capture_of(const struct view *v, const struct capture *captures, int n, int32_t replay)
{
    const struct capture *best = NULL;
    int32_t work = 0;
    for (int32_t d = v->launched[replay]; d >= 0; d = v->next_launched[d - v->device])
        work++;
    for (int i = 0; i < n; i++)
        if (captures[i].launches == work && view_event(v, captures[i].end)->start_ns <= view_event(v, replay)->start_ns &&
            (!best || view_event(v, captures[i].end)->start_ns > view_event(v, best->end)->start_ns))
            best = &captures[i];
    return best;
}

static void link_replay(struct view *v, const struct capture *c, int32_t replay)
{
    int32_t call = c->first;
    for (int32_t d = v->launched[replay]; d >= 0; d = v->next_launched[d - v->device]) {
        while (!is_launch(v, call))
            call++;
        v->captured[d - v->device] = call++;
    }
}

void view_link_captures(struct view *v)
{
    struct capture *captures = xcalloc(MOST_CAPTURES + 1, sizeof *captures);
    const int n = find_captures(v, captures);
    if (n) {
        v->captured = arena_alloc(&v->arena, ((size_t)v->n_device + 1) * sizeof *v->captured);
        for (int32_t d = 0; d < v->n_device; d++)
            v->captured[d] = -1;
    }
    for (int32_t i = 0; n && i < v->n_host; i++) {
        const struct event *e = view_event(v, i);
        if (e->kind != EVENT_RUNTIME || v->call_kinds[e->name] != CALL_GRAPH || v->launched[i] < 0)
            continue;
        const struct capture *c = capture_of(v, captures, n, i);
        if (c)
            link_replay(v, c, i);
    }
    free(captures);
}
