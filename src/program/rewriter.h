/* Rewriting a program in many places: a pass that looks up who writes and who reads a value, puts ops in and takes ops out, all
 * without a sweep over the list. It is opened over a program, which must not be changed in other ways while it is open, and
 * closed; both are one sweep. (rewrite.h has the same for a change in one place.)
 *
 * While it is open an op is named by a number that stays, p->ops[number], and new ones get the next; the order of the list is what
 * rewriter_next says. */
#ifndef HONE_PROGRAM_REWRITER_H
#define HONE_PROGRAM_REWRITER_H

#include "program/program.h"

enum { NO_OP = -1, NO_USE = -1 };

struct op_place {
    int next, prev;
    uint64_t order;                 /* grows along the list */
    int first_use;                  /* its input k is use first_use + k */
};

struct value_use {
    int op, input;
    int next, prev;                 /* among the uses of the same value */
};

struct value_uses { int writer, readers, first; };

struct rewriter {
    struct program *p;
    struct op_place *ops;
    struct value_use *uses;
    struct value_uses *values;
    int n_ops, cap_ops, n_uses, cap_uses, n_values, cap_values;
    int first, last;                /* of the list */
};

void rewriter_open(struct rewriter *r, struct program *p);
void rewriter_close(struct rewriter *r);                        /* the program's list is as it should be again */

/* The neighbours in the list, from rewriter->first or ->last on; NO_OP behind the end. Of an op that was removed they are those it
 * had. */
static inline int rewriter_next(const struct rewriter *r, int op) { return r->ops[op].next; }
static inline int rewriter_prev(const struct rewriter *r, int op) { return r->ops[op].prev; }
static inline bool rewriter_is_before(const struct rewriter *r, int a, int b) { return r->ops[a].order < r->ops[b].order; }

/* The first op that writes a value, NO_OP where none does; and how many inputs read it, but for roots. */
static inline int rewriter_writer(const struct rewriter *r, value_id v) { return r->values[v].writer; }
static inline int rewriter_readers(const struct rewriter *r, value_id v) { return r->values[v].readers; }
/* Those inputs one by one, in any order: for (int u = rewriter_first_use(r, v); u != NO_USE; u = r->uses[u].next). */
static inline int rewriter_first_use(const struct rewriter *r, value_id v) { return r->values[v].first; }

/* Adds an op in front of `before` (NO_OP: at the end) with the phase and layer of that op. Returns its number, or NO_OP after a
 * mistake, which is in p->error. */
int rewriter_insert(struct rewriter *r, int before, enum op_kind kind, struct op_attrs attrs, const char *name, int n_in,
                    const value_id *in);
void rewriter_move(struct rewriter *r, int op, int before);
void rewriter_remove(struct rewriter *r, int op);               /* its outputs must have no readers left */
void rewriter_set_inputs(struct rewriter *r, int op, int n_in, const value_id *in);
/* Whoever read `from` reads `to` from now on; roots too. */
void rewriter_replace(struct rewriter *r, value_id from, value_id to);

#endif
