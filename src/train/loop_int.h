/* Parts of the training loop (loop.c), which nobody else includes: what it holds, and what its files have of each other. */
#ifndef HONE_TRAIN_LOOP_INT_H
#define HONE_TRAIN_LOOP_INT_H

#include <time.h>

#include "train/train_int.h"

/* Sums over the steps since the last log or epoch: the loss also over those before a resume, the time not. */
struct window {
    struct loss_sum sum;
    double seconds;
    int64_t steps, wait_ns;
    struct fill fill;
};

struct loop {
    struct model_run run;
    const struct train_options *options;
    const struct train_observer *watch;
    struct metrics *metrics;
    struct node_log *node_log;          /* NULL: nothing is selected */
    struct node_sums nodes;             /* since the last log */
    struct lines samples;               /* without a file: none are asked for, or none can be made */
    struct loader *loader;
    char threads_words[THREADS_WORDS];
    int lock;                           /* file descriptor; -1: none */
    int64_t step, first_step;           /* steps done, also by the part of the run before a resume */
    int64_t logged, evaluated, saved;   /* the step of the last one; -1: none yet */
    bool owes;                          /* the first step's evaluation, which the part of the run before did not make */
    struct recording recording;
    struct gpu_watch gpu;               /* looked at when a step is logged */
    struct gpu_state *gpus;             /* (ranks) how they were then */
    struct window since_log, since_epoch;
    double first_epoch;                 /* samples/s of the first epoch since the start or resume; NAN: there was none yet */
    int unread;                         /* steps whose metrics the host has not read yet */
    struct step_metrics newest;         /* of those it has */
    double seconds, last_loss, val_loss;
    double losses[DOMAINS_MAX];         /* of the domains, at the last evaluation */
    struct forgetting forgetting;
    bool unwritten;                     /* forgetting.json lacks rows */
    int64_t skipped, skipped_in_a_row, wait_ns;
    struct fill filled;                 /* until the last step */
    int runaway;                        /* steps in a row whose loss was far above guessing; RUNAWAY_STEPS: it was said */
    char checkpoint[CONFIG_PATH_MAX];   /* the newest */
    struct dist *dist;                  /* the ranks of this run; NULL: one */
    bool alike;                         /* what ends the run ends it on every rank: its numbers, which are not finite */
    double rank_wait_s;                 /* waited for other ranks until the last log */
    time_t started;                     /* 0: run.json says nothing of this run */
    double compared_s;                  /* when their weights were compared last, by this rank's clock */
    bool compare;                       /* they are to be compared now */
    bool apart;                         /* they are not the same: nothing is saved any more */
};

bool loop_stopped(const struct loop *l);                /* ranks stop after the same step */
bool loop_leads(const struct loop *l);                  /* rank 0 tells, writes and saves; with one rank, that one */
enum status loop_agree(struct loop *l, enum status st, struct error *err);      /* where one rank has failed, all have */
void loop_warn(struct loop *l, const char *text);

/* loop_open.c: how a run begins and ends. A loop is closed also where opening it failed. */
enum status loop_open(struct loop *l, const struct config *c, struct error *err);
void loop_close(struct loop *l);

/* run_file.c: OUT/run.json, before the first step and at the end. What cannot be written at the end is only said: nothing is lost by it. */
enum status loop_begin_file(struct loop *l, struct error *err);
void loop_end_file(struct loop *l, enum status st, const struct train_result *result, const struct error *why);

/* samples.c: samples.jsonl; a sample of the newest checkpoint. What fails is said once, and then no more are made. */
enum status loop_open_samples(struct loop *l, int64_t resumed_step, struct error *err);
void loop_sample(struct loop *l);

/* loop_numbers.c: reads the metrics of all steps since the last time, and looks at each as if it had been read after its step. */
enum status loop_read_metrics(struct loop *l, struct error *err);

/* epochs.c: MFU of a step of so many samples and such a time; NAN: not known. */
double epoch_mfu_percent(const struct model_run *r, int64_t samples_per_step, double step_us);

/* loop_keep.c: evaluations and checkpoints. */
bool loop_due(const struct loop *l, struct interval every);
bool loop_ends_stage(const struct loop *l);
enum status loop_evaluate(struct loop *l, struct error *err);
/* Before the first step, and where a stage has ended: the row of losses that is due, unless it is known from before a resume. */
enum status loop_pass_border(struct loop *l, struct error *err);
/* What cannot be written in mid-run is written later. */
void loop_write_forgetting(struct loop *l);
enum status loop_save(struct loop *l, struct error *err);
/* Several ranks have the same weights, or the run ends; what is saved is what all have. */
enum status loop_compare(struct loop *l, struct error *err);
/* A checkpoint in mid-run that fails (a full disk) costs nothing yet: warn and go on; the last one must succeed. */
void loop_save_or_warn(struct loop *l);

#endif
