/* Any bytes as the file of choices: what is believed is sound, and adding a choice to it gives a file in which the new one is
 * found as it was and the believed one is still there. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/choices_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const variants[] = {"rule", "own", "blas", NULL};

static void require(int condition)
{
    if (!condition)
        abort();
}

static struct choice look_up(const char *key, const char *text, size_t size)
{
    struct choice c = {.key = key, .variants = variants, .variant = -1};
    choices_parse(&c, 1, text, size);
    return c;
}

static void require_same(const struct choice *a, const struct choice *b)
{
    require(a->variant == b->variant && a->us == b->us && a->first_us == b->first_us);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct choice mine = {.key = "mine", .variants = variants, .variant = 2, .us = 0.1, .first_us = 1e9};
    const struct choice found = look_up("other", (const char *)data, size);
    require(found.variant >= -1 && found.variant <= 2);
    if (found.variant >= 0)
        require(found.us > 0 && found.us <= found.first_us && isfinite(found.first_us));

    char *text = choices_print(&mine, 1, (const char *)data, size);
    require(text != NULL);
    const struct choice again = look_up("mine", text, strlen(text)), other = look_up("other", text, strlen(text));
    require_same(&again, &mine);
    if (other.variant >= 0)
        require_same(&other, &found);
    free(text);
    return 0;
}
