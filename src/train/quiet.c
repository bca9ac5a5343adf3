/* One run among several: a config with a seed of its own, to the end, without a word. Runs that are there already are continued, so
 * that who makes many of them can be stopped. */
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/fs.h"
#include "train/train_int.h"

/* Keys, or beginnings of keys, that say how a run works and not what comes out of it. */
static const char *const FREE[] = {"device", "threads", "checkpoint.", "log.", "data.workers", "data.prefetch", "verify."};

static bool is_free(const struct config_difference *d)
{
    if (!strcmp(d->key, "model.vocab") && !strcmp(d->b, "0"))       /* the run has found it in the data */
        return true;
    for (size_t i = 0; i < sizeof FREE / sizeof *FREE; i++)
        if (!strncmp(d->key, FREE[i], strlen(FREE[i])))
            return true;
    return false;
}

static enum status check_same(const char *out, const struct config *c, struct error *err)
{
    char path[CONFIG_PATH_MAX + 32];
    struct config *was = xcalloc(1, sizeof *was);
    struct config_difference d;
    snprintf(path, sizeof path, "%s/config.yaml", out);
    enum status st = config_load(was, path, NULL, 0, err);
    for (int at = 0; st == OK && config_differ(&d, was, c, &at);)
        if (!is_free(&d))
            st = error_set(err, BAD_INPUT, "'%s' holds a run with %s %.150s, and it is %.150s now; give another --out", out, d.key, d.a,
                           d.b);
    free(was);
    return st;
}

/* A run that has saved nothing yet has left what it began with: its config, as it prints it. Nothing else there is a run's. */
static enum status check_left(const char *out, const struct config *c, struct error *err)
{
    char path[CONFIG_PATH_MAX + 32], *is = NULL, *should = NULL;
    struct config *was = xcalloc(1, sizeof *was);
    struct error ignored;
    bool any = false, there = false;
    size_t size = 0;
    enum status st = OK;
    for (const char *const *name = train_files; *name && st == OK; name++) {
        snprintf(path, sizeof path, "%s/%s", out, *name);
        st = fs_there(path, &there, err);
        any |= there;
    }
    snprintf(path, sizeof path, "%s/config.yaml", out);
    if (st == OK && any && config_load(was, path, NULL, 0, &ignored) == OK && fs_read(path, &is, &size, 1 << 20, &ignored) == OK)
        should = config_text(was);
    if (st == OK && any && (!should || strcmp(is, should) != 0))
        st = error_set(err, BAD_INPUT, "'%s' holds files that are not of a run; give another --out", out);
    else if (st == OK && any)
        st = check_same(out, c, err);
    free(is);
    free(should);
    free(was);
    return st;
}

enum status train_look(const struct config *c, int64_t seed, const char *out, bool *begun, struct error *err)
{
    struct config *seeded = xcalloc(1, sizeof *seeded);
    char path[CONFIG_PATH_MAX + 32];
    *seeded = *c;
    seeded->train.seed = seed;
    snprintf(path, sizeof path, "%s/checkpoints", out);
    enum status st = fs_there(path, begun, err);
    if (st == OK && *begun)
        st = check_same(out, seeded, err);
    else if (st == OK)
        st = check_left(out, seeded, err);
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
    return st == OK ? train_run(&seeded, &options, &observer, result, err) : st;
}
