/* Which runs a sweep has, what they are called, and whether each can be made; see sweep.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "runs/runs_int.h"
#include "runs/sweep.h"
#include "train/train.h"

void runs_sweep_release(struct sweep *s)
{
    for (int a = 0; a < s->n_axes; a++) {
        for (int i = 0; i < s->axis[a].n; i++)
            free(s->axis[a].value[i]);
        free(s->axis[a].key);
    }
    for (int i = 0; i < s->n; i++)
        free(s->run[i].config);
    free(s->run);
    *s = (struct sweep){0};
}

/* ---- the axes ---- */

static enum status add_value(struct sweep_axis *a, const char *text, size_t length, struct error *err)
{
    for (; length && *text == ' '; length--)
        text++;
    while (length && text[length - 1] == ' ')
        length--;
    if (!length)
        return error_set(err, BAD_INPUT, "--vary %s has an empty value; it takes KEY=VALUE,VALUE,...", a->key);
    if (a->n == SWEEP_VALUES)
        return error_set(err, BAD_INPUT, "--vary %s has more than %d values", a->key, SWEEP_VALUES);
    char *value = xneed(strndup(text, length));
    for (int i = 0; i < a->n; i++)
        if (!strcmp(a->value[i], value)) {
            error_set(err, BAD_INPUT, "--vary %s has the value %.100s twice", a->key, value);
            free(value);
            return BAD_INPUT;
        }
    a->value[a->n++] = value;
    return OK;
}

/* Commas inside of brackets belong to a value: "[3, 3],[4]". */
static enum status add_values(struct sweep_axis *a, const char *text, struct error *err)
{
    enum status st = OK;
    int depth = 0;
    const char *start = text;
    for (const char *c = text; st == OK; c++) {
        depth += (*c == '[') - (*c == ']');
        if (*c && (*c != ',' || depth > 0))
            continue;
        st = add_value(a, start, (size_t)(c - start), err);
        start = c + 1;
        if (!*c)
            break;
    }
    return st;
}

static enum status add_axis(struct sweep *s, const char *text, struct error *err)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return error_set(err, BAD_INPUT, "--vary is '%.200s'; it takes KEY=VALUE,VALUE,..., e.g. train.lr=1e-3,3e-3", text);
    if (s->n_axes == SWEEP_AXES)
        return error_set(err, BAD_INPUT, "--vary is given more than %d times", SWEEP_AXES);
    struct sweep_axis *a = &s->axis[s->n_axes++];
    a->key = xneed(strndup(text, (size_t)(equals - text)));
    for (int i = 0; i + 1 < s->n_axes; i++)
        if (!strcmp(s->axis[i].key, a->key))
            return error_set(err, BAD_INPUT, "--vary %.100s is given twice; put all values into one", a->key);
    return add_values(a, equals + 1, err);
}

/* One of the two would be dropped without a word. */
static enum status refuse_set(const struct sweep *s, const char *const *sets, int n_sets, struct error *err)
{
    for (int a = 0; a < s->n_axes; a++) {
        const char *key = s->axis[a].key;
        for (int i = 0; i < n_sets; i++)
            if (!strncmp(sets[i], key, strlen(key)) && sets[i][strlen(key)] == '=')
                return error_set(err, BAD_INPUT, "%.100s is given by --vary and by --set %.100s; leave one out", key, sets[i]);
    }
    return OK;
}

/* ---- names ---- */

static const char *last_part(const char *key)
{
    const char *dot = strrchr(key, '.');
    return dot ? dot + 1 : key;
}

/* "lr" of "train.lr", where no other axis ends so. */
static const char *short_key(const struct sweep *s, int axis)
{
    const char *word = last_part(s->axis[axis].key);
    for (int i = 0; i < s->n_axes; i++)
        if (i != axis && !strcmp(last_part(s->axis[i].key), word))
            return s->axis[axis].key;
    return word;
}

