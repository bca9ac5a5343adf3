/* The training loop: steps, logs, evaluation, checkpoints, and what happens when numbers or the user say stop. */
#include <math.h>
#include <string.h>

#include "core/clock.h"
#include "core/setup.h"
#include "train/loop_int.h"

static const double COMPARE_S = 20;     /* between two looks at whether ranks have the same weights: one that has others is named within 30 s, at a log */

bool loop_stopped(const struct loop *l)
{
    return dist_size(l->dist) > 1 ? l->run.stopping : l->options->stop && *l->options->stop;
}

bool loop_leads(const struct loop *l) { return dist_rank(l->dist) == 0; }

enum status loop_agree(struct loop *l, enum status st, struct error *err)
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
        .domains = &l->forgetting, .threads = r->backend->lanes, .threads_words = l->threads_words, .memory = exec_memory(r->train), .passes = train_passes_text(r->places, passes), .init_tensors = r->init_tensors, .init_title = r->init_title, .init_types = r->init_types, .changed = r->changed};
    if (l->watch->on_start)
        l->watch->on_start(l->watch->context, &info);
}

void loop_warn(struct loop *l, const char *text)
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

/* What is logged is of one stage. */
static bool is_log_step(const struct loop *l) { return l->step % l->run.config.log.every == 0 || loop_ends_stage(l); }

/* Alone, or of all ranks. */
static void add_gpus(struct loop *l, struct train_log *log)
{
    bool any = false;
    for (int r = 0; r < dist_size(l->dist); r++)
        any |= isfinite(l->gpus[r].busy_percent) || isfinite(l->gpus[r].used_bytes);
    log->gpus = l->gpus;
    log->n_gpus = any ? dist_size(l->dist) : 0;
}

/* What the ranks needed, each by itself, since the last log. */
static enum status add_ranks(struct loop *l, struct train_log *log, int64_t steps, double seconds)
{
    const double waited = (double)dist_wait_ns(l->dist) * 1e-9 - l->rank_wait_s;
    struct ranks_own own = {.seconds = seconds, .wait_s = waited, .steps = (double)steps, .asks = clock_s() - l->compared_s > COMPARE_S, .gpu = gpu_unknown()};
    struct ranks_times t;
    struct error unsaid;
    gpu_watch_look(&l->gpu, &own.gpu);
    l->gpus[0] = own.gpu;
    log->ranks = dist_size(l->dist);
    if (log->ranks == 1)
        return OK;
    l->rank_wait_s += waited;
    const enum status st = ranks_gather_times(l->dist, &own, &t, l->gpus, &unsaid);
    l->compare |= t.compare;
    log->rank_wait_share = waited / seconds;
    log->compute_least_s = t.compute_least_s;
    log->compute_most_s = t.compute_most_s;
    log->slowest_rank = t.slowest;
    return st;
}

/* A log between two regular ones, because the run ends here, does not begin a new window: a resume goes on in it. */
/* Once: the run goes on, and fails at its end. */
static void warn_lost(struct loop *l, struct lines *lines)
{
    struct error why;
    if (lines && lines_lost(lines, &why))
        loop_warn(l, why.text);
}

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
    l->last_loss = log.loss;
    if (add_ranks(l, &log, w->steps, w->seconds) != OK)
        return;                             /* whoever is lost is named at the next step */
    add_gpus(l, &log);
    if (is_log_step(l))
        l->since_log = (struct window){0};
    if (!loop_leads(l))
        return;
    metrics_log(l->metrics, &log);
    node_log_write(l->node_log, &l->run, &l->nodes, &log, metrics_board(l->metrics));
    warn_lost(l, metrics_lines(l->metrics));
    warn_lost(l, node_log_lines(l->node_log));
    if (is_log_step(l))
        node_sums_reset(&l->nodes);
    if (l->watch->on_log)
        l->watch->on_log(l->watch->context, &log);
}

