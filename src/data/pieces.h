/* Text cut into pieces, within which tokens are merged: what regular expressions of tokenizers do, written out. */
#ifndef HONE_DATA_PIECES_H
#define HONE_DATA_PIECES_H

#include <stdbool.h>
#include <stddef.h>

/* How to cut. */
struct cutting {
    bool words_with_marks;      /* false: as GPT-2; true: as cl100k and Llama 3, where a mark before a word belongs to it */
    int digits;                 /* of a number that stay together, where words_with_marks: 3 or 1 */
    bool each_digit;            /* before all else: every digit is a piece */
    bool none;                  /* a whole text is one piece */
    bool spaces_first;          /* instead: spaces and what follows them, up to the next ones (SentencePiece) */
    bool lines;                 /* spaces_first: the end of a line ends a piece, too */
};

/* The regular expression by its text, as a tokenizer.json has it; false: none that is known. */
bool cutting_of_regex(struct cutting *out, const char *regex);
const char *cutting_regex(const struct cutting *c);

/* Where the piece that begins at `at` (below `length`) ends. Bytes that are no UTF-8 count as marks. *digit is where the next digit is, kept
 * between the pieces of a text; 0 at first. */
size_t piece_end(const struct cutting *c, const char *text, size_t at, size_t length, size_t *digit);

#endif
