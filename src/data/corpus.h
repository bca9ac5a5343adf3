/* The built-in corpus: endless text in three domains whose true entropy per character is computed, so that a loss can
 * be compared with the best possible one.
 *
 * A text is a row of independent units (a sentence, a function, an equation) printed by the domain's grammar. No unit
 * is a prefix of another and each has one derivation, so the entropy per character is H(unit) / E[length of a unit].
 * Everything is a pure function of domain, seed and the index of the unit. */
#ifndef HONE_DATA_CORPUS_H
#define HONE_DATA_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "data/grammar.h"

/* Exactly `chars` characters of ASCII text with a NUL after them, for the caller to free; NULL when memory is short. */
char *corpus_generate(enum data_domain domain, uint64_t seed, size_t chars);

/* The entropy of the text in nats per character. */
double corpus_entropy(enum data_domain domain);

/* Marks the characters that texts of the domain can hold. */
void corpus_alphabet(enum data_domain domain, bool used[128]);

/* Prints unit `index` of the text (at most `room` characters, no NUL), returns its full length and adds its log
 * probability to *log_p if that is not NULL. */
size_t corpus_unit(enum data_domain domain, uint64_t seed, uint64_t index, char *out, size_t room, double *log_p);

/* The grammar of the domain, compiled once and kept for the life of the process. */
const struct grammar *corpus_grammar(enum data_domain domain);

#endif
