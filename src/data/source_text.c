/* Tokens from text files, by byte or by character. The characters of both splits make the vocabulary. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/setup.h"
#include "data/data_int.h"
#include "data/utf8.h"

enum { CHECKED_CHARS = 1 << 20 };          /* between two looks at whether to go on */

struct text {
    const char *path;
    char *bytes;
    size_t size;
    int64_t chars;          /* characters in bytes[0..size) */
};

/* Copies what may be needed of a file: all of it, or the bytes of at most max_chars characters. */
static enum status text_load(struct text *t, const char *path, uint64_t most_bytes, struct error *err)
{
    struct map m;
    enum status st = map_init(&m, path, err);
    if (st != OK)
        return st;
    const size_t size = most_bytes && most_bytes < m.size ? (size_t)most_bytes : m.size;
    *t = (struct text){.path = path, .size = size, .bytes = malloc(size ? size : 1)};
    if (size == 0)
        st = error_set(err, BAD_INPUT, "'%s' is empty; it should hold text", path);
    else if (!t->bytes)
        st = error_set(err, CANNOT, "out of memory: '%s' has %.1f MB; set data.max_chars", path, (double)size / 1e6);
    else
        st = map_read(&m, 0, t->bytes, size, err);
    map_release(&m);
    return st;
}

/* Counts the characters up to max_chars, cuts the text there and marks in seen[] which characters there are. */
static enum status text_survey(struct text *t, int64_t max_chars, int32_t *seen, struct error *err)
{
    size_t at = 0;
    for (t->chars = 0; at < t->size && (max_chars <= 0 || t->chars < max_chars); t->chars++) {
        uint32_t c;
        if (t->chars % CHECKED_CHARS == 0 && setup_check("text", err) != OK)
            return err->status;
        const size_t step = utf8_decode(t->bytes + at, t->size - at, &c);
        if (step == 0)
            return error_set(err, BAD_INPUT, "'%s' is not UTF-8 text at byte %zu (0x%02X); set data.tokens: byte, or "
                             "convert the file", t->path, at, (unsigned char)t->bytes[at]);
        seen[c] = 1;
        at += step;
    }
    t->size = at;
    return OK;
}

/* Makes the vocabulary of the characters marked in id_of[] and turns the marks into their ids. */
static enum status number_characters(struct dataset *d, int32_t *id_of, struct error *err)
{
    uint32_t *points = xcalloc(UTF8_CODE_POINTS, sizeof *points);
    int32_t n = 0;
    for (uint32_t c = 0; c < UTF8_CODE_POINTS; c++) {
        if (!id_of[c])
            continue;
        points[n] = c;
        id_of[c] = n++;
    }
    d->vocab = n;
    const enum status st = tokenizer_init(&d->tokenizer, TOKENIZER_CHAR, points, n, err);
    free(points);
    return st;
}

static enum status add_chars(struct dataset *d, const struct text *t, bool val, const int32_t *id_of, struct error *err)
{
    struct store s;
    const enum status st = store_init_memory(&s, t->path, t->chars, d->vocab, err);
    if (st != OK)
        return st;
    size_t at = 0;
    for (int64_t i = 0; i < t->chars && (i % CHECKED_CHARS || setup_goes_on("text")); i++) {
        uint32_t c = 0;
        at += utf8_decode(t->bytes + at, t->size - at, &c);
        store_set(&s, i, id_of[c]);
    }
    s.val = val;
    *dataset_add_store(d) = s;
    return setup_check("text", err);
}

static enum status by_char(struct dataset *d, struct text *texts, int n, int64_t max_chars, struct error *err)
{
    int32_t *id_of = xcalloc(UTF8_CODE_POINTS, sizeof *id_of);
    enum status st = OK;
    for (int i = 0; i < n && st == OK; i++)
        st = text_survey(&texts[i], max_chars, id_of, err);
    if (st == OK)
        st = number_characters(d, id_of, err);
    for (int i = 0; i < n && st == OK; i++)
        st = add_chars(d, &texts[i], i > 0, id_of, err);
    free(id_of);
    return st;
}

static enum status by_byte(struct dataset *d, struct text *texts, int n, struct error *err)
{
    for (int i = 0; i < n; i++) {
        *dataset_add_store(d) = (struct store){.name = xstrdup(texts[i].path), .memory = texts[i].bytes, .width = 1,
                                               .count = (int64_t)texts[i].size, .val = i > 0};
        texts[i].bytes = NULL;      /* handed over */
    }
    d->vocab = 256;
    return tokenizer_init(&d->tokenizer, TOKENIZER_BYTE, NULL, 0, err);
}

enum status source_text(struct dataset *d, const struct config *c, struct error *err)
{
    const bool bytes = c->data.tokens == TOKENS_BYTE;
    const uint64_t most = (uint64_t)(c->data.max_chars > 0 ? c->data.max_chars : 0);
    const uint64_t most_bytes = bytes ? most : most > UINT64_MAX / 4 ? 0 : most * 4;
    struct text texts[2] = {{.bytes = NULL}, {.bytes = NULL}};
    int n = 0;
    d->entropy = NAN;
    enum status st = text_load(&texts[n++], c->data.path, most_bytes, err);
    if (st == OK && c->data.val_path[0])
        st = text_load(&texts[n++], c->data.val_path, most_bytes, err);
    if (st == OK)
        st = bytes ? by_byte(d, texts, n, err) : by_char(d, texts, n, c->data.max_chars, err);
    for (int i = 0; i < n; i++)
        free(texts[i].bytes);
    return st;
}
