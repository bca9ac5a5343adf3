/* Tokens from text files, by byte or by character. The characters of both splits make the vocabulary. */
#include <math.h>
#include <unistd.h>

#include "data/data_int.h"

/* A file that is not there is the fault of the key that names it. */
static enum status read_named(struct text *t, const char *key, const char *path, const struct config *c, bool bytes, struct error *err)
{
    const enum status st = text_read(t, path, &c->data, bytes, err);
    return st != OK && access(path, F_OK) < 0 ? config_blame_path(c, key, path, err) : st;
}

enum status source_text(struct dataset *d, const struct config *c, const struct tokenizer *given, struct error *err)
{
    const bool bytes = text_is_bytes(&c->data, given);
    struct text texts[2] = {{.bytes = NULL}, {.bytes = NULL}};
    int n = 0;
    d->entropy = NAN;
    enum status st = read_named(&texts[n++], "data.path", c->data.path, c, bytes, err);
    if (st == OK && c->data.val_path[0])
        st = read_named(&texts[n++], "data.val_path", c->data.val_path, c, bytes, err);
    for (int i = 0; i < n; i++) {
        texts[i].to = d;
        texts[i].val = i > 0;
    }
    if (st == OK)
        st = texts_tokenize(texts, n, &c->data, given, err);
    for (int i = 0; i < n; i++)
        text_release(&texts[i]);
    return st;
}
