/* Numbers from /proc; see process.h. */
#include "core/process.h"

#include <dirent.h>
#include <dlfcn.h>
#include <libgen.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The file that this code is in: libhone.so of another program, or the program itself. */
static bool own_file(char out[PATH_MAX], bool *library)
{
    Dl_info unused;
    const struct link_map *object = NULL;
    dladdr1((void *)(uintptr_t)own_file, &unused, (void **)&object, RTLD_DL_LINKMAP);
    *library = object && object->l_name && *object->l_name;
    if (*library)
        return realpath(object->l_name, out) != NULL;
    const ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    out[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* Of a folder of libraries that is for one architecture: lib/x86_64-linux-gnu. */
static bool is_below_lib(const char *folder)
{
    const char *slash = strrchr(folder, '/');
    return slash && slash - folder >= 4 && !strncmp(slash - 4, "/lib", 4);
}

bool process_root(char out[PATH_MAX])
{
    char file[PATH_MAX];
    bool library;
    if (!own_file(file, &library))
        return false;
    char *folder = dirname(file);
    if (library && is_below_lib(folder))
        folder = dirname(folder);
    const char *root = dirname(folder);
    snprintf(out, PATH_MAX, "%s", strcmp(root, "/") ? root : "");
    return true;
}

bool process_installed(char out[PATH_MAX], const char *file)
{
    char root[PATH_MAX];
    if (!process_root(root) || strlen(root) > PATH_MAX - 64)
        return false;
    snprintf(out, PATH_MAX, "%.*s/lib/hone/%.40s", PATH_MAX - 64, root, file);
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
#ifdef __GLIBC__
    malloc_trim(0);                 /* what earlier work has freed is not this one's */
#endif
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

static const char BESIDE[] = "beside ";

void process_work_beside(const char *as)
{
    char name[16];                          /* what the system keeps of one */
    snprintf(name, sizeof name, "%s%s", BESIDE, as);
    pthread_setname_np(pthread_self(), name);
}

static bool works_beside(const char *id)
{
    char path[64], name[16] = "";
    snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", id);
    FILE *f = fopen(path, "re");
    const bool read = f && fgets(name, sizeof name, f);
    if (f)
        fclose(f);
    return read && !strncmp(name, BESIDE, sizeof BESIDE - 1);
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
        const double ns = e->d_name[0] == '.' || works_beside(e->d_name) ? -1 : thread_delayed_ns(e->d_name);
        known |= ns >= 0;
        sum += ns > 0 ? ns : 0;
    }
    if (d)
        closedir(d);
    return known ? sum / 1e9 : -1;
}
