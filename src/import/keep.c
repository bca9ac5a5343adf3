/* Turns an event's spans into what the trace keeps of it. Whether something ran on a device is told by its category,
 * never by its pid. */
#include <stdlib.h>

#include "import/import_int.h"

static const int64_t longest_ns = INT64_C(10000000000000000);     /* 115 days: longer is damage */

void keeper_init(struct keeper *k, struct trace *t)
{
    *k = (struct keeper){.trace = t, .texts = {.trace = t, .other = -1}, .tracks = {.trace = t}, .args = {.trace = t}};
}

void keeper_release(struct keeper *k)
{
    texts_release(&k->texts);
    tracks_release(&k->tracks);
    args_release(&k->args);
}

struct event *keep_slot(struct trace *t)
{
    if (t->n == t->cap) {
        t->cap += t->cap / 2 + 256;
        t->events = xrealloc(t->events, (size_t)t->cap * sizeof *t->events);
    }
    t->origin.events_read++;
    return &t->events[t->n++];
}

/* "ProfilerStep#12"; -1 for other names. */
static int32_t step_number(const struct span *name)
{
    static const char prefix[] = "ProfilerStep#";
    const size_t n = sizeof prefix - 1;
    const struct span digits = {name->at + n, name->size - (uint32_t)n, SPAN_SCALAR, false};
    if (name->size <= n || memcmp(name->at, prefix, n))
        return -1;
    return number_int32(&digits, -1);
}

static bool on_device(int kind) { return kind == EVENT_KERNEL || kind == EVENT_MEMCPY || kind == EVENT_MEMSET; }

static int16_t find_track(struct keeper *k, const struct raw_event *e, int kind)
{
    const struct span *pid = raw_field(e, FIELD_PID), *tid = raw_field(e, FIELD_TID);
    if (!on_device(kind))
        return tracks_find(&k->tracks, TRACK_HOST_THREAD, tracks_id(pid), tracks_id(tid));
    const struct span *device = raw_field(e, FIELD_DEVICE), *stream = raw_field(e, FIELD_STREAM);
    return tracks_find(&k->tracks, TRACK_DEVICE_STREAM, tracks_id(device->size ? device : pid),
                       tracks_id(stream->size ? stream : tid));
}

static int64_t find_link(const struct raw_event *e, int kind)
{
    int64_t link = -1;
    if (kind == EVENT_HOST_OP)
        number_int(raw_field(e, FIELD_SEQUENCE), &link);
    else if (on_device(kind) || kind == EVENT_RUNTIME || kind == EVENT_STREAM_WAIT)
        number_int(raw_field(e, FIELD_CORRELATION), &link);
    return link;
}

static int32_t find_name(struct keeper *k, const struct span *name)
{
    static const struct span unnamed = {"(unnamed)", 9, SPAN_STRING, false};
    return texts_name(&k->texts, name->size ? name : &unnamed, IMPORT_LONGEST_NAME, k->read_bytes);
}

static bool find_start(struct keeper *k, const struct raw_event *e, int64_t *ns)
{
    if (!number_ns(raw_field(e, FIELD_TS), ns))
        return false;
    k->beyond += !number_ns_fits(*ns);
    return number_ns_fits(*ns);
}

/* An event may have none. One that is no number, or below 0, is damage: as 0 the time would be gone without a word. */
static bool find_duration(struct keeper *k, const struct raw_event *e, int64_t *ns)
{
    const struct span *written = raw_field(e, FIELD_DUR);
    *ns = 0;
    if (written->type == SPAN_NONE)
        return true;
    if (!number_ns(written, ns) || *ns < 0)
        return false;
    k->beyond += *ns > longest_ns;
    return *ns <= longest_ns;
}

static bool keep_complete(struct keeper *k, const struct raw_event *e)
{
    const struct span *category = raw_field(e, FIELD_CAT), *name = raw_field(e, FIELD_NAME);
    int kind = category_kind(&k->categories, category);
    const int32_t step = kind == CATEGORY_DROPPED || on_device(kind) ? -1 : step_number(name);
    int64_t start_ns, duration_ns;
    if (step >= 0)
        kind = EVENT_STEP;
    if (kind < 0) {
        k->trace->origin.other_events++;
        return true;
    }
    if (!find_start(k, e, &start_ns) || !find_duration(k, e, &duration_ns))
        return false;
    k->trace->origin.has_stacks |= kind == EVENT_PYTHON;
    *keep_slot(k->trace) = (struct event){.start_ns = start_ns, .duration_ns = duration_ns, .name = find_name(k, name),
                                          .step = step, .args = args_index(&k->args, &k->texts, e, k->read_bytes),
                                          .track = find_track(k, e, kind), .kind = (int16_t)kind,
                                          .link = find_link(e, kind)};
    return true;
}

static bool keep_instant(struct keeper *k, const struct raw_event *e)
{
    int64_t at_ns;
    if (!span_is(raw_field(e, FIELD_NAME), "[memory]", 8)) {
        k->trace->origin.other_events++;
        return true;
    }
    if (!find_start(k, e, &at_ns))
        return false;
    memory_keep(k, e, at_ns, find_track(k, e, EVENT_COUNTER));
    return true;
}

static void keep_label(struct keeper *k, const struct raw_event *e)
{
    const struct span *name = raw_field(e, FIELD_NAME), *label = raw_field(e, FIELD_LABEL);
    const bool process = span_is(name, "process_name", 12);
    if (label->size && (process || span_is(name, "thread_name", 11)))
        tracks_label(&k->tracks, process, tracks_id(raw_field(e, FIELD_PID)), tracks_id(raw_field(e, FIELD_TID)),
                     texts_name(&k->texts, label, IMPORT_LONGEST_ARG, k->read_bytes));
}

bool keep_event(struct keeper *k, const struct raw_event *e)
{
    const struct span *ph = raw_field(e, FIELD_PH), *category = raw_field(e, FIELD_CAT);
    const char letter = ph->size == 1 ? *ph->at : '\0';
    if (ph->size > 1)
        return false;
    if (letter == 'X')
        return keep_complete(k, e);
    if (letter == 'i' || letter == 'I')
        return keep_instant(k, e);
    if (letter == 'M')
        keep_label(k, e);
    if (letter == 's' || letter == 'f' || letter == 't')
        k->trace->origin.has_flows |= category_kind(&k->categories, category) == CATEGORY_FLOW;
    k->trace->origin.other_events++;
    return true;
}

void keep_finish(struct keeper *k)
{
    memory_finish(k->trace);
    tracks_finish(&k->tracks);
}
