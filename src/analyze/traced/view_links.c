/* What launched what: a device event and the runtime call that started it carry the same correlation. The numbers are
 * not unique over the processes of one file, nor over calls inside calls (cudaLaunchKernel around cuLaunchKernel): of
 * several, those of the process that the device belongs to go first, then calls that start work before those that do not; of these the last call
 * before the work starts is taken. */
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

static int64_t pid_of(const struct view *v, const struct event *e)
{
    return e->track >= 0 && e->track < v->trace->n_tracks ? v->trace->tracks[e->track].pid : -1;
}

/* Of the calls with the number of the work, in one process; -1: there is none. */
static int32_t find_call(const struct view *v, const struct link_key *keys, int64_t n, const struct event *work, const int64_t *pid)
{
    const int64_t first = first_with(keys, n, work->link);
    int32_t best = -1;
    bool works = false;
    for (int64_t i = first; i < n && i < first + MOST_ALIKE && keys[i].link == work->link; i++) {
        const struct event *e = view_event(v, keys[i].call);
        if ((pid && pid_of(v, e) != *pid) || (best >= 0 && keys[i].works != works))
            continue;
        const int64_t best_ns = best >= 0 ? view_event(v, best)->start_ns : 0;
        if (best < 0 || (e->start_ns <= work->start_ns && (best_ns > work->start_ns || e->start_ns > best_ns)))
            best = keys[i].call;
        works = best == keys[i].call ? keys[i].works : works;
    }
    return best;
}

/* ---- several processes ---- */

/* A file that was merged from several processes has numbers twice. Each device belongs to the process whose calls explain most of its work; where those of
 * several do, to one that has no device yet. */
enum { MOST_PROCESSES = 64, MOST_DEVICES = 64 };

struct owners {
    int64_t pid[MOST_PROCESSES], device[MOST_DEVICES];
    int n_processes, n_devices;             /* processes: that start work */
    int owner[MOST_DEVICES];                /* index of the process; -1: none */
    int64_t explained[MOST_DEVICES][MOST_PROCESSES];        /* work behind a call of the process with its number */
};

/* Where it is, or is put while there is room; -1: there is none. */
static int place_of(int64_t *ids, int *n, int most, int64_t id)
{
    for (int i = 0; i < *n; i++)
        if (ids[i] == id)
            return i;
    if (*n == most)
        return -1;
    ids[*n] = id;
    return (*n)++;
}

static void explain(struct owners *o, const struct view *v, const struct link_key *keys, int64_t n)
{
    for (int32_t i = 0; i < v->n_device; i++) {
        const struct event *work = view_event(v, v->device + i);
        const int d = place_of(o->device, &o->n_devices, MOST_DEVICES, pid_of(v, work));
        if (d < 0 || work->link < 0)
            continue;
        for (int p = 0; p < o->n_processes; p++) {
            const int32_t call = find_call(v, keys, n, work, &o->pid[p]);
            o->explained[d][p] += call >= 0 && view_event(v, call)->start_ns <= work->start_ns;
        }
    }
}

static int best_owner(const struct owners *o, int device, const bool *taken)
{
    int best = -1;
    for (int p = 0; p < o->n_processes; p++) {
        const int64_t has = o->explained[device][p], most = best < 0 ? 0 : o->explained[device][best];
        const bool more = has > most + most / 50, alike = has && has + has / 50 >= most;
        if (more || (alike && taken[best] && !taken[p]))
            best = p;
    }
    return best;
}

/* The caller frees. */
static struct owners *find_owners(const struct view *v, const struct link_key *keys, int64_t n)
{
    struct owners *o = xcalloc(1, sizeof *o);
    bool taken[MOST_PROCESSES] = {false};
    for (int64_t i = 0; i < n; i++)
        if (keys[i].works)
            place_of(o->pid, &o->n_processes, MOST_PROCESSES, pid_of(v, view_event(v, keys[i].call)));
    if (o->n_processes < 2)
        return o;
    explain(o, v, keys, n);
    for (int d = 0; d < o->n_devices; d++) {
        o->owner[d] = best_owner(o, d, taken);
        if (o->owner[d] >= 0)
            taken[o->owner[d]] = true;
    }
    return o;
}

/* NULL: there is one process, or none is known to own it. */
static const int64_t *owner_of(const struct owners *o, const struct view *v, const struct event *work)
{
    for (int d = 0; d < o->n_devices; d++)
        if (o->device[d] == pid_of(v, work))
            return o->owner[d] >= 0 ? &o->pid[o->owner[d]] : NULL;
    return NULL;
}

static int32_t find_launch(const struct view *v, const struct link_key *keys, int64_t n, const struct event *work, const struct owners *o)
{
    const int64_t *pid = owner_of(o, v, work);
    const int32_t own = pid ? find_call(v, keys, n, work, pid) : -1;
    return own >= 0 ? own : find_call(v, keys, n, work, NULL);
}

void view_link(struct view *v)
{
    const int64_t n = collect(v, NULL);
    struct link_key *keys = xcalloc((size_t)n + 1, sizeof *keys);
    collect(v, keys);
    sort_keys(keys, n);
    struct owners *owners = find_owners(v, keys, n);
    v->n_processes = owners->n_processes;

    for (int32_t i = 0; i < v->n_host; i++)
        v->launched[i] = -1;
    for (int32_t i = v->n_device; i-- > 0;) {       /* from the last, so that lists run by start */
        const struct event *e = view_event(v, v->device + i);
        const int32_t call = e->link < 0 ? -1 : find_launch(v, keys, n, e, owners);
        v->launch[i] = call;
        v->next_launched[i] = call < 0 ? -1 : v->launched[call];
        if (call >= 0)
            v->launched[call] = v->device + i;
    }
    free(owners);
    free(keys);
}
