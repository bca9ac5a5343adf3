/* Checkpoints on disk: OUT/checkpoints/step-00000500/{weights.safetensors, state.safetensors, manifest.json}.
 *
 * A checkpoint is written into a hidden temporary folder, every file fsynced, the manifest (with the size and XXH3-64 of
 * the others) last, then all of it is read back, then the folder is renamed and its parent fsynced: a folder named
 * step-* is whole, or was damaged later and its checksums tell. Older ones are removed only after that, down to `keep`. */
#ifndef HONE_TRAIN_CHECKPOINT_H
#define HONE_TRAIN_CHECKPOINT_H

#include <jansson.h>

#include "config/config.h"
#include "core/error.h"
#include "core/safetensors.h"

struct checkpoint {
    int64_t step;                   /* optimizer steps done */
    struct safetensors weights;     /* parameters */
    struct safetensors state;       /* moments and counters */
    json_t *manifest;               /* "format", "step", "files", and what `extra` held when it was saved */
    char path[CONFIG_PATH_MAX];
};

/* Saves under OUT/checkpoints and returns the final folder's path in `path`. `extra` (borrowed) is merged into the
 * manifest: the caller's config, tokenizer, counters. On failure the temporary folder is removed, and OUT/checkpoints where it was
 * made for it, nothing that was there before is touched, and the error says which file and why. */
enum status checkpoint_save(char path[CONFIG_PATH_MAX], const char *out, int64_t step, const struct tensor *weights,
                            int n_weights, const struct tensor *state, int n_state, json_t *extra, int keep,
                            struct error *err);

/* Loads a checkpoint folder, or the newest one when `path` is a run folder (OUT) or its checkpoints folder. Everything
 * is verified (manifest, sizes, checksums, tensor layout) before it returns OK. */
enum status checkpoint_load(struct checkpoint *out, const char *path, struct error *err);
void checkpoint_release(struct checkpoint *c);

/* Has the run in that folder saved one? Folders of unfinished saves are none. */
enum status checkpoint_there(const char *out, bool *there, struct error *err);

/* Is it a folder at all? */
bool checkpoint_is_folder(const char *path);
/* Does checkpoint_load find one there whose manifest can be read? */
bool checkpoint_is_ours(const char *path);
/* The manifest beside a file of a checkpoint, owned by the caller; NULL where there is none that can be read. */
json_t *checkpoint_beside(const char *file);

/* The newest whole checkpoint's folder under OUT, or BAD_INPUT when there is none. */
enum status checkpoint_newest(char path[CONFIG_PATH_MAX], const char *out, struct error *err);

/* Removes what processes that are gone left of unfinished saves under OUT. Every save does so, too. */
void checkpoint_sweep(const char *out);

#endif
