/* Moments of which every rank has a slice: rank 0 collects them for a checkpoint, which has them whole, and deals them out when it has read one.
 * Rank 0 alone has the run's folder, and a checkpoint has no trace of ranks: it is continued on any number of them, divided or not. */
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "train/train_int.h"

static const char letters[] = "mv";

/* ---- which they are: the same list on every rank ---- */

bool moments_are_divided(const struct model_run *r) { return r->train && exec_program(r->train)->n_buckets > 0; }

/* The bucket that a parameter travels in, and its number there. */
static const struct program_bucket *bucket_of(const struct program *p, value_id parameter, int *at)
{
    for (int b = 0; b < p->n_buckets; b++)
        for (*at = 0; *at < p->buckets[b].n; ++*at)
            if (p->buckets[b].parameter[*at] == parameter)
                return &p->buckets[b];
    return NULL;
}

/* What every rank has of it, in bytes. */
static void list_parts(const struct program *p, value_id parameter, struct dist_part *parts)
{
    int at = 0;
    const struct program_bucket *b = bucket_of(p, parameter, &at);
    for (int rank = 0; rank < p->ranks; rank++) {
        const struct slice s = slice_of_parameter(p, b, at, rank);
        parts[rank] = (struct dist_part){s.first * (int64_t)sizeof(float), s.n * (int64_t)sizeof(float)};
    }
}

const char *moment_name(char which, const char *parameter, char out[MOMENT_NAME])
{
    snprintf(out, MOMENT_NAME, "adam.%c.%s", which, parameter);
    return out;
}

/* This rank's slice of it; NO_VALUE: it has none. */
static value_id own_slice(const struct program *p, char which, value_id parameter)
{
    char name[MOMENT_NAME];
    return program_find(p, moment_name(which, p->values[parameter].name, name));
}

/* ---- for a checkpoint ---- */

void moments_release(struct whole_moments *m)
{
    for (int i = 0; i < m->n; i++) {
        free((char *)m->tensors[i].name);
        free(m->tensors[i].data);
    }
    free(m->tensors);
    *m = (struct whole_moments){0};
}

static enum status add_whole(struct whole_moments *m, const struct value *parameter, char which, struct error *err)
{
    char name[MOMENT_NAME];
    struct tensor *t = &m->tensors[m->n];
    *t = (struct tensor){.name = xneed(strdup(moment_name(which, parameter->name, name))), .type = TENSOR_F32, .rank = parameter->shape.rank};
    memcpy(t->dim, parameter->shape.dim, sizeof parameter->shape.dim);
    t->data = malloc(value_bytes(parameter));
    m->n++;
    return t->data ? OK : error_no_memory(err, "a copy of the moments for the checkpoint", value_bytes(parameter));
}

/* Rank 0 has room for all of them before any travels. */
static enum status make_room(struct whole_moments *m, const struct program *p, struct error *err)
{
    enum status st = OK;
    m->tensors = xcalloc(2 * (size_t)p->n_values, sizeof *m->tensors);
    for (int v = 0; v < p->n_values && st == OK; v++)
        for (int k = 0; k < 2 && st == OK && p->values[v].kind == VALUE_PARAMETER; k++)
            st = add_whole(m, &p->values[v], letters[k], err);
    return st;
}

static enum status collect(struct model_run *r, value_id parameter, char which, void *all, struct error *err)
{
    const struct program *p = exec_program(r->train);
    const value_id own = own_slice(p, which, parameter);
    struct dist_part *parts = xcalloc((size_t)p->ranks, sizeof *parts);
    void *mine = own == NO_VALUE ? NULL : malloc(value_bytes(&p->values[own]));
    enum status st = own != NO_VALUE && !mine ? error_no_memory(err, "a slice for the checkpoint", value_bytes(&p->values[own])) : OK;
    list_parts(p, parameter, parts);
    if (mine)
        exec_read(r->train, own, mine);
    if (st != OK)
        dist_give_up(ranks_of(&r->config), err);
    else
        st = dist_collect(ranks_of(&r->config), mine, all, parts, err);
    free(mine);
    free(parts);
    return st;
}

enum status moments_collect(struct model_run *r, struct error *err)
{
    const struct program *p = exec_program(r->train);
    struct dist *d = ranks_of(&r->config);
    const bool first = dist_rank(d) == 0;
    enum status st = dist_agree(d, first ? make_room(&r->moments, p, err) : OK, err);
    for (int v = 0, at = 0; v < p->n_values && st == OK; v++)
        for (int k = 0; k < 2 && st == OK && p->values[v].kind == VALUE_PARAMETER; k++, at++)
            st = collect(r, v, letters[k], first ? r->moments.tensors[at].data : NULL, err);
    if (st == OK)
        st = exec_status(r->train, err);
    if (st != OK)
        moments_release(&r->moments);
    return st;
}

/* ---- from a checkpoint ---- */

static enum status deal(struct model_run *r, value_id parameter, char which, struct error *err)
{
    const struct program *p = exec_program(r->train);
    const value_id own = own_slice(p, which, parameter);
    char name[MOMENT_NAME];
    const struct tensor *whole = r->dealt.n ? safetensors_find(&r->dealt, moment_name(which, p->values[parameter].name, name)) : NULL;
    struct dist_part *parts = xcalloc((size_t)p->ranks, sizeof *parts);
    void *mine = own == NO_VALUE ? NULL : xcalloc(1, value_bytes(&p->values[own]));
    list_parts(p, parameter, parts);
    const enum status st = dist_deal(ranks_of(&r->config), whole ? whole->data : NULL, mine, parts, err);
    if (st == OK && mine)
        exec_write(r->train, own, mine);
    free(mine);
    free(parts);
    return st;
}

enum status moments_deal(struct model_run *r, struct error *err)
{
    const struct program *p = exec_program(r->train);
    struct dist *d = ranks_of(&r->config);
    int32_t read = r->dealt.n > 0;                  /* a new run begins with zeros */
    enum status st = dist_broadcast(d, &read, sizeof read, err);
    for (int v = 0; v < p->n_values && st == OK && read; v++)
        for (int k = 0; k < 2 && st == OK && p->values[v].kind == VALUE_PARAMETER; k++)
            st = deal(r, v, letters[k], err);
    safetensors_release(&r->dealt);
    r->dealt = (struct safetensors){0};
    return st;
}
