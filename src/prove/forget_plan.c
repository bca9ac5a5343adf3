/* Which runs a comparison is made of, and which configs can be compared. */
#include <stdio.h>
#include <string.h>

#include "prove/forget_int.h"

static enum forget_choice choice_of(const struct config *c)
{
    if (c->model.arch != ARCH_K1)
        return CHOICE_NONE;
    if (c->k1.select == SELECT_ALL || c->k1.k >= c->model.layers)
        return CHOICE_ALL;
    return c->k1.select == SELECT_NORM ? CHOICE_GRADIENT : c->k1.select == SELECT_RANDOM ? CHOICE_RANDOM : CHOICE_OTHER;
}

static void describe(struct forget_config *f, const struct config *c)
{
    snprintf(f->name, sizeof f->name, "%s", c->name);
    snprintf(f->arch, sizeof f->arch, "%s", config_word("model.arch", (int)c->model.arch));
    f->layers = c->model.layers;
    f->choice = choice_of(c);
    if (f->choice == CHOICE_NONE)
        return;
    f->nodes = (int)c->model.layers;
    f->k = f->choice == CHOICE_ALL ? f->nodes : (int)c->k1.k;
    f->every = c->k1.every;
    f->levels = (int)c->model.tree.n;
    for (int i = 0; i < f->levels && i < FORGET_LEVELS; i++)
        f->tree[i] = (int)c->model.tree.at[i];
}

/* ---- what can be compared ---- */

/* Keys of the data that say who prepares it, not what it is. */
static bool is_about_work(const char *key) { return !strcmp(key, "data.workers") || !strcmp(key, "data.prefetch"); }

static enum status check_data(const struct config *a, const struct config *b, struct error *err)
{
    struct config_difference d;
    for (int at = 0; config_differ(&d, a, b, &at);)
        if (!strncmp(d.key, "data.", 5) && !is_about_work(d.key))
            return error_set(err, BAD_INPUT, "'%s' and '%s' learn from other data: %s is %s and %s; losses can be compared on the same data "
                             "only", a->file, b->file, d.key, d.a, d.b);
    return OK;
}

static enum status check_config(const struct config *c, struct error *err)
{
    if (!c->data.domains.n)
        return error_set(err, BAD_INPUT, "'%s': data.domains is empty, and hone forget needs domains that are learned one after the other; "
                         "try data.domains: [prose, code, formulas]", c->file);
    if (c->data.domains.n < 2)
        return error_set(err, BAD_INPUT, "'%s': data.domains has one domain, and nothing is learned after it; try [prose, code]", c->file);
    return OK;
}

static enum status check_configs(const struct config *c, int n, struct error *err)
{
    enum status st = OK;
    for (int i = 0; i < n && st == OK; i++) {
        st = check_config(&c[i], err);
        for (int j = 0; j < i && st == OK; j++)
            if (!strcmp(c[i].name, c[j].name))
                st = error_set(err, BAD_INPUT, "'%s' and '%s' have the same name, and runs are kept by name; rename one", c[j].file, c[i].file);
        if (st == OK && i)
            st = check_data(&c[0], &c[i], err);
    }
    return st;
}

/* ---- what else differs ---- */

/* Keys by which configs may differ whose choices of nodes are compared: the choice itself, and what changes nothing that is learned. */
static bool may_differ(const char *key)
{
    static const char *const begin[] = {"k1.", "log.", "checkpoint.", "verify.", "optimize.", "dist.", NULL};
    static const char *const whole[] = {"train.seed", "eval.every", "backend.kernels", "device", "threads", NULL};
    for (int i = 0; begin[i]; i++)
        if (!strncmp(key, begin[i], strlen(begin[i])))
            return strcmp(key, "optimize.precision") != 0;
    for (int i = 0; whole[i]; i++)
        if (!strcmp(key, whole[i]))
            return true;
    return is_about_work(key);
}

static void note_unlike(struct forget *f, const struct config *configs)
{
    struct config_difference d;
    for (int i = 0; i < f->n_configs; i++)
        for (int j = 0; j < f->n_configs; j++)
            for (int at = 0; !f->configs[i].unlike[j] && config_differ(&d, &configs[i], &configs[j], &at);)
                if (!may_differ(d.key))
                    f->configs[i].unlike[j] = arena_printf(&f->arena, "%s is %s and %s", d.key, d.a, d.b);
}

enum status forget_plan(struct forget *f, const struct config *configs, int n, const char *out, int64_t seeds, struct error *err)
{
    if (seeds < 1 || seeds > FORGET_SEEDS)
        return error_set(err, BAD_INPUT, "--seeds is %lld; expected 1 to %d; a verdict needs 2, and 3 or more are better", (long long)seeds, FORGET_SEEDS);
    if (n > FORGET_CONFIGS)
        return error_set(err, BAD_INPUT, "%d configs are given; at most %d can be compared", n, FORGET_CONFIGS);
    const enum status st = check_configs(configs, n, err);
    if (st != OK)
        return st;
    f->seeds = seeds;
    for (f->n_configs = 0; f->n_configs < n; f->n_configs++) {
        struct forget_config *c = &f->configs[f->n_configs];
        describe(c, &configs[f->n_configs]);
        c->n_runs = (int)seeds;
        c->runs = arena_alloc(&f->arena, (size_t)seeds * sizeof *c->runs);
        for (int s = 0; s < c->n_runs; s++) {
            c->runs[s].seed = s + 1;
            if (snprintf(c->runs[s].folder, CONFIG_PATH_MAX, "%s/runs/%s-seed%d", out, c->name, s + 1) >= CONFIG_PATH_MAX)
                return error_set(err, BAD_INPUT, "the path '%.200s…' is too long", out);
        }
    }
    note_unlike(f, configs);
    return OK;
}
