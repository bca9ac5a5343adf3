/* What the passes that join projections share: the form that they look for, and joining. */
#ifndef HONE_PASSES_PROJECTIONS_H
#define HONE_PASSES_PROJECTIONS_H

#include "program/rewriter.h"

/* The op is x w^T, or with a bias, of parameters: it may stand wherever x is known. */
bool projection_is(const struct program *p, const struct op *op);

/* Two such products that may be one op: of one input and layer, both with a bias or none. */
bool projections_fit(const struct op *a, const struct op *b);

/* rewriter_insert in front of op `at`, named as its output with another last part: "blocks.0.attn.q" and "qkv" make
 * "blocks.0.attn.qkv". */
int projection_insert(struct rewriter *r, int at, enum op_kind kind, struct op_attrs attrs, const char *name, int n_in,
                      const value_id *in);

/* Puts one OP_PROJECT in the place of the first of these n products; its outputs, in the order of `at`, take the place of theirs.
 * Returns it, or NO_OP after a mistake. */
int projections_join(struct rewriter *r, const int *at, int n, const char *name);

#endif
