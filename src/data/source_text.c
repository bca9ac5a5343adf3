/* Tokens from text files, by byte or by character. The characters of both splits make the vocabulary. */
#include <math.h>
#include <stdlib.h>

#include "data/data_int.h"

enum status source_text(struct dataset *d, const struct config *c, const struct tokenizer *given, struct error *err)
{
    const bool bytes = text_is_bytes(&c->data, given);
    struct text texts[2] = {{.bytes = NULL}, {.bytes = NULL}};
    int n = 0;
    d->entropy = NAN;
    enum status st = text_read(&texts[n++], c->data.path, &c->data, bytes, err);
    if (st == OK && c->data.val_path[0])
        st = text_read(&texts[n++], c->data.val_path, &c->data, bytes, err);
    for (int i = 0; i < n; i++) {
        texts[i].to = d;
        texts[i].val = i > 0;
    }
    if (st == OK)
        st = texts_tokenize(texts, n, &c->data, given, err);
    for (int i = 0; i < n; i++)
        free(texts[i].bytes);
    return st;
}
