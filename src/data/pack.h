/* Samples that share rows. */
#ifndef HONE_DATA_PACK_H
#define HONE_DATA_PACK_H

#include "data/data_int.h"

/* Which row each sample of a batch is in, and what finding it needs. */
struct pack {
    int64_t size, seq;          /* samples of a batch, tokens of a row */
    int64_t usual;              /* rows of a batch, unless it needs more: dataset_rows */
    int64_t rows;               /* that it needs */
    int64_t *lengths;           /* (size), given */
    int64_t *row, *at;          /* (size): where each sample goes */
    int64_t *used, *next;       /* (size), per row: tokens in it; another one with as much room */
    int64_t *order, *with_room; /* (size), (seq + 2) */
    int32_t *words;             /* one sample, on its way */
};
void pack_init(struct pack *k, const struct dataset *d, int64_t size);
void pack_release(struct pack *k);
int64_t pack_place(struct pack *k);         /* from the lengths; returns the rows */

/* As collate, in b->rows rows. */
enum status pack_collate(const struct dataset *d, enum split split, const int64_t *samples, struct batch *b, struct pack *k, struct error *err);

#endif
