/* A run that is followed: its numbers, handed from the thread that trains to the one that serves; see live.h. */
#include "cli/live.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/arena.h"
#include "core/clock.h"
#include "core/process.h"
#include "live/live.h"
#include "report/report.h"

static const double EVERY_S = 0.2;      /* at most so often is a copy handed over */

/* Curves are copied by their points, into room that is there. */
struct copy {
    struct live_numbers numbers;
    struct curve loss, validation;
};

struct live_run {
    struct live_numbers numbers;        /* of the thread that trains */
    struct run_curves curves;
    bool changed;
    double handed;                      /* when the last copy was */
    pthread_mutex_t mutex;
    struct copy shared;                 /* held by it */
    struct copy served;                 /* of the thread that serves */
    struct live *server;
};

/* ---- from one thread to the other ---- */

static void copy_curve(struct curve *to, const struct curve *from)
{
    struct curve_point *points = to->point;
    memcpy(points, from->point, (size_t)from->n * sizeof *points);
    *to = *from;
    to->point = points;
}

static void put(struct copy *to, const struct live_numbers *n, const struct curve *loss, const struct curve *validation)
{
    to->numbers = *n;
    copy_curve(&to->loss, loss);
    copy_curve(&to->validation, validation);
}

static void hand_over(struct live_run *l, bool wait)
{
    const double now = clock_s();
    if (!wait && (!l->changed || now - l->handed < EVERY_S || pthread_mutex_trylock(&l->mutex)))
        return;                                 /* it is being read: later */
    if (wait)
        pthread_mutex_lock(&l->mutex);
    if (!l->numbers.on_gpu)
        l->numbers.memory_bytes = process_peak_bytes();
    l->numbers.version++;
    put(&l->shared, &l->numbers, &l->curves.loss, &l->curves.validation);
    pthread_mutex_unlock(&l->mutex);
    l->changed = false;
    l->handed = now;
}

static char *serve(void *context, uint64_t seen)
{
    struct live_run *l = context;
    pthread_mutex_lock(&l->mutex);
    const bool newer = l->shared.numbers.version != seen;
    if (newer)
        put(&l->served, &l->shared.numbers, &l->shared.loss, &l->shared.validation);
    pthread_mutex_unlock(&l->mutex);
    return newer ? live_json(&l->served.numbers, &l->served.loss, &l->served.validation) : NULL;
}

/* ---- open and close ---- */

static enum status read_port(const char *text, int *port, struct error *err)
{
    char *end;
    errno = 0;
    const long n = *text ? strtol(text, &end, 10) : 0;
    if (*text && (*end || errno || n < 1 || n > 65535))
        return error_set(err, BAD_INPUT, "--live is '%.64s'; it takes a port from 1 to 65535, or nothing for one that is free", text);
    *port = (int)n;
    return OK;
}

/* Owned by the caller; NULL: no memory. */
static char *make_page(const struct config *c)
{
    char headline[192];
    snprintf(headline, sizeof headline, "%s is being trained", c->name);
    json_t *j = json_pack("{s:s, s:s, s:o, s:o}", "kind", "live", "hone_version", HONE_VERSION, "name", json_text(c->name), "headline", json_text(headline));
    char *page = j ? document_written(report_live_write_html, j) : NULL;
    json_decref(j);
    return page;
}

static void release(struct live_run *l)
{
    run_curves_release(&l->curves);
    curve_release(&l->shared.loss);
    curve_release(&l->shared.validation);
    curve_release(&l->served.loss);
    curve_release(&l->served.validation);
    pthread_mutex_destroy(&l->mutex);
    free(l);
}

static struct live_run *make(const struct config *c)
{
    struct live_run *l = xcalloc(1, sizeof *l);
    struct live_numbers *n = &l->numbers;
    pthread_mutex_init(&l->mutex, NULL);
    run_curves_init(&l->curves, LIVE_POINTS);
    curve_init(&l->shared.loss, LIVE_POINTS);
    curve_init(&l->shared.validation, LIVE_POINTS);
    curve_init(&l->served.loss, LIVE_POINTS);
    curve_init(&l->served.validation, LIVE_POINTS);
    snprintf(n->state, sizeof n->state, "setting up");
    snprintf(n->name, sizeof n->name, "%s", c->name);
    n->loss = n->val_loss = n->lr = n->steps_per_s = n->tokens_per_s = n->memory_bytes = n->entropy = n->eta_s = NAN;
    return l;
}

