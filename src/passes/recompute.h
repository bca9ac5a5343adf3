/* Within the pass recompute: the search for how much is computed again (recompute.c), and one layer (recompute_layer.c). */
#ifndef HONE_PASSES_RECOMPUTE_H
#define HONE_PASSES_RECOMPUTE_H

#include "program/program.h"

enum form { KEEP_PRODUCTS, KEEP_ATTENTION, KEEP_NOTHING, FORMS };

/* Indices sorted into heaps: those of heap h are item[start[h]] .. item[start[h + 1] - 1], in order. */
struct heaps { int *start, *item; };

/* A program as it was, and what is computed again in it now. A layer is worked on in its own ops alone, so that a trial of all
 * layers is one sweep: a value belongs to the layer whose forward makes it. */
struct search {
    struct program *p;
    struct op *ops;                 /* of the program as it was */
    int n_ops, n_values, layers;
    struct heaps forward, backward; /* ops by layer */
    struct heaps changes;           /* ops of forward and backward by the value that persists and that they write */
    int *made_in;                   /* per value: the layer that makes it, or NO_LAYER */
    bool *read_elsewhere;           /* per value: by something after the forward that is not of its layer's backward */
    /* of one trial */
    bool *kept;                     /* per value: lives until the layer's backward anyway */
    bool *needed;                   /* per value: must be made again */
    value_id *copy;                 /* per value: the one made again, or NO_VALUE */
    struct copies *copies;          /* per layer */
    double least;                   /* the smallest plan so far, and its depth */
    int best;
};

/* The copies of a layer lie at the end of the list until the trial is whole: [from, to); they go in front of op `before`. */
struct copies { int from, to, before; };

/* Copies the forward ops of a layer, in this form, to the end of the list, and lets its backward read what they make. Layers come
 * from the last to the first. Returns whether anything is computed again now. */
bool recompute_layer(struct search *s, int index, enum form form);

#endif
