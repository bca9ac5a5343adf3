/* One rank leads and the others follow: for work that decides by what it measures, as tune does, where ranks that decide each by itself would
 * part. Rank 0 runs it; whenever it opens a trial, makes a step and so on, the others are told to do the same. */
#ifndef HONE_TRAIN_FOLLOW_H
#define HONE_TRAIN_FOLLOW_H

#include <signal.h>

#include "config/config.h"
#include "dist/dist.h"

/* Rank 0: from now on trials and measurements of configs of this group are made by all ranks; until follow_end. */
void follow_lead(struct dist *d);
void follow_end(struct dist *d);
/* The others: does what it is told until the end. An error: the group has failed, or this rank cannot go on and has told the others. */
enum status follow(struct dist *d, const volatile sig_atomic_t *stop, struct error *err);

#endif
