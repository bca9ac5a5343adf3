/* What the folder of a run over domains tells: forgetting.json and nodes.jsonl. Both may be cut off or edited: what is wrong is
 * refused by name, or left out with a warning, and never trusted. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/fs.h"
#include "core/json_memory.h"
#include "prove/forget.h"

enum { LOSSES_MOST = 1 << 20, LINES_MOST = 1 << 28 };      /* bytes */

/* ---- forgetting.json ---- */

static enum status refuse(const struct forget_run *r, struct error *err, const char *what)
{
    return error_set(err, BAD_INPUT, "'%s/forgetting.json' is damaged: %s; move '%s' away, and the run is made again", r->folder, what,
                     r->folder);
}

static enum status read_domains(struct forget_run *r, const json_t *j, struct error *err)
{
    const json_t *names = json_object_get(j, "domains"), *entropy = json_object_get(j, "entropy"), *x;
    size_t i;
    r->n_domains = (int)json_array_size(names);
    if (json_array_size(names) < 1 || json_array_size(names) > FORGET_DOMAINS)
        return refuse(r, err, "\"domains\" is no list of 1 to 16 names");
    json_array_foreach(names, i, x) {
        const char *name = json_string_value(x);
        const json_t *e = json_array_get(entropy, i);
        if (!name || strlen(name) >= FORGET_PATH)
            return refuse(r, err, "\"domains\" is no list of names");
        strcpy(r->domains[i], name);
        r->entropy[i] = json_is_number(e) ? json_number_value(e) : NAN;
    }
    r->steps_per_domain = (int64_t)json_integer_value(json_object_get(j, "steps_per_domain"));
    return OK;
}

static enum status read_row(struct forget_run *r, const json_t *row, int stage, struct error *err)
{
    if (json_array_size(row) != (size_t)r->n_domains)
        return refuse(r, err, "a row of \"loss\" has not one number per domain");
    for (int d = 0; d < r->n_domains; d++) {
        const json_t *x = json_array_get(row, (size_t)d);
        if (!json_is_number(x))
            return refuse(r, err, "\"loss\" has something that is no number");
        r->loss[stage][d] = json_number_value(x);
    }
    return OK;
}

static enum status read_matrix(struct forget_run *r, const json_t *j, struct error *err)
{
    const json_t *rows = json_object_get(j, "loss");
    const size_t n = json_array_size(rows);
    enum status st = OK;
    if (n < 1 || n > (size_t)r->n_domains + 1)
        return refuse(r, err, "\"loss\" has not a row before training and one per finished stage");
    for (size_t i = 0; i < n && st == OK; i++)
        st = read_row(r, json_array_get(rows, i), (int)i, err);
    r->n_stages = (int)n - 1;
    r->done = st == OK && r->n_stages == r->n_domains;
    return st;
}

enum status forget_read_losses(struct forget_run *r, struct error *err)
{
    char path[CONFIG_PATH_MAX + 32], *text = NULL;
    size_t size = 0;
    json_error_t why;
    bool no_memory = false;
    r->done = false;
    snprintf(path, sizeof path, "%s/forgetting.json", r->folder);
    enum status st = fs_read(path, &text, &size, LOSSES_MOST, err);
    if (st != OK)
        return st;
    json_t *j = json_memory_load(text, size, JSON_REJECT_DUPLICATES, &why, &no_memory);
    free(text);
    if (no_memory)
        return error_no_memory(err, "forgetting.json", size);
    st = json_is_object(j) ? read_domains(r, j, err) : refuse(r, err, "it is no JSON object");
    if (st == OK)
        st = read_matrix(r, j, err);
    json_decref(j);
    return st;
}

/* ---- nodes.jsonl ---- */

static int find_domain(const struct forget_run *r, const char *name)
{
    for (int d = 0; name && d < r->n_domains; d++)
        if (!strcmp(r->domains[d], name))
            return d;
    return -1;
}

/* The domain of a line that names none: where its last step is. */
static int domain_at(const struct forget_run *r, int64_t step)
{
    const int64_t d = r->steps_per_domain > 0 ? (step - 1) / r->steps_per_domain : r->n_domains;
    return d >= 0 && d < r->n_domains ? (int)d : -1;
}

