/* What a sum over ranks takes; see simulate.h. */
#include <math.h>

#include "prove/simulate.h"

enum { SHORT_BYTES = 4096 * 4 };            /* src/dist/sums.c does not cut up less */

static double message_us(const struct rank_link *l, double bytes) { return l->us + (bytes > 0 ? bytes / l->gb_per_s / 1e3 : 0); }

static double ring_us(const struct rank_link *l, int n, double bytes) { return 2.0 * (n - 1) * message_us(l, bytes / n); }

/* In machines every rank ends with a part of the machine's sum, and those of equal parts go round between machines, all at once through
 * the machine's link. */
static double rings_us(const struct sim_net *net, int ranks, double bytes)
{
    const int here = ranks < net->per_machine ? ranks : net->per_machine, machines = (ranks + here - 1) / here;
    return (here > 1 ? ring_us(&net->within, here, bytes) : 0) + (machines > 1 ? ring_us(&net->between, machines, bytes) : 0);
}

/* A level of the tree, one way: pairs at a distance send so much. Of those that reach beyond a machine its link carries `through` at once. */
static double level_us(const struct sim_net *net, int distance, double bytes, int through)
{
    return distance < net->per_machine ? message_us(&net->within, bytes) : message_us(&net->between, bytes * through);
}

/* A power of two: every rank has a pair at every level. Otherwise sums go to the first rank and back, and beyond machines one of each has them. */
static double tree_us(const struct sim_net *net, int ranks, double bytes)
{
    const bool all = !(ranks & (ranks - 1)), cut = all && bytes >= SHORT_BYTES;
    double us = 0, part = bytes;
    for (int distance = 1; distance < ranks; distance *= 2) {
        part = cut ? part / 2 : part;
        us += (all && !cut ? 1 : 2) * level_us(net, distance, part, all ? net->per_machine : 1);
    }
    return us;
}

double sim_sum_us(const struct sim_net *net, int ranks, double bytes)
{
    return ranks < 2 ? 0 : net->ring ? rings_us(net, ranks, bytes) : tree_us(net, ranks, bytes);
}
