/* What the files of fixes share. */
#ifndef HONE_ANALYZE_TRACED_FIX_INT_H
#define HONE_ANALYZE_TRACED_FIX_INT_H

#include <string.h>

#include "analyze/traced/fix.h"

static inline bool fix_is_for_cpu(const struct fix_facts *f) { return f->device && !strcmp(f->device, "cpu"); }

/* Code for a program that only goes forward, which has no loss, gradients and optimizer; NULL: the text for training does. fix_forward.c */
const char *fix_forward(struct arena *a, const char *rule, const struct fix_facts *f);

/* Code for exposed collectives, by the kind that costs most; NULL: it is not known, and the rule's text does. fix_comm.c */
const char *fix_collectives(struct arena *a, const struct fix_facts *f);
/* Code for an optimizer that goes tensor by tensor; fix_optimizer.c */
const char *fix_optimizer(struct arena *a, const struct fix_facts *f);
/* Texts are written for AdamW with all that it can. No code may put another algorithm in the place of the user's: what is not to be had with it goes. */
const char *fix_with_optimizer(struct arena *a, const char *text, const struct fix_facts *f);

/* The text with every `from` written as `to`; the text without the lines that have the word. */
const char *fix_replaced(struct arena *a, const char *text, const char *from, const char *to);
const char *fix_without_lines(struct arena *a, const char *text, const char *word);

#endif
