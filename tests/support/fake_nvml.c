/* A management library of a GPU that does not exist, as a shared library: hot, at its power limit, and silent about its load. */
#include <stddef.h>
#include <string.h>

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **out);
int nvmlDeviceGetClockInfo(void *d, int kind, unsigned *mhz);
int nvmlDeviceGetMaxClockInfo(void *d, int kind, unsigned *mhz);
int nvmlDeviceGetPowerUsage(void *d, unsigned *milliwatts);
int nvmlDeviceGetEnforcedPowerLimit(void *d, unsigned *milliwatts);
int nvmlDeviceGetTemperature(void *d, int sensor, unsigned *celsius);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *d, unsigned long long *bits);
int nvmlDeviceGetUtilizationRates(void *d, unsigned load[2]);
int nvmlDeviceGetMemoryInfo(void *d, unsigned long long memory[3]);

static int gpu, clock_mhz = 1980;

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }

int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **out)
{
    *out = &gpu;
    return strcmp(address, "0000:1b:00.0") ? 6 : 0;
}

/* Lower at every look. */
int nvmlDeviceGetClockInfo(void *d, int kind, unsigned *mhz)
{
    *mhz = (unsigned)clock_mhz;
    clock_mhz -= 300;
    return d == &gpu && kind == 1 ? 0 : 2;
}

int nvmlDeviceGetMaxClockInfo(void *d, int kind, unsigned *mhz) { return *mhz = 1980, d == &gpu && kind == 1 ? 0 : 2; }
int nvmlDeviceGetPowerUsage(void *d, unsigned *milliwatts) { return *milliwatts = 698500, d == &gpu ? 0 : 2; }
int nvmlDeviceGetEnforcedPowerLimit(void *d, unsigned *milliwatts) { return *milliwatts = 700000, d == &gpu ? 0 : 2; }
int nvmlDeviceGetTemperature(void *d, int sensor, unsigned *celsius) { return *celsius = 83, d == &gpu && sensor == 0 ? 0 : 2; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *d, unsigned long long *bits) { return *bits = 0x4 | 0x20, d == &gpu ? 0 : 2; }
int nvmlDeviceGetUtilizationRates(void *d, unsigned load[2]) { return load[0] = load[1] = 0, d == NULL ? 0 : 3; }

int nvmlDeviceGetMemoryInfo(void *d, unsigned long long memory[3])
{
    memory[0] = 150000000000ULL;
    memory[1] = 149000000000ULL;
    memory[2] = 1000000000ULL;
    return d == &gpu ? 0 : 2;
}
