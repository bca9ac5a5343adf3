/* report.json of hone simulate. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/clean.h"
#include "core/json_whole.h"
#include "prove/simulate.h"

static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *text(const char *t)
{
    char *clean = text_clean(t);
    json_t *j = json_string(clean);
    free(clean);
    return j;
}

static bool is_known(const struct rank_link *l) { return l->gb_per_s > 0; }

static json_t *link_json(const struct rank_link *l, bool measured)
{
    return is_known(l) ? json_pack("{s:o,s:o,s:o,s:b}", "us", number(l->us), "gb_per_s", number(l->gb_per_s), "gbit_per_s", number(8 * l->gb_per_s),
                                   "measured", measured)
                       : json_null();
}

static json_t *net_json(const struct simulation *s)
{
    const struct sim_net *n = &s->net;
    const bool all = (n->within_measured || !is_known(&n->within)) && (n->between_measured || !is_known(&n->between));
    return json_pack("{s:s,s:i,s:b,s:o,s:o}", "sum", n->ring ? "ring" : "tree", "ranks_per_machine", n->per_machine, "measured", all, "within",
                     link_json(&n->within, n->within_measured), "between", link_json(&n->between, n->between_measured));
}

static json_t *buckets_json(const struct sim_point *p)
{
    json_t *list = json_array();
    for (int i = 0; i < p->n_buckets; i++)
        json_array_append_new(list, json_pack("{s:I,s:o}", "mb", (json_int_t)p->buckets[i].mb, "step_us", number(p->buckets[i].step_us)));
    return list;
}

static json_t *point_json(const struct simulation *s, const struct sim_point *p)
{
    const struct sim_step *a = &p->at;
    const double per_s = 1e6 / p->step_us * p->ranks;
    return json_pack("{s:i,s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:i,s:I,s:o,s:o,s:o}", "ranks", p->ranks, "machines", p->machines, "step_us",
                     number(p->step_us), "efficiency", number(p->efficiency), "speedup", number(p->efficiency * p->ranks), "samples_per_s",
                     number(per_s * (double)s->source->samples), "tokens_per_s", number(per_s * (double)s->source->tokens), "compute_us",
                     number(s->alone_us), "packing_us", number(p->ranks > 1 ? a->step_us - s->alone_us - a->exposed_us : 0), "sums_us", number(a->sums_us), "exposed_us",
                     number(a->exposed_us), "hidden_share", number(a->sums_us > 0 ? 1 - a->exposed_us / a->sums_us : NAN), "slowest_us",
                     number(p->slowest_us), "bytes", json_whole(a->bytes), "buckets", a->buckets, "best_bucket_mb", (json_int_t)p->best_mb, "best_step_us",
                     number(p->best_step_us), "memory_bytes", json_whole(a->memory_bytes), "by_bucket", buckets_json(p));
}

static json_t *points_json(const struct simulation *s)
{
    json_t *list = json_array();
    for (int i = 0; i < s->n; i++)
        json_array_append_new(list, point_json(s, &s->points[i]));
    return list;
}

static json_t *headline(const struct simulation *s)
{
    char words[256];
    const struct sim_point *p = &s->points[s->n - 1];
    for (int i = 0; i < s->n; i++)
        p = s->points[i].ranks > p->ranks ? &s->points[i] : p;
    snprintf(words, sizeof words, "%d ranks would train %.3g times as fast as one: %.1f %% efficiency; %.1f %% of a step is communication that nothing "
             "hides, %.1f %% waiting for the slowest", p->ranks, p->efficiency * p->ranks, 100 * p->efficiency, 100 * p->at.exposed_us / p->step_us,
             100 * p->slowest_us / p->step_us);
    return json_string(words);
}

json_t *simulation_json(const struct simulation *s)
{
    const struct sim_source *f = s->source;
    return json_pack("{s:s,s:i,s:s,s:s,s:o,s:o,s:o,s:o,s:i,s:i,s:i,s:b,s:b,s:I,s:I,s:o,s:o,s:o,s:I,s:o,s:o,s:o}", "schema", "hone-report", "schema_version", 1, "kind",
                     "simulate", "hone_version", HONE_VERSION, "name", text(f->config.name), "headline", headline(s), "device", text(f->device), "machine",
                     text(f->machine), "threads", f->threads, "cores", f->cores, "steps", f->n_steps, "gpu", f->gpu, "shares_cores", s->shares_cores,
                     "samples_per_rank", (json_int_t)f->samples, "tokens_per_rank", (json_int_t)f->tokens, "step_us", number(s->alone_us), "p10_us",
                     number(s->p10_us), "p90_us", number(s->p90_us), "bucket_mb", (json_int_t)f->config.dist.bucket_mb, "links", net_json(s), "points", points_json(s), "warning", f->warning ? text(f->warning) : json_null());
}
