/* hone export: a checkpoint of ours becomes a folder that other programs read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/fresh.h"
#include "core/fs.h"
#include "core/json_memory.h"
#include "core/setup.h"
#include "train/bring.h"
#include "train/train_int.h"
#include "weights/weights.h"

struct export {
    const char *part;                   /* of the folder, that is not seen before all of it is there */
    json_t *said;                       /* see said_of */
    struct trained *from;
    struct export_result *result;
};

static void wrote(struct export *x, const char *name) { x->result->files[x->result->n_files++] = name; }

static enum status write_file(struct export *x, const char *name, const char *text, size_t size, struct error *err)
{
    char path[CONFIG_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", x->part, name);
    wrote(x, name);
    return fs_write_synced(path, text, size, err);
}

/* Takes the document over. */
static enum status write_json(struct export *x, const char *name, json_t *j, struct error *err)
{
    char *text = j ? json_memory_dump(j, 0) : NULL;
    const enum status st = text ? write_file(x, name, text, strlen(text), err) : error_set(err, CANNOT, "out of memory for '%s'", name);
    free(text);
    json_decref(j);
    return st;
}

/* False: no memory. */
static bool add_token(json_t *to, const char *key, const struct export *x, const char *id_key)
{
    char room[TOKEN_TEXT_MAX];
    const char *text = said_token(x->said, id_key, &x->from->tokenizer, room);
    return !text || !json_object_set_new(to, key, json_string(text));
}

/* How transformers make a tokenizer of tokenizer.json. */
static json_t *how_to_read(const struct export *x)
{
    json_t *j = json_pack("{s:s}", "tokenizer_class", "PreTrainedTokenizerFast");
    if (j && add_token(j, "bos_token", x, "bos_token_id") && add_token(j, "eos_token", x, "eos_token_id"))
        return j;
    json_decref(j);
    return NULL;
}

/* Byte pairs as transformers look for them; of characters and bytes they know nothing, but hone import does. */
static enum status export_tokenizer(struct export *x, struct error *err)
{
    const struct tokenizer *t = &x->from->tokenizer;
    size_t size;
    if (t->kind == TOKENIZER_NONE)
        return OK;
    if (t->kind != TOKENIZER_BPE)
        return write_json(x, TOKENS_FILE, tokenizer_json(t), err);
    const char *text = bpe_json(t->bpe, &size);
    const enum status st = write_file(x, "tokenizer.json", text, size, err);
    return st == OK ? write_json(x, "tokenizer_config.json", how_to_read(x), err) : st;
}

static enum status export_weights(struct export *x, enum export_form form, struct error *err)
{
    const struct trained *t = x->from;
    wrote(x, "config.json");
    wrote(x, "model.safetensors");
    if (form == EXPORT_HF)
        return weights_export(x->part, &t->config.model, x->said, &t->checkpoint.weights, err);
    wrote(x, "model.py");
    return weights_export_torch(x->part, &t->config.model, &t->checkpoint.weights, err);
}

static enum status export_files(struct export *x, enum export_form form, struct error *err)
{
    struct trained *t = x->from;
    const int64_t vocab = t->config.model.vocab;
    json_t *known;
    enum status st = said_of(&known, json_object_get(t->checkpoint.manifest, "said"), vocab, err);
    if (st == OK)
        st = said_with_ends(&x->said, known, &t->tokenizer, vocab, err);
    json_decref(known);
    if (st == OK)
        st = export_weights(x, form, err);
    if (st == OK)
        st = export_tokenizer(x, err);
    json_decref(x->said);
    return st != OK || setup_goes_on("files") ? st : error_stopped(err, "stopped; nothing was written");
}

enum status export_run(const char *checkpoint, enum export_form form, const char *out, struct export_result *r, struct error *err)
{
    struct trained t = {.exec = NULL};
    struct fresh folder = {.lock = -1};
    *r = (struct export_result){.n_files = 0};
    enum status st = fresh_begin(&folder, out, err);
    if (st == OK)
        st = trained_load(&t, checkpoint, NULL, 0, NULL, err);
    if (st == OK)
        st = export_files(&(struct export){.part = folder.part, .from = &t, .result = r}, form, err);
    if (st == OK)
        st = fresh_publish(&folder, err);
    if (st == OK) {
        r->config = t.config;
        r->tokens = t.tokenizer.kind;
        r->n_tokens = t.tokenizer.n;
        snprintf(r->checkpoint, sizeof r->checkpoint, "%s", t.checkpoint.path);
    }
    setup_done();
    fresh_end(&folder);
    trained_release(&t);
    return st;
}
