/* Memory over time: the counters of the device that held most. */
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/numbers_int.h"
#include "analyze/traced/view_int.h"

/* Bytes on a device, "memory device 0"; the host's own is of no interest where a device was used. */
static bool is_memory(const struct view *v, const struct event *e)
{
    return e->kind == EVENT_COUNTER && strncmp(v->trace->names[e->name], "memory host", 11) != 0;
}

/* The counter with the highest value; -1: none. */
static int32_t busiest(const struct view *v, double *peak)
{
    int32_t found = -1;
    for (int64_t i = view_first_other(v); i < v->trace->n; i++) {
        const struct event *e = &v->trace->events[i];
        if (is_memory(v, e) && (found < 0 || e->value > *peak)) {
            *peak = e->value;
            found = e->name;
        }
    }
    return found;
}

static double memory_of_device(const struct trace *t, int32_t counter)
{
    const char *name = counter < 0 ? "" : t->names[counter];
    const char *number = strrchr(name, ' ');
    const long id = number ? strtol(number + 1, NULL, 10) : -1;
    for (int i = 0; i < t->n_devices; i++)
        if (t->devices[i].id == id && t->devices[i].memory_bytes > 0)
            return (double)t->devices[i].memory_bytes;
    return t->n_devices && t->devices[0].memory_bytes > 0 ? (double)t->devices[0].memory_bytes : 0;
}

void numbers_memory(struct diagnosis *d, const struct view *v)
{
    double peak = 0;
    const int32_t counter = busiest(v, &peak);
    d->memory_peak_bytes = peak > 0 ? peak : 0;
    d->memory_total_bytes = memory_of_device(v->trace, counter);
    d->memory = NULL;
    d->n_memory = 0;
    if (counter < 0)
        return;
    struct thinner t = thinner_start(&d->arena, v->first_ns, v->last_ns, v->first_ns);
    for (int64_t i = view_first_other(v); i < v->trace->n; i++) {
        const struct event *e = &v->trace->events[i];
        if (e->kind == EVENT_COUNTER && e->name == counter)
            thinner_add(&t, e->start_ns, e->value);
    }
    d->memory = t.points;
    d->n_memory = thinner_end(&t);
}
