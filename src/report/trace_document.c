/* Everything the diagnosis of an imported trace knows as one JSON document: report.json, and the data of the page. */
#include <math.h>

#include "core/json_whole.h"
#include "report/report_int.h"
#include "report/trace_views_int.h"

enum { MAX_ROWS = 1000 };               /* of kernels and of ops; the others take next to no time */

#define N report_number
#define W report_name
#define I(x) ((json_int_t)(x))

/* Unknown is below 0 in the diagnosis, or at 0 where nothing can be 0. */
static json_t *if_known(double x) { return x >= 0 ? N(x) : json_null(); }
static int at_most(int n) { return n < MAX_ROWS ? n : MAX_ROWS; }

static json_t *origin(const struct diagnosis *d)
{
    static const struct trace none = {.origin = {.rank = -1, .backend = -1}};
    const struct trace *t = d->trace ? d->trace : &none;
    const struct trace_origin *o = &t->origin;
    const char *backend = o->backend >= 0 && o->backend < t->n_names ? t->names[o->backend] : NULL;
    json_t *where = json_pack("{s:o,s:o,s:o,s:o,s:b,s:o}", "path", W(o->path), "rank",
                              o->rank >= 0 ? json_integer(o->rank) : json_null(), "world_size",
                              o->world_size > 0 ? json_integer(o->world_size) : json_null(), "backend", W(backend),
                              "step_marks", !d->no_step_marks, "steps_by", d->steps_by ? W(d->steps_by) : json_null());
    return report_merge(where, json_pack("{s:I,s:I,s:I,s:I,s:I,s:b,s:b,s:b,s:b}", "events", I(o->events_read),
                                         "events_skipped", I(o->events_skipped), "other_events", I(o->other_events), "bytes",
                                         I(o->json_bytes), "file_bytes", I(o->file_bytes), "truncated", o->truncated,
                                         "has_stacks", o->has_stacks, "has_shapes", o->has_shapes, "has_memory",
                                         o->has_memory));
}

/* The parts sum to total_us. */
static json_t *step_times(const struct trace_step *s)
{
    json_t *parts = json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "total_us", N(s->total_us), "kernel_us",
                              N(s->kernel_us), "memcpy_us", N(s->memcpy_us), "memset_us", N(s->memset_us), "comm_us",
                              N(s->comm_us), "runtime_us", N(s->runtime_us), "dataloader_us", N(s->dataloader_us),
                              "cpu_us", N(s->cpu_us), "other_us", N(s->other_us));
    return report_merge(parts, json_pack("{s:o,s:I,s:I,s:I}", "busy_us", N(s->busy_us), "kernels", I(s->kernels),
                                         "launches", I(s->launches), "host_ops", I(s->host_ops)));
}

static json_t *odd_steps(const struct diagnosis *d)
{
    json_t *list = json_array();
    for (int i = 0; i < d->n_odd; i++)
        list = report_array(list, json_pack("{s:I,s:o,s:o}", "step", I(d->odd[i].number), "total_us", N(d->odd[i].total_us), "usual_us", N(d->odd[i].usual_us)));
    return list;
}

static json_t *steps(const struct diagnosis *d)
{
    json_t *list = json_array();
    for (int i = 0; i < diagnosis_shown_steps(d); i++) {
        json_t *step = json_pack("{s:I,s:o}", "step", I(d->steps[i].number), "start_us", N(d->steps[i].start_us));
        list = report_array(list, report_merge(step, step_times(&d->steps[i])));
    }
    return list;
}

