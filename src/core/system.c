/* Reads what the system says of cores and memory; see system.h. */
#include "core/system.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_CPUS = 1024, MOST_CPUS = 1 << 20, PATH_ROOM = 4096 };

/* The kernel refuses a set that is too small for its own; how large that is it does not say. */
int system_cores(affinity_fn *affinity)
{
    for (int cpus = FIRST_CPUS; cpus <= MOST_CPUS; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        const size_t bytes = CPU_ALLOC_SIZE((size_t)cpus);
        if (!set)
            return 1;
        CPU_ZERO_S(bytes, set);
        const bool known = affinity(0, bytes, set) == 0, too_small = !known && errno == EINVAL;
        const int n = known ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (!too_small)
            return n > 0 ? n : 1;
    }
    return 1;
}

/* The first number that `format` finds in a line of a file; SIZE_MAX where there is none ("max"). */
static size_t number(const char *path, const char *format)
{
    char line[256];
    unsigned long long n;
    size_t found = SIZE_MAX;
    FILE *f = fopen(path, "re");
    while (f && found == SIZE_MAX && fgets(line, sizeof line, f))
        if (sscanf(line, format, &n) == 1)
            found = n < SIZE_MAX ? (size_t)n : SIZE_MAX;
    if (f)
        fclose(f);
    return found;
}

/* "0.20 0.18 0.12 2/345 6789": load, then threads that run, of all that there are. */
int system_running(const char *root)
{
    char path[PATH_ROOM];
    snprintf(path, sizeof path, "%s/proc/loadavg", root);
    const size_t n = number(path, "%*f %*f %*f %llu/");
    return n < INT_MAX ? (int)n : 0;
}

/* The two generations of control groups: where they are mounted, how /proc/self/cgroup names the process's own, and their files. */
static const struct hierarchy {
    const char *mount, *controller;
    const char *limits[2], *used;       /* limits: above the second one the kernel takes memory back all the time */
    const char *files[2];               /* lines of memory.stat: pages of files, which the kernel can take back */
} hierarchies[] = {
    {"/sys/fs/cgroup", "", {"memory.max", "memory.high"}, "memory.current", {"inactive_file %llu", "active_file %llu"}},
    {"/sys/fs/cgroup/memory", "memory", {"memory.limit_in_bytes", NULL}, "memory.usage_in_bytes",
     {"total_inactive_file %llu", "total_active_file %llu"}},
};

static size_t group_number(const char *folder, const char *file, const char *format)
{
    char path[PATH_ROOM + 64];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return number(path, format);
}

/* What is left below the limits of one group; SIZE_MAX: it has none. */
static size_t left_in_group(const struct hierarchy *h, const char *folder)
{
    size_t limit = SIZE_MAX;
    for (int i = 0; i < 2 && h->limits[i]; i++) {
        const size_t n = group_number(folder, h->limits[i], "%llu");
        limit = n < limit ? n : limit;
    }
    if (limit == SIZE_MAX)
        return limit;
    const size_t said = group_number(folder, h->used, "%llu");
    size_t used = said == SIZE_MAX ? 0 : said;
    for (int i = 0; i < 2; i++) {
        const size_t n = group_number(folder, "memory.stat", h->files[i]);
        used -= n == SIZE_MAX ? 0 : n < used ? n : used;
    }
    return limit > used ? limit - used : 0;
}

/* "4:cpu,memory:/a/b" and "0::/a/b": is this the line of the hierarchy? Then *group gets its path. */
static bool own_group(const struct hierarchy *h, char *line, char **group)
{
    char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL, *rest;
    if (!path)
        return false;
    *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    *group = path;
    if (!*h->controller)
        return !list[1];
    for (char *word = strtok_r(list + 1, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
        if (!strcmp(word, h->controller))
            return true;
    return false;
}

/* The folder of the process's group. In a container it may be named as the host sees it, and not be there: then the mount itself is
 * the group, and the walk up ends there anyhow. */
static void find_group(const struct hierarchy *h, const char *root, char folder[PATH_ROOM])
{
    char path[PATH_ROOM], line[PATH_ROOM], *group;
    const int n = snprintf(folder, PATH_ROOM, "%s%s", root, h->mount);
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (own_group(h, line, &group) && group[0] == '/' && group[1] && !strstr(group, "/..") &&
            (size_t)n + strlen(group) < PATH_ROOM) {
            strcpy(folder + n, group);
            break;
        }
    if (f)
        fclose(f);
}

/* The least that `of` finds in the process's group and those above it, up to the mount. */
typedef size_t in_group(const struct hierarchy *h, const char *folder);
static size_t least_in_hierarchy(const struct hierarchy *h, const char *root, in_group *of)
{
    char folder[PATH_ROOM];
    const size_t mount = strlen(root) + strlen(h->mount);
    size_t least = SIZE_MAX;
    find_group(h, root, folder);
    for (;;) {
        const size_t found = of(h, folder);
        least = found < least ? found : least;
        char *slash = strrchr(folder, '/');
        if (strlen(folder) <= mount || !slash)
            return least;
        *slash = '\0';
    }
}

static size_t limit_of_group(const struct hierarchy *h, const char *folder) { return group_number(folder, h->limits[0], "%llu"); }

/* "max 100000" and -1: none. */
bool system_has_quota(const char *root)
{
    static const struct hierarchy of_cpus[] = {
        {.mount = "/sys/fs/cgroup", .controller = "", .limits = {"cpu.max"}},
        {.mount = "/sys/fs/cgroup/cpu", .controller = "cpu", .limits = {"cpu.cfs_quota_us"}},
    };
    bool has = false;
    for (size_t i = 0; i < sizeof of_cpus / sizeof *of_cpus; i++)
        has = has || least_in_hierarchy(&of_cpus[i], root, limit_of_group) != SIZE_MAX;
    return has;
}

size_t system_free_bytes(const char *root)
{
    char path[PATH_ROOM];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    const size_t kb = number(path, "MemAvailable: %llu kB");
    size_t least = kb < SIZE_MAX / 1024 ? kb * 1024 : SIZE_MAX;
    for (size_t i = 0; i < sizeof hierarchies / sizeof *hierarchies; i++) {
        const size_t left = least_in_hierarchy(&hierarchies[i], root, left_in_group);
        least = left < least ? left : least;
    }
    return least;
}
