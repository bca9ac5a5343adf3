/* Orders from the rank that leads to those that follow; see follow.h. */
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "train/follow_int.h"
#include "train/train_int.h"

enum { TRIALS = 16 };                       /* open at the same time */

struct order { int32_t kind, number, steps, bytes; };       /* bytes: of a config's text that comes behind it */

/* ---- leading ---- */

void follow_lead(struct dist *d)
{
    if (dist_size(d) > 1)
        dist_set_leading(d, true);
}

bool follow_leads(const struct config *c) { return dist_is_leading(ranks_of(c)); }

/* Limits of proofs are the leader's affair, and may be what no config can say. */
static char *text_of(const struct config *c)
{
    struct config *told = xcalloc(1, sizeof *told);
    *told = *c;
    told->verify.memory = told->verify.memory < 1e6 ? told->verify.memory : 1;
    char *text = xneed(config_text(told));
    free(told);
    return text;
}

enum status follow_tell(struct dist *d, enum order_kind kind, int number, int steps, const struct config *c, struct error *err)
{
    if (!dist_is_leading(d))
        return OK;
    char *text = c ? text_of(c) : NULL;
    struct order o = {(int32_t)kind, number, steps, text ? (int32_t)strlen(text) + 1 : 0};
    enum status st = dist_broadcast(d, &o, sizeof o, err);
    if (st == OK && text)
        st = dist_broadcast(d, text, (size_t)o.bytes, err);
    free(text);
    return st;
}

void follow_end(struct dist *d)
{
    struct error none;
    follow_tell(d, ORDER_END, 0, 0, NULL, &none);
    if (d)
        dist_set_leading(d, false);
}

/* ---- following ---- */

struct follower {
    struct dist *d;
    struct trial *trials[TRIALS];
    const volatile sig_atomic_t *stop;
};

static enum status read_config(struct follower *f, struct config *c, const struct order *o, struct error *err)
{
    char *text = xcalloc((size_t)o->bytes + 1, 1);
    enum status st = dist_broadcast(f->d, text, (size_t)o->bytes, err);
    if (st == OK)
        st = config_parse(c, "the config of rank 0", text, strlen(text), NULL, 0, err);
    c->dist.comm = dist_comm(f->d);
    free(text);
    return st;
}

/* One that cannot be opened, here or elsewhere, is not there, and that is for the leader to judge. */
static enum status open_trial(struct follower *f, const struct order *o, struct error *err)
{
    struct config *c = xcalloc(1, sizeof *c);
    struct error why;
    const enum status st = read_config(f, c, o, err);
    if (st == OK && trial_open_here(&f->trials[o->number], c, true, NULL, NULL, &why) != OK)
        f->trials[o->number] = NULL;
    free(c);
    return st == OK ? dist_status(f->d, err) : st;
}

static enum status measure_along(struct follower *f, const struct order *o, struct error *err)
{
    struct config *c = xcalloc(1, sizeof *c);
    struct measured m;
    struct error why;
    enum status st = read_config(f, c, o, err);
    if (st == OK && measure_steps(&m, c, o->steps, f->stop, NULL, NULL, &why) == OK)
        measured_release(&m);
    free(c);
    return st == OK ? dist_status(f->d, err) : st;
}

static enum status obey(struct follower *f, const struct order *o, struct error *err)
{
    struct trial *t = f->trials[o->number];
    struct trial_step step;
    bool has_data;
    double loss;
    switch ((enum order_kind)o->kind) {
    case ORDER_OPEN: return open_trial(f, o, err);
    case ORDER_MEASURE: return measure_along(f, o, err);
    case ORDER_FREE:
        trial_free(t);
        f->trials[o->number] = NULL;
        return OK;
    case ORDER_RESTART: return trial_restart(t, err);
    case ORDER_BACKWARD: return trial_backward(t, err);
    case ORDER_STEP: return trial_step(t, &step, err);
    case ORDER_REST: return trial_rest(t, err);
    case ORDER_VALIDATE: return trial_validate(t, NULL, &has_data, &loss, err);
    case ORDER_END: break;
    }
    return OK;
}

enum status follow(struct dist *d, const volatile sig_atomic_t *stop, struct error *err)
{
    struct follower f = {.d = d, .stop = stop};
    struct order o = {.kind = ORDER_STEP};
    enum status st = OK;
    while (st == OK && o.kind != ORDER_END) {
        st = dist_broadcast(d, &o, sizeof o, err);
        if (st == OK && (o.number < 0 || o.number >= TRIALS || o.bytes < 0))
            st = error_set(err, CANNOT, "rank 0 says what this build does not understand");
        if (st == OK)
            st = obey(&f, &o, err);
        if (st != OK && dist_status(d, NULL) == OK)
            dist_give_up(d, err);
    }
    for (int i = 0; i < TRIALS; i++)
        trial_free(f.trials[i]);
    return st;
}