static json_t *gpu(const struct diagnosis *d)
{
    const struct trace_gpu *g = &d->gpu;
    char note[DEVICES_NOTE_MOST];
    report_trace_devices_note(d, note);
    json_t *times = json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "busy_us", N(g->busy_us), "idle_us", N(g->idle_us),
                              "total_us", N(g->total_us), "computation_us", N(g->computation_us), "comm_us",
                              N(g->comm_us), "exposed_comm_us", N(g->exposed_comm_us), "memcpy_us", N(g->memcpy_us),
                              "exposed_memcpy_us", N(g->exposed_memcpy_us));
    return report_merge(times, json_pack("{s:o,s:o,s:o,s:i,s:i,s:o,s:o,s:o}", "idle_host_us", N(g->idle_host_us), "idle_kernel_us",
                                         N(g->idle_kernel_us), "idle_other_us", N(g->idle_other_us), "streams",
                                         g->streams, "devices", g->devices, "busiest_us", N(g->busiest_us), "devices_note",
                                         *note ? json_string(note) : json_null(), "busy_share", N(report_ratio(g->busy_us, g->total_us))));
}

static json_t *corrected(const struct diagnosis *d)
{
    const struct corrected_view *c = &d->corrected;
    json_t *step = json_pack("{s:o,s:o,s:o,s:b,s:o,s:o}", "step_us", N(c->step_us), "low_us", N(c->low_us), "high_us",
                             N(c->high_us), "given", c->given, "recorded_us", N(c->recorded_us), "slowdown",
                             N(report_ratio(c->recorded_us, c->step_us)));
    return report_merge(step, json_pack("{s:b,s:o,s:o,s:o,s:o,s:o,s:o}", "no_cold_start", d->all_cold && !c->given, "host_us", N(c->host_us), "device_us",
                                        N(c->device_us), "cost_per_event_us", N(c->cost_per_event_us),
                                        "events_per_step", N(c->events_per_step), "idle_us", N(c->idle_us),
                                        "recorded_idle_us", N(c->recorded_idle_us)));
}

static json_t *kernels(const struct diagnosis *d)
{
    json_t *list = json_array();
    for (int i = 0; i < at_most(d->n_kernels); i++) {
        const struct trace_kernel *k = &d->kernels[i];
        list = report_array(list, json_pack("{s:o,s:o,s:o,s:o,s:I,s:I,s:o,s:o,s:o,s:o,s:o,s:o}", "name", W(k->name), "short_name",
                                            W(k->shown ? k->shown : k->name), "op",
                                            W(k->op), "kind", W(k->kind), "stream", I(k->stream), "count", I(k->count),
                                            "total_us", N(k->total_us), "mean_us", N(k->mean_us), "min_us",
                                            N(k->min_us), "max_us", N(k->max_us), "share", N(k->share),
                                            "occupancy_percent", if_known(k->occupancy)));
    }
    return list;
}

static json_t *ops(const struct diagnosis *d)
{
    json_t *list = json_array();
    for (int i = 0; i < at_most(d->n_ops); i++) {
        const struct trace_op *o = &d->ops[i];
        list = report_array(list, json_pack("{s:o,s:I,s:I,s:o,s:o,s:o,s:o,s:o}", "name", W(o->name), "count", I(o->count),
                                            "launches", I(o->launches), "self_us", N(o->self_us), "total_us",
                                            N(o->total_us), "device_self_us", N(o->device_self_us), "device_us",
                                            N(o->device_us), "share", N(o->share)));
    }
    return list;
}

static json_t *kinds(const struct diagnosis *d)
{
    double whole = 0;
    for (int i = 0; i < d->n_kinds; i++)
        whole += d->kinds[i].us;
    return report_parts(d->kinds, d->n_kinds, whole);
}

static json_t *launches(const struct trace_launches *l)
{
    json_t *times = json_pack("{s:I,s:o,s:o,s:o,s:o,s:o}", "count", I(l->count), "per_step", N(l->per_step), "call_us",
                              N(l->call_us), "delay_us", N(l->delay_us), "delay_p90_us", N(l->delay_p90_us),
                              "kernel_us", N(l->kernel_us));
    return report_merge(times, json_pack("{s:I,s:o,s:I,s:I,s:o,s:I}", "shorter_than_call", I(l->shorter_than_call),
                                         "queue_mean", N(l->queue_mean), "queue_max", I(l->queue_max), "syncs",
                                         I(l->syncs), "sync_us", N(l->sync_us), "graphs", I(l->graphs)));
}

static json_t *points(const struct trace_point *point, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        list = report_array(list, json_pack("[o,o]", N(point[i].us), N(point[i].value)));
    return list;
}

