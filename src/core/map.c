/* Guarded file mappings; see map.h.
 *
 * Touching a page that lies beyond the end of the file raises SIGBUS in the thread that touches it. map_read notes the
 * mapping and a jump target in thread-local memory before it copies; the handler jumps there when the address lies in
 * the noted mapping, and hands every other fault on. */
#include "core/map.h"

#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#include "core/arena.h"

struct guard {
    const struct map *volatile map;     /* being read by this thread, or NULL */
    sigjmp_buf back;
};

/* initial-exec: the handler must not be the one that makes the loader allocate the block. */
static _Thread_local struct guard guard __attribute__((tls_model("initial-exec")));
static struct sigaction previous;
static pthread_mutex_t install_lock = PTHREAD_MUTEX_INITIALIZER;

static void hand_on(int number, siginfo_t *info, void *context)
{
    if (previous.sa_flags & SA_SIGINFO)
        previous.sa_sigaction(number, info, context);
    else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
        previous.sa_handler(number);
    else
        signal(number, SIG_DFL);        /* the fault repeats and ends the process */
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    const struct map *m = guard.map;
    const uintptr_t at = (uintptr_t)info->si_addr;
    if (m && at >= (uintptr_t)m->data && at - (uintptr_t)m->data < m->size) {
        /* Restoring the mask here lets map_read set its jump without a system call. */
        sigprocmask(SIG_SETMASK, &((const ucontext_t *)context)->uc_sigmask, NULL);
        siglongjmp(guard.back, 1);
    }
    hand_on(number, info, context);
}

static void install(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, now;
    sigemptyset(&action.sa_mask);
    pthread_mutex_lock(&install_lock);
    sigaction(SIGBUS, NULL, &now);
    if (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != on_fault) {
        previous = now;
        sigaction(SIGBUS, &action, NULL);
    }
    pthread_mutex_unlock(&install_lock);
}

static enum status check_kind(const struct stat *info, const char *path, struct error *err)
{
    if (S_ISDIR(info->st_mode))
        return error_set(err, BAD_INPUT, "'%s' is a folder; name a file in it", path);
    if (!S_ISREG(info->st_mode))
        return error_set(err, BAD_INPUT, "'%s' is not a regular file", path);
    if ((uintmax_t)info->st_size > SIZE_MAX)
        return error_set(err, CANNOT, "'%s' is too large to map: %lld bytes", path, (long long)info->st_size);
    return OK;
}

static enum status map_descriptor(struct map *m, int fd, const char *path, struct error *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return error_errno(err, "cannot read '%s'", path);
    const enum status st = check_kind(&info, path, err);
    if (st != OK)
        return st;
    const size_t size = (size_t)info.st_size;
    void *data = size ? mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0) : NULL;
    if (data == MAP_FAILED)
        return error_errno(err, "cannot map '%s'", path);
    *m = (struct map){.path = xstrdup(path), .data = data, .size = size};
    return OK;
}

enum status map_init(struct map *m, const char *path, struct error *err)
{
    install();
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);   /* a FIFO must not hang */
    if (fd < 0)
        return error_errno(err, "cannot open '%s'", path);
    const enum status st = map_descriptor(m, fd, path, err);
    close(fd);
    return st;
}

void map_release(struct map *m)
{
    if (m->data)
        munmap((void *)(uintptr_t)m->data, m->size);
    free(m->path);
    *m = (struct map){.path = NULL};
}

enum status map_read(const struct map *m, size_t offset, void *to, size_t bytes, struct error *err)
{
    assert(offset <= m->size && bytes <= m->size - offset);
    if (bytes == 0)
        return OK;
    if (sigsetjmp(guard.back, 0) != 0) {
        guard.map = NULL;
        return error_set(err, BAD_INPUT,
                         "'%s' was %zu bytes when it was opened and has been cut since: bytes %zu to %zu "
                         "cannot be read; restore it and start again", m->path, m->size, offset, offset + bytes);
    }
    guard.map = m;
    atomic_signal_fence(memory_order_seq_cst);
    memcpy(to, m->data + offset, bytes);
    atomic_signal_fence(memory_order_seq_cst);
    guard.map = NULL;
    return OK;
}
