/* How a run begins: its program, its folder, what a checkpoint carried; and how it ends; see loop_int.h. */
#include <stdlib.h>
#include <unistd.h>

#include "core/arena.h"
#include "train/loop_int.h"

/* What rank 0 has read of a checkpoint, or begun with, is what all have. */
static enum status share_start(struct loop *l, enum status st, struct carried *carried, struct error *err)
{
    struct node_sums *own = carried->nodes;
    st = loop_agree(l, st, err);
    if (st == OK)
        st = dist_broadcast(l->dist, &l->first_step, sizeof l->first_step, err);
    if (st == OK)
        st = dist_broadcast(l->dist, carried, sizeof *carried, err);
    carried->nodes = own;                       /* only rank 0 logs them */
    return st == OK ? ranks_share_state(&l->run, err) : st;
}

/* The folder last, and in it the files of a new run last: what fails before leaves nothing behind. */
static enum status open_folder(struct loop *l, const struct config *given, enum status st, struct error *err)
{
    const struct config *c = &l->run.config;
    const char *out = l->options->out;
    struct carried carried = {.nodes = &l->nodes};
    if (st == OK && loop_leads(l))
        st = folder_lock(&l->lock, l->options, given, err);
    if (st == OK && l->options->resume && loop_leads(l))
        st = state_resume(&l->run, out, &l->first_step, &carried, l->checkpoint, err);
    st = share_start(l, st, &carried, err);
    if (st == OK)
        st = model_run_loader(&l->loader, &l->run, l->first_step, (int)c->data.workers, (int)c->data.prefetch, err);
    if (st == OK && loop_leads(l))
        checkpoint_sweep(out);              /* a run that is done saves no more */
    const bool done = l->options->resume && l->first_step >= l->run.total_steps;       /* nothing is trained with this config */
    if (st == OK && loop_leads(l) && !done)
        st = folder_write_config(out, c, err);
    if (st == OK && done && *l->run.changed)
        loop_warn(l, "the run is done already: nothing is trained, and its config stays what it was");
    const int64_t resumed = l->options->resume ? l->first_step : -1;
    const bool early = carried.since_log.steps && l->first_step < l->run.total_steps;
    if (st == OK && loop_leads(l))
        st = metrics_open(&l->metrics, out, resumed, early, l->options->tensorboard, err);
    if (st == OK && loop_leads(l))
        st = node_log_open(&l->node_log, &l->run, out, resumed, early, err);
    if (st == OK && loop_leads(l))
        st = loop_open_samples(l, resumed, err);
    st = loop_agree(l, st, err);
    l->since_log.sum = carried.since_log;
    if (l->run.steps_per_epoch && carried.since_epoch.steps <= l->first_step % l->run.steps_per_epoch)     /* else of before there were epochs */
        l->since_epoch.sum = carried.since_epoch;
    l->skipped = carried.skipped;
    l->owes = carried.owes;
    l->forgetting = carried.forgetting;
    if (st == OK && !l->options->resume)
        forgetting_init(&l->forgetting, &l->run);
    if (st == OK && l->forgetting.rows)
        loop_write_forgetting(l);            /* rows that came after the checkpoint go */
    l->step = l->first_step;
    l->saved = l->options->resume ? l->first_step : -1;
    l->logged = l->evaluated = -1;
    return st;
}

/* Bits hang on the number of threads: where the config leaves it open, a run that goes on keeps it. */
static enum status open_run(struct loop *l, const struct config *c, struct dataset *d, struct error *err)
{
    struct config *settled = xcalloc(1, sizeof *settled);
    *settled = *c;
    if (!c->model.vocab)
        settled->model.vocab = dataset_vocab(d);
    if (l->options->resume)
        train_resume_threads(settled, l->options->out, l->threads_words);
    else
        train_settle_threads(settled, l->threads_words);
    settled->model.vocab = c->model.vocab;
    const enum status st = ranks_open_run(&l->run, settled, d, err);
    free(settled);
    return st;
}

static enum status check_recording(const struct loop *l, struct error *err)
{
    const long long first = (long long)l->options->record_first, last = (long long)l->run.total_steps;
    return first <= last ? OK : error_set(err, BAD_INPUT, "--profile begins at step %lld, and the run ends behind step %lld", first, last);
}

enum status loop_open(struct loop *l, const struct config *c, struct error *err)
{
    struct dataset *dataset;
    enum status st = ranks_compare_configs(c, err);
    if (st == OK)
        st = division_check(c, err);
    if (st == OK && l->options->sample_tokens && c->model.arch == ARCH_REGIONS)
        st = error_set(err, BAD_INPUT, "--samples: a model of arch regions writes no text");
    if (st == OK && loop_leads(l))
        st = folder_check(l->options, err);
    if (st == OK && l->options->record_first && loop_leads(l))
        st = folder_check_trace(l->options->out, err);
    st = loop_agree(l, st, err);
    if (st == OK)
        st = loop_agree(l, dataset_open(&dataset, c, err), err);
    if (st == OK)
        st = ranks_compare(c, dataset, err);
    if (st == OK)
        st = open_run(l, c, dataset, err);
    if (st == OK)
        st = check_recording(l, err);
    if (st != OK)
        return st;
    if (!l->options->resume && loop_leads(l))
        st = model_run_load_init(&l->run, err);
    if (st == OK)
        node_sums_init(&l->nodes, &l->run);
    return open_folder(l, c, st, err);
}

void loop_close(struct loop *l)
{
    loader_free(l->loader);
    free(l->gpus);
    node_sums_release(&l->nodes);
    model_run_close(&l->run);
    if (l->lock >= 0)
        close(l->lock);
}
