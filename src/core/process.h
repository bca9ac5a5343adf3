/* This process as the system sees it. */
#ifndef HONE_CORE_PROCESS_H
#define HONE_CORE_PROCESS_H

#include <limits.h>
#include <stdbool.h>

/* The folder that bin/ or lib/ is in, where this program, or libhone in another one, lies; without a slash at its end. */
bool process_root(char out[PATH_MAX]);
/* lib/hone/FILE in it; false: it is not there. */
bool process_installed(char out[PATH_MAX], const char *file);

double process_peak_bytes(void);        /* the most memory that was resident; 0: unknown */
void process_reset_peak(void);          /* count the peak from now on, where the system can */

double process_preemptions(void);       /* times that a thread was taken off its core against its will, so far */
/* How long its threads were ready to run and had no core, so far, all together; -1: not known. */
double process_delayed_s(void);
/* For a thread that prepares something ahead: it may wait for a core that this process has itself, and holds nobody up by that. It does not count there. */
void process_work_beside(const char *as);                       /* a short name, which the system shows, too */

#endif
