/* Other work on this machine: how long threads of this process were ready to run and had no core. */
#ifndef HONE_CORE_DELAY_H
#define HONE_CORE_DELAY_H

#include <stdbool.h>

struct delay {
    double start_s, delayed_s;
};
struct delay delay_begin(void);
/* Since then, of the time of `lanes` threads; below 0: not known. */
double delay_share(const struct delay *d, int lanes);
/* Is what threads wait for other work? `lanes` threads that are more than the cores wait for each other. */
bool delay_is_of_others(int lanes);

/* A sentence, where a share is worth one, or "". */
enum { DELAY_WORDS = 160 };
bool delay_is_much(double share);
bool delay_warning(double share, char out[DELAY_WORDS]);

#endif