/* A list of numbers, one per node, none below 0 or above `most`; null is NAN where it may be. */
static double *read_numbers(const json_t *list, int n, double most, bool null, struct arena *arena)
{
    if (json_array_size(list) != (size_t)n)
        return NULL;
    double *out = arena_alloc(arena, (size_t)n * sizeof *out);
    for (int i = 0; i < n; i++) {
        const json_t *x = json_array_get(list, (size_t)i);
        out[i] = json_is_number(x) ? json_number_value(x) : NAN;
        if (!(out[i] >= 0 && out[i] <= most) && !(null && json_is_null(x)))
            return NULL;
    }
    return out;
}

static bool read_line(struct forget_run *r, const json_t *j, struct forget_log *log, struct arena *arena)
{
    const size_t n = json_array_size(json_object_get(j, "norm_mean"));
    const int64_t last = r->n_logs ? r->logs[r->n_logs - 1].step : 0;
    const json_t *domain = json_object_get(j, "domain");
    *log = (struct forget_log){.step = (int64_t)json_integer_value(json_object_get(j, "step")),
                               .steps = (int64_t)json_integer_value(json_object_get(j, "steps"))};
    log->domain = domain ? find_domain(r, json_string_value(domain)) : domain_at(r, log->step);
    if (log->step <= last || log->steps < 1 || log->steps > log->step || n < 1 || n > FORGET_NODES ||
        (r->nodes && n != (size_t)r->nodes))
        return false;
    log->norm_mean = read_numbers(json_object_get(j, "norm_mean"), (int)n, HUGE_VAL, true, arena);
    log->norm_max = read_numbers(json_object_get(j, "norm_max"), (int)n, HUGE_VAL, true, arena);
    log->selected = read_numbers(json_object_get(j, "selected"), (int)n, (double)log->steps, false, arena);
    if (!log->norm_mean || !log->norm_max || !log->selected)
        return false;
    r->nodes = (int)n;
    return true;
}

static int count_lines(const char *text, size_t size)
{
    int n = 0;
    for (const char *at = text; (at = memchr(at, '\n', size - (size_t)(at - text))); at++)
        n++;
    return n;
}

/* Reads lines until one is not as it should be; returns how many bytes they have. */
static size_t read_lines(struct forget_run *r, const char *text, size_t size, struct arena *arena, bool *no_memory)
{
    const char *line = text;
    for (const char *end; (end = memchr(line, '\n', size - (size_t)(line - text))); line = end + 1) {
        json_error_t why;
        struct forget_log log;
        json_t *j = json_memory_load(line, (size_t)(end - line), 0, &why, no_memory);
        const bool good = j && read_line(r, j, &log, arena);
        json_decref(j);
        if (!good)
            break;
        r->logs[r->n_logs++] = log;
    }
    return (size_t)(line - text);
}

enum status forget_read_nodes(struct forget_run *r, struct arena *arena, char warning[FORGET_WORDS], struct error *err)
{
    char path[CONFIG_PATH_MAX + 32], *text = NULL;
    size_t size = 0;
    bool there, no_memory = false;
    *warning = '\0';
    snprintf(path, sizeof path, "%s/nodes.jsonl", r->folder);
    enum status st = fs_there(path, &there, err);
    if (st == OK && there)
        st = fs_read(path, &text, &size, LINES_MOST, err);
    if (st != OK)
        return st;
    r->nodes = r->n_logs = 0;
    if (!there) {
        snprintf(warning, FORGET_WORDS, "there is no '%.500s': nothing is known of the nodes of that run", path);
        return OK;
    }
    r->logs = arena_alloc(arena, ((size_t)count_lines(text, size) + 1) * sizeof *r->logs);
    if (read_lines(r, text, size, arena, &no_memory) < size)
        snprintf(warning, FORGET_WORDS, "'%.500s' is cut off or damaged in line %d: what is before it counts", path, r->n_logs + 1);
    free(text);
    return no_memory ? error_no_memory(err, "nodes.jsonl", size) : OK;
}
