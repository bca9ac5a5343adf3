/* Detection: profile + program + settings of the run -> ranked findings and the answers in words. */
#ifndef HONE_ANALYZE_DETECT_H
#define HONE_ANALYZE_DETECT_H

#include <stdint.h>
#include <stdio.h>

#include "analyze/analyze.h"

/* A pass that is off and would change the program: what it answers, and what it is predicted to win. */
struct remedy {
    const char *pass, *rule;                /* its name, and the rule whose finding it fixes */
    const char *what, *change;              /* one line for people; "--set optimize.fuse-loss=on" */
    int places;
    double speedup, speedup_high;           /* predicted, and with the new ops at their roofline */
    double saved_bytes;                     /* of planned memory */
    const bool *ops;                        /* (ops of the program): those that go, or do something else */
};

/* What a rule needs besides the profile and the program. A 0 means unknown and keeps the rules that need it silent;
 * only clip has a meaning at 0. */
struct run_facts {
    double eval_us_per_step;                /* evaluation time amortised over the steps of the run */
    double eval_scale;                      /* tokens of its rows in the run over those that were measured; 0: as many */
    int64_t eval_batches, eval_every_steps;
    int64_t run_steps;                      /* of the whole run; 0: not known */
    int64_t stage_steps;                    /* of a stage, at whose end it is evaluated; 0: there is one */
    bool by_epochs;                         /* they follow from how many samples a step has */
    double data_wait_us;                    /* per step; 0: the profile's gap for the loader is taken */
    int workers;                            /* of the loader */
    double clip;                            /* 0: no clipping */
    bool left_out;                          /* loss or gradients were not finite in the end, and updates were left out */
    int threads, usable_cores;
    double available_bytes;                 /* memory this process may use */
    int64_t batch;
    bool replayed;                          /* on a GPU: the step is a graph, which one call of the host starts */
    double padding, padding_least;          /* shares of tokens that are of no sample: as it is, and with bucket and group */
    double padding_packed;                  /* the same where samples share rows */
    double padding_rows;                    /* and with rows of model.seq tokens, one for each sample: as it is measured, unless samples share rows */
    bool packs;                             /* they do */
    int64_t bucket, group;
    const struct remedy *remedies;          /* every one with places becomes a finding, if it wins anything or its rule sees the fault */
    int n_remedies;
};

/* The whole run, of steps and evaluation per step as it has them. */
double run_seconds(int64_t steps, double step_us, double evaluation_us);

/* Fills p->findings, ranked by expected gain, and the words, all in p->arena. The profile's numbers must be there, with
 * one profile_op per op of the program. A finding never claims more time than what it names takes. */
enum status detect(struct profile *p, const struct program *program, const struct run_facts *facts, struct error *err);

/* Writes docs/rules.md from rule_texts. */
void rule_texts_print(FILE *to);

#endif
