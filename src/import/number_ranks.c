/* Ranks that traces do not say, from the names of their files together. A wrong number is worse than none: names count only where all ranks
 * of a job are there, each once. Numbers behind other words (trace_0, step_0) may count anything. */
#include <stdlib.h>

#include "import/import_int.h"

static const char *const words[] = {"worker", "gpu"};     /* "rank" alone is believed of a single file: metadata_rank */

/* More ranks take part than there are traces, so that numbers may be those of one machine only. */
static bool is_larger(const struct trace *t, int n)
{
    bool larger = t->origin.world_size > 0 && t->origin.world_size != n;
    for (int32_t i = 0; i < t->n_args; i++)
        larger |= t->args[i].group_size > n;
    return larger;
}

/* Fills ranks (n); false: they are not 0 to n - 1. */
static bool read_numbers(int *ranks, struct trace **traces, int n, const char *word)
{
    bool *taken = xcalloc((size_t)n, sizeof *taken), all = true;
    for (int i = 0; i < n && all; i++) {
        ranks[i] = metadata_number(traces[i]->origin.path, word);
        all = ranks[i] >= 0 && ranks[i] < n && !taken[ranks[i]];
        if (all)
            taken[ranks[i]] = true;
    }
    free(taken);
    return all;
}

void import_number_ranks(struct trace **traces, int n)
{
    bool may = n > 1;
    for (int i = 0; i < n && may; i++)
        may = traces[i]->origin.rank < 0 && !is_larger(traces[i], n);
    if (!may)
        return;
    int *ranks = xcalloc((size_t)n, sizeof *ranks);
    for (size_t w = 0; w < sizeof words / sizeof *words; w++)
        if (read_numbers(ranks, traces, n, words[w])) {
            for (int i = 0; i < n; i++) {
                traces[i]->origin.rank = ranks[i];
                traces[i]->origin.rank_by_names = true;
            }
            break;
        }
    free(ranks);
}
