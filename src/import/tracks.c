/* The rows of the timeline: a thread of a process, or a stream of a device. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>

#include "import/import_int.h"

enum { MOST_TRACKS = 32767, MOST_LABELS = 1 << 16 };

void tracks_release(struct tracks *k)
{
    free(k->table.slots);
    free(k->labels);
}

/* "stream 7" */
static bool stream_number(const struct span *s, int64_t *value)
{
    static const char prefix[] = "stream ";
    const size_t n = sizeof prefix - 1;
    struct span rest = {s->at + n, s->size - (uint32_t)n, SPAN_SCALAR, false};
    if (s->type != SPAN_STRING || s->size <= n || memcmp(s->at, prefix, n))
        return false;
    while (rest.size && rest.at[rest.size - 1] == ' ')
        rest.size--;
    return number_int(&rest, value);
}

int64_t tracks_id(const struct span *s)
{
    int64_t value;
    if (s->type == SPAN_NONE)
        return 0;
    if (number_int(s, &value) || stream_number(s, &value))
        return value;
    return -(int64_t)(XXH3_64bits(s->at, s->size) >> 2) - 2;
}

struct wanted { const struct trace *trace; struct trace_track track; };

static bool is_wanted(const void *context, int32_t index)
{
    const struct wanted *w = context;
    const struct trace_track *t = &w->trace->tracks[index];
    return t->pid == w->track.pid && t->tid == w->track.tid && t->kind == w->track.kind;
}

static void add(struct tracks *k, const struct trace_track *track)
{
    struct trace *t = k->trace;
    if (t->n_tracks == k->cap) {
        k->cap = k->cap ? 2 * k->cap : 16;
        t->tracks = xrealloc(t->tracks, (size_t)k->cap * sizeof *t->tracks);
    }
    t->tracks[t->n_tracks++] = *track;
}

int16_t tracks_find(struct tracks *k, enum track_kind kind, int64_t pid, int64_t tid)
{
    const struct wanted w = {k->trace, {kind, pid, tid, -1}};
    const int64_t key[3] = {kind, pid, tid};
    const uint32_t hash = (uint32_t)XXH3_64bits(key, sizeof key);
    struct slot *slot = table_find(&k->table, hash, is_wanted, &w);
    if (slot->index)
        return (int16_t)(slot->index - 1);
    if (k->trace->n_tracks == MOST_TRACKS) {
        k->full = true;
        return MOST_TRACKS - 1;
    }
    add(k, &w.track);
    *slot = (struct slot){hash, k->trace->n_tracks};
    k->table.n++;
    return (int16_t)(k->trace->n_tracks - 1);
}

void tracks_label(struct tracks *k, bool process, int64_t pid, int64_t tid, int32_t name)
{
    if (k->n_labels == MOST_LABELS)
        return;
    if (k->n_labels == k->cap_labels) {
        k->cap_labels = k->cap_labels ? 2 * k->cap_labels : 64;
        k->labels = xrealloc(k->labels, (size_t)k->cap_labels * sizeof *k->labels);
    }
    k->labels[k->n_labels] = (struct label){pid, process ? 0 : tid, name, k->n_labels, process};
    k->n_labels++;
}

static int compare(int64_t a, int64_t b) { return (a > b) - (a < b); }

static int by_key(const void *left, const void *right)
{
    const struct label *a = left, *b = right;
    const int c = compare(a->process, b->process), d = c ? c : compare(a->pid, b->pid);
    return d ? d : compare(a->tid, b->tid);
}

static int by_key_and_order(const void *left, const void *right)
{
    const int c = by_key(left, right);
    return c ? c : compare(((const struct label *)left)->order, ((const struct label *)right)->order);
}

static int32_t find_label(const struct tracks *k, bool process, int64_t pid, int64_t tid)
{
    const struct label wanted = {.pid = pid, .tid = process ? 0 : tid, .process = process};
    const struct label *found = bsearch(&wanted, k->labels, (size_t)k->n_labels, sizeof *k->labels, by_key);
    return found ? found->name : -1;
}

/* A thread's own label comes first, then that of its process. Of several for one the last counts. */
void tracks_finish(struct tracks *k)
{
    int kept = 0;
    if (!k->n_labels)
        return;
    qsort(k->labels, (size_t)k->n_labels, sizeof *k->labels, by_key_and_order);
    for (int i = 0; i < k->n_labels; i++)
        if (i + 1 == k->n_labels || by_key(&k->labels[i], &k->labels[i + 1]))
            k->labels[kept++] = k->labels[i];
    k->n_labels = kept;
    for (int i = 0; i < k->trace->n_tracks; i++) {
        struct trace_track *t = &k->trace->tracks[i];
        const int32_t own = find_label(k, false, t->pid, t->tid);
        t->label = own >= 0 ? own : find_label(k, true, t->pid, 0);
    }
}
