/* A model of ours as Hugging Face has it, config.json and model.safetensors; or as plain PyTorch, with the program that reads it. In f32. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/fs.h"
#include "core/json_memory.h"
#include "core/setup.h"
#include "weights/weights_int.h"

static const struct family *family_for(enum arch arch)
{
    return arch == ARCH_GPT ? &family_gpt2 : arch == ARCH_LLAMA ? &family_llama : NULL;
}

/* Takes the document over. */
static enum status write_json(const char *path, json_t *j, struct error *err)
{
    char *text = j ? json_memory_dump(j, JSON_INDENT(2)) : NULL;
    const enum status st = text ? fs_write_synced(path, text, strlen(text), err) : error_set(err, CANNOT, "out of memory for '%s'", path);
    free(text);
    json_decref(j);
    return st;
}

/* One tensor of ours becomes its rows of theirs. */
static void place(const struct name_row *row, int part, const struct tensor *from, const struct config_model *m, struct tensor *to)
{
    const int64_t rows = from->dim[0], columns = from->rank > 1 ? from->dim[1] : 1;
    const bool turned = row->layout == LAYOUT_TURNED;
    const float *x = from->data;
    float *y = to->data;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t at = layout_row(row->layout, m, r) + part * rows;
        for (int64_t c = 0; c < columns; c++)
            y[turned ? c * to->dim[1] + at : at * columns + c] = x[r * columns + c];
    }
}

/* The tensor of theirs that a row is in one layer; its first part says the shape. */
static enum status make(struct tensor *to, struct arena *a, const struct name_row *row, int64_t layer, const struct config_model *m,
                        const struct safetensors *from, struct error *err)
{
    char name[NAME_MAX_BYTES];
    const struct tensor *parts[PARTS_MAX];
    int n = 0;
    for (; n < PARTS_MAX && row->ours[n]; n++) {
        name_fill(name, row->ours[n], layer);
        parts[n] = safetensors_find(from, name);
        if (!parts[n] || parts[n]->type != TENSOR_F32 || parts[n]->rank < 1 || parts[n]->rank > 2)
            return error_set(err, BAD_INPUT, "the checkpoint has no tensor '%s' of f32", name);
    }
    *to = (struct tensor){.type = TENSOR_F32, .rank = parts[0]->rank, .dim = {n * parts[0]->dim[0], parts[0]->rank > 1 ? parts[0]->dim[1] : 0}};
    if (row->layout == LAYOUT_TURNED) {
        to->dim[1] = to->dim[0];
        to->dim[0] = parts[0]->dim[1];
    }
    name_fill(name, row->theirs, layer);
    to->name = arena_printf(a, "%s%s", !strncmp(name, "lm_head", 7) ? "" : m->arch == ARCH_GPT ? "transformer." : "model.", name);
    to->data = malloc(tensor_bytes(to) ? tensor_bytes(to) : 1);
    if (!to->data)
        return error_no_memory(err, "a copy of the weights", tensor_bytes(to));
    for (int i = 0; i < n; i++)
        place(row, i, parts[i], m, to);
    return OK;
}

static bool is_per_layer(const struct name_row *row) { return strchr(row->theirs, '#') != NULL; }

static int count(const struct family *f, const struct config_model *m)
{
    int n = 0;
    for (const struct name_row *r = f->rows; r->theirs; r++)
        n += is_per_layer(r) ? (int)m->layers : 1;
    return n;
}

static enum status write_tensors(const char *path, const struct family *f, const struct config_model *m, const struct safetensors *from, struct error *err)
{
    static const char *const metadata[] = {"format", "pt", NULL};
    struct arena a = {0};
    struct tensor *list = xcalloc((size_t)count(f, m), sizeof *list);
    int n = 0;
    enum status st = OK;
    for (const struct name_row *r = f->rows; r->theirs && st == OK; r++)
        for (int64_t layer = 0; layer < (is_per_layer(r) ? m->layers : 1) && st == OK; layer++)
            if (strcmp(r->ours[0], "head.weight") || !config_head_is_tied(m)) {
                st = setup_goes_on("weights") ? make(&list[n], &a, r, layer, m, from, err) : error_stopped(err, "stopped; nothing was written");
                n += st == OK;
            }
    if (st == OK)
        st = safetensors_write(path, list, n, metadata, NULL, err);
    for (int i = 0; i < n; i++)
        free(list[i].data);
    free(list);
    arena_release(&a);
    return st;
}

