/* Latency and bandwidth between ranks; see dist_measure_links. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "dist/dist_int.h"

enum { FEW = 16, MANY = 1 << 20 };          /* floats: a message that is all latency, and one that is all bandwidth */
enum { ROUNDS_FEW = 101, ROUNDS_MANY = 11, BLOCKS = 8 };

/* The slowest pair counts: a sum is done when all have it. */
static enum status slowest(struct dist *d, int bit, float *x, int n, int rounds, double *seconds, struct error *err)
{
    struct probe p = {.bit = bit, .rounds = rounds};
    double *all = xcalloc((size_t)d->comm.size, sizeof *all);
    enum status st = group_ask(d, (struct job){.kind = JOB_PROBE, .data = x, .n = n, .probe = &p}, err);
    if (st == OK)
        st = dist_gather(d, &p.seconds, all, sizeof p.seconds, err);
    *seconds = 0;
    for (int r = 0; st == OK && r < d->comm.size; r++)
        *seconds = fmax(*seconds, all[r]);
    free(all);
    return st;
}

/* The best of several blocks: other work makes a link slower for as long as it lasts, and faster never. */
static enum status least_of_blocks(struct dist *d, int bit, float *x, double *few, double *many, struct error *err)
{
    enum status st = OK;
    *few = *many = INFINITY;
    for (int i = 0; i < BLOCKS && st == OK; i++) {
        double a = 0, b = 0;
        st = slowest(d, bit, x, FEW, ROUNDS_FEW, &a, err);
        if (st == OK)
            st = slowest(d, bit, x, MANY, ROUNDS_MANY, &b, err);
        *few = fmin(*few, a);
        *many = fmin(*many, b);
    }
    return st;
}

static bool same_machine(const struct dist *d, int a, int b) { return !strcmp(d->peers[a].host, d->peers[b].host); }

/* The most ranks of one machine that talk to another one at this level; 0: all pairs are within machines. */
static int crossing(const struct dist *d, int bit)
{
    int most = 0;
    for (int a = 0; a < d->comm.size; a++) {
        int n = 0;
        for (int b = 0; b < d->comm.size; b++)
            n += same_machine(d, a, b) && (b ^ bit) < d->comm.size && !same_machine(d, b, b ^ bit);
        most = n > most ? n : most;
    }
    return most;
}

static int count_machines(const struct dist *d)
{
    int n = 0;
    for (int r = 0; r < d->comm.size; r++) {
        int first = 0;
        while (!same_machine(d, first, r))
            first++;
        n += first == r;
    }
    return n;
}

static void keep_slower(struct rank_link *l, double us, double gb_per_s)
{
    l->us = fmax(l->us, us);
    l->gb_per_s = l->gb_per_s > 0 ? fmin(l->gb_per_s, gb_per_s) : gb_per_s;
}

static enum status measure_level(struct dist *d, int bit, float *x, struct links *out, struct error *err)
{
    double few, many;
    const enum status st = least_of_blocks(d, bit, x, &few, &many, err);
    if (st != OK)
        return st;
    const int across = crossing(d, bit);
    const double gb_per_s = (double)MANY * sizeof *x / fmax(many - few, 1e-9) * 1e-9;
    keep_slower(across ? &out->between : &out->within, few * 1e6, across ? across * gb_per_s : gb_per_s);
    return OK;
}

enum status dist_measure_links(struct dist *d, struct links *out, struct error *err)
{
    *out = (struct links){.ranks = dist_size(d), .machines = d ? count_machines(d) : 1};
    float *x = xcalloc(2 * (size_t)MANY, sizeof *x);
    enum status st = OK;
    for (int bit = 1; d && bit < dist_size(d) && st == OK; bit *= 2)
        st = measure_level(d, bit, x, out, err);
    free(x);
    return st;
}
