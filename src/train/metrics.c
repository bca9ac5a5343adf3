/* metrics.jsonl: one JSON object per line, flushed as it is written; and the same numbers for TensorBoard on request. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "core/arena.h"
#include "core/fs.h"
#include "core/process.h"
#include "train/train_int.h"

struct metrics {
    struct lines lines;
    struct tensorboard *board;          /* NULL: not asked for */
    int64_t evaluated;                  /* the last step that has a val_loss; -1: none */
};

static enum status open_board(struct metrics *m, const char *folder, struct error *err)
{
    char path[CONFIG_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/tensorboard", folder);
    const enum status st = fs_make_dirs(path, err);
    return st == OK ? tensorboard_open(&m->board, path, err) : st;
}

enum status metrics_open(struct metrics **out, const char *folder, int64_t resumed_step, bool early, bool tensorboard,
                         struct error *err)
{
    struct metrics *m = xcalloc(1, sizeof *m);
    enum status st = lines_open(&m->lines, folder, "metrics.jsonl", resumed_step, early, &m->evaluated, err);
    if (st == OK && tensorboard)
        st = open_board(m, folder, err);
    if (st == OK) {
        *out = m;
        return OK;
    }
    lines_close(&m->lines, NULL);
    free(m);
    return st;
}

struct tensorboard *metrics_board(struct metrics *m) { return m->board; }

struct lines *metrics_lines(struct metrics *m) { return &m->lines; }

/* What a GPU tells of itself. */
static const struct { const char *key, *curve; size_t at; double unit; } gpu_fields[] = {
    {"gpu_busy_percent", "gpu/busy_percent", offsetof(struct gpu_state, busy_percent), 1},
    {"gpu_memory_mb", "gpu/memory_mb", offsetof(struct gpu_state, used_bytes), 1e-6},
    {"gpu_watts", "gpu/watts", offsetof(struct gpu_state, watts), 1},
    {"gpu_celsius", "gpu/celsius", offsetof(struct gpu_state, celsius), 1},
    {"gpu_sm_mhz", "gpu/sm_mhz", offsetof(struct gpu_state, sm_mhz), 1},
};

enum { N_GPU_FIELDS = sizeof gpu_fields / sizeof *gpu_fields };

static double gpu_field(const struct gpu_state *s, size_t i)
{
    return *(const double *)((const char *)s + gpu_fields[i].at) * gpu_fields[i].unit;
}

static json_t *gpu_object(const struct gpu_state *s)
{
    json_t *j = json_object();
    for (size_t i = 0; j && i < N_GPU_FIELDS; i++)
        json_object_set_new(j, gpu_fields[i].key, json_number(gpu_field(s, i)));
    return j;
}

/* That of rank 0 as the fields of a run on one; of several, each in a list. */
static void add_gpus(json_t *line, const struct train_log *l)
{
    if (l->n_gpus)
        json_object_update_new(line, gpu_object(&l->gpus[0]));
    if (l->n_gpus < 2)
        return;
    json_t *list = json_array();
    for (int r = 0; list && r < l->n_gpus; r++)
        json_array_append_new(list, gpu_object(&l->gpus[r]));
    json_object_set_new(line, "gpus", list);
}

static void draw_gpus(struct tensorboard *board, const struct train_log *l)
{
    char curve[64];
    for (int r = 0; r < l->n_gpus; r++)
        for (size_t i = 0; i < N_GPU_FIELDS; i++) {
            const double value = gpu_field(&l->gpus[r], i);
            if (l->n_gpus > 1)
                snprintf(curve, sizeof curve, "%s/rank%d", gpu_fields[i].curve, r);
            else
                snprintf(curve, sizeof curve, "%s", gpu_fields[i].curve);
            if (isfinite(value))
                tensorboard_scalar(board, curve, l->step, value);
        }
}

void metrics_log(struct metrics *m, const struct train_log *l)
{
    json_t *line = json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I}", "step", (json_int_t)l->step,
                            "epoch", (json_int_t)l->epoch, "loss", json_number(l->loss), "lr", json_number(l->lr), "grad_norm",
                            json_number(l->grad_norm), "steps_per_s", json_number(l->steps_per_s), "steps_per_s_overall", json_number(l->steps_per_s_overall), "samples_per_s",
                            json_number(l->samples_per_s), "tokens_per_s", json_number(l->tokens_per_s), "data_wait_share",
                            json_number(l->data_wait_share), "seconds", json_number(l->seconds), "skipped",
                            (json_int_t)l->skipped);
    if (line && l->padding_share > 0)
        json_object_update_new(line, json_pack("{s:o, s:o}", "padding_share", json_number(l->padding_share), "real_tokens_per_s",
                                               json_number(l->tokens_per_s * (1 - l->padding_share))));
    if (line && l->domain)
        json_object_set_new(line, "domain", json_text(l->domain));
    if (line)
        add_gpus(line, l);
    if (line && l->ranks > 1)
        json_object_update_new(line, json_pack("{s:i, s:o, s:o, s:o, s:i}", "ranks", l->ranks, "rank_wait_share", json_number(l->rank_wait_share),
                                               "compute_least_s", json_number(l->compute_least_s), "compute_most_s",
                                               json_number(l->compute_most_s), "slowest_rank", l->slowest_rank));
    lines_write(&m->lines, line);
    if (!m->board)
        return;
    tensorboard_scalar(m->board, "train/loss", l->step, l->loss);
    if (l->domain)
        tensorboard_scalar(m->board, "train/stage", l->step, l->stage + 1);
    tensorboard_scalar(m->board, "train/lr", l->step, l->lr);
    tensorboard_scalar(m->board, "train/grad_norm", l->step, l->grad_norm);
    tensorboard_scalar(m->board, "speed/seconds_per_step", l->step, 1 / l->steps_per_s);
    tensorboard_scalar(m->board, "speed/steps_per_s", l->step, l->steps_per_s);
    tensorboard_scalar(m->board, "speed/steps_per_s_overall", l->step, l->steps_per_s_overall);
    tensorboard_scalar(m->board, "speed/samples_per_s", l->step, l->samples_per_s);
    tensorboard_scalar(m->board, "speed/tokens_per_s", l->step, l->tokens_per_s);
    if (l->padding_share > 0) {
        tensorboard_scalar(m->board, "speed/padding_share", l->step, l->padding_share);
        tensorboard_scalar(m->board, "speed/real_tokens_per_s", l->step, l->tokens_per_s * (1 - l->padding_share));
    }
    tensorboard_scalar(m->board, "speed/data_wait_share", l->step, l->data_wait_share);
    tensorboard_scalar(m->board, "memory/peak_mb", l->step, process_peak_bytes() / 1e6);
    draw_gpus(m->board, l);
}

