/* The manifest of a checkpoint: JSON with the step, the size and checksum of each file, whatever the caller adds, and a
 * checksum of itself, so that a flipped bit in a number is seen as surely as one in the weights. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/json_memory.h"
#include "train/checkpoint_int.h"

static const char format_name[] = "hone-checkpoint";
enum { FORMAT_VERSION = 1, HEX_BYTES = 17 };

const char *const checkpoint_file_names[CHECKPOINT_FILES] = {
    [CHECKPOINT_WEIGHTS] = "weights.safetensors",
    [CHECKPOINT_STATE] = "state.safetensors",
};

static void hex_print(char to[HEX_BYTES], uint64_t value) { snprintf(to, HEX_BYTES, "%016" PRIx64, value); }

/* Exactly 16 lower-case digits: one number has one spelling. */
static bool hex_parse(uint64_t *to, const char *text)
{
    char again[HEX_BYTES];
    if (!text || strlen(text) != HEX_BYTES - 1)
        return false;
    *to = strtoull(text, NULL, 16);
    hex_print(again, *to);
    return strcmp(text, again) == 0;
}

/* The checksum of everything but the field "xxh3" itself. */
static bool manifest_hash(uint64_t *hash, json_t *manifest)
{
    json_t *rest = json_copy(manifest);
    if (json_object_size(rest) != json_object_size(manifest)) {         /* without memory jansson copies a part */
        json_decref(rest);
        return false;
    }
    json_object_del(rest, "xxh3");
    char *text = json_memory_dump(rest, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(rest);
    if (!text)
        return false;
    *hash = XXH3_64bits(text, strlen(text));
    free(text);
    return true;
}

static json_t *files_json(const struct checkpoint_manifest *m)
{
    json_t *files = json_object();
    for (int i = 0; files && i < CHECKPOINT_FILES; i++) {
        char hex[HEX_BYTES];
        hex_print(hex, m->files[i].xxh3);
        json_t *file = json_pack("{s:I, s:s}", "bytes", (json_int_t)m->files[i].bytes, "xxh3", hex);
        if (json_object_set_new(files, checkpoint_file_names[i], file)) {
            json_decref(files);
            files = NULL;
        }
    }
    return files;
}

/* What is there already stays. (json_object_update_missing does not say when it failed.) */
static bool add_missing(json_t *manifest, json_t *extra)
{
    const char *key;
    json_t *value;
    json_object_foreach(extra, key, value)
        if (!json_object_get(manifest, key) && json_object_set(manifest, key, value))
            return false;
    return true;
}

/* The manifest with its checksum; NULL: no memory. */
static json_t *manifest_json(const struct checkpoint_manifest *m, json_t *extra)
{
    char hex[HEX_BYTES];
    uint64_t hash;
    json_t *manifest = json_pack("{s:s, s:i, s:I, s:o}", "format", format_name, "version", FORMAT_VERSION, "step",
                                 (json_int_t)m->step, "files", files_json(m));
    bool good = manifest && add_missing(manifest, extra) && manifest_hash(&hash, manifest);
    if (good) {
        hex_print(hex, hash);
        good = json_object_set_new(manifest, "xxh3", json_string(hex)) == 0;
    }
    if (good)
        return manifest;
    json_decref(manifest);
    return NULL;
}

enum status checkpoint_manifest_print(char **text, const struct checkpoint_manifest *m, json_t *extra,
                                      struct error *err)
{
    json_t *manifest = manifest_json(m, extra);
    char *made = manifest ? json_memory_dump(manifest, JSON_INDENT(2)) : NULL;
    json_decref(manifest);
    if (!made || asprintf(text, "%s\n", made) < 0) {
        free(made);
        return error_set(err, CANNOT, "out of memory for the manifest of a checkpoint");
    }
    free(made);
    return OK;
}

static enum status check_format(const char *name, const json_t *json, struct error *err)
{
    const char *format = json_string_value(json_object_get(json, "format"));
    const json_t *version = json_object_get(json, "version");
    if (!format || strcmp(format, format_name) != 0)
        return error_set(err, BAD_INPUT, "'%s': format is not \"%s\": not a checkpoint of hone", name, format_name);
    if (!json_is_integer(version) || json_integer_value(version) != FORMAT_VERSION)
        return error_set(err, BAD_INPUT, "'%s': version is %lld; this hone reads version %d", name,
                         (long long)json_integer_value(version), FORMAT_VERSION);
    return OK;
}

static enum status parse_step(struct checkpoint_manifest *m, const char *name, struct error *err)
{
    const json_t *step = json_object_get(m->json, "step");
    m->step = json_integer_value(step);
    if (!json_is_integer(step) || m->step < 0)
        return error_set(err, BAD_INPUT, "'%s': step is not a whole number from 0 up", name);
    if (m->step > CHECKPOINT_STEP_MAX)
        return error_set(err, BAD_INPUT, "'%s': step is %lld; at most %d steps can be counted", name, (long long)m->step,
                         CHECKPOINT_STEP_MAX);
    return OK;
}

static enum status parse_file(struct checkpoint_manifest *m, int i, const char *name, struct error *err)
{
    const char *file = checkpoint_file_names[i];
    const json_t *entry = json_object_get(json_object_get(m->json, "files"), file);
    const json_t *bytes = json_object_get(entry, "bytes");
    if (!json_is_object(entry))
        return error_set(err, BAD_INPUT, "'%s': files does not list '%s'", name, file);
    if (!json_is_integer(bytes) || json_integer_value(bytes) < 0)
        return error_set(err, BAD_INPUT, "'%s': bytes of '%s' is not a whole number from 0 up", name, file);
    m->files[i].bytes = (uint64_t)json_integer_value(bytes);
    if (!hex_parse(&m->files[i].xxh3, json_string_value(json_object_get(entry, "xxh3"))))
        return error_set(err, BAD_INPUT, "'%s': xxh3 of '%s' is not 16 hexadecimal digits", name, file);
    return OK;
}

static enum status check_hash(const char *name, json_t *json, struct error *err)
{
    uint64_t said, is;
    if (!hex_parse(&said, json_string_value(json_object_get(json, "xxh3"))))
        return error_set(err, BAD_INPUT, "'%s': xxh3 is not 16 hexadecimal digits", name);
    if (!manifest_hash(&is, json))
        return error_set(err, CANNOT, "out of memory for checking '%s'", name);
    if (said != is)
        return error_set(err, BAD_INPUT, "'%s': checksum mismatch: it says %016" PRIx64 ", its fields give %016" PRIx64
                         ": damaged or edited", name, said, is);
    return OK;
}

static enum status parse_fields(struct checkpoint_manifest *m, const char *name, struct error *err)
{
    enum status st = check_format(name, m->json, err);
    if (st == OK)
        st = parse_step(m, name, err);
    for (int i = 0; i < CHECKPOINT_FILES && st == OK; i++)
        st = parse_file(m, i, name, err);
    return st == OK ? check_hash(name, m->json, err) : st;
}

enum status checkpoint_manifest_parse(struct checkpoint_manifest *out, const char *name, const char *text, size_t size,
                                      struct error *err)
{
    json_error_t why;
    bool no_memory;
    struct checkpoint_manifest m = {.json = json_memory_load(text, size, JSON_REJECT_DUPLICATES, &why, &no_memory)};
    if (no_memory)
        return error_set(err, CANNOT, "out of memory for reading '%s'", name);
    if (!m.json)
        return error_set(err, BAD_INPUT, "'%s' is not JSON at line %d column %d: %s", name, why.line, why.column, why.text);
    const enum status st = parse_fields(&m, name, err);
    if (st == OK)
        *out = m;
    else
        json_decref(m.json);
    return st;
}
