/* Where a thread packs blocks of a product. A stack is no place for them: they take a megabyte, and a stack may have a quarter of
 * that. Products of one thread follow each other, so one room is enough for all; f32 and bf16 are in use at the same time where
 * blocks that were rounded go to the f32 product. A thread that waits may help another with a product: it then uses its own `aside` and `bf16`, so nothing that
 * is to be there behind a meeting can be in these; f32 is left alone. */
#ifndef HONE_OPS_CPU_ROOM_H
#define HONE_OPS_CPU_ROOM_H

#include "core/error.h"
#include "core/team.h"

/* Columns of a product, which may be another thread's: no two products have the same number. */
struct packed_columns {
    uint64_t product;
    int64_t first;
};

struct gemm_room {
    uint64_t product;           /* the number of this thread's last one that others may help with */
    struct packed_columns columns;              /* packed in f32, or in bf16 where it is another thread's, as long as that product is computed */
    _Alignas(64) char f32[800 << 10];           /* gemm_own.c, gemm_wide.c, loss_wide.c */
    _Alignas(64) char aside[32 << 10];          /* what one piece of work needs, one's own or another's */
    _Alignas(64) char bf16[1280 << 10];         /* gemm_bf16.c, pairs */
};

/* Makes the rooms of all threads of a team, so that no step has to. */
enum status gemm_rooms_make(struct team *team, struct error *err);
/* That of this thread; made now where it is in no such team. It goes with the thread. */
struct gemm_room *gemm_room(void);

#endif
