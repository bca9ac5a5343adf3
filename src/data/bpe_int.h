/* Inside byte-pair encoding: what a tokenizer is made of. */
#ifndef HONE_DATA_BPE_INT_H
#define HONE_DATA_BPE_INT_H

#include <jansson.h>
#include <stdatomic.h>

#include "data/bpe.h"
#include "data/pieces.h"

struct bpe_bytes {
    const char *at;             /* NULL: no token has this id */
    uint32_t length;
};

/* Specials are looked for in two turns: those of the second only in what the first left. */
enum { SPECIAL_TURNS = 2 };

struct bpe_special {
    const char *text;
    uint32_t length;
    int32_t id;
    int turn;                   /* 1: it is "normalized", and looked for in the normalized text */
    bool is_mark;               /* "special": it stands for no text */
};

/* Slots of a table with open addressing: left and right id -> what they become, and how early. */
struct bpe_merge {
    int32_t left, right;        /* left -1: free */
    int32_t to, rank;
};

/* Where a space is put before a text, or before what is left of it behind a special token. */
enum bpe_prefix {
    PREFIX_NEVER,
    PREFIX_FIRST,               /* before the text, unless it begins with one */
    PREFIX_EACH,                /* before each, unless it begins with one */
    PREFIX_EACH_ANYWAY,
};

/* What SentencePiece writes for a space. */
#define SPACE_MARK "\xE2\x96\x81"
enum { SPACE_MARK_BYTES = 3 };

struct bpe {
    atomic_int users;
    char *json;                 /* the tokenizer.json */
    size_t json_size;
    struct cutting cutting;
    enum bpe_prefix prefix;
    bool by_characters;         /* SentencePiece: characters are merged and not bytes; those without a token are the tokens of their bytes */
    bool whole_pieces;          /* a piece that is a token is that token, whatever merges would make of it */
    int32_t n;
    struct bpe_bytes *tokens;   /* (n) */
    char *text;                 /* that they point into */
    int32_t byte_ids[256];      /* by_characters: of "<0x0A>", which by_text does not know */
    int32_t *by_text;           /* slots: id of a token, -1: free */
    uint32_t by_text_mask;
    struct bpe_merge *merges;   /* slots */
    uint32_t merges_mask;
    int n_merges;
    struct bpe_special *specials;       /* longest first */
    int n_specials;
    bool special_starts[SPECIAL_TURNS][256];    /* first bytes of specials */
};

/* The id of a token with these bytes; -1: there is none. */
int32_t bpe_find(const struct bpe *b, const char *text, size_t length);
const struct bpe_merge *bpe_merge_of(const struct bpe *b, int32_t left, int32_t right);
/* Of a merge list, which the caller has room for; false: it is there already. */
bool bpe_merge_add(struct bpe *b, struct bpe_merge m);
void bpe_index_tokens(struct bpe *b);           /* fills by_text */
void bpe_room_for_merges(struct bpe *b, size_t n);

/* Bytes as characters that can be shown, as GPT-2 has them: the character of a byte, and back (-1: of none). */
uint32_t bpe_shown_of(unsigned char byte);
int bpe_byte_of(uint32_t shown);
/* A token in these characters, with a NUL; room for 2 bytes of each. Returns its length. */
size_t bpe_show(const char *bytes, size_t length, char *out);

/* The byte that a token such as "<0x0A>" stands for; -1: it is none of these. */
int bpe_byte_named(const char *token);
/* What a tokenizer of SentencePiece does to spaces, from the normalizer and the pre-tokenizer of its tokenizer.json; `name` is for messages. */
enum status bpe_read_spaces(struct bpe *b, const json_t *normalizer, const json_t *pre_tokenizer, const char *name, struct error *err);

/* The text of a tokenizer.json from a vocabulary (token: id), merges ("a b") and the specials among the vocabulary; takes all three over. NULL: no
 * memory. */
char *bpe_document(json_t *vocab, json_t *merges, json_t *specials, const struct cutting *c);

#endif
