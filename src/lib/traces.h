/* The traces that paths name, files, folders with the ranks of a job, or "-" for standard input, and what they say together. */
#ifndef HONE_LIB_TRACES_H
#define HONE_LIB_TRACES_H

#include "analyze/diagnosis.h"
#include "core/error.h"
#include "trace/trace.h"

struct trace_path {
    char *path;
    bool searched;              /* found in a folder, not named */
};

struct trace_set {
    struct trace **traces;      /* (n) */
    int n;
    struct trace_path *paths;   /* (n_paths) what was read, in order */
    int n_paths;
    char **warnings;            /* (n_warnings) files passed over in a folder, ranks that cannot be of one job */
    int n_warnings;
};

/* Who wants to see how far it is; any function may be NULL. */
struct trace_watch {
    void *context;
    void (*on_bytes)(void *context, int at, int n, int64_t done, int64_t total);       /* of file `at` of n; bytes of all; total -1: not known */
    void (*on_diagnose)(void *context, bool done);
};

/* Reads everything. What is odd about a single trace is among the warnings of its origin. On failure the set is empty. */
enum status trace_set_read(struct trace_set *s, const char *const *paths, int n, const struct trace_watch *watch, struct error *err);
void trace_set_release(struct trace_set *s);

struct trace_job {
    struct trace_set set;
    struct diagnosis diagnosis;
    bool diagnosed;
};

/* Reads and diagnoses. `watch` may be NULL. Released in any case; where it fails, the set has what was odd about the files. */
enum status trace_job_make(struct trace_job *j, const char *const *paths, int n, const struct diagnose_options *options,
                           const struct trace_watch *watch, struct error *err);
void trace_job_release(struct trace_job *j);

#endif
