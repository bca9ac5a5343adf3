/* A process and all that it started, and they started. */
#ifndef HONE_CLI_WATCH_FAMILY_H
#define HONE_CLI_WATCH_FAMILY_H

#include <stdbool.h>
#include <sys/types.h>

struct relative {
    pid_t pid;
    unsigned long long started;         /* ticks since the machine did: the number alone may come again */
};

struct family {
    struct relative *list;
    int n;
};

/* Adds head and all below it, and below those that are in it already, to what is known. One whose parent has ended before is not found. */
void family_find(struct family *f, pid_t head);
void family_signal(const struct family *f, int signal);
bool family_lives(const struct family *f);      /* any of it */
void family_release(struct family *f);

#endif
