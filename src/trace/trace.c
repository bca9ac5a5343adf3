/* Events in one growing array, names interned by an open hash table; see trace.h. */
#include "trace/trace.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/clock.h"

enum { FIRST_NAMES = 64, FIRST_EVENTS = 256 };

struct trace *trace_new(void)
{
    struct trace *t = xcalloc(1, sizeof *t);
    t->origin_ns = clock_ns();
    return t;
}

void trace_free(struct trace *t)
{
    if (!t)
        return;
    arena_release(&t->arena);
    free(t->events);
    free(t->tracks);
    free(t->args);
    free(t->devices);
    free(t->names);
    free(t->slots);
    free(t);
}

void trace_reserve(struct trace *t, int64_t events)
{
    assert(events >= 0 && events <= INT64_MAX / (int64_t)sizeof *t->events - t->n);
    const int64_t need = t->n + events;
    if (need <= t->cap)
        return;
    t->cap = need > 2 * t->cap ? need : 2 * t->cap;
    t->events = xrealloc(t->events, (size_t)t->cap * sizeof *t->events);
}

/* The slot that has the text, or the free one where it belongs. At least half of the slots are free. */
static int32_t *find_slot(const struct trace *t, const char *text, size_t bytes)
{
    const uint64_t mask = 2 * (uint64_t)t->cap_names - 1;
    for (uint64_t at = XXH3_64bits(text, bytes) & mask;; at = (at + 1) & mask) {
        const char *there = t->slots[at] ? t->names[t->slots[at] - 1] : NULL;
        if (!there || (!strncmp(there, text, bytes) && !there[bytes]))
            return &t->slots[at];
    }
}

static void grow_names(struct trace *t)
{
    assert(t->cap_names <= INT32_MAX / 4);
    t->cap_names = t->cap_names ? 2 * t->cap_names : FIRST_NAMES;
    t->names = xrealloc(t->names, (size_t)t->cap_names * sizeof *t->names);
    free(t->slots);
    t->slots = xcalloc(2 * (size_t)t->cap_names, sizeof *t->slots);
    for (int32_t i = 0; i < t->n_names; i++)
        *find_slot(t, t->names[i], strlen(t->names[i])) = i + 1;
}

int32_t trace_name_n(struct trace *t, const char *text, size_t bytes)
{
    int32_t *slot = t->cap_names ? find_slot(t, text, bytes) : NULL;
    if (slot && *slot)
        return *slot - 1;
    if (!slot || t->n_names == t->cap_names) {
        grow_names(t);
        slot = find_slot(t, text, bytes);
    }
    t->names[t->n_names++] = arena_printf(&t->arena, "%.*s", (int)bytes, text);
    *slot = t->n_names;
    return t->n_names - 1;
}

int32_t trace_name(struct trace *t, const char *text)
{
    return trace_name_n(t, text, strlen(text));
}

static struct event *add(struct trace *t, enum event_kind kind, int track, int32_t name, int32_t step, int64_t start_ns)
{
    assert(name >= 0 && name < t->n_names && track >= 0 && track <= INT16_MAX);
    if (t->n == t->cap)
        trace_reserve(t, FIRST_EVENTS);
    struct event *e = &t->events[t->n++];
    *e = (struct event){.start_ns = start_ns - t->origin_ns, .name = name, .step = step, .op = -1,
                        .track = (int16_t)track, .kind = (int16_t)kind};
    return e;
}

void trace_add(struct trace *t, enum event_kind kind, int track, int32_t name, int32_t step, int32_t op,
               int64_t start_ns, int64_t end_ns)
{
    assert(kind != EVENT_COUNTER);
    struct event *e = add(t, kind, track, name, step, start_ns);
    e->op = op;
    e->duration_ns = end_ns > start_ns ? end_ns - start_ns : 0;
}

void trace_counter(struct trace *t, int32_t name, int32_t step, int64_t at_ns, double value)
{
    add(t, EVENT_COUNTER, TRACK_HOST, name, step, at_ns)->value = value;
}

const char *trace_track_name(const struct trace *t, int track, char out[TRACK_NAME])
{
    static const struct { int first; const char *one, *several; } rows[] = {
        {TRACK_LOADER, NULL, "loader worker"}, {TRACK_QUEUES, NULL, "GPU queue"}, {TRACK_COPIES, "GPU copies", NULL},
        {TRACK_LAUNCHES, "GPU launches", NULL}, {TRACK_THREADS, NULL, "thread"}, {TRACK_HOST, "host", NULL}};
    int i = 0;
    while (track < rows[i].first)
        i++;
    if (rows[i].one)
        snprintf(out, TRACK_NAME, "%s", rows[i].one);
    else if (t->on_device && rows[i].first == TRACK_THREADS)
        snprintf(out, TRACK_NAME, "GPU");
    else
        snprintf(out, TRACK_NAME, "%s %d", rows[i].several, track - rows[i].first);
    return out;
}
