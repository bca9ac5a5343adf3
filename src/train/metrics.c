/* metrics.jsonl: one JSON object per line, flushed as it is written; and the same numbers for TensorBoard on request. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/fs.h"
#include "core/json_memory.h"
#include "core/process.h"
#include "train/train_int.h"

struct metrics {
    FILE *file;
    struct tensorboard *board;          /* NULL: not asked for */
    char path[CONFIG_PATH_MAX + 32];
    bool failed;
    int code;                           /* errno of the first failure */
    int64_t evaluated;                  /* the last step that has a val_loss; -1: none */
};

/* What of a file stays: its lines that are whole and not after `step`, but for one that was logged early at that step. */
struct kept {
    size_t bytes;
    bool moved;                         /* what stays is not the beginning of the file */
    int64_t evaluated;                  /* the last step with a val_loss */
    bool no_memory;                     /* to look at them all */
};

/* Moves what stays to the front of the data. */
static struct kept keep_until(char *data, size_t size, int64_t step, bool early)
{
    struct kept k = {.evaluated = -1};
    for (char *line = data, *end; (end = memchr(line, '\n', size - (size_t)(line - data))); line = end + 1) {
        json_error_t why;
        json_t *j = json_memory_load(line, (size_t)(end - line), 0, &why, &k.no_memory);
        const json_int_t at = json_integer_value(json_object_get(j, "step"));
        const bool good = json_is_object(j) && at <= step, goes = early && at == step && json_object_get(j, "loss");
        if (good && json_object_get(j, "val_loss"))
            k.evaluated = at;
        json_decref(j);
        if (!good)
            break;
        if (goes)
            continue;
        const size_t length = (size_t)(end + 1 - line);
        k.moved |= line != data + k.bytes;
        memmove(data + k.bytes, line, length);
        k.bytes += length;
    }
    return k;
}

static enum status cut_after(struct metrics *m, int64_t step, bool early, struct error *err)
{
    char *data;
    size_t size;
    bool there;
    enum status st = fs_there(m->path, &there, err);
    if (st == OK && there)
        st = fs_read(m->path, &data, &size, 0, err);
    if (st != OK || !there)
        return st;
    const struct kept k = keep_until(data, size, step, early);
    m->evaluated = k.evaluated;
    if (k.no_memory)
        st = error_set(err, CANNOT, "out of memory while '%s' was read", m->path);
    else if (k.moved)
        st = fs_replace(m->path, data, k.bytes, err);
    else if (k.bytes < size && truncate(m->path, (off_t)k.bytes))
        st = error_errno(err, "cannot shorten '%s'", m->path);
    free(data);
    return st;
}

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
    snprintf(m->path, sizeof m->path, "%s/metrics.jsonl", folder);
    m->evaluated = -1;
    enum status st = resumed_step >= 0 ? cut_after(m, resumed_step, early, err) : OK;
    if (st == OK && !(m->file = fopen(m->path, resumed_step >= 0 ? "ae" : "we")))
        st = error_errno(err, "cannot write '%s'", m->path);
    if (st == OK && tensorboard)
        st = open_board(m, folder, err);
    if (st == OK) {
        *out = m;
        return OK;
    }
    if (m->file)
        fclose(m->file);
    free(m);
    return st;
}

