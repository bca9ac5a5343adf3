/* Setting up, watched; see setup.h. */
#include "core/setup.h"

#include <stddef.h>

static setup_watch_fn *watcher;
static void *watcher_context;
static _Thread_local bool was_stopped;       /* ranks may be threads, and set up at the same time */
static _Thread_local bool insists;

void setup_watch(setup_watch_fn *watch, void *context)
{
    watcher = watch;
    watcher_context = context;
    was_stopped = false;
}

bool setup_goes_on(const char *what)
{
    was_stopped = watcher && !watcher(watcher_context, what) && !insists;
    return !was_stopped;
}

enum status setup_check(const char *what, struct error *err)
{
    return setup_goes_on(what) ? OK : error_stopped(err, "stopped before the first step, while it was set up: %s", what);
}

void setup_done(void)
{
    if (watcher)
        watcher(watcher_context, NULL);
}

void setup_insist(bool on) { insists = on; }

bool setup_was_stopped(void) { return was_stopped; }
