/* What a checkpoint holds of a run, and how it comes back: parameters, optimizer state, config, tokenizer. Whether a
 * run may be continued under another config is in same_run.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "train/train_int.h"

/* Host copies of all values of one kind. */
struct tensor_list {
    struct tensor *tensors;
    int n;
};

static void list_release(struct tensor_list *l)
{
    for (int i = 0; i < l->n; i++)
        free(l->tensors[i].data);
    free(l->tensors);
}

static struct tensor tensor_of(const struct value *v)
{
    struct tensor t = {.name = v->name, .type = v->dtype == I32 ? TENSOR_I32 : v->dtype == BF16 ? TENSOR_BF16 : TENSOR_F32,
                       .rank = v->shape.rank};
    memcpy(t.dim, v->shape.dim, sizeof v->shape.dim);
    return t;
}

/* Sums of gradients over micro-batches are empty between two steps: a checkpoint has no trace of them, as it has none of ranks, whose programs sum up
 * otherwise. The pass no-zero-fill leaves what they held in memory, but a run that is continued without it must find zeros. */
static bool *mark_empty_between_steps(const struct program *p)
{
    bool *empty = xcalloc((size_t)p->n_values, sizeof *empty);
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_ACCUMULATE)
            empty[p->ops[i].in[0]] = true;
    return empty;
}

static enum status list_add(struct tensor_list *l, struct exec *e, value_id v, struct error *err)
{
    const struct value *value = &exec_program(e)->values[v];
    struct tensor *t = &l->tensors[l->n];
    *t = tensor_of(value);
    t->data = malloc(value_bytes(value));
    if (!t->data)
        return error_no_memory(err, "a copy of the weights for the checkpoint", value_bytes(value));
    l->n++;
    exec_read(e, v, t->data);
    return OK;
}

/* Is it a moment of a parameter of this program? */
static bool is_moment(const struct program *p, const char *name)
{
    const value_id of = !strncmp(name, "adam.m.", 7) || !strncmp(name, "adam.v.", 7) ? program_find(p, name + 7) : NO_VALUE;
    return of != NO_VALUE && p->values[of].kind == VALUE_PARAMETER;
}

/* Moments are the last, whatever passes add states behind the optimizer. */
static enum status list_fill(struct tensor_list *l, struct exec *e, enum value_kind kind, struct error *err)
{
    const struct program *p = exec_program(e);
    bool *empty = mark_empty_between_steps(p);
    enum status st = OK;
    l->tensors = xcalloc((size_t)p->n_values, sizeof *l->tensors);
    for (int moments = 0; moments < 2; moments++)
        for (int i = 0; i < p->n_values && st == OK; i++)
            if (p->values[i].kind == kind && !p->values[i].slice && !empty[i] && is_moment(p, p->values[i].name) == (moments == 1))
                st = list_add(l, e, i, err);
    free(empty);
    return st == OK ? exec_status(e, err) : st;
}

/* Moments that were collected stand where they do if nothing is divided. */
static void list_take(struct tensor_list *l, const struct whole_moments *m)
{
    l->tensors = xrealloc(l->tensors, (size_t)(l->n + m->n + 1) * sizeof *l->tensors);
    for (int i = 0; i < m->n; i++)
        l->tensors[l->n++] = m->tensors[i];
}

static json_t *pairs_json(const struct tokenizer *t)
{
    size_t size;
    const char *text = bpe_json(t->bpe, &size);
    return json_pack("{s:s, s:i, s:s%}", "kind", "bpe", "vocab", t->n, "tokenizer.json", text, size);
}

json_t *tokenizer_json(const struct tokenizer *t)
{
    if (t->kind == TOKENIZER_BPE)
        return pairs_json(t);
    json_t *points = json_array();
    for (int i = 0; points && t->kind == TOKENIZER_CHAR && i < t->n; i++)
        if (json_array_append_new(points, json_integer(t->code_points[i]))) {
            json_decref(points);
            points = NULL;
        }
    static const char *const kinds[] = {"none", "byte", "char"};
    return json_pack("{s:s, s:i, s:o}", "kind", kinds[t->kind], "vocab", t->n, "code_points", points);
}

