/* The step on many ranks, before there are any: from the measured step of one rank, and from latency and bandwidth of the links. Every rank
 * works on as many samples as the one that was measured, so the batch of all grows with them. Nothing here prints. */
#ifndef HONE_PROVE_SIMULATE_H
#define HONE_PROVE_SIMULATE_H

#include <jansson.h>

#include "analyze/analyze.h"
#include "config/config.h"
#include "core/links.h"

/* ---- simulate_net.c: what a sum over ranks takes ---- */

struct sim_net {
    bool ring;                              /* NCCL's ring; else the tree of src/dist */
    int per_machine;                        /* ranks of a machine */
    struct rank_link within, between;       /* as in struct links */
    bool within_measured, between_measured; /* by hone doctor; else as given */
};
/* Ring: 2 (W - 1) (a + n / (W b)), in machines first and then between them. Tree: 2 a log2 W + 2 n (W - 1) / (W b), level by level with the
 * link that the level takes; sums of few numbers are not cut up, and other numbers of ranks than powers of two go through rank 0. */
double sim_sum_us(const struct sim_net *net, int ranks, double bytes);

/* ---- simulate_from.c: what was measured ---- */

struct sim_op { const char *name, *kind; double us; };      /* per step */

struct sim_source {
    struct config config;                   /* of the one rank, with its vocabulary */
    struct sim_op *ops;                     /* (n_ops) */
    int n_ops;
    double *steps_us;                       /* (n_steps), at least one */
    int n_steps;
    int threads, cores;                     /* cores 0: not known */
    bool gpu;
    double gb_per_s;                        /* of memory: what packs and unpacks buckets goes at that */
    int64_t samples, tokens;                /* per step */
    char machine[160], device[96];
    const char *warning;                    /* of the measurement: what was wrong with the machine; NULL: nothing */
    struct arena arena;                     /* owns names and lists */
};
enum status sim_source_measured(struct sim_source *out, const struct profile *p, const struct config *c, struct error *err);
/* A report.json of hone profile. `sets` change keys of dist, and no others. */
enum status sim_source_read(struct sim_source *out, const char *path, const char *const *sets, int n_sets, struct error *err);
void sim_source_release(struct sim_source *s);

/* ---- simulate_step.c: one step ---- */

struct sim_step {
    double step_us;                         /* of a rank of usual speed: compute + packing + exposed */
    double packing_us;                      /* buckets filled and emptied, and what else ranks add to the program */
    double sums_us, exposed_us;             /* sums between ranks; what is not hidden of them */
    double bytes;                           /* of gradients that travel */
    int buckets;                            /* the counts' own among them */
    double memory_bytes;                    /* planned */
};
/* Has who communicates a core beside those of the ranks of its machine, or is it the GPU's own? */
bool sim_has_core(const struct sim_source *s, const struct sim_net *net, int ranks);
/* The program of a rank is walked through: sums go one after the other on a queue beside it. */
enum status sim_one_step(struct sim_step *out, const struct sim_source *s, const struct sim_net *net, int ranks, int64_t bucket_mb,
                         struct error *err);
/* Refuses a source whose ops are not those of its config: nearly all are in the program of one rank, and nearly all of that were measured. */
enum status sim_check_ops(const struct sim_source *s, const char *path, struct error *err);

/* ---- simulate.c ---- */

enum { SIM_POINTS = 64, SIM_BUCKETS = 12 };

struct sim_point {
    int ranks, machines;
    struct sim_step at;                     /* with the config's bucket size */
    double slowest_us;                      /* what the slowest rank takes longer than a usual one */
    double step_us;                         /* all */
    double efficiency;                      /* of W times one rank */
    struct { int64_t mb; double step_us; } buckets[SIM_BUCKETS];
    int n_buckets;
    int64_t best_mb;                        /* whose step is shortest; the config's own where none is shorter by a thousandth */
    double best_step_us;
};

struct simulation {
    const struct sim_source *source;
    struct sim_net net;
    double alone_us;                        /* the median of the measured steps, which is the step of a profile's page */
    double p10_us, p90_us;                  /* of them */
    bool shares_cores;                      /* there is no core for who communicates, however many of the ranks asked for there are: sums take time from the step */
    struct sim_point points[SIM_POINTS];    /* one rank first */
    int n;
};

/* The largest of `ranks` steps drawn from those measured: what it is in half of all draws, as a step of a profile is what half of its steps are. One
 * step that something from outside held up is not in it before there are so many ranks that most steps have one like it. */
double sim_slowest_us(const double *steps_us, int n, int ranks);
/* What a part of the measured steps is below. */
double sim_step_us(const double *steps_us, int n, double part);
enum status simulate(struct simulation *out, const struct sim_source *s, const struct sim_net *net, const int *ranks, int n, struct error *err);
json_t *simulation_json(const struct simulation *s);        /* the caller's; NULL: no memory */

#endif
