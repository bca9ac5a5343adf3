/* A stochastic context-free grammar: a table of weighted productions, compiled once, that prints random texts and knows
 * their exact expected length and entropy.
 *
 * If every text has exactly one derivation, the entropy of the choices is the entropy of the text. The grammars must
 * keep that property; the tests count derivations. */
#ifndef HONE_DATA_GRAMMAR_H
#define HONE_DATA_GRAMMAR_H

#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/error.h"

/* One row of a grammar. Rows of one symbol stand together; the first symbol is the start. In `text`, {name} stands for
 * an expansion of that symbol, everything else for itself. A row with the weight WORDS holds alternatives separated by
 * '|' with Zipf-like weights in the order they stand, and is the only row of its symbol. */
struct production {
    const char *symbol;
    int weight;
    const char *text;
};

enum { WORDS = -1 };

/* The compiled form. */
struct grammar_part {
    const char *text;           /* a terminal of `length` characters */
    uint32_t length;
    int32_t symbol;             /* or, if >= 0, a symbol */
};

struct grammar_choice {
    const struct grammar_part *parts;
    int n_parts;
    int weight;
    double log_p;
};

struct grammar_symbol {
    const char *name;
    const struct grammar_choice *choices;
    int n_choices;
    uint32_t total;             /* of the weights */
    const uint16_t *pick;       /* (total): the choice of each unit of weight */
};

struct grammar {
    struct arena arena;
    struct grammar_symbol *symbols;     /* symbols[0] is the start */
    int n_symbols;
    double entropy;                     /* nats of one text of the start symbol */
    double length;                      /* expected characters of one text of the start symbol */
};

/* Fails on a reference to an unknown symbol, a weight that is not positive, or a recursion so strong that the expected
 * length is infinite. Row texts must outlive the grammar. */
enum status grammar_init(struct grammar *g, const struct production *rows, int n_rows, struct error *err);
void grammar_release(struct grammar *g);

/* Prints text `index` of the stream (key, stream) into out, at most `room` characters and without NUL. Returns the full
 * length, which may exceed room; adds the log probability of the text to *log_p if it is not NULL. */
size_t grammar_print(const struct grammar *g, uint64_t key, uint32_t stream, uint64_t index, char *out, size_t room,
                     double *log_p);

#endif
