/* A config, measured: its steps, the profile of them, and the findings and words that follow. */
#ifndef HONE_PROVE_SITUATION_H
#define HONE_PROVE_SITUATION_H

#include "analyze/analyze.h"
#include "train/batch_sweep.h"
#include "train/train.h"

struct situation {
    struct measured m;
    struct profile p;                       /* with findings and words */
    struct peaks peaks;                     /* the best that is known of the machine now: as given, measured again, or proved by a step */
    const struct batch_sweep *sweep;        /* batch sizes that were measured before; NULL: none. Of who measured them */
};

struct situation_options {
    bool last;                      /* nothing is measured after it in this process: see measure_steps_traced */
    int steps;                              /* of each kind: with and without events */
    const struct peaks *peaks;
    bool peaks_are_new;                     /* they were measured just before: once more behind the steps */
    void (*measure_peaks)(void *context, struct peaks *best);     /* measures again and raises *best; called when a step beats them,
                                                                     after the steps; may be NULL */
    void *peaks_context;
    bool ask_passes;                        /* findings for every pass that is off and would win something */
    const volatile sig_atomic_t *stop;      /* as in measure_steps, like the next two; may be NULL */
    void (*progress)(void *context, int done, int total);
    void *context;
    /* of the machine, for rules and reports; what is not given is not known */
    const char *device, *isa, *blas;
    int usable_cores;
    double available_bytes;                 /* of memory, before the run takes its own */
};

enum status situation_measure(struct situation *out, const struct config *c, const struct situation_options *options,
                              struct error *err);
/* Findings and words, from the profile as it is; situation_measure does. */
enum status situation_judge(struct situation *s, const struct situation_options *options, struct error *err);
void situation_release(struct situation *s);
/* The finding of a rule; NULL: it found nothing. */
const struct finding *situation_finding(const struct situation *s, const char *rule);

#endif
