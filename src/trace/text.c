/* Makes any bytes valid UTF-8; see trace_int.h. jansson is asked what is valid, so that what we write it can read. */
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "trace/trace_int.h"

static bool valid(const char *text, size_t size)
{
    json_t *j = json_stringn(text, size);
    json_decref(j);
    return j != NULL;
}

/* The length of the character at the start of the text; 0: none is there. No character is the beginning of another. */
static size_t character(const char *text)
{
    const size_t most = strnlen(text, 4);
    for (size_t n = 1; n <= most; n++)
        if (valid(text, n))
            return n;
    return 0;
}

char *trace_text_repair(const char *text)
{
    static const char replacement[] = "\xEF\xBF\xBD";
    const size_t size = strlen(text);
    if (valid(text, size))
        return xstrdup(text);
    char *out = xcalloc(3 * size + 1, 1), *to = out;    /* one byte becomes three at most */
    while (*text) {
        const size_t n = character(text);
        memcpy(to, n ? text : replacement, n ? n : 3);
        to += n ? n : 3;
        text += n ? n : 1;
    }
    return out;
}
