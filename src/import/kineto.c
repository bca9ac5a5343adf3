/* The trace as a whole: an object with "traceEvents" and other members before or after, or a bare array of events. The
 * text comes block by block; an event that a block cuts is read again with the next one. Where the text makes no sense
 * the reader goes on at the next place that looks like the start of an event. */
#include "import/kineto_int.h"

#include <stdarg.h>

/* Reading a piece of text again, after it made no sense, is paid from a budget that grows with the bytes read: hostile
 * text costs a few times as much as other text, not its square. */
enum { BUDGET = 64 << 20, BUDGET_PER_BYTE = 4, MOST_WARNINGS = 16 };

void kineto_warn(struct kineto *k, const char *format, ...)
{
    struct trace_origin *o = &k->trace->origin;
    char text[512];
    va_list args;
    if (!o->warnings)
        o->warnings = arena_alloc(&k->trace->arena, MOST_WARNINGS * sizeof *o->warnings);
    if (o->n_warnings == MOST_WARNINGS)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    o->warnings[o->n_warnings++] = arena_printf(&k->trace->arena, "%s", text);
}

static int64_t position(const struct kineto *k, const char *p) { return k->base + (p - k->data); }

/* From p on the text makes no sense; `seen` is how far it was looked at. Goes on behind p if the budget allows. */
static const char *lose(struct kineto *k, const char *p, const char *seen, bool counts)
{
    const int64_t cost = seen - p;
    if (counts && k->trace->origin.events_skipped++ == 0)
        k->first_skipped = position(k, p);
    k->state = KINETO_LOST;
    if (cost > k->budget)
        return seen;
    k->budget -= cost;
    return p + 1;
}

static const char *too_long(struct kineto *k, const char *p)
{
    if (!k->warned_long)
        kineto_warn(k, "what starts at byte %lld is longer than %d MiB and was skipped", (long long)position(k, p),
                    IMPORT_LONGEST >> 20);
    k->warned_long = true;
    return lose(k, p, k->end, k->state == KINETO_EVENTS);
}

/* What is to be done when a value could not be read. NULL: it waits for the next block. */
static const char *not_read(struct kineto *k, enum scan_result r, const char *p, const char *seen)
{
    if (r == SCAN_MORE && !k->last)
        return k->end - p < IMPORT_LONGEST ? NULL : too_long(k, p);
    if (r == SCAN_MORE)                 /* the end of a file that was cut off, or of one that lost a quote */
        k->cut = k->cut ? k->cut : position(k, p) + 1;
    return lose(k, p, r == SCAN_MORE ? k->end : seen, r == SCAN_BAD && k->state == KINETO_EVENTS);
}

static const char *later(const char *a, const char *b) { return a > b ? a : b; }

static const char *read_event(struct kineto *k, const char *p)
{
    struct scan s = {.p = p + 1, .end = k->end, .last = k->last};
    enum scan_result r = event_scan(&s, &k->event, !k->trace->origin.has_flows);
    const char *fast = s.p;
    if (r == SCAN_BAD || (r == SCAN_MORE && k->last)) {
        s = (struct scan){.p = p + 1, .end = k->end, .last = k->last, .careful = true};
        r = event_scan(&s, &k->event, true);
    }
    if (r != SCAN_DONE)
        return not_read(k, r, p, later(fast, s.p));
    k->keeper.read_bytes = position(k, p);
    if (!keep_event(&k->keeper, &k->event) && k->trace->origin.events_skipped++ == 0)
        k->first_skipped = position(k, p);
    return s.p;
}

/* For a message: text that is safe to print. */
static void note_key(struct kineto *k, const struct span *key)
{
    const size_t used = strlen(k->keys);
    if (used > sizeof k->keys / 2)
        return;
    const int shown = (int)(key->size < 40 ? key->size : 40);
    snprintf(k->keys + used, sizeof k->keys - used, "%s'%.*s'", used ? ", " : "", shown, key->at);
    for (char *p = k->keys + used; *p; p++)
        *p = *p < ' ' || *p > '~' ? '?' : *p;
}

/* The events, also under another or a damaged key. */
static bool holds_events(const struct span *key, const char *value)
{
    static const char *const first[] = {"ph"};
    if (*value != '[')
        return false;
    const char *p = scan_space(value + 1);
    return span_is(key, "traceEvents", 11) || (*p == '{' && scan_is_key(scan_space(p + 1), first, 1));
}

