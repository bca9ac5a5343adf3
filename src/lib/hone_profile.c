/* Profiles of libhone. */
#include <stdlib.h>

#include "lib/hone_int.h"
#include "lib/profile.h"
#include "report/folder.h"
#include "report/report.h"

static enum status write_json(const void *what, FILE *to, struct error *err)
{
    const struct situation *s = what;
    return report_write_json(&s->p, to, err);
}

static enum status check(int steps, const char *folder, char name[REPORT_FOLDER_MAX], struct error *err)
{
    if (steps < 1 || steps > 100000)
        return error_set(err, BAD_INPUT, "steps is %d; it must be 1 to 100000", steps);
    const enum status st = folder ? report_folder_name(name, folder, err) : OK;
    return st == OK && folder ? report_folder_check(name, REPORT_PROFILE, err) : st;
}

/* What was measured is kept in *s, which is released in any case. */
static hone_status publish(struct situation *s, const char *folder, char **json)
{
    struct error err;
    const locale_t theirs = hone_enter();
    const enum status st = folder ? profile_publish(s, folder, &err) : OK;
    hone_leave(theirs);
    const hone_status end = st == OK && json ? hone_text(json, write_json, s) : hone_end(st, &err);
    situation_release(s);
    return end;
}

hone_status hone_profile(const hone_config *config, int steps, const char *folder, char **json)
{
    struct error err;
    char name[REPORT_FOLDER_MAX];
    if (!config)
        return hone_missing("the config");
    struct situation *s = calloc(1, sizeof *s);
    enum status st = s ? check(steps, folder, name, &err) : error_no_memory(&err, "the profile", sizeof *s);
    if (st == OK) {
        const locale_t theirs = hone_compute_begin();
        st = profile_measure(s, &config->c, &(struct profile_options){.steps = steps}, &err);
        hone_compute_end(theirs);
    }
    const hone_status end = st == OK ? publish(s, folder ? name : NULL, json) : hone_end(st, &err);
    free(s);
    return end;
}
