/* Memory of CPU backends: one account for all of them, as they share one machine.
 *
 * Pages come zeroed and untouched: memory that a program never reaches costs nothing. For the same reason the system hands out more
 * than it has and kills the process later. So what was handed out and is not touched yet is still to come, and is taken off what the
 * system calls free; what was touched has gone from that already. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/system.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/cpu_int.h"

struct piece {
    struct piece *next;
    void *at;
    size_t bytes;
    bool tells;             /* the system says which of its pages are in memory; where it does not, all count as still to come */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct piece *pieces;            /* all that backends hold */
static const char *root = "";           /* before /proc and /sys */

void cpu_memory_root(const char *folder) { root = folder ? folder : ""; }

enum { PAGES = 1 << 13 };               /* asked about at a time */

/* Pages of p that are in memory, among the first `most` from page `first` on. */
static size_t present_pages(const struct piece *p, size_t page, size_t first, size_t most)
{
    unsigned char present[PAGES];
    size_t n = 0;
    if (mincore((char *)p->at + first * page, most * page, present))
        return 0;
    for (size_t i = 0; i < most; i++)
        n += present[i] & 1;
    return n;
}

/* Bytes that nobody has written yet, or that were swapped out: both will want memory. */
static size_t untouched(const struct piece *p)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (p->bytes + page - 1) / page;
    size_t present = 0;
    for (size_t at = 0; p->tells && at < pages; at += PAGES)
        present += present_pages(p, page, at, pages - at < PAGES ? pages - at : PAGES);
    return (pages - present) * page;
}

/* Asked of memory that is new: some sandboxes say of every page that it is there. */
static bool tells_pages(void *at)
{
    unsigned char present;
    return mincore(at, 1, &present) == 0 && !(present & 1);
}

static size_t available(void)
{
    const size_t now = system_free_bytes(root);
    size_t promised = 0;
    for (const struct piece *p = pieces; p; p = p->next)
        promised += untouched(p);
    return now == SIZE_MAX ? now : now > promised ? now - promised : 0;
}

size_t cpu_available_bytes(void)
{
    pthread_mutex_lock(&lock);
    const size_t bytes = available();
    pthread_mutex_unlock(&lock);
    return bytes;
}

static void *map_piece(size_t bytes)
{
    if (bytes > available())
        return NULL;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    madvise(at, bytes, MADV_HUGEPAGE);
    struct piece *p = xcalloc(1, sizeof *p);
    *p = (struct piece){pieces, at, bytes, tells_pages(at)};
    pieces = p;
    return at;
}

void *cpu_memory_take(size_t bytes)
{
    pthread_mutex_lock(&lock);
    void *at = map_piece(bytes ? bytes : 1);
    pthread_mutex_unlock(&lock);
    return at;
}

void cpu_memory_give(void *at)
{
    pthread_mutex_lock(&lock);
    for (struct piece **p = &pieces; at && *p; p = &(*p)->next)
        if ((*p)->at == at) {
            struct piece *gone = *p;
            *p = gone->next;
            munmap(gone->at, gone->bytes);
            free(gone);
            break;
        }
    pthread_mutex_unlock(&lock);
}
