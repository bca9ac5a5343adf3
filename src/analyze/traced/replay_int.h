/* Between the files of a replay. */
#ifndef HONE_ANALYZE_TRACED_REPLAY_INT_H
#define HONE_ANALYZE_TRACED_REPLAY_INT_H

#include "analyze/traced/replay.h"

void replay_find_streams(struct replay *r);     /* waits_for, device_of, busy_ns, work_ns, linked */
/* ---- replay_comm.c ---- */

struct spans replay_find_collectives(const struct replay *r);   /* when some collective of the replayed steps was under way; the caller frees */
/* How much of a stretch lies in the spans; stretches come by time, *at is where the last one was. */
int64_t spans_overlap(const struct spans *s, int *at, int64_t from_ns, int64_t to_ns);

/* ---- others ---- */

void replay_find_cold(struct replay *r);        /* cold, cold_steps, all_cold */
void replay_take_out_cold(struct replay *r);    /* out of the items; needs launch_ns */

#endif
