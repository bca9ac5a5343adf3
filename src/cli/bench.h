/* What the files of `hone bench` share. */
#ifndef HONE_CLI_BENCH_H
#define HONE_CLI_BENCH_H

#include "cli/cli.h"
#include "train/batch_sweep.h"

/* --batches */
struct batch_list {
    int64_t sizes[BATCH_POINTS];            /* (n) ascending; n 0: auto */
    int n;
    bool none_fits;                         /* of a case that was measured */
};
enum status batch_list_parse(struct batch_list *out, const char *text, struct error *err);

/* On stderr: that a run has another vocabulary, and with it other work. */
void bench_say_vocab(int64_t vocab);

/* Speed and memory of a config at several batch sizes: as a table, or added to a list. */
enum status bench_batches(const struct config *c, struct batch_list *list, double seconds, const struct peaks *peaks, json_t *sweeps,
                          struct error *err);

#endif
