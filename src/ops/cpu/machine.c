/* What this machine is: CPU, cores, caches, memory. */
#include <hwloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/system.h"
#include "ops/cpu/bf16.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/cpu_int.h"

int cpu_usable_cores(void) { return system_cores(sched_getaffinity); }

/* hwloc finds no model name on ARM; the kernel gives at least the maker's numbers. */
static void read_cpu_numbers(char *out, size_t size)
{
    char line[256], maker[32] = "", part[32] = "";
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f)) {
        sscanf(line, "CPU implementer : %31s", maker);
        sscanf(line, "CPU part : %31s", part);
    }
    if (f)
        fclose(f);
    snprintf(out, size, *maker ? "implementer %s part %s" : "unknown CPU", maker, part);
}

/* hwloc does not look at what malloc gives it: that there is memory is made sure of before. It takes 0.3 MB here, and grows with cores. */
enum { TOPOLOGY_BYTES = 8 << 20 };

/* hwloc's plugins know graphics cards: they load libraries of X11 and OpenCL, for nothing that is asked here. */
static void keep_hwloc_short(void)
{
    setenv("HWLOC_PLUGINS_PATH", "/dev/null", 0);
    setenv("HWLOC_HIDE_ERRORS", "2", 0);        /* a container without /sys is no news to the user */
}

static void read_topology(struct cpu_machine *m)
{
    static const hwloc_obj_type_t levels[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE};
    hwloc_topology_t t;
    free(xcalloc(1, TOPOLOGY_BYTES));
    keep_hwloc_short();
    if (hwloc_topology_init(&t))
        return;
    if (hwloc_topology_load(t) == 0) {
        const hwloc_obj_t package = hwloc_get_obj_by_type(t, HWLOC_OBJ_PACKAGE, 0);
        const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
        if (model)
            snprintf(m->model, sizeof m->model, "%s", model);
        m->cores = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE);
        for (int i = 0; i < 3; i++) {
            const hwloc_obj_t cache = hwloc_get_obj_by_type(t, levels[i], 0);
            const int n = hwloc_get_nbobjs_by_type(t, levels[i]);
            m->cache_bytes[i] = cache && n > 0 ? (double)cache->attr->cache.size : 0;
            m->caches[i] = cache && n > 0 ? n : 0;
        }
    }
    hwloc_topology_destroy(t);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct cpu_machine hardware;

static void read_hardware_once(void)
{
    read_topology(&hardware);
    if (!*hardware.model)
        read_cpu_numbers(hardware.model, sizeof hardware.model);
}

/* What is known without looking at libraries. It is read once: that takes hundreds of files, and what this machine is called must be
 * the same all the time, also where one of them could not be read. */
static void read_hardware(struct cpu_machine *m)
{
    pthread_once(&once, read_hardware_once);
    *m = hardware;
    m->usable = cpu_usable_cores();
}

void cpu_model_read(char *out, size_t size)
{
    struct cpu_machine m;
    read_hardware(&m);
    snprintf(out, size, "%s", m.model);
}

void cpu_hardware_read(struct cpu_machine *m)
{
    read_hardware(m);
    if (m->cores < 1)
        m->cores = m->usable;
    m->memory_bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    const enum bf16_way way = cpu_bf16_way();
    snprintf(m->hardware, sizeof m->hardware, "%s, %d cores, %s%s", m->model, m->cores, cpu_isa_name(),
             way == BF16_AMX ? "+amx" : way == BF16_ROUNDED ? "" : "+bf16");
}

void cpu_machine_read(struct cpu_machine *m)
{
    cpu_hardware_read(m);
    snprintf(m->fingerprint, sizeof m->fingerprint, "%s, %s", m->hardware, cpu_blas_name());
}
