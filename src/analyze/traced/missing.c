/* The ranks of a job that were not given. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/traced/together.h"

enum { MOST_RANGES = 8, WORDS = 256 };      /* eight ranges of numbers of ten digits fit */

static int by_number(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

struct missing {
    char words[WORDS];                      /* "1, 4 to 7, ..." */
    int n_ranges, used;
    int64_t n;
};

static void __attribute__((format(printf, 2, 3))) say(struct missing *m, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    m->used += snprintf(m->words + m->used, sizeof m->words - (size_t)m->used, "%s", m->used ? ", " : "");
    m->used += vsnprintf(m->words + m->used, sizeof m->words - (size_t)m->used, format, args);
    va_end(args);
}

static void add_range(struct missing *m, int first, int last)
{
    if (last < first)
        return;
    m->n += (int64_t)last - first + 1;
    m->n_ranges++;
    if (m->n_ranges == MOST_RANGES + 1)
        say(m, "...");
    if (m->n_ranges > MOST_RANGES)
        return;
    if (last == first)
        say(m, "%d", first);
    else
        say(m, "%d%s%d", first, last > first + 1 ? " to " : ", ", last);
}

static void find_missing(struct missing *m, const int *numbers, int n, int world)
{
    int next = 0;
    for (int i = 0; i < n && numbers[i] < world; i++) {
        add_range(m, next, numbers[i] - 1);
        next = numbers[i] + 1;
    }
    add_range(m, next, world - 1);
}

char *job_missing(struct diagnosis **each, int n)
{
    int *numbers = xcalloc((size_t)n, sizeof *numbers), world = 0;
    bool known = true;
    for (int i = 0; i < n; i++) {
        const struct trace_origin *o = &each[i]->trace->origin;
        numbers[i] = o->rank;
        known &= o->rank >= 0;
        world = o->world_size > world ? o->world_size : world;
    }
    struct missing m = {.n = world > n ? world - n : 0};
    if (known && world > 0) {
        m.n = 0;
        qsort(numbers, (size_t)n, sizeof *numbers, by_number);
        find_missing(&m, numbers, n, world);
    }
    free(numbers);
    if (!m.n)
        return NULL;
    return arena_printf(&each[0]->arena, "%lld of the job's %d ranks %s missing%s%s%s: who waits for %s", (long long)m.n, world,
                        m.n == 1 ? "is" : "are", m.used ? " (" : "", m.words, m.used ? ")" : "",
                        m.n == 1 ? "it is not seen, and it may be the slowest" : "them is not seen, and the slowest may be among them");
}
