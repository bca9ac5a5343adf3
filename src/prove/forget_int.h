/* What the files of hone forget share. */
#ifndef HONE_PROVE_FORGET_INT_H
#define HONE_PROVE_FORGET_INT_H

#include <math.h>

#include "prove/forget.h"
#include "train/train.h"

static inline json_t *forget_number(double x) { return isfinite(x) ? json_real(x) : json_null(); }
static inline json_t *forget_text(const char *text) { return json_text(text); }

/* ---- forget_nodes.c ---- */
json_t *forget_nodes_json(const struct forget_config *c);      /* null: nothing is known of its nodes */

#endif
