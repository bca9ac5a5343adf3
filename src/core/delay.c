/* Delay by other work; see delay.h. */
#include "core/delay.h"

#include <stdio.h>

#include "core/clock.h"
#include "core/process.h"
#include "core/system.h"

static const double MUCH = 0.05;

struct delay delay_begin(void) { return (struct delay){clock_s(), process_delayed_s()}; }

double delay_share(const struct delay *d, int lanes)
{
    const double delayed_s = process_delayed_s(), seconds = clock_s() - d->start_s;
    return d->delayed_s < 0 || delayed_s < d->delayed_s || !(seconds > 0) ? -1 : (delayed_s - d->delayed_s) / seconds / lanes;
}

bool delay_is_of_others(int lanes) { return lanes <= system_cores(sched_getaffinity); }

bool delay_is_much(double share) { return share > MUCH; }

bool delay_warning(double share, char out[DELAY_WORDS])
{
    *out = 0;
    if (delay_is_much(share))
        snprintf(out, DELAY_WORDS, "other work took the cores for %.0f %% of the time while this was measured; measure again when the machine is quiet",
                 100 * share);
    return *out;
}
