/* Do all ranks have the same weights? They begin with those of rank 0 and make the same updates of the same sums, so they do; but memory and devices fail, and a
 * rank that has other weights spoils the gradients of all, without a word. */
#include <stdlib.h>
#include <xxhash.h>

#include "core/arena.h"
#include "train/train_int.h"

/* Ranks that divide the optimizer have different programs; what parameters there are, and their order, is the same in all. */
static int list_parameters(const struct program *p, value_id *out)
{
    int n = 0;
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER)
            out[n++] = i;
    return n;
}

static enum status hash_parameters(struct exec *e, const value_id *list, int n, uint64_t *out, struct error *err)
{
    const struct program *p = exec_program(e);
    size_t most = 1;
    for (int i = 0; i < n; i++)
        most = value_bytes(&p->values[list[i]]) > most ? value_bytes(&p->values[list[i]]) : most;
    void *host = malloc(most);
    if (!host)
        return error_no_memory(err, "a copy of a weight, to compare it with that of other ranks", most);
    for (int i = 0; i < n; i++) {
        exec_read(e, list[i], host);
        out[i] = XXH3_64bits(host, value_bytes(&p->values[list[i]]));
    }
    free(host);
    return exec_status(e, err);
}

static int count_like(const uint64_t *all, int ranks, int r)
{
    int n = 0;
    for (int k = 0; k < ranks; k++)
        n += all[k] == all[r];
    return n;
}

/* The first rank that is not as most are, and one that is; false: all are alike. */
static bool find_odd(const uint64_t *all, int ranks, int *odd, int *most)
{
    *most = *odd = 0;
    for (int r = 1; r < ranks; r++)
        *most = count_like(all, ranks, r) > count_like(all, ranks, *most) ? r : *most;
    while (*odd < ranks && all[*odd] == all[*most])
        ++*odd;
    return *odd < ranks;
}

/* The first parameter that differs. a, b (n): of the odd one, and of one as most are. */
static const char *find_parameter(const struct program *p, const value_id *list, int n, const uint64_t *a, const uint64_t *b)
{
    int i = 0;
    while (i + 1 < n && a[i] == b[i])
        i++;
    return p->values[list[i]].name;
}

static enum status name_odd(const struct dist *d, int odd, int most, bool tie, const char *parameter, int64_t step, struct error *err)
{
    return error_set(err, CANNOT, "%s has another '%s' than %s after step %lld, though all make the same updates: %s has failed; nothing is saved of it: go on from "
                     "the newest checkpoint, elsewhere", dist_name(d, odd), parameter, dist_name(d, most), (long long)step,
                     tie ? "memory or a device of one of them" : "its memory or its device");
}

enum status ranks_compare_weights(struct model_run *r, int64_t step, bool *apart, struct error *err)
{
    struct dist *d = ranks_of(&r->config);
    const struct program *p = exec_program(r->train);
    const int ranks = dist_size(d);
    int odd, most;
    if (ranks == 1)
        return OK;
    value_id *list = xcalloc((size_t)p->n_values, sizeof *list);
    const int n = list_parameters(p, list);
    uint64_t *mine = xcalloc((size_t)n, sizeof *mine), *all = xcalloc((size_t)(ranks * n), sizeof *all);
    enum status st = hash_parameters(r->train, list, n, mine, err);
    const uint64_t whole = XXH3_64bits(mine, (size_t)n * sizeof *mine);
    if (st == OK)
        st = dist_gather(d, &whole, all, sizeof whole, err);
    if (st == OK && find_odd(all, ranks, &odd, &most)) {
        const bool tie = 2 * count_like(all, ranks, most) <= ranks;
        st = dist_gather(d, mine, all, (size_t)n * sizeof *mine, err);
        *apart = st == OK;
        if (*apart)
            st = name_odd(d, odd, most, tie, find_parameter(p, list, n, all + odd * n, all + most * n), step, err);
    }
    free(list);
    free(mine);
    free(all);
    return st;
}
