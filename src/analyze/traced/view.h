/* A view: an imported trace put in order, with what the events of a trace leave implicit: which call is inside which,
 * what launched what, and which step an event belongs to. Rules and numbers read traces through it. */
#ifndef HONE_ANALYZE_TRACED_VIEW_H
#define HONE_ANALYZE_TRACED_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/error.h"
#include "trace/trace.h"

/* What a kernel does, by its name and the op that launched it. */
enum kernel_kind {
    KERNEL_OTHER, KERNEL_GEMM, KERNEL_ATTENTION, KERNEL_SOFTMAX, KERNEL_NORM, KERNEL_ELEMENTWISE, KERNEL_REDUCE,
    KERNEL_CAST, KERNEL_COPY, KERNEL_FILL, KERNEL_INDEX, KERNEL_OPTIMIZER, KERNEL_DROPOUT, KERNEL_CONV, KERNEL_COMM,
    KERNEL_KINDS
};
extern const char *const kernel_kind_names[KERNEL_KINDS];

/* What a call of the runtime does to the host. Told by the name without its maker: cudaX, hipX, cuX, xpu, mtia. */
enum call_kind {
    CALL_OTHER, CALL_LAUNCH, CALL_GRAPH, CALL_COPY, CALL_FILL, CALL_SYNC_DEVICE, CALL_SYNC_STREAM, CALL_SYNC_EVENT, CALL_MALLOC,
    CALL_FREE, CALL_HOST_ALLOC, CALL_EVENT_RECORD, CALL_STREAM_WAIT
};

struct span { int64_t start_ns, end_ns; };

struct step_window {
    int64_t number;
    int64_t start_ns, end_ns;               /* of the mark on the host */
    int64_t host_start_ns, host_end_ns;     /* host events that begin here belong to it: as the mark, but for a step that is told by
                                               the device's work, which the host launched before */
    int64_t device_end_ns;                  /* end of the last device event launched in it; start_ns when there is none */
    bool after_gap;                         /* the marks of steps before it are missing, or it was odd: what lies between is part of no step */
    int64_t gap_end_ns;                     /* then: end of the last device event launched between; INT64_MIN: none */
    bool after_odd;                         /* the gap is an odd step */
};

struct odd_step {                           /* one that takes many times as long as the others */
    struct step_window window;
    double ns, usual_ns;                    /* of it, and of the median step */
};

/* What became of the step in which a file that was cut off ends. */
enum cut_step { CUT_NONE, CUT_LEFT_OUT, CUT_ONLY };     /* ONLY: no step before it is whole; it ends with the last call that was read */

/* Numbers of events are indices into trace->events everywhere; the arrays of device events are indexed by e - device. */
struct view {
    struct trace *trace;                    /* events sorted in place: host, python, device, others */
    /* [0, n_host): host ops, annotations and runtime calls, by track, start, longest first: a call's descendants follow it */
    int32_t n_host;
    int32_t *parent;                        /* (n_host) the innermost call around it; -1 */
    int32_t *end;                           /* (n_host) one after its last descendant */
    int32_t *launched;                      /* (n_host) runtime calls: the first device event they launched; -1 */
    /* [python, python + n_python): Python frames, in the same order, of the same tracks; event.step: the frame around it */
    int32_t python, n_python;
    /* [device, device + n_device): kernels, copies and fills, by start */
    int32_t device, n_device;
    int32_t *launch;                        /* (n_device) the host event that launched it; -1: not in the trace */
    int32_t *captured;                      /* (n_device) of a graph's replay: the call that captured it; -1. NULL: there is no capture */
    int32_t *next_launched;                 /* (n_device) the next device event of the same launch, by start; -1 */
    /* the others follow by kind, then start */
    /* steps, by start; event.step of all but Python frames and marks is an index into them (a device event's is its launch's);
     * -1: none */
    struct step_window *steps;
    int n_steps;
    struct odd_step *odd;                   /* (n_odd) not among the steps; events in them are in none */
    int n_odd;
    enum cut_step cut;
    int64_t cut_number;                     /* of that step */
    int n_cut;                              /* it and the steps behind it, of which some is missing, too */
    int n_processes;                        /* that start work on a device */
    bool no_step_marks;
    const char *steps_by;                   /* without marks: what they were told by, such as "Optimizer.step"; NULL: it is one step */
    bool *watches;                          /* (n_tracks) a thread that only asks how far the device is, such as a watchdog: its
                                               calls are no part of a step */
    /* by name (index into trace->names), meaningful for names that occur so */
    uint8_t *kernel_kinds, *call_kinds;
    bool *collectives;                      /* by name: a collective on threads of the host, such as "gloo:all_reduce"; NULL: there is none */
    int64_t first_ns, last_ns;              /* of the whole trace */
    struct arena arena;
};

