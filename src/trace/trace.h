/* The trace: what happened when, as packed events. The same structure holds a run of our own and, later, an imported one.
 * Times are nanoseconds since the start of the trace; names are interned. A trace only grows outside of steps: recording
 * reserves room first. Sinks (chrome.c, tensorboard.c) turn it into files. */
#ifndef HONE_TRACE_TRACE_H
#define HONE_TRACE_TRACE_H

#include <stdint.h>

#include "core/arena.h"
#include "core/error.h"

enum event_kind {
    EVENT_STEP,         /* one training step */
    EVENT_PHASE,        /* data, forward, backward, optimize, evaluation, checkpoint */
    EVENT_OP,           /* one op on one thread */
    EVENT_WAIT,         /* the host waits: for the loader, for other threads */
    EVENT_LOADER,       /* a worker prepares a batch */
    EVENT_COUNTER,      /* a value over time: memory */
};

/* Tracks are the rows of a timeline. */
enum { TRACK_HOST = 0, TRACK_THREADS = 1, TRACK_LOADER = 1000 };  /* thread i is TRACK_THREADS + i, worker i TRACK_LOADER + i */

/* Names of the host's events in runs of our own; phases have their own names. Inside a step they follow each other. */
#define TRACE_STEP "step"
#define TRACE_LOADER_WAIT "loader wait"
#define TRACE_UPLOAD "upload"
#define TRACE_RECORDING "recording"

struct event {
    int64_t start_ns, duration_ns;      /* duration 0 for counters */
    int32_t name;                       /* index into names */
    int32_t step;                       /* -1 outside of steps */
    int32_t op;                         /* index into the program's ops; -1: none */
    int16_t track;
    int16_t kind;
    double value;                       /* counters */
};

struct trace {
    struct event *events;
    int64_t n, cap;
    const char **names;                 /* interned */
    int32_t n_names, cap_names;
    int32_t *slots;                     /* (2 cap_names) hash table over the names: index + 1; 0: free */
    int64_t origin_ns;                  /* clock_ns() that is time 0 */
    struct arena arena;
};

struct trace *trace_new(void);
void trace_free(struct trace *t);
void trace_reserve(struct trace *t, int64_t events);
int32_t trace_name(struct trace *t, const char *text);          /* interns */
/* start_ns is absolute (clock_ns); room must have been reserved or is made. */
void trace_add(struct trace *t, enum event_kind kind, int track, int32_t name, int32_t step, int32_t op, int64_t start_ns,
               int64_t end_ns);
void trace_counter(struct trace *t, int32_t name, int32_t step, int64_t at_ns, double value);

/* Writes the trace in Chrome's JSON format, which Perfetto opens: one process, a named thread per track, complete events
 * in order of time with args (step, op), counters. `process` names the process. */
enum status trace_write_chrome(const struct trace *t, const char *path, const char *process, struct error *err);

/* TensorBoard event files (TFRecord framing with masked CRC-32C, protobuf messages). One file per folder and run. */
struct tensorboard;
enum status tensorboard_open(struct tensorboard **out, const char *folder, struct error *err);
void tensorboard_scalar(struct tensorboard *t, const char *tag, int64_t step, double value);
void tensorboard_text(struct tensorboard *t, const char *tag, int64_t step, const char *markdown);
enum status tensorboard_close(struct tensorboard *t, struct error *err);        /* NULL is fine */

#endif
