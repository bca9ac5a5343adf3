/* Finds the way back after text that makes no sense: the next start of an event, or the end of the events. */
#include "import/kineto_int.h"

enum { LOOK_AHEAD = 256 };      /* enough to recognise either */

static bool is_event(const struct kineto *k, const char *brace)
{
    const char *p = brace;
    while (p > k->data && (uint8_t)p[-1] <= ' ')
        p--;
    return scan_starts_event(brace, p > k->data ? p[-1] : k->before);
}

/* Behind the bracket: the end of the text, or one of the members that a trace is known to have. */
static bool ends_events(const struct kineto *k, const char *bracket)
{
    static const char *const keys[] = {"deviceProperties", "distributedInfo", "traceName", "displayTimeUnit",
                                       "baseTimeNanoseconds", "schemaVersion", "traceEvents", "INFO", "trace_id"};
    const char *p = scan_space(bracket + 1);
    if (*p == ',')
        return scan_is_key(scan_space(p + 1), keys, sizeof keys / sizeof *keys);
    if (*p != '}')
        return k->bare && k->last && p >= k->end;
    p = scan_space(p + 1);
    return k->last && p >= k->end;
}

static void remember(struct kineto *k, const char *p)
{
    for (; p > k->data; p--)
        if ((uint8_t)p[-1] > ' ') {
            k->before = p[-1];
            return;
        }
}

static const char *found(struct kineto *k, enum kineto_state state, const char *p)
{
    if (k->cut && state == KINETO_EVENTS) {     /* not the end, but an event that lost a quote */
        if (k->trace->origin.events_skipped++ == 0)
            k->first_skipped = k->cut - 1;
        k->cut = 0;
    }
    k->state = state;
    return p;
}

const char *kineto_resync(struct kineto *k, const char *p, bool *wait)
{
    for (; p < k->end; p++) {
        while (p < k->end && *p != '{' && *p != ']')
            p++;
        if (p >= k->end)
            break;
        if (!k->last && k->end - p < LOOK_AHEAD) {
            remember(k, p);
            *wait = true;
            return p;
        }
        if (*p == '{' && is_event(k, p))
            return found(k, KINETO_EVENTS, p);
        if (*p == ']' && ends_events(k, p))
            return found(k, k->bare ? KINETO_DONE : KINETO_MEMBERS, p + 1);
    }
    remember(k, k->end);
    return k->end;
}
