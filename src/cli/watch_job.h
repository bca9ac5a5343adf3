/* From what a watched program left behind to its diagnosis and its report. */
#ifndef HONE_CLI_WATCH_JOB_H
#define HONE_CLI_WATCH_JOB_H

#include "cli/trace_job.h"
#include "watch/watch.h"

struct watch_job {
    struct arena arena;
    struct watched watched;
    struct trace_job shapes, stacks;    /* what is diagnosed; and where its lines come from */
    bool made, published;
    enum status failed;                 /* it could not be made, and that was said: it is not tried again */
};

/* Diagnoses the ranks that came as far as a recording with shapes: there must be one. Released in any case. */
enum status watch_job_make(struct watch_job *j, const char *recording, const char *command, struct error *err);
enum status watch_job_publish(struct watch_job *j, const char *folder, struct error *err);
void watch_job_release(struct watch_job *j);

/* Why there is nothing to diagnose, and what would be right. `needed`: steps that everything takes. */
enum status watch_job_nothing(const char *recording, const char *command, int64_t needed, const char *step_call, struct error *err);

#endif
