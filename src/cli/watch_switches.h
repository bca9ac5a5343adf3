/* Which switches `hone watch --try` can be told to try. */
#ifndef HONE_CLI_WATCH_SWITCHES_H
#define HONE_CLI_WATCH_SWITCHES_H

#include "core/error.h"

/* Refuses a list "A,B" with a name that the hook does not have, before anything is started; the error has those that it has. */
enum status watch_check_switches(const char *given, struct error *err);

#endif
