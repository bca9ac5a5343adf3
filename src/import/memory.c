/* "[memory]" instants: each says by how many bytes an allocator's use changed, and today also what it then was. */
#include <stdlib.h>

#include "import/import_int.h"

enum { CHANGE_ONLY = -2 };      /* in args, until the end: value is a change, not yet a sum */

static int32_t counter_name(struct keeper *k, const struct raw_event *e)
{
    char text[64];
    if (number_int32(raw_field(e, FIELD_DEVICE_TYPE), 0) == 0)
        return texts_literal(&k->texts, "memory host");
    snprintf(text, sizeof text, "memory device %d", number_int32(raw_field(e, FIELD_DEVICE_ID), 0));
    const struct span s = {text, (uint32_t)strlen(text), SPAN_STRING, false};
    return texts_name(&k->texts, &s, sizeof text, k->read_bytes);
}

void memory_keep(struct keeper *k, const struct raw_event *e, int64_t at_ns, int16_t track)
{
    int64_t allocated = 0, reserved = 0, change = 0;
    const bool known = number_int(raw_field(e, FIELD_ALLOCATED), &allocated);
    number_int(raw_field(e, FIELD_CHANGE), &change);
    number_int(raw_field(e, FIELD_RESERVED), &reserved);
    *keep_slot(k->trace) = (struct event){.start_ns = at_ns, .name = counter_name(k, e), .step = -1,
                                          .args = known ? -1 : CHANGE_ONLY, .track = track, .kind = EVENT_COUNTER,
                                          .value = known ? (double)allocated : (double)change};
    struct trace_origin *o = &k->trace->origin;
    o->has_memory = true;
    if (reserved > o->reserved_bytes)
        o->reserved_bytes = reserved;
}

static int by_name_and_time(const void *left, const void *right)
{
    const struct event *a = *(struct event *const *)left, *b = *(struct event *const *)right;
    if (a->name != b->name)
        return a->name < b->name ? -1 : 1;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return a < b ? -1 : a > b;
}

static size_t gather(const struct trace *t, struct event **changes)
{
    size_t n = 0;
    for (int64_t i = 0; i < t->n; i++) {
        if (t->events[i].kind != EVENT_COUNTER || t->events[i].args != CHANGE_ONLY)
            continue;
        if (changes)
            changes[n] = &t->events[i];
        n++;
    }
    return n;
}

/* Threads write their instants one after the other, so that sums have to wait for the order of time. */
void memory_finish(struct trace *t)
{
    const size_t n = t->origin.has_memory ? gather(t, NULL) : 0;
    if (n == 0)
        return;
    struct event **changes = xcalloc(n, sizeof *changes);
    gather(t, changes);
    qsort(changes, n, sizeof *changes, by_name_and_time);
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && changes[i]->name == changes[i - 1]->name)
            changes[i]->value += changes[i - 1]->value;
        changes[i]->args = -1;
    }
    free(changes);
}