static json_t *config_json(const struct config *c)
{
    char *text = config_text(c);
    json_t *j = text ? json_string(text) : NULL;
    free(text);
    return j;
}

static json_t *sum_json(const struct loss_sum *s)
{
    return json_pack("{s:f, s:I, s:I}", "loss", s->loss, "steps", (json_int_t)s->steps, "finite_steps",
                     (json_int_t)s->finite_steps);
}

static json_t *carried_json(const struct carried *c)
{
    json_t *j = json_pack("{s:o, s:o, s:I}", "since_log", sum_json(&c->since_log), "since_epoch", sum_json(&c->since_epoch), "skipped",
                          (json_int_t)c->skipped);
    const bool added = j && (!c->forgetting.n || json_object_set_new(j, "forgetting", forgetting_rows(&c->forgetting)) == 0) &&
                       (!c->nodes || !c->nodes->n || json_object_set_new(j, "nodes", node_sums_json(c->nodes)) == 0) &&
                       (!c->owes || json_object_set_new(j, "owes_evaluation", json_true()) == 0);
    if (!added) {
        json_decref(j);
        j = NULL;
    }
    return j;
}

/* Checkpoints of earlier versions have nothing of it: zero. */
static struct loss_sum sum_of(const json_t *j)
{
    return (struct loss_sum){json_number_value(json_object_get(j, "loss")), json_integer_value(json_object_get(j, "steps")),
                             json_integer_value(json_object_get(j, "finite_steps"))};
}

static enum status carried_of(struct carried *c, const struct model_run *r, const struct checkpoint *ck, struct error *err)
{
    const json_t *j = json_object_get(ck->manifest, "carried");
    *c = (struct carried){.since_log = sum_of(json_object_get(j, "since_log")),
                          .since_epoch = sum_of(json_object_get(j, "since_epoch")),
                          .skipped = json_integer_value(json_object_get(j, "skipped")), .nodes = c->nodes,
                          .owes = json_is_true(json_object_get(j, "owes_evaluation"))};
    if (c->nodes)
        node_sums_restore(c->nodes, json_object_get(j, "nodes"));
    forgetting_init(&c->forgetting, r);
    return c->forgetting.n ? forgetting_restore(&c->forgetting, json_object_get(j, "forgetting"), ck->step, ck->path, err) : OK;
}

