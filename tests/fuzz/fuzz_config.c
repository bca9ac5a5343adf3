/* Any bytes as a configuration, and what follows the first byte 1, which no YAML has, as --set lines. What is accepted
 * must print as YAML that reads back to the same configuration. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

enum { SETS_MAX = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Splits NUL-terminated text into its lines. */
static int split_lines(char *text, const char **lines)
{
    int n = 0;
    for (char *line = strtok(text, "\n"); line && n < SETS_MAX; line = strtok(NULL, "\n"))
        lines[n++] = line;
    return n;
}

static void check_round_trip(const struct config *c)
{
    char *text;
    size_t length;
    struct config again;
    struct error err;
    FILE *f = open_memstream(&text, &length);
    if (!f)
        abort();
    config_print(c, f);
    fclose(f);
    if (config_parse(&again, c->file, text, length, NULL, 0, &err) != OK || memcmp(&again, c, sizeof again))
        abort();
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *mark = size ? memchr(data, 1, size) : NULL;
    const size_t length = mark ? (size_t)(mark - data) : size;
    const char *sets[SETS_MAX];
    struct config c;
    struct error err;
    char *tail = mark ? strndup((const char *)mark + 1, size - length - 1) : NULL;
    const int n = tail ? split_lines(tail, sets) : 0;
    if (config_parse(&c, "fuzz.yaml", (const char *)data, length, sets, n, &err) == OK)
        check_round_trip(&c);
    free(tail);
    return 0;
}
