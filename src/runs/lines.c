/* metrics.jsonl read back: forward in blocks, whatever its size, and the last lines alone. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/json_memory.h"
#include "runs/runs.h"

enum { BLOCK = 1 << 20, LINE_MOST = 1 << 16, STEP_MOST = INT32_MAX };

static double number(const json_t *j, const char *key)
{
    const json_t *x = json_object_get(j, key);
    return json_is_number(x) ? json_number_value(x) : NAN;
}

static struct metrics_line log_line(const json_t *j, int64_t step)
{
    return (struct metrics_line){.kind = METRICS_LOG, .step = step, .loss = number(j, "loss"), .steps_per_s = number(j, "steps_per_s"),
                                 .tokens_per_s = number(j, "tokens_per_s"), .seconds = number(j, "seconds"), .overall_per_s = number(j, "steps_per_s_overall"),
                                 .memory_bytes = number(j, "gpu_memory_mb") * 1e6};
}

struct metrics_line metrics_line_parse(const char *text, size_t length)
{
    struct metrics_line line = {.kind = METRICS_BAD};
    json_error_t why;
    bool no_memory;
    json_t *j = length <= LINE_MOST ? json_memory_load(text, length, JSON_REJECT_DUPLICATES, &why, &no_memory) : NULL;
    const json_t *step = json_object_get(j, "step");
    const int64_t at = json_is_integer(step) ? (int64_t)json_integer_value(step) : -1;
    if (!j || at > STEP_MOST)
        line.kind = METRICS_BAD;
    else if (at >= 0 && json_object_get(j, "loss") && json_object_get(j, "steps_per_s"))
        line = log_line(j, at);
    else if (at >= 0 && json_object_get(j, "val_loss"))
        line = (struct metrics_line){.kind = METRICS_EVAL, .step = at, .loss = number(j, "val_loss")};
    else
        line.kind = json_is_object(j) ? METRICS_OTHER : METRICS_BAD;
    json_decref(j);
    return line;
}

static enum status open_lines(int *fd, const char *path, off_t *size, struct error *err)
{
    struct stat s;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);        /* O_NONBLOCK: opening a pipe must not wait */
    if (*fd < 0)
        return error_errno(err, "cannot open '%s'", path);
    if (fstat(*fd, &s) == 0 && S_ISREG(s.st_mode)) {
        *size = s.st_size;
        return OK;
    }
    close(*fd);
    return error_set(err, BAD_INPUT, "'%s' is not a regular file", path);
}

static ssize_t read_some(int fd, char *to, size_t room, off_t at)
{
    ssize_t n;
    do
        n = pread(fd, to, room, at);
    while (n < 0 && errno == EINTR);
    return n;
}

/* ---- forward ---- */

struct forward {
    char *block;                        /* (BLOCK) */
    size_t held;                        /* of a line that has no end yet */
    bool skipping;                      /* in a line that is too long */
    metrics_line_fn *tell;
    void *context;
};

static void tell_line(const struct forward *f, const char *text, size_t length, bool good)
{
    const struct metrics_line bad = {.kind = METRICS_BAD}, line = good ? metrics_line_parse(text, length) : bad;
    f->tell(f->context, &line);
}

/* All lines that end in the block; what is behind the last one moves to its front. */
static void take_lines(struct forward *f, size_t filled)
{
    char *line = f->block, *end;
    while ((end = memchr(line, '\n', filled - (size_t)(line - f->block)))) {
        tell_line(f, line, (size_t)(end - line), !f->skipping);
        f->skipping = false;
        line = end + 1;
    }
    f->held = filled - (size_t)(line - f->block);
    memmove(f->block, line, f->held);
    if (f->held > LINE_MOST) {
        f->skipping = true;
        f->held = 0;
    }
}

