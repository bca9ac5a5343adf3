/* A program that hone starts and stays beside: its streams, its signals and what it ends with are its own. */
#ifndef HONE_CLI_WATCH_CHILD_H
#define HONE_CLI_WATCH_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/error.h"

struct child_setting { const char *name, *value; };     /* of the environment */

struct child {
    pid_t pid;
    int code;                   /* once it has ended: as a shell has it, 128 + the signal for one that was killed */
    int signal;                 /* 0: it ended by itself */
};

/* Starts command (NULL at its end), found by PATH. With quiet_stdout what it prints goes to stderr. From then on signals that others send to
 * hone are sent on to it; those of the terminal reach it without us. */
enum status child_start(struct child *c, char *const *command, const struct child_setting *settings, int n, bool quiet_stdout, struct error *err);
bool child_runs(struct child *c);
/* Ends hone as the program was ended, where Ctrl-C did that: a shell's loop goes on behind a command that has merely ended. Else it returns. */
void child_die_alike(const struct child *c);

#endif
