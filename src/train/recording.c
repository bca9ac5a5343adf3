/* Records a window of steps of a real run into OUT/trace.json. */
#include <stdio.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/owned.h"
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

/* The list of the folder with this trace; both: and those before it. */
static enum status list_trace(const char *out, const struct owned *before, const struct owned_file *fresh, bool both, struct error *err)
{
    struct owned now = {0};
    owned_add_all(&now, before, TRACE_OWNER, false);
    if (both)
        owned_add_all(&now, before, TRACE_OWNER, true);
    owned_add(&now, fresh);
    const enum status st = owned_write(&now, out, err);
    owned_release(&now);
    return st;
}

/* Known as the run's own before it is there, so that a later recording may replace it also after a kill. */
static enum status place(const char *out, const char *fresh, const char *path, struct error *err)
{
    struct owned before;
    struct owned_file file = {.report = TRACE_OWNER, .name = "trace.json"};
    enum status st = fs_hash(fresh, &file.bytes, &file.xxh3, err);
    if (st == OK)
        st = owned_read(&before, out, err);
    if (st != OK)
        return st;
    st = list_trace(out, &before, &file, true, err);
    if (st == OK && rename(fresh, path))
        st = error_errno(err, "cannot write '%s'", path);
    if (st == OK)
        st = list_trace(out, &before, &file, false, err);
    owned_release(&before);
    return st;
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
    if (st == OK)
        st = place(out, fresh, path, err);
    if (st != OK)
        unlink(fresh);
    trace_free(r->trace);
    *r = (struct recording){0};
    return st;
}

enum status recording_after(struct recording *r, struct model_run *run, int64_t step, const char *out, struct error *err)
{
    return r->trace && step >= r->last ? recording_finish(r, run, out, err) : OK;
}
