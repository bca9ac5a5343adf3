/* Changing a program that is there, in one place: every function is a sweep over the list. Passes that change every layer use
 * rewriter.h. */
#ifndef HONE_PROGRAM_REWRITE_H
#define HONE_PROGRAM_REWRITE_H

#include "program/program.h"

/* The op that writes a value, or -1. */
int program_writer(const struct program *p, value_id v);
/* The same of all values at once, in one sweep: (n_values), for free(). */
int *program_writers(const struct program *p);
/* How many inputs read it; *op (may be NULL) gets the only op that does, or the last. Roots of the program (loss, logits, ...)
 * are not counted. */
int program_readers(const struct program *p, value_id v, int *op);
bool program_is_root(const struct program *p, value_id v);

/* Adds an op as program_add_op does and moves it to position `at`, with the phase and layer of the op that stood there. Ops
 * from there on move up by one. Returns `at`, or -1 after a mistake. */
int program_insert_op(struct program *p, int at, enum op_kind kind, struct op_attrs attrs, const char *name, int n_in,
                      const value_id *in);
/* Adds a copy of `op`, which reads `in` instead, at position `at` as above: attributes and choices are the same, and its outputs
 * are new values of the kinds of the old ones, named PREFIX.NAME. */
int program_insert_copy(struct program *p, int at, const struct op *op, const char *prefix, const value_id *in);
void program_remove_op(struct program *p, int at);      /* its outputs must have no readers left; they stay as dead values */

/* Whoever read `from` reads `to` from now on; roots too. Values of one shape. */
void program_replace_value(struct program *p, value_id from, value_id to);
void program_replace_root(struct program *p, value_id from, value_id to);      /* among the roots alone */

#endif
