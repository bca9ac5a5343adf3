/* A model that was trained, from its checkpoint: config, tokenizer, and a forward program with its weights. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "train/train_int.h"

static enum status read_pairs(struct tokenizer *out, const json_t *text, const char *where, struct error *err)
{
    struct bpe *b;
    char name[CONFIG_PATH_MAX + 64];
    snprintf(name, sizeof name, "%s: the tokenizer", where);
    const enum status st = bpe_parse(&b, name, json_string_value(text), json_string_length(text), err);
    if (st == OK)
        tokenizer_init_bpe(out, b);
    return st;
}

enum status tokenizer_of_json(struct tokenizer *out, const json_t *j, const char *where, struct error *err)
{
    const json_t *points = json_object_get(j, "code_points");
    const char *kind = json_string_value(json_object_get(j, "kind"));
    if (kind && !strcmp(kind, "bpe") && json_is_string(json_object_get(j, "tokenizer.json")))
        return read_pairs(out, json_object_get(j, "tokenizer.json"), where, err);
    const json_int_t n = json_integer_value(json_object_get(j, "vocab"));
    const enum tokenizer_kind k = !kind ? TOKENIZER_NONE : !strcmp(kind, "char") ? TOKENIZER_CHAR
                                : !strcmp(kind, "byte") ? TOKENIZER_BYTE : TOKENIZER_NONE;
    if (!kind || n < 1 || n > INT32_MAX || (k == TOKENIZER_CHAR && json_array_size(points) != (size_t)n))
        return error_set(err, BAD_INPUT, "'%s': the tokenizer is missing or damaged", where);
    uint32_t *list = k == TOKENIZER_CHAR ? xcalloc((size_t)n, sizeof *list) : NULL;
    for (size_t i = 0; list && i < (size_t)n; i++)
        list[i] = (uint32_t)json_integer_value(json_array_get(points, i));
    const enum status st = tokenizer_init(out, k, list, (int32_t)n, err);
    free(list);
    return st;
}

static enum status read_tokenizer(struct trained *t, struct error *err)
{
    char where[CONFIG_PATH_MAX + 32];
    snprintf(where, sizeof where, "%s/manifest.json", t->checkpoint.path);
    return tokenizer_of_json(&t->tokenizer, json_object_get(t->checkpoint.manifest, "tokenizer"), where, err);
}

static enum status read_config(struct trained *t, const char *const *sets, int n_sets, const char *device, struct error *err)
{
    const char *text = json_string_value(json_object_get(t->checkpoint.manifest, "config"));
    if (!text)
        return error_set(err, BAD_INPUT, "'%s/manifest.json' holds no config", t->checkpoint.path);
    const enum status st = config_parse_saved(&t->config, t->checkpoint.path, text, strlen(text), sets, n_sets, err);
    if (st == OK && device)
        t->config.device = strcmp(device, "cuda") ? DEVICE_CPU : DEVICE_CUDA;
    return st;
}

enum status trained_load(struct trained *t, const char *checkpoint, const char *const *sets, int n_sets, const char *device,
                         struct error *err)
{
    enum status st = checkpoint_load(&t->checkpoint, checkpoint, err);
    if (st == OK)
        st = read_config(t, sets, n_sets, device, err);
    return st == OK ? read_tokenizer(t, err) : st;
}

enum status trained_refuse(const struct trained *t, enum status st, struct error *err)
{
    const size_t available = t->backend->available(t->backend);
    return err->no_memory && available != SIZE_MAX ? error_add(err, ", and %.0f MB are free", (double)available / 1e6) : st;
}

enum status trained_build(struct trained *t, struct program *p, struct error *err)
{
    enum status st = train_open_backend(&t->backend, &t->config, err);
    if (st != OK) {
        program_free(p);
        return st;
    }
    st = exec_new(&t->exec, p, t->backend, NULL, err);
    if (st != OK) {
        program_free(p);
        return trained_refuse(t, st, err);
    }
    return state_load_tensors(t->exec, &t->checkpoint.weights, VALUE_PARAMETER, t->checkpoint.path, err);
}

void trained_release(struct trained *t)
{
    lengths_close(&t->lengths);
    exec_free(t->exec);
    if (t->backend)
        t->backend->free(t->backend);
    tokenizer_release(&t->tokenizer);
    checkpoint_release(&t->checkpoint);
}
