/* A room per thread; see room.h. */
#include "ops/cpu/room.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/arena.h"

enum { ALIGN = _Alignof(struct gemm_room), BYTES = sizeof(struct gemm_room) + ALIGN };

static _Thread_local struct gemm_room *own;
static _Atomic uint64_t rooms = 1;              /* so far: products of each are counted from another number on */
static pthread_key_t memory_of_thread;          /* freed when the thread ends */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_key(void) { pthread_key_create(&memory_of_thread, free); }

static void take(void *memory)
{
    pthread_once(&once, make_key);
    pthread_setspecific(memory_of_thread, memory);
    own = (struct gemm_room *)(((uintptr_t)memory + ALIGN - 1) / ALIGN * ALIGN);
    own->product = atomic_fetch_add(&rooms, 1) << 40;
}

struct gemm_room *gemm_room(void)
{
    if (!own)
        take(xcalloc(1, BYTES));
    return own;
}

static void make(void *failed, int member)
{
    (void)member;
    void *memory = own ? NULL : calloc(1, BYTES);
    if (memory)
        take(memory);
    if (!own)
        atomic_store((_Atomic bool *)failed, true);
}

enum status gemm_rooms_make(struct team *team, struct error *err)
{
    _Atomic bool failed = false;
    team_run(team, make, &failed);
    return failed ? error_no_memory(err, "blocks of products", (unsigned long long)BYTES * (unsigned)team_size(team)) : OK;
}