static void end_epoch(struct loop *l)
{
    const struct window *w = &l->since_epoch;
    const int64_t samples = samples_per_step(l);
    struct train_epoch e = {.step = l->step, .epoch = model_run_epoch(&l->run, l->step), .steps = w->steps, .steps_whole = l->run.steps_per_epoch,
                            .domain = dataset_name(dataset_domain(l->run.dataset, model_run_stage(&l->run, l->step))), .loss = mean_loss(w),
                            .seconds = w->seconds, .samples_per_s = (double)(w->steps * samples) / w->seconds,
                            .first_samples_per_s = l->first_epoch, .data_wait_share = (double)w->wait_ns * 1e-9 / w->seconds,
                            .mfu_percent = epoch_mfu_percent(&l->run, samples, w->seconds / (double)w->steps * 1e6)};
    if (isnan(l->first_epoch))
        l->first_epoch = e.samples_per_s;
    l->since_epoch = (struct window){0};
    epoch_judge(&e);
    if (loop_leads(l))
        metrics_epoch(l->metrics, &e);
    if (l->watch->on_epoch)
        l->watch->on_epoch(l->watch->context, &e);
}

/* ---- steps ---- */

static void tell_stage(const struct loop *l)
{
    if (l->run.stage_steps && l->step < l->run.total_steps && !loop_stopped(l) && l->watch->on_stage)
        l->watch->on_stage(l->watch->context, model_run_stage(&l->run, l->step + 1));
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
    return is_log_step(l) || l->step == l->run.total_steps || loop_stopped(l) || loop_due(l, c->eval.every) ||
           loop_due(l, c->checkpoint.every) || (c->train.epochs && l->step % l->run.steps_per_epoch == 0);
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
        st = loop_read_metrics(l, err);
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
        loop_warn(l, why.text);
    if (st == OK && l->watch->on_step)
        l->watch->on_step(l->watch->context, l->step, l->newest.loss);
    return st;
}

static enum status run_steps(struct loop *l, struct error *err)
{
    const struct config *c = &l->run.config;
    enum status st = loop_pass_border(l, err);
    if (st == OK && l->owes)
        st = loop_evaluate(l, err);
    tell_stage(l);
    while (st == OK && l->step < l->run.total_steps && !loop_stopped(l)) {
        const int64_t before = l->step;
        st = one_step(l, err);
        if (st != OK || l->step == before)
            return st;
        if (is_log_step(l) || l->step == l->run.total_steps)
            log_step(l);
        if ((l->compare || loop_due(l, c->checkpoint.every)) && (st = loop_compare(l, err)) != OK)
            return st;
        if (c->train.epochs && l->step % l->run.steps_per_epoch == 0)
            end_epoch(l);
        if (loop_due(l, c->eval.every) && (st = loop_evaluate(l, err)) != OK)
            return st;
        if ((st = loop_pass_border(l, err)) != OK)
            return st;
        if (loop_ends_stage(l))
            tell_stage(l);
        if (loop_due(l, c->checkpoint.every))
            loop_save_or_warn(l);
    }
    return st;
}

/* ---- a whole run ---- */

/* Runs, then saves what there is: also after Ctrl-C, and after an error in mid-run. */
static enum status run_and_save(struct loop *l, struct error *err)
{
    if (l->options->save_first && l->step == 0)
        loop_save_or_warn(l);
    enum status st = run_steps(l, err);
    if (st == OK)
        st = loop_read_metrics(l, err);
    if (st == OK)
        log_step(l);
    if (st == OK && l->step && l->skipped == l->step)
        loop_warn(l, "every step was left out, for a loss or a gradient that was not finite: the weights are what they were at first");
    if (st == OK && !loop_stopped(l))
        st = loop_evaluate(l, err);
    if (st == OK && l->unwritten)
        st = forgetting_write(&l->forgetting, &l->run.config, l->options->out, err);
    if (st == OK && l->saved != l->step)
        st = loop_compare(l, err);
    if (st == OK)
        return loop_save(l, err);
    if (dist_status(l->dist, NULL) == OK && !l->alike && dist_size(l->dist) > 1)
        dist_give_up(l->dist, err);
    struct error unsaid;
    if (l->unread && exec_status(l->run.train, &unsaid) == OK)
        loop_read_metrics(l, &unsaid);          /* what a resume goes on with */
    if (l->step > l->first_step && dist_status(l->dist, NULL) == OK && !l->apart)
        loop_save_or_warn(l);
    return st;
}

