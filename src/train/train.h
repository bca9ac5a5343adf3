/* Training runs: the loop with evaluation, logging and checkpoints; generation from a checkpoint; whole-step timing.
 * Nothing here prints: what happens is told to an observer, and src/cli shows it. */
#ifndef HONE_TRAIN_TRAIN_H
#define HONE_TRAIN_TRAIN_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "config/config.h"
#include "core/error.h"
#include "exec/exec.h"

struct train_info {                     /* known before the first step */
    const char *data, *device;
    int64_t parameters, total_steps, first_step, steps_per_epoch, tokens_per_step;
    double entropy;                     /* the best possible loss; NAN if unknown */
    int threads;
    struct exec_memory memory;
};

struct train_log {
    int64_t step, epoch;
    double loss;                        /* mean since the last log */
    double lr, grad_norm;
    double steps_per_s, steps_per_s_overall, samples_per_s, tokens_per_s;
    double seconds;                     /* of training so far, without evaluation and checkpoints */
    double data_wait_share;             /* of the time since the last log */
    int64_t skipped;                    /* steps without an update because loss or gradient was not finite */
};

struct train_epoch {
    int64_t epoch;
    double loss, seconds, samples_per_s;
};

/* Any function may be NULL. */
struct train_observer {
    void *context;
    void (*on_start)(void *context, const struct train_info *info);
    void (*on_step)(void *context, int64_t step, double loss);          /* after every step */
    void (*on_log)(void *context, const struct train_log *log);
    void (*on_eval)(void *context, int64_t step, double val_loss);
    void (*on_epoch)(void *context, const struct train_epoch *epoch);
    void (*on_checkpoint)(void *context, int64_t step, const char *path);
    void (*on_warning)(void *context, const char *text);
};

struct train_options {
    const char *out;                    /* folder of the run */
    bool resume;
    const volatile sig_atomic_t *stop;  /* set from a signal handler: save and return; may be NULL */
};

struct train_result {
    int64_t steps;
    double loss, val_loss;              /* val_loss NAN when there was no evaluation */
    double samples_per_s, tokens_per_s;
    bool interrupted;
    char checkpoint[CONFIG_PATH_MAX];   /* empty when none was written */
};

enum status train_run(const struct config *c, const struct train_options *options, const struct train_observer *observer,
                      struct train_result *result, struct error *err);

/* Prints the training program of a configuration. */
enum status train_print_program(const struct config *c, FILE *to, struct error *err);

struct generate_options {
    const char *prompt;
    int64_t tokens;
    double temperature;                 /* 0: always the most likely */
    uint64_t seed;
    const volatile sig_atomic_t *stop;
};

/* Continues the prompt with the model of a checkpoint; the prompt, then every piece of text as it is made, is given to
 * `emit`. A piece may hold any bytes. */
enum status generate_run(const char *checkpoint, const struct generate_options *options,
                         void (*emit)(void *context, const char *text, size_t length), void *context, struct error *err);

struct bench_result {
    double ms_per_step, ms_spread;      /* median, and the distance between the 10th and 90th percentile */
    double samples_per_s, tokens_per_s, peak_mb, tflops, mfu_percent, loss;
    double planned_mb;                  /* parameters, state and workspace */
    int threads;
    int64_t steps;
};

/* Times whole training steps of a configuration on random tokens for about `seconds`. peak_gflops gives MFU. */
enum status bench_run(const struct config *c, double seconds, double peak_gflops, struct bench_result *out,
                      struct error *err);

/* A JSON string of any bytes; what is not UTF-8 becomes question marks. */
json_t *json_text(const char *text);

/* Opens the device that a configuration asks for. */
enum status train_open_backend(struct backend **out, const struct config *c, struct error *err);

#endif
