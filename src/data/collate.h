/* Samples into the rows of a batch, whose memory is given. */
#ifndef HONE_DATA_COLLATE_H
#define HONE_DATA_COLLATE_H

#include "data/data_int.h"

/* Bytes of a batch of `size` samples; fails where there are more than can be counted. */
enum status collate_bytes(const struct dataset *d, int64_t size, bool pack, int64_t *bytes);
void collate_bind(const struct dataset *d, struct batch *b, int64_t size, bool pack, void *memory);

/* Which samples are in a batch, and what is needed to find out. */
struct collate_order {
    int64_t *samples;           /* (size) */
    int64_t *sorted, *counts;   /* (group * size * shards), (seq + 2); NULL without groups */
};
void collate_order_init(struct collate_order *o, const struct dataset *d, int64_t size, const struct batch_division *v);
void collate_order_release(struct collate_order *o);
/* Part `index` of `size`: a batch is division->shards of them. Those of a window of `group` batches have its samples sorted by length, and come in an order of
 * their own; samples of a batch go round its parts, so that these are of like length and a batch is the same in any number of parts. */
void collate_choose(const struct dataset *d, int64_t index, int64_t size, const struct batch_division *v, struct collate_order *o);

/* Fills the batch, but for what the loader knows of it. */
enum status collate(const struct dataset *d, enum split split, const int64_t *samples, struct batch *b, struct error *err);

#endif
