/* What is told of the nodes of a tree: norms of their gradients and how often they were selected, since the last log; nodes.jsonl. */
#include <math.h>
#include <stdlib.h>

#include "core/arena.h"
#include "passes/passes.h"
#include "train/train_int.h"

/* ---- sums over steps ---- */

static int count_nodes(const struct program *p)
{
    const value_id n = program_find(p, K1_COUNTS);
    return n == NO_VALUE ? 0 : (int)shape_count(p->values[n].shape);
}

void node_sums_init(struct node_sums *s, const struct model_run *r)
{
    const int n = count_nodes(exec_program(r->train));
    *s = (struct node_sums){.n = n};
    if (!n)
        return;
    s->norm = xcalloc((size_t)n, sizeof *s->norm);
    s->most = xcalloc((size_t)n, sizeof *s->most);
    s->known = xcalloc((size_t)n, sizeof *s->known);
    s->selected = xcalloc((size_t)n, sizeof *s->selected);
    s->newest = xcalloc((size_t)n, sizeof *s->newest);
}

void node_sums_release(struct node_sums *s)
{
    free(s->norm);
    free(s->most);
    free(s->known);
    free(s->selected);
    free(s->newest);
    *s = (struct node_sums){0};
}

void node_sums_reset(struct node_sums *s)
{
    s->steps = 0;
    for (int j = 0; j < s->n; j++) {
        s->norm[j] = s->most[j] = 0;
        s->known[j] = s->selected[j] = 0;
    }
}

/* A score of 0 is of a node whose gradient was left out; one that is not finite is of a step that changed nothing. */
static void add_step(struct node_sums *s, const float *scores, const float *mask)
{
    s->steps++;
    s->n_newest = 0;
    for (int j = 0; j < s->n; j++) {
        const bool known = isfinite(scores[j]) && scores[j] > 0;
        s->norm[j] += known ? scores[j] : 0;
        s->most[j] = known && scores[j] > s->most[j] ? scores[j] : s->most[j];
        s->known[j] += known;
        s->selected[j] += mask[j] != 0;
        if (mask[j] != 0)
            s->newest[s->n_newest++] = j;
    }
}

/* What the host has read of a step: all scores at once, or one by one. Selected is who was updated last in this step. */
static void add_read_step(struct node_sums *s, struct model_run *r)
{
    const struct program *p = exec_program(r->train);
    const value_id all = program_find(p, SCORES_READ);
    float *scores = xcalloc((size_t)s->n, sizeof *scores), *mask = xcalloc((size_t)s->n, sizeof *mask);
    int32_t *last = xcalloc((size_t)s->n, sizeof *last), step;
    for (int j = 0; j < s->n && all == NO_VALUE; j++) {
        char name[32];
        snprintf(name, sizeof name, SCORE_READ, j);
        scores[j] = exec_scalar(r->train, program_find(p, name));
    }
    if (all != NO_VALUE)
        exec_read(r->train, all, scores);
    exec_read(r->train, program_find(p, K1_LAST), last);
    exec_read(r->train, p->step, &step);
    for (int j = 0; j < s->n; j++)
        mask[j] = last[j] == step;
    add_step(s, scores, mask);
    free(scores);
    free(mask);
    free(last);
}

void node_sums_add(struct node_sums *s, struct model_run *r, int steps)
{
    const struct program *p = exec_program(r->train);
    const value_id ring = program_find(p, NODES_RING);
    uint32_t step;
    if (!s->n || !steps)
        return;
    if (ring == NO_VALUE) {
        add_read_step(s, r);
        return;
    }
    float *rows = xcalloc(1, value_bytes(&p->values[ring]));        /* (METRICS_KEPT, 2 n): scores, mask */
    exec_read(r->train, ring, rows);
    exec_read(r->train, p->step, &step);
    for (int i = steps - 1; i >= 0; i--) {
        const float *row = rows + (size_t)((step - (uint32_t)i) % METRICS_KEPT) * 2 * (size_t)s->n;
        add_step(s, row, row + s->n);
    }
    free(rows);
}

/* ---- carried on in a checkpoint ---- */

