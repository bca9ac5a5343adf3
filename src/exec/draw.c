/* Draws the first values of weights: some tens of nanoseconds each, which is seconds for a hundred million on one thread. Every number has
 * a place of its own in its stream, so the same ones come out of however many threads. */
#include <sched.h>

#include "core/rng.h"
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

struct team *exec_new_drawers(const struct program *p, const struct backend *b)
{
    const int cores = b->device ? system_cores(sched_getaffinity) : b->lanes;        /* a CPU has said how many threads it may have */
    struct team *t = NULL;
    struct error unsaid;            /* without a team it takes longer */
    if (cores > 1 && count_normal(p) >= WORTH_A_TEAM && team_new(&t, cores < DRAWERS_MOST ? cores : DRAWERS_MOST, &unsaid) != OK)
        t = NULL;
    return t;
}

void exec_draw_normal(struct team *t, float *out, const struct value *v, uint64_t seed)
{
    struct draw d = {out, shape_count(v->shape), v->init_std, seed, rng_stream_of(v->name), t ? team_size(t) : 1};
    if (t)
        team_run(t, draw_part, &d);
    else
        draw_part(&d, 0);
}
