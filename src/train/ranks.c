/* What the ranks of a run do together before the first step, and at logs. */
#include "train/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/arena.h"
#include "train/train_int.h"

/* ---- comparing ---- */

/* Of the program that runs, byte for byte: ranks of two builds would differ in their last bits, or in more. */
static uint64_t program_hash(void)
{
    char part[4096];
    FILE *f = fopen("/proc/self/exe", "rb");
    XXH3_state_t *h = xneed(XXH3_createState());
    XXH3_64bits_reset(h);
    for (size_t n; f && (n = fread(part, 1, sizeof part, f)) > 0;)
        XXH3_64bits_update(h, part, n);
    const uint64_t hash = XXH3_64bits_digest(h);
    XXH3_freeState(h);
    if (f)
        fclose(f);
    return hash;
}

/* The first key that differs from rank 0's config, whose text is `theirs`. */
static enum status same_config(const struct config *c, const char *theirs, struct error *err)
{
    struct config *first = xcalloc(1, sizeof *first);
    struct config_difference *differs = xcalloc(1, sizeof *differs);
    int at = 0;
    enum status st = config_parse(first, "the config of rank 0", theirs, strlen(theirs), NULL, 0, err);
    if (st == OK && config_differ(differs, first, c, &at))
        st = error_set(err, BAD_INPUT, "%s is %.200s here, and %.200s on rank 0; all ranks have one config", differs->key, differs->b, differs->a);
    free(first);
    free(differs);
    return st;
}

static enum status compare_configs(const struct config *c, struct dist *d, struct error *err)
{
    char *mine = xneed(config_text(c));
    int64_t size = (int64_t)strlen(mine) + 1;
    enum status st = dist_broadcast(d, &size, sizeof size, err);
    char *theirs = xcalloc((size_t)size, 1);
    if (st == OK && dist_rank(d) == 0)
        memcpy(theirs, mine, (size_t)size);
    if (st == OK)
        st = dist_broadcast(d, theirs, (size_t)size, err);
    if (st == OK)
        st = dist_agree(d, dist_rank(d) == 0 ? OK : same_config(c, theirs, err), err);
    free(mine);
    free(theirs);
    return st;
}

struct identity { uint64_t program, data; };

static enum status compare_identities(struct dist *d, struct identity mine, struct error *err)
{
    struct identity first = mine;
    enum status st = dist_broadcast(d, &first, sizeof first, err);
    if (st == OK && first.program != mine.program)
        st = error_set(err, BAD_INPUT, "this is another build of hone (%s, %016llx) than rank 0 runs (%016llx); start the same one everywhere",
                       HONE_VERSION, (unsigned long long)mine.program, (unsigned long long)first.program);
    else if (st == OK && first.data != mine.data)
        st = error_set(err, BAD_INPUT, "the data is not that of rank 0 (%016llx, and %016llx there); bring the same files everywhere",
                       (unsigned long long)mine.data, (unsigned long long)first.data);
    return dist_agree(d, st, err);
}

enum status ranks_compare(const struct config *c, const struct dataset *data, struct error *err)
{
    struct dist *d = ranks_of(c);
    struct identity mine = {.program = program_hash()};
    if (dist_size(d) == 1)
        return OK;
    uint64_t of[2];
    enum status st = data_hash(&of[SPLIT_TRAIN], data, SPLIT_TRAIN, c->model.seq, err);
    if (st == OK)
        st = data_hash(&of[SPLIT_VAL], data, SPLIT_VAL, c->model.seq, err);
    if (st == OK)
        mine.data = XXH3_64bits(of, sizeof of);
    st = dist_agree(d, st, err);
    return st == OK ? compare_identities(d, mine, err) : st;
}

enum status ranks_compare_configs(const struct config *c, struct error *err)
{
    struct dist *d = ranks_of(c);
    return dist_size(d) == 1 ? OK : compare_configs(c, d, err);
}

/* ---- opening ---- */

enum status ranks_agree(struct dist *d, enum status st, struct error *err)
{
    const enum status all = dist_agree(d, st, err);
    return all == OK ? st : all;            /* never OK where this one has failed */
}

enum status ranks_open_run(struct model_run *r, const struct config *c, struct dataset *dataset, struct error *err)
{
    struct dist *d = ranks_of(c);
    const bool first = dist_rank(d) == 0;
    r->dataset = dataset;
    enum status st = ranks_agree(d, first ? model_run_open(r, c, dataset, err) : OK, err);
    if (st == OK && !first)
        st = model_run_open(r, c, dataset, err);
    return ranks_agree(d, st, err);
}

/* ---- sharing ---- */

static enum status share_value(struct exec *e, struct dist *d, value_id v, struct error *err)
{
    const size_t bytes = value_bytes(&exec_program(e)->values[v]);
    void *host = malloc(bytes);
    if (!host)
        return error_no_memory(err, "a copy of a weight for the other ranks", bytes);
    if (dist_rank(d) == 0)
        exec_read(e, v, host);
    const enum status st = dist_broadcast(d, host, bytes, err);
    if (st == OK && dist_rank(d) != 0)
        exec_write(e, v, host);
    free(host);
    return st;
}

enum status ranks_share_state(struct model_run *r, struct error *err)
{
    struct dist *d = ranks_of(&r->config);
    const struct program *p = exec_program(r->train);
    enum status st = OK;
    for (int i = 0; dist_size(d) > 1 && i < p->n_values && st == OK; i++)
        if (p->values[i].kind == VALUE_PARAMETER || (p->values[i].kind == VALUE_STATE && !p->values[i].slice))
            st = share_value(r->train, d, i, err);
    if (st == OK && moments_are_divided(r))
        st = moments_deal(r, err);
    return st == OK ? exec_status(r->train, err) : st;
}

/* ---- logs ---- */

struct told { double compute_s, asks; struct gpu_state gpu; };

enum status ranks_gather_times(struct dist *d, const struct ranks_own *own, struct ranks_times *out, struct gpu_state *gpus, struct error *err)
{
    const struct told mine = {own->steps > 0 ? (own->seconds - own->wait_s) / own->steps : 0, own->asks, own->gpu};
    struct told *all = xcalloc((size_t)dist_size(d), sizeof *all);
    const enum status st = dist_gather(d, &mine, all, sizeof mine, err);
    *out = (struct ranks_times){.compute_least_s = all[0].compute_s, .compute_most_s = all[0].compute_s, .compare = st == OK && all[0].asks > 0};
    for (int r = 0; st == OK && r < dist_size(d); r++)
        gpus[r] = all[r].gpu;
    for (int r = 1; st == OK && r < dist_size(d); r++) {
        out->compute_least_s = all[r].compute_s < out->compute_least_s ? all[r].compute_s : out->compute_least_s;
        if (all[r].compute_s > out->compute_most_s) {
            out->compute_most_s = all[r].compute_s;
            out->slowest = r;
        }
    }
    free(all);
    return st;
}
