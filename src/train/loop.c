/* The training loop: steps, logs, evaluation, checkpoints, and what happens when numbers or the user say stop. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/setup.h"
#include "passes/passes.h"
#include "train/train_int.h"

enum { MOST_SKIPS_IN_A_ROW = 100, RUNAWAY_STEPS = 10 };

/* Sums over the steps since the last log or epoch: the loss also over those before a resume, the time not. */
struct window {
    struct loss_sum sum;
    double seconds;
    int64_t steps, wait_ns;
    struct fill fill;
};

struct loop {
    struct model_run run;
    const struct train_options *options;
    const struct train_observer *watch;
    struct metrics *metrics;
    struct node_log *node_log;          /* NULL: nothing is selected */
    struct node_sums nodes;             /* since the last log */
    struct loader *loader;
    int lock;                           /* file descriptor; -1: none */
    int64_t step, first_step;           /* steps done, also by the part of the run before a resume */
    int64_t logged, evaluated, saved;   /* the step of the last one; -1: none yet */
    struct recording recording;
    struct gpu_watch gpu;               /* looked at when a step is logged */
    struct window since_log, since_epoch;
    int unread;                         /* steps whose metrics the host has not read yet */
    struct step_metrics newest;         /* of those it has */
    double seconds, last_loss, val_loss;
    double losses[DOMAINS_MAX];         /* of the domains, at the last evaluation */
    struct forgetting forgetting;
    bool unwritten;                     /* forgetting.json lacks rows */
    int64_t skipped, skipped_in_a_row, wait_ns;
    struct fill filled;                 /* until the last step */
    int runaway;                        /* steps in a row whose loss was far above guessing; RUNAWAY_STEPS: it was said */
    char checkpoint[CONFIG_PATH_MAX];   /* the newest */
    struct dist *dist;                  /* the ranks of this run; NULL: one */
    bool alike;                         /* what ends the run ends it on every rank */
    double rank_wait_s;                 /* waited for other ranks until the last log */
};

/* Ranks stop after the same step. */
static bool stopped(const struct loop *l)
{
    return dist_size(l->dist) > 1 ? l->run.stopping : l->options->stop && *l->options->stop;
}

/* Rank 0 tells, writes and saves; with one rank, that one. */
static bool leads(const struct loop *l) { return dist_rank(l->dist) == 0; }

/* Where one rank has failed, all have. */
static enum status agree(struct loop *l, enum status st, struct error *err)
{
    return ranks_agree(l->dist, st, err);
}

/* ---- telling ---- */

static void tell_start(struct loop *l)
{
    const struct model_run *r = &l->run;
    const struct division v = division_of(&r->config);
    const int64_t rows = (r->config.model.rows ? r->config.model.rows : v.batch) * v.micro_batches * v.ranks;
    char passes[PASSES_TEXT_MAX];
    const struct train_info info = {
        .data = dataset_describe(r->dataset), .device = r->backend->name, .device_name = r->backend->device,
        .parameters = program_parameters(exec_program(r->train)), .total_steps = r->total_steps,
        .first_step = l->first_step, .steps_per_epoch = r->steps_per_epoch,
        .tokens_per_step = rows * r->config.model.seq, .entropy = dataset_entropy(r->dataset),
        .domains = &l->forgetting, .threads = r->backend->lanes, .memory = exec_memory(r->train), .passes = train_passes_text(r->places, passes), .init_tensors = r->init_tensors, .init_title = r->init_title, .init_types = r->init_types};
    if (l->watch->on_start)
        l->watch->on_start(l->watch->context, &info);
}

static void warn(struct loop *l, const char *text)
{
    if (l->watch->on_warning)
        l->watch->on_warning(l->watch->context, text);
}

static int64_t samples_per_step(const struct loop *l)
{
    return l->run.config.train.batch_size * l->run.config.train.accumulate;
}

static double mean_loss(const struct window *w)
{
    return w->sum.finite_steps ? w->sum.loss / (double)w->sum.finite_steps : NAN;
}

