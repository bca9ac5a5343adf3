/* What a simulation starts from: a profile just made, or a report.json of one; see simulate.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/report_json.h"
#include "prove/simulate.h"

/* Of rows that samples share there are fewer tokens than of all samples in rows of their own: the profile has counted. */
static void count(struct sim_source *s, double tokens)
{
    s->samples = s->config.train.batch_size * s->config.train.accumulate;
    s->tokens = tokens >= 1 && tokens < 1e15 ? (int64_t)tokens : s->samples * s->config.model.seq;
}

enum status sim_source_measured(struct sim_source *out, const struct profile *p, const struct config *c, struct error *err)
{
    struct sim_source s = {.config = *c, .n_ops = p->n_ops, .n_steps = p->steps, .threads = p->threads, .cores = p->usable_cores, .gpu = p->gpu,
                           .gb_per_s = peaks_bandwidth(&p->peaks, INFINITY)};
    (void)err;
    s.steps_us = arena_copy(&s.arena, p->steps_us, (size_t)p->steps * sizeof *s.steps_us);
    s.ops = arena_alloc(&s.arena, (size_t)p->n_ops * sizeof *s.ops);
    for (int i = 0; i < p->n_ops; i++)
        s.ops[i] = (struct sim_op){arena_printf(&s.arena, "%s", p->ops[i].name), arena_printf(&s.arena, "%s", p->ops[i].kind),
                                   p->ops[i].self_us + p->ops[i].imbalance_us};
    snprintf(s.machine, sizeof s.machine, "%s", p->peaks.machine);
    snprintf(s.device, sizeof s.device, "%s", p->device_name ? p->device_name : p->device);
    s.warning = p->warning ? arena_printf(&s.arena, "%s", p->warning) : NULL;
    count(&s, round(p->tokens_per_s * p->step_us / 1e6));
    *out = s;
    return OK;
}

void sim_source_release(struct sim_source *s) { arena_release(&s->arena); }

/* ---- report.json ---- */

static const json_t *at(const json_t *j, const char *a, const char *b) { return json_object_get(json_object_get(j, a), b); }

static bool read_time(const json_t *j, double *to)
{
    *to = json_number_value(j);
    return json_is_number(j) && isfinite(*to) && *to >= 0 && *to < 1e15;
}

static enum status read_steps(struct sim_source *s, const json_t *j, const char *path, struct error *err)
{
    const json_t *list = at(j, "step", "times_us");
    s->n_steps = (int)json_array_size(list);
    s->steps_us = arena_alloc(&s->arena, ((size_t)s->n_steps + 1) * sizeof *s->steps_us);
    if (s->n_steps < 1)
        return error_set(err, BAD_INPUT, "'%s' has no step.times_us: an older hone wrote it; profile it again", path);
    for (int i = 0; i < s->n_steps; i++)
        if (!read_time(json_array_get(list, (size_t)i), &s->steps_us[i]) || !(s->steps_us[i] > 0))
            return error_set(err, BAD_INPUT, "'%s': step.times_us[%d] is no time in microseconds", path, i);
    return OK;
}

static enum status read_ops(struct sim_source *s, const json_t *j, const char *path, struct error *err)
{
    const json_t *list = json_object_get(j, "ops");
    s->n_ops = (int)json_array_size(list);
    s->ops = arena_alloc(&s->arena, ((size_t)s->n_ops + 1) * sizeof *s->ops);
    for (int i = 0; i < s->n_ops; i++) {
        const json_t *o = json_array_get(list, (size_t)i);
        const char *name = json_string_value(json_object_get(o, "name")), *kind = json_string_value(json_object_get(o, "kind"));
        double self, idle;
        if (!name || !kind || !read_time(json_object_get(o, "self_us"), &self) || !read_time(json_object_get(o, "imbalance_us"), &idle))
            return error_set(err, BAD_INPUT, "'%s': ops[%d] lacks its name, kind, self_us or imbalance_us", path, i);
        s->ops[i] = (struct sim_op){arena_printf(&s->arena, "%s", name), arena_printf(&s->arena, "%s", kind), self + idle};
    }
    return s->n_ops ? OK : error_set(err, BAD_INPUT, "'%s' has no ops", path);
}

