/* host-sync, device-to-host-copy: the host asks the device for a result in the middle of a step. */
#include <string.h>

#include "analyze/rules.h"
#include "analyze/traced/rules.h"

static const int64_t SMALL_BYTES = 4096;    /* what is larger is moved for its content, not for a number */
static const double MANY = 4;               /* reads per step that look like a loop over tensors */

static bool is_sync(const struct study *s, int32_t i)
{
    return study_calls(s, i, CALL_SYNC_DEVICE) || study_calls(s, i, CALL_SYNC_STREAM) || study_calls(s, i, CALL_SYNC_EVENT);
}

/* The copy that the call makes, if it goes that way: "HtoD", "DtoH". */
static const struct event *copy_in(const struct study *s, int32_t host, const char *way)
{
    const struct view *v = s->v;
    for (int32_t i = host; host >= 0 && i < v->end[host]; i++)
        if (v->launched[i] >= 0 && view_event(v, v->launched[i])->kind == EVENT_MEMCPY &&
            strstr(view_name(v, v->launched[i]), way))
            return view_event(v, v->launched[i]);
    return NULL;
}

static bool is_large(const struct study *s, const struct event *copy)
{
    return copy && copy->args >= 0 && s->v->trace->args[copy->args].bytes > SMALL_BYTES;
}

struct reads {
    int32_t n, example;                     /* an outermost op, or the call itself */
    double wait_ns;
};

struct outermost {                          /* the op around the latest wait, and what it copies */
    int32_t top;
    bool uploads, large;
};

/* A wait that is this rule's business: not inside the loader, not behind a copy to the device. Sets *o; waits of one op
 * follow each other. */
static bool takes(const struct study *s, int32_t i, bool large, struct outermost *o)
{
    if (!study_has(s, i) || !is_sync(s, i) || study_annotation(s, i, "enumerate(DataLoader)") >= 0)
        return false;
    const int32_t top = study_top(s, i);
    if (top < 0 || top != o->top)
        *o = (struct outermost){top, copy_in(s, top, "HtoD"), is_large(s, copy_in(s, top, "DtoH"))};
    return !o->uploads && o->large == large;
}

/* Numbers read in a loop over tensors were computed one by one for it: that goes too. */
static void charge_producer(const struct study *s, struct charge *c, int32_t top)
{
    const int32_t at = study_index(s, top);
    if (at > 0 && study_task(s, s->top[at - 1]) == TASK_REDUCE)
        charge_call(s, c, s->top[at - 1], 0);
}

static struct reads charge_reads(const struct study *s, struct charge *c, bool large)
{
    struct reads r = {.example = -1};
    struct outermost o = {.top = -1};
    for (int32_t i = 0; i < s->v->n_host; i++)
        if (takes(s, i, large, &o)) {
            r.n++;
            r.wait_ns += (double)view_event(s->v, i)->duration_ns;
        }
    const bool loop = per_step(s, r.n) >= MANY;
    int32_t charged = -1;
    for (int32_t i = 0; i < s->v->n_host; i++) {
        if (!takes(s, i, large, &o) || (o.top >= 0 && o.top == charged))
            continue;
        const int32_t top = charged = o.top;
        charge_call(s, c, top >= 0 ? top : i, 0);
        if (loop && top >= 0)
            charge_producer(s, c, top);
        if (r.example < 0)
            r.example = top >= 0 ? top : i;
    }
    return r;
}

bool trace_rule_host_sync(struct study *s, struct charge *c)
{
    const struct reads r = charge_reads(s, c, false);
    if (!r.n)
        return false;
    const double n = per_step(s, r.n), wait = per_step(s, r.wait_ns);
    c->doubt = 0.3;
    c->finding.where = study_where(s, r.example);
    c->finding.cause = n >= MANY ? study_text(s, "the host reads %.0f numbers from the device in every step and waits for each", n)
                                 : "the host waits for the device in the step, and the queue of launches drains";
    c->finding.evidence = study_text(s, "waits per step: %s (%.200s), %s in them per step as recorded", study_number(s, n),
                                     view_name(s->v, r.example), study_us(s, wait));
    return true;
}

bool trace_rule_device_to_host_copy(struct study *s, struct charge *c)
{
    const struct reads r = charge_reads(s, c, true);
    if (!r.n)
        return false;
    const struct event *copy = copy_in(s, r.example, "DtoH");
    c->doubt = 0.3;
    c->finding.where = study_where(s, r.example);
    c->finding.cause = "a tensor of the step is copied to the host, which waits for it";
    c->finding.evidence = study_text(s, "copies per step: %s, for example %s in %s; %s of waiting per step as recorded",
                                     study_number(s, per_step(s, r.n)), text_bytes(s->arena, (double)s->v->trace->args[copy->args].bytes),
                                     study_us(s, (double)copy->duration_ns), study_us(s, per_step(s, r.wait_ns)));
    return true;
}
