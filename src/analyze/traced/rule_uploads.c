/* pageable-copies, tiny-host-tensors: data goes to the device in copies that the host waits for, often one by one in a loop. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/rules.h"
#include "analyze/traced/rules.h"

static const int64_t BATCH_BYTES = 1 << 16; /* what a loader hands over is that large */
static const int64_t TINY_BYTES = 512;      /* a few numbers: made on the host for one op */
enum { MANY = 4, REACH = 24 };              /* copies per step that are a loop; ops between two of them at most */
static const double COPY_LEFT = 0.5, LEAST_COPY_LEFT = 0.1;     /* of a copy's time on the device once its memory is pinned */

/* The host waits in the copy's call, or in its op behind it. */
static bool is_waited_for(const struct study *s, int32_t call)
{
    const int32_t top = study_top(s, call);
    if (view_call_waits(s->v, call))
        return true;
    for (int32_t i = call + 1; top >= 0 && i < s->v->end[top]; i++)
        if (view_call_waits(s->v, i))
            return true;
    return false;
}

/* HIP names no kind of memory: a copy that nobody waits for is from pinned memory there. */
static bool is_pageable(const struct study *s, int32_t call)
{
    const char *name = view_name(s->v, s->v->launched[call]);
    return strstr(name, "HtoD") && (strstr(name, "Pageable") || (!strstr(name, "Pinned") && is_waited_for(s, call)));
}

/* A copy to the device from ordinary memory, or one whose call blocks; bytes in *bytes (-1: unknown). */
static bool is_upload(const struct study *s, int32_t call, int64_t *bytes)
{
    const struct view *v = s->v;
    if (study_on_cpu(s)) {                  /* torch.tensor(...): nothing is copied far, but it is made of Python's numbers */
        *bytes = 8 * dims_elements(study_dims(s, call, 0));
        return study_has(s, call) && *bytes > 0 && !strcmp(view_name(v, call), "aten::lift_fresh");
    }
    if (!study_has(s, call) || v->launched[call] < 0 || view_event(v, v->launched[call])->kind != EVENT_MEMCPY)
        return false;
    if (!is_pageable(s, call))
        return false;
    const int32_t args = view_event(v, v->launched[call])->args;
    *bytes = args >= 0 ? v->trace->args[args].bytes : -1;
    return true;
}

static bool makes_tensor(const struct study *s, int32_t top)
{
    const enum task t = study_task(s, top);
    return t == TASK_CREATE || t == TASK_SHAPE || t == TASK_CAST || !strcmp(view_name(s->v, top), "aten::empty");
}

struct uploads {
    int32_t *at;                            /* (n) indices into top of the ops that copy, by time */
    int32_t n;
    double bytes, wait_ns;
};

/* The first kernel of a trace that has no warm step; before it a model is moved to its device. INT64_MIN: there are warm ones. */
static int64_t set_up_until(const struct study *s)
{
    const struct view *v = s->v;
    for (int32_t d = v->device; s->replay->all_cold && d < v->device + v->n_device; d++)
        if (view_event(v, d)->kind == EVENT_KERNEL)
            return view_event(v, d)->start_ns;
    return INT64_MIN;
}

/* Uploads of `least` to `most` bytes; of unknown size where most is not bounded. */
static struct uploads find_uploads(const struct study *s, int64_t least, int64_t most)
{
    struct uploads u = {.at = xcalloc((size_t)s->n_top + 1, sizeof *u.at)};
    const int64_t from_ns = set_up_until(s);
    for (int32_t k = 0; k < s->n_top; k++)
        for (int32_t i = s->top[k]; i < s->v->end[s->top[k]]; i++) {
            int64_t bytes;
            if (!is_upload(s, i, &bytes) || view_event(s->v, i)->start_ns < from_ns || (bytes < 0 ? most < INT64_MAX : bytes < least || bytes > most))
                continue;
            u.at[u.n++] = k;
            u.bytes += bytes > 0 ? (double)bytes : 0;
            u.wait_ns += (double)view_event(s->v, s->top[k])->duration_ns;
            break;
        }
    return u;
}

/* Few tiny uploads per step are part of a batch, such as its labels. */
static bool has_tiny(const struct study *s)
{
    struct uploads u = find_uploads(s, 0, TINY_BYTES);
    free(u.at);
    return per_step(s, u.n) >= MANY;
}

/* GB/s of a copy from pinned memory: the bus that devices of a generation sit on, less what is usual to be lost. */
static double pinned_gbps(const struct device_facts *f)
{
    return f->major == 7 ? 11 : f->maker == MAKER_NVIDIA && f->major >= 9 ? 40 : 20;
}

/* What is left of a copy's time on the device when its memory is pinned. */
static double copy_left(const struct study *s, int32_t copy)
{
    const struct event *e = view_event(s->v, copy);
    const double bytes = e->args >= 0 ? (double)s->v->trace->args[e->args].bytes : -1;
    if (!(bytes > 0) || e->duration_ns <= 0)
        return COPY_LEFT;
    return fmin(fmax(bytes / (double)e->duration_ns / pinned_gbps(&s->device), LEAST_COPY_LEFT), COPY_LEFT);
}

