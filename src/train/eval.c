/* The loss of a checkpoint's model on data: its own, or other data in its vocabulary. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/notice.h"
#include "train/train_int.h"

/* What is evaluated is the checkpoint's: the model as it is, and nothing is trained or saved. */
static enum status check_sets(const struct eval_options *o, struct error *err)
{
    static const char *const kept[] = {"model.", "k1.", "train.", "checkpoint.", "log.", "verify."};
    for (int i = 0; i < o->n_sets; i++)
        for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
            if (!strncmp(o->sets[i], kept[k], strlen(kept[k])))
                return error_set(err, BAD_INPUT, "--set %.200s: the model is as it was trained; set keys of data, eval, optimize or "
                                 "backend, device or threads", o->sets[i]);
    return OK;
}

/* A run looks at some batches on its way, and its own eval.batches does not count here: only one that is given. */
static int64_t given_batches(const struct eval_options *o)
{
    static const char key[] = "eval.batches=";
    int64_t n = 0;
    for (int i = 0; i < o->n_sets && !o->batches; i++)
        if (!strncmp(o->sets[i], key, sizeof key - 1))
            n = strtoll(o->sets[i] + sizeof key - 1, NULL, 10);
    return o->batches ? o->batches : n > 0 ? n : INT64_MAX;
}

/* Of several domains: batches before the one that is under way. */
struct counting {
    const struct eval_options *options;
    int64_t before, total;
};

static void on_batch(void *context, int64_t batches)
{
    const struct counting *c = context;
    if (c->options->progress)
        c->options->progress(c->options->context, c->before + batches, c->total);
}

static int64_t batches_of(const struct dataset *d, const struct evaluation *how, const struct eval_options *o)
{
    return evaluation_batches(d, how->split, how->batch_size, given_batches(o));
}

static bool stopped(const struct eval_options *o) { return o->stop && *o->stop; }

static enum status eval_domains(struct trained *t, const struct dataset *d, const struct eval_options *o, struct eval_result *r,
                                struct error *err)
{
    const struct config *c = &t->config;
    const int n = dataset_domains(d);
    struct counting counting = {.options = o};
    struct evaluation how = {.split = o->train ? SPLIT_TRAIN : SPLIT_VAL, .batch_size = c->eval.batch_size,
                             .bytes = &t->tokenizer, .workers = (int)c->data.workers, .stop = o->stop, .progress = on_batch,
                             .context = &counting};
    enum status st = OK;
    for (int i = 0; i < n; i++)
        counting.total += batches_of(dataset_domain(d, i), &how, o);
    for (int i = 0; i < n && st == OK; i++) {
        const struct dataset *one = dataset_domain(d, i);
        struct evaluated made;
        how.batches = batches_of(one, &how, o);
        if (how.batches < evaluation_batches(one, how.split, how.batch_size, INT64_MAX))
            r->first = given_batches(o);
        st = evaluate_samples(&t->lengths, one, &how, &made, err);
        counting.before += how.batches;
        if (st == OK && !isfinite(made.loss))
            st = error_set(err, BAD_INPUT, "'%s': the loss is %g, so its weights are not those of a model that trained well",
                           t->checkpoint.path, made.loss);
        r->domains[i] = (struct eval_loss){dataset_name(one), made.tokens > 0 ? made.loss : NAN, dataset_entropy(one), made.tokens,
                                           made.bytes};
    }
    r->interrupted = stopped(o);
    return st;
}

/* Mean over the tokens of all. */
static struct eval_loss sum_up(const struct eval_loss *of, int n)
{
    struct eval_loss all = {.loss = 0};
    for (int i = 0; i < n; i++) {
        if (!(of[i].tokens > 0))
            continue;
        all.loss += of[i].loss * of[i].tokens;
        all.entropy += of[i].entropy * of[i].tokens;
        all.tokens += of[i].tokens;
        all.bytes += of[i].bytes;
    }
    all.loss = all.tokens > 0 ? all.loss / all.tokens : NAN;
    all.entropy = all.tokens > 0 ? all.entropy / all.tokens : NAN;
    return all;
}

static void fill(struct eval_result *r, const struct trained *t, const struct dataset *d)
{
    const int n = dataset_domains(d);
    r->step = t->checkpoint.step;
    r->lines = t->config.data.samples == SAMPLES_LINES;
    snprintf(r->checkpoint, sizeof r->checkpoint, "%s", t->checkpoint.path);
    snprintf(r->data, sizeof r->data, "%s", dataset_describe(d));
    r->all = sum_up(r->domains, n);
    r->names = t->config.data.domains;
    r->n = (int)r->names.n;
    for (int i = 0; i < r->n; i++)
        r->domains[i].name = config_name(&r->names, i);
}

