/* Passes: program -> program; `pass_training_step` runs those that make a training step in their order. */
#ifndef HONE_PASSES_PASSES_H
#define HONE_PASSES_PASSES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "program/program.h"

/* How a step is divided. Shards are as many as ranks, or that times a power of two; one: it is not divided. */
struct ranks_settings {
    int ranks, shards, accumulate;  /* accumulate: micro-batches of every shard */
    double bucket_bytes;            /* gradients that travel together, about; 0: as data_parallel.c finds right */
    bool alone;                     /* one rank: its gradients go through buckets all the same, and stay as they are */
    bool whole_layers;              /* what is summed or started is so behind all of its layer, whose ops a GPU may do together */
    int rank;                       /* this one */
    bool shard_optimizer;           /* every rank has a slice of the optimizer's state */
};

struct optimizer_settings {
    float lr, min_lr, weight_decay, beta1, beta2, eps;
    int schedule;                   /* as op_attrs.schedule */
    int64_t warmup, total_steps;
    bool decay_all;                 /* else only matrices decay: not norms, biases, embeddings */
    float max_norm;                 /* 0: no clipping */
    int accumulate;                 /* micro-batches per step */
    struct selection {              /* of the groups that a step updates */
        int k;                      /* how many; 0: all parameters are updated, nothing is selected */
        bool sum;                   /* the score of a group is the sum of its units' norms; else one norm */
        bool random;                /* not by score */
        int every;                  /* steps that a selection is kept for */
        uint64_t seed;
    } select;
    struct ranks_settings ranks;
};

/* Appends the backward of p->loss and gives every parameter its gradient. */
enum status pass_autodiff(struct program *p, struct error *err);

/* Adds gradients up over `micro_batches` runs of forward and backward, weighted by their count of targets, so that the
 * result is the mean over all targets. Nothing is done for 1. */
enum status pass_accumulate(struct program *p, int micro_batches, struct error *err);

/* Divides a step over shards and ranks instead: sums over micro-batches, and between ranks. Two values of it are the host's: the input
 * RANKS_STOP, which is not 0 where this rank wants to stop, and HOST_STOP, the sum of them after the step. Nothing is done for 1 shard,
 * but what `alone` says: then gradients must be whole, behind pass_accumulate. */
#define RANKS_STOP "ranks.stop"
#define HOST_STOP "ranks.host.stop"
enum status pass_data_parallel(struct program *p, const struct ranks_settings *s, struct error *err);

/* What of that, and of the optimizer, is other where ranks divide its state: shard_optimizer.c. A program that was divided so has
 * p->n_buckets > 0, and moments "adam.m.NAME" and "adam.v.NAME" that are slices. */
#define RANKS_BLOCKS "ranks.blocks"                     /* sums of squares of all blocks */
enum status shard_bucket(struct program *p, const value_id *parameters, int n, const struct ranks_settings *s, struct error *err);
int64_t shard_blocks(const struct program *p, value_id parameter);
void shard_wait(struct program *p, int bucket, const struct ranks_settings *s, value_id reduced, value_id total);
void shard_squares(struct program *p);
int shard_norm(struct program *p, value_id *parts);     /* one for every parameter; returns how many */
void shard_gather(struct program *p);

/* Appends the global gradient norm and the factor that limits it; the factor is NaN when loss or norm is not finite. */
enum status pass_clip(struct program *p, float max_norm, value_id *factor, struct error *err);

/* Appends step counter, scores of groups, the choice among them (select.c), behind pass_clip. */
#define K1_COUNTS "k1.n"            /* states (G), i32: updates of every group, and the step of its last one */
#define K1_LAST "k1.last"
#define SCORE_READ "host.score.%d"  /* what the host reads of every group */
#define SCORES_READ "host.scores"   /* of all in one, (G): pass fused-optimizer */
struct selected {
    value_id mask, n;               /* (G) */
    int k;
};
enum status pass_select(struct program *p, const struct selection *s, value_id factor, struct selected *out, struct error *err);

/* Appends step counter, where there is none yet, learning rate and one AdamW op per parameter; of those that were selected
 * (NULL: of all). */
enum status pass_adamw(struct program *p, const struct optimizer_settings *s, value_id factor, const struct selected *selected,
                       struct error *err);

/* Appends host reads of loss, gradient norm and learning rate in every step: host.loss, host.norm, host.lr. The pass
 * async-metrics puts a ring (METRICS_KEPT, METRICS) in their place; row s mod METRICS_KEPT is of step s. */
enum metric { METRIC_LOSS, METRIC_NORM, METRIC_LR, METRICS };
enum { METRICS_KEPT = 64 };
#define METRICS_RING "metrics"
/* Of a step that selects: scores and mask of every group, (METRICS_KEPT, 2 G). */
#define NODES_RING "k1.nodes"
enum status pass_read_metrics(struct program *p, struct error *err);

/* All of the above in order, then validation: a forward program becomes a training step. */
enum status pass_training_step(struct program *p, const struct optimizer_settings *s, struct error *err);

/* Where every value that does not persist lives in one workspace. */
struct memory_plan {
    size_t *offset;                 /* per value; SIZE_MAX for values that persist */
    size_t workspace_bytes;         /* planned */
    size_t naive_bytes;             /* if every value had memory of its own */
};

/* Plans by liveness: values whose lifetimes do not overlap share memory, and an op may write over an input that dies. */
void pass_memory_plan(const struct program *p, struct memory_plan *plan);
void memory_plan_release(struct memory_plan *plan);
double pass_planned_bytes(const struct program *p);     /* of values that persist and of the workspace */

/* Bytes alive while each op runs, by kind; `points` has one entry per op. Sums of gradients over micro-batches are gradients, not
 * state; constants count as activations, and tables, which no batch makes larger, as inputs. */
struct memory_point {
    double parameters, state, inputs, gradients, activations;
};
void pass_memory_timeline(const struct program *p, struct memory_point *points);

#endif
