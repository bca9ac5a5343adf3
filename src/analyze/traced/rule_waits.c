/* host-sync, device-to-host-copy: the host asks the device for a result in the middle of a step. */
#include <stdlib.h>
#include <string.h>

#include "analyze/rules.h"
#include "analyze/traced/rules.h"

static const int64_t SMALL_BYTES = 4096;    /* what is larger is moved for its content, not for a number */
enum { MANY = 4, REACH = 8 };               /* reads per step that look like a loop over tensors; ops from one to the next at most */

static bool is_sync(const struct study *s, int32_t i)
{
    return study_calls(s, i, CALL_SYNC_DEVICE) || study_calls(s, i, CALL_SYNC_STREAM) || study_calls(s, i, CALL_SYNC_EVENT);
}

static bool is_large(const struct study *s, const struct event *copy)
{
    return copy && copy->args >= 0 && s->v->trace->args[copy->args].bytes > SMALL_BYTES;
}

struct read {                               /* a wait that is this file's business */
    int32_t call, top;                      /* top: the outermost op around it; -1: none */
    int32_t at;                             /* of the op, in the study's list; -1 */
    bool large;                             /* a tensor is moved for its content; of a loop over tensors, of some turn */
};

struct all_reads { struct read *at; int32_t n; };

/* Not inside the loader, not behind a copy to the device. Waits of one op follow each other and are one read. */
static struct all_reads collect_reads(const struct study *s)
{
    struct all_reads r = {0};
    const bool checked = study_found(s, "anomaly-mode");        /* what it reads of each gradient is its own */
    int32_t cap = 0, uploads = -1;          /* the latest op that is none of ours */
    for (int32_t i = 0; i < s->v->n_host; i++) {
        if (!study_has(s, i) || !is_sync(s, i) || study_annotation(s, i, "enumerate(DataLoader)") >= 0)
            continue;
        const int32_t top = study_top(s, i);
        if (checked && study_in_backward(s, i))
            continue;
        if (top >= 0 && (top == uploads || (r.n && r.at[r.n - 1].top == top)))
            continue;
        if (top >= 0 && study_copy(s, top, "HtoD")) {
            uploads = top;
            continue;
        }
        if (r.n == cap) {
            cap = cap ? 2 * cap : 64;
            r.at = xrealloc(r.at, (size_t)cap * sizeof *r.at);
        }
        r.at[r.n++] = (struct read){i, top, top >= 0 ? study_index(s, top) : -1, is_large(s, study_copy(s, top, "DtoH"))};
    }
    return r;
}

/* One turn of a loop over tensors follows another: few ops between them, and none of the model's own work. */
static bool follows(const struct study *s, const struct read *a, const struct read *b)
{
    if (a->at < 0 || b->at <= a->at || b->at - a->at > REACH || view_event(s->v, a->call)->step != view_event(s->v, b->call)->step)
        return false;
    for (int32_t k = a->at + 1; k < b->at; k++)
        if (study_works(s, s->top[k]))
            return false;
    return true;
}

/* In a loop over tensors small ones are read like large ones: all turns are one fault. */
static void join_loops(const struct study *s, struct all_reads *r)
{
    for (int32_t i = 0, end; i < r->n; i = end) {
        bool large = r->at[i].large;
        for (end = i + 1; end < r->n && follows(s, &r->at[end - 1], &r->at[end]); end++)
            large |= r->at[end].large;
        for (int32_t k = i; end - i >= MANY && k < end; k++)
            r->at[k].large = large;
    }
}

struct reads {
    int32_t n, example;                     /* one that reads: an outermost op, or the call itself */
    int32_t asked, asked_example;           /* of all, those that read nothing: the program asked to wait */
    double wait_ns;                         /* in which some thread waits */
};

static int32_t outermost(const struct read *r) { return r->top >= 0 ? r->top : r->call; }

static bool copies_to_host(const struct study *s, int32_t device)
{
    return view_event(s->v, device)->kind == EVENT_MEMCPY && strstr(view_name(s->v, device), "DtoH");
}

/* No op is around the wait, and no copy is what it waits for: torch.cuda.synchronize() and its like. */
static bool is_asked_for(const struct study *s, const struct read *r)
{
    const int32_t before = r->call - 1;
    const bool copies = before >= 0 && s->v->launched[before] >= 0 && copies_to_host(s, s->v->launched[before]);
    return r->top < 0 && !copies;
}

/* The op is there to read: it has no other work for the device. */
static bool only_reads(const struct study *s, int32_t op)
{
    const struct view *v = s->v;
    for (int32_t i = op; i < v->end[op]; i++)
        for (int32_t d = v->launched[i]; d >= 0; d = v->next_launched[d - v->device])
            if (!copies_to_host(s, d))
                return false;
    return true;
}

static bool is_waiting_read(const struct study *s, int32_t i)
{
    return is_sync(s, i) || (view_call_waits(s->v, i) && study_copy(s, i, "DtoH"));
}

