/* "Did you mean": how far two words are apart, and which known word is nearest. */
#ifndef HONE_CORE_SUGGEST_H
#define HONE_CORE_SUGGEST_H

#include <stdbool.h>

/* Insertions, deletions, changes and swaps of neighbours; a large number for words that are too long to be keys. */
int suggest_distance(const char *a, const char *b);

/* Near enough to be a slip of the hand: about a third of the word. */
bool suggest_is_near(const char *asked, int distance);

/* The nearest of the words, or NULL when none is near. */
const char *suggest_nearest(const char *asked, const char *const *words, int n);

#endif
