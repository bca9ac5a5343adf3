/* Who has which slice of what ranks divide. */
#include "program/program.h"

/* A sum over a power of two of ranks is made in pairs of neighbours, and every pair halves what it has (src/dist/sums.c): the lowest bit of a
 * rank's number decides first. Other numbers of ranks take them in order. */
int slice_place(int rank, int ranks)
{
    int place = 0;
    if (ranks & (ranks - 1))
        return rank;
    for (int bit = 1; bit < ranks; bit *= 2)
        place = 2 * place + (rank & bit ? 1 : 0);
    return place;
}

struct slice slice_of_parameter(const struct program *p, const struct program_bucket *b, int i, int rank)
{
    const int place = slice_place(rank, p->ranks);
    const int64_t start = b->start[i], end = b->start[i + 1];
    const int64_t lo = b->cuts[place] > start ? b->cuts[place] : start, hi = b->cuts[place + 1] < end ? b->cuts[place + 1] : end;
    return hi > lo ? (struct slice){lo - start, hi - lo} : (struct slice){0, 0};
}
