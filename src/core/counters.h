/* Hardware counters of this process by Linux perf, where they can be read. */
#ifndef HONE_CORE_COUNTERS_H
#define HONE_CORE_COUNTERS_H

#include <stdbool.h>

struct counters {
    int fd[3];                  /* -1: not available */
};

struct counter_values {
    double instructions, cycles, cache_misses;
};

/* Opens the counters for this thread and those that it starts from now on. False where the system does not allow it. */
bool counters_open(struct counters *c);
struct counter_values counters_read(const struct counters *c);
void counters_close(struct counters *c);

#endif
