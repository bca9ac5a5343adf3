/* Runs read back from the folders that src/train leaves, set side by side, and made in turn. Folders may be half written, cut off or
 * garbled: what cannot be read is left out and said, and nothing in them is trusted. */
#ifndef HONE_RUNS_RUNS_H
#define HONE_RUNS_RUNS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "config/config.h"
#include "core/error.h"
#include "runs/curve.h"

enum { RUN_WORDS = 512, RUN_NAME = 128 };

enum run_state {
    RUN_RUNNING,                        /* the lock of its folder is held */
    RUN_FINISHED,
    RUN_STOPPED,                        /* asked to; also of folders that say nothing of an end */
    RUN_FAILED,
    RUN_NAN,                            /* loss or gradient was not finite */
    RUN_CRASHED,                        /* it began, nobody holds the lock, and there is no word of an end */
};
const char *run_state_name(enum run_state state);

struct run {
    char folder[CONFIG_PATH_MAX], name[CONFIG_PATH_MAX];
    enum run_state state;
    char reason[RUN_WORDS];             /* of a failure */
    char warning[RUN_WORDS];            /* what of it could not be read; empty: nothing */
    int64_t step, steps;                /* done, and to do; steps 0: not known */
    double loss, val_loss;              /* the last ones; NAN: not known, or not finite */
    double steps_per_s, tokens_per_s;   /* over all of a run that has ended, else since the last log; NAN: not known */
    char device[RUN_NAME];              /* "cpu", "NVIDIA H200"; empty: not known */
    int threads, ranks;
    int64_t parameters;                 /* 0: not known */
    double planned_bytes, peak_bytes;   /* NAN: not known */
    time_t when;                        /* the last sign of life; 0: not known */
    bool ended;                         /* and run.json says that this was the end */
    struct config *config;              /* NULL: it cannot be read */
    struct run_curves *curves;          /* NULL: not asked for */
};

struct runs {
    struct run *run;
    int n;
    bool more;                          /* there are more than are looked at */
};

/* All runs at or below a folder, by name, which is their path from there. Links are not followed. */
enum { RUNS_MOST = 10000 };
enum status runs_find(struct runs *out, const char *folder, struct error *err);
/* The runs in these folders, in their order, and of one that is no run itself those below it; refused where there is none. Names are as short as they can be. */
enum status runs_open(struct runs *out, const char *const *folders, int n, struct error *err);
void runs_release(struct runs *r);

/* Reads what the folder r->folder tells. */
enum status run_read(struct run *r, struct error *err);
/* Has its warning tell of lines of metrics.jsonl that are garbage, if it tells of nothing else; of its end, so that it takes no time. */
void run_check_lines(struct run *r);
bool run_is_folder(const char *folder);                 /* of a run, or of one that has just begun */

/* ---- metrics.jsonl ---- */

/* A line, as far as it is used here. */
struct metrics_line {
    enum metrics_kind { METRICS_BAD, METRICS_OTHER, METRICS_LOG, METRICS_EVAL } kind;
    int64_t step;
    double loss;                        /* of validation, of METRICS_EVAL; NAN where it was not finite */
    double steps_per_s, tokens_per_s, seconds, memory_bytes;    /* NAN: not told */
    double overall_per_s;               /* steps per second of `seconds`, since the start or resume */
};
struct metrics_line metrics_line_parse(const char *text, size_t length);

/* Tells every whole line, from the first; lines that are too long are told as bad ones. *cut: something behind the last one. */
typedef void metrics_line_fn(void *context, const struct metrics_line *line);
enum status metrics_each(const char *path, metrics_line_fn *tell, void *context, bool *cut, struct error *err);
/* The last log and the last evaluation; kind METRICS_OTHER: there is none in the last METRICS_BACK bytes. */
enum { METRICS_BACK = 1 << 26 };
enum status metrics_last(const char *path, struct metrics_line *log, struct metrics_line *eval, struct error *err);

/* How many of the whole lines in the last METRICS_END bytes are none of metrics. */
enum { METRICS_END = 1 << 16 };
int64_t metrics_bad_at_end(const char *path);

/* All of it, in a bounded number of points. */
struct run_curves {
    struct curve loss, validation;
    int64_t bad_lines;                  /* that could not be read, or go back */
    bool cut;                           /* it ends in the middle of a line */
    double best_val_loss;               /* NAN: none */
    int64_t best_step;
    double tokens, seconds;             /* of all steps, over resumes; without evaluation and checkpoints */
    int64_t step, evaluated;            /* of the last log and the last evaluation */
    double tokens_each;                 /* per step, as the last log had it; NAN: not known */
    double before_s, part_s;            /* seconds before the last resume, and since */
    double part_begin;                  /* the step of the last resume, as far as logs tell */
    double part_per_s;                  /* steps per second since then; NAN: not known */
};
enum status run_read_curves(struct run *r, int points, struct error *err);      /* no metrics.jsonl is one without lines */
/* The same line by line, as they come. */
void run_curves_init(struct run_curves *c, int points);
void run_curves_add(struct run_curves *c, const struct metrics_line *line);
void run_curves_release(struct run_curves *c);

/* ---- side by side ---- */

/* Keys in which the configs differ, with a value for each run; NULL: its config is not known. */
struct run_key {
    const char *key;
    char **value;                       /* (n of the runs) */
};
struct run_keys {
    struct run_key *key;
    int n, runs;
};
void run_keys_init(struct run_keys *k, const struct runs *r);
void run_keys_release(struct run_keys *k);

/* By a column ("name", "loss", ...) or a key of the config: losses from the lowest, speed and time from the highest. What is not known
 * comes last. */
extern const char *const runs_columns_to_sort[];        /* up to NULL */
enum status runs_sort(struct runs *r, const char *by, struct error *err);
enum status runs_check_sort(const char *by, struct error *err);

/* Of the runs of one data that have finished, the one whose validation loss, or loss where none has one, is the lowest. */
struct run_best {
    int best;
    int runs;                           /* that it is the best of: finished, and with the loss that counts */
    int tied;                           /* that have its loss, to the digits that are shown, itself among them */
    int also;                           /* the first of the others; -1: none */
    bool by_validation;
    bool unlike;                        /* evaluations do not look at as many tokens in all of them (eval.batches × eval.batch_size × model.seq) */
};
struct run_bests {
    struct run_best *list;              /* by the first run of each data; of several, losses of one say nothing about those of another */
    int n;
};
void run_bests_init(struct run_bests *b, const struct runs *r, const struct run_keys *k);
void run_bests_release(struct run_bests *b);
double run_best_loss(const struct runs *r, const struct run_best *b);
/* "a", "a and b", or "a and 3 more": those that are tied. */
void run_best_names(const struct runs *r, const struct run_best *b, char *out, size_t size);
/* "data.tokens byte, data.path b.txt": what sets its data apart from that of others; "" where nothing does. */
void run_best_data(const struct runs *r, const struct run_keys *k, const struct run_best *b, char *out, size_t size);
json_t *run_bests_json(const struct run_bests *b, const struct runs *r, const struct run_keys *k);

/* What hone runs prints, and hone compare shows; NULL: no memory. */
json_t *runs_json(const struct runs *r, const struct run_keys *k, const char *folder);
json_t *runs_compare_json(const struct runs *r, const struct run_keys *k);

#endif