json_t *domain_samples_json(const struct dataset *d)
{
    json_t *list = json_array();
    for (int i = 0; list && i < dataset_domains(d); i++)
        if (json_array_append_new(list, json_integer(dataset_samples(dataset_domain(d, i), SPLIT_TRAIN)))) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

/* Data that cannot be read just now is no reason to save nothing. */
static json_t *data_json(struct model_run *r, enum split split)
{
    uint64_t hash;
    struct error ignored;
    const bool known = dataset_samples(r->dataset, split) && model_run_hash(&hash, r, split, &ignored) == OK;
    return known ? json_sprintf("%016llx", (unsigned long long)hash) : json_null();
}

/* What a manifest holds beyond the tensors; NULL: no memory. */
static json_t *extra_json(struct model_run *r, const struct carried *carried)
{
    json_t *j = json_pack("{s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "name", json_text(r->config.name), "config", config_json(&r->config), "tokenizer",
                     tokenizer_json(dataset_tokenizer(r->dataset)), "carried", carried_json(carried), "train_samples",
                     (json_int_t)dataset_samples(r->dataset, SPLIT_TRAIN), "train_data", data_json(r, SPLIT_TRAIN),
                     "val_data", data_json(r, SPLIT_VAL));
    if (j && r->stage_steps && json_object_set_new(j, "domain_samples", domain_samples_json(r->dataset))) {
        json_decref(j);
        j = NULL;
    }
    if (j && r->said && json_object_set(j, "said", r->said)) {
        json_decref(j);
        j = NULL;
    }
    return j;
}

enum status state_save(struct model_run *r, const char *out, int64_t step, const struct carried *carried,
                       char path[CONFIG_PATH_MAX], struct error *err)
{
    struct tensor_list weights = {0}, state = {0};
    enum status st = list_fill(&weights, r->train, VALUE_PARAMETER, err);
    if (st == OK)
        st = list_fill(&state, r->train, VALUE_STATE, err);
    const int own = state.n;
    if (st == OK)
        list_take(&state, &r->moments);
    json_t *extra = st == OK ? extra_json(r, carried) : NULL;
    if (st == OK && !extra)
        st = error_set(err, CANNOT, "out of memory for the manifest of a checkpoint");
    if (st == OK)
        st = checkpoint_save(path, out, step, weights.tensors, weights.n, state.tensors, state.n, extra,
                             (int)r->config.checkpoint.keep, err);
    json_decref(extra);
    list_release(&weights);
    state.n = own;                              /* the others are the moments' */
    list_release(&state);
    moments_release(&r->moments);
    return st;
}

static bool same_shape(const struct tensor *t, const struct value *v)
{
    struct shape s = {.rank = t->rank};
    if (t->rank > MAX_RANK)
        return false;
    memcpy(s.dim, t->dim, sizeof s.dim);
    return shape_equal(s, v->shape) && t->type == tensor_of(v).type;
}

/* The tensor of that name, as `like` needs it; NULL: a loss scale that the run had no need of, which starts as in a new run. */
static enum status find_tensor(const struct tensor **out, const struct safetensors *file, const char *name, const struct value *like,
                               const char *where, struct error *err)
{
    const struct tensor *t = *out = safetensors_find(file, name);
    char want[64], have[64];
    if (!t && like->kind == VALUE_STATE && like->init == INIT_VALUE)
        return OK;
    if (!t)
        return error_set(err, BAD_INPUT, "'%s' has no tensor '%s', which this model needs: it is of another "
                         "architecture or size", where, name);
    if (same_shape(t, like))
        return OK;
    struct shape s = {.rank = t->rank > MAX_RANK ? MAX_RANK : t->rank};
    memcpy(s.dim, t->dim, sizeof s.dim);
    return error_set(err, BAD_INPUT, "'%s': tensor '%s' is %s %s, and this model needs %s %s", where, name, tensor_type_name(t->type),
                     shape_text(s, have), dtype_name(like->dtype), shape_text(like->shape, want));
}

/* Moments that ranks divide are whole in the file. */
static enum status check_moments(const struct program *p, const struct safetensors *file, const char *where, struct error *err)
{
    char name[MOMENT_NAME];
    const struct tensor *t;
    enum status st = OK;
    for (int i = 0; i < p->n_values && st == OK; i++)
        for (const char *which = "mv"; *which && st == OK && p->values[i].kind == VALUE_PARAMETER; which++)
            st = find_tensor(&t, file, moment_name(*which, p->values[i].name, name), &p->values[i], where, err);
    return st;
}

static void write_zeros(struct exec *e, value_id v)
{
    void *zeros = xcalloc(1, value_bytes(&exec_program(e)->values[v]));
    exec_write(e, v, zeros);
    free(zeros);
}

static enum status load_each(struct exec *e, const struct safetensors *file, enum value_kind kind, const bool *empty, int *found, const char *where,
                             struct error *err)
{
    const struct program *p = exec_program(e);
    for (int i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        const struct tensor *t = NULL;
        if (v->kind != kind || v->slice)
            continue;
        if (empty[i])
            write_zeros(e, i);
        else if (find_tensor(&t, file, v->name, v, where, err) != OK)
            return BAD_INPUT;
        if (!t)
            continue;
        exec_write(e, i, t->data);
        ++*found;
    }
    return OK;
}

/* What a file may have and a run need no longer: a loss scale; sums over micro-batches, which were in files once. */
static bool needs_no_place(const char *name)
{
    static const char sums[] = "accumulate.";
    return !strncmp(name, LOSS_SCALE, strlen(LOSS_SCALE)) || !strncmp(name, sums, strlen(sums));
}

enum status state_load_tensors(struct exec *e, const struct safetensors *file, enum value_kind kind, const char *where,
                               struct error *err)
{
    const struct program *p = exec_program(e);
    int found = 0;
    bool *empty = mark_empty_between_steps(p);
    const enum status st = load_each(e, file, kind, empty, &found, where, err);
    free(empty);
    if (st != OK)
        return st;
    for (int i = 0; found != file->n && i < file->n; i++) {
        const value_id id = program_find(p, file->tensors[i].name);
        if (!needs_no_place(file->tensors[i].name) && !(kind == VALUE_STATE && p->n_buckets && is_moment(p, file->tensors[i].name)) && (id == NO_VALUE || p->values[id].kind != kind))
            return error_set(err, BAD_INPUT, "'%s' has a tensor '%s' that this model does not have: it is of another "
                             "architecture or size", where, file->tensors[i].name);
    }
    return exec_status(e, err);
}

/* What is wrong with the newest checkpoint is followed by how to go on; but one that cannot be read is not known to be wrong. */
static enum status load_newest(struct checkpoint *ck, const char *out, char path[CONFIG_PATH_MAX], struct error *err)
{
    enum status st = checkpoint_newest(path, out, err);
    if (st != OK)
        return st;
    st = checkpoint_load(ck, path, err);
    const bool wrong = st == BAD_INPUT && (!err->code || err->code == ENOENT);
    return wrong ? error_add(err, "; to continue from the checkpoint before it, move '%s' away", path) : st;
}

/* The samples that were seen must be a number. */
static enum status check_samples(const struct model_run *r, const struct checkpoint *ck, struct error *err)
{
    int64_t batches, samples;
    if (!__builtin_mul_overflow(ck->step, r->config.train.accumulate, &batches) &&
        !__builtin_mul_overflow(batches, r->config.train.batch_size, &samples))
        return OK;
    return error_set(err, BAD_INPUT, "'%s': after step %lld of %lld × %lld samples there are more than can be counted", ck->path,
                     (long long)ck->step, (long long)r->config.train.accumulate, (long long)r->config.train.batch_size);
}

enum status state_resume(struct model_run *r, const char *out, int64_t *step, struct carried *carried,
                         char path[CONFIG_PATH_MAX], struct error *err)
{
    struct checkpoint ck;
    enum status st = load_newest(&ck, out, path, err);
    if (st != OK)
        return st;
    st = same_run(r, &ck, err);
    if (st == OK)
        st = check_samples(r, &ck, err);
    if (st == OK)
        st = state_load_tensors(r->train, &ck.weights, VALUE_PARAMETER, ck.path, err);
    if (st == OK)
        st = state_load_tensors(r->train, &ck.state, VALUE_STATE, ck.path, err);
    if (st == OK && moments_are_divided(r))
        st = check_moments(exec_program(r->train), &ck.state, ck.path, err);
    if (st == OK && moments_are_divided(r)) {
        r->dealt = ck.state;                    /* until every rank has its slices */
        ck.state = (struct safetensors){0};
    }
    if (st == OK) {
        *step = ck.step;
        json_decref(r->said);
        st = said_of(&r->said, json_object_get(ck.manifest, "said"), r->config.model.vocab, err);
    }
    if (st == OK)
        st = carried_of(carried, r, &ck, err);
    checkpoint_release(&ck);
    return st;
}
