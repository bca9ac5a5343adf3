/* How a GPU is: its clock, heat, power, load and memory, as the management library of NVIDIA's driver tells it. The library comes with
 * the driver and is loaded when it is first asked for; where there is none, everything says so and nothing else changes. */
#ifndef HONE_CORE_GPU_H
#define HONE_CORE_GPU_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

/* Why a clock is held down. */
enum gpu_slowed { SLOWED_BY_POWER = 1, SLOWED_BY_HEAT = 2, SLOWED_BY_HARDWARE = 4 };

/* NAN: this GPU does not tell. */
struct gpu_state {
    double sm_mhz, sm_most_mhz;             /* now, and the highest that it has */
    double watts, watts_most, celsius;
    double busy_percent;                    /* of the last moments, in which a kernel ran */
    double used_bytes, total_bytes;         /* memory, of all processes */
    unsigned slowed;                        /* enum gpu_slowed, together */
};

struct gpu_state gpu_unknown(void);         /* all NAN */

/* The GPU at this address on the PCI bus ("0000:1b:00.0"). CANNOT: there is no such library, or it does not know the GPU. */
enum status gpu_look(struct gpu_state *out, const char *address, struct error *err);

/* Whether the driver lists a GPU that this process may see, and its name; without CUDA or the library, so that it costs nothing. */
enum { GPU_NAME = 96 };
#define GPU_LIST "/proc/driver/nvidia/gpus"
bool gpu_listed(const char *folder, char name[GPU_NAME]);

/* "its power limit", "heat", "its hardware"; with "and" between several. Returns `out`. */
enum { SLOWED_WORDS = 64 };
const char *gpu_slowed_words(unsigned slowed, char out[SLOWED_WORDS]);

/* ---- over a stretch of time ---- */

struct gpu_watch {
    const char *address;                    /* NULL: there is no GPU, or nothing is known of it */
    int looks;
    unsigned slowed;                        /* at any of them */
    double sm_first_mhz, sm_least_mhz, sm_most_mhz;
    double celsius_most, watts_sum, busy_sum, used_most_bytes, total_bytes;
    int watts_known, busy_known;            /* looks that told */
};

void gpu_watch_begin(struct gpu_watch *w, const char *address);         /* address may be NULL: nothing is watched */
bool gpu_watch_look(struct gpu_watch *w, struct gpu_state *seen);        /* seen may be NULL; false: nothing is known */
void gpu_watch_add(struct gpu_watch *w, const struct gpu_state *s);     /* what a look saw */
double gpu_watch_busy_percent(const struct gpu_watch *w);               /* means; NAN: not known */
double gpu_watch_watts(const struct gpu_watch *w);
/* False: it ran at its clock all the time, or nothing is known. Else one sentence that says what happened to it. */
enum { WATCH_WORDS = 256 };
bool gpu_watch_warning(const struct gpu_watch *w, char out[WATCH_WORDS]);

/* ---- for tests ---- */

/* As gpu_look, from the library in this file. */
struct nvml;
enum status nvml_open(struct nvml **out, const char *path, struct error *err);
enum status nvml_look(struct nvml *n, struct gpu_state *out, const char *address, struct error *err);
void nvml_close(struct nvml *n);

#endif