/* A member of the whole: the events, or what is said of the machine. */
static const char *read_member(struct kineto *k, const char *p)
{
    struct span key, value = {0};
    struct scan s = {.p = p, .end = k->end, .last = k->last};
    enum scan_result r = scan_key(&s, &key);
    if (r == SCAN_DONE && holds_events(&key, s.p)) {
        k->state = KINETO_EVENTS;
        return s.p + 1;
    }
    if (r == SCAN_DONE)
        r = scan_value(&s, &value, SCAN_IN_OBJECT);
    const char *fast = s.p;
    if (r == SCAN_DONE && memmem(value.at, value.size, "\"traceEvents\"", 13))
        r = SCAN_BAD;                   /* a lost quote, most likely: everything after it looks inside out */
    if (r == SCAN_BAD || (r == SCAN_MORE && k->last)) {
        s = (struct scan){.p = p, .end = k->end, .last = k->last, .careful = true};
        r = scan_key(&s, &key);
        r = r == SCAN_DONE ? scan_value(&s, &value, SCAN_IN_OBJECT) : r;
    }
    if (r != SCAN_DONE)
        return not_read(k, r, p, later(fast, s.p));
    if (span_is(&key, "deviceProperties", 16))
        metadata_devices(&k->keeper, &value);
    else if (span_is(&key, "distributedInfo", 15))
        metadata_distributed(&k->keeper, &value);
    note_key(k, &key);
    return s.p;
}

static const char *in_start(struct kineto *k, const char *p)
{
    if (!memcmp(p, "\xef\xbb\xbf", 3))
        return p + 3;
    k->state = *p == '{' ? KINETO_MEMBERS : *p == '[' ? KINETO_EVENTS : KINETO_LOST;
    k->bare = *p == '[';
    return k->state == KINETO_LOST ? p : p + 1;
}

static const char *in_members(struct kineto *k, const char *p)
{
    if (*p == '"')
        return read_member(k, p);
    if (*p != '}')
        return lose(k, p, p + 1, false);
    k->state = KINETO_DONE;
    return p + 1;
}

static const char *in_events(struct kineto *k, const char *p)
{
    if (*p == '{')
        return read_event(k, p);
    if (*p != ']')
        return lose(k, p, p + 1, true);
    k->state = k->bare ? KINETO_DONE : KINETO_MEMBERS;
    return p + 1;
}

/* Goes over what is there; returns where the part starts that has to wait for more. */
const char *kineto_feed(struct kineto *k)
{
    const char *p = k->data;
    bool wait = false;
    while (p < k->end) {
        const char *next;
        if (k->state == KINETO_DONE)
            return k->end;
        if (k->state != KINETO_LOST)
            p = k->state == KINETO_START ? scan_space(p) : scan_next(p);
        if (p >= k->end)
            break;
        switch (k->state) {
        case KINETO_START: next = in_start(k, p); break;
        case KINETO_MEMBERS: next = in_members(k, p); break;
        case KINETO_EVENTS: next = in_events(k, p); break;
        default: next = kineto_resync(k, p, &wait); break;
        }
        if (!next)
            return p;
        p = next;
        if (wait)
            return p;
    }
    return k->end;
}

static void add_block(struct kineto *k, const struct source_block *b, const char *rest, size_t left)
{
    char *data = b->data - left;
    memcpy(data, rest, left);
    k->base += rest - k->data;
    k->data = data;
    k->end = b->data + b->size;
    k->last = b->last;
    k->budget += (int64_t)b->size * BUDGET_PER_BYTE;
}

enum status kineto_read_text(struct kineto *k, struct source *src, int64_t total, import_progress *progress,
                             void *context, struct error *err)
{
    struct trace_origin *o = &k->trace->origin;
    const char *rest = "";
    k->data = k->end = rest;
    k->budget = BUDGET;
    do {
        struct source_block *b;
        const enum status st = source_next(src, &b, err);
        if (st != OK)
            return st;
        add_block(k, b, rest, (size_t)(k->end - rest));
        if (o->json_bytes == 0)
            memcpy(k->head, k->data, sizeof k->head);
        o->json_bytes += (int64_t)b->size;
        o->file_bytes = b->file_bytes;
        rest = kineto_feed(k);
        if (progress)
            progress(context, o->file_bytes, total);
    } while (!k->last);
    return OK;
}
