/* A group of ranks: processes that train one model together. Every function but dist_open takes NULL for a group: one rank, which has
 * nobody to talk to.
 *
 * What all ranks call, they call in the same order. One thread makes all calls of the transport; it also hears that the other ranks are
 * alive. When one is lost or gives up, the group has failed: whatever waits returns, and dist_status says which rank it was, where it
 * runs, and what it did last. A group that has failed stays so. */
#ifndef HONE_DIST_DIST_H
#define HONE_DIST_DIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/comm.h"
#include "core/error.h"
#include "core/links.h"
#include "dist/transport.h"

struct dist;

/* How many ranks were started together, as the environment tells, which of them this is, and by what; one, 0, and NULL: nothing says so. */
struct dist_start { int ranks, rank; const char *by; };
struct dist_start dist_start_read(void);

/* The group that this process was started in by mpirun or srun; NULL where it was started alone, unless MPI is asked for. CANNOT: there
 * is no MPI in this build, or it sees other ranks than were started. */
enum status dist_open(struct dist **out, bool asked, struct error *err);
/* The same over any transport. A rank that is silent for so many seconds is lost. */
enum status dist_open_over(struct dist **out, transport_open_fn *open, void *context, double patience_s, struct error *err);
void dist_close(struct dist *d);                    /* waits for the other ranks, unless the group has failed */

int dist_rank(const struct dist *d);
int dist_size(const struct dist *d);
const char *dist_name(const struct dist *d, int rank);          /* "rank 2 (HOST, process 1234)" */
const char *dist_host(const struct dist *d, int rank);
struct comm *dist_comm(struct dist *d);                         /* for a backend; NULL: no group */
struct dist *dist_of(struct comm *c);                           /* whose it is */

/* all (size, bytes) gets what every rank has. */
enum status dist_gather(struct dist *d, const void *mine, void *all, size_t bytes, struct error *err);
enum status dist_broadcast(struct dist *d, void *data, size_t bytes, struct error *err);     /* what rank 0 has */
/* Bytes of something that rank 0 has whole, and every rank a part of. */
struct dist_part { int64_t from, bytes; };
/* Rank 0 gets all parts (of every rank, `parts` has size entries) into `all`; and the way back. `all` is NULL on other ranks. */
enum status dist_collect(struct dist *d, const void *mine, void *all, const struct dist_part *parts, struct error *err);
enum status dist_deal(struct dist *d, const void *all, void *mine, const struct dist_part *parts, struct error *err);
/* OK where all ranks come with that; else all get the error of the first that does not, which is named unless it is rank 0. */
enum status dist_agree(struct dist *d, enum status st, struct error *err);

/* Latency and bandwidth between ranks, as sums have them: pairs swap numbers all at once, level by level of the tree. Of several levels
 * the slowest counts. `machine` is not filled. All ranks call it and get the same. */
enum status dist_measure_links(struct dist *d, struct links *out, struct error *err);

void dist_at_step(struct dist *d, int64_t step);    /* for those who hear of it later */
void dist_forget_op(struct dist *d);                /* what the comm's `at` points to is going */
enum status dist_status(struct dist *d, struct error *err);
void dist_give_up(struct dist *d, const struct error *why);     /* tells the others; nothing is waited for afterwards */
/* Is it this rank that tells people what went wrong? Rank 0 does, unless it is the one that was lost; and who failed by itself. */
bool dist_tells(struct dist *d);
bool dist_gave_up(struct dist *d);                  /* this rank has: what went wrong is its own */
/* For who divides work so that one rank decides (train/follow.h). */
void dist_set_leading(struct dist *d, bool leads);
bool dist_is_leading(const struct dist *d);
int64_t dist_wait_ns(const struct dist *d);         /* that the caller has waited for sums so far */
int64_t dist_sum_ns(struct dist *d);                /* that sums, and slices of weights, have taken so far, hidden or not */
/* Bytes that sums had so far, and what of them travelled before the caller asked for the first sum that it had started since it last asked: behind what it computed. */
struct dist_bytes { double all, hidden; };
struct dist_bytes dist_sum_bytes(const struct dist *d);

#endif