/* Whether there is anything to view: at least one host or device event, and not too many. */
enum status view_check(const struct trace *t, struct error *err);
/* Sorts the trace's events in place and links them. Needs what view_check does. Memory: about 12 bytes an event
 * besides the trace. Events with impossible times (negative duration) count as empty. */
enum status view_init(struct view *v, struct trace *t, struct error *err);
void view_release(struct view *v);
/* The step in which a file was cut off leaves the steps, with those behind it; see cut. Before odd ones are looked for. */
void view_take_out_cut(struct view *v);         /* view_cut.c */
/* Single steps that take many times as long as the others leave the steps, for `odd`; `cold` at the start do not. */
void view_take_out_odd(struct view *v, int cold);       /* view_odd.c */

/* An epoch for which the loader's workers are started anew: its calls in which the old ones stop and in which the first new batch comes. view_restart.c */
struct restart { int32_t stops, starts; };
bool view_restart_at(const struct view *v, int32_t host, struct restart *out);      /* the call stops them */
bool view_restart_in(const struct view *v, const struct step_window *w, struct restart *out);   /* the first one that begins in the step */

static inline const struct event *view_event(const struct view *v, int32_t i) { return &v->trace->events[i]; }
static inline const char *view_name(const struct view *v, int32_t i) { return v->trace->names[v->trace->events[i].name]; }
static inline int64_t event_end(const struct event *e) { return e->start_ns + e->duration_ns; }
int64_t restart_ns(const struct view *v, const struct restart *r);      /* from the one call to the end of the other */

/* The innermost Python frame of the user's own code around a moment of a host track, or of any code where `any`; -1: none. */
int32_t view_python_at(const struct view *v, int track, int64_t at_ns, bool any);
bool frame_is_users(const char *frame);         /* by its file, not one of a library's */
bool frame_is_hones(const char *frame);         /* of the hook of `hone watch`, which is in the process only to record it */
/* The host op around an event (itself if it is one); -1: none. */
int32_t view_op_around(const struct view *v, int32_t host);
/* The host op that a device event is for: the one around its launch, or of a graph's replay around its capture; -1: not known. */
int32_t view_op_of(const struct view *v, int32_t device_event);
/* Whether the host waits for the device in a call: synchronisations, and copies that return when they are done. */
bool view_call_waits(const struct view *v, int32_t host);
/* When a step is, as its parts are counted: from its mark, or the end of the step before where that is later (where its mark is missing, of what it
 * launched), to its mark's end or that of the last device event that was launched in it. `before_ns`: INT64_MIN before the first. */
struct span view_step_span(const struct step_window *w, int64_t *before_ns);
/* (n_tracks) of each stream the first one of the same device. The caller frees. */
int16_t *view_devices(const struct view *v);
/* Whether an event of the host, or the launch of one of the device where it is known, begins in the host's part of a step. */
static inline bool view_begins_in(const struct view *v, int32_t event, const struct step_window *w)
{
    const int32_t launch = event >= v->device ? v->launch[event - v->device] : -1;
    const int64_t at = view_event(v, launch >= 0 ? launch : event)->start_ns;
    return at >= w->host_start_ns && at < w->host_end_ns;
}
/* A collective that a thread of the host works on, as gloo's do, while the threads that make the step may go on or wait. */
static inline bool view_is_collective(const struct view *v, int32_t host)
{
    const struct event *e = view_event(v, host);
    return v->collectives && (e->kind == EVENT_ANNOTATION || e->kind == EVENT_HOST_OP) && v->collectives[e->name];
}
/* Kind of a device event: of kernels by name and launching op, copies KERNEL_COPY, fills KERNEL_FILL. */
enum kernel_kind view_kernel_kind(const struct view *v, int32_t device_event);

#endif
