/* What the passes that join projections share: the form that they look for, and joining. */
#ifndef HONE_PASSES_PROJECTIONS_H
#define HONE_PASSES_PROJECTIONS_H

#include "program/program.h"

/* The op is x w^T, or with a bias, of parameters: it may stand wherever x is known. */
bool projection_is(const struct program *p, const struct op *op);

/* Two such products that may be one op: of one input and layer, both with a bias or none. */
bool projections_fit(const struct op *a, const struct op *b);

/* program_insert_op in front of the op at `at`, named as its output with another last part: "blocks.0.attn.q" and "qkv" make
 * "blocks.0.attn.qkv". */
int projection_insert(struct program *p, int at, enum op_kind kind, struct op_attrs attrs, const char *name, int n_in,
                  const value_id *in);

/* Puts one OP_PROJECT in the place of the first of the n products with these indices; its outputs, in the order of `at`, take
 * the place of theirs. Returns its index, or -1 after a mistake. */
int projections_join(struct program *p, const int *at, int n, const char *name);

#endif
