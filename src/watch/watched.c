/* Reads the watch.json of a rank, which the hook wrote in the program's own process: nothing in it is believed unseen. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/clean.h"
#include "core/json_memory.h"
#include "watch/watch.h"

enum { FORMAT = 1, MOST_NOTES = 64 };
static const double MOST_US = 1e15, MOST_COUNT = 1e15;

static double number(const json_t *j, const char *key, double most)
{
    const json_t *x = json_object_get(j, key);
    const double value = json_is_number(x) ? json_number_value(x) : 0;
    return value > 0 && value <= most ? value : 0;
}

static int64_t count(const json_t *j, const char *key) { return (int64_t)number(j, key, MOST_COUNT); }

static const char *word(struct arena *a, const json_t *j, const char *key)
{
    const char *text = json_string_value(json_object_get(j, key));
    char *clean = text_clean(text ? text : "");
    const char *kept = arena_printf(a, "%.500s", clean);
    free(clean);
    return kept;
}

/* A window without steps or time was not finished. */
static struct watched_window window(const json_t *j)
{
    struct watched_window w = {.first = count(j, "first"), .steps = count(j, "steps"), .step_us = number(j, "step_us", MOST_US),
                               .usual_us = number(j, "usual_us", MOST_US),
                               .median_us = number(j, "median_us", MOST_US), .fastest_us = number(j, "fastest_us", MOST_US),
                               .slowest_us = number(j, "slowest_us", MOST_US)};
    return w.steps && w.step_us > 0 ? w : (struct watched_window){0};
}

static struct watched_window recorded(const json_t *j, const char *kind)
{
    size_t i;
    const json_t *one;
    json_array_foreach(json_object_get(j, "recorded"), i, one) {
        const char *is = json_string_value(json_object_get(one, "kind"));
        if (is && !strcmp(is, kind))
            return window(one);
    }
    return (struct watched_window){0};
}

static void take_notes(struct watched_rank *r, struct arena *a, const json_t *list)
{
    const size_t n = json_array_size(list) < MOST_NOTES ? json_array_size(list) : MOST_NOTES;
    r->notes = arena_alloc(a, (n + 1) * sizeof *r->notes);
    for (size_t i = 0; i < n; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        char *clean = text ? text_clean(text) : NULL;
        if (clean)
            r->notes[r->n_notes++] = arena_printf(a, "%.1000s", clean);
        free(clean);
    }
}

static enum status take(struct watched_rank *r, struct arena *a, const char *name, const json_t *j, struct error *err)
{
    const json_t *rank = json_object_get(j, "rank"), *device = json_object_get(j, "device");
    if (count(j, "format") != FORMAT)
        return error_set(err, BAD_INPUT, "'%.300s' is not of this version of hone watch: its format is not %d", name, FORMAT);
    if (!json_is_integer(rank) || json_integer_value(rank) < 0 || json_integer_value(rank) > 1 << 20)
        return error_set(err, BAD_INPUT, "'%.300s' has no 'rank' of 0 or more", name);
    *r = (struct watched_rank){
        .rank = (int)json_integer_value(rank), .world_size = (int)number(j, "world_size", 1 << 20), .ranks_here = (int)number(j, "ranks_here", 1 << 20), .torch = word(a, j, "torch"),
        .python = word(a, j, "python"), .device = word(a, device, "kind"), .steps_by = word(a, j, "steps_by"), .failure = word(a, j, "failure"), .steps = count(j, "steps"),
        .backwards = count(j, "backwards_per_step"), .calls = count(j, "cycle"), .peak_bytes = number(device, "peak_bytes", 1e18),
        .finished = json_is_true(json_object_get(j, "finished")), .stopped = json_is_true(json_object_get(j, "stopped")), .ended = json_is_true(json_object_get(j, "ended")),
        .undisturbed = window(json_object_get(j, "undisturbed")), .shapes = recorded(j, "shapes"), .stacks = recorded(j, "stacks")};
    take_notes(r, a, json_object_get(j, "notes"));
    return OK;
}

enum status watched_parse(struct watched_rank *out, struct json_t **trial, struct arena *a, const char *name, const char *text, size_t size,
                          struct error *err)
{
    json_error_t why;
    bool no_memory;
    *trial = NULL;
    json_t *j = json_memory_load(text, size, 0, &why, &no_memory);
    if (no_memory)
        return error_set(err, CANNOT, "out of memory for reading '%.300s'", name);
    if (!j)
        return error_set(err, BAD_INPUT, "'%.300s' line %d: not JSON: %s", name, why.line, why.text);
    const enum status st = take(out, a, name, j, err);
    json_t *tried = json_object_get(j, "trial");
    if (st == OK && json_is_object(tried))
        *trial = json_incref(tried);
    json_decref(j);
    return st;
}

/* One that was killed could not say so itself. */
void watched_end_trial(struct watched *w)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(w->trial, "switches"), i, one) {
        const char *state = json_string_value(json_object_get(one, "state"));
        if (state && !strcmp(state, "running")) {
            json_object_set_new(one, "state", json_string("cut short"));
            json_object_set_new(one, "why", json_string("the program was gone"));
        }
    }
}
