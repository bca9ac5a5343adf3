/* Before its first step a run is set up: data, passes, memory plan, kernels, weights. That may take seconds. Who does it says what
 * it is at, a few times a second or more, and is told whether to go on; so a command can show it and can be stopped. */
#ifndef HONE_CORE_SETUP_H
#define HONE_CORE_SETUP_H

#include <stdbool.h>

#include "core/error.h"

/* `what` is at work now; "": something that is shown in another way; NULL: done with all. Returns false to stop. One for the
 * process, asked by the thread that sets up; NULL: nobody. */
typedef bool setup_watch_fn(void *context, const char *what);
void setup_watch(setup_watch_fn *watch, void *context);

/* For who sets up. After a "no" the work may be left as it is at once: nothing is made of it, because a check follows. */
bool setup_goes_on(const char *what);
enum status setup_check(const char *what, struct error *err);       /* OK, or an error that says that it was stopped */
void setup_done(void);                                              /* with a part that a command may ask for alone */
/* For a thread that was stopped, and has to finish what is made of what it has: it is told to go on, from now on or (false) no longer. */
void setup_insist(bool on);
bool setup_was_stopped(void);                                       /* whether the last answer to this thread was no */

#endif
