/* What-if: the recorded steps as a graph of host work, launches, streams and waits, run again on paper. The host's time
 * comes from the trace, less the profiler's own cost; a kernel starts when it was launched and its stream is free; the
 * host waits where it called for it. An edit says what a fix takes away, and the step's new length follows: shortening
 * the host in a step that is bound by the device wins nothing, as in life. */
#ifndef HONE_ANALYZE_TRACED_REPLAY_H
#define HONE_ANALYZE_TRACED_REPLAY_H

#include "analyze/traced/view.h"

enum { KEEP_ALL = 255 };

/* What a fix changes. */
struct edit {
    uint8_t *host;          /* (n_host) the part of a call's own time that stays, KEEP_ALL: all. At 0 a wait is no wait */
    float *device;          /* (n_device) factor of a device event's length; at 0 it is not launched */
    double added_ns;        /* host work that the fix adds, per step */
    double gap_limit_ns;    /* the longest time between two calls outside of all ops; INFINITY: as recorded */
    double comm_factor;     /* on the time that the host waits for collectives of its own threads; 1: as it is */
    double gap_left_ns;     /* what stays of one that is many times as long */
    double host_factor;     /* on the time of ops and calls and of usual gaps between them; 1: as it is */
    double device_factor;
};

enum item_effect { EFFECT_NONE, EFFECT_LAUNCH, EFFECT_WAIT };

struct replay_item {        /* a call of the host begins or ends */
    int64_t ns;             /* recorded time of the host since the item before */
    int64_t comm_ns;        /* of it, waiting for a collective that another thread works on */
    int32_t event;          /* whose begin or end this is; -1: the end of the recorded steps */
    int32_t owner;          /* the op or call in which the time was spent; -1: in none, on the way to `event` */
    float overhead;         /* how many times the profiler's cost of an event lies in that time */
    uint8_t effect;
    bool loader;            /* the time was spent waiting for data */
};

/* The profiler works before and behind every event that it records, on the same core and at the same speed as the code
 * around it. So it takes a part of every short stretch of host time, and a bounded time of a long one. */
struct replay_cost {
    double left;            /* of a short stretch is the program's own; the rest is the profiler's */
    double scale;           /* on all of the host's time, when it was known to be slower or faster than while recorded; usually 1 */
    double loader;          /* on the time spent waiting for data; usually 1 */
};

struct spans {
    struct span *at;                        /* (n) by start, apart from each other */
    int n;
};

struct replay_cold {        /* an op or call that took long because the process did something for the first time */
    int32_t event;
    int64_t ns;             /* without what is inside */
};

struct replay {
    const struct view *v;
    struct replay_item *items;
    int32_t n_items;
    int32_t *waits_for;     /* (n_device) a device event of another stream that this one waited for; -1 */
    int16_t *device_of;     /* (n_tracks) streams: the first stream of the same device */
    double *busy_ns, *work_ns;      /* (n_tracks) by device, of all replayed steps as recorded: time with work on some stream; work of
                                       all streams */
    double all_busy_ns, all_work_ns;        /* the same of all devices together: time with work on some device */
    bool linked;            /* some device event's launch is in the trace */
    int first_step, end_step;       /* of the view, that are replayed */
    double n_steps;                 /* how many those are; below 1 where one is so long that only its middle is replayed */
    int64_t start_ns, end_ns;       /* of those steps */
    struct spans gaps;              /* between them, where marks are missing: part of no step */
    int64_t span_ns;                /* the host's time in those steps: from start to end without the gaps */
    bool *training;         /* (n_tracks) host threads whose calls make the step */
    int32_t n_ops;          /* host ops in the replayed steps, of those threads */
    double events;          /* recorded host events per step */
    double typical_gap_ns;  /* usual time between two ops, outside of both */
    double launch_ns;       /* usual length of a launch call */
    struct replay_cold *cold;       /* (n_cold) of the whole trace, by event */
    int32_t n_cold;
    int cold_steps;         /* of the view, from its first on */
    bool all_cold;          /* there are no others; else those are not replayed */
    struct replay_cost cost;        /* what of the host's recorded time is its own; see replay_calibrate */
};

struct replay_result {      /* per step, in ns */
    double untouched_ns;    /* of device_ns, what an edit leaves alone */
    double step_ns, host_ns, device_ns, wait_ns;   /* host: without waits; device: some device is busy, as much of
                                                      the recorded time as is left of their work */
};

/* Memory is bounded: of long traces a run of consecutive steps from the middle is taken. */
enum status replay_init(struct replay *r, const struct view *v, struct error *err);
void replay_release(struct replay *r);
int replay_cold_steps(const struct view *v);    /* at the start */
bool replay_is_cold(const struct replay *r, int32_t host);
bool replay_covers(const struct replay *r, int64_t at_ns);        /* the moment lies in the replayed steps */
bool replay_has(const struct replay *r, int32_t device_index);    /* the device event is part of the replayed steps */
/* `e` NULL: as it was. */
struct replay_result replay_run(const struct replay *r, const struct edit *e);

/* Of the host's time before an item, what is the program's own, waits for collectives left out. */
double replay_own_ns(const struct replay *r, const struct replay_item *item);
/* Of a stretch outside of all ops, what is the program's own even if the profiler took all that it may. */
double replay_stretch_ns(const struct replay_item *item);

void edit_init(struct edit *e, const struct view *v);
void edit_release(struct edit *e);
void edit_add(struct edit *to, const struct view *v, const struct edit *more);     /* both fixes */

/* Sets r->cost: by the time of a step without the profiler where it is known (0: not), else by what is usual. `low` and
 * `high` get the ends of what the profiler's cost may be; equal when the time is known. */
void replay_calibrate(struct replay *r, double step_ns, struct replay_cost *low, struct replay_cost *high);

#endif
