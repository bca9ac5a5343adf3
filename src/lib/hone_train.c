/* Runs of libhone that are in a folder, and losses of trained models. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/notice.h"
#include "lib/hone_int.h"
#include "train/train.h"

struct caller {
    hone_step_fn *on_step;
    void *context;
    volatile sig_atomic_t stop;
};

static void on_step(void *context, int64_t step, double loss)
{
    struct caller *caller = context;
    const locale_t ours = hone_call_out();
    if (caller->on_step && caller->on_step(caller->context, &(hone_step){step, loss, NAN, NAN}))
        caller->stop = 1;
    hone_leave(ours);
}

static void on_warning(void *context, const char *text)
{
    (void)context;
    notice_tell("%s", text);
}

static void tell_result(hone_result *out, const struct train_result *r)
{
    *out = (hone_result){.steps = r->steps, .loss = r->loss, .val_loss = r->val_loss, .samples_per_s = r->samples_per_s,
                         .tokens_per_s = r->tokens_per_s, .stopped = r->interrupted};
    snprintf(out->checkpoint, sizeof out->checkpoint, "%s", r->checkpoint);
}

hone_status hone_train(const hone_config *config, const char *folder, int resume, hone_step_fn *step_fn, void *context, hone_result *result)
{
    struct caller caller = {.on_step = step_fn, .context = context};
    const struct train_options options = {.out = folder, .resume = resume != 0, .stop = &caller.stop};
    const struct train_observer observer = {.context = &caller, .on_step = on_step, .on_warning = on_warning};
    struct train_result made;
    struct error err;
    if (!config || !folder)
        return hone_missing(config ? "the folder of the run" : "the config");
    const locale_t theirs = hone_compute_begin();
    const enum status st = train_run(&config->c, &options, &observer, &made, &err);
    hone_compute_end(theirs);
    if (st == OK && result)
        tell_result(result, &made);
    return hone_end(st, &err);
}

hone_status hone_evaluate(hone_loss *out, const char *checkpoint, const char *const *settings, int n_settings)
{
    const struct eval_options options = {.sets = settings, .n_sets = n_settings > 0 ? n_settings : 0};
    struct error err;
    if (!out || !checkpoint || (n_settings > 0 && !settings))
        return hone_missing(!out ? "where the loss goes" : !checkpoint ? "the checkpoint" : "the list of settings");
    if (hone_missing_in("setting", settings, n_settings) != HONE_OK)
        return HONE_BAD_INPUT;
    struct eval_result *r = malloc(sizeof *r);
    const locale_t theirs = hone_compute_begin();
    const enum status st = r ? eval_run(checkpoint, &options, r, &err) : error_no_memory(&err, "the result", sizeof *r);
    hone_compute_end(theirs);
    if (st == OK)
        *out = (hone_loss){r->all.loss, r->all.entropy, r->all.tokens, r->all.bytes};
    free(r);
    return hone_end(st, &err);
}
