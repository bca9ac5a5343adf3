/* hone import and train.init: weights that others wrote become parameters of a program of ours. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/fresh.h"
#include "core/json_memory.h"
#include "core/notice.h"
#include "core/setup.h"
#include "data/utf8.h"
#include "train/bring.h"
#include "train/train_int.h"
#include "weights/weights.h"

/* ---- import ---- */

struct import {
    struct weights *weights;
    struct program *program;            /* whose parameters are wanted */
    struct tensor *tensors;             /* (n): ours */
    int n;
    struct fresh folder;
    struct tokenizer tokenizer;
};

static enum status copy_parameter(struct import *im, const struct value *v, const struct config_model *m, struct error *err)
{
    struct tensor *t = &im->tensors[im->n];
    *t = (struct tensor){.name = v->name, .type = TENSOR_F32, .rank = v->shape.rank};
    memcpy(t->dim, v->shape.dim, sizeof v->shape.dim);
    t->data = malloc(value_bytes(v));
    if (!t->data)
        return error_no_memory(err, "a copy of the weights", value_bytes(v));
    im->n++;
    weights_copy(im->weights, v, m, t->data);
    return setup_check("weights", err);
}

static enum status copy_parameters(struct import *im, const struct config_model *m, struct error *err)
{
    const struct program *p = im->program;
    enum status st = weights_check(im->weights, p, m, err);
    im->tensors = xcalloc((size_t)p->n_values, sizeof *im->tensors);
    for (int i = 0; i < p->n_values && st == OK; i++)
        if (p->values[i].kind == VALUE_PARAMETER)
            st = copy_parameter(im, &p->values[i], m, err);
    setup_done();
    return st;
}

/* The characters or bytes of a model of ours that was exported (export.c). */
static enum status read_tokens(struct tokenizer *out, const char *path, int64_t vocab, struct error *err)
{
    json_t *j = NULL;
    struct tokenizer t = {.kind = TOKENIZER_NONE};
    enum status st = json_memory_read_object(&j, path, TOKENS_MOST, "", err);
    if (st == OK)
        st = tokenizer_of_json(&t, j, path, err);
    if (st == OK && t.n > vocab)
        st = error_set(err, BAD_INPUT, "'%s' has %d %s, and the model a vocabulary of %lld", path, t.n, tokenizer_unit(t.kind), (long long)vocab);
    if (st == OK)
        *out = t;
    else
        tokenizer_release(&t);
    json_decref(j);
    return st;
}

static bool tokens_are_there(const char *folder, char path[CONFIG_PATH_MAX + 16])
{
    snprintf(path, CONFIG_PATH_MAX + 16, "%s/%s", folder, TOKENS_FILE);
    return access(path, F_OK) == 0;
}

/* The one in a folder that has one. */
static enum status open_tokenizer(struct tokenizer *out, const char *folder, int64_t vocab, struct error *err)
{
    char path[CONFIG_PATH_MAX + 16];
    struct bpe *b = NULL;
    enum status st = OK;
    if (!bpe_is_there(folder) && tokens_are_there(folder, path))
        st = read_tokens(out, path, vocab, err);
    else
        st = bpe_open(&b, folder, err);
    if (b)
        tokenizer_init_bpe(out, b);
    return st;
}

/* The one beside the weights; where that is of a kind that is not known here, tokens are ids. Where the machine could not read it, it may be one that is known. */
static enum status find_tokenizer(struct import *im, struct import_result *r, struct error *err)
{
    const char *folder = weights_folder(im->weights);
    char path[CONFIG_PATH_MAX + 16];
    struct error why;
    im->tokenizer = (struct tokenizer){.kind = TOKENIZER_NONE, .n = (int32_t)r->config.model.vocab};
    if (!folder || (!bpe_is_there(folder) && !tokens_are_there(folder, path))) {
        snprintf(r->tokens, sizeof r->tokens, "ids: no tokenizer lies beside the weights");
    } else if (open_tokenizer(&im->tokenizer, folder, r->config.model.vocab, &why) != OK) {
        if (why.status == CANNOT) {
            *err = why;
            return CANNOT;
        }
        snprintf(r->tokens, sizeof r->tokens, "ids: %.400s", why.text);
    } else {
        r->has_tokenizer = im->tokenizer.kind != TOKENIZER_NONE;
        snprintf(r->tokens, sizeof r->tokens, "%s, %d of them", tokenizer_unit(im->tokenizer.kind), im->tokenizer.n);
    }
    return OK;
}

