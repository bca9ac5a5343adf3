/* How a run is divided over ranks, and what its ranks do together. With one rank, alone, nothing of it does anything. */
#ifndef HONE_TRAIN_RANKS_H
#define HONE_TRAIN_RANKS_H

#include "config/config.h"
#include "core/gpu.h"
#include "data/data.h"
#include "dist/dist.h"

struct model_run;

/* A step is accumulate batches; each is cut into shards, and every rank has as many of these. */
struct division {
    int rank, ranks;
    int64_t shards, first, here;    /* of this rank: the first, and how many */
    int64_t batch;                  /* samples of a shard of a batch: what one forward and backward works on */
    int64_t micro_batches;          /* that this rank runs per step */
    bool by_sample;                 /* dropout counts samples of whole batches, as if nothing was divided; else shards */
};
struct division division_of(const struct config *c);
/* Refuses sizes that cannot be divided so, with those that can. */
enum status division_check(const struct config *c, struct error *err);
struct batch_division division_batches(const struct config *c);
int division_threads(const struct config *c);           /* of a CPU, for this rank */

/* The group of a run; NULL: one rank, alone. */
static inline struct dist *ranks_of(const struct config *c) { return dist_of(c->dist.comm); }

/* Every rank has its GPU, and all sum alike: by NCCL where each GPU is one rank's alone, else through MPI. The group's comm
 * says so then; all ranks call it, whatever device they have. */
struct rank_gpu {
    int32_t used;                   /* the device is a GPU, and it is there */
    int32_t seen;                   /* GPUs of this rank's machine, as it sees them */
    int32_t nccl;                   /* its version; 0: none */
    char address[32];               /* on the PCI bus */
};
enum status ranks_can_nccl(const struct dist *d, const struct rank_gpu *all, struct error *err);      /* all (ranks): CANNOT, and why */
enum status ranks_place(const struct config *c, struct error *err);

/* Refuse ranks with another config, or another program or data, than rank 0 has: the first that differs is named. */
enum status ranks_compare_configs(const struct config *c, struct error *err);
enum status ranks_compare(const struct config *c, const struct dataset *d, struct error *err);
enum status ranks_agree(struct dist *d, enum status st, struct error *err);      /* where one rank has failed, all have */
/* Opens the run: rank 0 first, as where kernels are chosen by timing the others find its choices. The dataset is the run's in any case. */
enum status ranks_open_run(struct model_run *r, const struct config *c, struct dataset *d, struct error *err);
/* Everybody has the weights and states that rank 0 has. */
enum status ranks_share_state(struct model_run *r, struct error *err);

/* What a rank did since the last log, and what they all did. */
struct ranks_own {
    double seconds, wait_s, steps;              /* wait_s: for other ranks */
    bool asks;                                  /* for a comparison of weights */
    struct gpu_state gpu;                       /* of this rank; unknown where it has none */
};
struct ranks_times {
    double compute_least_s, compute_most_s;     /* per step, without waiting for other ranks */
    int slowest;
    bool compare;                               /* rank 0 asks for a comparison of weights: one clock decides */
};
/* gpus (size): of every rank. */
enum status ranks_gather_times(struct dist *d, const struct ranks_own *mine, struct ranks_times *out, struct gpu_state *gpus, struct error *err);
/* All ranks have the same weights between two steps; else *apart, and the one that differs is named, on every rank in the same words. */
enum status ranks_compare_weights(struct model_run *r, int64_t step, bool *apart, struct error *err);

#endif
