/* What ranks are called. One is told by its number; where that is not known, or is another's too, by its file. */
#include <string.h>

#include "analyze/traced/job.h"

static const char *path_of(const struct diagnosis *d)
{
    const char *path = d->trace->origin.path;
    return path ? path : "the trace";
}

static const char *file_of(const struct diagnosis *d)
{
    const char *path = path_of(d), *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static bool has_own_number(const struct rank_comm *comm, int n, int rank)
{
    for (int r = 0; r < n; r++)
        if (r != rank && comm[r].rank == comm[rank].rank)
            return false;
    return comm[rank].rank >= 0;
}

/* Without its folder, unless files of several folders have that name. */
static const char *file_name(struct diagnosis **ranks, int n, int rank)
{
    for (int r = 0; r < n; r++)
        if (r != rank && !strcmp(file_of(ranks[r]), file_of(ranks[rank])))
            return path_of(ranks[rank]);
    return file_of(ranks[rank]);
}

void job_names(struct diagnosis **ranks, struct rank_comm *comm, int n)
{
    struct arena *a = &ranks[0]->arena;
    for (int r = 0; r < n; r++) {
        if (has_own_number(comm, n, r))
            comm[r].name = arena_printf(a, "rank %d", comm[r].rank);
        else if (comm[r].rank >= 0)
            comm[r].name = arena_printf(a, "rank %d (%s)", comm[r].rank, file_name(ranks, n, r));
        else
            comm[r].name = arena_printf(a, "%s", file_name(ranks, n, r));
        ranks[r]->ranks[0].name = comm[r].name;
    }
}
