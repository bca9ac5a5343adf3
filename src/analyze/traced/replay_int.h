/* Between the files of a replay. */
#ifndef HONE_ANALYZE_TRACED_REPLAY_INT_H
#define HONE_ANALYZE_TRACED_REPLAY_INT_H

#include "analyze/traced/replay.h"

void replay_find_streams(struct replay *r);     /* waits_for, device_of, busy_ns, work_ns, linked */
void replay_find_cold(struct replay *r);        /* cold, cold_steps, all_cold */
void replay_take_out_cold(struct replay *r);    /* out of the items; needs launch_ns */

#endif
