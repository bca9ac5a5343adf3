/* Events of steps; see record.h. The host's track holds the step and, inside it and in turns, waiting for the loader,
 * copying the batch, the phases, and the recording itself. The threads' tracks hold the ops; of a device, tracks of its own hold what its
 * queues did. */
#include "train/record.h"

#include <stdlib.h>

#include "core/arena.h"
#include "core/clock.h"
#include "passes/passes.h"

struct recorder {
    struct exec *exec;              /* whose run is recorded next */
    struct trace *trace;
    int32_t step;                   /* its number */
    int64_t step_start_ns, mark_ns; /* the end of what was recorded last */
    int64_t hidden_ns;              /* what measuring took so far, where the backend tells it: the trace's clock stands still meanwhile */
    int32_t *op_names;              /* per op */
    struct memory_point *memory;    /* per op: bytes alive */
    int32_t step_name, loader_name, upload_name, recording_name, prepare_name, memory_name, phase_names[PHASES];
    int32_t launch_name, copy_name, fill_name;
};

static int64_t now_ns(const struct recorder *r) { return clock_ns() - r->hidden_ns; }

static void intern_names(struct recorder *r)
{
    const struct program *p = exec_program(r->exec);
    r->step_name = trace_name(r->trace, TRACE_STEP);
    r->loader_name = trace_name(r->trace, TRACE_LOADER_WAIT);
    r->upload_name = trace_name(r->trace, TRACE_UPLOAD);
    r->recording_name = trace_name(r->trace, TRACE_RECORDING);
    r->prepare_name = trace_name(r->trace, "prepare batch");
    r->memory_name = trace_name(r->trace, "workspace bytes alive");
    r->launch_name = trace_name(r->trace, "launch of a graph");
    r->copy_name = trace_name(r->trace, "copy");
    r->fill_name = trace_name(r->trace, "fill");
    for (enum phase ph = 0; ph < PHASES; ph++)
        r->phase_names[ph] = trace_name(r->trace, phase_name(ph));
    for (int i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        char text[256];
        snprintf(text, sizeof text, "%s %s", op_info(op->kind)->name, p->values[op->out[0]].name);
        r->op_names[i] = trace_name(r->trace, text);
    }
}

struct recorder *recorder_new(struct exec *e, struct trace *trace, int32_t first_step)
{
    struct recorder *r = xcalloc(1, sizeof *r);
    r->trace = trace;
    r->step = first_step;
    r->trace->on_device = exec_on_device(e);
    recorder_runs(r, e);
    return r;
}

void recorder_runs(struct recorder *r, struct exec *e)
{
    if (!r || r->exec == e)
        return;
    const struct program *p = exec_program(e);
    if (r->exec && !exec_times(e, 0))       /* it was made while others were measured */
        exec_measure(e, true);
    r->exec = e;
    r->op_names = xrealloc(r->op_names, (size_t)p->n_ops * sizeof *r->op_names);
    r->memory = xrealloc(r->memory, (size_t)p->n_ops * sizeof *r->memory);
    pass_memory_timeline(p, r->memory);
    intern_names(r);
}

void recorder_free(struct recorder *r)
{
    if (!r)
        return;
    free(r->op_names);
    free(r->memory);
    free(r);
}

/* Room for a whole step, so that nothing grows inside it. */
void recorder_begin_step(struct recorder *r)
{
    if (!r)
        return;
    const struct program *p = exec_program(r->exec);
    trace_reserve(r->trace, (int64_t)p->micro_batches * p->n_ops * (3 * exec_lanes(r->exec) + 1) + 64 + 8 * p->micro_batches);
    r->step_start_ns = r->mark_ns = now_ns(r);
}

static void host_event(struct recorder *r, enum event_kind kind, int32_t name)
{
    const int64_t now = now_ns(r);
    trace_add(r->trace, kind, TRACK_HOST, name, r->step, -1, r->mark_ns, now);
    r->mark_ns = now;
}

void recorder_loaded(struct recorder *r, const struct batch *b)
{
    if (!r)
        return;
    host_event(r, EVENT_WAIT, r->loader_name);
    if (b->worker >= 0 && b->prepare_start_ns - r->hidden_ns >= r->trace->origin_ns)
        trace_add(r->trace, EVENT_LOADER, TRACK_LOADER + b->worker, r->prepare_name, r->step, -1, b->prepare_start_ns - r->hidden_ns,
                  b->prepare_end_ns - r->hidden_ns);
}

void recorder_uploaded(struct recorder *r)
{
    if (r)
        host_event(r, EVENT_PHASE, r->upload_name);
}

