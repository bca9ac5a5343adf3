/* Records a window of steps of a real run into OUT/trace.json. */
#include <unistd.h>

#include "train/train_int.h"

void recording_before(struct recording *r, struct model_run *run, int64_t step)
{
    if (!r->first || step < r->first || step > r->last || r->trace)
        return;
    r->trace = trace_new();
    r->recorder = recorder_new(run->train, r->trace, (int32_t)step);
    run->recorder = r->recorder;
    lengths_measure(&run->train_lengths, true);
}

enum status recording_finish(struct recording *r, struct model_run *run, const char *out, struct error *err)
{
    char path[CONFIG_PATH_MAX + 32], fresh[CONFIG_PATH_MAX + 32];
    if (!r->trace)
        return OK;
    run->recorder = NULL;
    lengths_measure(&run->train_lengths, false);
    recorder_free(r->recorder);
    snprintf(path, sizeof path, "%s/trace.json", out);
    snprintf(fresh, sizeof fresh, "%s/.trace.json.hone-tmp", out);
    unlink(fresh);                      /* nothing is written through a link */
    enum status st = trace_write_chrome(r->trace, fresh, run->config.name, err);
    if (st == OK && rename(fresh, path)) {
        st = error_errno(err, "cannot write '%s'", path);
        unlink(fresh);
    }
    trace_free(r->trace);
    *r = (struct recording){0};
    return st;
}

enum status recording_after(struct recording *r, struct model_run *run, int64_t step, const char *out, struct error *err)
{
    return r->trace && step >= r->last ? recording_finish(r, run, out, err) : OK;
}