static bool ends_stage(const struct loop *l) { return l->run.stage_steps && l->step % l->run.stage_steps == 0; }

/* What is logged is of one stage. */
static bool is_log_step(const struct loop *l) { return l->step % l->run.config.log.every == 0 || ends_stage(l); }

/* What the ranks needed, each by itself, since the last log. */
static enum status add_ranks(struct loop *l, struct train_log *log, int64_t steps, double seconds)
{
    const double waited = (double)dist_wait_ns(l->dist) * 1e-9 - l->rank_wait_s;
    struct ranks_times t;
    struct error unsaid;
    log->ranks = dist_size(l->dist);
    if (log->ranks == 1)
        return OK;
    l->rank_wait_s += waited;
    const enum status st = ranks_gather_times(l->dist, seconds, waited, (double)steps, &t, &unsaid);
    log->rank_wait_share = waited / seconds;
    log->compute_least_s = t.compute_least_s;
    log->compute_most_s = t.compute_most_s;
    log->slowest_rank = t.slowest;
    return st;
}

/* A log between two regular ones, because the run ends here, does not begin a new window: a resume goes on in it. */
static void log_step(struct loop *l)
{
    const struct window *w = &l->since_log;
    if (!w->steps || l->logged == l->step)
        return;
    l->logged = l->step;
    const double rate = (double)w->steps / w->seconds, samples = rate * (double)samples_per_step(l);
    const int stage = model_run_stage(&l->run, l->step);
    struct train_log log = {
        .step = l->step, .epoch = model_run_epoch(&l->run, l->step), .loss = mean_loss(w), .stage = stage,
        .domain = dataset_name(dataset_domain(l->run.dataset, stage)),
        .lr = l->newest.lr, .grad_norm = l->newest.norm,
        .steps_per_s = rate, .steps_per_s_overall = (double)(l->step - l->first_step) / l->seconds,
        .samples_per_s = samples, .tokens_per_s = w->fill.positions * dist_size(l->dist) / w->seconds,
        .padding_share = fill_padding(&w->fill), .seconds = l->seconds,
        .data_wait_share = (double)w->wait_ns * 1e-9 / w->seconds, .skipped = l->skipped, .nodes = l->nodes.newest,
        .n_nodes = l->nodes.n_newest};
    log.has_gpu = gpu_watch_look(&l->gpu, &log.gpu);
    l->last_loss = log.loss;
    if (add_ranks(l, &log, w->steps, w->seconds) != OK)
        return;                             /* whoever is lost is named at the next step */
    if (is_log_step(l))
        l->since_log = (struct window){0};
    if (!leads(l))
        return;
    metrics_log(l->metrics, &log);
    node_log_write(l->node_log, &l->run, &l->nodes, &log, metrics_board(l->metrics));
    if (is_log_step(l))
        node_sums_reset(&l->nodes);
    if (l->watch->on_log)
        l->watch->on_log(l->watch->context, &log);
}

static void end_epoch(struct loop *l)
{
    const struct window *w = &l->since_epoch;
    const struct train_epoch e = {.epoch = model_run_epoch(&l->run, l->step), .loss = mean_loss(w),
                                  .seconds = w->seconds,
                                  .samples_per_s = (double)(w->steps * samples_per_step(l)) / w->seconds};
    l->since_epoch = (struct window){0};
    if (l->watch->on_epoch)
        l->watch->on_epoch(l->watch->context, &e);
}

/* ---- evaluation and checkpoints ---- */

static bool due(const struct loop *l, struct interval every)
{
    const int64_t steps = interval_steps(every, l->run.steps_per_epoch);
    return steps > 0 && l->step % steps == 0;
}

static enum status evaluate(struct loop *l, struct error *err)
{
    if (!l->run.eval || l->evaluated == l->step)
        return OK;
    const int stage = model_run_stage(&l->run, l->step);
    const enum status st = model_run_evaluate(&l->run, l->options->stop, l->losses, err);
    if (st != OK || stopped(l))
        return st;
    l->val_loss = l->losses[stage];
    l->evaluated = l->step;
    if (!leads(l))
        return OK;
    metrics_eval(l->metrics, l->step, l->run.dataset, stage, l->losses);
    if (l->run.stage_steps && l->watch->on_domains)
        l->watch->on_domains(l->watch->context, l->step, l->losses);
    else if (!l->run.stage_steps && l->watch->on_eval)
        l->watch->on_eval(l->watch->context, l->step, l->val_loss);
    return OK;
}

