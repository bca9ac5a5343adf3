/* A vocabulary and a prompt as a checkpoint and a user may bring them. The first byte says the kind, the second how many characters
 * follow, three bytes each; the rest is the prompt. What is encoded has ids of the vocabulary and reads back as it was. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "data/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void check_text(const struct tokenizer *t, const int32_t *ids, size_t n, const char *text, size_t length)
{
    char part[TOKEN_TEXT_MAX];
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        require(ids[i] >= 0 && ids[i] < t->n);
        const size_t bytes = tokenizer_decode(t, ids[i], part);
        require(bytes > 0 && bytes < sizeof part);
        if (t->kind == TOKENIZER_NONE)
            continue;                       /* numbers: spaces and leading zeros are not kept */
        require(at + bytes <= length && !memcmp(text + at, part, bytes));
        at += bytes;
    }
    require(t->kind == TOKENIZER_NONE || at == length);
}

static void encode(const struct tokenizer *t, const char *text, size_t length)
{
    int32_t *ids = malloc((2 * length + 1) * sizeof *ids);
    size_t n;
    struct error err = {.text = ""};
    require(ids != NULL);
    if (tokenizer_encode(t, text, length, ids, &n, &err) == OK)
        check_text(t, ids, n, text, length);
    else
        require(err.text[0] != '\0');
    free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum tokenizer_kind kinds[] = {TOKENIZER_CHAR, TOKENIZER_BYTE, TOKENIZER_NONE};
    uint32_t points[256];
    struct tokenizer t;
    struct error err = {.text = ""};
    if (size < 2 || size < 2 + 3u * data[1])
        return 0;
    for (int i = 0; i < data[1]; i++)
        points[i] = data[2 + 3 * i] | (uint32_t)data[3 + 3 * i] << 8 | (uint32_t)data[4 + 3 * i] << 16;
    const enum tokenizer_kind kind = kinds[data[0] % 3];
    if (tokenizer_init(&t, kind, points, kind == TOKENIZER_NONE ? data[1] + 1 : data[1], &err) != OK) {
        require(err.text[0] != '\0');
        return 0;
    }
    encode(&t, (const char *)data + 2 + 3 * data[1], size - 2 - 3u * data[1]);
    tokenizer_release(&t);
    return 0;
}
