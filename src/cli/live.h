/* hone train --live: a run that is followed on a page of this machine and in the terminal. */
#ifndef HONE_CLI_LIVE_H
#define HONE_CLI_LIVE_H

#include "config/config.h"
#include "runs/runs.h"
#include "train/train.h"

/* What is shown of the run. The thread that trains owns one of these and never waits for who reads: it hands a copy over now and then, where
 * nobody is reading the one before. */
enum { LIVE_POINTS = 600, LIVE_SAMPLES = 6, LIVE_SAMPLE_BYTES = 4096 };
struct live_sample {
    int64_t step;
    char text[LIVE_SAMPLE_BYTES];
};
struct live_numbers {
    uint64_t version;
    char state[16];                     /* "running", "finished", "stopped", "failed" */
    char name[128], device[128];
    int64_t step, steps, first_step;
    double began;                       /* clock_s when the first step did */
    double eta_s;                       /* until the last step; NAN: not known */
    double loss, val_loss, lr, steps_per_s, tokens_per_s, memory_bytes, entropy;
    bool on_gpu;                        /* memory_bytes is what is in use there */
    struct live_sample sample[LIVE_SAMPLES];    /* the newest last */
    int n_samples;
};

struct live_run;
/* `port` is the value of --live. *out is NULL after a failure. */
enum status live_run_open(struct live_run **out, const char *port, const struct config *c, struct error *err);
int live_run_port(const struct live_run *l);

/* What the observer of a run is told. All are called by the thread that trains; NULL is fine. */
void live_run_start(struct live_run *l, const struct train_info *info, const char *folder);
void live_run_step(struct live_run *l, int64_t step);
void live_run_log(struct live_run *l, const struct train_log *log);
void live_run_eval(struct live_run *l, int64_t step, double val_loss);
void live_run_sample(struct live_run *l, int64_t step, const char *text);
void live_run_close(struct live_run *l, const char *state);

/* For the terminal. */
const struct live_numbers *live_run_numbers(const struct live_run *l);
const struct run_curves *live_run_curves(const struct live_run *l);

/* live_json.c: the data of the page, as text that free() takes; NULL: no memory. */
char *live_json(const struct live_numbers *n, const struct curve *loss, const struct curve *validation);

/* ---- live_panel.c: the same in a few lines at the bottom of a terminal ---- */

struct panel {
    bool on;                            /* stderr is a terminal */
    int lines;                          /* on the screen now */
    double drawn;                       /* when */
};
void panel_start(struct panel *p);
void panel_show(struct panel *p, const struct live_run *l);    /* where it is not there, or was not drawn for a second */
void panel_clear(struct panel *p);

#endif
