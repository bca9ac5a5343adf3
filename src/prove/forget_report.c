/* What hone forget found, as one JSON document: report.json, which the page and the Markdown are made of. docs/report.md has its
 * fields. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "prove/forget_int.h"

static json_t *spread(struct forget_spread s)
{
    return json_pack("{s:o,s:o,s:i}", "mean", forget_number(s.mean), "sd", forget_number(s.sd), "n", s.n);
}

/* ---- numbers over seeds ---- */

typedef double value_fn(const struct forget_run *r, int i, int j);

static struct forget_spread over_seeds(const struct forget_config *c, value_fn *value, int i, int j)
{
    double values[FORGET_SEEDS];
    int n = 0;
    for (int s = 0; s < c->n_runs && n < FORGET_SEEDS; s++)
        if (c->runs[s].done)
            values[n++] = value(&c->runs[s], i, j);
    return forget_spread(values, n);
}

static double loss_at(const struct forget_run *r, int stage, int domain) { return r->loss[stage][domain]; }
static double nats_of(const struct forget_run *r, int domain, int unused) { (void)unused; return forget_nats(r, domain); }
static double percent_of(const struct forget_run *r, int domain, int unused)
{
    (void)unused;
    return forget_percent(forget_nats(r, domain));
}

/* The numbers of a run in the order of the struct. */
static double number_of(const struct forget_run *r, int which, int unused)
{
    const struct forget_numbers n = forget_numbers(r);
    const double all[] = {n.new_loss, n.learned, n.forgotten, n.percent, -n.forgotten, n.end_loss};
    (void)unused;
    return all[which];
}
static const char *const number_names[] = {"new_loss", "learned", "forgotten_nats", "forgotten_percent", "backward_transfer", "end_loss"};
enum { NUMBERS_OF_RUN = sizeof number_names / sizeof *number_names };

/* ---- runs ---- */

