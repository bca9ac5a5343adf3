/* The vocabularies; see tokenizer.h. */
#include "data/tokenizer.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/utf8.h"

static enum status check_code_points(const uint32_t *code_points, int32_t n, struct error *err)
{
    if (n < 1)
        return error_set(err, BAD_INPUT, "a character vocabulary of %d characters; it needs at least 1", n);
    for (int32_t i = 0; i < n; i++) {
        if (!utf8_valid(code_points[i]))
            return error_set(err, BAD_INPUT, "character %d of the vocabulary, 0x%X, is not a Unicode character", i,
                             code_points[i]);
        if (i > 0 && code_points[i] <= code_points[i - 1])
            return error_set(err, BAD_INPUT, "character %d of the vocabulary, U+%04X, does not come after U+%04X; the "
                             "vocabulary must ascend", i, code_points[i], code_points[i - 1]);
    }
    return OK;
}

enum status tokenizer_init(struct tokenizer *t, enum tokenizer_kind kind, const uint32_t *code_points, int32_t n,
                           struct error *err)
{
    struct tokenizer made = {.kind = kind, .n = kind == TOKENIZER_BYTE ? 256 : n};
    if (kind == TOKENIZER_CHAR) {
        const enum status st = check_code_points(code_points, n, err);
        if (st != OK)
            return st;
        const size_t bytes = sizeof *code_points * (size_t)n;
        made.code_points = malloc(bytes);
        if (!made.code_points)
            return error_no_memory(err, "the vocabulary", bytes);
        memcpy(made.code_points, code_points, bytes);
    }
    *t = made;
    return OK;
}

void tokenizer_init_bpe(struct tokenizer *t, struct bpe *bpe)
{
    *t = (struct tokenizer){.kind = TOKENIZER_BPE, .n = bpe_size(bpe), .bpe = bpe};
}

enum status tokenizer_copy(struct tokenizer *to, const struct tokenizer *from, struct error *err)
{
    if (from->kind != TOKENIZER_BPE)
        return tokenizer_init(to, from->kind, from->code_points, from->n, err);
    tokenizer_init_bpe(to, bpe_share(from->bpe));
    return OK;
}

void tokenizer_release(struct tokenizer *t)
{
    free(t->code_points);
    bpe_free(t->bpe);
    *t = (struct tokenizer){.kind = TOKENIZER_NONE};
}

static int32_t find(const struct tokenizer *t, uint32_t code_point)
{
    int32_t low = 0, high = t->n;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (t->code_points[middle] < code_point)
            low = middle + 1;
        else
            high = middle;
    }
    return low < t->n && t->code_points[low] == code_point ? low : -1;
}

static enum status encode_chars(const struct tokenizer *t, const char *text, size_t length, int32_t *ids, size_t *n,
                                struct error *err)
{
    for (size_t at = 0, step; at < length; at += step) {
        uint32_t c;
        char shown[5];
        step = utf8_decode(text + at, length - at, &c);
        if (step == 0)
            return error_set(err, BAD_INPUT, "byte %zu of the text, 0x%02X, is not valid UTF-8", at,
                             (unsigned char)text[at]);
        const int32_t id = find(t, c);
        if (id < 0) {
            utf8_encode(c, shown);
            return error_set(err, BAD_INPUT,
                             "character '%s' (U+%04X) at byte %zu is not among the %d characters of the "
                             "vocabulary", c < ' ' ? "?" : shown, c, at, t->n);
        }
        ids[(*n)++] = id;
    }
    return OK;
}

static enum status encode_ids(const struct tokenizer *t, const char *text, size_t length, int32_t *ids, size_t *n,
                              struct error *err)
{
    const int64_t limit = t->n > 0 ? t->n : INT32_MAX;
    for (size_t at = 0; at < length;) {
        if (isspace((unsigned char)text[at])) {
            at++;
            continue;
        }
        const size_t start = at;
        int64_t id = 0;
        for (; at < length && isdigit((unsigned char)text[at]); at++)
            id = id >= limit ? limit : id * 10 + (text[at] - '0');
        if (at == start || (at < length && !isspace((unsigned char)text[at])))
            return error_set(err, BAD_INPUT,
                             "byte %zu of the text is no digit; this vocabulary has no characters: give "
                             "token ids separated by spaces, e.g. '15 8 2'", at);
        if (id >= limit)
            return error_set(err, BAD_INPUT, "token id '%.*s' is outside the vocabulary; ids are 0 to %lld",
                             (int)(at - start < 40 ? at - start : 40), text + start, (long long)limit - 1);
        ids[(*n)++] = (int32_t)id;
    }
    return OK;
}