/* A part of a path as people write it; whatever is more than that becomes an underscore. */
static void make_safe(char *text)
{
    for (char *c = text; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+-=,_", *c))
            *c = '_';
}

static const char *value_at(const struct sweep *s, int run, int axis)
{
    int after = 1;
    for (int a = axis + 1; a < s->n_axes; a++)
        after *= s->axis[a].n;
    return s->axis[axis].value[run / after % s->axis[axis].n];
}

static enum status make_name(struct sweep *s, int run, struct error *err)
{
    char *name = s->run[run].name;
    size_t n = 0;
    for (int a = 0; a < s->n_axes && n < SWEEP_NAME; a++)
        n += (size_t)snprintf(name + n, SWEEP_NAME - n, "%s%s=%s", a ? "," : "", short_key(s, a), value_at(s, run, a));
    if (n >= SWEEP_NAME)
        return error_set(err, BAD_INPUT, "--vary: the name '%.80s…' of a run has more than %d bytes; vary fewer keys at once", name, SWEEP_NAME - 1);
    make_safe(name);
    for (int i = 0; i < run; i++)
        if (!strcmp(s->run[i].name, name))
            return error_set(err, BAD_INPUT, "--vary: two runs would be called '%s'; vary these values in two sweeps", name);
    return OK;
}

/* ---- the runs ---- */

/* What --set would be told is told of --vary. */
static enum status tell_vary(const struct sweep *s, struct error *err)
{
    static const char set[] = "--set ";
    char text[sizeof err->text];
    if (strncmp(err->text, set, sizeof set - 1))
        return err->status;
    snprintf(text, sizeof text, "%s", err->text + sizeof set - 1);
    for (int a = 0; a < s->n_axes; a++)
        if (!strncmp(text, s->axis[a].key, strlen(s->axis[a].key)))
            return error_set(err, err->status, "--vary %.1000s", text);
    return err->status;
}

static enum status load(struct sweep *s, int run, const char *config, const char *const *sets, int n_sets, struct error *err)
{
    const char **all = xcalloc((size_t)(n_sets + s->n_axes), sizeof *all);
    char *own[SWEEP_AXES];
    for (int i = 0; i < n_sets; i++)
        all[i] = sets[i];
    for (int a = 0; a < s->n_axes; a++) {
        const int n = asprintf(&own[a], "%s=%s", s->axis[a].key, value_at(s, run, a));
        all[n_sets + a] = xneed(n < 0 ? NULL : own[a]);
    }
    s->run[run].config = xcalloc(1, sizeof *s->run[run].config);
    const enum status st = config_load(s->run[run].config, config, all, n_sets + s->n_axes, err);
    for (int a = 0; a < s->n_axes; a++)
        free(own[a]);
    free(all);
    return st == OK ? OK : tell_vary(s, err);
}

/* "1e-3" and "0.001" are one run. */
static enum status refuse_same(const struct sweep *s, int run, struct error *err)
{
    struct config_difference *d = xcalloc(1, sizeof *d);
    int i = 0;
    for (int at = 0; i < run && config_differ(d, s->run[i].config, s->run[run].config, &at); at = 0)
        i++;
    free(d);
    return i == run ? OK : error_set(err, BAD_INPUT, "--vary: '%.100s' and '%.100s' are the same run: their values are equal; leave one out", s->run[i].name, s->run[run].name);
}

enum status sweep_look(struct sweep_run *r, struct error *err)
{
    struct run *there = xcalloc(1, sizeof *there);
    struct error none;
    bool begun;
    const enum status st = train_look(r->config, r->config->train.seed, r->folder, &begun, err);
    memcpy(there->folder, r->folder, sizeof there->folder);
    const bool known = st == OK && begun && run_read(there, &none) == OK;
    r->nan = known && there->state == RUN_NAN;
    r->kept = r->nan || (known && there->state == RUN_FINISHED);
    free(there->config);
    free(there);
    return st;
}

static enum status make_run(struct sweep *s, int i, const char *config, const char *const *sets, int n_sets, const char *out, struct error *err)
{
    struct sweep_run *r = &s->run[i];
    enum status st = make_name(s, i, err);
    if (st == OK && snprintf(r->folder, sizeof r->folder, "%s/%s", out, r->name) >= CONFIG_PATH_MAX - 128)
        st = error_set(err, BAD_INPUT, "the path '%.200s…' is too long", r->folder);
    if (st == OK)
        st = load(s, i, config, sets, n_sets, err);
    if (st == OK)
        st = refuse_same(s, i, err);
    return st == OK ? sweep_look(r, err) : st;
}

enum status runs_sweep_plan(struct sweep *s, const char *config, const char *const *sets, int n_sets, const char *const *vary, int n_vary, const char *out,
                       struct error *err)
{
    enum status st = OK;
    int n = 1;
    *s = (struct sweep){0};
    for (int i = 0; i < n_vary && st == OK; i++)
        st = add_axis(s, vary[i], err);
    if (st == OK)
        st = refuse_set(s, sets, n_sets, err);
    for (int a = 0; a < s->n_axes && st == OK && n <= SWEEP_MOST; a++)
        n *= s->axis[a].n;
    if (st == OK && n > SWEEP_MOST)
        st = error_set(err, BAD_INPUT, "--vary: all combinations are more than %d runs; vary fewer values at once", SWEEP_MOST);
    if (st != OK)
        return st;
    s->run = xcalloc((size_t)n, sizeof *s->run);
    for (s->n = 0; s->n < n && st == OK; s->n++)
        st = make_run(s, s->n, config, sets, n_sets, out, err);
    return st;
}
