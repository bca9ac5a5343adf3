/* The text of the file of choices. It is whatever lies there: nothing in it is believed before it is checked. */
#ifndef HONE_CORE_CHOICES_INT_H
#define HONE_CORE_CHOICES_INT_H

#include <stddef.h>

#include "core/choices.h"

enum { CHOICE_TEXT_MOST = 512 };        /* bytes of a key or a name */

/* Fills in those of list[0 .. n) that have a sound entry in the text, and leaves the others as they are. */
void choices_parse(struct choice *list, int n, const char *text, size_t size);
/* The text of a file, for free(), with the list, and with the sound entries for others in `text`, which may be damaged or empty.
 * The last ones fall out of a full one. NULL when something in the list is not sound: a key that is not UTF-8, times that are not
 * above 0 and finite. */
char *choices_print(const struct choice *list, int n, const char *text, size_t size);

/* Forgets what this process knows, as if it had just begun. */
void choices_forget(void);

#endif