/* Pinned and not waited for: the host goes on when it has asked for the copy. */
static void charge_pinned(const struct study *s, struct charge *c, int32_t top)
{
    charge_host(s, c, top, 0.3);
    for (int32_t i = top; i < s->v->end[top]; i++) {
        int64_t bytes;
        if (!is_upload(s, i, &bytes))
            continue;
        c->edit.host[i] = 0;                /* no wait */
        charge_device(s, c, i, copy_left(s, s->v->launched[i]));
    }
}

/* A single upload: what makes the tensor, up to the copy, is moved out of the step or made asynchronous. */
static void charge_single(const struct study *s, struct charge *c, int32_t at, bool tiny)
{
    if (tiny)
        charge_call(s, c, s->top[at], 0);
    else
        charge_pinned(s, c, s->top[at]);
    for (int32_t k = at - 1; tiny && k >= 0 && at - k <= 4 && makes_tensor(s, s->top[k]); k--)
        charge_call(s, c, s->top[k], 0);
}

/* A loop: all its ops from the body's first to the last copy's body and what joins the pieces. The first body stays. */
static void charge_loop(const struct study *s, struct charge *c, const int32_t *at, int32_t n)
{
    int32_t first = at[0], last = at[n - 1];
    const int32_t period = at[1] - at[0], tail = at[n - 1] - at[n - 2];
    while (first > 0 && at[0] - first < period && !study_works(s, s->top[first - 1]) &&
           study_same(s, first - 1, first - 1 + period))
        first--;
    while (last + 1 < s->n_top && last - at[n - 1] < tail && !study_works(s, s->top[last + 1]) &&
           study_same(s, last + 1, last + 1 - tail))
        last++;
    while (last + 1 < s->n_top && study_task(s, s->top[last + 1]) == TASK_JOIN)
        last++;
    for (int32_t k = first; k <= last; k++)
        charge_with_backward(s, c, s->top[k], 1.0 / n);
}

static void charge_uploads(const struct study *s, struct charge *c, const struct uploads *u, bool tiny)
{
    for (int32_t i = 0, end; i < u->n; i = end) {
        for (end = i + 1; end < u->n && u->at[end] - u->at[end - 1] <= REACH; end++) {
            bool work = view_event(s->v, s->top[u->at[end]])->step != view_event(s->v, s->top[u->at[end - 1]])->step;
            for (int32_t k = u->at[end - 1]; k < u->at[end]; k++)
                work |= study_works(s, s->top[k]);
            if (work)
                break;
        }
        if (end - i >= MANY)
            charge_loop(s, c, u->at + i, end - i);
        else
            for (int32_t k = i; k < end; k++)
                charge_single(s, c, u->at[k], tiny);
    }
}

static bool find_and_charge(struct study *s, struct charge *c, bool tiny)
{
    if (tiny && !has_tiny(s))
        return false;
    struct uploads u = tiny ? find_uploads(s, 0, TINY_BYTES) : find_uploads(s, has_tiny(s) ? TINY_BYTES + 1 : 0, INT64_MAX);
    const double n = per_step(s, u.n);
    if (u.n) {
        charge_uploads(s, c, &u, tiny);
        c->doubt = 0.3;
        c->finding.where = study_where(s, s->top[u.at[0]]);
        c->finding.evidence = study_on_cpu(s) ? study_text(s, "tensors made from Python's numbers per step: %s", study_number(s, n))
            : study_text(s, "copies per step from ordinary memory: %s, of %s on average; %s per step in them",
                                         study_number(s, n), text_bytes(s->arena, u.bytes / u.n), study_us(s, per_step(s, u.wait_ns)));
    }
    free(u.at);
    return u.n > 0;
}

void charge_batch_copies(struct study *s, struct charge *c)
{
    struct uploads u = find_uploads(s, BATCH_BYTES, INT64_MAX - 1);
    if (per_step(s, u.n) < MANY)            /* more are a loop, which pinning alone does not mend */
        charge_uploads(s, c, &u, false);
    free(u.at);
}

bool trace_rule_pageable_copies(struct study *s, struct charge *c)
{
    if (study_on_cpu(s) || !find_and_charge(s, c, false))
        return false;
    c->finding.cause = "batches are copied from memory that is not pinned: the driver copies twice and the host waits";
    return true;
}

bool trace_rule_tiny_host_tensors(struct study *s, struct charge *c)
{
    if (!find_and_charge(s, c, true))
        return false;
    c->finding.cause = study_on_cpu(s) ? "small tensors are made from Python's numbers one by one, each with ops of its own"
                                       : "small tensors are made on the host and copied one by one, each with calls and a wait of its own";
    return true;
}
