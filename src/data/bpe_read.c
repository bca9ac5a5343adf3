/* Reads a tokenizer.json of Hugging Face: byte-level BPE with the cuts that are known, or that of SentencePiece; whatever else it asks for is refused
 * by name. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/json_memory.h"
#include "data/bpe_int.h"
#include "data/utf8.h"

enum { IDS_LIMIT = 1 << 24 };

struct reader {
    const char *name;           /* for messages */
    struct bpe *b;
    bool words_part;            /* no merge so far has a space behind something else */
    struct error *err;
};

#define REFUSE(r, ...) error_set((r)->err, BAD_INPUT, __VA_ARGS__)

/* ---- tokens ---- */

/* Of SentencePiece: the token with spaces for their marks; 0: it has spaces of its own, which no text would have then. */
static size_t spaced_bytes_of(const char *shown, char *out)
{
    size_t n = 0;
    for (size_t step; *shown; shown += step) {
        const bool mark = !strncmp(shown, SPACE_MARK, SPACE_MARK_BYTES);
        step = mark ? SPACE_MARK_BYTES : 1;
        if (*shown == ' ')
            return 0;
        out[n++] = mark ? ' ' : *shown;
    }
    return n;
}

/* The bytes that a token of the vocabulary stands for, in place of `out`; 0: it has characters that are none. */
static size_t bytes_of(const struct bpe *b, const char *shown, char *out)
{
    if (b->by_characters)
        return spaced_bytes_of(shown, out);
    const size_t length = strlen(shown);
    size_t n = 0;
    for (size_t at = 0, step; at < length; at += step) {
        uint32_t c;
        step = utf8_decode(shown + at, length - at, &c);
        const int byte = step ? bpe_byte_of(c) : -1;
        if (byte < 0)
            return 0;
        out[n++] = (char)byte;
    }
    return n;
}

static enum status take_token(struct reader *r, const char *bytes, size_t length, json_int_t id, char **at)
{
    if (length == 0 || length >= TOKEN_TEXT_MAX)
        return REFUSE(r, "'%s': the token of id %lld has %zu bytes; expected 1 to %d", r->name, (long long)id, length, TOKEN_TEXT_MAX - 1);
    struct bpe_bytes *t = &r->b->tokens[id];
    if (t->at && (t->length != length || memcmp(t->at, bytes, length)))
        return REFUSE(r, "'%s': two tokens have the id %lld", r->name, (long long)id);
    *t = (struct bpe_bytes){memcpy(*at, bytes, length), (uint32_t)length};
    *at += length;
    return OK;
}

static enum status check_id(const struct reader *r, const json_t *id, const char *token)
{
    if (json_is_integer(id) && json_integer_value(id) >= 0 && json_integer_value(id) < IDS_LIMIT)
        return OK;
    return REFUSE(r, "'%s': the id of token '%.60s' is not a whole number from 0 to %d", r->name, token, IDS_LIMIT - 1);
}

/* How many ids there are, and how many bytes their tokens have at most. */
static enum status measure(struct reader *r, const json_t *vocab, const json_t *added, size_t *bytes)
{
    const char *token;
    const json_t *id;
    size_t i;
    const json_t *one;
    enum status st = OK;
    json_int_t most = -1;
    json_object_foreach((json_t *)vocab, token, id) {
        if ((st = check_id(r, id, token)) != OK)
            return st;
        most = json_integer_value(id) > most ? json_integer_value(id) : most;
        *bytes += strlen(token);
    }
    json_array_foreach(added, i, one) {
        const char *content = json_string_value(json_object_get(one, "content"));
        if (!content || !*content)
            return REFUSE(r, "'%s': added token %zu has no content", r->name, i);
        if ((st = check_id(r, json_object_get(one, "id"), content)) != OK)
            return st;
        most = json_integer_value(json_object_get(one, "id")) > most ? json_integer_value(json_object_get(one, "id")) : most;
        *bytes += strlen(content);
    }
    r->b->n = (int32_t)(most + 1);
    return OK;
}

/* A token that is also an added one stands as it is, and not in characters for bytes. */
static bool is_added(const struct bpe *b, const char *token)
{
    const unsigned char c = (unsigned char)*token;
    return (b->special_starts[0][c] || b->special_starts[1][c]) && bpe_special(b, token) >= 0;
}

