/* Makes the runs of a sweep, one after the other; see sweep.h. */
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "runs/runs_int.h"
#include "runs/sweep.h"
#include "train/train.h"

struct making {
    const struct sweep_observer *o;
    int run;
};

static void on_step(void *context, int64_t step, int64_t steps)
{
    const struct making *m = context;
    if (m->o->on_step)
        m->o->on_step(m->o->context, m->run, step, steps);
}

static enum status make(struct sweep_run *r, struct making *m, bool *interrupted, struct error *err)
{
    struct train_result *result = xcalloc(1, sizeof *result);
    enum status st = sweep_look(r, err);         /* while others were made somebody may have come there */
    if (st == OK && !r->kept)
        st = train_quietly(r->config, r->config->train.seed, r->folder, m->o->stop, on_step, m, result, err);
    *interrupted = st == OK && result->interrupted;         /* zeros, where it is kept */
    free(result);
    return st;
}

static bool stopped(const struct sweep *s, const struct sweep_observer *o) { return s->interrupted || (o->stop && *o->stop); }

void runs_sweep_train(struct sweep *s, const struct sweep_observer *o)
{
    struct making m = {.o = o};
    for (m.run = 0; m.run < s->n && !stopped(s, o); m.run++) {
        struct sweep_run *r = &s->run[m.run];
        struct error err;
        const enum status st = make(r, &m, &s->interrupted, &err);
        s->failed += st != OK || r->nan;
        s->failed_here += st == CANNOT;
        if (o->on_end && !s->interrupted)
            o->on_end(o->context, m.run, st == OK ? NULL : &err);
    }
    s->interrupted |= m.run < s->n;
}

enum status runs_sweep_read(const struct sweep *s, struct runs *out, struct error *err)
{
    const char **folders = xcalloc((size_t)s->n, sizeof *folders);
    int n = 0;
    for (int i = 0; i < s->n; i++)
        if (run_is_folder(s->run[i].folder))
            folders[n++] = s->run[i].folder;
    const enum status st = runs_open(out, folders, n, err);
    free(folders);
    return st;
}