/* Data that is brought to the model later is read by what it knows: with another tokenizer data.tokens says nothing. */
static void give_tokens(struct config *c, enum tokenizer_kind kind)
{
    if (kind == TOKENIZER_BYTE || kind == TOKENIZER_CHAR)
        c->data.tokens = kind == TOKENIZER_BYTE ? TOKENS_BYTE : TOKENS_CHAR;
}

static json_t *manifest_of(const struct import *im, const struct import_result *r)
{
    char *config = config_text(&r->config);         /* NULL makes nothing of all of it */
    json_t *j = json_pack("{s:o, s:s, s:o, s:{s:o, s:s}}", "name", json_text(r->config.name), "config", config, "tokenizer",
                          tokenizer_json(&im->tokenizer), "imported", "from", json_text(r->from), "family", r->title);
    json_t *said;
    const enum status st = said_of(&said, weights_said(im->weights), r->config.model.vocab, NULL);
    if (j && (st != OK || (said && json_object_set(j, "said", said)))) {
        json_decref(j);
        j = NULL;
    }
    json_decref(said);
    free(config);
    return j;
}

static enum status save(struct import *im, struct import_result *r, struct error *err)
{
    char path[CONFIG_PATH_MAX];
    json_t *extra = manifest_of(im, r);
    enum status st = extra ? checkpoint_save(path, im->folder.part, 0, im->tensors, im->n, NULL, 0, extra, 1, err)
                           : error_set(err, CANNOT, "out of memory for the manifest of a checkpoint");
    if (st == OK)
        st = folder_write_config(im->folder.part, &r->config, err);
    if (st == OK)
        snprintf(r->checkpoint, sizeof r->checkpoint, "%s%s", im->folder.folder, path + strlen(im->folder.part));
    json_decref(extra);
    return st == OK ? fresh_publish(&im->folder, err) : st;
}

static void describe(struct import_result *r, const struct import *im, const char *path)
{
    snprintf(r->from, sizeof r->from, "%s", path);
    snprintf(r->types, sizeof r->types, "%s", weights_types(im->weights));
    r->title = weights_title(im->weights);
    r->note = weights_note(im->weights);
    r->files = weights_files(im->weights);
    r->parameters = program_parameters(im->program);
}

static void import_release(struct import *im)
{
    for (int i = 0; i < im->n; i++)
        free(im->tensors[i].data);
    free(im->tensors);
    program_free(im->program);
    tokenizer_release(&im->tokenizer);
    weights_free(im->weights);
    fresh_end(&im->folder);
}

/* A checkpoint needs no import, and none of its files has the name that others give theirs. */
static enum status refuse_ours(const char *path, struct error *err)
{
    if (weights_is_folder(path) || !checkpoint_is_ours(path))
        return OK;
    return error_set(err, BAD_INPUT, "'%s' is a run of hone already; use it as it is: hone generate, eval and export take it, and so does train.init", path);
}

