/* What carries bytes from rank to rank. One thread opens it and makes all calls; the ranks of a group may come from MPI, or, in tests,
 * be threads of one process. */
#ifndef HONE_DIST_TRANSPORT_H
#define HONE_DIST_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

enum { ANY_RANK = -1 };
enum channel { CHANNEL_DATA, CHANNEL_NOTES };       /* messages of one channel between two ranks keep their order */
enum carried_state { CARRY_PENDING, CARRY_DONE, CARRY_FAILED };

enum { MESSAGE_MOST = 2 << 20 };                    /* bytes: what is longer goes as several messages. MPI counts them in an int */

struct transport {
    int rank, size;
    /* Both begin only; the memory is the transport's until `look` has said that it is done. NULL: it failed. */
    void *(*send)(struct transport *t, int to, enum channel c, const void *data, size_t bytes);
    void *(*receive)(struct transport *t, int from, enum channel c, void *data, size_t bytes);
    /* After anything but CARRY_PENDING the request is gone. */
    enum carried_state (*look)(struct transport *t, void *request);
    void (*drop)(struct transport *t, void *request);           /* gives up on it; NULL is fine */
    /* whole: all ranks close, and what was sent arrives. Else some rank is gone, and nobody is waited for. */
    void (*close)(struct transport *t, bool whole);
};

typedef enum status transport_open_fn(struct transport **out, void *context, struct error *err);

#endif
