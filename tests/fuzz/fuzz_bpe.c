/* Any bytes as a tokenizer.json: refused in words, or it encodes what it was read from, and the tokens are the text again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "data/bpe_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void check_text(const struct bpe *b, const struct id_list *ids, const char *text, size_t length)
{
    const bool same = b->prefix == PREFIX_NEVER && !(b->by_characters && memmem(text, length, SPACE_MARK, SPACE_MARK_BYTES));
    size_t at = 0, n;
    for (size_t i = 0; i < ids->n; i++) {
        const char *bytes = bpe_token(b, ids->ids[i], &n);
        require(bytes != NULL && n > 0 && n < TOKEN_TEXT_MAX);
        require(!same || (at + n <= length && !memcmp(text + at, bytes, n)));
        at += n;
    }
    require(!same || at == length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bpe *b = NULL;
    struct error err = {.text = ""};
    struct id_list ids = {0};
    if (bpe_parse(&b, "input", (const char *)data, size, &err) != OK) {
        require(err.text[0] && err.status != OK);
        return 0;
    }
    struct bpe_coder *c = bpe_coder_new(b);
    bpe_encode(c, (const char *)data, size, true, &ids);
    check_text(b, &ids, (const char *)data, size);
    require(bpe_cut(b, (const char *)data, size) <= size);
    id_list_release(&ids);
    bpe_coder_free(c);
    bpe_free(b);
    return 0;
}
