/* How fast traces are read: MB/s of JSON and events/s, best of three, and the peak of resident memory over the size of
 * the JSON. Peak memory is the process's, so that one file at a time says most. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "core/clock.h"
#include "import/import.h"

static double thread_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static long peak_kb(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

static int measure(const char *path)
{
    double best_s = 1e30, best_cpu_s = 1e30;
    int64_t events = 0, json_bytes = 0;
    for (int i = 0; i < 3; i++) {
        struct trace *t;
        struct error err;
        const double from_s = clock_s(), from_cpu_s = thread_s();
        if (import_read(&t, path, NULL, NULL, &err) != OK) {
            fprintf(stderr, "read-trace: %s\n", err.text);
            return 1;
        }
        const double s = clock_s() - from_s, cpu_s = thread_s() - from_cpu_s;
        best_s = s < best_s ? s : best_s;
        best_cpu_s = cpu_s < best_cpu_s ? cpu_s : best_cpu_s;
        events = t->origin.events_read + t->origin.other_events;
        json_bytes = t->origin.json_bytes;
        trace_free(t);
    }
    const double mb = (double)json_bytes * 1e-6, peak_mb = (double)peak_kb() * 1024e-6;
    printf("%s: %.1f MB, %.0f MB/s (parser's thread alone %.0f), %.2f M events/s, peak %.1f MB = %.3f of the JSON\n",
           path, mb, mb / best_s, mb / best_cpu_s, (double)events / best_s * 1e-6, peak_mb, peak_mb / mb);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0;
    if (argc < 2) {
        fprintf(stderr, "usage: read-trace FILE...\n");
        return 2;
    }
    for (int i = 1; i < argc; i++)
        failed |= measure(argv[i]);
    return failed;
}
