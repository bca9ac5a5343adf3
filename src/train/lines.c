/* Files of one JSON object per line, flushed as they are written: metrics.jsonl, nodes.jsonl. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/json_memory.h"
#include "train/train_int.h"

/* What of a file stays: its lines that are whole and not after `step`, but for one that was logged early at that step. A line that cannot be read, as a full disk
 * makes one, goes alone: those behind it are as good as those before. */
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
        bool no_memory;
        json_t *j = json_memory_load(line, (size_t)(end - line), 0, &why, &no_memory);
        k.no_memory |= no_memory;
        const json_int_t at = json_integer_value(json_object_get(j, "step"));
        const bool good = json_is_object(j) && at <= step, goes = early && at == step && (json_object_get(j, "loss") || json_object_get(j, "norm_mean"));
        if (good && json_object_get(j, "val_loss"))
            k.evaluated = at;
        json_decref(j);
        if (!good || goes)
            continue;
        const size_t length = (size_t)(end + 1 - line);
        k.moved |= line != data + k.bytes;
        memmove(data + k.bytes, line, length);
        k.bytes += length;
    }
    return k;
}

static enum status cut_after(const char *path, int64_t step, bool early, int64_t *evaluated, struct error *err)
{
    char *data;
    size_t size;
    bool there;
    enum status st = fs_there(path, &there, err);
    if (st == OK && there)
        st = fs_read(path, &data, &size, 0, err);
    if (st != OK || !there)
        return st;
    const struct kept k = keep_until(data, size, step, early);
    *evaluated = k.evaluated;
    if (k.no_memory)
        st = error_set(err, CANNOT, "out of memory while '%s' was read", path);
    else if (k.moved)
        st = fs_replace(path, data, k.bytes, err);
    else if (k.bytes < size && truncate(path, (off_t)k.bytes))
        st = error_errno(err, "cannot shorten '%s'", path);
    free(data);
    return st;
}

enum status lines_open(struct lines *l, const char *folder, const char *name, int64_t resumed_step, bool early, int64_t *evaluated,
                       struct error *err)
{
    *l = (struct lines){0};
    snprintf(l->path, sizeof l->path, "%s/%s", folder, name);
    *evaluated = -1;
    enum status st = resumed_step >= 0 ? cut_after(l->path, resumed_step, early, evaluated, err) : OK;
    if (st != OK)
        return st;
    const int fd = open(l->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (resumed_step >= 0 ? 0 : O_TRUNC), 0666);
    if (fd < 0 || !(l->file = fdopen(fd, "a"))) {
        st = error_errno(err, "cannot write '%s'", l->path);
        if (fd >= 0)
            close(fd);
        return st;
    }
    l->size = lseek(fd, 0, SEEK_END);
    return OK;
}

/* What was written of a line that could not be written as a whole goes again, so that the next one begins where it should. */
static bool put(struct lines *l, const char *text)
{
    const int length = fprintf(l->file, "%s\n", text);
    if (length >= 0 && fflush(l->file) == 0) {
        l->size += length;
        return true;
    }
    l->code = l->failed ? l->code : errno;
    __fpurge(l->file);
    if (ftruncate(fileno(l->file), l->size))
        l->size = lseek(fileno(l->file), 0, SEEK_END);
    return false;
}

void lines_write(struct lines *l, json_t *j)
{
    char *text = j ? json_memory_dump(j, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(j);
    if (!text && !l->failed)
        l->code = ENOMEM;
    if (!text || !put(l, text))
        l->failed = true;
    free(text);
}

bool lines_lost(struct lines *l, struct error *why)
{
    const bool news = l->failed && !l->told;
    l->told |= news;
    errno = l->code;
    if (news)
        error_errno(why, "cannot write '%s'", l->path);
    return news;
}

/* JSON has no NaN: what is not finite is null. */
json_t *json_number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

enum status lines_close(struct lines *l, struct error *err)
{
    if (l->file && fclose(l->file) && !l->failed) {
        l->failed = true;
        l->code = errno;
    }
    l->file = NULL;
    errno = l->code;
    return l->failed ? error_errno(err, "cannot write '%s'", l->path) : OK;
}
