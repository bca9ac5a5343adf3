/* From a program and the trace of its steps to numbers. */
#ifndef HONE_ANALYZE_PROFILE_H
#define HONE_ANALYZE_PROFILE_H

#include "analyze/analyze.h"
#include "core/gpu.h"

/* What the trace does not say. Times without events are of whole steps, in order. */
struct profile_input {
    const struct program *program;
    const struct trace *trace;              /* stays with the caller and must outlive the profile */
    struct peaks peaks;
    int threads, usable_cores;
    const double *step_us;                  /* (n_steps), measured without events */
    const struct profile_rank *ranks;       /* (n_ranks): of several; hosts stay with the caller until the profile is built */
    int n_ranks;
    const double *wait_us;                  /* (n_steps): what each waited for its batch; NULL: as the recorded ones did */
    const double *upload_us;                /* (n_steps): what each took to upload it; NULL: as the recorded ones did */
    const struct pace *pace;                /* (n_steps): what the cores had behind each; NULL or 0: not known */
    int n_steps;
    int64_t batch, seq, accumulate, layers;
    double model_flops;                     /* of one step by the usual count; MFU divides this */
    double evaluation_us;                   /* per training step, amortised */
    double delayed_share, preemptions_per_s;        /* as in struct profile */
    const char *const *kernels;             /* per op: the kernel that ran */
    bool gpu;                               /* it ran on one, and the following is of it */
    const char *device_name, *timed_by;     /* "NVIDIA H200"; how ops were timed */
    bool times_kernels;                     /* times of ops are those of kernels: recording makes longer only what is between them */
    double kernels_per_step;                /* below 1: not known */
    const double *occupancy;                /* per op; 0: not known. NULL: of none */
    struct gpu_watch watch;
    const char *name, *arch, *device, *isa, *blas, *config_yaml, *version;
    double tokens_per_step;                 /* 0: batch x seq x accumulate */
    double padding_share;                   /* of the tokens */
    double loss, rss_peak_bytes, available_bytes, planned_bytes, scratch_bytes, naive_bytes;
    bool has_counters;                      /* of the CPU, per step */
    double instructions, cycles, cache_misses;
};

/* Fills everything but findings and words (detect.h does those). Needs at least one recorded step. Means are taken over the
 * middle half of the recorded steps by time, so that one slow step does not spoil them, and scaled to the median of the steps without
 * events, so that the parts add up to it exactly. No op and no step is above its roofline: the peaks are raised to what was reached. */
enum status profile_build(struct profile *out, const struct profile_input *in, struct error *err);

/* ---- waits.c ---- */

/* Says behind which ops threads wait the longest. */
void profile_fill_waits(struct profile *p);

/* ---- roofline.c ---- */

/* Raises the peaks to what ops of the profile, and the step as a whole, reached where that is more; true: something rose. */
bool profile_raise_peaks(const struct profile *p, const struct program *program, struct peaks *peaks);
/* Fills floors and levels of the ops from the peaks that the profile has. */
void profile_fill_floors(struct profile *p, const struct program *program);

/* Raises the profile's own peaks so, and fills floors and MFU. */
void profile_hold_against_peaks(struct profile *p, const struct program *program);

#endif
