/* Text as JSON. File names are bytes, and JSON is UTF-8: a name that is not gets question marks instead of a document
 * that cannot be made. */
#include <stdlib.h>

#include "core/arena.h"
#include "train/train.h"

json_t *json_text(const char *text)
{
    json_t *j = json_string(text);
    if (j)
        return j;
    char *ascii = xstrdup(text);
    for (char *c = ascii; *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    j = json_string(ascii);
    free(ascii);
    return j;
}