static json_t *matrix(const struct forget_run *r)
{
    json_t *rows = json_array();
    for (int s = 0; s <= r->n_stages; s++) {
        json_t *row = json_array();
        for (int d = 0; d < r->n_domains; d++)
            json_array_append_new(row, forget_number(r->loss[s][d]));
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *run_json(const struct forget_run *r)
{
    json_t *j = json_pack("{s:I,s:o,s:b,s:o}", "seed", (json_int_t)r->seed, "folder", forget_text(r->folder), "done", r->done, "loss",
                          matrix(r));
    for (int i = 0; j && i < NUMBERS_OF_RUN; i++)
        json_object_set_new(j, number_names[i], forget_number(number_of(r, i, 0)));
    return j;
}

/* ---- configs ---- */

/* Mean and spread of every cell, the distance to the entropy, and the perplexity of the mean loss. */
static json_t *cell(const struct forget_config *c, const struct forget_run *first, int stage, int domain)
{
    const struct forget_spread s = over_seeds(c, loss_at, stage, domain);
    return json_pack("{s:o,s:o,s:o,s:o}", "loss", forget_number(s.mean), "sd", forget_number(s.sd), "above_entropy",
                     forget_number(s.mean - first->entropy[domain]), "perplexity", forget_number(exp(s.mean)));
}

static json_t *mean_matrix(const struct forget_config *c, const struct forget_run *first)
{
    json_t *rows = json_array();
    for (int s = 0; s <= first->n_domains; s++) {
        json_t *row = json_array();
        for (int d = 0; d < first->n_domains; d++)
            json_array_append_new(row, cell(c, first, s, d));
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *forgetting(const struct forget_config *c, const struct forget_run *first)
{
    json_t *list = json_array();
    for (int d = 0; d + 1 < first->n_domains; d++)
        json_array_append_new(list, json_pack("{s:o,s:o,s:o}", "domain", forget_text(first->domains[d]), "nats",
                                              spread(over_seeds(c, nats_of, d, 0)), "percent", spread(over_seeds(c, percent_of, d, 0))));
    return list;
}

static json_t *tree_json(const struct forget_config *c)
{
    json_t *tree = json_array();
    for (int i = 0; i < c->levels; i++)
        json_array_append_new(tree, json_integer(c->tree[i]));
    return tree;
}

static json_t *runs_json(const struct forget_config *c)
{
    json_t *runs = json_array();
    for (int i = 0; i < c->n_runs; i++)
        json_array_append_new(runs, run_json(&c->runs[i]));
    return runs;
}

static json_t *config_json(const struct forget_config *c)
{
    const struct forget_run *first = forget_first_done(c);
    json_t *j = json_pack("{s:o,s:o,s:I,s:s,s:i,s:I,s:i,s:o,s:o,s:o,s:o,s:o,s:o}", "name", forget_text(c->name), "arch",
                          forget_text(c->arch), "layers", (json_int_t)c->layers, "choice", forget_choice_word(c->choice), "k", c->k, "every", (json_int_t)c->every,
                          "nodes", c->nodes, "chance", forget_number(c->nodes ? (double)c->k / c->nodes : NAN), "tree", tree_json(c),
                          "runs", runs_json(c), "matrix", first ? mean_matrix(c, first) : json_null(), "forgetting",
                          first ? forgetting(c, first) : json_array(), "node_use", forget_nodes_json(c));
    for (int i = 0; j && i < NUMBERS_OF_RUN; i++)
        json_object_set_new(j, number_names[i], spread(over_seeds(c, number_of, i, 0)));
    return j;
}

/* ---- the judgement ---- */

static json_t *difference(const struct forget_difference *d)
{
    return json_pack("{s:o,s:o,s:o,s:i}", "mean", forget_number(d->mean), "low", forget_number(d->low), "high", forget_number(d->high),
                     "seeds", d->n);
}

static json_t *comparison(const struct forget *f, const struct forget_comparison *c)
{
    return json_pack("{s:o,s:o,s:o,s:o,s:s}", "a", forget_text(f->configs[c->a].name), "b", forget_text(f->configs[c->b].name),
                     "new_loss", difference(&c->new_loss), "forgotten_nats", difference(&c->forgotten), "outcome",
                     forget_outcome_word(c->outcome));
}

/* Every config that chooses by gradient against every other. */
static json_t *comparisons(const struct forget *f)
{
    json_t *list = json_array();
    for (int a = 0; a < f->n_configs; a++)
        for (int b = 0; f->configs[a].choice == CHOICE_GRADIENT && b < f->n_configs; b++)
            if (a != b) {
                const struct forget_comparison c = forget_compare(f, a, b);
                json_array_append_new(list, comparison(f, &c));
            }
    return list;
}

static json_t *name_or_null(const struct forget *f, int config)
{
    return config < 0 ? json_null() : forget_text(f->configs[config].name);
}

static json_t *verdict(const struct forget *f, const struct forget_verdict *v)
{
    json_t *line = v->has_line ? json_pack("{s:o,s:o,s:s}", "part_of_all", forget_number(v->line_part), "forgotten_nats",
                                           difference(&v->line), "outcome", forget_outcome_word(v->line_outcome))
                               : json_null();
    return json_pack("{s:o,s:o,s:o,s:s,s:s,s:o,s:o,s:o}", "config", name_or_null(f, v->gradient), "random", name_or_null(f, v->random),
                     "all", name_or_null(f, v->all), "beats_random", forget_answer_word(v->beats_random), "beats_all",
                     forget_answer_word(v->beats_all), "random_words", forget_text(v->random_words), "all_words",
                     forget_text(v->all_words), "line", line);
}

static json_t *verdicts(const struct forget *f)
{
    struct forget_verdict *v = xcalloc(FORGET_CONFIGS, sizeof *v);
    const int n = forget_judge(f, v, FORGET_CONFIGS);
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, verdict(f, &v[i]));
    free(v);
    return list;
}

/* ---- the whole ---- */

static const struct forget_run *any_done(const struct forget *f)
{
    for (int i = 0; i < f->n_configs; i++)
        if (forget_first_done(&f->configs[i]))
            return forget_first_done(&f->configs[i]);
    return NULL;
}

static json_t *domains(const struct forget_run *r)
{
    json_t *list = json_array();
    for (int d = 0; r && d < r->n_domains; d++)
        json_array_append_new(list, json_pack("{s:o,s:o}", "name", forget_text(r->domains[d]), "entropy", forget_number(r->entropy[d])));
    return list;
}

static json_t *configs_json(const struct forget *f)
{
    json_t *list = json_array();
    for (int i = 0; i < f->n_configs; i++)
        json_array_append_new(list, config_json(&f->configs[i]));
    return list;
}

static json_t *warnings(const struct forget *f)
{
    json_t *list = json_array();
    for (int i = 0; i < f->n_warnings; i++)
        json_array_append_new(list, forget_text(f->warnings[i]));
    return list;
}

static int count_done(const struct forget *f)
{
    int n = 0;
    for (int i = 0; i < f->n_configs; i++)
        for (int s = 0; s < f->configs[i].n_runs; s++)
            n += f->configs[i].runs[s].done;
    return n;
}

/* Null: not the same in all. */
static json_t *steps_per_domain(const struct forget *f, const struct forget_run *first)
{
    for (int i = 0; i < f->n_configs; i++)
        for (int s = 0; s < f->configs[i].n_runs; s++) {
            const struct forget_run *r = &f->configs[i].runs[s];
            if (r->done && r->steps_per_domain != first->steps_per_domain)
                return json_null();
        }
    return json_integer(first ? first->steps_per_domain : 0);
}

json_t *forget_json(const struct forget *f)
{
    const struct forget_run *r = any_done(f);
    char headline[FORGET_WORDS], name[64];
    forget_headline(f, headline);
    snprintf(name, sizeof name, "%d config%s × %lld seed%s", f->n_configs, f->n_configs == 1 ? "" : "s", (long long)f->seeds,
             f->seeds == 1 ? "" : "s");
    return json_pack("{s:s,s:i,s:s,s:s,s:o,s:o,s:o,s:b,s:o,s:I,s:I,s:i,s:b,s:o,s:o,s:o,s:o}", "schema", "hone-report", "schema_version",
                     1, "kind", "forget", "hone_version", HONE_VERSION, "name", forget_text(name), "headline", forget_text(headline),
                     "domains", domains(r), "entropy_known", r && forget_entropy_known(r), "steps_per_domain",
                     steps_per_domain(f, r), "seeds", (json_int_t)f->seeds, "runs_wanted",
                     (json_int_t)(f->seeds * f->n_configs), "runs_done", count_done(f), "interrupted", f->interrupted, "configs",
                     configs_json(f), "verdicts", verdicts(f), "comparisons", comparisons(f), "warnings", warnings(f));
}
