/* Tokenizers of the fixtures, and the ids that Hugging Face's tokenizers give for their text. */
#ifndef HONE_TESTS_BPE_H
#define HONE_TESTS_BPE_H

#include <stdio.h>
#include <stdlib.h>

#include "core/fs.h"
#include "data/bpe_int.h"
#include "support/check.h"

#define BPE HONE_FIXTURES "/bpe/"

static inline char *read_text(const char *path, size_t *size)
{
    char *text;
    struct error err;
    assert_ok(fs_read(path, &text, size, 0, &err), err);
    return text;
}

/* NAME.json */
static inline struct bpe *open_bpe(const char *name)
{
    struct bpe *b = NULL;
    struct error err;
    char path[512];
    snprintf(path, sizeof path, BPE "%s.json", name);
    assert_ok(bpe_open(&b, path, &err), err);
    return b;
}

/* NAME.ids */
static inline struct id_list ids_of(const char *name)
{
    struct id_list l = {0};
    char path[512];
    size_t size;
    snprintf(path, sizeof path, BPE "%s.ids", name);
    char *text = read_text(path, &size), *rest = text;
    l.ids = calloc(size, sizeof *l.ids);
    for (char *word; (word = strsep(&rest, " \n"));)
        if (*word)
            l.ids[l.n++] = atoi(word);
    free(text);
    return l;
}

static inline void assert_same_ids(const struct id_list *a, const struct id_list *b, const char *what)
{
    for (size_t i = 0; i < a->n && i < b->n; i++)
        if (a->ids[i] != b->ids[i])
            fail_msg("%s: token %zu is %d, expected %d", what, i, a->ids[i], b->ids[i]);
    assert_int_equal(a->n, b->n);
}

#endif
