/* Choices among ways to do a piece of work, as they were timed once: kept for the life of the process, and between processes in
 * $XDG_CACHE_HOME/hone/choices.json or ~/.cache/hone/choices.json.
 *
 * Ways differ in their last bits, so a choice must not change from one run to the next: what is remembered is used and never
 * timed again, and what cannot be remembered must not be used. */
#ifndef HONE_CORE_CHOICES_H
#define HONE_CORE_CHOICES_H

#include <stdbool.h>

#include "core/error.h"

struct choice {
    const char *key;                    /* the work, the machine and all else that the times depend on */
    const char *const *variants;        /* the ways' names, NULL at the end; the first is what is done without a choice */
    int variant;                        /* the one that was chosen; -1: not known */
    double us, first_us;                /* one run of the first, when it was timed, and the share of it that the chosen one took beside it; us <= first_us */
};

/* Fills in those of list[0 .. n) that are remembered. Returns how many are not: their variant is -1. Counts as use: what
 * is recalled now and then does not fall out of a full file. */
int choices_recall(struct choice *list, int n);

/* Remembers list[0 .. n), each with a variant and times above 0. One that another thread or process has remembered meanwhile
 * stays, and is put into the list. Fails where the file cannot be written; with n 0 that is all that is tried. */
enum status choices_remember(struct choice *list, int n, struct error *err);

/* What is not known by now is done the first way as long as this process lives: a file that can be read or written only sometimes must
 * not make two runs of one process differ. */
void choices_settle(const struct choice *list, int n);

/* Timing takes seconds, and somebody may want to see that: `watch` is told when so many of the choices that must be timed now have
 * been, from 0 to all of them. One for the process, set while nothing is timed; NULL: nobody. */
typedef void choices_watch_fn(void *context, int done, int total);
void choices_watch(choices_watch_fn *watch, void *context);
/* For who times them. */
void choices_tell(int done, int total);

#endif
