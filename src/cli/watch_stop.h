/* hone watch --stop: a program that was told to end, and may not. */
#ifndef HONE_CLI_WATCH_STOP_H
#define HONE_CLI_WATCH_STOP_H

#include <stdbool.h>
#include <sys/types.h>

#include "cli/watch_family.h"

struct watch_stop {
    int told, ended;            /* tenths of a second since all ranks were told to end, and since they came to their last word; 0: not yet */
    int by_us;                  /* the same since the program was ended by a signal */
    struct family family;       /* then: it and what it started. A shell that is ended leaves its children behind, and they would train on */
};

/* Every tenth of a second while the program runs, or some of what was ended lives. A thread of its own may wait for something, or it may take the stop for an error of one batch: its patience over, it is ended. */
void watch_stop_look(struct watch_stop *s, const char *recording, pid_t pid);
bool watch_stop_waits(const struct watch_stop *s);
void watch_stop_release(struct watch_stop *s);
/* What the ranks have said, and nothing is done about it: the program has ended. */
void watch_stop_read(struct watch_stop *s, const char *recording);

#endif