/* A list without some of its items is none. */
static json_t *whole(json_t *list, int n)
{
    if (list && (int)json_array_size(list) == n)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *reals(const double *x, int n)
{
    json_t *j = json_array();
    for (int i = 0; j && i < n; i++)
        json_array_append_new(j, json_number(x[i]));
    return whole(j, n);
}

static json_t *counts(const int64_t *x, int n)
{
    json_t *j = json_array();
    for (int i = 0; j && i < n; i++)
        json_array_append_new(j, json_integer(x[i]));
    return whole(j, n);
}

json_t *node_sums_json(const struct node_sums *s)
{
    return json_pack("{s:I, s:o, s:o, s:o, s:o}", "steps", (json_int_t)s->steps, "norm", reals(s->norm, s->n), "most",
                     reals(s->most, s->n), "known", counts(s->known, s->n), "selected", counts(s->selected, s->n));
}

void node_sums_restore(struct node_sums *s, const json_t *j)
{
    s->steps = json_integer_value(json_object_get(j, "steps"));
    for (int i = 0; i < s->n; i++) {
        const size_t at = (size_t)i;
        s->norm[i] = json_number_value(json_array_get(json_object_get(j, "norm"), at));
        s->most[i] = json_number_value(json_array_get(json_object_get(j, "most"), at));
        s->known[i] = json_integer_value(json_array_get(json_object_get(j, "known"), at));
        s->selected[i] = json_integer_value(json_array_get(json_object_get(j, "selected"), at));
    }
}

/* ---- nodes.jsonl ---- */

struct node_log {
    struct lines lines;
};

enum status node_log_open(struct node_log **out, const struct model_run *r, const char *folder, int64_t resumed_step, bool early,
                          struct error *err)
{
    int64_t evaluated;
    *out = NULL;
    if (!count_nodes(exec_program(r->train)))
        return OK;
    struct node_log *l = xcalloc(1, sizeof *l);
    const enum status st = lines_open(&l->lines, folder, "nodes.jsonl", resumed_step, early, &evaluated, err);
    if (st == OK)
        *out = l;
    else
        free(l);
    return st;
}

/* NAN where no step had a norm. */
static double mean_norm(const struct node_sums *s, int j) { return s->known[j] ? s->norm[j] / (double)s->known[j] : NAN; }

static json_t *line_of(struct model_run *r, const struct node_sums *s, const struct train_log *log)
{
    double *mean = xcalloc((size_t)s->n, sizeof *mean);
    int64_t *n = xcalloc((size_t)s->n, sizeof *n);
    int32_t *updates = xcalloc((size_t)s->n, sizeof *updates);
    exec_read(r->train, program_find(exec_program(r->train), K1_COUNTS), updates);
    for (int j = 0; j < s->n; j++) {
        mean[j] = mean_norm(s, j);
        n[j] = updates[j];
    }
    json_t *line = json_pack("{s:I, s:I, s:o, s:o, s:o, s:o}", "step", (json_int_t)log->step, "steps", (json_int_t)s->steps,
                             "norm_mean", reals(mean, s->n), "norm_max", reals(s->most, s->n), "selected", counts(s->selected, s->n),
                             "n", counts(n, s->n));
    if (line && log->domain && json_object_set_new(line, "domain", json_text(log->domain))) {
        json_decref(line);
        line = NULL;
    }
    free(mean);
    free(n);
    free(updates);
    return line;
}

static void show(struct tensorboard *board, const struct node_sums *s, int64_t step)
{
    for (int j = 0; j < s->n; j++) {
        char name[48];
        snprintf(name, sizeof name, "nodes/norm of %d", j);
        if (s->known[j])
            tensorboard_scalar(board, name, step, mean_norm(s, j));
        snprintf(name, sizeof name, "nodes/selected share of %d", j);
        tensorboard_scalar(board, name, step, (double)s->selected[j] / (double)(s->steps ? s->steps : 1));
    }
}

void node_log_write(struct node_log *l, struct model_run *r, const struct node_sums *s, const struct train_log *log,
                    struct tensorboard *board)
{
    if (!l)
        return;
    lines_write(&l->lines, line_of(r, s, log));
    if (board)
        show(board, s, log->step);
}

struct lines *node_log_lines(struct node_log *l) { return l ? &l->lines : NULL; }

enum status node_log_close(struct node_log *l, struct error *err)
{
    if (!l)
        return OK;
    const enum status st = lines_close(&l->lines, err);
    free(l);
    return st;
}
