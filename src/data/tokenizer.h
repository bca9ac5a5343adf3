/* Text to token ids and back: bytes (256 ids), characters (the sorted code points of a text), byte pairs (bpe.h), or none (ids only). */
#ifndef HONE_DATA_TOKENIZER_H
#define HONE_DATA_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "data/bpe.h"

enum tokenizer_kind { TOKENIZER_NONE, TOKENIZER_BYTE, TOKENIZER_CHAR, TOKENIZER_BPE };

struct tokenizer {
    enum tokenizer_kind kind;
    int32_t n;                  /* vocabulary size */
    uint32_t *code_points;      /* TOKENIZER_CHAR: (n), ascending; else NULL */
    struct bpe *bpe;            /* TOKENIZER_BPE; else NULL */
};

/* Takes a copy of code_points, which must be ascending and valid (TOKENIZER_CHAR only; checked). */
enum status tokenizer_init(struct tokenizer *t, enum tokenizer_kind kind, const uint32_t *code_points, int32_t n,
                           struct error *err);
/* Takes byte pairs over. */
void tokenizer_init_bpe(struct tokenizer *t, struct bpe *bpe);
enum status tokenizer_copy(struct tokenizer *to, const struct tokenizer *from, struct error *err);
void tokenizer_release(struct tokenizer *t);

/* Encodes text into ids (room for 2 * `length` + 1 ids is always enough: a tokenizer may put a space before what follows a special); returns how many through *n. A character outside the
 * vocabulary is an error that names it. TOKENIZER_NONE reads decimal ids separated by spaces. */
enum status tokenizer_encode(const struct tokenizer *t, const char *text, size_t length, int32_t *ids, size_t *n,
                             struct error *err);
/* Writes the text of one id, with a NUL behind it, and returns its length. */
size_t tokenizer_decode(const struct tokenizer *t, int32_t id, char out[static TOKEN_TEXT_MAX]);

int32_t tokenizer_newline(const struct tokenizer *t);       /* its id; -1: there is none, or lines are no tokens of their own */
/* The special token that texts begin behind, and the one that ends them, by the names that they usually have; -1: there is none. */
int32_t tokenizer_begin(const struct tokenizer *t);
int32_t tokenizer_end(const struct tokenizer *t);
/* The first id that stands for one text in `a` and for another in `b`; -1: none of those that both have does, or one of them knows no texts. */
int32_t tokenizer_differ(const struct tokenizer *a, const struct tokenizer *b);
const char *tokenizer_unit(enum tokenizer_kind kind);       /* "characters" */

#endif