/* What cannot be written in mid-run is written later; see save_or_warn. */
static void write_forgetting(struct loop *l)
{
    struct error why;
    if (!leads(l))
        return;
    l->unwritten = forgetting_write(&l->forgetting, &l->run.config, l->options->out, &why) != OK;
    if (l->unwritten)
        warn(l, why.text);
}

/* Before the first step, and where a stage has ended: the row of losses that is due, unless it is known from before a resume. */
static enum status pass_border(struct loop *l, struct error *err)
{
    struct forgetting *f = &l->forgetting;
    enum status st = OK;
    if (!ends_stage(l))
        return OK;
    if (f->rows == l->step / l->run.stage_steps)
        st = evaluate(l, err);
    if (f->rows == l->step / l->run.stage_steps && st == OK && l->evaluated == l->step) {
        forgetting_add(f, l->losses);
        write_forgetting(l);
    }
    return st;
}

static void tell_stage(const struct loop *l)
{
    if (l->run.stage_steps && l->step < l->run.total_steps && !stopped(l) && l->watch->on_stage)
        l->watch->on_stage(l->watch->context, model_run_stage(&l->run, l->step + 1));
}

static enum status write_checkpoint(struct loop *l, struct error *err)
{
    const struct carried carried = {l->since_log.sum, l->since_epoch.sum, l->skipped, l->forgetting, &l->nodes};
    return leads(l) ? state_save(&l->run, l->options->out, l->step, &carried, l->checkpoint, err) : OK;
}

/* Moments that ranks divide are collected by all, so all know whether it went well: they try again together, or not. */
static enum status save(struct loop *l, struct error *err)
{
    const bool divided = moments_are_divided(&l->run);
    if (l->saved == l->step)
        return OK;
    enum status st = divided ? moments_collect(&l->run, err) : OK;
    if (st == OK)
        st = write_checkpoint(l, err);
    if (divided)
        st = agree(l, st, err);
    if (st != OK)
        return st;
    l->saved = l->step;
    if (leads(l) && l->watch->on_checkpoint)
        l->watch->on_checkpoint(l->watch->context, l->step, l->checkpoint);
    return OK;
}

/* A checkpoint in mid-run that fails (a full disk) costs nothing yet: warn and go on; the last one must succeed. */
static void save_or_warn(struct loop *l)
{
    struct error why;
    if (save(l, &why) != OK)
        warn(l, why.text);
}

/* ---- steps ---- */

static enum status refuse_step(const struct loop *l, int64_t step, struct step_metrics m, struct error *err)
{
    char after[96] = "the weights are kept as they were before it";
    if (step < l->step)
        snprintf(after, sizeof after, "its update was left out, and the run ends after step %lld, where this was read",
                 (long long)l->step);
    return error_set(err, BAD_INPUT, "step %lld: loss is %g and the gradient norm %g; %s. Try a lower train.lr (now %g), a "
                     "longer train.warmup, train.clip: 1.0%s", (long long)step, m.loss, m.norm, after, l->run.config.train.lr,
                     l->run.config.train.on_nan == ON_NAN_STOP ? ", or train.on_nan: skip" : "");
}

/* The program itself keeps weights as they were when loss or gradient is not finite; here the config decides whether
 * to go on. */
static enum status check_finite(struct loop *l, int64_t step, struct step_metrics m, struct error *err)
{
    if (isfinite(m.loss) && isfinite(m.norm)) {
        l->skipped_in_a_row = 0;
        return OK;
    }
    l->skipped++;
    const bool scaled = exec_program(l->run.train)->loss_scale != NO_VALUE && isfinite(m.loss);     /* too large for f16: halved by now */
    if ((l->run.config.train.on_nan == ON_NAN_SKIP || scaled) && ++l->skipped_in_a_row < MOST_SKIPS_IN_A_ROW)
        return OK;
    l->alike = true;                        /* every rank has these numbers */
    return refuse_step(l, step, m, err);
}

