/* Tokens from the built-in corpus. The text and its vocabulary depend on the domain and the length only, not on
 * train.seed, so that runs with different seeds can be compared and a model fits a corpus of any length. */
#include <math.h>

#include "data/corpus.h"
#include "data/data_int.h"

/* A sample of one line starts at a known place and leaves its first character unpredicted: another entropy. */
double source_corpus_entropy(enum data_domain domain, const struct config_data *c)
{
    return c->samples == SAMPLES_LINES ? NAN : corpus_entropy(domain);
}

enum status source_corpus(struct dataset *d, const struct config *c, const struct tokenizer *given, struct error *err)
{
    struct text text;
    enum status st = text_generate(&text, c->data.domain, &c->data, err);
    text.to = d;
    if (st == OK)
        st = texts_tokenize(&text, 1, &c->data, given, err);
    d->entropy = source_corpus_entropy(c->data.domain, &c->data);
    text_release(&text);
    return st;
}