static enum status refuse_token(const struct reader *r, const char *token)
{
    if (r->b->by_characters)
        return REFUSE(r, "'%s': token '%.60s' has a space, or is too long; a vocabulary of SentencePiece has '" SPACE_MARK "' for spaces", r->name, token);
    return REFUSE(r, "'%s': token '%.60s' is not of a byte-level vocabulary, whose characters stand for bytes; hone reads BPE with the pre-tokenizer ByteLevel",
                  r->name, token);
}

static enum status take_one(struct reader *r, const char *token, json_int_t id, char *bytes, char **at)
{
    const int byte = r->b->by_characters ? bpe_byte_named(token) : -1;
    const char one = (char)byte;
    if (byte >= 0) {
        r->b->byte_ids[byte] = (int32_t)id;
        return take_token(r, &one, 1, id, at);
    }
    const size_t n = strlen(token) < (size_t)TOKEN_TEXT_MAX * 2 ? bytes_of(r->b, token, bytes) : 0;
    return n ? take_token(r, bytes, n, id, at) : refuse_token(r, token);
}

static enum status take_vocabulary(struct reader *r, const json_t *vocab, char **at)
{
    const char *token;
    const json_t *id;
    char *bytes = xcalloc(4, TOKEN_TEXT_MAX);
    enum status st = OK;
    json_object_foreach((json_t *)vocab, token, id) {
        if (is_added(r->b, token))
            continue;
        st = take_one(r, token, json_integer_value(id), bytes, at);
        if (st != OK)
            break;
    }
    free(bytes);
    return st;
}

static int compare_specials(const void *a, const void *b)
{
    const struct bpe_special *x = a, *y = b;
    return x->length != y->length ? (x->length < y->length ? 1 : -1) : strcmp(x->text, y->text);
}

