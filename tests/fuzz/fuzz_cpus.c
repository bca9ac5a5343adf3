/* Any bytes as a list of CPUs, as /sys has them: what is taken for one holds no number that is not in it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/nodes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct cpus c;
    int highest = -1;
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    for (int i = 0; cpus_parse(&c, text) && i < NODES_CPUS; i++)
        highest = cpus_has(&c, i) ? i : highest;
    if (highest >= 0 && !strpbrk(text, "0123456789"))
        abort();
    free(text);
    return 0;
}
