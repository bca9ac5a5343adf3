/* Any bytes as a profiler's trace: refused with a message, or a trace whose indices are all good and whose times can be
 * added. Read in small blocks it is the same trace, unless it is damaged gzip, of which more or less may be inflated. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "import/import_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void check_text(const struct trace *t, int32_t index)
{
    require(index >= -1 && index < t->n_names);
    require(index < 0 || strlen(t->names[index]) <= IMPORT_LONGEST_NAME);
}

static void check_event(const struct trace *t, const struct event *e)
{
    int64_t end_ns;
    require(e->name >= 0 && e->name < t->n_names);
    require(e->track >= 0 && e->track < t->n_tracks);
    require(e->args >= -1 && e->args < t->n_args);
    require(e->kind == EVENT_STEP || e->kind == EVENT_COUNTER ||
            (e->kind >= EVENT_ANNOTATION && e->kind <= EVENT_STREAM_WAIT));
    require((e->step >= 0) == (e->kind == EVENT_STEP));
    require(e->duration_ns >= 0 && !__builtin_add_overflow(e->start_ns, e->duration_ns, &end_ns));
    require(e->kind != EVENT_COUNTER || e->value - e->value == 0);
}

static void check_trace(const struct trace *t)
{
    require(t->n > 0 && t->n == t->origin.events_read && t->origin_ns == 0);
    for (int64_t i = 0; i < t->n; i++)
        check_event(t, &t->events[i]);
    for (int i = 0; i < t->n_tracks; i++)
        check_text(t, t->tracks[i].label);
    for (int i = 0; i < t->n_devices; i++)
        check_text(t, t->devices[i].name);
    for (int32_t i = 0; i < t->n_args; i++) {
        const struct event_args *a = &t->args[i];
        const int32_t texts[] = {a->dims, a->types, a->values, a->collective, a->dtype, a->stack};
        for (size_t j = 0; j < sizeof texts / sizeof *texts; j++)
            check_text(t, texts[j]);
    }
    for (int i = 0; i < t->origin.n_warnings; i++)
        require(t->origin.warnings[i][0] != '\0');
}

static enum status read_blocks(struct trace **out, const uint8_t *data, size_t size, size_t block)
{
    const struct source_from from = {.data = data, .size = size, .total = (int64_t)size, .block = block};
    struct error err = {.text = ""};
    const enum status st = kineto_read(out, "input", &from, NULL, NULL, &err);
    require(st == OK || (st == BAD_INPUT && err.text[0]));
    return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t empty;
    struct trace *whole = NULL, *parts = NULL;
    const enum status st = read_blocks(&whole, size ? data : &empty, size, size + 1);
    const enum status st_parts = read_blocks(&parts, size ? data : &empty, size, 64 + size % 1024);
    if (st == OK)
        check_trace(whole);
    if (st_parts == OK)
        check_trace(parts);
    if (size && data[0] != 0x1f) {
        require(st == st_parts);
        require(st != OK || (whole->n == parts->n && whole->origin.events_skipped == parts->origin.events_skipped));
    }
    trace_free(whole);
    trace_free(parts);
    return 0;
}
