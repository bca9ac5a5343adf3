/* Loaded into the program under test by LD_PRELOAD: lets the Nth allocation fail, or all that do not fit into a heap of a given size,
 * and tells the driver when main begins (what the loader does before that is not the program's).
 *
 * libhwloc and BLAS libraries do not look at what malloc returns: hone makes sure before it calls them that there is memory. So while
 * hwloc and the loader work, and where BLIS itself asks, no single allocation fails, but the next one; the heap that is too small is how
 * that is tested. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "fault.h"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *p);

static struct fault_shared *shared;
static _Thread_local int in_library;

static int is_of_blis(void *caller)
{
    Dl_info where;
    return dladdr(caller, &where) && where.dli_fname && strstr(where.dli_fname, "/libblis");
}

static int fails(size_t size, void *caller)
{
    if (!shared)
        return 0;
    int counted = !in_library && __atomic_add_fetch(&shared->calls, 1, __ATOMIC_RELAXED) == shared->fail_at;
    if (counted && is_of_blis(caller)) {
        shared->fail_at++;
        counted = 0;
    }
    if (!counted && !(shared->limit && shared->in_use + size > shared->limit))
        return 0;
    errno = ENOMEM;
    return 1;
}

static void *took(void *p)
{
    if (!shared || !p)
        return p;
    const unsigned long now = __atomic_add_fetch(&shared->in_use, malloc_usable_size(p), __ATOMIC_RELAXED);
    if (now > shared->peak)
        shared->peak = now;             /* a race loses some bytes of it */
    return p;
}

static void gave(void *p)
{
    const unsigned long bytes = malloc_usable_size(p);
    if (shared)                         /* what was taken before main is not counted, and may be given back */
        __atomic_sub_fetch(&shared->in_use, bytes < shared->in_use ? bytes : shared->in_use, __ATOMIC_RELAXED);
}

#define CALLER __builtin_return_address(0)

void *malloc(size_t size) { return fails(size, CALLER) ? NULL : took(__libc_malloc(size)); }
void *calloc(size_t count, size_t size) { return fails(count * size, CALLER) ? NULL : took(__libc_calloc(count, size)); }
void *aligned_alloc(size_t alignment, size_t size) { return fails(size, CALLER) ? NULL : took(__libc_memalign(alignment, size)); }
void *memalign(size_t alignment, size_t size) { return fails(size, CALLER) ? NULL : took(__libc_memalign(alignment, size)); }

void free(void *p)
{
    gave(p);
    __libc_free(p);
}

void *realloc(void *old, size_t size)
{
    if (fails(size, CALLER))
        return NULL;
    gave(old);
    return took(__libc_realloc(old, size));
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    const int before = errno;
    void *p = fails(size, CALLER) ? NULL : took(__libc_memalign(alignment, size));
    errno = before;
    if (!p)
        return ENOMEM;
    *out = p;
    return 0;
}

/* ---- libraries at work */

typedef int load_fn(void *topology);
typedef int init_fn(void **topology);
typedef void destroy_fn(void *topology);
typedef void *dlopen_fn(const char *path, int flags);

#define REAL(type, name) ((type *)dlsym(RTLD_NEXT, name))

int hwloc_topology_init(void **topology);
int hwloc_topology_load(void *topology);
void hwloc_topology_destroy(void *topology);

int hwloc_topology_init(void **topology)
{
    in_library++;
    const int rc = REAL(init_fn, "hwloc_topology_init")(topology);
    in_library--;
    return rc;
}

int hwloc_topology_load(void *topology)
{
    in_library++;
    const int rc = REAL(load_fn, "hwloc_topology_load")(topology);
    in_library--;
    return rc;
}

void hwloc_topology_destroy(void *topology)
{
    in_library++;
    REAL(destroy_fn, "hwloc_topology_destroy")(topology);
    in_library--;
}

void *dlopen(const char *path, int flags)
{
    in_library++;
    void *handle = REAL(dlopen_fn, "dlopen")(path, flags);
    in_library--;
    return handle;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv(FAULT_SHARED);
    const int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *p = fd >= 0 ? mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (fd >= 0)
        close(fd);
    prctl(FAULT_BEGIN, 0, 0, 0, 0);
    if (p != MAP_FAILED)
        shared = p;
}
