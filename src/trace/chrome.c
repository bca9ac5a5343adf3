/* The trace as Chrome's JSON ("Trace Event Format"), event by event, without a document in memory: traces may have
 * millions of events. Times are microseconds with the nanoseconds as decimals, so nothing is rounded and what nests in
 * the trace nests in the file. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/trace.h"
#include "trace/trace_int.h"

struct writer {
    const struct trace *trace;
    const struct event **order;     /* (n) as they are written */
    char **names;                   /* (n_names) without quotes, ready for a JSON string */
    char *process;                  /* likewise */
    int64_t zero_ns;                /* what is written as time 0: an event before the trace's origin moves it */
    FILE *file;
    int code;                       /* errno of the first failure */
};

static const char *const categories[] = {
    [EVENT_STEP] = "step", [EVENT_PHASE] = "phase", [EVENT_OP] = "op", [EVENT_WAIT] = "wait", [EVENT_LOADER] = "loader",
    [EVENT_LAUNCH] = "launch", [EVENT_DEVICE_COPY] = "copy", [EVENT_QUEUED] = "kernel", [EVENT_SUMS] = "sums", [EVENT_HELP] = "help",
};

/* By time; of those that start together the outer one first: the longer, then the coarser kind, then the one
 * recorded first. */
static int by_time(const void *a, const void *b)
{
    const struct event *x = *(const struct event *const *)a, *y = *(const struct event *const *)b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    if (x->duration_ns != y->duration_ns)
        return x->duration_ns > y->duration_ns ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return x < y ? -1 : x > y;
}

static enum status sort_events(struct writer *w, struct error *err)
{
    const struct trace *t = w->trace;
    w->order = malloc(((size_t)t->n + 1) * sizeof *w->order);
    if (!w->order)
        return error_set(err, CANNOT, "out of memory: writing a trace of %" PRId64 " events needs %.1f MB", t->n,
                         (double)t->n * sizeof *w->order / 1e6);
    for (int64_t i = 0; i < t->n; i++)
        w->order[i] = &t->events[i];
    qsort(w->order, (size_t)t->n, sizeof *w->order, by_time);
    w->zero_ns = t->n && w->order[0]->start_ns < 0 ? w->order[0]->start_ns : 0;
    return OK;
}

/* The inside of a JSON string. By hand: what jansson gives where memory is short cannot be told from a text. */
static char *escape(const char *text)
{
    static const char letters[' '] = {['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    char *repaired = trace_text_repair(text), *out = xcalloc(strlen(repaired) + 1, sizeof "\\u0000" - 1), *to = out;
    for (const unsigned char *c = (const unsigned char *)repaired; *c; c++) {
        const bool control = *c < ' ';
        if (control && !letters[*c]) {
            to += sprintf(to, "\\u%04X", *c);
            continue;
        }
        if (control || *c == '"' || *c == '\\')
            *to++ = '\\';
        *to++ = (char)(control ? letters[*c] : *c);
    }
    free(repaired);
    return out;
}

static void escape_names(struct writer *w, const char *process)
{
    w->process = escape(process);
    w->names = xcalloc((size_t)w->trace->n_names, sizeof *w->names);
    for (int32_t i = 0; i < w->trace->n_names; i++)
        w->names[i] = escape(w->trace->names[i]);
}

__attribute__((format(printf, 2, 3))) static void put(struct writer *w, const char *format, ...)
{
    va_list args;
    if (w->code)
        return;
    va_start(args, format);
    if (vfprintf(w->file, format, args) < 0)
        w->code = errno;
    va_end(args);
}

static void put_us(struct writer *w, const char *key, uint64_t ns)
{
    put(w, "\"%s\":%" PRIu64 ".%03" PRIu64, key, ns / 1000, ns % 1000);
}

static void put_track(struct writer *w, int track)
{
    char name[TRACK_NAME];
    put(w, ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":\"%s", track, trace_track_name(w->trace, track, name));
    put(w, "\"}},\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%d}}",
        track, track);
}

/* Names the process and the tracks that have events. */
static void put_tracks(struct writer *w)
{
    bool *used = xcalloc((size_t)INT16_MAX + 1, sizeof *used);
    for (int64_t i = 0; i < w->trace->n; i++)
        if (w->trace->events[i].kind != EVENT_COUNTER)
            used[w->trace->events[i].track] = true;
    put(w, "{\"ph\":\"M\",\"pid\":1,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"%s\"}}", w->process);
    for (int track = 0; track <= INT16_MAX; track++)
        if (used[track])
            put_track(w, track);
    free(used);
}

static void put_counter(struct writer *w, const struct event *e)
{
    put(w, ",\n{\"ph\":\"C\",\"pid\":1,\"tid\":%d,\"name\":\"%s\",", e->track, w->names[e->name]);
    put_us(w, "ts", (uint64_t)e->start_ns - (uint64_t)w->zero_ns);
    if (isfinite(e->value))
        put(w, ",\"args\":{\"value\":%.17g}}", e->value);
    else
        put(w, ",\"args\":{\"value\":null}}");          /* JSON has no NaN */
}

/* Steps are told apart by their number: "step 12". */
static void put_complete(struct writer *w, const struct event *e)
{
    put(w, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"cat\":\"%s\",\"name\":\"%s", e->track, categories[e->kind],
        w->names[e->name]);
    if (e->kind == EVENT_STEP && e->step >= 0)
        put(w, " %d", e->step);
    put(w, "\",");
    put_us(w, "ts", (uint64_t)e->start_ns - (uint64_t)w->zero_ns);
    put(w, ",");
    put_us(w, "dur", (uint64_t)e->duration_ns);
    put(w, ",\"args\":{");
    if (e->step >= 0)
        put(w, "\"step\":%d", e->step);
    if (e->op >= 0)
        put(w, "%s\"op\":%d", e->step >= 0 ? "," : "", e->op);
    put(w, "}}");
}

static void put_all(struct writer *w)
{
    put(w, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    put_tracks(w);
    for (int64_t i = 0; i < w->trace->n && !w->code; i++)
        if (w->order[i]->kind == EVENT_COUNTER)
            put_counter(w, w->order[i]);
        else
            put_complete(w, w->order[i]);
    put(w, "\n]}\n");
}

/* An unfinished file is removed, but never a device such as /dev/full. */
static enum status write_file(struct writer *w, const char *path, struct error *err)
{
    struct stat s;
    w->file = fopen(path, "we");
    if (!w->file)
        return error_errno(err, "cannot create '%s'", path);
    put_all(w);
    const bool regular = fstat(fileno(w->file), &s) == 0 && S_ISREG(s.st_mode);
    if (fclose(w->file) && !w->code)
        w->code = errno;
    if (!w->code)
        return OK;
    if (regular)
        unlink(path);
    errno = w->code;
    return error_errno(err, "cannot write '%s'", path);
}

enum status trace_write_chrome(const struct trace *t, const char *path, const char *process, struct error *err)
{
    struct writer w = {.trace = t};
    enum status st = sort_events(&w, err);
    if (st == OK) {
        escape_names(&w, process);
        st = write_file(&w, path, err);
    }
    for (int32_t i = 0; w.names && i < t->n_names; i++)
        free(w.names[i]);
    free(w.names);
    free(w.process);
    free(w.order);
    return st;
}