/* Curves over epochs, and the verdict as text. */
static void show_epoch(struct tensorboard *board, const struct train_epoch *e)
{
    char text[224];
    snprintf(text, sizeof text, "%s: %s", e->verdict, e->words);
    tensorboard_scalar(board, "epoch/loss", e->epoch, e->loss);
    tensorboard_scalar(board, "epoch/seconds", e->epoch, e->seconds);
    tensorboard_scalar(board, "epoch/samples_per_s", e->epoch, e->samples_per_s);
    tensorboard_text(board, "epoch/verdict", e->epoch, text);
}

void metrics_epoch(struct metrics *m, const struct train_epoch *e)
{
    json_t *line = json_pack("{s:I, s:I, s:o, s:o, s:I, s:o, s:o, s:o, s:s, s:s}", "step", (json_int_t)e->step, "epoch", (json_int_t)e->epoch,
                             "epoch_loss", json_number(e->loss), "epoch_seconds", json_number(e->seconds), "epoch_steps", (json_int_t)e->steps,
                             "epoch_samples_per_s", json_number(e->samples_per_s), "epoch_data_wait_share", json_number(e->data_wait_share),
                             "epoch_mfu_percent", json_number(e->mfu_percent), "epoch_verdict", e->verdict, "epoch_words", e->words);
    if (line && e->domain)
        json_object_set_new(line, "domain", json_text(e->domain));
    lines_write(&m->lines, line);
    if (m->board)
        show_epoch(m->board, e);
}

/* {"prose": 2.1, "code": 3.4}; NULL: no memory. */
static json_t *losses_json(const struct dataset *d, const double *losses)
{
    json_t *j = json_object();
    for (int i = 0; j && i < dataset_domains(d); i++) {
        if (json_object_set_new(j, dataset_name(dataset_domain(d, i)), json_number(losses[i])) == 0)
            continue;
        json_decref(j);
        j = NULL;
    }
    return j;
}

void metrics_eval(struct metrics *m, int64_t step, const struct dataset *d, int stage, const double *losses)
{
    const char *name = dataset_name(dataset_domain(d, stage));
    char curve[CONFIG_PATH_MAX + 32];
    if (step == m->evaluated)
        return;
    m->evaluated = step;
    json_t *line = json_pack("{s:I, s:o}", "step", (json_int_t)step, "val_loss", json_number(losses[stage]));
    if (line && name && (json_object_set_new(line, "domain", json_text(name)) ||
                         json_object_set_new(line, "val_losses", losses_json(d, losses)))) {
        json_decref(line);
        line = NULL;
    }
    lines_write(&m->lines, line);
    if (m->board)
        tensorboard_scalar(m->board, "validation/loss", step, losses[stage]);
    for (int i = 0; m->board && name && i < dataset_domains(d); i++) {
        snprintf(curve, sizeof curve, "validation/loss of %s", dataset_name(dataset_domain(d, i)));
        tensorboard_scalar(m->board, curve, step, losses[i]);
    }
}

enum status metrics_close(struct metrics *m, struct error *err)
{
    if (!m)
        return OK;
    const enum status board = tensorboard_close(m->board, err), lines = lines_close(&m->lines, err);
    const enum status st = lines == OK ? board : lines;
    free(m);
    return st;
}