static enum status open_data(struct dataset **out, const struct trained *t, bool train, struct error *err)
{
    const bool bytes = t->config.data.tokens == TOKENS_BYTE, has_bytes = t->tokenizer.kind == TOKENIZER_BYTE;
    const bool by_symbol = has_bytes || t->tokenizer.kind == TOKENIZER_CHAR;         /* with another tokenizer data.tokens says nothing */
    if (bytes != has_bytes && by_symbol)
        return error_set(err, BAD_INPUT, "data.tokens is %s, and the model was trained on %ss; set data.tokens to %s", bytes ? "byte" : "char",
                         has_bytes ? "byte" : "character", has_bytes ? "byte" : "char");
    enum status st = dataset_open_for(out, &t->config, &t->tokenizer, err);
    if (st == OK && !train && !dataset_samples(*out, SPLIT_VAL))
        st = error_set(err, BAD_INPUT, "there is no validation data; set data.val_fraction or data.val_path, or take --split train");
    return st;
}

static bool begins_with(const char *text, const char *with) { return !strncmp(text, with, strlen(with)); }

/* A model that was imported has no data of its own: its config says corpus because a config must say something. Who wants that says so. */
static enum status check_data(const struct trained *t, const struct eval_options *o, struct error *err)
{
    const struct config_data *d = &t->config.data;
    bool named = !json_object_get(t->checkpoint.manifest, "imported") || d->source != SOURCE_CORPUS || d->domains.n;
    for (int i = 0; i < o->n_sets && !named; i++)
        named = begins_with(o->sets[i], "data.source=") || begins_with(o->sets[i], "data.domain=");
    return named ? OK : error_set(err, BAD_INPUT, "'%s' was imported, and has no data of its own; give DATA, or --set data.source and data.path", t->checkpoint.path);
}

static void tell_of_data(const struct dataset *d)
{
    const char *words;
    for (int i = 0; (words = dataset_warning(d, i)); i++)
        notice_tell("%s", words);
}

/* The run's own data, and not what a setting names. */
static bool is_own_data(const struct eval_options *o)
{
    bool own = true;
    for (int i = 0; i < o->n_sets && own; i++)
        own = !begins_with(o->sets[i], "data.") || begins_with(o->sets[i], "data.workers=") || begins_with(o->sets[i], "data.prefetch=");
    return own;
}

/* Training shuffles its windows, of which there is one fewer then, and so the hash is of those. */
static enum status training_changed(bool *changed, const struct trained *t, struct error *err)
{
    struct dataset *d;
    struct error ignored;
    if (dataset_open(&d, &t->config, &ignored) != OK)
        return OK;                          /* nobody can say */
    const enum status st = data_changed(changed, t->checkpoint.manifest, d, SPLIT_TRAIN, t->config.model.seq, err);
    dataset_free(d);
    return st;
}

/* Files change, and their split with them: then a part for validation may hold what was trained on. */
static enum status tell_of_change(const struct trained *t, const struct dataset *d, const struct eval_options *o, struct error *err)
{
    bool changed = false;
    enum status st = OK;
    if (is_own_data(o) && o->train)
        st = training_changed(&changed, t, err);
    else if (is_own_data(o))
        st = data_changed(&changed, t->checkpoint.manifest, d, SPLIT_VAL, t->config.model.seq, err);
    if (changed)
        notice_tell("the %s data is not what the run had: its loss is not that of the run%s", o->train ? "training" : "validation",
                    o->train ? "" : ", and some of it may have been trained on");
    return st;
}

enum status eval_run(const char *checkpoint, const struct eval_options *options, struct eval_result *out, struct error *err)
{
    struct trained *t = xcalloc(1, sizeof *t);
    struct dataset *d = NULL;
    struct program *p;
    *out = (struct eval_result){.n = 0};
    enum status st = check_sets(options, err);
    if (st == OK)
        st = trained_load(t, checkpoint, options->sets, options->n_sets, options->device, err);
    if (st == OK)
        st = check_data(t, options, err);
    if (st == OK)
        st = open_data(&d, t, options->train, err);
    if (st == OK)
        tell_of_data(d);
    if (st == OK)
        st = tell_of_change(t, d, options, err);
    if (st == OK)
        st = evaluation_program(&p, &t->config, err);
    if (st == OK && trained_build(t, p, err) != OK)
        st = evaluation_refuse(&t->config, err);
    if (st == OK)
        st = evaluation_lengths(&t->lengths, &t->config, d, t->backend, t->exec, err);
    if (st == OK)
        st = eval_domains(t, d, options, out, err);
    if (st == OK)
        fill(out, t, d);
    dataset_free(d);
    trained_release(t);
    free(t);
    return st;
}
