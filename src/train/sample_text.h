/* The text of a sample as it grows: where a stop text ends it, and how much of it can be shown already. */
#ifndef HONE_TRAIN_SAMPLE_TEXT_H
#define HONE_TRAIN_SAMPLE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct stop_texts {
    const char *const *text;        /* none is empty */
    int n;
};

struct sample_text {
    char *bytes;                    /* of all tokens, with a NUL behind them */
    size_t size, room;
    size_t length;                  /* of these, what counts: up to the stop text */
};

/* Puts a piece behind it; true: a stop text is in it now, and it ends before that. */
bool sample_text_add(struct sample_text *t, const char *piece, size_t size, const struct stop_texts *stops);
/* Bytes that what comes cannot change: without the beginning of a stop text or of a character at the end. */
size_t sample_text_sure(const struct sample_text *t, const struct stop_texts *stops);
void sample_text_release(struct sample_text *t);

#endif
