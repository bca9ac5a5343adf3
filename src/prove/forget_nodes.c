/* What the nodes of a tree did, of all seeds together: over the whole run, by domain, and in the course of time. */
#include <math.h>
#include <string.h>

#include "prove/forget_int.h"

enum { COLUMNS = 96 };                      /* of the heat map, or a few more: one has no two domains */

struct sums {                               /* over steps of all seeds */
    int64_t step;                           /* the last */
    int domain;
    double steps;
    double *norm, *most, *selected;         /* (nodes) */
    double *known;                          /* (nodes) steps that have a norm: none where gradients are left out */
};

static struct sums sums_new(struct arena *arena, int nodes)
{
    const size_t bytes = (size_t)nodes * sizeof(double);
    return (struct sums){.domain = -1, .norm = arena_alloc(arena, bytes), .most = arena_alloc(arena, bytes),
                         .selected = arena_alloc(arena, bytes), .known = arena_alloc(arena, bytes)};
}

static void add(struct sums *s, const struct forget_log *l, int nodes)
{
    s->steps += (double)l->steps;
    for (int i = 0; i < nodes; i++) {
        if (isfinite(l->norm_mean[i])) {
            s->norm[i] += l->norm_mean[i] * (double)l->steps;
            s->known[i] += (double)l->steps;
        }
        s->most[i] = fmax(s->most[i], l->norm_max[i]);
        s->selected[i] += l->selected[i];
    }
}

/* ---- as JSON ---- */

/* Each over as many steps: null where there are none. */
static json_t *means(const double *values, const double *steps, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, forget_number(steps[i] > 0 ? values[i] / steps[i] : NAN));
    return list;
}

static json_t *list_of(const double *values, int n, double over)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, forget_number(over > 0 ? values[i] / over : NAN));
    return list;
}

static json_t *sums_json(const struct sums *s, int nodes)
{
    return json_pack("{s:o,s:o,s:o,s:o}", "steps", json_real(s->steps), "norm", means(s->norm, s->known, nodes), "norm_max",
                     list_of(s->most, nodes, s->steps > 0 ? 1 : 0), "share", list_of(s->selected, nodes, s->steps));
}

static json_t *domains_json(const struct forget_config *c, int nodes, struct arena *arena)
{
    const struct forget_run *first = forget_first_done(c);
    json_t *list = json_array();
    for (int d = 0; first && d < first->n_domains; d++) {
        struct sums s = sums_new(arena, nodes);
        for (int i = 0; i < c->n_runs; i++)
            for (int l = 0; c->runs[i].nodes == nodes && l < c->runs[i].n_logs; l++)
                if (c->runs[i].logs[l].domain == d)
                    add(&s, &c->runs[i].logs[l], nodes);
        json_t *j = sums_json(&s, nodes);
        json_object_set_new(j, "domain", forget_text(first->domains[d]));
        json_array_append_new(list, j);
    }
    return list;
}

/* ---- over time ---- */

/* Columns as the lines of the first run have them, several lines in one where there are many. */
static int make_columns(const struct forget_run *r, struct sums *columns, struct arena *arena)
{
    const int each = (r->n_logs + COLUMNS - 1) / COLUMNS;
    int n = 0, lines = 0;
    for (int l = 0; l < r->n_logs; l++) {
        if (!n || lines == each || columns[n - 1].domain != r->logs[l].domain) {
            columns[n] = sums_new(arena, r->nodes);
            columns[n++].domain = r->logs[l].domain;
            lines = 0;
        }
        columns[n - 1].step = r->logs[l].step;
        lines++;
    }
    return n;
}

static void fill_columns(const struct forget_run *r, struct sums *columns, int n)
{
    int at = 0;
    for (int l = 0; l < r->n_logs; l++) {
        while (at < n && columns[at].step < r->logs[l].step)
            at++;
        if (at < n)
            add(&columns[at], &r->logs[l], r->nodes);
    }
}

static json_t *time_json(const struct forget_config *c, const struct forget_run *first, struct arena *arena)
{
    struct sums *columns = arena_alloc(arena, (size_t)first->n_logs * sizeof *columns);
    const int n = make_columns(first, columns, arena);
    json_t *list = json_array();
    for (int i = 0; i < c->n_runs; i++)
        if (c->runs[i].nodes == first->nodes)
            fill_columns(&c->runs[i], columns, n);
    for (int i = 0; i < n; i++) {
        json_t *j = sums_json(&columns[i], first->nodes);
        json_object_set_new(j, "step", json_integer((json_int_t)columns[i].step));
        json_object_set_new(j, "domain", columns[i].domain < 0 ? json_null() : forget_text(first->domains[columns[i].domain]));
        json_array_append_new(list, j);
    }
    return list;
}

static const struct forget_run *first_with_nodes(const struct forget_config *c)
{
    for (int i = 0; i < c->n_runs; i++)
        if (c->runs[i].done && c->runs[i].nodes == c->nodes && c->runs[i].n_logs)
            return &c->runs[i];
    return NULL;
}

json_t *forget_nodes_json(const struct forget_config *c)
{
    const struct forget_run *first = c->nodes ? first_with_nodes(c) : NULL;
    struct arena arena = {0};
    if (!first)
        return json_null();
    struct sums all = sums_new(&arena, c->nodes);
    for (int i = 0; i < c->n_runs; i++)
        for (int l = 0; c->runs[i].nodes == c->nodes && l < c->runs[i].n_logs; l++)
            add(&all, &c->runs[i].logs[l], c->nodes);
    json_t *j = sums_json(&all, c->nodes), *parents = json_array();
    for (int i = 0; i < c->nodes; i++)
        json_array_append_new(parents, i ? json_integer(forget_parent(c, i)) : json_null());
    json_object_set_new(j, "parents", parents);
    json_object_set_new(j, "by_domain", domains_json(c, c->nodes, &arena));
    json_object_set_new(j, "time", time_json(c, first, &arena));
    arena_release(&arena);
    return j;
}
