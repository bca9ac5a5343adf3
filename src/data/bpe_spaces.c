/* What a tokenizer of SentencePiece does to spaces, in the two ways in which a tokenizer.json says it: by a normalizer that puts U+2581 in their place,
 * and one before a text; or by the pre-tokenizer Metaspace. */
#include <string.h>

#include "data/bpe_int.h"

struct saying {
    const char *name;           /* for messages */
    struct error *err;
};

static bool is_none(const json_t *j)
{
    const json_t *list = json_object_get(j, "normalizers");
    return !j || json_is_null(j) || (json_is_array(list) && !json_array_size(list));
}

static bool is_text(const json_t *j, const char *key, const char *wanted)
{
    const char *is = json_string_value(json_object_get(j, key));
    return is && !strcmp(is, wanted);
}

static const char *type_of(const json_t *j)
{
    const char *type = json_string_value(json_object_get(j, "type"));
    return type ? type : "none";
}

/* ---- normalizers ---- */

static bool replaces_spaces(const json_t *j)
{
    return is_text(j, "type", "Replace") && is_text(json_object_get(j, "pattern"), "String", " ") && is_text(j, "content", SPACE_MARK);
}

/* Prepend, which may be left out, and Replace. */
static enum status take_normalizer(struct bpe *b, const json_t *j, const struct saying *s)
{
    const json_t *list = json_object_get(j, "normalizers");
    const size_t n = json_is_array(list) ? json_array_size(list) : 1;
    const json_t *last = json_is_array(list) ? json_array_get(list, n - 1) : j, *before = json_array_get(list, 0);
    const bool prepends = n == 2 && is_text(before, "type", "Prepend") && is_text(before, "prepend", SPACE_MARK);
    if (!replaces_spaces(last) || n > 2 || (n == 2 && !prepends))
        return error_set(s->err, BAD_INPUT, "'%s': the normalizer is of type '%.40s'; with byte_fallback hone reads Prepend and Replace, which make '" SPACE_MARK
                         "' of spaces", s->name, n == 2 ? type_of(replaces_spaces(last) ? before : last) : type_of(j));
    b->prefix = prepends ? PREFIX_EACH_ANYWAY : PREFIX_NEVER;
    return OK;
}

/* ---- Metaspace ---- */

/* Older files say whether a space is put before each text, newer ones where. */
static enum status take_scheme(struct bpe *b, const json_t *j, const struct saying *s)
{
    static const struct { const char *word; enum bpe_prefix prefix; } schemes[] = {{"never", PREFIX_NEVER}, {"first", PREFIX_FIRST}, {"always", PREFIX_EACH}};
    const json_t *scheme = json_object_get(j, "prepend_scheme");
    b->prefix = json_is_false(json_object_get(j, "add_prefix_space")) ? PREFIX_NEVER : PREFIX_EACH;
    if (!scheme)
        return OK;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (is_text(j, "prepend_scheme", schemes[i].word)) {
            b->prefix = schemes[i].prefix;
            return OK;
        }
    return error_set(s->err, BAD_INPUT, "'%s': prepend_scheme is '%.40s'; expected never, first or always", s->name,
                     json_is_string(scheme) ? json_string_value(scheme) : "no text");
}

static enum status take_metaspace(struct bpe *b, const json_t *j, const struct saying *s)
{
    if (!is_text(j, "type", "Metaspace"))
        return error_set(s->err, BAD_INPUT, "'%s': the pre-tokenizer is of type '%.40s'; with byte_fallback hone reads Metaspace, or a normalizer that makes '" SPACE_MARK
                         "' of spaces", s->name, type_of(j));
    if (!is_text(j, "replacement", SPACE_MARK))
        return error_set(s->err, BAD_INPUT, "'%s': the pre-tokenizer Metaspace has another replacement than '" SPACE_MARK "'", s->name);
    if (!json_is_false(json_object_get(j, "split")))
        return error_set(s->err, BAD_INPUT, "'%s': the pre-tokenizer Metaspace splits; hone reads one whose split is false, as those of Llama and Mistral", s->name);
    return take_scheme(b, j, s);
}

enum status bpe_read_spaces(struct bpe *b, const json_t *normalizer, const json_t *pre_tokenizer, const char *name, struct error *err)
{
    const struct saying s = {name, err};
    if (is_none(normalizer))
        return take_metaspace(b, pre_tokenizer, &s);
    if (!is_none(pre_tokenizer))
        return error_set(err, BAD_INPUT, "'%s' has a normalizer and the pre-tokenizer '%.40s'; with byte_fallback hone reads one of them", name, type_of(pre_tokenizer));
    return take_normalizer(b, normalizer, &s);
}

static int digit_of(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; }

int bpe_byte_named(const char *token)
{
    if (strlen(token) != 6 || strncmp(token, "<0x", 3) || token[5] != '>' || digit_of(token[3]) < 0 || digit_of(token[4]) < 0)
        return -1;
    return 16 * digit_of(token[3]) + digit_of(token[4]);
}
