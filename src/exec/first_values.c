/* The first values of weights and states. A draw takes some tens of nanoseconds, which is seconds for a hundred million on one thread;
 * every number has a place of its own in its stream, so the same ones come out of however many threads. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bf16.h"
#include "core/rng.h"
#include "core/setup.h"
#include "core/system.h"
#include "core/team.h"
#include "exec/exec_int.h"

enum { DRAWERS_MOST = 16, WORTH_A_TEAM = 1 << 20 };     /* threads; numbers of all weights */

struct draw {
    float *out;
    int64_t n;
    float std;
    uint64_t seed, stream;
    int members;
};

static void draw_part(void *argument, int member)
{
    const struct draw *d = argument;
    const struct span part = team_span(d->n, 2, member, d->members);
    rng_fill_normal_part(d->out, part.lo, part.hi, d->std, d->seed, d->stream);
}

static int64_t count_normal(const struct program *p)
{
    int64_t n = 0;
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER && p->values[i].init == INIT_NORMAL)
            n += shape_count(p->values[i].shape);
    return n;
}

/* Threads to draw with; NULL: one is enough, or there are no more. */
static struct team *new_drawers(const struct program *p, const struct backend *b)
{
    const int cores = b->device ? system_cores(sched_getaffinity) : b->lanes;        /* a CPU has said how many threads it may have */
    struct team *t = NULL;
    struct error unsaid;            /* without a team it takes longer */
    if (cores > 1 && count_normal(p) >= WORTH_A_TEAM && team_new(&t, cores < DRAWERS_MOST ? cores : DRAWERS_MOST, &unsaid) != OK)
        t = NULL;
    return t;
}

static void draw_normal(struct team *t, float *out, const struct value *v, uint64_t seed)
{
    struct draw d = {out, shape_count(v->shape), v->init_std, seed, rng_stream_of(v->name), t ? team_size(t) : 1};
    if (t)
        team_run(t, draw_part, &d);
    else
        draw_part(&d, 0);
}

/* The first values of a parameter, in f32. */
static void draw_initial(const struct value *v, float *host, struct team *t, uint64_t seed)
{
    if (v->init == INIT_NORMAL)
        draw_normal(t, host, v, seed);
    else
        for (int64_t i = 0; i < shape_count(v->shape); i++)
            host[i] = v->init == INIT_VALUE ? v->init_std : 1;
}

static bool begins_with_zeros(const struct value *v) { return v->init == INIT_ZEROS || v->dtype == I32; }

/* `host` has room for the value in f32; a smaller type is made of that in place, from the front. Zero has the same bits in all. */
static void fill_initial(const struct value *v, void *host, struct team *t, uint64_t seed)
{
    memset(host, 0, value_bytes(v));
    if (begins_with_zeros(v))
        return;
    draw_initial(v, host, t, seed);
    for (int64_t i = 0; v->dtype == BF16 && i < shape_count(v->shape); i++) {
        const uint16_t bits = bf16_bits(((const float *)host)[i]);
        memcpy((char *)host + i * (int64_t)sizeof bits, &bits, sizeof bits);
    }
}

static enum status no_memory_for(const struct value *v, struct error *err)
{
    char what[160];
    snprintf(what, sizeof what, "the first values of %s", v->name);
    return error_no_memory(err, what, (unsigned long long)shape_count(v->shape) * sizeof(float));
}

static enum status init_value(struct exec *e, value_id id, struct team *t, uint64_t seed, struct error *err)
{
    const struct value *v = &exec_program(e)->values[id];
    if (setup_check("weights", err) != OK)
        return err->status;
    void *host = malloc((size_t)shape_count(v->shape) * sizeof(float));
    if (!host)
        return no_memory_for(v, err);
    fill_initial(v, host, t, seed);
    exec_write(e, id, host);
    free(host);
    return OK;
}

/* Memory is zeros when a backend gives it: what begins so has not to be written for the first time. */
enum status exec_init_parameters(struct exec *e, uint64_t seed, struct error *err)
{
    const bool zeros = !exec_is_touched(e);
    const struct program *p = exec_program(e);
    struct team *t = new_drawers(p, exec_backend(e));
    enum status st = OK;
    for (int i = 0; i < p->n_values && st == OK; i++) {
        const struct value *v = &p->values[i];
        if ((v->kind == VALUE_PARAMETER || v->kind == VALUE_STATE) && !(zeros && begins_with_zeros(v)))
            st = init_value(e, i, t, seed, err);
    }
    team_free(t);
    return st == OK ? exec_status(e, err) : st;
}