static void encode_bpe(const struct tokenizer *t, const char *text, size_t length, int32_t *ids, size_t *n)
{
    struct bpe_coder *c = bpe_coder_new(t->bpe);
    struct id_list list = {0};
    bpe_encode(c, text, length, true, &list);
    if (list.n)
        memcpy(ids, list.ids, list.n * sizeof *ids);
    *n = list.n;
    id_list_release(&list);
    bpe_coder_free(c);
}

enum status tokenizer_encode(const struct tokenizer *t, const char *text, size_t length, int32_t *ids, size_t *n,
                             struct error *err)
{
    *n = 0;
    if (t->kind == TOKENIZER_CHAR)
        return encode_chars(t, text, length, ids, n, err);
    if (t->kind == TOKENIZER_NONE)
        return encode_ids(t, text, length, ids, n, err);
    if (t->kind == TOKENIZER_BPE) {
        encode_bpe(t, text, length, ids, n);
        return OK;
    }
    for (size_t i = 0; i < length; i++)
        ids[i] = (unsigned char)text[i];
    *n = length;
    return OK;
}

/* An id without a text (padding, a vocabulary larger than the text's) shows as a replacement character; ids alone show
 * as the number and a space, which tokenizer_encode reads back. */
size_t tokenizer_decode(const struct tokenizer *t, int32_t id, char out[static TOKEN_TEXT_MAX])
{
    size_t length = 0;
    const char *bytes = t->kind == TOKENIZER_BPE ? bpe_token(t->bpe, id, &length) : NULL;
    if (t->kind == TOKENIZER_NONE)
        return (size_t)snprintf(out, 16, "%d ", id);
    if (bytes) {
        memcpy(out, bytes, length);
        out[length] = '\0';
        return length;
    }
    if (id < 0 || id >= t->n || t->kind == TOKENIZER_BPE)
        return utf8_encode(0xFFFD, out);
    if (t->kind == TOKENIZER_CHAR)
        return utf8_encode(t->code_points[id], out);
    out[0] = (char)id;
    out[1] = '\0';
    return 1;
}

/* Byte pairs may hold a newline in the midst of a token: none of them is the end of a line. */
int32_t tokenizer_newline(const struct tokenizer *t)
{
    return t->kind == TOKENIZER_BYTE ? '\n' : t->kind == TOKENIZER_CHAR ? find(t, '\n') : -1;
}

static int32_t first_special(const struct tokenizer *t, const char *const *names, int n)
{
    int32_t id = -1;
    for (int i = 0; t->kind == TOKENIZER_BPE && id < 0 && i < n; i++)
        id = bpe_special(t->bpe, names[i]);
    return id;
}

int32_t tokenizer_begin(const struct tokenizer *t)
{
    static const char *const names[] = {"<|endoftext|>", "<|begin_of_text|>", "<s>"};
    return first_special(t, names, 3);
}

int32_t tokenizer_end(const struct tokenizer *t)
{
    static const char *const names[] = {"<|endoftext|>", "<|end_of_text|>", "</s>"};
    return first_special(t, names, 3);
}

/* Ids between those of a vocabulary may be nobody's. */
static bool has_text(const struct tokenizer *t, int32_t id)
{
    size_t length;
    return t->kind != TOKENIZER_BPE || bpe_token(t->bpe, id, &length);
}

int32_t tokenizer_differ(const struct tokenizer *a, const struct tokenizer *b)
{
    char one[TOKEN_TEXT_MAX], other[TOKEN_TEXT_MAX];
    const int32_t both = a->n < b->n ? a->n : b->n;
    if (a->kind == TOKENIZER_NONE || b->kind == TOKENIZER_NONE)
        return -1;
    for (int32_t id = 0; id < both; id++) {
        if (!has_text(a, id) || !has_text(b, id))
            continue;
        const size_t length = tokenizer_decode(a, id, one);
        if (length != tokenizer_decode(b, id, other) || memcmp(one, other, length))
            return id;
    }
    return -1;
}

const char *tokenizer_unit(enum tokenizer_kind kind)
{
    static const char *const units[] = {
        [TOKENIZER_NONE] = "token ids", [TOKENIZER_BYTE] = "bytes", [TOKENIZER_CHAR] = "characters", [TOKENIZER_BPE] = "byte pairs"};
    return units[kind];
}
