/* How fast ranks talk to each other: latency and bandwidth as `hone doctor` measured them between ranks, and the file that remembers
 * them for `hone simulate`. */
#ifndef HONE_CORE_LINKS_H
#define HONE_CORE_LINKS_H

#include <stdbool.h>

#include "core/error.h"

struct rank_link {
    double us;                          /* for a message of a few bytes, there */
    double gb_per_s;                    /* in each direction, with both at once; 0: no such link is known */
};

struct links {
    int ranks, machines;                /* that were there */
    struct rank_link within;            /* between two ranks of one machine, while all pairs talk */
    struct rank_link between;           /* of a machine to another one, all of its ranks together */
    char machine[160];                  /* fingerprint, as peaks have it */
};

/* What was measured last from this machine: of each kind of link the newest. False: nothing. */
bool links_recall(struct links *out, const char *machine);
/* A kind of link that was not measured this time keeps what is known of it. */
enum status links_remember(const struct links *l, struct error *err);

#endif
