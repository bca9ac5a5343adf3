/* The traces that a command line names: files, folders with the ranks of a job, or "-" for standard input. */
#ifndef HONE_CLI_READ_TRACES_H
#define HONE_CLI_READ_TRACES_H

#include "cli/cli.h"
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

/* Reads everything, with a progress bar where stderr is a terminal. What is odd about a single trace is among the warnings
 * of its origin. On failure the set is empty. */
enum status trace_set_read(struct trace_set *s, const char *const *paths, int n, struct error *err);
void trace_set_release(struct trace_set *s);

#endif
