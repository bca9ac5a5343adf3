/* perf_event_open, three times; see counters.h. */
#include "core/counters.h"

#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_one(uint64_t event)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE, .size = sizeof attr, .config = event, .inherit = 1,
                                   .exclude_kernel = 1, .exclude_hv = 1};
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

bool counters_open(struct counters *c)
{
    static const uint64_t events[] = {PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_CACHE_MISSES};
    bool all = true;
    for (int i = 0; i < 3; i++) {
        c->fd[i] = open_one(events[i]);
        all &= c->fd[i] >= 0;
    }
    if (!all)
        counters_close(c);
    return all;
}

static double read_one(int fd)
{
    uint64_t value = 0;
    return fd >= 0 && read(fd, &value, sizeof value) == sizeof value ? (double)value : 0;
}

struct counter_values counters_read(const struct counters *c)
{
    return (struct counter_values){read_one(c->fd[0]), read_one(c->fd[1]), read_one(c->fd[2])};
}

void counters_close(struct counters *c)
{
    for (int i = 0; i < 3; i++) {
        if (c->fd[i] >= 0)
            close(c->fd[i]);
        c->fd[i] = -1;
    }
}