static void read_machine(struct sim_source *s, const json_t *j)
{
    const json_t *m = json_object_get(j, "machine"), *gpu = json_object_get(m, "gpu"), *level;
    const char *machine = json_string_value(json_object_get(m, "fingerprint")), *device = json_string_value(json_object_get(m, "device"));
    size_t i;
    s->gpu = json_is_object(gpu);
    if (s->gpu)
        device = json_string_value(json_object_get(gpu, "name"));
    snprintf(s->machine, sizeof s->machine, "%s", machine ? machine : "");
    snprintf(s->device, sizeof s->device, "%s", device ? device : "");
    s->threads = (int)fmin(fmax((double)json_integer_value(json_object_get(m, "threads")), 1), 1 << 20);
    s->cores = (int)fmin(fmax((double)json_integer_value(json_object_get(m, "usable_cores")), 0), 1 << 20);
    json_array_foreach(at(m, "peaks", "levels"), i, level)
        if (!read_time(json_object_get(level, "gb_per_s"), &s->gb_per_s))
            s->gb_per_s = 0;                /* the last one is memory */
}

/* A report is written into a folder of that name. */
static bool is_name(const char *text) { return text && *text && !strchr(text, '/') && strcmp(text, ".") && strcmp(text, ".."); }

static enum status read_config(struct sim_source *s, const json_t *j, const char *path, const char *const *sets, int n_sets, struct error *err)
{
    const char *yaml = json_string_value(json_object_get(j, "config_yaml"));
    for (int i = 0; i < n_sets; i++)
        if (strncmp(sets[i], "dist.", 5))
            return error_set(err, BAD_INPUT, "--set %s: what was measured cannot be changed; with --from only keys of dist can", sets[i]);
    if (!yaml)
        return error_set(err, BAD_INPUT, "'%s' has no config_yaml", path);
    const enum status st = config_parse(&s->config, path, yaml, strlen(yaml), sets, n_sets, err);
    if (st == OK && !s->config.model.vocab)
        return error_set(err, BAD_INPUT, "'%s': its config does not say model.vocab", path);
    if (st == OK && s->config.dist.shards > 1)
        return error_set(err, BAD_INPUT, "'%s' is of a rank that had all %lld of dist.shards, which ranks would divide; profile it with --set dist.shards=0", path,
                         (long long)s->config.dist.shards);
    s->config.data.bucket = 0;                  /* a profile has rows of one length (measure.c) */
    s->config.data.group = 1;
    config_give_positions(&s->config);
    const char *name = json_string_value(at(j, "model", "name"));
    if (st == OK && !is_name(name))
        return error_set(err, BAD_INPUT, "'%s': model.name is '%.60s'; expected a name without '/'", path, name ? name : "");
    snprintf(s->config.name, sizeof s->config.name, "%s", name ? name : "");
    return st;
}

static enum status check_alone(const json_t *j, const char *path, struct error *err)
{
    const size_t ranks = json_array_size(json_object_get(j, "ranks"));
    return ranks <= 1 ? OK : error_set(err, BAD_INPUT, "'%s' is of %zu ranks, which wait for each other; profile one rank alone", path, ranks);
}

enum status sim_source_read(struct sim_source *out, const char *path, const char *const *sets, int n_sets, struct error *err)
{
    struct sim_source *s = xcalloc(1, sizeof *s);
    json_t *j = NULL;
    enum status st = report_json_read(&j, path, "profile", "profile", err);
    if (st == OK)
        st = check_alone(j, path, err);
    if (st == OK)
        st = read_config(s, j, path, sets, n_sets, err);
    if (st == OK)
        st = read_steps(s, j, path, err);
    if (st == OK)
        st = read_ops(s, j, path, err);
    if (st == OK)
        st = sim_check_ops(s, path, err);
    if (st == OK) {
        const char *warning = json_string_value(at(j, "answers", "warning"));
        s->warning = warning ? arena_printf(&s->arena, "%s", warning) : NULL;
        read_machine(s, j);
        count(s, json_number_value(at(j, "step", "tokens_per_step")));
        *out = *s;
    } else {
        sim_source_release(s);
    }
    json_decref(j);
    free(s);
    return st;
}
