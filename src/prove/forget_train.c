/* Makes the runs of a comparison that are not done yet. A run is done when its forgetting.json has every stage. One that was begun
 * has a checkpoint and goes on from it; one that was stopped before its first checkpoint begins anew. */
#include <math.h>

#include "prove/forget_int.h"

struct training {
    struct forget *f;
    const struct forget_options *o;
    struct forget_progress told;
    double total, before, weight;           /* steps, each weighed by the blocks of its model: of all, of runs that are over, of one step */
};

static void tell(struct training *t)
{
    t->told.part = t->total > 0 ? fmin((t->before + t->weight * (double)t->told.step) / t->total, 1) : 1;
    if (t->o->on_progress)
        t->o->on_progress(t->o->context, &t->told);
}

static void on_step(void *context, int64_t step, int64_t steps)
{
    struct training *t = context;
    t->told.step = step;
    t->told.steps = steps;
    tell(t);
}

static double work_of_step(const struct config *c) { return (double)c->model.layers + 1; }
static double steps_of(const struct config *c) { return (double)c->train.steps * config_stages(c); }

/* r->done: there is nothing to do. */
static enum status look(const struct config *c, struct forget_run *r, struct error *err)
{
    struct error ignored;
    bool begun;
    const enum status st = train_look(c, r->seed, r->folder, &begun, err);
    r->done = st == OK && begun && forget_read_losses(r, &ignored) == OK && r->done;
    return st;
}

static enum status make_run(struct training *t, const struct config *c, struct forget_run *r, struct error *err)
{
    forget_train_fn *train = t->o->train ? t->o->train : train_quietly;
    struct train_result result = {0};
    enum status st = train(c, r->seed, r->folder, t->o->stop, on_step, t, &result, err);
    t->f->interrupted = st == OK && result.interrupted;
    if (st != OK || result.interrupted)
        return st;
    st = forget_read_losses(r, err);
    if (st == OK && !r->done)
        st = error_set(err, CANNOT, "'%s' was trained to its end, and its forgetting.json has %d of %d stages", r->folder, r->n_stages,
                       r->n_domains);
    return st;
}

static bool stopped(const struct training *t) { return t->f->interrupted || (t->o->stop && *t->o->stop); }

static enum status one_run(struct training *t, const struct config *c, struct forget_run *r, struct error *err)
{
    t->told = (struct forget_progress){.name = c->name, .seed = r->seed, .run = t->told.run + 1, .runs = t->told.runs};
    t->weight = work_of_step(c);
    enum status st = look(c, r, err);
    if (st != OK || r->done)
        return st;
    tell(t);
    st = make_run(t, c, r, err);
    t->before += t->weight * steps_of(c);
    return st;
}

/* Looks at all folders before anything is trained: what is refused is refused at once. */
static enum status count_work(struct training *t, const struct config *configs, struct error *err)
{
    enum status st = OK;
    for (int i = 0; i < t->f->n_configs; i++)
        for (int s = 0; s < t->f->configs[i].n_runs && st == OK; s++) {
            struct forget_run *r = &t->f->configs[i].runs[s];
            st = look(&configs[i], r, err);
            t->told.runs++;
            if (!r->done)
                t->total += work_of_step(&configs[i]) * steps_of(&configs[i]);
        }
    return st;
}

enum status forget_train(struct forget *f, const struct config *configs, const struct forget_options *o, struct error *err)
{
    struct training t = {.f = f, .o = o};
    enum status st = count_work(&t, configs, err);
    for (int s = 0; s < (int)f->seeds; s++)
        for (int i = 0; i < f->n_configs && st == OK && !stopped(&t); i++)
            st = one_run(&t, &configs[i], &f->configs[i].runs[s], err);
    for (int i = 0; i < f->n_configs; i++)
        for (int s = 0; s < f->configs[i].n_runs; s++)
            f->interrupted |= st == OK && !f->configs[i].runs[s].done;
    return st;
}
