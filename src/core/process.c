/* Numbers from /proc; see process.h. */
#include "core/process.h"

#include <dirent.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

bool process_installed(char out[PATH_MAX], const char *file)
{
    char program[PATH_MAX - 64];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0)
        return false;
    program[n] = 0;
    snprintf(out, PATH_MAX, "%s/../lib/hone/%.40s", dirname(program), file);
    return access(out, R_OK) == 0;
}

double process_peak_bytes(void)
{
    char line[256];
    double kb = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %lf kB", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb * 1024;
}

void process_reset_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "we");
    if (f) {
        fputs("5", f);
        fclose(f);
    }
}

double process_preemptions(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_nivcsw : 0;
}

/* The second number of a thread's schedstat: nanoseconds on the queue of a core. */
static double thread_delayed_ns(const char *id)
{
    char path[64];
    double ran, delayed = 0;
    snprintf(path, sizeof path, "/proc/self/task/%.20s/schedstat", id);
    FILE *f = fopen(path, "re");
    const bool read = f && fscanf(f, "%lf %lf", &ran, &delayed) == 2;
    if (f)
        fclose(f);
    return read ? delayed : -1;
}

double process_delayed_s(void)
{
    DIR *d = opendir("/proc/self/task");
    double sum = 0;
    bool known = false;
    for (struct dirent *e; d && (e = readdir(d));) {
        const double ns = e->d_name[0] == '.' ? -1 : thread_delayed_ns(e->d_name);
        known |= ns >= 0;
        sum += ns > 0 ? ns : 0;
    }
    if (d)
        closedir(d);
    return known ? sum / 1e9 : -1;
}
