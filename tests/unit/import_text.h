/* Small traces written as text, read from memory, and questions about what came of them. */
#ifndef HONE_TESTS_IMPORT_TEXT_H
#define HONE_TESTS_IMPORT_TEXT_H

#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "import/import_int.h"

/* In these traces ' stands for ", which would need a backslash before each. */
#define COMMON "'pid': 10, 'tid': 11, 'ts': 1.5, 'dur': 2.25"
#define EVENT(cat, name) "{'ph': 'X', 'cat': '" cat "', 'name': '" name "', " COMMON "}"
#define OP(name) EVENT("cpu_op", name)
#define WITH_ARGS(cat, name, args) "{'ph': 'X', 'cat': '" cat "', 'name': '" name "', " COMMON ", 'args': {" args "}}"
#define TRACE(events) "{'schemaVersion': 1, 'traceEvents': [" events "], 'traceName': 't.json'}"

/* A copy with " for each ', as long as the text, so that the sanitizers see a read past its end. The caller frees. */
static inline char *with_quotes(const char *text, size_t size)
{
    char *copy = malloc(size ? size : 1);
    for (size_t i = 0; i < size; i++)
        copy[i] = text[i] == '\'' ? '"' : text[i];
    return copy;
}

/* Reads text that may have NULs. */
static inline struct trace *read_bytes(const char *text, size_t size)
{
    struct trace *t = NULL;
    struct error err = {.text = ""};
    char *copy = with_quotes(text, size);
    const enum status st = import_read_memory(&t, "text", copy, size, &err);
    free(copy);
    if (st != OK)
        fail_msg("not read: %s", err.text);
    return t;
}

static inline struct trace *read_text(const char *text) { return read_bytes(text, strlen(text)); }

static inline void assert_refused(const char *text, size_t size, const char *says)
{
    struct trace *t = NULL;
    struct error err = {.text = ""};
    char *copy = with_quotes(text, size);
    assert_int_equal(import_read_memory(&t, "text", copy, size, &err), BAD_INPUT);
    free(copy);
    assert_null(t);
    assert_says(&err, "'text'", says, NULL);
}

static inline const char *name_of(const struct trace *t, int64_t event)
{
    return t->names[t->events[event].name];
}

static inline const char *text_at(const struct trace *t, int32_t index)
{
    return index < 0 ? "(none)" : t->names[index];
}

static inline const struct event_args *args_of(const struct trace *t, int64_t event)
{
    const int32_t index = t->events[event].args;
    if (index < 0 || index >= t->n_args)
        fail_msg("event %lld has no args", (long long)event);
    return &t->args[index];
}

static inline const struct trace_track *track_of(const struct trace *t, int64_t event)
{
    return &t->tracks[t->events[event].track];
}

static inline int64_t count_kind(const struct trace *t, enum event_kind kind)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t->n; i++)
        n += t->events[i].kind == (int16_t)kind;
    return n;
}

/* One of the warnings says the words. */
static inline void assert_warned(const struct trace *t, const char *words)
{
    for (int i = 0; i < t->origin.n_warnings; i++)
        if (strstr(t->origin.warnings[i], words))
            return;
    fail_msg("no warning says '%s'; the first of %d is '%s'", words, t->origin.n_warnings,
             t->origin.n_warnings ? t->origin.warnings[0] : "");
}

/* Everything that a reader sees of two traces, except for the order in which names were met. */
static inline void assert_same_trace(const struct trace *a, const struct trace *b)
{
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->n_tracks, b->n_tracks);
    assert_int_equal(a->n_args, b->n_args);
    assert_int_equal(a->n_devices, b->n_devices);
    assert_int_equal(a->n_names, b->n_names);
    assert_int_equal(a->origin.json_bytes, b->origin.json_bytes);
    assert_int_equal(a->origin.events_skipped, b->origin.events_skipped);
    assert_int_equal(a->origin.other_events, b->origin.other_events);
    assert_int_equal(a->origin.rank, b->origin.rank);
    assert_int_equal(a->origin.truncated, b->origin.truncated);
    assert_int_equal(a->origin.n_warnings, b->origin.n_warnings);
    for (int32_t i = 0; i < a->n_names; i++)
        assert_string_equal(a->names[i], b->names[i]);
    for (int i = 0; i < a->origin.n_warnings; i++)
        assert_string_equal(a->origin.warnings[i], b->origin.warnings[i]);
    if (a->n)
        assert_memory_equal(a->events, b->events, (size_t)a->n * sizeof *a->events);
    if (a->n_args)
        assert_memory_equal(a->args, b->args, (size_t)a->n_args * sizeof *a->args);
}

#endif
