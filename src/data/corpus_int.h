/* The grammar tables of the built-in corpus, one file each. */
#ifndef HONE_DATA_CORPUS_INT_H
#define HONE_DATA_CORPUS_INT_H

#include "data/grammar.h"

extern const struct production grammar_prose[], grammar_code[], grammar_formulas[];
extern const int grammar_prose_rows, grammar_code_rows, grammar_formulas_rows;

#endif