enum status live_run_open(struct live_run **out, const char *port, const struct config *c, struct error *err)
{
    int number = 0;
    *out = NULL;
    enum status st = read_port(port, &number, err);
    if (st != OK)
        return st;
    struct live_run *l = make(c);
    char *page = make_page(c);
    hand_over(l, true);
    st = page ? live_open(&l->server, number, page, strlen(page), serve, l, err) : error_no_memory(err, "the live page", 1 << 20);
    free(page);
    if (st == OK)
        *out = l;
    else
        release(l);
    return st;
}

void live_run_close(struct live_run *l, const char *state)
{
    if (!l)
        return;
    snprintf(l->numbers.state, sizeof l->numbers.state, "%s", state);
    l->numbers.eta_s = NAN;
    hand_over(l, true);
    live_close(l->server);
    release(l);
}

int live_run_port(const struct live_run *l) { return live_port(l->server); }
const struct live_numbers *live_run_numbers(const struct live_run *l) { return &l->numbers; }
const struct run_curves *live_run_curves(const struct live_run *l) { return &l->curves; }

/* ---- what is told ---- */

/* What a run that goes on has logged before. */
static void read_before(struct live_run *l, const char *folder)
{
    struct run *before = xcalloc(1, sizeof *before);
    struct error ignored;
    snprintf(before->folder, sizeof before->folder, "%s", folder);
    if (run_read_curves(before, LIVE_POINTS, &ignored) == OK) {
        run_curves_release(&l->curves);
        l->curves = *before->curves;
    } else
        run_curves_release(before->curves);
    free(before->curves);
    free(before);
}

void live_run_start(struct live_run *l, const struct train_info *i, const char *folder)
{
    if (!l)
        return;
    struct live_numbers *n = &l->numbers;
    snprintf(n->state, sizeof n->state, "running");
    snprintf(n->device, sizeof n->device, "%s", i->device_name ? i->device_name : i->device);
    n->steps = i->total_steps;
    n->step = n->first_step = i->first_step;
    n->entropy = i->entropy;
    n->began = clock_s();
    if (i->first_step)
        read_before(l, folder);
    hand_over(l, true);
}

void live_run_step(struct live_run *l, int64_t step)
{
    if (!l)
        return;
    struct live_numbers *n = &l->numbers;
    n->step = step;
    l->changed = true;
    if (step > n->first_step)
        n->eta_s = (clock_s() - n->began) / (double)(step - n->first_step) * (double)(n->steps - step);
    hand_over(l, false);
}

void live_run_log(struct live_run *l, const struct train_log *log)
{
    if (!l)
        return;
    struct live_numbers *n = &l->numbers;
    n->on_gpu = log->n_gpus > 0;
    if (n->on_gpu)
        n->memory_bytes = log->gpus[0].used_bytes;
    n->loss = log->loss;
    n->lr = log->lr;
    n->steps_per_s = log->steps_per_s;
    n->tokens_per_s = log->tokens_per_s;
    run_curves_add(&l->curves, &(struct metrics_line){.kind = METRICS_LOG, .step = log->step, .loss = log->loss, .steps_per_s = log->steps_per_s,
                                                      .tokens_per_s = log->tokens_per_s, .seconds = log->seconds, .overall_per_s = log->steps_per_s_overall, .memory_bytes = n->memory_bytes});
    l->changed = true;
}

void live_run_eval(struct live_run *l, int64_t step, double val_loss)
{
    if (!l)
        return;
    l->numbers.val_loss = val_loss;
    run_curves_add(&l->curves, &(struct metrics_line){.kind = METRICS_EVAL, .step = step, .loss = val_loss});
    l->changed = true;
}

void live_run_sample(struct live_run *l, int64_t step, const char *text)
{
    if (!l)
        return;
    struct live_numbers *n = &l->numbers;
    if (n->n_samples == LIVE_SAMPLES)
        memmove(n->sample, n->sample + 1, (size_t)--n->n_samples * sizeof *n->sample);
    struct live_sample *s = &n->sample[n->n_samples++];
    s->step = step;
    snprintf(s->text, sizeof s->text, "%s", text);
    l->changed = true;
}
