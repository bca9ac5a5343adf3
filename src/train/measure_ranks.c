/* What the ranks of a measurement took. A sum over ranks is there when the last rank has come, so in a step all wait until then: who waits
 * least was last. What even that one waited is communication that nothing hides; what others waited beyond it, they waited for ranks. In the same
 * way bytes are hidden that travelled before the last rank's backward had ended: that rank has hidden the most. */
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/process.h"
#include "core/stats.h"
#include "train/train_int.h"

struct told { double sums_us, memory_bytes, delayed_share; };       /* of a rank, as a whole */

/* Which steps count: those between the quartiles by the mean over ranks, so that one slow step does not spoil the numbers, and the same
 * steps on every rank. steps (ranks, n). */
static void choose_steps(const double *steps, int ranks, int n, bool *used)
{
    double *mean = xcalloc((size_t)n, sizeof *mean), *sorted = xcalloc((size_t)n, sizeof *sorted);
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < n; i++)
            mean[i] += steps[r * n + i] / ranks;
    memcpy(sorted, mean, (size_t)n * sizeof *sorted);
    stats_sort(sorted, n);
    const double low = stats_percentile(sorted, n, 0.25), high = stats_percentile(sorted, n, 0.75);
    for (int i = 0; i < n; i++)
        used[i] = n < 4 || (mean[i] >= low && mean[i] <= high);
    free(mean);
    free(sorted);
}

/* All (ranks, n). */
struct gathered { double *step_us, *comm_us, *loader_us, *hidden; };

static double least_of(const double *x, int ranks, int n, int step)
{
    double least = x[step];
    for (int r = 1; r < ranks; r++)
        least = x[r * n + step] < least ? x[r * n + step] : least;
    return least;
}

static double most_of(const double *x, int ranks, int n, int step)
{
    double most = x[step];
    for (int r = 1; r < ranks; r++)
        most = x[r * n + step] > most ? x[r * n + step] : most;
    return most;
}

static void add_up(struct measured_rank *out, const struct gathered *g, int ranks, int n, const bool *used)
{
    double count = 0;
    for (int i = 0; i < n; i++)
        count += used[i];
    for (int i = 0; i < n; i++) {
        const double exposed = used[i] ? least_of(g->comm_us, ranks, n, i) : 0, hidden = used[i] ? most_of(g->hidden, ranks, n, i) : 0;
        for (int r = 0; r < ranks && used[i]; r++) {
            const int at = r * n + i;
            out[r].step_us += g->step_us[at] / count;
            out[r].loader_us += g->loader_us[at] / count;
            out[r].exposed_us += exposed / count;
            out[r].hidden_share += hidden / count;
            out[r].wait_us += (g->comm_us[at] - exposed) / count;
            out[r].compute_us += (g->step_us[at] - g->loader_us[at] - g->comm_us[at]) / count;
        }
    }
}

static enum status gather(struct dist *d, const double *mine, double **all, int n, struct error *err)
{
    *all = xcalloc((size_t)(dist_size(d) * n), sizeof **all);
    return dist_gather(d, mine, *all, (size_t)n * sizeof *mine, err);
}

static enum status gather_told(struct dist *d, struct measured *m, double sums_us, struct error *err)
{
    const struct told mine = {sums_us, process_peak_bytes(), m->delayed_share};
    struct told *all = xcalloc((size_t)m->n_ranks, sizeof *all);
    const enum status st = dist_gather(d, &mine, all, sizeof mine, err);
    for (int r = 0; r < m->n_ranks && st == OK; r++) {
        struct measured_rank *to = &m->ranks[r];
        to->sums_us = all[r].sums_us;
        to->memory_bytes = all[r].memory_bytes;
        to->delayed_share = all[r].delayed_share;
        snprintf(to->host, sizeof to->host, "%s", dist_host(d, r));
    }
    free(all);
    return st;
}

enum status measure_ranks(struct measured *m, double sums_us, struct error *err)
{
    struct dist *d = ranks_of(&m->run->config);
    struct gathered g = {0};
    if (dist_size(d) == 1)
        return OK;
    m->n_ranks = dist_size(d);
    m->ranks = xcalloc((size_t)m->n_ranks, sizeof *m->ranks);
    bool *used = xcalloc((size_t)m->n, sizeof *used);
    enum status st = gather(d, m->step_us, &g.step_us, m->n, err);
    if (st == OK)
        st = gather(d, m->comm_us, &g.comm_us, m->n, err);
    if (st == OK)
        st = gather(d, m->wait_us, &g.loader_us, m->n, err);
    if (st == OK)
        st = gather(d, m->hidden, &g.hidden, m->n, err);
    if (st == OK) {
        choose_steps(g.step_us, m->n_ranks, m->n, used);
        add_up(m->ranks, &g, m->n_ranks, m->n, used);
        st = gather_told(d, m, sums_us, err);
    }
    free(used);
    free(g.step_us);
    free(g.comm_us);
    free(g.loader_us);
    free(g.hidden);
    return st;
}