/* What reads goes as a whole; of an op that works, too, as those of compiled code do, its waits and their copies alone. */
static void charge_read(const struct study *s, struct charge *c, const struct read *r)
{
    const int32_t from = outermost(r);
    if (r->top >= 0 && only_reads(s, from)) {
        charge_call(s, c, from, 0);
        return;
    }
    for (int32_t i = from; i < s->v->end[from]; i++) {
        if (is_waiting_read(s, i))
            charge_host(s, c, i, 0);
        if (s->v->launched[i] >= 0 && copies_to_host(s, s->v->launched[i]))
            charge_call(s, c, i, 0);
    }
}

/* Numbers read in a loop over tensors were computed one by one for it: that goes too. */
static void charge_producer(const struct study *s, struct charge *c, const struct read *r)
{
    if (r->at > 0 && study_task(s, s->top[r->at - 1]) == TASK_REDUCE)
        charge_call(s, c, s->top[r->at - 1], 0);
}

/* Of a loop that moves tensors all turns go, with what lies between. */
static void charge_turn(const struct study *s, struct charge *c, const struct read *before, const struct read *r)
{
    for (int32_t k = before->at + 1; follows(s, before, r) && k < r->at; k++)
        charge_call(s, c, s->top[k], 0);
}

/* In the synchronisation, and in the call of a copy to ordinary memory, which waits itself. */
static void add_waits(const struct study *s, const struct read *r, struct ranges *waits)
{
    const int32_t from = outermost(r);
    for (int32_t i = from; i < s->v->end[from]; i++)
        if (is_waiting_read(s, i))
            ranges_add(waits, study_range(s, i));
}

static bool is_larger(const struct study *s, int32_t a, int32_t b)
{
    const struct event *x = study_copy(s, a, "DtoH"), *y = study_copy(s, b, "DtoH");
    return x && (!y || x->duration_ns > y->duration_ns);
}

static struct reads charge_reads(const struct study *s, struct charge *c, bool large)
{
    struct reads r = {.example = -1, .asked_example = -1};
    struct ranges waits = {0};
    struct all_reads all = collect_reads(s);
    join_loops(s, &all);
    for (int32_t i = 0; i < all.n; i++)
        r.n += all.at[i].large == large;
    const bool loop = per_step(s, r.n) >= MANY;
    for (int32_t i = 0; i < all.n; i++) {
        const struct read *x = &all.at[i];
        const int32_t call = outermost(x);
        if (x->large != large)
            continue;
        const bool asked = is_asked_for(s, x);
        r.asked += asked;
        if (asked && r.asked_example < 0)
            r.asked_example = call;
        add_waits(s, x, &waits);
        charge_read(s, c, x);
        if (loop && !large)
            charge_producer(s, c, x);
        if (loop && large && i && all.at[i - 1].large)
            charge_turn(s, c, &all.at[i - 1], x);
        if (!asked && (r.example < 0 || (large && is_larger(s, call, r.example))))
            r.example = call;
    }
    r.wait_ns = (double)ranges_sum(&waits);
    ranges_release(&waits);
    free(all.at);
    return r;
}

bool trace_rule_host_sync(struct study *s, struct charge *c)
{
    const struct reads r = charge_reads(s, c, false);
    if (!r.n)
        return false;
    const bool asked = 2 * r.asked > r.n;
    const int32_t example = asked ? r.asked_example : r.example;
    const double n = per_step(s, r.n), numbers = per_step(s, r.n - r.asked), wait = per_step(s, r.wait_ns);
    c->doubt = 0.3;
    c->asks.synchronizes = asked;
    c->finding.where = study_where(s, example);
    c->finding.cause = asked            ? "the program waits for the device in calls that read nothing, and the queue of launches drains"
                       : numbers >= MANY ? study_text(s, "the host reads %.0f numbers from the device in every step and waits for each", numbers)
                                         : "the host waits for the device in the step, and the queue of launches drains";
    c->finding.evidence = study_text(s, "waits per step: %s (%.200s), %s in them per step as recorded", study_number(s, n),
                                     view_name(s->v, example), study_us(s, wait));
    return true;
}

bool trace_rule_device_to_host_copy(struct study *s, struct charge *c)
{
    const struct reads r = charge_reads(s, c, true);
    if (!r.n)
        return false;
    const struct event *copy = study_copy(s, r.example, "DtoH");
    c->doubt = 0.3;
    c->finding.where = study_where(s, r.example);
    c->finding.cause = "a tensor of the step is copied to the host, which waits for it";
    c->finding.evidence = study_text(s, "copies per step: %s, for example %s in %s; %s of waiting per step as recorded",
                                     study_number(s, per_step(s, r.n)), text_bytes(s->arena, (double)s->v->trace->args[copy->args].bytes),
                                     study_us(s, (double)copy->duration_ns), study_us(s, per_step(s, r.wait_ns)));
    return true;
}
