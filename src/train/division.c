/* How a step's batches are divided over shards and ranks. */
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "core/system.h"
#include "train/ranks.h"

static int64_t shards_of(const struct config *c, int ranks) { return c->dist.shards ? c->dist.shards : ranks; }

struct division division_of(const struct config *c)
{
    const int rank = c->dist.comm ? c->dist.comm->rank : 0, ranks = c->dist.comm ? c->dist.comm->size : 1;
    const int64_t shards = shards_of(c, ranks), here = shards / ranks, batch = c->train.batch_size / shards;
    return (struct division){.rank = rank, .ranks = ranks, .shards = shards, .first = rank * here, .here = here,
                             .batch = batch > 0 ? batch : 1, .micro_batches = here * c->train.accumulate,
                             .by_sample = ranks > 1 && !c->dist.shards};
}

struct batch_division division_batches(const struct config *c)
{
    const struct division v = division_of(c);
    return (struct batch_division){v.shards, v.first, v.here, c->train.accumulate, c->data.group,
                                   c->data.pack == PACK_ON};
}

enum status division_check(const struct config *c, struct error *err)
{
    const long long ranks = c->dist.comm ? c->dist.comm->size : 1, shards = shards_of(c, (int)ranks), batch = c->train.batch_size;
    const long long below = batch / ranks * ranks;
    if (ranks > batch)
        return error_set(err, BAD_INPUT, "train.batch_size is %lld, and there are %lld ranks, which get a sample each at least; make it %lld, or "
                         "start %lld ranks", batch, ranks, ranks, batch);
    if (c->dist.shards && shards % ranks)
        return error_set(err, BAD_INPUT, "dist.shards is %lld, and %lld ranks cannot have equal parts of that; start 1, 2, 4... up to %lld ranks, "
                         "or leave dist.shards out", shards, ranks, shards);
    if (batch % ranks)
        return error_set(err, BAD_INPUT, "train.batch_size is %lld, and %lld ranks cannot have equal parts of that; make it %lld or %lld", batch,
                         ranks, below, below + ranks);
    return OK;
}

/* Ranks of one machine share its cores, whatever they are bound to. */
int division_threads(const struct config *c)
{
    struct dist *d = ranks_of(c);
    int here = 0;                   /* ranks on this machine */
    if (c->threads || dist_size(d) == 1)
        return c->threads ? (int)c->threads : c->settled_threads;
    for (int r = 0; r < dist_size(d); r++)
        here += !strcmp(dist_host(d, r), dist_host(d, dist_rank(d)));
    const int usable = system_cores(sched_getaffinity), all = (int)sysconf(_SC_NPROCESSORS_ONLN), mine = here && all > here ? all / here : 1;
    return mine < usable ? mine : usable;
}
