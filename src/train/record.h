/* Recording steps: turns what the executor measured into events of a trace. Every function does nothing for a NULL
 * recorder, so the code that runs steps calls them always. */
#ifndef HONE_TRAIN_RECORD_H
#define HONE_TRAIN_RECORD_H

#include "data/data.h"
#include "exec/exec.h"
#include "trace/trace.h"

struct recorder;

/* Adds to `trace`, which must live longer; the first step has this number. While it records, the executor must be measured (exec_measure). */
struct recorder *recorder_new(struct exec *e, struct trace *trace, int32_t first_step);
void recorder_free(struct recorder *r);

void recorder_begin_step(struct recorder *r);
void recorder_loaded(struct recorder *r, const struct batch *b);    /* since the last call the host waited for this batch */
void recorder_runs(struct recorder *r, struct exec *e);            /* what is run next is of this executor */
void recorder_uploaded(struct recorder *r);                         /* ... copied it to the device */
void recorder_ran(struct recorder *r, enum phase first, enum phase last);   /* ... ran these phases */
void recorder_end_step(struct recorder *r);

#endif
