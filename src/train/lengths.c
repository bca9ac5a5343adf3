/* Programs of one run for batches of different lengths: a program has one shape, so there is one for each length that the data's batches
 * may have. The longest is made first and has the memory; parameters, states and what the host reads are the same in all, by name, and
 * the others work in its workspace and scratch. */
#include <stdlib.h>

#include "core/arena.h"
#include "train/train_int.h"

/* Those that are shorter than model.seq. */
static enum status add_length(struct lengths *l, int64_t seq, const struct lengths_maker *make, struct exec *longest, struct error *err)
{
    struct config c = *make->config;
    struct program *p;
    c.model.length = seq;
    enum status st = make->program(&p, &c, make->context, err);
    if (st != OK)
        return st;
    l->seq[l->n] = seq;
    st = exec_new(&l->exec[l->n], p, make->backend, longest, err);
    if (st != OK)
        program_free(p);
    else
        l->n++;
    return st;
}

enum status lengths_open(struct lengths *l, const struct dataset *d, const struct lengths_maker *make, struct exec *longest, struct error *err)
{
    int64_t seq[LENGTHS_MAX];
    const int n = dataset_lengths(d, seq);
    enum status st = OK;
    *l = (struct lengths){.longest = longest, .seq = xcalloc((size_t)n, sizeof *l->seq), .exec = xcalloc((size_t)n, sizeof *l->exec)};
    for (int i = 0; i < n - 1 && st == OK; i++)
        st = add_length(l, seq[i], make, longest, err);
    return st;
}

void lengths_close(struct lengths *l)
{
    for (int i = 0; i < l->n; i++)
        exec_free(l->exec[i]);
    free(l->seq);
    free(l->exec);
    *l = (struct lengths){0};
}

struct exec *lengths_find(const struct lengths *l, int64_t seq)
{
    for (int i = 0; i < l->n; i++)
        if (l->seq[i] == seq)
            return l->exec[i];
    return l->longest;
}

void lengths_measure(const struct lengths *l, bool on)
{
    for (int i = 0; i < l->n; i++)
        exec_measure(l->exec[i], on);
    exec_measure(l->longest, on);
}