/* Samples may be longer by now than the model was made for. */
static bool is_outgrown(const char *key, const json_t *said, const json_t *is)
{
    return !strcmp(key, "max_position_embeddings") && json_integer_value(said) < json_integer_value(is);
}

/* Keys that the family has no such word for are left out. NULL: no memory. */
static json_t *with_said(json_t *config, const json_t *said)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)said, key, v) {
        const json_t *is = json_object_get(config, key);
        if (is && !is_outgrown(key, v, is) && json_object_set(config, key, v)) {
            json_decref(config);
            return NULL;
        }
    }
    return config;
}

static enum status refuse_regions(struct error *err) { return error_set(err, BAD_INPUT, "arch regions reads transitions, and cannot be exported so far"); }

enum status weights_export(const char *folder, const struct config_model *m, const json_t *said, const struct safetensors *from, struct error *err)
{
    const struct family *f = family_for(m->arch);
    char path[CONFIG_PATH_MAX + 32];
    if (m->arch == ARCH_REGIONS)
        return refuse_regions(err);
    if (!f || m->segments)
        return error_set(err, BAD_INPUT, "%s%s has no counterpart in Hugging Face's transformers; choose --to torch", f ? "a model with segments of arch " : "arch ",
                         config_word("model.arch", (int)m->arch));
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    enum status st = write_tensors(path, f, m, from, err);
    snprintf(path, sizeof path, "%s/config.json", folder);
    return st == OK ? write_json(path, with_said(f->write_config(m), said), err) : st;
}

/* ---- plain PyTorch ---- */

static json_t *torch_config(const struct config_model *m)
{
    json_t *tree = json_array();
    for (int64_t i = 0; tree && i < m->tree.n; i++)
        if (json_array_append_new(tree, json_integer(m->tree.at[i]))) {
            json_decref(tree);
            return NULL;
        }
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:f, s:f, s:s, s:f, s:f, s:f, s:I, s:o}", "arch", config_word("model.arch", (int)m->arch), "vocab",
                     (json_int_t)m->vocab, "dim", (json_int_t)m->dim, "layers", (json_int_t)m->layers, "heads", (json_int_t)m->heads, "kv_heads",
                     (json_int_t)m->kv_heads, "ffn", (json_int_t)m->ffn, "positions", (json_int_t)(m->positions ? m->positions : m->seq), "segments",
                     (json_int_t)m->segments, "tied_head", config_head_is_tied(m), "norm_eps", m->norm_eps, "rope_base", m->rope_base,
                     "rope_scaling", config_word("model.rope_scaling", (int)m->rope_scaling), "rope_factor", m->rope_factor, "rope_low", m->rope_low,
                     "rope_high", m->rope_high, "rope_context", (json_int_t)m->rope_context, "tree", tree);
}

enum status weights_export_torch(const char *folder, const struct config_model *m, const struct safetensors *from, struct error *err)
{
    static const char *const metadata[] = {"format", "pt", NULL};
    char path[CONFIG_PATH_MAX + 32];
    if (m->arch == ARCH_REGIONS)
        return refuse_regions(err);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    enum status st = safetensors_write(path, from->tensors, from->n, metadata, NULL, err);
    snprintf(path, sizeof path, "%s/model.py", folder);
    if (st == OK)
        st = fs_write_synced(path, torch_model, torch_model_bytes, err);
    snprintf(path, sizeof path, "%s/config.json", folder);
    return st == OK ? write_json(path, torch_config(m), err) : st;
}