/* A model that knows nothing and guesses every token alike has a loss of ln(vocabulary). One that stays far above that has been
 * driven there, and will hardly come back. */
static void watch_for_runaway(struct loop *l, int64_t step, double loss)
{
    const struct config_train *t = &l->run.config.train;
    const double guessing = log((double)l->run.config.model.vocab);
    char text[320];
    if (l->runaway == RUNAWAY_STEPS)
        return;
    l->runaway = isfinite(loss) && loss > 1.5 * guessing + 1 ? l->runaway + 1 : 0;
    if (l->runaway < RUNAWAY_STEPS)
        return;
    snprintf(text, sizeof text, "step %lld: the loss is %.6g, and guessing costs %.3g: training runs away. Try a lower train.lr (now %g), "
             "a longer train.warmup (now %lld)%s", (long long)step, loss, guessing, t->lr, (long long)t->warmup,
             t->clip > 0 ? "" : ", train.clip: 1.0");
    warn(l, text);
}

static void add_loss(struct loss_sum *s, double loss)
{
    s->steps++;
    if (isfinite(loss)) {
        s->loss += loss;
        s->finite_steps++;
    }
}

static void add_time(struct window *w, double seconds, int64_t wait_ns, struct fill fill)
{
    w->fill.positions += fill.positions;
    w->fill.filled += fill.filled;
    w->steps++;
    w->seconds += seconds;
    w->wait_ns += wait_ns;
}

/* Is this a step after which the metrics are shown, written or decide something? */
static bool is_milestone(const struct loop *l)
{
    const struct config *c = &l->run.config;
    return is_log_step(l) || l->step == l->run.total_steps || stopped(l) || due(l, c->eval.every) ||
           due(l, c->checkpoint.every) || (c->train.epochs && l->step % l->run.steps_per_epoch == 0);
}

/* Reads the metrics of all steps since the last time, and looks at each as if it had been read after its step. */
static enum status report(struct loop *l, struct error *err)
{
    struct step_metrics steps[METRICS_KEPT];
    const int n = l->unread;
    enum status st = OK;
    if (!n)
        return OK;
    model_run_metrics(&l->run, steps, n);
    node_sums_add(&l->nodes, &l->run, n);
    st = exec_status(l->run.train, err);
    l->unread = 0;
    for (int i = 0; i < n && st == OK; i++) {
        l->newest = steps[i];
        add_loss(&l->since_log.sum, steps[i].loss);
        add_loss(&l->since_epoch.sum, steps[i].loss);
        watch_for_runaway(l, l->step - (n - 1 - i), steps[i].loss);
        st = check_finite(l, l->step - (n - 1 - i), steps[i], err);
    }
    return st;
}

static enum status one_step(struct loop *l, struct error *err)
{
    const double start = clock_s();
    bool whole;
    recording_before(&l->recording, &l->run, l->step + 1);
    dist_at_step(l->dist, l->step + 1);
    enum status st = model_run_step(&l->run, l->loader, l->options->stop, &whole, err);
    if (st != OK || !whole)
        return st;
    l->step++;
    if (++l->unread == model_run_kept(&l->run) || is_milestone(l))
        st = report(l, err);
    const double seconds = clock_s() - start;
    const int64_t wait = loader_wait_ns(l->loader) - l->wait_ns;
    const struct fill fill = {l->run.fill.positions - l->filled.positions, l->run.fill.filled - l->filled.filled};
    l->wait_ns += wait;
    l->filled = l->run.fill;
    l->seconds += seconds;
    add_time(&l->since_log, seconds, wait, fill);
    add_time(&l->since_epoch, seconds, wait, fill);
    struct error why;               /* a trace that cannot be written is no reason to stop training */
    if (st == OK && recording_after(&l->recording, &l->run, l->step, l->options->out, &why) != OK)
        warn(l, why.text);
    if (st == OK && l->watch->on_step)
        l->watch->on_step(l->watch->context, l->step, l->newest.loss);
    return st;
}

