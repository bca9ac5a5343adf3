/* NVIDIA's management library (NVML), loaded at run time and never linked: it is part of the driver. Its functions and numbers are as
 * NVIDIA documents them, and the few that are used have been there since long; one that is missing tells nothing. */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/gpu.h"

enum { NVML_SUCCESS = 0, CLOCK_SM = 1, SENSOR_GPU = 0 };
/* Bits of what NVML calls reasons of clocks. */
enum { REASON_POWER_CAP = 0x4, REASON_HW_SLOWDOWN = 0x8, REASON_SW_THERMAL = 0x20, REASON_HW_THERMAL = 0x40, REASON_POWER_BRAKE = 0x80 };

typedef void *nvml_device;
struct nvml_load { unsigned gpu, memory; };
struct nvml_memory { unsigned long long total, free, used; };

struct nvml {
    void *library;
    int (*shutdown)(void);
    int (*find)(const char *address, nvml_device *out);
    int (*clock)(nvml_device d, int kind, unsigned *mhz);
    int (*clock_most)(nvml_device d, int kind, unsigned *mhz);
    int (*power)(nvml_device d, unsigned *milliwatts);
    int (*power_most)(nvml_device d, unsigned *milliwatts);
    int (*temperature)(nvml_device d, int sensor, unsigned *celsius);
    int (*reasons)(nvml_device d, unsigned long long *bits);
    int (*load)(nvml_device d, struct nvml_load *out);
    int (*memory)(nvml_device d, struct nvml_memory *out);
};

/* ---- the library ---- */

static void find_functions(struct nvml *n)
{
    const struct { const char *name; void *to; } functions[] = {
        {"nvmlShutdown", &n->shutdown}, {"nvmlDeviceGetHandleByPciBusId_v2", &n->find}, {"nvmlDeviceGetClockInfo", &n->clock},
        {"nvmlDeviceGetMaxClockInfo", &n->clock_most}, {"nvmlDeviceGetPowerUsage", &n->power},
        {"nvmlDeviceGetEnforcedPowerLimit", &n->power_most}, {"nvmlDeviceGetTemperature", &n->temperature},
        {"nvmlDeviceGetCurrentClocksThrottleReasons", &n->reasons}, {"nvmlDeviceGetUtilizationRates", &n->load},
        {"nvmlDeviceGetMemoryInfo", &n->memory}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *f = dlsym(n->library, functions[i].name);
        memcpy(functions[i].to, &f, sizeof f);
    }
}

enum status nvml_open(struct nvml **out, const char *path, struct error *err)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return error_set(err, CANNOT, "NVIDIA's management library '%s' is not there", path);
    struct nvml *n = xcalloc(1, sizeof *n);
    int (*init)(void);
    void *f = dlsym(library, "nvmlInit_v2");
    memcpy(&init, &f, sizeof f);
    n->library = library;
    find_functions(n);
    const int said = f && n->find ? init() : -1;
    if (said != NVML_SUCCESS) {
        n->shutdown = NULL;
        nvml_close(n);
        return error_set(err, CANNOT, "NVIDIA's management library '%s' cannot be used (%d)", path, said);
    }
    *out = n;
    return OK;
}

void nvml_close(struct nvml *n)
{
    if (!n)
        return;
    if (n->shutdown)
        n->shutdown();
    dlclose(n->library);
    free(n);
}

/* ---- a look ---- */

static double ask(int (*f)(nvml_device, unsigned *), nvml_device d, double unit)
{
    unsigned x = 0;
    return f && f(d, &x) == NVML_SUCCESS ? x * unit : NAN;
}

static double ask_for(int (*f)(nvml_device, int, unsigned *), nvml_device d, int what)
{
    unsigned x = 0;
    return f && f(d, what, &x) == NVML_SUCCESS ? x : NAN;
}

static unsigned slowed_by(unsigned long long bits)
{
    return (bits & (REASON_POWER_CAP | REASON_POWER_BRAKE) ? SLOWED_BY_POWER : 0u) |
           (bits & (REASON_SW_THERMAL | REASON_HW_THERMAL) ? SLOWED_BY_HEAT : 0u) | (bits & REASON_HW_SLOWDOWN ? SLOWED_BY_HARDWARE : 0u);
}

enum status nvml_look(struct nvml *n, struct gpu_state *out, const char *address, struct error *err)
{
    nvml_device d;
    unsigned long long bits = 0;
    struct nvml_load load;
    struct nvml_memory memory;
    const int said = n->find(address, &d);
    if (said != NVML_SUCCESS)
        return error_set(err, CANNOT, "NVIDIA's management library knows no GPU at '%s' (%d)", address, said);
    const bool has_load = n->load && n->load(d, &load) == NVML_SUCCESS, has_memory = n->memory && n->memory(d, &memory) == NVML_SUCCESS;
    out->sm_mhz = ask_for(n->clock, d, CLOCK_SM);
    out->sm_most_mhz = ask_for(n->clock_most, d, CLOCK_SM);
    out->watts = ask(n->power, d, 1e-3);
    out->watts_most = ask(n->power_most, d, 1e-3);
    out->celsius = ask_for(n->temperature, d, SENSOR_GPU);
    out->busy_percent = has_load ? load.gpu : NAN;
    out->used_bytes = has_memory ? (double)memory.used : NAN;
    out->total_bytes = has_memory ? (double)memory.total : NAN;
    out->slowed = n->reasons && n->reasons(d, &bits) == NVML_SUCCESS ? slowed_by(bits) : 0;
    return OK;
}

/* ---- the one that is there ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct nvml *found;

/* Where drivers put it; last by its name alone, as NVIDIA documents it. */
static void find_library(void)
{
    static const char *const places[] = {
        "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1", "/usr/lib64/libnvidia-ml.so.1",
        "/usr/lib/libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1", "libnvidia-ml.so.1"};
    for (size_t i = 0; i < sizeof places / sizeof *places && !found; i++)
        nvml_open(&found, places[i], NULL);
}

enum status gpu_look(struct gpu_state *out, const char *address, struct error *err)
{
    pthread_once(&once, find_library);
    if (!found)
        return error_set(err, CANNOT, "NVIDIA's management library (libnvidia-ml.so.1) is not there");
    return nvml_look(found, out, address, err);
}
