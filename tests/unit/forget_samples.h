/* Run folders of hone forget, made by hand: losses by a formula, so that what comes out is known. */
#ifndef HONE_TESTS_FORGET_SAMPLES_H
#define HONE_TESTS_FORGET_SAMPLES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/fs.h"
#include "prove/forget.h"
#include "support/check.h"

enum { SAMPLE_SEEDS = 3 };

/* A folder of its own for each test. */
static char sample_root[] = "/tmp/hone-test-forget-XXXXXX";

static inline int make_sample_root(void **state)
{
    (void)state;
    strcpy(sample_root + sizeof sample_root - 7, "XXXXXX");
    return mkdtemp(sample_root) ? 0 : -1;
}

static inline int remove_sample_root(void **state)
{
    (void)state;
    return fs_remove_tree(sample_root, NULL) == OK ? 0 : -1;
}

static inline void put_file(const char *folder, const char *name, const char *text)
{
    char path[CONFIG_PATH_MAX + 64];
    struct error err;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(fs_write_synced(path, text, strlen(text), &err), err);
}

/* What a run of three domains ends with: `above` nats over the entropy on the new domains, and `forgotten` nats lost of the first two. */
static inline void put_losses(const char *folder, double above, double forgotten)
{
    const double h[] = {0.5, 0.25, 1.0}, start = 4;
    char text[1024];
    snprintf(text, sizeof text,
             "{\"domains\": [\"prose\", \"code\", \"formulas\"], \"entropy\": [0.5, 0.25, 1.0], \"steps_per_domain\": 200, \"loss\": "
             "[[%.9g, %.9g, %.9g], [%.9g, %.9g, %.9g], [%.9g, %.9g, %.9g], [%.9g, %.9g, %.9g]]}", start, start, start,
             h[0] + 0.2, 4.5, 4.7, h[0] + 0.2 + forgotten / 2, h[1] + above, 4.2, h[0] + 0.2 + forgotten, h[1] + above + forgotten, h[2] + above);
    put_file(folder, "forgetting.json", text);
}

/* How often a node of 13 is chosen in 50 steps where 5 are: in each domain others more often. 5 of 34 and 8 of 10 are 250. */
static inline int sample_selected(int nodes, int k, int node, int domain)
{
    return k == nodes ? 50 : (node + 5 * domain) % nodes < 5 ? 34 : 10;
}

/* A line per 50 steps, and what is given behind them. */
static inline void put_nodes_file(const char *folder, int nodes, int k, const char *cut)
{
    static const char *const domains[] = {"prose", "code", "formulas"};
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    for (int line = 0; line < 12; line++) {
        const int d = line / 4;
        fprintf(to, "{\"step\": %d, \"domain\": \"%s\", \"steps\": 50, \"norm_mean\": [", 50 * (line + 1), domains[d]);
        for (int i = 0; i < nodes; i++)
            fprintf(to, "%s%.3f", i ? ", " : "", 0.1 * (i + 1));
        fputs("], \"norm_max\": [", to);
        for (int i = 0; i < nodes; i++)
            fprintf(to, "%s%.3f", i ? ", " : "", 0.2 * (i + 1));
        fputs("], \"selected\": [", to);
        for (int i = 0; i < nodes; i++)
            fprintf(to, "%s%d", i ? ", " : "", sample_selected(nodes, k, i, d));
        fputs("], \"n\": [", to);
        for (int i = 0; i < nodes; i++)
            fprintf(to, "%s%d", i ? ", " : "", 0);
        fputs("]}\n", to);
    }
    fputs(cut, to);
    assert_int_equal(fclose(to), 0);
    put_file(folder, "nodes.jsonl", text);
    free(text);
}

/* ---- a comparison ---- */

static inline struct forget_config *add_config(struct forget *f, const char *name, enum forget_choice choice, int k)
{
    struct forget_config *c = &f->configs[f->n_configs++];
    snprintf(c->name, sizeof c->name, "%s", name);
    snprintf(c->arch, sizeof c->arch, "%s", choice == CHOICE_NONE ? "postln" : "k1");
    c->choice = choice;
    c->layers = choice == CHOICE_NONE ? k : 13;
    c->n_runs = (int)f->seeds;
    c->runs = arena_alloc(&f->arena, (size_t)c->n_runs * sizeof *c->runs);
    if (choice != CHOICE_NONE) {
        c->k = k;
        c->nodes = 13;
        c->levels = 2;
        c->tree[0] = c->tree[1] = 3;
    }
    for (int i = 0; i < c->n_runs; i++)
        c->runs[i].seed = i + 1;
    return c;
}

/* Without folders: new_loss and forgotten of each seed as given, with the same scatter in both. */
static inline void set_runs(struct forget_config *c, double above, double forgotten, double scatter)
{
    for (int i = 0; i < c->n_runs; i++) {
        struct forget_run *r = &c->runs[i];
        const double x = above + scatter * (i - 1), y = forgotten + scatter * ((i * 2) % 3 - 1);
        const double h[] = {0.5, 0.25, 1.0};
        static const char *const names[] = {"prose", "code", "formulas"};
        r->done = true;
        r->n_domains = r->n_stages = 3;
        r->steps_per_domain = 200;
        for (int d = 0; d < 3; d++) {
            strcpy(r->domains[d], names[d]);
            r->entropy[d] = h[d];
            r->loss[0][d] = 4;
            r->loss[1][d] = r->loss[2][d] = 4.4;
        }
        r->loss[1][0] = 0.7;
        r->loss[2][1] = h[1] + x;
        r->loss[3][0] = 0.7 + y;
        r->loss[3][1] = h[1] + x + y;
        r->loss[3][2] = h[2] + x;
    }
}

static inline struct forget *forget_new(int64_t seeds)
{
    struct forget *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->seeds = seeds;
    return f;
}

static inline void forget_free(struct forget *f)
{
    forget_release(f);
    free(f);
}

/* The five configs of the experiment, in folders below `root`. */
static inline struct forget *sample_folders(const char *root)
{
    static const struct { const char *name; enum forget_choice choice; int k; double above, forgotten; } all[] = {
        {"forget-baseline4", CHOICE_NONE, 4, 0.30, 1.10},   {"forget-baseline13", CHOICE_NONE, 13, 0.26, 1.20},
        {"forget-tree13", CHOICE_ALL, 13, 0.24, 1.00},      {"forget-tree5", CHOICE_GRADIENT, 5, 0.27, 0.82},
        {"forget-random5", CHOICE_RANDOM, 5, 0.31, 0.80},
    };
    struct forget *f = forget_new(SAMPLE_SEEDS);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct forget_config *c = add_config(f, all[i].name, all[i].choice, all[i].k);
        for (int s = 0; s < c->n_runs; s++) {
            struct error err;
            snprintf(c->runs[s].folder, sizeof c->runs[s].folder, "%s/%s-seed%d", root, c->name, s + 1);
            assert_ok(fs_make_dirs(c->runs[s].folder, &err), err);
            put_losses(c->runs[s].folder, all[i].above + 0.008 * (s - 1), all[i].forgotten + 0.02 * ((s * 2 + (int)i) % 3 - 1));
            if (c->nodes)
                put_nodes_file(c->runs[s].folder, c->nodes, c->k, "");
        }
    }
    return f;
}

#endif
