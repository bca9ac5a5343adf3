/* Loaded into the program under test by LD_PRELOAD: lets an allocation fail, or all that do not fit into a heap of a given size, or
 * lets the BLAS library abort in a product; tells the driver when main begins (what the loader does before that is not the program's),
 * and by which path a system call came.
 *
 * libhwloc does not look at what malloc returns: hone makes sure before it calls it that there is memory. So while hwloc and the
 * loader work no single allocation fails; the heap that is too small is how that is tested. */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "fault.h"
#include "path.h"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *p);

static struct fault_shared *shared;
static _Thread_local int in_library;

/* For whoever looks for the place: with this in the environment the stack of the call that fails goes to standard error. */
static void show_stack(void)
{
    void *stack[64];
    if (getenv("HONE_FAULT_SHOW"))
        backtrace_symbols_fd(stack, backtrace(stack, 64), 2);
}

/* Counts a call; true: it is the one that fails. */
static int is_the_one(struct fault_calls *c, const void *caller)
{
    const unsigned long n = __atomic_add_fetch(&c->calls, 1, __ATOMIC_RELAXED);
    if (shared->notes)
        path_note(c->paths, path_from(caller));
    if (!c->at || (c->path ? !path_begins_at(c->path, caller) || path_from(caller) != c->path ||
                                 __atomic_add_fetch(&c->by_path, 1, __ATOMIC_RELAXED) != c->at
                           : n != c->at))
        return 0;
    c->hit = 1;
    show_stack();
    return 1;
}

static int fails(size_t size, const void *caller)
{
    if (!shared)
        return 0;
    const int chosen = !in_library && is_the_one(&shared->allocations, caller);
    if (!chosen && !(shared->limit && shared->in_use + size > shared->limit))
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
typedef void *dlsym_fn(void *handle, const char *name);

/* Found by its version: this library has one of its own, below. */
static dlsym_fn *real_dlsym(void)
{
    static dlsym_fn *found;
    if (!found)
        found = (dlsym_fn *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    return found;
}

#define REAL(type, name) ((type *)real_dlsym()(RTLD_NEXT, name))

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

/* ---- products: the program asks for cblas_sgemm by name, and gets one that may abort */

typedef void sgemm_fn(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb,
                      float beta, float *c, int ldc);
static sgemm_fn *real_sgemm;

static void sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb,
                  float beta, float *c, int ldc)
{
    if (shared && is_the_one(&shared->products, CALLER))
        abort();
    real_sgemm(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void *dlsym(void *restrict handle, const char *restrict name)
{
    void *found = real_dlsym()(handle, name);
    if (!found || strcmp(name, "cblas_sgemm"))
        return found;
    real_sgemm = (sgemm_fn *)found;
    return (void *)sgemm;
}

/* ---- the path of a system call, which the driver asks for */

typedef int sigmask_fn(int how, const sigset_t *set, sigset_t *old);

/* Threads that leave signals to others answer, too. */
int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    sigset_t but = {0};
    if (set) {
        but = *set;
        if (how != SIG_UNBLOCK)
            sigdelset(&but, FAULT_ASK);
    }
    return REAL(sigmask_fn, "pthread_sigmask")(how, set ? &but : NULL, old);
}

static void on_ask(int number)
{
    const int before = errno;
    (void)number;
    prctl(FAULT_PATH, path_from(NULL), 0, 0, 0);
    errno = before;
}

__attribute__((constructor)) static void begin(void)
{
    const struct sigaction ask = {.sa_handler = on_ask, .sa_flags = SA_RESTART};
    const char *path = getenv(FAULT_SHARED);
    const int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *p = fd >= 0 ? mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (fd >= 0)
        close(fd);
    sigaction(FAULT_ASK, &ask, NULL);
    prctl(FAULT_BEGIN, 0, 0, 0, 0);
    if (p != MAP_FAILED)
        shared = p;
}