/* Takes the object over. */
static void write_line(struct metrics *m, json_t *j)
{
    char *text = j ? json_memory_dump(j, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(j);
    if ((!text || fprintf(m->file, "%s\n", text) < 0 || fflush(m->file)) && !m->failed) {
        m->failed = true;
        m->code = text ? errno : ENOMEM;
    }
    free(text);
}

/* JSON has no NaN: what is not finite is null. */
static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

/* What a GPU tells of itself. */
static const struct { const char *key, *curve; size_t at; double unit; } gpu_fields[] = {
    {"gpu_busy_percent", "gpu/busy_percent", offsetof(struct gpu_state, busy_percent), 1},
    {"gpu_memory_mb", "gpu/memory_mb", offsetof(struct gpu_state, used_bytes), 1e-6},
    {"gpu_watts", "gpu/watts", offsetof(struct gpu_state, watts), 1},
    {"gpu_celsius", "gpu/celsius", offsetof(struct gpu_state, celsius), 1},
    {"gpu_sm_mhz", "gpu/sm_mhz", offsetof(struct gpu_state, sm_mhz), 1},
};

static double gpu_field(const struct gpu_state *s, size_t i)
{
    return *(const double *)((const char *)s + gpu_fields[i].at) * gpu_fields[i].unit;
}

static json_t *gpu_object(const struct gpu_state *s)
{
    json_t *j = json_object();
    for (size_t i = 0; j && i < sizeof gpu_fields / sizeof *gpu_fields; i++)
        json_object_set_new(j, gpu_fields[i].key, number(gpu_field(s, i)));
    return j;
}

void metrics_log(struct metrics *m, const struct train_log *l)
{
    json_t *line = json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I}", "step", (json_int_t)l->step,
                            "epoch", (json_int_t)l->epoch, "loss", number(l->loss), "lr", number(l->lr), "grad_norm",
                            number(l->grad_norm), "steps_per_s", number(l->steps_per_s), "samples_per_s",
                            number(l->samples_per_s), "tokens_per_s", number(l->tokens_per_s), "data_wait_share",
                            number(l->data_wait_share), "seconds", number(l->seconds), "skipped",
                            (json_int_t)l->skipped);
    if (line && l->domain)
        json_object_set_new(line, "domain", json_text(l->domain));
    if (line && l->has_gpu)
        json_object_update_new(line, gpu_object(&l->gpu));
    write_line(m, line);
    if (!m->board)
        return;
    tensorboard_scalar(m->board, "train/loss", l->step, l->loss);
    if (l->domain)
        tensorboard_scalar(m->board, "train/stage", l->step, l->stage + 1);
    tensorboard_scalar(m->board, "train/lr", l->step, l->lr);
    tensorboard_scalar(m->board, "train/grad_norm", l->step, l->grad_norm);
    tensorboard_scalar(m->board, "speed/seconds_per_step", l->step, 1 / l->steps_per_s);
    tensorboard_scalar(m->board, "speed/samples_per_s", l->step, l->samples_per_s);
    tensorboard_scalar(m->board, "speed/tokens_per_s", l->step, l->tokens_per_s);
    tensorboard_scalar(m->board, "speed/data_wait_share", l->step, l->data_wait_share);
    tensorboard_scalar(m->board, "memory/peak_mb", l->step, process_peak_bytes() / 1e6);
    for (size_t i = 0; l->has_gpu && i < sizeof gpu_fields / sizeof *gpu_fields; i++)
        if (isfinite(gpu_field(&l->gpu, i)))
            tensorboard_scalar(m->board, gpu_fields[i].curve, l->step, gpu_field(&l->gpu, i));
}

/* {"prose": 2.1, "code": 3.4}; NULL: no memory. */
static json_t *losses_json(const struct dataset *d, const double *losses)
{
    json_t *j = json_object();
    for (int i = 0; j && i < dataset_domains(d); i++) {
        if (json_object_set_new(j, dataset_name(dataset_domain(d, i)), number(losses[i])) == 0)
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
    json_t *line = json_pack("{s:I, s:o}", "step", (json_int_t)step, "val_loss", number(losses[stage]));
    if (line && name && (json_object_set_new(line, "domain", json_text(name)) ||
                         json_object_set_new(line, "val_losses", losses_json(d, losses)))) {
        json_decref(line);
        line = NULL;
    }
    write_line(m, line);
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
    if (fclose(m->file) && !m->failed) {
        m->failed = true;
        m->code = errno;
    }
    const enum status board = tensorboard_close(m->board, err);
    errno = m->code;
    const enum status st = m->failed ? error_errno(err, "cannot write '%s'", m->path) : board;
    free(m);
    return st;
}
