/* From a program and the trace of its steps to numbers. */
#ifndef HONE_ANALYZE_PROFILE_H
#define HONE_ANALYZE_PROFILE_H

#include "analyze/analyze.h"

/* What the trace does not say. Times without events are of whole steps, in order. */
struct profile_input {
    const struct program *program;
    const struct trace *trace;              /* stays with the caller and must outlive the profile */
    struct peaks peaks;
    int threads;
    const double *step_us;                  /* (n_steps), measured without events */
    int n_steps;
    int64_t batch, seq, accumulate, layers;
    double model_flops;                     /* of one step by the usual count; MFU divides this */
    double evaluation_us;                   /* per training step, amortised */
    const char *const *kernels;             /* per op: the kernel that ran */
    const char *name, *arch, *device, *isa, *blas, *config_yaml, *version;
    double loss, rss_peak_bytes, available_bytes, planned_bytes, naive_bytes;
    bool has_counters;                      /* of the CPU, per step */
    double instructions, cycles, cache_misses;
};

/* Fills everything but findings and words (detect.h does those). Needs at least one recorded step. Means are taken over the
 * middle half of the recorded steps by time, so parts add up to the step exactly and one slow step does not spoil them. */
enum status profile_build(struct profile *out, const struct profile_input *in, struct error *err);

#endif
