/* Reading a trace from start to end: what is set up before, and what is said of it after. */
#include <stdlib.h>

#include "import/kineto_int.h"

/* What files are that are given by mistake, by their first bytes. */
static const char *looks_like(const char *head)
{
    static const struct { const char *bytes; size_t n; const char *words; } known[] = {
        {"PK", 2, "a zip archive; unpack it first"},
        {"\x28\xb5\x2f\xfd", 4, "compressed with zstd; unpack it first"},
        {"BZh", 3, "compressed with bzip2; unpack it first"},
        {"\xfd" "7zXZ", 5, "compressed with xz; unpack it first"},
        {"SQLite", 6, "a database of Nsight Systems or another program"},
        {"<", 1, "a page of HTML or XML"},
        {"\x80\x02", 2, "a Python pickle"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!memcmp(head, known[i].bytes, known[i].n))
            return known[i].words;
    return "text or binary data that is no JSON";
}

/* The file has text, but nothing of it is an event that can be used. */
static enum status no_trace(const struct kineto *k, const struct source *src, const char *name, struct error *err)
{
    static const char expected[] = "a trace of the PyTorch profiler is JSON with "
                                   "\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"cpu_op\", ...}, ...]";
    const struct trace_origin *o = &k->trace->origin;
    if (o->json_bytes == 0 && source_problem(src))
        return error_set(err, BAD_INPUT, "'%s' holds nothing that can be read: %s; %s", name, source_problem(src), expected);
    if (o->json_bytes == 0)
        return error_set(err, BAD_INPUT, "'%s' is empty; %s", name, expected);
    if (k->keeper.beyond > 0)
        return error_set(err, BAD_INPUT, "'%s' has no event whose time can be: the first that is not read starts at byte %lld; times of a trace are "
                         "microseconds, and these are past the year 2116 or longer than 115 days: are they nanoseconds?", name, (long long)k->first_skipped);
    if (o->other_events > 0)
        return error_set(err, BAD_INPUT, "'%s' has %lld event%s, but no operator, kernel, runtime call or step; %s", name,
                         (long long)o->other_events, o->other_events == 1 ? "" : "s", expected);
    if (o->events_skipped > 0)
        return error_set(err, BAD_INPUT, "'%s' has no event that can be read; the first starts at byte %lld; %s", name,
                         (long long)k->first_skipped, expected);
    if (k->state == KINETO_LOST)
        return error_set(err, BAD_INPUT, "'%s' looks like %s; %s", name, looks_like(k->head), expected);
    if (k->keys[0])
        return error_set(err, BAD_INPUT, "'%s' is JSON without events (it has %s); %s", name, k->keys, expected);
    return error_set(err, BAD_INPUT, "'%s' is JSON without events; %s", name, expected);
}

static void warn_of_the_end(struct kineto *k, const struct source *src)
{
    struct trace_origin *o = &k->trace->origin;
    if (source_problem(src)) {
        o->truncated = true;
        kineto_warn(k, "%s; what comes before was read", source_problem(src));
    } else if (k->cut) {
        o->truncated = true;
        kineto_warn(k, "the file ends at byte %lld inside of what starts at byte %lld: it was cut off; "
                    "what comes before was read", (long long)o->json_bytes, (long long)(k->cut - 1));
    } else if (k->state != KINETO_DONE) {
        o->truncated = true;
        kineto_warn(k, "the file ends at byte %lld without closing its list of events: it was cut off; "
                    "what comes before was read", (long long)o->json_bytes);
    }
}

static void warn_of_the_rest(struct kineto *k)
{
    const struct trace_origin *o = &k->trace->origin;
    if (o->events_skipped > 0)
        kineto_warn(k, "%lld malformed event%s skipped, the first at byte %lld", (long long)o->events_skipped,
                    o->events_skipped == 1 ? " was" : "s were", (long long)k->first_skipped);
    if (k->keeper.beyond > 0)
        kineto_warn(k, "%lld of the skipped events %s at times past the year 2116, or longer than 115 days; times of a trace are "
                    "microseconds", (long long)k->keeper.beyond, k->keeper.beyond == 1 ? "is" : "are");
    if (k->keeper.texts.other >= 0)
        kineto_warn(k, "there are too many different names; those after the first %d are given as '(other)'",
                    k->trace->n_names);
    if (k->keeper.args.full)
        kineto_warn(k, "there are too many different arguments; those of some events were left out");
    if (k->keeper.tracks.full)
        kineto_warn(k, "there are more than %d threads and streams; the further ones share a row", k->trace->n_tracks);
}

static void finish(struct kineto *k, const struct source *src, const char *name)
{
    keep_finish(&k->keeper);
    warn_of_the_end(k, src);
    warn_of_the_rest(k);
    if (k->trace->origin.rank < 0)
        k->trace->origin.rank = metadata_rank(name);
}

static struct trace *new_trace(const char *name)
{
    struct trace *t = trace_new();
    t->origin_ns = 0;
    t->origin = (struct trace_origin){.path = arena_printf(&t->arena, "%s", name), .rank = -1, .backend = -1};
    return t;
}

enum status kineto_read(struct trace **out, const char *name, const struct source_from *from, import_progress *progress,
                        void *context, struct error *err)
{
    struct source *src = NULL;
    enum status st = source_new(&src, from, name, err);
    if (st != OK)
        return st;
    struct kineto *k = xcalloc(1, sizeof *k);
    k->trace = new_trace(name);
    keeper_init(&k->keeper, k->trace);
    st = kineto_read_text(k, src, from->total, progress, context, err);
    if (st == OK) {
        finish(k, src, name);
        st = k->trace->n > 0 ? OK : no_trace(k, src, name, err);
    }
    if (st == OK) {
        *out = k->trace;
        k->trace = NULL;                /* handed over */
    }
    keeper_release(&k->keeper);
    trace_free(k->trace);
    free(k);
    source_free(src);
    return st;
}
