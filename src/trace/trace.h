/* The trace: what happened when, as packed events. The same structure holds a run of our own and one that another
 * profiler recorded (src/import). Times are nanoseconds, since the start of the trace in runs of our own and on the
 * clock of the file in imported ones; names are interned. A trace only grows outside of steps: recording reserves room
 * first. Sinks (chrome.c, tensorboard.c) turn it into files. */
#ifndef HONE_TRACE_TRACE_H
#define HONE_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
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
    EVENT_LAUNCH,       /* the host's call that starts work on a device */
    EVENT_DEVICE_COPY,  /* a copy or a fill on the device */
    EVENT_QUEUED,       /* a kernel of an op, in the queue in which it ran */
    EVENT_SUMS,         /* what one thread sums up of an op, when all have met behind it */
    EVENT_HELP,         /* what one thread does of other threads' parts of an op while it waits for them, all pieces in one event, from the first on */
    /* imported traces only; EVENT_STEP, EVENT_COUNTER (bytes allocated on a device) and these */
    EVENT_ANNOTATION,   /* a range that the user named: record_function, Optimizer.step#..., nccl:all_reduce */
    EVENT_HOST_OP,      /* an operator on a host thread: aten::mm */
    EVENT_PYTHON,       /* a Python frame: "train.py(12): step", "nn.Module: Linear_3" */
    EVENT_RUNTIME,      /* a call of the device's runtime or driver: cudaLaunchKernel */
    EVENT_KERNEL,       /* work on a device's stream */
    EVENT_MEMCPY,
    EVENT_MEMSET,
    EVENT_OVERHEAD,     /* what the profiler says of its own time on the host */
    EVENT_STREAM_WAIT,  /* a stream waits for an event or the host for a stream (category cuda_sync); never busy time */
};

/* Tracks are the rows of a timeline: thread i is TRACK_THREADS + i, queue i of a device TRACK_QUEUES + i, worker i TRACK_LOADER + i. An
 * event has 16 bits for it, and each of them more numbers than a machine has. */
enum { TRACK_HOST = 0, TRACK_THREADS = 1, TRACK_LAUNCHES = 1 << 13, TRACK_COPIES, TRACK_QUEUES, TRACK_LOADER = 1 << 14 };
enum { TRACK_NAME = 32 };

/* Names of the host's events in runs of our own; phases have their own names. Inside a step they follow each other. */
#define TRACE_STEP "step"
#define TRACE_LOADER_WAIT "loader wait"
#define TRACE_UPLOAD "upload"
#define TRACE_RECORDING "recording"

struct event {
    int64_t start_ns, duration_ns;      /* duration 0 for counters */
    int32_t name;                       /* index into names */
    int32_t step;                       /* -1 outside of steps */
    union {
        int32_t op;                     /* runs of our own: index into the program's ops; -1: none */
        int32_t args;                   /* imported: index into the trace's args; -1: none */
    };
    int16_t track;
    int16_t kind;
    union {
        double value;                   /* counters */
        int64_t link;                   /* imported: correlation of runtime and device events, sequence number of host ops;
                                           -1: none */
    };
};

/* What an imported event says beyond its times. Equal ones are kept once. Texts are indices into names; -1: none. */
struct event_args {
    int32_t grid[3], block[3];          /* kernels; 0: unknown */
    int32_t registers, shared_bytes;    /* per thread, per block; -1: unknown */
    float occupancy;                    /* percent, estimated by the profiler; -1: unknown */
    int32_t group_size;                 /* ranks of a collective; 0: unknown */
    int64_t bytes;                      /* of a copy or fill; -1: unknown */
    int64_t elements;                   /* of a collective's input; -1: unknown */
    int32_t dims, types, values;        /* a host op's inputs as written: "[[32, 256], []]" */
    int32_t collective, dtype;          /* "allreduce", "Float" */
    int32_t stack;                      /* call stack or module hierarchy as text, in old traces */
};

enum track_kind { TRACK_HOST_THREAD, TRACK_DEVICE_STREAM };

struct trace_track {                    /* a row of an imported trace */
    enum track_kind kind;
    int64_t pid, tid;                   /* of a stream: device and stream */
    int32_t label;                      /* name, or -1 */
};

struct trace_device {
    int32_t id, name;                   /* index into names; -1: unknown */
    int32_t major, minor, multiprocessors, threads_per_multiprocessor, warp;
    int64_t memory_bytes;
};

/* Imported traces: where the events came from. */
struct trace_origin {
    const char *path;                   /* "-" for standard input */
    int rank, world_size;               /* -1 and 0: unknown */
    bool rank_by_names;                 /* guessed from the names of all files together */
    int32_t backend;                    /* name of the communication backend; -1: unknown */
    bool truncated, has_stacks, has_shapes, has_memory, has_flows;
    int64_t json_bytes, file_bytes;     /* read: after and before decompression */
    int64_t events_read, events_skipped, other_events;  /* taken; malformed; of no use here (flows, metadata) */
    int64_t reserved_bytes;             /* most memory that the allocator held on a device; 0: unknown */
    char **warnings;                    /* (n_warnings) sentences, each with the byte position where there is one */
    int n_warnings;
};

struct trace {
    struct event *events;
    int64_t n, cap;
    const char **names;                 /* interned */
    int32_t n_names, cap_names;
    int32_t *slots;                     /* (2 cap_names) hash table over the names: index + 1; 0: free */
    int64_t origin_ns;                  /* clock_ns() that is time 0; 0 when imported */
    bool on_device;                     /* ops run on a GPU, and TRACK_THREADS is its row */
    struct arena arena;

    /* imported traces; empty in runs of our own, whose tracks are numbered above */
    struct trace_track *tracks;
    int n_tracks;
    struct event_args *args;
    int32_t n_args;
    struct trace_device *devices;
    int n_devices;
    struct trace_origin origin;
};

struct trace *trace_new(void);
void trace_free(struct trace *t);
void trace_reserve(struct trace *t, int64_t events);
int32_t trace_name(struct trace *t, const char *text);          /* interns */
int32_t trace_name_n(struct trace *t, const char *text, size_t bytes);  /* the same, of text without an end; no NUL in it */
/* start_ns is absolute (clock_ns); room must have been reserved or is made. */
void trace_add(struct trace *t, enum event_kind kind, int track, int32_t name, int32_t step, int32_t op, int64_t start_ns,
               int64_t end_ns);
void trace_counter(struct trace *t, int32_t name, int32_t step, int64_t at_ns, double value);

/* The name of a row of a run of our own. Returns `out`. */
const char *trace_track_name(const struct trace *t, int track, char out[TRACK_NAME]);

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
