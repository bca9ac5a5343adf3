/* Writes a tokenizer.json as Hugging Face's tokenizers read it. */
#include <stdlib.h>
#include <string.h>

#include "core/json_memory.h"
#include "data/bpe_int.h"

static json_t *byte_level(bool use_regex)
{
    return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1, "use_regex", use_regex);
}

/* GPT-2's cut is part of ByteLevel; another one stands before it. */
static json_t *cutter(const struct cutting *c)
{
    if (!c->words_with_marks)
        return byte_level(true);
    return json_pack("{s:s, s:[{s:s, s:{s:s}, s:s, s:b}, o]}", "type", "Sequence", "pretokenizers", "type", "Split", "pattern", "Regex", cutting_regex(c), "behavior",
                     "Isolated", "invert", 0, byte_level(false));
}

static json_t *added_of(const json_t *specials, const json_t *vocab)
{
    json_t *list = json_array(), *one;
    size_t i;
    json_array_foreach((json_t *)specials, i, one)
        if (list && json_array_append_new(list, json_pack("{s:I, s:O, s:b, s:b, s:b, s:b, s:b}", "id",
                                                          json_integer_value(json_object_get(vocab, json_string_value(one))), "content", one, "single_word", 0,
                                                          "lstrip", 0, "rstrip", 0, "normalized", 0, "special", 1))) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

char *bpe_document(json_t *vocab, json_t *merges, json_t *specials, const struct cutting *c)
{
    json_t *added = added_of(specials, vocab);
    json_decref(specials);
    json_t *j = json_pack("{s:s, s:n, s:n, s:o, s:n, s:o, s:o, s:o, s:{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:o, s:o}}", "version", "1.0", "truncation",
                          "padding", "added_tokens", added, "normalizer", "pre_tokenizer", cutter(c), "post_processor", byte_level(true), "decoder",
                          byte_level(true), "model", "type", "BPE", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0,
                          "byte_fallback", 0, "ignore_merges", 0, "vocab", vocab, "merges", merges);
    char *text = j ? json_memory_dump(j, JSON_INDENT(1)) : NULL;
    json_decref(j);
    return text;
}
