/* Which GPU each rank has, and who sums between them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "ops/cuda/cuda.h"
#include "train/ranks.h"

static bool same_machine(const struct dist *d, int a, int b) { return !strcmp(dist_host(d, a), dist_host(d, b)); }

/* Ranks on this one's machine, of those before `end`. */
static int ranks_here(const struct dist *d, int end)
{
    int n = 0;
    for (int r = 0; r < end; r++)
        n += same_machine(d, r, dist_rank(d));
    return n;
}

/* Ranks of one machine take its GPUs in turn. Who starts them may let each see its own alone. A GPU that cannot be had is told of by who
 * opens it. */
static struct rank_gpu take_gpu(const struct config *c, struct dist *d)
{
    struct rank_gpu s = {.seen = c->device == DEVICE_CUDA ? cuda_devices() : 0};
    struct cuda_device gpu;
    if (!s.seen)
        return s;
    const int place = ranks_here(d, dist_rank(d)) % s.seen;
    if (d)
        dist_comm(d)->gpu = place;
    s.used = cuda_device_read_at(&gpu, place, NULL) == OK;
    if (s.used)
        snprintf(s.address, sizeof s.address, "%s", gpu.address);
    return s;
}

/* The first rank whose GPU one before it has; 0: each has its own. */
static int shares_gpu(const struct dist *d, const struct rank_gpu *all, int *with)
{
    for (int r = 1; r < dist_size(d); r++)
        for (*with = 0; *with < r; ++*with)
            if (same_machine(d, r, *with) && all[r].used && all[*with].used && !strcmp(all[r].address, all[*with].address))
                return r;
    return 0;
}

static enum status refuse_sharing(const struct dist *d, const struct rank_gpu *all, int rank, int with, struct error *err)
{
    return error_set(err, CANNOT, "dist.transport is nccl, and %s has the GPU %s that %s has: NCCL wants one for each rank, and that machine "
                     "has %d; start fewer ranks there, or choose dist.transport: mpi, which lets ranks share one", dist_name(d, rank),
                     all[rank].address, dist_name(d, with), all[rank].seen);
}

enum status ranks_can_nccl(const struct dist *d, const struct rank_gpu *all, struct error *err)
{
    int with, shares;
    for (int r = 0; r < dist_size(d); r++) {
        if (!all[r].used || !all[r].nccl)
            return error_set(err, CANNOT, "dist.transport is nccl, and %s has no %s; choose dist.transport: mpi%s", dist_name(d, r),
                             all[r].used ? "NCCL" : "GPU", all[r].used ? "" : ", and device: cpu");
        if (all[r].nccl != all[0].nccl)
            return error_set(err, CANNOT, "dist.transport is nccl, and %s has version %d of it, where %s has %d; install one everywhere, or choose "
                             "dist.transport: mpi", dist_name(d, r), (int)all[r].nccl, dist_name(d, 0), (int)all[0].nccl);
    }
    shares = shares_gpu(d, all, &with);
    return shares ? refuse_sharing(d, all, shares, with, err) : OK;
}

/* This rank's NCCL. Without it, and asked for it, the words are those of who looked for it. */
static enum status find_nccl(const struct config *c, struct rank_gpu *s, struct error *err)
{
    const bool asked = c->dist.transport == TRANSPORT_NCCL;
    struct error why;
    int version = 0;
    if (!s->used || !(asked || c->dist.transport == TRANSPORT_AUTO))
        return OK;
    if (cuda_nccl_version(&version, &why) != OK)
        return asked ? error_set(err, why.status, "dist.transport is nccl, and %.700s; install NCCL 2, or choose dist.transport: mpi", why.text) : OK;
    s->nccl = version;
    return OK;
}

enum status ranks_place(const struct config *c, struct error *err)
{
    struct dist *d = ranks_of(c);
    struct error no;
    const bool asked = c->dist.transport == TRANSPORT_NCCL;
    if (dist_size(d) == 1 && !asked)
        return OK;
    struct rank_gpu mine = take_gpu(c, d);
    if (dist_size(d) == 1)
        return find_nccl(c, &mine, err);
    struct rank_gpu *all = xcalloc((size_t)dist_size(d), sizeof *all);
    enum status st = dist_agree(d, find_nccl(c, &mine, err), err);
    if (st == OK)
        st = dist_gather(d, &mine, all, sizeof mine, err);
    const enum status can = st == OK ? ranks_can_nccl(d, all, &no) : CANNOT;
    dist_comm(d)->nccl = can == OK;
    if (st == OK && asked && can != OK) {
        st = can;
        *err = no;
    }
    free(all);
    return dist_agree(d, st, err);
}
