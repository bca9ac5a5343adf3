/* What trials and measurements tell those who follow. */
#ifndef HONE_TRAIN_FOLLOW_INT_H
#define HONE_TRAIN_FOLLOW_INT_H

#include "train/follow.h"
#include "train/trial.h"

enum order_kind { ORDER_END, ORDER_OPEN, ORDER_FREE, ORDER_RESTART, ORDER_BACKWARD, ORDER_STEP, ORDER_REST, ORDER_VALIDATE, ORDER_MEASURE };

/* Is this the rank that leads others which follow? */
bool follow_leads(const struct config *c);
/* Tells them; `c` goes with it where it is given. Nothing where nobody follows. */
enum status follow_tell(struct dist *d, enum order_kind kind, int number, int steps, const struct config *c, struct error *err);

/* A trial as those who lead and follow open it. together: all ranks do, and where one fails, all do. */
enum status trial_open_here(struct trial **out, const struct config *c, bool together, trial_change_fn *change, void *context, struct error *err);

#endif
