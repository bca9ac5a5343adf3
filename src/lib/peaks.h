/* The measured ceilings of a device: recalled, or measured now and remembered; and measured again where a step proved them wrong. */
#ifndef HONE_LIB_PEAKS_H
#define HONE_LIB_PEAKS_H

#include "backend/backend.h"
#include "config/config.h"
#include "core/error.h"
#include "core/peaks.h"

/* The peaks of this machine with the threads of a configuration; measures them when they are not known yet.
 * *measured (may be NULL): they were not known, and have just been measured. */
enum status known_peaks(const struct config *c, struct peaks *out, bool *measured, struct error *err);
/* Measures them once more on the threads of a config (struct config *), remembers them, and raises *best to them. */
void measure_peaks_again(void *config, struct peaks *best);

/* Measuring takes seconds, and asks nobody whether to go on: `watch` is told before it, and when it is done (b is NULL). One for the process, set while nothing is measured; NULL: nobody. */
typedef void peaks_watch_fn(const struct backend *b, bool again);
void known_peaks_watch(peaks_watch_fn *watch);

#endif