static enum status run_steps(struct loop *l, struct error *err)
{
    const struct config *c = &l->run.config;
    enum status st = pass_border(l, err);
    tell_stage(l);
    while (st == OK && l->step < l->run.total_steps && !stopped(l)) {
        const int64_t before = l->step;
        st = one_step(l, err);
        if (st != OK || l->step == before)
            return st;
        if (is_log_step(l) || l->step == l->run.total_steps)
            log_step(l);
        if (c->train.epochs && l->step % l->run.steps_per_epoch == 0)
            end_epoch(l);
        if (due(l, c->eval.every) && (st = evaluate(l, err)) != OK)
            return st;
        if ((st = pass_border(l, err)) != OK)
            return st;
        if (ends_stage(l))
            tell_stage(l);
        if (due(l, c->checkpoint.every))
            save_or_warn(l);
    }
    return st;
}

/* ---- a whole run ---- */

/* What rank 0 has read of a checkpoint, or begun with, is what all have. */
static enum status share_start(struct loop *l, enum status st, struct carried *carried, struct error *err)
{
    struct node_sums *own = carried->nodes;
    st = agree(l, st, err);
    if (st == OK)
        st = dist_broadcast(l->dist, &l->first_step, sizeof l->first_step, err);
    if (st == OK)
        st = dist_broadcast(l->dist, carried, sizeof *carried, err);
    carried->nodes = own;                       /* only rank 0 logs them */
    return st == OK ? ranks_share_state(&l->run, err) : st;
}

/* The folder last, and in it the files of a new run last: what fails before leaves nothing behind. */
static enum status open_folder(struct loop *l, enum status st, struct error *err)
{
    const struct config *c = &l->run.config;
    const char *out = l->options->out;
    struct carried carried = {.nodes = &l->nodes};
    if (st == OK && leads(l))
        st = folder_lock(&l->lock, out, l->options->resume, err);
    if (st == OK && l->options->resume && leads(l))
        st = state_resume(&l->run, out, &l->first_step, &carried, l->checkpoint, err);
    st = share_start(l, st, &carried, err);
    if (st == OK)
        st = model_run_loader(&l->loader, &l->run, l->first_step, (int)c->data.workers, (int)c->data.prefetch, err);
    if (st == OK && leads(l))
        checkpoint_sweep(out);              /* a run that is done saves no more */
    if (st == OK && leads(l))
        st = folder_write_config(out, c, err);
    const int64_t resumed = l->options->resume ? l->first_step : -1;
    const bool early = carried.since_log.steps && l->first_step < l->run.total_steps;
    if (st == OK && leads(l))
        st = metrics_open(&l->metrics, out, resumed, early, l->options->tensorboard, err);
    if (st == OK && leads(l))
        st = node_log_open(&l->node_log, &l->run, out, resumed, early, err);
    st = agree(l, st, err);
    l->since_log.sum = carried.since_log;
    l->since_epoch.sum = carried.since_epoch;
    l->skipped = carried.skipped;
    l->forgetting = carried.forgetting;
    if (st == OK && !l->options->resume)
        forgetting_init(&l->forgetting, &l->run);
    if (st == OK && l->forgetting.rows)
        write_forgetting(l);            /* rows that came after the checkpoint go */
    l->step = l->first_step;
    l->saved = l->options->resume ? l->first_step : -1;
    l->logged = l->evaluated = -1;
    return st;
}

