/* What the config.json that a model came with said of it, and its weights do not tell; see train_int.h. Without the tokens that texts end with, who
 * generates with the model elsewhere goes on for ever; without the positions that it was made for, longer texts are cut there. */
#include <stdio.h>

#include "train/train_int.h"

static bool is_id(const json_t *v, int64_t vocab) { return json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) < vocab; }

/* One id, or several where a text may end in several ways. */
static bool are_ids(const json_t *v, int64_t vocab)
{
    if (!json_is_array(v))
        return is_id(v, vocab);
    for (size_t i = 0; i < json_array_size(v); i++)
        if (!is_id(json_array_get(v, i), vocab))
            return false;
    return json_array_size(v) > 0;
}

static bool is_length(const json_t *v, int64_t vocab)
{
    (void)vocab;
    return json_is_integer(v) && json_integer_value(v) >= 1 && json_integer_value(v) <= INT32_MAX;
}

enum { BEGIN, END, POSITIONS, KEYS };

static const struct {
    const char *key, *other;            /* of Hugging Face; of params.json, NULL: none */
    bool (*is_right)(const json_t *v, int64_t vocab);
} keys[KEYS] = {
    [BEGIN] = {"bos_token_id", NULL, are_ids},
    [END] = {"eos_token_id", NULL, are_ids},
    [POSITIONS] = {"max_position_embeddings", "max_seq_len", is_length},
};

static enum status no_memory(json_t *made, struct error *err)
{
    json_decref(made);
    return error_set(err, CANNOT, "out of memory for what config.json said of a model");
}

enum status said_of(json_t **out, const json_t *from, int64_t vocab, struct error *err)
{
    json_t *made = NULL;
    *out = NULL;
    for (int i = 0; i < KEYS; i++) {
        json_t *v = json_object_get(from, keys[i].key);
        v = v || !keys[i].other ? v : json_object_get(from, keys[i].other);
        if (!keys[i].is_right(v, vocab))
            continue;
        if (!made && !(made = json_object()))
            return no_memory(NULL, err);
        if (json_object_set(made, keys[i].key, v))
            return no_memory(made, err);
    }
    *out = made;
    return OK;
}

enum status said_with_ends(json_t **out, const json_t *known, const struct tokenizer *t, int64_t vocab, struct error *err)
{
    const int32_t ids[] = {[BEGIN] = tokenizer_begin(t), [END] = tokenizer_end(t)};
    json_t *made = known ? json_copy((json_t *)known) : json_object();
    if (!made)
        return no_memory(NULL, err);
    for (int i = BEGIN; i <= END; i++) {
        const bool named = ids[i] >= 0 && ids[i] < vocab;               /* a tokenizer may have more ids than the model */
        if (named && !json_object_get(made, keys[i].key) && json_object_set_new(made, keys[i].key, json_integer(ids[i])))
            return no_memory(made, err);
    }
    *out = made;
    return OK;
}

const char *said_token(const json_t *said, const char *key, const struct tokenizer *t, char out[TOKEN_TEXT_MAX])
{
    const json_t *v = json_object_get(said, key), *id = json_is_array(v) ? json_array_get(v, 0) : v;
    size_t length;
    if (t->kind != TOKENIZER_BPE || !is_id(id, bpe_size(t->bpe)))
        return NULL;
    const char *text = bpe_token(t->bpe, (int32_t)json_integer_value(id), &length);
    if (!text || length >= TOKEN_TEXT_MAX)
        return NULL;
    snprintf(out, TOKEN_TEXT_MAX, "%.*s", (int)length, text);
    return bpe_special(t->bpe, out) == json_integer_value(id) ? out : NULL;
}