static json_t *memory(const struct diagnosis *d)
{
    return json_pack("{s:o,s:o,s:o}", "peak_bytes", json_whole(d->memory_peak_bytes > 0 ? d->memory_peak_bytes : NAN), "total_bytes",
                     json_whole(d->memory_total_bytes > 0 ? d->memory_total_bytes : NAN), "points", points(d->memory, d->n_memory));
}

static json_t *ranks(const struct diagnosis *d)
{
    json_t *list = json_array();
    for (int i = 0; i < d->n_ranks; i++) {
        const struct trace_rank *r = &d->ranks[i];
        list = report_array(list, json_pack("{s:o,s:o,s:o,s:I,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:b}", "rank",
                                            r->rank >= 0 ? json_integer(r->rank) : json_null(), "name", W(r->name), "path",
                                            W(r->path), "steps", I(r->steps), "step_us", N(r->step_us), "kernel_us",
                                            N(r->kernel_us), "comm_us", N(r->comm_us), "exposed_comm_us",
                                            N(r->exposed_comm_us), "idle_us", N(r->idle_us), "host_us", N(r->host_us),
                                            "wait_us", N(r->wait_us), "straggler", r->straggler));
    }
    return list;
}

static json_t *warnings(const struct diagnosis *d)
{
    json_t *list = json_array();
    for (int i = 0; i < d->n_warnings; i++)
        list = report_array(list, W(d->warnings[i]));
    return list;
}

json_t *report_trace_document(const struct diagnosis *d)
{
    const struct answers answers = report_trace_answers(d);
    const struct plan plan = report_trace_plan(d);
    char title[TITLE_MOST];
    json_t *numbers = json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "name", W(d->name), "title", W(report_trace_title(d, title)), "device", W(d->device), "trace",
                                origin(d), "steps", steps(d), "mean_step", step_times(&d->mean), "gpu", gpu(d),
                                "corrected", corrected(d));
    char note[STEPS_NOTE_MOST];
    report_trace_steps_note(d, note);
    char recorded_note[RECORDED_NOTE_MOST];
    report_trace_recorded_note(d, recorded_note);
    char ops_note[OPS_NOTE_MOST];
    report_trace_ops_note(d, ops_note);
    json_t *listed = json_pack("{s:o,s:i,s:i,s:o,s:o,s:o,s:o}", "odd_steps", odd_steps(d), "steps_total", d->n_steps, "steps_shown", diagnosis_shown_steps(d), "steps_note",
                               *note ? json_string(note) : json_null(), "recorded_note", *recorded_note ? json_string(recorded_note) : json_null(), "no_op_share", N(d->no_op_share), "ops_note",
                               *ops_note ? json_string(ops_note) : json_null());
    json_t *more = json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "iteration", report_trace_iteration(d), "iteration_note", W(d->iteration_note), "ranks", ranks(d), "collectives", report_trace_collectives(d), "launches",
                             launches(&d->launches), "kinds", kinds(d), "warnings", warnings(d));
    json_t *tables = json_pack("{s:o,s:i,s:o,s:i,s:o,s:o,s:o,s:o}", "kernels", kernels(d), "kernels_left_out",
                               d->n_kernels - at_most(d->n_kernels), "ops", ops(d), "ops_left_out",
                               d->n_ops - at_most(d->n_ops), "mean_occupancy_percent", if_known(d->mean_occupancy),
                               "queue", points(d->queue, d->n_queue), "memory", memory(d), "timeline",
                               report_trace_timeline(d));
    json_t *head = report_merge(report_merge(report_head("trace", TRACE_SCHEMA, HONE_VERSION, &answers), numbers), listed);
    head = report_merge(head, report_plan(&plan));
    return report_merge(report_merge(report_merge(head, more), tables), report_trace_views(d));
}

enum status report_trace_write_json(const struct diagnosis *d, FILE *to, struct error *err)
{
    const enum status st = report_put_json(report_trace_document(d), JSON_INDENT(1), to, err);
    fputc('\n', to);
    return st;
}
