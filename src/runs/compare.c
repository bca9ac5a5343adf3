/* Runs side by side as one JSON document, which the page of hone compare is made of: the table of hone runs, and their curves. */
#include <math.h>
#include <stdio.h>

#include "core/clean.h"
#include "core/json_whole.h"
#include "runs/runs_int.h"

/* Appends and returns the list; NULL: no memory. */
static json_t *append(json_t *list, json_t *item)
{
    if (list && item && json_array_append_new(list, item) == 0)
        return list;
    if (!list)
        json_decref(item);
    json_decref(list);
    return NULL;
}

/* [step, tokens, seconds, loss, lowest, highest, steps/s, tokens/s, bytes] */
static json_t *point_json(const struct curve_point *p)
{
    const double numbers[] = {p->tokens, p->seconds, p->loss, p->low, p->high, p->steps_per_s, p->tokens_per_s, p->memory_bytes};
    json_t *list = append(json_array(), json_integer((json_int_t)p->step));
    for (size_t i = 0; list && i < sizeof numbers / sizeof *numbers; i++)
        list = append(list, runs_number(numbers[i]));
    return list;
}

static json_t *curve_json(const struct curve *c)
{
    json_t *points = json_array();
    for (int i = 0; points && i < c->n; i++)
        points = append(points, point_json(&c->point[i]));
    return json_pack("{s:I, s:I, s:o}", "lines_per_point", (json_int_t)c->each, "lines", (json_int_t)c->lines, "points", points);
}

static json_t *run_json(const struct runs *r, const struct run_keys *k, int i)
{
    const struct run_curves *c = r->run[i].curves;
    json_t *row = runs_row(r, k, i), *more = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "best_val_loss", runs_number(c->best_val_loss), "best_step",
                                                       isfinite(c->best_val_loss) ? json_integer((json_int_t)c->best_step) : json_null(), "tokens",
                                                       json_whole(c->loss.lines ? c->tokens : NAN), "seconds", runs_number(c->loss.lines ? c->seconds : NAN), "curve", curve_json(&c->loss),
                                                       "validation", curve_json(&c->validation));
    if (!row || !more || json_object_update(row, more)) {
        json_decref(row);
        row = NULL;
    }
    json_decref(more);
    return row;
}

/* ---- in a sentence ---- */

static int fastest(const struct runs *r)
{
    int best = -1;
    for (int i = 0; i < r->n; i++)
        if (isfinite(r->run[i].tokens_per_s) && (best < 0 || r->run[i].tokens_per_s > r->run[best].tokens_per_s))
            best = i;
    return best;
}

/* "of 3 runs", or of how many of them, where not all have finished with such a loss. */
static void put_of(const struct runs *r, const struct run_best *b, char *out, size_t size)
{
    int finished = 0;
    for (int i = 0; i < r->n; i++)
        finished += r->run[i].state == RUN_FINISHED;
    if (b->runs == r->n)
        snprintf(out, size, "of %d runs", r->n);
    else
        snprintf(out, size, "of those that finished%s, %d of %d runs", b->runs < finished ? " with one" : "", b->runs, r->n);
}

static void headline(const struct runs *r, const struct run_bests *b, char *out, size_t size)
{
    const int best = b->n == 1 ? b->list[0].best : -1, fast = fastest(r);
    const bool tied = best >= 0 && b->list[0].tied > 1, same = fast == best && !tied;
    char of[64], names[2 * CONFIG_PATH_MAX];
    size_t n = 0;
    if (best >= 0) {
        put_of(r, &b->list[0], of, sizeof of);
        run_best_names(r, &b->list[0], names, sizeof names);
    }
    if (r->n == 1)
        n = (size_t)snprintf(out, size, "One run, %s: %s after %lld step%s", r->run[0].name, run_state_name(r->run[0].state), (long long)r->run[0].step,
                             r->run[0].step == 1 ? "" : "s");
    else if (best >= 0)
        n = (size_t)snprintf(out, size, "%s %s lowest %s %s: %.4f", names, tied ? "are tied, and end with the" : "ends with the", b->list[0].by_validation ? "validation loss" : "loss", of,
                             run_best_loss(r, &b->list[0]));
    else if (b->n)
        n = (size_t)snprintf(out, size, "%d runs on %d kinds of data or tokens, whose losses cannot be compared with each other", r->n, b->n);
    else
        n = (size_t)snprintf(out, size, "None of %d runs has finished with a loss", r->n);
    if (r->n > 1 && fast >= 0 && n < size)
        n += (size_t)snprintf(out + n, size - n, "; %s%s, with %.0f tokens/s", same ? "it is also the fastest" : "the fastest is ", same ? "" : r->run[fast].name,
                              r->run[fast].tokens_per_s);
    bool unlike = false;
    for (int i = 0; i < b->n; i++)
        unlike |= b->list[i].unlike;
    if (unlike && n < size)
        snprintf(out + n, size - n, ". Their validation losses may be of different samples, as eval.batches × eval.batch_size × model.seq differ; hone eval RUN takes all there are");
}

json_t *runs_compare_json(const struct runs *r, const struct run_keys *k)
{
    char words[3 * CONFIG_PATH_MAX], name[64];
    struct run_bests bests;
    const int fast = fastest(r);
    json_t *list = json_array();
    for (int i = 0; list && i < r->n; i++)
        list = append(list, run_json(r, k, i));
    run_bests_init(&bests, r, k);
    headline(r, &bests, words, sizeof words);
    snprintf(name, sizeof name, "%d run%s", r->n, r->n == 1 ? "" : "s");
    json_t *j = json_pack("{s:s, s:i, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "schema", "hone-report", "schema_version", 1, "kind", "compare",
                          "hone_version", HONE_VERSION, "name", name, "headline", runs_text(words), "keys", runs_keys(k), "best",
                          runs_text(bests.n == 1 ? r->run[bests.list[0].best].name : NULL), "bests", run_bests_json(&bests, r, k), "fastest",
                          runs_text(fast < 0 ? NULL : r->run[fast].name), "runs", list);
    run_bests_release(&bests);
    return j;
}
