/* Which tokens a model's texts begin and end with; see train_int.h. Weights do not say it, and who generates with the model elsewhere goes on
 * for ever without. */
#include <stdio.h>

#include "train/train_int.h"

static const char *const keys[] = {"bos_token_id", "eos_token_id"};

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

static enum status no_memory(json_t *made, struct error *err)
{
    json_decref(made);
    return error_set(err, CANNOT, "out of memory for the ids that texts end with");
}

enum status text_ends_of(json_t **out, const json_t *from, int64_t vocab, struct error *err)
{
    json_t *made = NULL;
    *out = NULL;
    for (int i = 0; i < 2; i++) {
        const json_t *v = json_object_get(from, keys[i]);
        if (!are_ids(v, vocab))
            continue;
        if (!made && !(made = json_object()))
            return no_memory(NULL, err);
        if (json_object_set(made, keys[i], (json_t *)v))
            return no_memory(made, err);
    }
    *out = made;
    return OK;
}

enum status text_ends_with(json_t **out, const json_t *known, const struct tokenizer *t, int64_t vocab, struct error *err)
{
    const int32_t ids[] = {tokenizer_begin(t), tokenizer_end(t)};
    json_t *made = json_object();
    for (int i = 0; i < 2; i++) {
        json_t *v = json_object_get(known, keys[i]);
        const bool named = !v && ids[i] >= 0 && ids[i] < vocab;         /* a tokenizer may have more ids than the model */
        if (!made || (v && json_object_set(made, keys[i], v)) || (named && json_object_set_new(made, keys[i], json_integer(ids[i]))))
            return no_memory(made, err);
    }
    *out = made;
    return OK;
}

const char *text_ends_token(const json_t *ends, const char *key, const struct tokenizer *t, char out[TOKEN_TEXT_MAX])
{
    const json_t *v = json_object_get(ends, key), *id = json_is_array(v) ? json_array_get(v, 0) : v;
    size_t length;
    if (t->kind != TOKENIZER_BPE || !is_id(id, bpe_size(t->bpe)))
        return NULL;
    const char *text = bpe_token(t->bpe, (int32_t)json_integer_value(id), &length);
    if (!text || length >= TOKEN_TEXT_MAX)
        return NULL;
    snprintf(out, TOKEN_TEXT_MAX, "%.*s", (int)length, text);
    return bpe_special(t->bpe, out) == json_integer_value(id) ? out : NULL;
}
