/* One run among several: a config with a seed of its own, to the end, without a word. Runs that are there already are continued, so
 * that who makes many of them can be stopped. */
#include <stdlib.h>

#include "core/arena.h"
#include "train/train_int.h"

enum status train_look(const struct config *c, int64_t seed, const char *out, bool *begun, struct error *err)
{
    struct config *seeded = xcalloc(1, sizeof *seeded);
    *seeded = *c;
    seeded->train.seed = seed;
    enum status st = checkpoint_there(out, begun, err);
    if (st == OK)
        st = (*begun ? left_check_same : left_check)(out, seeded, err);
    free(seeded);
    return st;
}

struct quiet {
    void (*progress)(void *context, int64_t step, int64_t total);
    void *context;
    int64_t total;
};

static void on_start(void *context, const struct train_info *info) { ((struct quiet *)context)->total = info->total_steps; }

static void on_step(void *context, int64_t step, double loss)
{
    const struct quiet *q = context;
    (void)loss;
    if (q->progress)
        q->progress(q->context, step, q->total);
}

enum status train_quietly(const struct config *c, int64_t seed, const char *out, const volatile sig_atomic_t *stop,
                          void (*progress)(void *context, int64_t step, int64_t total), void *context,
                          struct train_result *result, struct error *err)
{
    struct config seeded = *c;
    struct quiet quiet = {progress, context, 0};
    const struct train_observer observer = {.context = &quiet, .on_start = on_start, .on_step = on_step};
    struct train_options options = {.out = out, .stop = stop};
    seeded.train.seed = seed;
    const enum status st = train_look(c, seed, out, &options.resume, err);
    options.anew = !options.resume;
    return st == OK ? train_run(&seeded, &options, &observer, result, err) : st;
}