static void add_op(struct recorder *r, int op)
{
    const struct lane_time *t = exec_times(r->exec, op);
    for (int k = 0; k < exec_lanes(r->exec); k++)
        trace_add(r->trace, EVENT_OP, TRACK_THREADS + k, r->op_names[op], r->step, op, t[k].start_ns - r->hidden_ns,
                  t[k].end_ns - r->hidden_ns);
    for (int k = 0; k < exec_lanes(r->exec); k++)
        if (t[k].sums_end_ns > 0)
            trace_add(r->trace, EVENT_SUMS, TRACK_THREADS + k, r->op_names[op], r->step, op, t[k].sums_start_ns - r->hidden_ns,
                      t[k].sums_end_ns - r->hidden_ns);
    for (int k = 0; k < exec_lanes(r->exec); k++)
        if (t[k].help_ns > 0)
            trace_add(r->trace, EVENT_HELP, TRACK_THREADS + k, r->op_names[op], r->step, op, t[k].help_start_ns - r->hidden_ns,
                      t[k].help_start_ns + t[k].help_ns - r->hidden_ns);
    trace_counter(r->trace, r->memory_name, r->step, t[0].start_ns - r->hidden_ns, r->memory[op].activations + r->memory[op].gradients);
}

/* What happened before the run that began at `from`, on the host's clock, is shown on the clock that was good until then, and ends at
 * the run's beginning at the latest. */
static int64_t shown_ns(const struct recorder *r, int64_t at, int64_t from, int64_t hidden_before)
{
    const int64_t begins = from - r->hidden_ns;
    return at >= from ? at - r->hidden_ns : at - hidden_before < begins ? at - hidden_before : begins;
}

static void add_device_event(struct recorder *r, const struct device_event *d, int64_t from, int64_t hidden_before)
{
    static const struct { enum event_kind kind; int track; } rows[] = {
        [DEVICE_LAUNCH] = {EVENT_LAUNCH, TRACK_LAUNCHES}, [DEVICE_COPY] = {EVENT_DEVICE_COPY, TRACK_COPIES},
        [DEVICE_FILL] = {EVENT_DEVICE_COPY, TRACK_COPIES}, [DEVICE_KERNEL] = {EVENT_QUEUED, TRACK_QUEUES}};
    const int op = d->op ? (int)(d->op - exec_program(r->exec)->ops) : -1;
    const int32_t name = d->kind == DEVICE_COPY ? r->copy_name : d->kind == DEVICE_FILL ? r->fill_name : op < 0 ? r->launch_name : r->op_names[op];
    trace_add(r->trace, rows[d->kind].kind, rows[d->kind].track + (d->kind == DEVICE_KERNEL ? d->queue : 0), name, r->step, op,
              shown_ns(r, d->start_ns, from, hidden_before), shown_ns(r, d->end_ns, from, hidden_before));
}

static void add_device_events(struct recorder *r, int64_t from, int64_t hidden_before)
{
    int n;
    const struct device_event *list = exec_device_events(r->exec, &n);
    for (int i = 0; i < n; i++)
        add_device_event(r, &list[i], from, hidden_before);
}

/* When the phase of op i begins: with its first op, or where ops run beside each other, as a device's do, when all of the phases before
 * it have ended. */
static int64_t phase_begins(const struct recorder *r, int i, bool on_device)
{
    const struct program *p = exec_program(r->exec);
    int64_t at = exec_times(r->exec, i)[0].start_ns;
    for (int k = 0; k < i && on_device; k++)
        if (p->ops[k].phase < p->ops[i].phase && exec_times(r->exec, k)[0].end_ns > at)
            at = exec_times(r->exec, k)[0].end_ns;
    return at;
}

/* A phase lasts until the next one starts; the last until the host had control again. */
void recorder_ran(struct recorder *r, enum phase first, enum phase last)
{
    if (!r)
        return;
    const struct program *p = exec_program(r->exec);
    int64_t from, to;
    const bool told = exec_ran(r->exec, &from, &to);
    const int64_t hidden_before = r->hidden_ns;
    if (told)
        r->hidden_ns = from - r->mark_ns;           /* the run begins where the upload ended */
    const int64_t end = told ? to - r->hidden_ns : now_ns(r);
    int current = -1;
    for (int i = 0; i < p->n_ops; i++) {
        const enum phase ph = p->ops[i].phase;
        if (ph < first || ph > last || (p->ops[i].last && last <= PHASE_BACKWARD))
            continue;
        if ((int)ph != current) {
            int64_t start = current < 0 ? r->mark_ns : phase_begins(r, i, told) - r->hidden_ns;
            start = start > end ? end : start;
            start = start < r->mark_ns ? r->mark_ns : start;        /* ops may run beside each other */
            if (current >= 0)
                trace_add(r->trace, EVENT_PHASE, TRACK_HOST, r->phase_names[current], r->step, -1, r->mark_ns, start);
            r->mark_ns = start;
            current = (int)ph;
        }
        add_op(r, i);
    }
    if (current >= 0)
        trace_add(r->trace, EVENT_PHASE, TRACK_HOST, r->phase_names[current], r->step, -1, r->mark_ns, end);
    r->mark_ns = end;
    add_device_events(r, from, hidden_before);
    if (told)
        r->hidden_ns = clock_ns() - end;
    else
        host_event(r, EVENT_WAIT, r->recording_name);
}

void recorder_end_step(struct recorder *r)
{
    if (!r)
        return;
    trace_add(r->trace, EVENT_STEP, TRACK_HOST, r->step_name, r->step, -1, r->step_start_ns, now_ns(r));
    r->step++;
}
