/* Steps of a config, measured and judged, and the folder of their report. */
#ifndef HONE_LIB_PROFILE_H
#define HONE_LIB_PROFILE_H

#include "prove/situation.h"

struct dist;
struct profile_options {
    int steps;                              /* of each kind: with and without events */
    struct dist *ranks;                     /* NULL: alone */
    const volatile sig_atomic_t *stop;      /* as in measure_steps, like the next two; may be NULL */
    void (*progress)(void *context, int done, int total);       /* told on rank 0 */
    void *context;
};

/* On every rank; rank 0 has the profile, and remembers what the steps proved of the machine's peaks. */
enum status profile_measure(struct situation *out, const struct config *c, const struct profile_options *options, struct error *err);

/* Writes all files of the report into the folder, as report_folder_publish does. */
enum status profile_publish(const struct situation *s, const char *folder, struct error *err);

#endif
