/* Finds a tokenizer: a tokenizer.json, or vocab.json and merges.txt, of which a tokenizer.json is made. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/fs.h"
#include "core/json_memory.h"
#include "data/bpe_int.h"

enum { PATH_ROOM = 1100, FILE_MOST = 256 << 20 };

static const char *const endings[] = {"<|endoftext|>"};        /* that GPT-2's vocabulary has as a special */

static bool holds(char path[PATH_ROOM], const char *folder, const char *name)
{
    struct stat s;
    return snprintf(path, PATH_ROOM, "%s/%s", folder, name) < PATH_ROOM && stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

bool bpe_is_there(const char *folder)
{
    char path[PATH_ROOM];
    return holds(path, folder, "tokenizer.json") || (holds(path, folder, "vocab.json") && holds(path, folder, "merges.txt"));
}

#define MAKE_JSON "; transformers makes a tokenizer.json of tokenizer.model: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)"

/* SentencePiece's own, which is no JSON. */
static bool is_sentencepiece(const char *path)
{
    const size_t n = strlen(path), m = strlen(".model");
    return n > m && !strcmp(path + n - m, ".model");
}

static enum status read_whole(struct bpe **out, const char *path, struct error *err)
{
    char *text;
    size_t size;
    enum status st = fs_read(path, &text, &size, FILE_MOST, err);
    if (st != OK)
        return st;
    st = bpe_parse(out, path, text, size, err);
    free(text);
    if (st == BAD_INPUT && is_sentencepiece(path))
        return error_set(err, BAD_INPUT, "'%s' is no tokenizer.json" MAKE_JSON, path);
    return st;
}

/* ---- vocab.json and merges.txt ---- */

/* A merge per line; the first may say the version. */
static enum status read_merges(json_t **out, const char *path, struct error *err)
{
    char *text, *rest;
    size_t size;
    enum status st = fs_read(path, &text, &size, FILE_MOST, err);
    if (st != OK)
        return st;
    json_t *list = json_array();
    rest = text;
    for (char *line; (line = strsep(&rest, "\n")) && st == OK;) {
        line[strcspn(line, "\r")] = '\0';
        if (!*line || !strncmp(line, "#version", 8))
            continue;
        if (!list || json_array_append_new(list, json_string(line)))
            st = error_set(err, BAD_INPUT, "'%s': the line '%.60s' is not UTF-8 text", path, line);
    }
    free(text);
    if (st == OK)
        *out = list;
    else
        json_decref(list);
    return st;
}

static json_t *endings_in(const json_t *vocab)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < sizeof endings / sizeof *endings; i++)
        if (json_object_get(vocab, endings[i]) && json_array_append_new(list, json_string(endings[i])))
            return NULL;
    return list;
}

static enum status read_pair(struct bpe **out, const char *vocab_path, const char *merges_path, struct error *err)
{
    json_t *vocab = NULL, *merges = NULL;
    enum status st = json_memory_read_object(&vocab, vocab_path, FILE_MOST, " of tokens and ids", err);
    if (st == OK)
        st = read_merges(&merges, merges_path, err);
    if (st != OK) {
        json_decref(vocab);
        return st;
    }
    char *text = bpe_document(vocab, merges, endings_in(vocab), &(struct cutting){.digits = 0});
    st = text ? bpe_parse(out, vocab_path, text, strlen(text), err) : error_set(err, CANNOT, "out of memory for '%s'", vocab_path);
    free(text);
    return st;
}

enum status bpe_open(struct bpe **out, const char *path, struct error *err)
{
    char first[PATH_ROOM], second[PATH_ROOM];
    struct stat s;
    if (stat(path, &s) < 0)
        return error_errno(err, "cannot open the tokenizer '%s'", path);
    if (!S_ISDIR(s.st_mode))
        return read_whole(out, path, err);
    if (holds(first, path, "tokenizer.json"))
        return read_whole(out, first, err);
    if (holds(first, path, "vocab.json") && holds(second, path, "merges.txt"))
        return read_pair(out, first, second, err);
    return error_set(err, BAD_INPUT, "'%s' holds neither tokenizer.json nor vocab.json and merges.txt%s", path,
                     holds(first, path, "tokenizer.model") ? MAKE_JSON : "");
}