static void fill_result(const struct loop *l, struct train_result *r)
{
    const double steps = (double)(l->step - l->first_step), rate = l->seconds > 0 ? steps / l->seconds : 0;
    *r = (struct train_result){.steps = l->step, .loss = l->last_loss, .val_loss = l->val_loss,
                               .samples_per_s = rate * (double)samples_per_step(l),
                               .gpu = l->gpu, .forgetting = l->forgetting};
    const bool owes = l->run.eval && l->evaluated != l->step && loop_stopped(l);       /* the last evaluation, which a resume makes */
    r->interrupted = l->step < l->run.total_steps || owes || (l->forgetting.n && l->forgetting.rows <= l->forgetting.n);
    r->gpu.address = NULL;              /* the backend's, which goes */
    r->tokens_per_s = l->seconds > 0 ? l->filled.positions * dist_size(l->dist) / l->seconds : 0;
    r->padding_share = fill_padding(&l->filled);
    memcpy(r->checkpoint, l->checkpoint, sizeof r->checkpoint);
}

static void warn_of_memory(struct loop *l)
{
    const struct exec_memory m = exec_memory(l->run.train);
    char words[MEMORY_WORDS];
    if (train_memory_warning(&l->run.config, exec_memory_bytes(&m), words))
        loop_warn(l, words);
}

/* With train.steps that is refused; how many steps epochs are is known here. */
static void warn_of_warmup(struct loop *l)
{
    const struct config_train *t = &l->run.config.train;
    char words[160];
    snprintf(words, sizeof words, "train.warmup is %lld, and the run has %lld steps: the learning rate rises until it ends", (long long)t->warmup, (long long)l->run.total_steps);
    if (t->epochs && t->warmup >= l->run.total_steps)
        loop_warn(l, words);
}

static void warn_of_data(struct loop *l)
{
    const char *words;
    for (int i = 0; (words = dataset_warning(l->run.dataset, i)); i++)
        loop_warn(l, words);
}

enum status train_run(const struct config *c, const struct train_options *options, const struct train_observer *observer,
                      struct train_result *result, struct error *err)
{
    struct loop l = {.options = options, .dist = ranks_of(c), .watch = observer, .lock = -1, .first_epoch = NAN, .last_loss = NAN, .val_loss = NAN,
                     .newest = {NAN, NAN, NAN}, .recording = {.first = options->record_first, .last = options->record_last}};
    if (!loop_leads(&l))
        l.recording = (struct recording){0};
    char words[THREADS_WORDS];
    if (train_threads_warning(c, words))
        loop_warn(&l, words);
    enum status st = loop_open(&l, c, err);
    if (st == OK)
        st = loop_agree(&l, loop_begin_file(&l, err), err);
    if (st == OK) {
        l.gpus = xcalloc((size_t)dist_size(l.dist), sizeof *l.gpus);
        gpu_watch_begin(&l.gpu, l.run.backend ? l.run.backend->address : NULL);
        l.compared_s = clock_s();
        tell_start(&l);
        warn_of_memory(&l);
        warn_of_warmup(&l);
        warn_of_data(&l);
        st = run_and_save(&l, err);
        fill_result(&l, result);
    } else if (setup_was_stopped()) {               /* nothing was computed, and nothing is written yet */
        *result = (struct train_result){.loss = NAN, .val_loss = NAN, .interrupted = true};
        st = OK;
    }
    if (st == OK && l.recording.first && !l.recording.trace)
        loop_warn(&l, "no trace.json was written: none of the steps of --profile was run");
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
    if (closed == OK)
        closed = lines_close(&l.samples, &why);
    else
        lines_close(&l.samples, NULL);
    if (st == OK && closed != OK) {
        st = closed;
        *err = why;
    }
    loop_end_file(&l, st, result, err);
    loop_close(&l);
    return st;
}
