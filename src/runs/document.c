/* Runs as JSON: the table of hone runs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/clean.h"
#include "core/json_whole.h"
#include "runs/runs_int.h"

json_t *runs_number(double x) { return isfinite(x) ? json_real(x) : json_null(); }
json_t *runs_whole(int64_t n) { return n > 0 ? json_integer((json_int_t)n) : json_null(); }

json_t *runs_text(const char *text)
{
    char *good = text && *text ? text_utf8(text) : NULL;
    json_t *j = good ? json_string(good) : json_null();
    free(good);
    return j;
}

static json_t *time_json(time_t at)
{
    char text[32] = "";
    struct tm t;
    if (at && gmtime_r(&at, &t))
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &t);
    return runs_text(text);
}

static json_t *config_json(const struct run_keys *k, int run)
{
    json_t *j = json_object();
    for (int i = 0; j && i < k->n; i++)
        if (json_object_set_new(j, k->key[i].key, runs_text(k->key[i].value[run]))) {
            json_decref(j);
            j = NULL;
        }
    return j;
}

json_t *runs_row(const struct runs *all, const struct run_keys *k, int i)
{
    const struct run *r = &all->run[i];
    return json_pack("{s:o, s:o, s:s, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", runs_text(r->name),
                     "folder", runs_text(r->folder), "state", run_state_name(r->state), "reason", runs_text(r->reason), "step", (json_int_t)r->step,
                     "steps", runs_whole(r->steps), "loss", runs_number(r->loss), "val_loss", runs_number(r->val_loss), "steps_per_s",
                     runs_number(r->steps_per_s), "tokens_per_s", runs_number(r->tokens_per_s), "device", runs_text(r->device), "threads",
                     runs_whole(r->threads), "ranks", runs_whole(r->ranks), "parameters", runs_whole(r->parameters), "planned_bytes",
                     json_whole(r->planned_bytes), "peak_bytes", json_whole(r->peak_bytes), "when", time_json(r->when), "warning",
                     runs_text(r->warning), "config", config_json(k, i));
}

json_t *runs_keys(const struct run_keys *k)
{
    json_t *list = json_array();
    for (int i = 0; list && i < k->n; i++)
        if (json_array_append_new(list, json_string(k->key[i].key))) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

json_t *run_bests_json(const struct run_bests *b, const struct runs *r, const struct run_keys *k)
{
    char data[RUN_WORDS], names[RUN_WORDS];
    json_t *list = json_array();
    for (int i = 0; list && i < b->n; i++) {
        const struct run_best *x = &b->list[i];
        run_best_names(r, x, names, sizeof names);
        run_best_data(r, k, x, data, sizeof data);
        if (json_array_append_new(list, json_pack("{s:b, s:o, s:o, s:o, s:i, s:i, s:s, s:o}", "unlike_samples", x->unlike, "data", runs_text(data), "run", runs_text(r->run[x->best].name), "names",
                                                  runs_text(names), "tied", x->tied, "runs", x->runs, "by",
                                                  x->by_validation ? "val_loss" : "loss", "loss", runs_number(run_best_loss(r, x))))) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

json_t *runs_json(const struct runs *r, const struct run_keys *k, const char *folder)
{
    struct run_bests bests;
    json_t *list = json_array();
    for (int i = 0; list && i < r->n; i++)
        if (json_array_append_new(list, runs_row(r, k, i))) {
            json_decref(list);
            list = NULL;
        }
    run_bests_init(&bests, r, k);
    json_t *j = json_pack("{s:s, s:i, s:s, s:s, s:o, s:o, s:o, s:o, s:b, s:o}", "schema", "hone-report", "schema_version", 1, "kind", "runs", "hone_version",
                          HONE_VERSION, "folder", runs_text(folder), "keys", runs_keys(k), "best", runs_text(bests.n == 1 ? r->run[bests.list[0].best].name : NULL),
                          "bests", run_bests_json(&bests, r, k), "more", r->more, "runs", list);
    run_bests_release(&bests);
    return j;
}