enum status metrics_each(const char *path, metrics_line_fn *tell, void *context, bool *cut, struct error *err)
{
    struct forward f = {.block = malloc(BLOCK), .tell = tell, .context = context};
    off_t size, at = 0;
    int fd = -1;
    enum status st = f.block ? open_lines(&fd, path, &size, err) : error_no_memory(err, "the lines of a run", BLOCK);
    for (ssize_t n = 1; st == OK && n > 0; at += n) {
        n = read_some(fd, f.block + f.held, BLOCK - f.held, at);
        if (n < 0)
            st = error_errno(err, "cannot read '%s'", path);
        else if (n > 0)
            take_lines(&f, f.held + (size_t)n);
    }
    *cut = f.held > 0 || f.skipping;
    if (fd >= 0)
        close(fd);
    free(f.block);
    return st;
}

/* ---- backward ---- */

struct backward {
    struct metrics_line *log, *eval;
};

static bool is_found(const struct backward *b) { return b->log->kind == METRICS_LOG && b->eval->kind == METRICS_EVAL; }

static void look_at(const struct backward *b, const char *text, size_t length)
{
    if (b->log->kind == METRICS_LOG && !memmem(text, length, "\"val_loss\"", 10))
        return;                         /* of many logs behind the last evaluation, none is looked at */
    const struct metrics_line line = metrics_line_parse(text, length);
    if (line.kind == METRICS_LOG && b->log->kind != METRICS_LOG)
        *b->log = line;
    if (line.kind == METRICS_EVAL && b->eval->kind != METRICS_EVAL)
        *b->eval = line;
}

/* Lines of a block from its last to its first, whose beginning is not known and which is left; returns where it ends. */
static size_t look_back(const struct backward *b, const char *block, size_t filled, bool first)
{
    size_t end = filled;                /* behind the end of a line */
    while (end && !is_found(b)) {
        const char *before = end > 1 ? memrchr(block, '\n', end - 1) : NULL;
        if (!before && !first)
            return end;
        const size_t start = before ? (size_t)(before + 1 - block) : 0;
        if (end > start && block[end - 1] == '\n')      /* else it is cut off */
            look_at(b, block + start, end - 1 - start);
        end = start;
    }
    return end;
}

static enum status search_back(int fd, const char *path, off_t size, char *block, const struct backward *b, struct error *err)
{
    const off_t least = size > METRICS_BACK ? size - METRICS_BACK : 0;
    for (off_t end = size; end > least && !is_found(b);) {
        const off_t start = end > BLOCK ? end - BLOCK : 0;
        const ssize_t n = read_some(fd, block, (size_t)(end - start), start);
        if (n < 0)
            return error_errno(err, "cannot read '%s'", path);
        const size_t left = look_back(b, block, (size_t)n, start == 0);
        end = left < (size_t)n ? start + (off_t)left : start;   /* a block within one line is passed over */
    }
    return OK;
}

enum status metrics_last(const char *path, struct metrics_line *log, struct metrics_line *eval, struct error *err)
{
    const struct backward b = {log, eval};
    char *block = malloc(BLOCK);
    off_t size = 0;
    int fd = -1;
    log->kind = eval->kind = METRICS_OTHER;
    enum status st = block ? open_lines(&fd, path, &size, err) : error_no_memory(err, "the lines of a run", BLOCK);
    if (st == OK)
        st = search_back(fd, path, size, block, &b, err);
    if (fd >= 0)
        close(fd);
    free(block);
    return st;
}

/* ---- the end ---- */

static int64_t count_bad(const char *line, const char *stop)
{
    int64_t bad = 0;
    for (const char *end; (end = memchr(line, '\n', (size_t)(stop - line))); line = end + 1)
        bad += metrics_line_parse(line, (size_t)(end - line)).kind == METRICS_BAD;
    return bad;
}

int64_t metrics_bad_at_end(const char *path)
{
    char *block = malloc(METRICS_END);
    off_t size = 0;
    int fd = -1;
    if (!block || open_lines(&fd, path, &size, NULL) != OK) {
        free(block);
        return 0;
    }
    const off_t start = size > METRICS_END ? size - METRICS_END : 0;
    const ssize_t n = read_some(fd, block, (size_t)(size - start), start);
    const char *stop = block + (n > 0 ? n : 0), *first = start && n > 0 ? memchr(block, '\n', (size_t)n) : block;     /* behind a line whose beginning is not seen */
    const int64_t bad = n > 0 && first ? count_bad(first + (start > 0), stop) : 0;
    close(fd);
    free(block);
    return bad;
}