enum status import_run(const char *path, const struct import_options *o, struct import_result *r, struct error *err)
{
    struct import im = {.folder = {.lock = -1}};
    *r = (struct import_result){.title = NULL};
    enum status st = folder_check(&(struct train_options){.out = o->out, .import = true}, err);
    if (st == OK)
        st = refuse_ours(path, err);
    if (st == OK)
        st = fresh_begin(&im.folder, o->out, err);      /* before what may take minutes */
    if (st == OK)
        st = weights_open(&im.weights, path, err);
    if (st == OK)
        st = weights_config(im.weights, &r->config, o->sets, o->n_sets, err);
    if (st == OK)
        st = model_build(&im.program, &r->config.model, (struct model_options){.batch = 1}, err);
    if (st == OK)
        st = copy_parameters(&im, &r->config.model, err);
    if (st == OK) {
        describe(r, &im, path);
        r->tensors = im.n;
        st = find_tokenizer(&im, r, err);
        give_tokens(&r->config, im.tokenizer.kind);
    }
    if (st == OK)
        st = save(&im, r, err);
    import_release(&im);
    return st;
}

/* ---- train.init ---- */

/* The tokenizer that weights were made with, where it is known: one that cannot be read is no reason not to train. */
static void find_their_tokens(struct tokenizer *out, const struct weights *w, int64_t vocab)
{
    const char *folder = weights_folder(w);
    char path[CONFIG_PATH_MAX + 16];
    struct error unused;
    if (folder && (bpe_is_there(folder) || tokens_are_there(folder, path)))
        open_tokenizer(out, folder, vocab, &unused);
}

/* Weights of others; or a checkpoint's, by their file: what is known of them stands in the manifest beside it. */
static enum status open_weights(struct weights **out, struct tokenizer *tokens, struct model_run *r, struct error *err)
{
    const char *path = r->config.train.init;
    const int64_t vocab = r->config.model.vocab;
    struct error unused;
    enum status st = weights_open(out, path, err);
    if (st != OK)
        return st;
    json_t *manifest = checkpoint_is_folder(path) ? NULL : checkpoint_beside(path);
    if (manifest)
        tokenizer_of_json(tokens, json_object_get(manifest, "tokenizer"), path, &unused);
    else
        find_their_tokens(tokens, *out, vocab);
    st = said_of(&r->said, manifest ? json_object_get(manifest, "said") : weights_said(*out), vocab, err);
    json_decref(manifest);
    return st;
}

/* A file or folder of others, or the newest checkpoint of a run. */
static enum status open_init(struct weights **out, struct tokenizer *tokens, struct model_run *r, struct error *err)
{
    const char *path = r->config.train.init;
    const int64_t vocab = r->config.model.vocab;
    struct checkpoint ck;
    if (!checkpoint_is_folder(path) || weights_is_folder(path))
        return open_weights(out, tokens, r, err);
    struct error unused;
    enum status st = checkpoint_load(&ck, path, err);
    if (st != OK)
        return st;
    tokenizer_of_json(tokens, json_object_get(ck.manifest, "tokenizer"), ck.path, &unused);
    st = said_of(&r->said, json_object_get(ck.manifest, "said"), vocab, err);
    if (st == OK)
        st = weights_take(out, &ck.weights, ck.path, err);
    checkpoint_release(&ck);
    return st;
}

static enum status write_parameters(struct model_run *r, const struct weights *w, struct error *err)
{
    const struct program *p = exec_program(r->train);
    enum status st = weights_check(w, p, &r->config.model, err);
    for (int i = 0; i < p->n_values && st == OK; i++) {
        const struct value *v = &p->values[i];
        if (v->kind != VALUE_PARAMETER || v->slice)
            continue;
        float *numbers = malloc(value_bytes(v));
        if (!numbers)
            return error_no_memory(err, "a copy of the weights", value_bytes(v));
        weights_copy(w, v, &r->config.model, numbers);
        exec_write(r->train, i, numbers);
        r->init_tensors++;
        free(numbers);
    }
    return st == OK ? exec_status(r->train, err) : st;
}