static enum status check_special(const struct reader *r, const json_t *one, const char *content)
{
    static const char *const flags[] = {"single_word", "lstrip", "rstrip"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (json_is_true(json_object_get(one, flags[i])))
            return REFUSE(r, "'%s': added token '%.60s' has %s, which cannot be read so far", r->name, content, flags[i]);
    return OK;
}

static enum status take_specials(struct reader *r, const json_t *added, char **at)
{
    struct bpe *b = r->b;
    size_t i;
    const json_t *one;
    b->specials = xcalloc(json_array_size(added) + 1, sizeof *b->specials);
    json_array_foreach(added, i, one) {
        const char *content = json_string_value(json_object_get(one, "content"));
        const json_int_t id = json_integer_value(json_object_get(one, "id"));
        enum status st = check_special(r, one, content);
        if (st == OK && b->tokens[id].at)
            st = REFUSE(r, "'%s': two added tokens have the id %lld", r->name, (long long)id);
        if (st == OK)
            st = take_token(r, content, strlen(content), id, at);
        if (st != OK)
            return st;
        const int turn = json_is_true(json_object_get(one, "normalized"));
        b->specials[b->n_specials++] = (struct bpe_special){b->tokens[id].at, b->tokens[id].length, (int32_t)id, turn, json_is_true(json_object_get(one, "special"))};
        b->special_starts[turn][(unsigned char)*content] = true;
    }
    qsort(b->specials, (size_t)b->n_specials, sizeof *b->specials, compare_specials);
    return OK;
}

static enum status take_bytes(struct reader *r)
{
    for (int c = 0; c < 256; c++) {
        const char byte = (char)c;
        if (!r->b->by_characters)
            r->b->byte_ids[c] = bpe_find(r->b, &byte, 1);
        if (r->b->byte_ids[c] < 0 && r->b->by_characters)
            return REFUSE(r, "'%s': the vocabulary has no token <0x%02X>; with byte_fallback it has all 256", r->name, c);
        if (r->b->byte_ids[c] < 0)
            return REFUSE(r, "'%s': the vocabulary has no token for the byte 0x%02X; a byte-level one has all 256", r->name, c);
    }
    return OK;
}

static enum status take_tokens(struct reader *r, const json_t *vocab, const json_t *added)
{
    size_t bytes = 1;
    enum status st = measure(r, vocab, added, &bytes);
    if (st != OK)
        return st;
    r->b->tokens = xcalloc((size_t)r->b->n + 1, sizeof *r->b->tokens);
    memset(r->b->byte_ids, -1, sizeof r->b->byte_ids);
    char *at = r->b->text = xcalloc(1, bytes);
    st = take_specials(r, added, &at);
    if (st == OK)
        st = take_vocabulary(r, vocab, &at);
    if (st != OK)
        return st;
    bpe_index_tokens(r->b);
    return take_bytes(r);
}

/* ---- merges ---- */

/* The two halves, "a b" or ["a", "b"], as bytes one after the other; *cut: where the second begins. 0: it is neither. */
static size_t halves_of(const struct bpe *b, const json_t *merge, char *bytes, size_t *cut)
{
    const char *text = json_string_value(merge), *second = json_string_value(json_array_get(merge, 1)), *space = text ? strchr(text, ' ') : NULL;
    char first[TOKEN_TEXT_MAX * 2];
    if (json_array_size(merge) == 2 && json_is_string(json_array_get(merge, 0)) && second)
        snprintf(first, sizeof first, "%s", json_string_value(json_array_get(merge, 0)));
    else if (space)
        snprintf(first, sizeof first, "%.*s", (int)(space - text < (long)sizeof first ? space - text : (long)sizeof first), text);
    else
        return 0;
    second = space ? space + 1 : second;
    *cut = bytes_of(b, first, bytes);
    const size_t rest = strlen(second) < TOKEN_TEXT_MAX * 2 ? bytes_of(b, second, bytes + *cut) : 0;
    return *cut && rest ? *cut + rest : 0;
}

/* What a merge makes may be the name of a byte's token, which has the byte alone as its text. */
static int32_t find_made(const struct bpe *b, const char *bytes, size_t n)
{
    char name[8] = "";
    const int32_t id = bpe_find(b, bytes, n);
    if (id >= 0 || !b->by_characters || n >= sizeof name)
        return id;
    memcpy(name, bytes, n);
    return bpe_byte_named(name) < 0 ? -1 : b->byte_ids[bpe_byte_named(name)];
}

static enum status take_merge(struct reader *r, const json_t *merge, int rank)
{
    char bytes[TOKEN_TEXT_MAX * 4], shown[TOKEN_TEXT_MAX * 8];
    size_t cut;
    const size_t n = halves_of(r->b, merge, bytes, &cut);
    if (!n)
        return REFUSE(r, "'%s': merge %d is not two tokens%s, as \"a b\" or [\"a\", \"b\"]", r->name, rank,
                      r->b->by_characters ? "" : " of the byte-level alphabet");
    if (bytes[cut - 1] != ' ' && bytes[cut] == ' ')
        r->words_part = false;
    const struct bpe_merge m = {.left = bpe_find(r->b, bytes, cut), .right = bpe_find(r->b, bytes + cut, n - cut), .to = find_made(r->b, bytes, n), .rank = rank};
    if (m.left < 0 || m.right < 0 || m.to < 0) {
        const size_t from = m.left >= 0 && m.right < 0 ? cut : 0, to = m.left < 0 ? cut : n;
        bpe_show(bytes + from, to - from, shown);
        return REFUSE(r, "'%s': merge %d %s '%.60s', which is not in the vocabulary", r->name, rank, m.left < 0 || m.right < 0 ? "has the token" : "makes",
                      shown);
    }
    bpe_show(bytes, n, shown);
    return bpe_merge_add(r->b, m) ? OK : REFUSE(r, "'%s': merge %d, which makes '%.60s', is there twice", r->name, rank, shown);
}

static enum status take_merges(struct reader *r, const json_t *merges)
{
    size_t i;
    const json_t *one;
    enum status st = OK;
    bpe_room_for_merges(r->b, json_array_size(merges));
    json_array_foreach(merges, i, one) {
        st = take_merge(r, one, (int)i);
        if (st != OK)
            break;
    }
    return st;
}

/* ---- the model ---- */

static bool is_nothing(const json_t *v) { return !v || json_is_null(v) || json_is_false(v) || (json_is_string(v) && !*json_string_value(v)); }

/* SentencePiece has a whole text as one piece. Where no merge goes over the begin of a word, and the end of a line is no character of the vocabulary, pieces
 * that part there have the same ids. */
static void cut_words(struct reader *r)
{
    if (r->words_part)
        r->b->cutting = (struct cutting){.spaces_first = true, .lines = bpe_find(r->b, "\n", 1) < 0};
}

static enum status take_model(struct reader *r, const json_t *model, const json_t *added)
{
    static const char *const lacks[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "unk_token"};
    const size_t n_lacks = sizeof lacks / sizeof *lacks - r->b->by_characters;          /* with all bytes, nothing is unknown */
    const json_t *vocab = json_object_get(model, "vocab"), *merges = json_object_get(model, "merges");
    if (!json_is_object(vocab) || !json_object_size(vocab) || !json_is_array(merges))
        return REFUSE(r, "'%s' has no model with a vocab and merges, as BPE has", r->name);
    for (size_t i = 0; i < n_lacks; i++)
        if (!is_nothing(json_object_get(model, lacks[i])))
            return REFUSE(r, "'%s': the model has %s, which cannot be read so far", r->name, lacks[i]);
    r->b->whole_pieces = json_is_true(json_object_get(model, "ignore_merges"));
    if (r->b->whole_pieces && r->b->by_characters)
        return REFUSE(r, "'%s': the model has ignore_merges and byte_fallback, which cannot be read so far", r->name);
    enum status st = take_tokens(r, vocab, added);
    if (st == OK)
        st = take_merges(r, merges);
    if (st == OK && r->b->by_characters)
        cut_words(r);
    return st;
}

/* ---- what comes before it ---- */

static enum status take_split(struct reader *r, const json_t *j)
{
    const char *regex = json_string_value(json_object_get(json_object_get(j, "pattern"), "Regex"));
    const char *behavior = json_string_value(json_object_get(j, "behavior"));
    const bool each_digit = r->b->cutting.each_digit;
    if (!regex || !behavior || strcmp(behavior, "Isolated") || json_is_true(json_object_get(j, "invert")))
        return REFUSE(r, "'%s': the pre-tokenizer Split cuts by no regular expression, or its behavior is not Isolated", r->name);
    if (!cutting_of_regex(&r->b->cutting, regex))
        return REFUSE(r, "'%s': the pre-tokenizer Split has the regular expression '%.200s'; hone knows those of GPT-2, cl100k, Llama 3 and Qwen 2", r->name, regex);
    r->b->cutting.each_digit = each_digit;
    return OK;
}

static enum status take_byte_level(struct reader *r, const json_t *j)
{
    r->b->prefix = json_is_true(json_object_get(j, "add_prefix_space")) ? PREFIX_EACH : PREFIX_NEVER;
    if (!json_is_false(json_object_get(j, "use_regex")))
        r->b->cutting = (struct cutting){.each_digit = r->b->cutting.each_digit};
    if (r->b->prefix == PREFIX_EACH && r->b->cutting.each_digit)
        return REFUSE(r, "'%s': add_prefix_space behind the pre-tokenizer Digits cannot be read so far", r->name);
    return OK;
}

static enum status take_digits(struct reader *r, const json_t *j)
{
    if (!json_is_true(json_object_get(j, "individual_digits")))
        return REFUSE(r, "'%s': the pre-tokenizer Digits without individual_digits cannot be read so far", r->name);
    r->b->cutting.each_digit = true;
    return OK;
}

static enum status take_cutter(struct reader *r, const json_t *j, bool *byte_level)
{
    const char *type = json_string_value(json_object_get(j, "type"));
    *byte_level = type && !strcmp(type, "ByteLevel");
    if (*byte_level)
        return take_byte_level(r, j);
    if (type && !strcmp(type, "Split"))
        return take_split(r, j);
    if (type && !strcmp(type, "Digits"))
        return take_digits(r, j);
    return REFUSE(r, "'%s': the pre-tokenizer is of type '%.40s'; hone reads ByteLevel, and Split or Digits before it", r->name, type ? type : "none");
}

/* One, or a sequence whose last is ByteLevel. Without a cut of its own a text is one piece. */
static enum status take_cutters(struct reader *r, const json_t *j)
{
    const json_t *list = json_object_get(j, "pretokenizers"), *one;
    bool byte_level = false;
    size_t i;
    r->b->cutting = (struct cutting){.none = true};
    if (!json_is_array(list)) {
        const enum status st = take_cutter(r, j, &byte_level);
        return st != OK || byte_level ? st : REFUSE(r, "'%s': the pre-tokenizer has no ByteLevel; hone reads byte-level BPE", r->name);
    }
    json_array_foreach(list, i, one) {
        if (byte_level)
            return REFUSE(r, "'%s': a pre-tokenizer follows ByteLevel, which cannot be read so far", r->name);
        const enum status st = take_cutter(r, one, &byte_level);
        if (st != OK)
            return st;
    }
    return byte_level ? OK : REFUSE(r, "'%s': the pre-tokenizer has no ByteLevel; hone reads byte-level BPE", r->name);
}

static enum status check_normalizer(const struct reader *r, const json_t *j)
{
    const char *type = json_string_value(json_object_get(j, "type"));
    const json_t *list = json_object_get(j, "normalizers");
    if (!j || json_is_null(j) || (json_is_array(list) && !json_array_size(list)))
        return OK;
    return REFUSE(r, "'%s': the normalizer is of type '%.40s'; hone reads tokenizers that change no character", r->name, type ? type : "none");
}

static enum status take_byte_cuts(struct reader *r, const json_t *j)
{
    const enum status st = check_normalizer(r, json_object_get(j, "normalizer"));
    return st == OK ? take_cutters(r, json_object_get(j, "pre_tokenizer")) : st;
}

/* Added tokens that a normalizer changes would be looked for in the changed text. */
static enum status take_spaces(struct reader *r, const json_t *j)
{
    const json_t *normalizer = json_object_get(j, "normalizer"), *one;
    size_t i;
    r->b->cutting = (struct cutting){.none = true};
    r->words_part = true;
    json_array_foreach(json_object_get(j, "added_tokens"), i, one)
        if (json_is_object(normalizer) && json_is_true(json_object_get(one, "normalized")))
            return REFUSE(r, "'%s': added token '%.60s' is normalized, which cannot be read so far; set its normalized to false", r->name,
                          json_is_string(json_object_get(one, "content")) ? json_string_value(json_object_get(one, "content")) : "");
    return bpe_read_spaces(r->b, normalizer, json_object_get(j, "pre_tokenizer"), r->name, r->err);
}

static enum status take_all(struct reader *r, const json_t *j)
{
    const json_t *added = json_object_get(j, "added_tokens"), *model = json_object_get(j, "model");
    if (!json_is_object(j))
        return REFUSE(r, "'%s' is not a JSON object", r->name);
    const char *type = json_string_value(json_object_get(model, "type"));
    if (type && strcmp(type, "BPE"))                    /* before what else such a model has, which nobody need mend */
        return REFUSE(r, "'%s': the model is of type '%.40s'; hone reads BPE", r->name, type);
    r->b->by_characters = json_is_true(json_object_get(model, "byte_fallback"));
    const enum status st = r->b->by_characters ? take_spaces(r, j) : take_byte_cuts(r, j);
    return st == OK ? take_model(r, model, json_is_array(added) ? added : NULL) : st;
}

enum status bpe_parse(struct bpe **out, const char *name, const char *text, size_t size, struct error *err)
{
    json_error_t why;
    bool no_memory;
    json_t *j = json_memory_load(text, size, JSON_REJECT_DUPLICATES, &why, &no_memory);
    if (no_memory)
        return error_set(err, CANNOT, "out of memory for '%s'", name);
    if (!j)
        return error_set(err, BAD_INPUT, "'%s' is not JSON at line %d column %d: %s", name, why.line, why.column, why.text);
    struct reader r = {.name = name, .b = xcalloc(1, sizeof *r.b), .err = err};
    atomic_init(&r.b->users, 1);
    const enum status st = take_all(&r, j);
    json_decref(j);
    if (st != OK) {
        bpe_free(r.b);
        return st;
    }
    r.b->json = memcpy(xneed(malloc(size + 1)), text, size);
    r.b->json[size] = '\0';
    r.b->json_size = size;
    *out = r.b;
    return OK;
}
