/* Byte-pair encoding: bytes of a piece of text, or characters as SentencePiece has them, are merged by rank until no merge is left. Made from a
 * tokenizer.json of Hugging Face, from vocab.json and merges.txt of GPT-2, or from a text. What is made does not change, and is shared by count. */
#ifndef HONE_DATA_BPE_H
#define HONE_DATA_BPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

enum { TOKEN_TEXT_MAX = 1024 };         /* bytes of a token and a NUL */

struct bpe;

/* Reads a tokenizer.json, a folder that holds one, or a folder with vocab.json and merges.txt. */
enum status bpe_open(struct bpe **out, const char *path, struct error *err);
/* Is there something in the folder that bpe_open can read? */
bool bpe_is_there(const char *folder);
/* The text of a tokenizer.json; `name` is for messages. */
enum status bpe_parse(struct bpe **out, const char *name, const char *text, size_t size, struct error *err);
struct bpe *bpe_share(struct bpe *b);
void bpe_free(struct bpe *b);

int32_t bpe_size(const struct bpe *b);                                          /* ids are below it */
const char *bpe_token(const struct bpe *b, int32_t id, size_t *length);         /* its bytes; NULL: no token has this id */
int32_t bpe_special(const struct bpe *b, const char *text);                     /* the id of a special token; -1: there is none */
bool bpe_is_mark(const struct bpe *b, int32_t id);                              /* a special token that stands for no text, as where one ends */
const char *bpe_json(const struct bpe *b, size_t *size);                        /* the tokenizer.json that it is */

/* Ids that grow. */
struct id_list {
    int32_t *ids;
    size_t n, room;
};
void id_list_release(struct id_list *l);

/* One thread's room for encoding, with what it has met so far. */
struct bpe_coder;
struct bpe_coder *bpe_coder_new(const struct bpe *b);
void bpe_coder_free(struct bpe_coder *c);
/* Puts the ids of a text behind those in the list. Any bytes have ids. `begins`: the text begins here, and does not go on from what was encoded
 * before; it matters where a tokenizer puts a space in front. */
void bpe_encode(struct bpe_coder *c, const char *text, size_t length, bool begins, struct id_list *out);

/* How much of a text can be encoded without what follows it, so that the ids are those of the whole: up to the last place where words part.
 * 0: nowhere. */
size_t bpe_cut(const struct bpe *b, const char *text, size_t length);

/* The same on threads; the ids do not depend on their number. */
enum status bpe_encode_threads(const struct bpe *b, const char *text, size_t length, bool begins, int threads, struct id_list *out, struct error *err);

#endif