/* What no tensor tells, and a config.json beside them does: with another value the same weights are another model. */
static void tell_differences(const struct model_run *r, const struct weights *w)
{
    static const char *const keys[] = {"model.heads", "model.norm_eps", "model.rope_base", "model.rope_scaling", "model.rope_factor", "model.rope_low", "model.rope_high",
                                       "model.rope_context"};
    struct config theirs;
    struct config_difference d;
    struct error unused;
    if (!weights_has_config(w) || weights_config(w, &theirs, NULL, 0, &unused) != OK)
        return;
    for (int at = 0; config_differ(&d, &theirs, &r->config, &at);)
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (!strcmp(d.key, keys[i]))
                notice_tell("train.init: these weights were made with %s %s (config.json of '%s'), and here it is %s", d.key, d.a, r->config.train.init, d.b);
}

/* What would make the tokens of the data those of the weights, which lie in `folder`; NULL: in a checkpoint of the run at `path`. */
static void advise_tokens(char out[CONFIG_PATH_MAX + 128], const struct tokenizer *theirs, const char *path, const char *folder)
{
    const size_t size = CONFIG_PATH_MAX + 128;
    if (theirs->kind == TOKENIZER_BYTE)
        snprintf(out, size, "set data.tokens: byte");
    else if (theirs->kind == TOKENIZER_CHAR)
        snprintf(out, size, "train on text of the same %d characters, or leave train.init out", theirs->n);
    else if (folder && bpe_is_there(folder))
        snprintf(out, size, "make the tokens with the tokenizer in '%s' (data.tokenizer)", folder);
    else
        snprintf(out, size, "make the tokens with its tokenizer.json (data.tokenizer), which `hone export '%s' --to hf` writes", folder ? folder : path);
}

/* One character also by its number: a tab and a space look alike. */
static void show_token(char out[64], const struct tokenizer *t, int32_t id)
{
    char text[TOKEN_TEXT_MAX];
    uint32_t c;
    const size_t n = tokenizer_decode(t, id, text);
    if (n && utf8_decode(text, n, &c) == n)
        snprintf(out, 64, "'%.4s' (U+%04X)", c < ' ' ? "?" : text, c);
    else if (n == 1)
        snprintf(out, 64, "0x%02X", (unsigned char)*text);
    else
        snprintf(out, 64, "'%.40s'", text);
}

/* Rows of an embedding are of ids: where these are other symbols, what was learned is of no use, and nothing fails. */
static void tell_other_tokens(const struct model_run *r, const struct tokenizer *theirs, const char *folder)
{
    char there[64], here[64], advice[CONFIG_PATH_MAX + 128];
    const char *path = r->config.train.init;
    const struct tokenizer *ours = dataset_tokenizer(r->dataset);
    const int32_t id = tokenizer_differ(theirs, ours);
    if (id < 0)
        return;
    show_token(there, theirs, id);
    show_token(here, ours, id);
    advise_tokens(advice, theirs, path, folder);
    notice_tell("train.init: the weights of '%s' are for other %s than the data has: token %d is %s there and %s here, so rows of the embedding stand for other symbols; %s",
                path, theirs->kind == ours->kind ? tokenizer_unit(theirs->kind) : "tokens", id, there, here, advice);
}

enum status model_run_load_init(struct model_run *r, struct error *err)
{
    struct weights *w = NULL;
    struct tokenizer theirs = {.kind = TOKENIZER_NONE};
    if (!*r->config.train.init)
        return OK;
    r->init_tensors = 0;
    json_decref(r->said);
    r->said = NULL;
    enum status st = open_init(&w, &theirs, r, err);
    if (st == OK)
        st = write_parameters(r, w, err);
    if (st == OK) {
        tell_differences(r, w);
        tell_other_tokens(r, &theirs, weights_folder(w));
        r->init_title = weights_title(w);
        snprintf(r->init_types, sizeof r->init_types, "%s", weights_types(w));
    }
    tokenizer_release(&theirs);
    weights_free(w);
    return st == OK ? OK : config_blame_path(&r->config, "train.init", r->config.train.init, err);
}