static enum status open_loop(struct loop *l, const struct config *c, struct error *err)
{
    struct dataset *dataset;
    enum status st = ranks_compare_configs(c, err);
    if (st == OK)
        st = division_check(c, err);
    if (st == OK && leads(l))
        st = folder_check(l->options->out, l->options->resume, err);
    if (st == OK && l->options->record_first && leads(l))
        st = folder_check_trace(l->options->out, err);
    st = agree(l, st, err);
    if (st == OK)
        st = agree(l, dataset_open(&dataset, c, err), err);
    if (st == OK)
        st = ranks_compare(c, dataset, err);
    if (st == OK)
        st = ranks_open_run(&l->run, c, dataset, err);
    if (st != OK)
        return st;
    if (!l->options->resume && leads(l))
        st = model_run_load_init(&l->run, err);
    if (st == OK)
        node_sums_init(&l->nodes, &l->run);
    return open_folder(l, st, err);
}

static void close_loop(struct loop *l)
{
    loader_free(l->loader);
    node_sums_release(&l->nodes);
    model_run_close(&l->run);
    if (l->lock >= 0)
        close(l->lock);
}

/* Runs, then saves what there is: also after Ctrl-C, and after an error in mid-run. */
static enum status run_and_save(struct loop *l, struct error *err)
{
    if (l->options->save_first && l->step == 0)
        save_or_warn(l);
    enum status st = run_steps(l, err);
    if (st == OK)
        st = report(l, err);
    if (st == OK)
        log_step(l);
    if (st == OK && !stopped(l))
        st = evaluate(l, err);
    if (st == OK && l->unwritten)
        st = forgetting_write(&l->forgetting, &l->run.config, l->options->out, err);
    if (st == OK)
        return save(l, err);
    if (dist_status(l->dist, NULL) == OK && !l->alike && dist_size(l->dist) > 1)
        dist_give_up(l->dist, err);
    if (l->step > l->first_step && dist_status(l->dist, NULL) == OK)
        save_or_warn(l);
    return st;
}

static void fill_result(const struct loop *l, struct train_result *r)
{
    const double steps = (double)(l->step - l->first_step), rate = l->seconds > 0 ? steps / l->seconds : 0;
    *r = (struct train_result){.steps = l->step, .loss = l->last_loss, .val_loss = l->val_loss,
                               .samples_per_s = rate * (double)samples_per_step(l),
                               .gpu = l->gpu, .forgetting = l->forgetting};
    r->interrupted = l->step < l->run.total_steps || (l->forgetting.n && l->forgetting.rows <= l->forgetting.n);
    r->gpu.address = NULL;              /* the backend's, which goes */
    r->tokens_per_s = l->seconds > 0 ? l->filled.positions * dist_size(l->dist) / l->seconds : 0;
    r->padding_share = fill_padding(&l->filled);
    memcpy(r->checkpoint, l->checkpoint, sizeof r->checkpoint);
}

enum status train_run(const struct config *c, const struct train_options *options, const struct train_observer *observer,
                      struct train_result *result, struct error *err)
{
    struct loop l = {.options = options, .dist = ranks_of(c), .watch = observer, .lock = -1, .last_loss = NAN, .val_loss = NAN,
                     .newest = {NAN, NAN, NAN}, .recording = {.first = options->record_first, .last = options->record_last}};
    if (!leads(&l))
        l.recording = (struct recording){0};
    enum status st = open_loop(&l, c, err);
    if (st == OK) {
        gpu_watch_begin(&l.gpu, l.run.backend ? l.run.backend->address : NULL);
        tell_start(&l);
        st = run_and_save(&l, err);
        fill_result(&l, result);
    } else if (setup_was_stopped()) {               /* nothing was computed, and nothing is written yet */
        *result = (struct train_result){.loss = NAN, .val_loss = NAN, .interrupted = true};
        st = OK;
    }
    if (st == OK && l.recording.first && !l.recording.trace)
        warn(&l, "no trace.json was written: none of the steps of --profile was run");
    struct error why;
    enum status closed = recording_finish(&l.recording, &l.run, options->out, &why);
    if (closed == OK)
        closed = metrics_close(l.metrics, &why);
    else
        metrics_close(l.metrics, NULL);
    if (closed == OK)
        closed = node_log_close(l.node_log, &why);
    else
        node_log_close(l.node_log, NULL);
    if (st == OK && closed != OK) {
        st = closed;
        *err = why;
    }
    close_loop(&l);
    return st;
}
