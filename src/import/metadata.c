/* What a trace says of its machine: devices and ranks. */
#include <ctype.h>
#include <stdlib.h>

#include "import/import_int.h"

enum { MOST_DEVICES = 4096 };

/* A scan over a span of text that ends with its last bracket. */
static struct scan inside(const struct span *value)
{
    return (struct scan){.p = value->at + 1, .end = value->at + value->size, .last = true};
}

static void set_device(struct keeper *k, struct trace_device *d, const struct span *key, const struct span *value)
{
    const int32_t number = number_int32(value, -1);
    if (span_is(key, "id", 2))
        d->id = number;
    else if (span_is(key, "name", 4))
        d->name = texts_name(&k->texts, value, IMPORT_LONGEST_ARG, k->read_bytes);
    else if (span_is(key, "totalGlobalMem", 14))
        number_int(value, &d->memory_bytes);
    else if (span_is(key, "computeMajor", 12))
        d->major = number;
    else if (span_is(key, "computeMinor", 12))
        d->minor = number;
    else if (span_is(key, "numSms", 6))
        d->multiprocessors = number;
    else if (span_is(key, "maxThreadsPerMultiprocessor", 27))
        d->threads_per_multiprocessor = number;
    else if (span_is(key, "warpSize", 8))
        d->warp = number;
}

static void add_device(struct keeper *k, const struct span *object)
{
    struct trace *t = k->trace;
    struct trace_device d = {.id = t->n_devices, .name = -1};
    struct scan s = inside(object);
    struct span key, value;
    if (object->type != SPAN_OBJECT || t->n_devices == MOST_DEVICES)
        return;
    while (scan_key(&s, &key) == SCAN_DONE && scan_value(&s, &value, SCAN_IN_OBJECT) == SCAN_DONE)
        set_device(k, &d, &key, &value);
    t->devices = xrealloc(t->devices, (size_t)(t->n_devices + 1) * sizeof *t->devices);
    t->devices[t->n_devices++] = d;
}

void metadata_devices(struct keeper *k, const struct span *value)
{
    struct scan s = inside(value);
    struct span device;
    k->trace->n_devices = 0;            /* of several lists the last counts */
    while (value->type == SPAN_ARRAY && scan_value(&s, &device, SCAN_IN_ARRAY) == SCAN_DONE) {
        add_device(k, &device);
        for (s.p = scan_space(s.p); *s.p == ',' && s.p < s.end;)
            s.p = scan_space(s.p + 1);
    }
}

void metadata_distributed(struct keeper *k, const struct span *object)
{
    struct trace_origin *o = &k->trace->origin;
    struct scan s = inside(object);
    struct span key, value;
    while (object->type == SPAN_OBJECT && scan_key(&s, &key) == SCAN_DONE &&
           scan_value(&s, &value, SCAN_IN_OBJECT) == SCAN_DONE) {
        if (span_is(&key, "rank", 4))
            o->rank = number_int32(&value, -1);
        else if (span_is(&key, "world_size", 10))
            o->world_size = number_int32(&value, 0);
        else if (span_is(&key, "backend", 7))
            o->backend = texts_name(&k->texts, &value, IMPORT_LONGEST_ARG, k->read_bytes);
    }
}

int metadata_number(const char *path, const char *word)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t n = strlen(word);
    for (const char *p = name; (p = strcasestr(p, word)); p += n) {
        const char *digits = p + n + (p[n] == '_' || p[n] == '-' || p[n] == '.');
        if ((p == name || !isalpha((unsigned char)p[-1])) && isdigit((unsigned char)*digits)) {
            const long number = strtol(digits, NULL, 10);
            return number <= 1 << 24 ? (int)number : -1;
        }
    }
    return -1;
}

int metadata_rank(const char *path) { return metadata_number(path, "rank"); }
