/* Placing buffers, one after the other: each at an offset that is liked, or else the lowest, where nothing lies that lives at the same time. */
#ifndef HONE_PASSES_PLACEMENT_H
#define HONE_PASSES_PLACEMENT_H

#include <stddef.h>

struct placement;

struct placement *placement_new(int times);                     /* times are 0 .. times - 1 */
void placement_free(struct placement *p);
/* Places `bytes` that live from time `first` to `last`, at the first of n offsets that is free for them, if any is; returns the offset. */
size_t placement_add(struct placement *p, int first, int last, size_t bytes, const size_t *liked, int n);

#endif
