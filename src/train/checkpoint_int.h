/* What the files of the checkpoint share: names of folders and files, and the manifest. */
#ifndef HONE_TRAIN_CHECKPOINT_INT_H
#define HONE_TRAIN_CHECKPOINT_INT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

enum checkpoint_file { CHECKPOINT_WEIGHTS, CHECKPOINT_STATE, CHECKPOINT_FILES };
extern const char *const checkpoint_file_names[CHECKPOINT_FILES];

#define CHECKPOINT_MANIFEST "manifest.json"
#define CHECKPOINT_FOLDER   "checkpoints"

enum {
    CHECKPOINT_NAME_MAX = 64,           /* a folder's name, step or temporary */
    CHECKPOINT_STEP_MAX = INT32_MAX,    /* the step counter on the device has 32 bits */
};

/* step-00000500, and .tmp-step-00000500-1234 while process 1234 writes it. */
void checkpoint_step_name(char to[CHECKPOINT_NAME_MAX], int64_t step);
void checkpoint_temporary_name(char to[CHECKPOINT_NAME_MAX], int64_t step, int64_t pid);
int64_t checkpoint_step_of(const char *name);                   /* -1: not a checkpoint's name */
bool checkpoint_temporary_of(const char *name, int64_t *pid);   /* false: not a temporary folder's name */

/* Joins folder and name; a path longer than `size` is an error, never cut. */
enum status checkpoint_join(char *to, size_t size, const char *folder, const char *name, struct error *err);

/* Replaces the folder `final` by `temporary` on a file system that cannot exchange two names. Between its two renames
 * there is no `final`: after a crash at that moment the old one is whole under the name `aside`. */
enum status checkpoint_replace_aside(const char *temporary, const char *final, const char *aside, struct error *err);

struct checkpoint_manifest {
    int64_t step;
    struct {
        uint64_t bytes, xxh3;
    } files[CHECKPOINT_FILES];
    json_t *json;                       /* everything in it; owned */
};

/* Makes the text of a manifest (malloc'd) from step and files, with `extra` (may be NULL) merged in; m->json is not
 * used. The manifest's own checksum is over its compact JSON with sorted keys, so layout does not count. */
enum status checkpoint_manifest_print(char **text, const struct checkpoint_manifest *m, json_t *extra,
                                      struct error *err);
/* Reads back what was written into a folder, without the tensors in memory: an error where a load could not take it. */
struct tensor;
struct checkpoint_content {
    const struct checkpoint_manifest *manifest;
    const struct tensor *tensors[CHECKPOINT_FILES];
    int n[CHECKPOINT_FILES];
    json_t *extra;
};
enum status checkpoint_read_back(const char *folder, const struct checkpoint_content *c, struct error *err);
enum status checkpoint_manifest_read(struct checkpoint_manifest *out, const char *folder, struct error *err);
/* Reads and checks one; `name` is for messages. On failure *out is untouched. */
enum status checkpoint_manifest_parse(struct checkpoint_manifest *out, const char *name, const char *text, size_t size,
                                      struct error *err);

#endif
