/* A team of threads that lives as long as a run: every member executes the same function, meets the others at barriers,
 * and waits between runs. Waiting spins briefly, in a run for up to 0.1 s while there are cores for all that want one, then sleeps, so that a step costs no wake-up and an idle team no CPU; who
 * waits for a member on its own core does not spin, as that one could not run. With one member everything runs on the caller and barriers are
 * free.
 *
 * Inside a run numbers too small for their full precision count as zero, on every member: they are rare where a model learns, and
 * many where it diverges, and arithmetic on them is slower by an order of magnitude. */
#ifndef HONE_CORE_TEAM_H
#define HONE_CORE_TEAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

struct team;

typedef void team_fn(void *argument, int member);

enum status team_new(struct team **out, int members, struct error *err);
void team_free(struct team *t);
/* From now on, or no longer: teams that this thread makes, of as many members as the first one that is still there, are that one, until the last of them is freed. So programs that
 * run in turns have the same threads, on the same cores. */
void team_share(bool on);
int team_size(const struct team *t);
int team_nodes(const struct team *t);           /* NUMA nodes that its members are bound to; 1: to none */
void team_root(const char *folder);             /* of teams that come: what stands before /proc and /sys; tests have theirs. NULL: nothing */
uint64_t team_spins(const struct team *t);      /* how often members have looked while they waited, so far */

/* Runs fn(argument, 0 .. members-1) and returns when all have finished. The caller is member 0. */
void team_run(struct team *t, team_fn *fn, void *argument);

/* As team_run; members help each other. */
typedef void help_fn(void *argument, int owner, int helper, int64_t start_ns, int64_t end_ns);
struct team_habits {
    help_fn *watch;             /* called by who has helped, with times on the clock of clock_ns(); NULL: nobody wants to know */
    team_fn *idle;              /* called again and again by who waits for others at a barrier of the run; it must be short; NULL: nothing is to be done */
};
void team_run_helping(struct team *t, team_fn *fn, void *argument, const struct team_habits *habits);

/* Called by every member inside team_run: returns when all have arrived. */
void team_barrier(struct team *t);

/* Work in pieces: runs fn(argument, 0 .. n-1, helper), each piece once, and returns when all are done. The caller does them, and, in a run in which members help each
 * other, those that wait for others at a meeting: `helper` is then who does the piece, else -1. So a member that is slow, because somebody else has a share of its core,
 * keeps the others waiting for less. What is computed must not hang on who does it. A piece meets nobody, and shares nothing out itself. */
typedef void piece_fn(void *argument, int piece, int helper);
void team_pieces(piece_fn *fn, void *argument, int n);
uint64_t team_helped(const struct team *t);     /* pieces that were done for others, so far */

/* The part [lo, hi) of n items that belongs to a member, in units of `unit` items: the same for every run. */
struct span { int64_t lo, hi; };
struct span team_span(int64_t n, int64_t unit, int member, int members);

#endif
