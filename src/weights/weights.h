/* Weights that people bring: models that other programs wrote, with their names, layouts and config.json, as tensors of ours; and ours
 * as theirs. A family is a way to write a model down; each has a file with its table of names. */
#ifndef HONE_WEIGHTS_WEIGHTS_H
#define HONE_WEIGHTS_WEIGHTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "core/error.h"
#include "core/safetensors.h"
#include "program/program.h"

struct weights;

/* Opens what `path` names: a folder with config.json and model.safetensors, or with shards and their index; or a safetensors file. The
 * family is told by config.json, or by the tensors' names. */
enum status weights_open(struct weights **out, const char *path, struct error *err);
/* The same of tensors that were read already; on success they are taken over. */
enum status weights_take(struct weights **out, struct safetensors *file, const char *where, struct error *err);
void weights_free(struct weights *w);

bool weights_is_folder(const char *path);               /* a folder that looks like a model of others, not like a checkpoint */
const char *weights_title(const struct weights *w);     /* "GPT-2 of Hugging Face" */
const char *weights_types(const struct weights *w);     /* "f16", or "f16 and f32": of the tensors that count */
const char *weights_folder(const struct weights *w);    /* where a tokenizer may lie beside it; NULL: nowhere */
int weights_files(const struct weights *w);
bool weights_has_config(const struct weights *w);       /* a config.json or params.json lies beside it */
const json_t *weights_said(const struct weights *w);    /* that file; NULL: there is none */
/* What ours does otherwise than theirs, or than config.json says, in words; NULL: nothing. */
const char *weights_note(const struct weights *w);

/* The configuration of the model that it says it is, with overrides ("model.seq=256"). */
enum status weights_config(const struct weights *w, struct config *out, const char *const *sets, int n_sets, struct error *err);

/* Does it have every parameter of the program, and nothing else? Otherwise what is missing, too much or of another shape is listed. */
enum status weights_check(const struct weights *w, const struct program *p, const struct config_model *m, struct error *err);
/* One parameter, after that check, in our layout: (shape_count) numbers. */
void weights_copy(const struct weights *w, const struct value *parameter, const struct config_model *m, float *to);

/* Writes the parameters of a model (our names) into an existing folder as config.json and model.safetensors of Hugging Face. `said`
 * (NULL: nothing) has what is known of it besides, as config.json has it: bos_token_id and eos_token_id, which texts begin and end with, and
 * max_position_embeddings, where the model was made for more positions than its samples have. */
enum status weights_export(const char *folder, const struct config_model *m, const json_t *said, const struct safetensors *from, struct error *err);
/* The same as model.py of plain PyTorch, its config.json, and model.safetensors with our names. */
enum status weights_export_torch(const char *folder, const struct config_model *m, const struct safetensors *from, struct error *err);

#endif
