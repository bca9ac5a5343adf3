/* Tokens from the built-in corpus. The text and its vocabulary depend on the domain and the length only, not on
 * train.seed, so that runs with different seeds can be compared and a model fits a corpus of any length. */
#include <math.h>
#include <stdlib.h>

#include "core/arena.h"
#include "core/setup.h"
#include "data/corpus.h"
#include "data/data_int.h"

enum { CORPUS_SEED = 20260101 };

/* The sorted characters of the domain become the ids; the text is rewritten in place. */
static enum status by_char(struct dataset *d, enum data_domain domain, char *text, int64_t chars, struct error *err)
{
    bool used[128];
    uint32_t points[128];
    uint8_t id_of[128];
    int32_t n = 0;
    corpus_alphabet(domain, used);
    for (uint32_t c = 0; c < 128; c++) {
        id_of[c] = (uint8_t)n;
        if (used[c])
            points[n++] = c;
    }
    for (int64_t i = 0; i < chars; i++)
        text[i] = (char)id_of[text[i] & 127];
    d->vocab = n;
    return tokenizer_init(&d->tokenizer, TOKENIZER_CHAR, points, n, err);
}

static enum status by_byte(struct dataset *d, struct error *err)
{
    d->vocab = 256;
    return tokenizer_init(&d->tokenizer, TOKENIZER_BYTE, NULL, 0, err);
}

enum status source_corpus(struct dataset *d, const struct config *c, struct error *err)
{
    const int64_t chars = c->data.chars;
    char *text = chars > 0 ? corpus_generate(c->data.domain, CORPUS_SEED, (size_t)chars) : NULL;
    if (chars <= 0)
        return error_set(err, BAD_INPUT, "data.chars is %lld; the built-in corpus needs at least model.seq + 1",
                         (long long)chars);
    if (!text)
        return error_set(err, CANNOT, "out of memory: data.chars %lld need %.1f MB; set it smaller", (long long)chars,
                         (double)chars / 1e6);
    *dataset_add_store(d) = (struct store){.name = xstrdup("the built-in corpus"), .memory = text, .width = 1,
                                           .count = chars};
    /* A sample of one line starts at a known place and leaves its first character unpredicted: another entropy. */
    d->entropy = c->data.samples == SAMPLES_LINES ? NAN : corpus_entropy(c->data.domain);
    if (setup_check("the corpus", err) != OK)
        return err->status;
    return c->data.tokens == TOKENS_BYTE ? by_byte(d, err) : by_char(d, c->data.domain, text, chars, err);
}
