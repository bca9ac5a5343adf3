/* Within the pass mixed-precision. */
#ifndef HONE_PASSES_LOSS_SCALE_H
#define HONE_PASSES_LOSS_SCALE_H

#include "program/program.h"

/* Multiplies all gradients of a step by a scale that follows what f16 can hold, and takes it off again where they are clipped. */
void add_loss_scale(struct program *p);

#endif
