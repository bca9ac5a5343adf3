/* The path of a call: the return addresses on the stack, each relative to its module, so that it is the same in every run of the same
 * program. An address counts once, so a recursion is the same path at every depth; those of this library do not count.
 *
 * Neither the unwinder nor _dl_find_object allocates or takes a lock. */
#include "path.h"

#include <dlfcn.h>
#include <unwind.h>

enum { DEPTH_MOST = 64, BEGIN_BITS = 24 };

struct walk {
    uint64_t seen[DEPTH_MOST];
    int n;
};

static uint64_t mix(uint64_t h)
{
    h ^= h >> 31;
    h *= 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

enum { HERE = 2 };          /* in this library */

static uint64_t place_of(const void *address)
{
    struct dl_find_object module;
    if (_dl_find_object((void *)address, &module))
        return 1;
    const uintptr_t first = (uintptr_t)module.dlfo_map_start, bytes = (uintptr_t)module.dlfo_map_end - first;
    if ((uintptr_t)place_of - first < bytes)
        return HERE;
    return mix(((uintptr_t)address - first) ^ (uint64_t)bytes << 32);
}

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *argument)
{
    struct walk *w = argument;
    const uint64_t place = place_of((const void *)_Unwind_GetIP(context));
    if (place == HERE)
        return _URC_NO_REASON;
    for (int i = 0; i < w->n; i++)
        if (w->seen[i] == place)
            return _URC_NO_REASON;
    w->seen[w->n++] = place;
    return w->n < DEPTH_MOST ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static uint64_t begin_of(uint64_t place) { return place >> (64 - BEGIN_BITS); }

/* The first bits tell the place that called into this library, the others the whole way there. */
uint64_t path_from(const void *caller)
{
    struct walk w = {.n = 0};
    uint64_t path = 0;
    _Unwind_Backtrace(step, &w);
    for (int i = 0; i < w.n; i++)
        path = mix(path + w.seen[i]);
    path >>= BEGIN_BITS;
    return begin_of(place_of(caller)) << (64 - BEGIN_BITS) | (path ? path : 1);
}

int path_begins_at(uint64_t path, const void *caller) { return begin_of(path) == begin_of(place_of(caller)); }

void path_note(struct fault_path *table, uint64_t path)
{
    for (unsigned tried = 0, i = (unsigned)path; tried < FAULT_PATHS; tried++, i++) {
        struct fault_path *p = &table[i % FAULT_PATHS];
        uint64_t free_one = 0;
        if (__atomic_compare_exchange_n(&p->path, &free_one, path, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) || free_one == path) {
            __atomic_add_fetch(&p->calls, 1, __ATOMIC_RELAXED);
            return;
        }
    }
}
